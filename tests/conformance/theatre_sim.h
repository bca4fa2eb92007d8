/* SPDX-License-Identifier: MIT */
/* The simulated theatre: all nodes in this process, in virtual time.
 *
 * Each seed draws another jitter of the network and another rhythm in which nodes take commands.
 * A script that gives another history then depends on timing and is not determined. */
#pragma once

#include "conformance/theatre.h"
#include "sim/world.h"

#define SIM_PERIOD (20 * NS_PER_MS)
#define SIM_NEVER  ((uint64_t)1 << 62)

struct sim_theatre {
    struct stage *stage;
    struct world *world;
};

static inline uint8_t *sim_source(void *context, uint32_t node, uint32_t buffer, uint64_t bytes) {
    struct sim_theatre *t = context;
    return world_buffer(t->world, node, buffer, bytes);
}

static inline void *sim_open(const struct script *script, uint64_t seed) {
    struct sim_theatre *t = calloc(1, sizeof *t);
    ASSERT(t != NULL);
    t->stage = stage_new(script, SIM_PERIOD);
    t->stage->source = sim_source;
    t->stage->context = t;
    t->stage->poll_ns = (100 + 37 * (seed % 4)) * NS_PER_US;
    struct world_config c = {
        .seed = seed, .daemon = part_machine, .context = t->stage, .prim = t->stage->prim};
    c.link = (struct link_model){.latency_ns = 20 * NS_PER_US,
                                 .jitter_ns = seed % 5 * 40 * NS_PER_US,
                                 .bytes_per_s = 1250000000,
                                 .cpu_receive_ns = 2 * NS_PER_US,
                                 .cpu_send_ns = 1 * NS_PER_US,
                                 .connect_ns = 60 * NS_PER_US,
                                 .durable_ns = 50 * NS_PER_US};
    t->world = world_new(&c);
    ASSERT(t->world != NULL);
    return t;
}

static inline void sim_close(void *self) {
    struct sim_theatre *t = self;
    world_free(t->world);
    stage_free(t->stage);
    free(t);
}

static inline struct stage *sim_stage(void *self) {
    return ((struct sim_theatre *)self)->stage;
}

static inline void sim_boot(void *self, uint32_t node) {
    struct sim_theatre *t = self;
    world_boot(t->world, node, node == script_root(t->stage->script));
}

static inline void sim_kill(void *self, uint32_t node) {
    world_crash(((struct sim_theatre *)self)->world, node);
}

static inline void sim_stop(void *self, uint32_t node) {
    world_pause(((struct sim_theatre *)self)->world, node, SIM_NEVER);
}

static inline void sim_resume(void *self, uint32_t node) {
    world_resume(((struct sim_theatre *)self)->world, node);
}

/* Nodes look by themselves. */
static inline void sim_poke(void *self, uint32_t node) {
    (void)self;
    (void)node;
}

static inline bool sim_wait(void *self, bool (*condition)(void *context), void *context,
                            uint64_t ns) {
    struct sim_theatre *t = self;
    uint64_t end = world_now(t->world) + ns;
    while (!condition(context)) {
        uint32_t bell = t->stage->bell;
        while (bell == t->stage->bell && world_now(t->world) < end)
            world_step(t->world);
        if (world_now(t->world) >= end)
            return condition(context);
    }
    return true;
}

static inline const uint8_t *sim_heap(void *self, uint32_t node) {
    return world_heap(((struct sim_theatre *)self)->world, node);
}

static const struct theatre theatre_sim = {
    .name = "simulator",
    .open = sim_open,
    .close = sim_close,
    .stage = sim_stage,
    .boot = sim_boot,
    .kill = sim_kill,
    .stop = sim_stop,
    .resume = sim_resume,
    .poke = sim_poke,
    .wait = sim_wait,
    .heap = sim_heap,
};
