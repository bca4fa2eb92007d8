/* SPDX-License-Identifier: MIT */
/* Buffers of a node: see buffers.h. */
#include "os/buffers.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"

static void release(struct buffers *all, struct buffer *b) {
    if (b->memory >= 0) {
        munmap(b->at, b->bytes);
        close(b->memory);
    } else if (all->thrifty && b->bytes > all->spare_bytes) {
        free(all->spare);
        all->spare = b->at;
        all->spare_bytes = b->bytes;
    } else {
        free(b->at);
    }
}

static uint8_t *reserve(struct buffers *b, uint64_t bytes) {
    if (bytes == 0 || bytes > b->spare_bytes || bytes < b->spare_bytes / 2)
        return calloc(1, bytes ? bytes : 1);
    uint8_t *at = b->spare;
    b->spare = NULL;
    b->spare_bytes = 0;
    return at;
}

void buffers_fini(struct buffers *b) {
    for (uint32_t i = 0; i < b->count; i++)
        release(b, &b->list[i]);
    free(b->spare);
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

static struct buffer *add(struct buffers *b, uint32_t number, uint64_t bytes) {
    ASSERT(buffers_find(b, number) == NULL);
    if (b->count == b->cap) {
        uint32_t cap = b->cap ? 2 * b->cap : 8;
        struct buffer *list = realloc(b->list, cap * sizeof *list);
        if (list == NULL)
            return NULL;
        b->list = list;
        b->cap = cap;
    }
    b->list[b->count] = (struct buffer){.number = number, .bytes = bytes, .memory = -1};
    return &b->list[b->count];
}

struct buffer *buffers_open(struct buffers *b, uint32_t number, uint64_t bytes) {
    struct buffer *made = add(b, number, bytes);
    if (made == NULL || (made->at = reserve(b, bytes)) == NULL)
        return NULL;
    b->count++;
    return made;
}

struct buffer *buffers_share(struct buffers *b, uint32_t number, uint64_t bytes) {
    struct buffer *made = bytes == 0 ? NULL : add(b, number, bytes);
    int memory = made == NULL ? -1 : memfd_create("storm slots", MFD_CLOEXEC);
    void *at = MAP_FAILED;
    if (memory >= 0 && ftruncate(memory, (off_t)bytes) == 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (at == MAP_FAILED) {
        if (memory >= 0)
            close(memory);
        return buffers_open(b, number, bytes);
    }
    made->at = at;
    made->memory = memory;
    b->count++;
    return made;
}

static void let_go(struct buffers *b, struct buffer *gone) {
    if (!gone->closed || gone->lent > 0)
        return;
    release(b, gone);
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
