/* SPDX-License-Identifier: MIT */
/* How long the steps of a master took, by their numbers, in former cycles and former runs.
 *
 * Steps change little from cycle to cycle (the paper, figure 6), so what is expected of one is what it took, the latest
 * counting most. Numbers beyond the table, and steps that are new, are expected to take what steps usually take. Times are
 * those of a worker of speed SPEED_ONE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define SPEED_ONE ((uint64_t)1 << 16)

struct history {
    uint64_t *ns; /* by number; 0: not known */
    uint32_t cap;
    uint32_t end;      /* numbers from here on are not known */
    uint64_t usual_ns; /* running mean of all; 0: not known */
};

void history_add(struct history *h, uint64_t step, uint64_t ns);
/* `ret_own`, if not NULL: it is this step's own. 0: nothing is known. */
uint64_t history_expect(const struct history *h, uint64_t step, bool *ret_own);

/* As text, a line for each step: its number, nanoseconds. From step *at on as many as there is room for; *at moves on; 0: that
 * was all. */
size_t history_write(const struct history *h, uint32_t *at, char *out, size_t size);
/* Lines of such a text; those that make no sense are passed over. */
void history_read(struct history *h, struct bytes text);

static inline uint64_t speed_scale(uint64_t ns, uint64_t num, uint64_t den) {
    uint64_t whole = ns / den * num;
    return whole + ns % den * num / den;
}
