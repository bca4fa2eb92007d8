/* SPDX-License-Identifier: MIT */
/* One file to many nodes in the simulated world, without faults: how long it takes.
 *
 * The movers are the real ones, and so are the primitives that the order goes by and that tell when it is over
 * (sim/foreman.h). A node passes a piece on when it has all of it, and has judged and written it. All times are
 * virtual: the same settings give the same numbers on every machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "rm/spread.h"
#include "sim/world.h"

enum { DELIVERY_SWITCHES_MAX = 64 };

/* How nodes of several switches are numbered, and whether the plan knows of them. */
enum delivery_order {
    DELIVERY_ALONG,
    DELIVERY_ACROSS,
    DELIVERY_AWARE /* across, too */,
    DELIVERY_ORDERS
};
const char *delivery_order_name(enum delivery_order order);
bool delivery_order_parse(const char *name, enum delivery_order *ret);

struct delivery_config {
    struct link_model link;
    uint64_t bytes;
    uint32_t nodes;
    struct spread spread;      /* its shape and arity; AUTO: what is predicted to be the fastest */
    uint32_t piece_bytes;      /* about; 0: the same */
    uint32_t slots;            /* 0: the usual */
    bool even;                 /* all pieces of one length; otherwise cut as random bytes are */
    uint64_t host_bytes_per_s; /* at which pieces are judged and written; 0: no limit */
    uint64_t commit_ns;        /* of the files, when all pieces are there */
    bool start;                /* and then something is started, */
    uint64_t exec_ns;          /* which takes so long */
    /* Switches in a row with so many nodes each, and the rate of the links between them; 0: one for all. */
    uint32_t per_switch;
    uint64_t between_bytes_per_s;
    enum delivery_order order;
    uint64_t seed;
};

/* Everything but size and number of nodes. */
struct delivery_config delivery_usual(const struct link_model *link);

/* Times are from when the order was asked for. */
struct delivery {
    struct spread spread;
    uint32_t piece_bytes, slots, pieces;
    uint64_t heard_ns;  /* until the last node had the order */
    uint64_t bytes_ns;  /* until the last had all bytes */
    uint64_t known_ns;  /* until the manager knew that all have the file */
    uint64_t ended_ns;  /* until it knew that what it started has ended everywhere */
    uint64_t spread_ns; /* of the pieces alone: from the last node's order to the last byte */
    uint64_t
        bound_ns; /* the least: a latency for each doubling of nodes, and the bytes through one link */
    uint64_t predicted_ns;  /* by rm/spread.h, of the shape that was taken */
    uint64_t crossed_bytes; /* between switches */
    uint64_t again;         /* pieces that came and were there */
    uint64_t read;          /* by those who pass on: they had left the slots */
    uint64_t events, steps, messages;
};

/* 0; -ENOMEM; -EINVAL: more pieces than there may be; -EIO: somebody gave it up, as movers do with what comes slower than
 * 1 MiB/s; -ETIME: it did not come to an end, which is a bug. */
int delivery_run(const struct delivery_config *c, struct delivery *ret);
