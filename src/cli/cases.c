/* SPDX-License-Identifier: MIT */
/* What `storm bench primitives` measures: see cases.h. */
#include "cli/cases.h"

#include <string.h>

#include "base/units.h"

#define BODY_BYTES (4 * KIB)
#define BULK_BYTES (1 * MIB)

/* No deadline of the bench's own: what takes that long is broken. */
#define TIMEOUT_NS (1000 * NS_PER_S)

enum { STREAM_IN_FLIGHT = 8, STREAM_RUNS = 16, BULK_RUNS_MAX = 3 };

static const struct case_info cases[BENCH_CASES] = {
    [CASE_XFER] = {"xfer", "xfer 0 B", COST_XFER, 0, false, false},
    [CASE_XFER_4K] = {"xfer-4k", "xfer 4 KiB", COST_XFER, BODY_BYTES, false, false},
    [CASE_COMPARE] = {"compare", "compare", COST_COMPARE, 0, false, false},
    [CASE_COMPARE_WRITE] = {"compare-write", "comp.+write", COST_WRITE, 0, false, false},
    [CASE_TEST_EVENT] = {"test-event", "test-event", COST_KINDS, 0, true, false},
    [CASE_WAVE] = {"wave", "heartbeat", COST_WAVE, 0, false, false},
    [CASE_XFER_STREAM] = {"xfer-stream", "xfers", COST_XFER, BODY_BYTES, false, true},
    [CASE_BULK] = {"bulk", "bulk 1 MiB", COST_BULK, BULK_BYTES, false, true},
};

const struct case_info *case_info(enum bench_case which) {
    return &cases[which];
}

bool case_find(const char *name, enum bench_case *ret) {
    for (int i = 0; i < BENCH_CASES; i++)
        if (strcmp(cases[i].name, name) == 0) {
            *ret = (enum bench_case)i;
            return true;
        }
    return false;
}

struct driver_task case_task(enum bench_case which, uint32_t runs) {
    static const uint8_t body[BODY_BYTES];
    const struct case_info *info = &cases[which];
    struct driver_task t = {.request = {.kind = PRIMITIVE_XFER,
                                        .timeout_ns = TIMEOUT_NS,
                                        .remote_event = 0,
                                        .local_event = NO_EVENT,
                                        .write_variable = NO_VARIABLE},
                            .runs = runs};
    switch (which) {
    case CASE_XFER:
        break;
    case CASE_XFER_STREAM:
        t.in_flight = STREAM_IN_FLIGHT;
        t.runs = STREAM_RUNS; /* a rate does not get better by more of them */
        t.request.body = bytes_of(body, info->bytes);
        break;
    case CASE_XFER_4K:
        t.request.body = bytes_of(body, info->bytes);
        break;
    case CASE_COMPARE:
        t.request.kind = PRIMITIVE_COMPARE;
        break;
    case CASE_COMPARE_WRITE:
        t.request.kind = PRIMITIVE_COMPARE;
        t.request.write_variable = 1;
        break;
    case CASE_WAVE:
        t.wave = true;
        break;
    case CASE_BULK:
        t.request.kind = PRIMITIVE_BULK;
        t.runs = runs < BULK_RUNS_MAX ? runs : BULK_RUNS_MAX;
        t.request.buffer_bytes = info->bytes;
        break;
    case CASE_TEST_EVENT:
    case BENCH_CASES:
        break;
    }
    return t;
}
