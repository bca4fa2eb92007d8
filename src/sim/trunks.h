/* SPDX-License-Identifier: MIT */
/* Trunks: the links between switches that stand in a row, which everybody shares.
 *
 * Bytes go on as they come: a frame that finds a link free is not held up by it, unless the link is slower than
 * the sender's. Lanes do not wait for each other, as at network interfaces. */
#pragma once

#include <stdint.h>

#include "wire/gate.h"

struct frame;
struct world;

enum { SWITCHES_MAX = 64 };

struct trunks {
    /* When the link from a switch to the next, and that back, is free again. */
    uint64_t free_at[SWITCHES_MAX][2][LANES];
    uint64_t crossed_bytes; /* in all, each time */
};

/* A frame whose last byte leaves its sender at f->sent_at: when that is before the receiver's interface, but for the
 * latency. */
uint64_t trunks_pass(struct world *w, uint32_t from, uint32_t to, const struct frame *f);
