/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of what nodes say of themselves: it reads to the first flaw or to the end, and what it has read is the same
 * when it is written and read again. */
#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"
#include "wire/vitals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NODE = 3, RUN_MAX = 70, HEAD_MAX = 40 };

static void check_head(const struct vitals *g) {
    uint8_t again[HEAD_MAX];
    struct vitals back;
    size_t at;
    long len = vitals_begin(g, room_of(again, sizeof again));
    ASSERT(len > 0 && vitals_read(bytes_of(again, (size_t)len), &back, &at) == 0);
    ASSERT(at == (size_t)len && back.gauge.load_x100 == g->gauge.load_x100 &&
           back.gauge.memory_bytes == g->gauge.memory_bytes &&
           back.gauge.memory_used == g->gauge.memory_used && back.watch == g->watch &&
           back.active == g->active);
}

static void check_run(const struct vitals_run *r) {
    uint8_t again[RUN_MAX];
    struct vitals_run back;
    size_t at = 0;
    long len = vitals_add(r, room_of(again, sizeof again));
    ASSERT(len > 0 && vitals_next(bytes_of(again, (size_t)len), &at, NODE, &back) == 1);
    ASSERT(at == (size_t)len && back.run == r->run && usage_same(&back.usage, &r->usage));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes record = bytes_of(data, size);
    struct vitals g;
    struct vitals_run r;
    size_t at;
    if (vitals_read(record, &g, &at) < 0)
        return 0;
    check_head(&g);
    while (vitals_next(record, &at, NODE, &r) == 1)
        check_run(&r);
    ASSERT(at <= size);
    return 0;
}
