/* SPDX-License-Identifier: MIT */
/* Jobs of the past, from the events of the log.
 *
 * Events are fed in the order of their keys, and of each key in the order in which they happened. When a
 * key is over its jobs are told, in the order of their numbers: as the events have them. A job
 * without an end may have gone on since; who wants to know asks the manager. */
#pragma once

#include "base/arena.h"
#include "base/roster.h"
#include "wire/row.h"

/* Events at and behind this key are not about jobs. */
#define HISTORY_KEY_END ((uint64_t)1 << 48)

struct chronicle_config {
    uint32_t nodes_max; /* that any node set ranges over */
    uint32_t jobs_max;  /* of one key */
    size_t text_max;    /* bytes of node lists of one key; those that do not fit are left out */
    const struct roster *roster; /* names of nodes */
    uint32_t from, to;           /* jobs of lower and higher numbers are not told; 0: of any */
    void (*row)(void *context, const struct job_row *row);
    void *context;
};

struct chronicle;

size_t chronicle_bytes(const struct chronicle_config *c);
struct chronicle *chronicle_new(const struct chronicle_config *c, struct arena *a);

/* What cannot be understood is passed over. False: nothing that comes behind it is wanted. */
bool chronicle_feed(struct chronicle *h, uint64_t key, struct bytes event);

/* There are no more events. */
void chronicle_end(struct chronicle *h);

/* The highest number of a job so far. */
uint32_t chronicle_last(const struct chronicle *h);
