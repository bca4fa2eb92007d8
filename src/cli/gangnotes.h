/* SPDX-License-Identifier: MIT */
/* Notes of the processes of one benched job, in memory that all of them and the bench share; and what follows from them. */
#pragma once

#include <stddef.h>

#include "cli/gangwork.h"

struct gangnotes {
    char path[96];
    uint32_t count; /* of processes */
    uint8_t *at;
};

/* -errno. Made by the bench, which also removes the file; opened by the processes. */
int gangnotes_make(struct gangnotes *n, const char *path, uint32_t count);
int gangnotes_open(struct gangnotes *n, const char *path, uint32_t count);
void gangnotes_fini(struct gangnotes *n); /* of the maker; zeros are fine */

/* For another run. */
void gangnotes_clear(struct gangnotes *n);

struct gangwork *gangnotes_of(const struct gangnotes *n, uint32_t rank);
void gangnotes_touch(const struct gangnotes *n, uint32_t rank); /* no page of it is missing then */

/* From the first that began to the last that was done. False if somebody was not. */
struct gangspan {
    uint64_t from, to;
};
bool gangnotes_span(const struct gangnotes *n, struct gangspan *ret);

/* How long the jobs' processes ran while all jobs were there: the least and the most, in thousandths of their mean. False if they
 * were not there together. */
bool gangnotes_shares(const struct gangnotes *jobs, uint32_t count, uint32_t *ret_least,
                      uint32_t *ret_most);

/* Each switch from the first of these jobs to the second: from the first process that is held until all of the other
 * run. Pauses are at least so long. Returns how many there were, at most `cap`; ascending. */
uint32_t gangnotes_switches(const struct gangnotes *from, const struct gangnotes *to,
                            uint64_t least_ns, uint64_t *ret_ns, uint32_t cap);
