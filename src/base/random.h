/* SPDX-License-Identifier: MIT */
/*
 * Seeded random numbers: xoshiro256** seeded through splitmix64.
 *
 * The same seed gives the same numbers everywhere. Not for secrets. As the order of draws is part
 * of a trace, never write two draws into one argument list.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t s[4];
};

void random_init(struct random *r, uint64_t seed);

uint64_t random_u64(struct random *r);

/* Uniform in [0, n); n > 0. */
uint64_t random_below(struct random *r, uint64_t n);

/* Uniform in [low, high]. */
uint64_t random_between(struct random *r, uint64_t low, uint64_t high);

/* True with probability num / den. Draws also when the outcome is certain. */
bool random_chance(struct random *r, uint64_t num, uint64_t den);

void random_bytes(struct random *r, void *to, size_t len);

/*
 * An independent stream that depends on the state of `r` and the tag. `r` itself does not move: a
 * new user of randomness that forks does not disturb the numbers that others see.
 */
struct random random_fork(const struct random *r, uint64_t tag);
