/* SPDX-License-Identifier: MIT */
/* A stream of bytes through a pipe and a window, as the model kernel has them.
 *
 * Bytes are numbered from the stream's beginning. What is written and not yet taken lies here: the
 * oldest in the window, the rest in the pipe. */
#pragma once

#include "base/bytes.h"

enum { PIPE_BYTES = 64 * 1024 };

struct flow {
    uint8_t *at;
    size_t cap;
    uint64_t from; /* taken */
    uint64_t to;   /* written */
    uint32_t window;
};

void flow_fini(struct flow *f);

/* How much a writer can write now. */
uint64_t flow_room(const struct flow *f);

/* The end of what is in the window. */
uint64_t flow_read(const struct flow *f);

/* There must be room. */
void flow_write(struct flow *f, struct bytes bytes);
void flow_drop(struct flow *f, uint64_t before);

/* What lies here between two offsets. */
struct bytes flow_part(const struct flow *f, uint64_t from, uint64_t to);
