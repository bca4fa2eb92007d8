/* SPDX-License-Identifier: MIT */
/* A whole cluster in the simulated world: the machine manager, node managers, launchers with their model
 * kernels, and clients.
 *
 * The managers and launchers are the very machines that run on real nodes. Clients are made by whoever
 * has the hall. Everything is known by its number in the world: compute nodes, the root's seat, then
 * launchers and clients (sim/world.h). */
#pragma once

#include "mm/mm.h"
#include "nm/nm.h"
#include "pl/launcher.h"
#include "sim/deeds.h"
#include "sim/world.h"

struct hall;

struct hall_config {
    uint32_t nodes, pes;
    uint32_t clients;
    struct tree tree; /* its nodes as above */
    struct link_model link;
    uint64_t period_ns; /* of the heartbeat */
    uint64_t seed;
    uint32_t fail_permille; /* of starts of processes */
    uint64_t lease_ns;      /* 0: the usual */
    /* Who starts when, as in mm_config; and of 1,000 strobes past the tree how many are lost. */
    const struct storm_policy *policy;
    uint32_t slots;
    uint64_t quantum_ns;
    uint32_t lost_permille; /* 1000: there is no such way */
    bool owners;            /* some nodes have one, who comes and goes */
    /* The machine of the k'th client, for each of its lives. */
    struct machine (*client)(void *context, struct hall *h, uint32_t k);
    /* After every step of anybody; `who` is the launcher's number if it was a process of its. May be NULL. */
    void (*observe)(void *context, struct hall *h, uint32_t who);
    /* In the midst of a step: processes of this node were started, or let go. May be NULL. */
    void (*woke)(void *context, struct hall *h, uint32_t node);
    void *context;
};

/* Everything is off. NULL if there is no room. */
struct hall *hall_new(const struct hall_config *c);
void hall_free(struct hall *h);

struct world *hall_world(const struct hall *h);
uint64_t hall_now(const struct hall *h);
uint32_t hall_root(const struct hall *h);
uint32_t hall_launcher(const struct hall *h, uint32_t node);
uint32_t hall_client(const struct hall *h, uint32_t k);

/* Nodes differ in speed, as they report it: 1 to HALL_SPEEDS. */
enum { HALL_SPEEDS = 4 };
static inline uint32_t hall_speed(uint32_t node) {
    return node % HALL_SPEEDS + 1;
}

/* Powers on whoever is off. */
void hall_boot(struct hall *h, uint32_t who);
void hall_boot_all(struct hall *h);
void hall_crash(struct hall *h, uint32_t who);

/* These numbers are taken from now on, the others vacant; until then all are taken. */
void hall_roster(struct hall *h, const struct nodeset *taken);

/* The next thing that happens, processes included; false if nothing will by then. */
bool hall_step(struct hall *h, uint64_t until);
void hall_run_until(struct hall *h, uint64_t time);

/* Somebody else kills a process of a node. */
bool hall_kill(struct hall *h, uint32_t node, uint32_t pick, uint32_t signal);

const struct mm *hall_mm(const struct hall *h);                /* NULL when it is off */
const struct nm *hall_nm(const struct hall *h, uint32_t node); /* the same */
const struct pl *hall_pl(const struct hall *h, uint32_t node); /* the same */
const struct sim_kernel *hall_kernel(const struct hall *h, uint32_t node);
const struct deeds *hall_deeds(const struct hall *h);
const struct mm_config *hall_mm_config(const struct hall *h);
