/* SPDX-License-Identifier: MIT */
/* Daemons that ask for what they are told, and write everything down.
 *
 * A world has no way in from outside, as a real cluster has none: only daemons make requests. So
 * some daemons, the speakers, look every few microseconds whether they have been told something.
 * All that any daemon asks, hears and sees goes into a history that the checker can judge; for
 * that, the bytes an operation stores are its tag (layout.h). */
#pragma once

#include "sim/history.h"
#include "sim/world.h"

struct chorus;

struct chorus_config {
    struct limits limits;
    struct layout layout;
    uint64_t poll_ns;
    const struct nodeset *speakers; /* copied */
};

/* Something that was told to a speaker. */
struct chorus_op {
    uint32_t node;
    struct primitive request;
    struct nodeset set;
    uint64_t *set_storage;
    bool closing;
    bool asked;
    bool answered;
    uint64_t asked_ns;
    uint64_t unknown_ns; /* when it heard "unknown" for the time being, or 0 */
    uint64_t answered_ns;
    struct completion completion;
};

struct chorus *chorus_new(const struct chorus_config *config);
void chorus_free(struct chorus *c);

/* For the world's configuration; the context is the chorus. */
struct machine chorus_daemon(void *context, uint32_t node, struct globals globals);
void chorus_observe(void *context, struct world *w, uint32_t node);

/* To be called before the world's own. */
void chorus_crash(struct chorus *c, uint32_t node, uint64_t now);

/* Tells a speaker to make a request. The set is copied; of a body only the length counts, and a
 * value to write is filled in. Returns the operation's number. */
uint32_t chorus_say(struct chorus *c, uint32_t node, const struct primitive *request);
struct chorus_op *chorus_op(const struct chorus *c, uint32_t number);

/* As the root's daemon has heard: how many nodes are up, itself included, and when a node went. */
uint32_t chorus_up(const struct chorus *c);
uint64_t chorus_down_ns(const struct chorus *c, uint32_t node); /* 0 if it did not */
uint64_t chorus_joined_ns(const struct chorus *c, uint32_t node);

const struct history *chorus_history(const struct chorus *c);
