/* SPDX-License-Identifier: MIT */
/* A simulated cluster that a command tells a story with: act, wait, print, check.
 *
 * Every line carries the virtual time. Checks are counted; a story that ends has a verdict of its
 * own and the independent checker's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/teller.h"
#include "sim/chorus.h"
#include "sim/network.h"

struct story {
    struct world *world;
    struct chorus *chorus;
    struct prim_config prim;
    struct layout layout;
    const struct network *network;
    uint32_t nodes;
    uint32_t root;
    struct nodeset all; /* compute nodes and the root */
    struct nodeset set; /* scratch for the teller */
    uint64_t *storage;
    struct teller teller;
};

/* A cluster of that many nodes, all powered off. The speakers are nodes that requests can be told
 * to; the root always is one. False if there is no memory. */
bool story_begin(struct story *s, uint32_t nodes, const uint32_t *speakers, uint32_t count,
                 FILE *out);
void story_end(struct story *s);

/* A line of the story, and one that says what was checked and whether it holds. */
__attribute__((format(printf, 2, 3))) void story_tell(struct story *s, const char *format, ...);
__attribute__((format(printf, 3, 4))) bool story_check(struct story *s, bool holds,
                                                       const char *format, ...);

/* Lets time pass: for so long, or until it holds (false if it does not within the limit). */
void story_pass(struct story *s, uint64_t ns);
bool story_until(struct story *s, uint64_t limit_ns, bool (*holds)(struct story *s, uint32_t what),
                 uint32_t what);

/* Makes a request and waits for its answer. */
struct primitive story_request(const struct story *s, enum primitive_kind kind);
struct chorus_op *story_ask(struct story *s, uint32_t node, const struct primitive *request);
struct chorus_op *story_await(struct story *s, uint32_t number);

void story_crash(struct story *s, uint32_t node);
uint32_t story_parent(const struct story *s, uint32_t node); /* NO_NODE if it has none now */
uint64_t story_variable(const struct story *s, uint32_t node, uint32_t variable);

/* Microseconds from the request to the answer. */
uint64_t story_us(const struct chorus_op *op);
