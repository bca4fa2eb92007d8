/* SPDX-License-Identifier: MIT */
/* Buffers of a node: see buffers.h. */
#include "os/buffers.h"

#include <stdlib.h>

#include "base/assert.h"

void buffers_fini(struct buffers *b) {
    for (uint32_t i = 0; i < b->count; i++)
        free(b->list[i].at);
    free(b->list);
    *b = (struct buffers){0};
}

static struct buffer *find(const struct buffers *b, uint32_t number) {
    for (uint32_t i = 0; i < b->count; i++)
        if (b->list[i].number == number)
            return &b->list[i];
    return NULL;
}

struct buffer *buffers_find(const struct buffers *b, uint32_t number) {
    struct buffer *found = find(b, number);
    return found == NULL || found->closed ? NULL : found;
}

struct buffer *buffers_open(struct buffers *b, uint32_t number, uint64_t bytes) {
    ASSERT(buffers_find(b, number) == NULL);
    if (b->count == b->cap) {
        uint32_t cap = b->cap ? 2 * b->cap : 8;
        struct buffer *list = realloc(b->list, cap * sizeof *list);
        if (list == NULL)
            return NULL;
        b->list = list;
        b->cap = cap;
    }
    uint8_t *at = calloc(1, bytes ? bytes : 1);
    if (at == NULL)
        return NULL;
    b->list[b->count] = (struct buffer){.number = number, .bytes = bytes, .at = at};
    return &b->list[b->count++];
}

static void let_go(struct buffers *b, struct buffer *gone) {
    if (!gone->closed || gone->lent > 0)
        return;
    free(gone->at);
    *gone = b->list[--b->count];
}

void buffers_close(struct buffers *b, uint32_t number) {
    struct buffer *gone = buffers_find(b, number);
    if (gone == NULL)
        return;
    gone->closed = true;
    let_go(b, gone);
}

void buffers_lend(struct buffers *b, uint32_t number) {
    buffers_find(b, number)->lent++;
}

void buffers_unlend(struct buffers *b, uint32_t number) {
    struct buffer *lent = find(b, number);
    lent->lent--;
    let_go(b, lent);
}
