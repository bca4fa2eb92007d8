/* SPDX-License-Identifier: MIT */
/* The buffers of a node, by number: where bulk bytes lie, and which link may put into each. */
#pragma once

#include <stdint.h>

struct buffer {
    uint32_t number;
    uint32_t link; /* that may put into it, 0 if none */
    uint64_t bytes;
    uint8_t *at;
};

struct buffers {
    struct buffer *list;
    uint32_t count, cap;
};

void buffers_fini(struct buffers *b);
struct buffer *buffers_find(const struct buffers *b, uint32_t number); /* NULL if there is none */
/* Zeroed. NULL if there is no memory. */
struct buffer *buffers_open(struct buffers *b, uint32_t number, uint64_t bytes);
void buffers_close(struct buffers *b, uint32_t number);
