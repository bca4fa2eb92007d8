/* SPDX-License-Identifier: MIT */
/* The buffers of a node, by number: where bulk bytes lie, and which link may put into each. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct buffer {
    uint32_t number;
    uint32_t link;   /* that may put into it, 0 if none */
    uint32_t bundle; /* whose pieces come to it, of a mover's */
    uint32_t lent;   /* parts of it that are being sent from where they lie */
    bool closed;     /* it goes when nothing of it is lent any more */
    uint64_t bytes;
    uint8_t *at;
    int memory; /* descriptor of it, for another process; -1: it is ours alone */
};

struct buffers {
    struct buffer *list;
    uint32_t count, cap;
    bool thrifty; /* what is closed serves the next, as it is: fresh memory costs a fault a page */
    uint8_t *spare;
    uint64_t spare_bytes;
};

void buffers_fini(struct buffers *b);
struct buffer *buffers_find(const struct buffers *b, uint32_t number); /* NULL if there is none */
/* Zeroed, unless they are thrifty. NULL if there is no memory. */
struct buffer *buffers_open(struct buffers *b, uint32_t number, uint64_t bytes);
/* The same, of memory that can be shared with another process. */
struct buffer *buffers_share(struct buffers *b, uint32_t number, uint64_t bytes);
void buffers_close(struct buffers *b, uint32_t number);
/* A part is lent, and is not any more: until then its bytes stay, even if the buffer is closed. */
void buffers_lend(struct buffers *b, uint32_t number);
void buffers_unlend(struct buffers *b, uint32_t number);
