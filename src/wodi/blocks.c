/* SPDX-License-Identifier: MIT */
/* Chains of blocks; free ones are a chain too. */
#include "wodi/blocks.h"

#include <string.h>

void blocks_init(struct blocks *p, uint32_t cap, struct arena *a) {
    *p = (struct blocks){.at = ARENA_TAKE(a, struct block, cap), .cap = cap};
}

static uint32_t take(struct blocks *p) {
    uint32_t number = p->free;
    if (number)
        p->free = p->at[number - 1].next;
    else
        number = ++p->touched;
    ASSERT(number <= p->cap);
    p->used++;
    return number;
}

struct body blocks_keep(struct blocks *p, struct bytes bytes) {
    struct body body = {.len = (uint32_t)bytes.len};
    uint32_t *link = &body.first;
    for (size_t at = 0; at < bytes.len; at += BLOCK_DATA) {
        uint32_t number = take(p);
        struct block *b = &p->at[number - 1];
        size_t part = bytes.len - at < BLOCK_DATA ? bytes.len - at : BLOCK_DATA;
        memcpy(b->data, bytes.at + at, part);
        b->next = 0;
        *link = number;
        link = &b->next;
    }
    return body;
}

void blocks_drop(struct blocks *p, struct body *body) {
    while (body->first) {
        uint32_t number = body->first;
        struct block *b = &p->at[number - 1];
        body->first = b->next;
        b->next = p->free;
        p->free = number;
        p->used--;
    }
    body->len = 0;
}

struct bytes blocks_copy(const struct blocks *p, struct body body, uint8_t *out) {
    size_t at = 0;
    for (uint32_t number = body.first; number; number = p->at[number - 1].next) {
        size_t part = body.len - at < BLOCK_DATA ? body.len - at : BLOCK_DATA;
        memcpy(out + at, p->at[number - 1].data, part);
        at += part;
    }
    return bytes_of(out, body.len);
}
