/* SPDX-License-Identifier: MIT */
/* Bodies that may be wanted again soon, by key; the oldest make room. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { RECENT_BUCKETS = 4096 };

struct recent_entry;

struct recent {
    struct recent_entry *buckets[RECENT_BUCKETS];
    struct recent_entry *oldest, *newest;
    size_t bytes;
};

/* Copies it; a body that is there under the key is replaced. */
void recent_keep(struct recent *r, uint64_t key, struct bytes body);

/* The body is good until the next change. */
bool recent_find(const struct recent *r, uint64_t key, struct bytes *ret);

void recent_fini(struct recent *r);
