/* SPDX-License-Identifier: MIT */
/* Buckets of ratios. Whole numbers only: the same verdict on every machine. */
#include "wodi/straggle.h"

#include "base/log2.h"

enum {
    SAMPLES_MIN = 8,     /* fewer say little */
    FEW_RATIO = 16,      /* then only what takes so many times as long is late */
    FADE_AT = 4096,      /* then all counts are halved */
    MARGIN_BUCKETS = 2,  /* above the bucket of the slowest hundredth: another half of it */
    RATIO_MIN = 4,       /* buckets above 1: less than twice as long is never late */
    NOISE_NS = 20000000, /* nor is what a machine's own hiccups explain */
    FEW_NS = 1000000000, /* or, with few samples, anything short */
};

static uint32_t bucket(uint64_t took_ns, uint64_t expected_ns) {
    uint64_t quarters_took = log2_fixed(took_ns | 1) / (LOG2_ONE / 4);
    uint64_t quarters_expected = log2_fixed(expected_ns | 1) / (LOG2_ONE / 4);
    int64_t at = STRAGGLE_ONE + (int64_t)quarters_took - (int64_t)quarters_expected;
    return at < 0 ? 0 : at >= STRAGGLE_BUCKETS ? STRAGGLE_BUCKETS - 1 : (uint32_t)at;
}

static void fade(struct straggle *s) {
    s->total = 0;
    for (uint32_t i = 0; i < STRAGGLE_BUCKETS; i++) {
        s->counts[i] /= 2;
        s->total += s->counts[i];
    }
}

void straggle_add(struct straggle *s, uint64_t took_ns, uint64_t expected_ns) {
    s->counts[bucket(took_ns, expected_ns)]++;
    if (++s->total >= FADE_AT)
        fade(s);
}

bool straggle_late(const struct straggle *s, uint64_t ran_ns, uint64_t expected_ns) {
    if (s->total < SAMPLES_MIN)
        return ran_ns > FEW_NS && ran_ns / FEW_RATIO > expected_ns;
    if (ran_ns < expected_ns + NOISE_NS)
        return false;
    uint32_t above = s->total / 100, i = STRAGGLE_BUCKETS - 1;
    for (uint32_t seen = s->counts[i]; seen <= above && i > 0; seen += s->counts[i])
        i--;
    uint32_t limit = i + MARGIN_BUCKETS;
    if (limit < STRAGGLE_ONE + RATIO_MIN)
        limit = STRAGGLE_ONE + RATIO_MIN;
    return bucket(ran_ns, expected_ns) > limit;
}
