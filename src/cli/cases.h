/* SPDX-License-Identifier: MIT */
/* What `storm bench primitives` measures. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/cost.h"
#include "sim/driver.h"

enum bench_case {
    CASE_XFER,
    CASE_XFER_4K,
    CASE_COMPARE,
    CASE_COMPARE_WRITE,
    CASE_TEST_EVENT,
    CASE_WAVE,
    CASE_XFER_STREAM,
    CASE_BULK,
    BENCH_CASES
};

struct case_info {
    const char *name;  /* in JSON and on the command line */
    const char *title; /* above a column */
    enum cost_kind cost;
    uint64_t bytes; /* of one operation */
    bool local;     /* takes no message */
    bool rate;      /* several operations at once: bytes a second count */
};

const struct case_info *case_info(enum bench_case which);
bool case_find(const char *name, enum bench_case *ret);

/* The task that measures it, for cases that are not local. */
struct driver_task case_task(enum bench_case which, uint32_t runs);
