/* SPDX-License-Identifier: MIT */
/* What the files of the simulated world share, and nobody else sees.
 *
 * Randomness comes from streams with one use each, so a fault does not change the jitter of what
 * came before it. */
#pragma once

#include "base/assert.h"
#include "base/hash.h"
#include "base/random.h"
#include "sim/clock.h"
#include "sim/cores.h"
#include "sim/event.h"
#include "sim/frame.h"
#include "sim/link.h"
#include "sim/node.h"
#include "sim/pool.h"
#include "sim/region.h"
#include "sim/sent.h"
#include "sim/stamp.h"
#include "sim/trunks.h"
#include "sim/timer.h"
#include "sim/world.h"

struct world {
    struct world_config config;
    uint64_t now;
    struct clock clock;
    struct pool pool;
    struct node *nodes;
    uint32_t node_count;   /* bodies included */
    uint32_t universe;     /* and without them */
    uint32_t first_mover;  /* launchers come before */
    uint32_t first_client; /* movers come before */
    uint32_t acting;       /* the seat that was last given an epoch */
    uint32_t epoch;        /* the highest any root was given; durable */
    uint64_t slow_until;   /* when the last slow node is well again */
    struct random jitter;
    struct random faults;
    struct random lives;
    struct hash hash;
    struct world_counts counts;
    struct cores cores;
    struct trunks trunks;
    struct effects effects; /* one store serves all nodes, one step after the other */
    struct region node_array;
    struct region arenas; /* of compute nodes' machines */
    struct region seats;  /* of those that may act as root */
    struct region heaps;
    struct region effect_list;
    struct region effect_bytes;
    struct region record; /* room to encode an input in */
};
