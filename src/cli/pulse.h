/* SPDX-License-Identifier: MIT */
/* Feels whether a cluster's machine manager is alive, and how the cluster is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/session.h"
#include "wire/row.h"

struct pulse;

/* NULL if there is no memory or no event loop. The cluster is borrowed. */
struct pulse *pulse_new(const struct cluster *c);
void pulse_free(struct pulse *p);

/* The manager speaks another version of the protocol: nothing that is asked will be answered. */
bool pulse_other(const struct pulse *p, struct session_other *ret);

/* Asks how the cluster is; false if nobody answers until then (clock_ns). */
bool pulse_ask(struct pulse *p, uint64_t until, struct cluster_row *ret);

/* Tells the manager to end all jobs and to take no more. False: no answer, or it refuses. */
bool pulse_stop(struct pulse *p, uint64_t until);

/* Lets so much time pass while the link is looked after. */
void pulse_rest(struct pulse *p, uint64_t ns);
