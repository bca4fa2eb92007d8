/* SPDX-License-Identifier: MIT */
/* What lies in the buffers of bodies: stamps.
 *
 * Movers shift more bytes than a simulation of thousands could hold. So where a put or a load wrote there is
 * a stamp: how many bytes, and a tag that stands for what they are. Links are charged for the bytes. A
 * stamp that is on its way must not be written over: whoever put it has to wait until it has left. */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "machine/machine.h"

struct node;

struct stamp {
    uint64_t offset;
    uint64_t tag;
    uint32_t len;
    uint32_t leaving; /* puts of it that have not left */
};

/* Of a stamp in a put. */
enum { STAMP_BYTES = 12 };

/* The stamp that a put takes along: what lies at its offset must be as long as it says. */
void stamp_read(struct node *n, const struct effect_put *p, uint8_t ret[STAMP_BYTES]);
uint32_t stamp_len(struct bytes stamp);
void stamp_write(struct node *n, uint32_t buffer, uint64_t offset, struct bytes stamp);
/* A put of it has left. */
void stamp_left(struct node *n, uint32_t buffer, uint64_t offset);
