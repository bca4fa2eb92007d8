/* SPDX-License-Identifier: MIT */
/* The launch of a program as a formula: how long it takes on a network that is not here.
 *
 * The STORM paper (section 4.4) adds up three parts (equations 1 and 7):
 *
 *     launch = image / min(host, broadcast) + T_exec + T_timeslice
 *
 * On its network, QsNet, switches multicast packets of 320 bytes, and the next one waits until the
 * acknowledgement of all nodes is back. So the broadcast depends on cables and switches only
 * (equations 3 to 6). Other networks have no such thing: there the image goes down software trees in
 * chunks, and so does the command to start, whose answers come back up. With
 *
 *     s = chunk / link + message        what a node needs to send a chunk to one other
 *
 *     tree of arity K:  (chunks - 1) * max(K s, chunk / host) + levels * (K s + latency)
 *     pair of trees:    (chunks - 1) * max(s, chunk / host) + levels * (2 s + latency)
 *     command:          2 * levels of a tree of arity 8 * (latency + 8 * message)
 *
 * A pair is two binary trees with half of the chunks each; who passes on in one only receives in the
 * other, so nobody sends more than it receives. A chain is a tree of arity 1. On every level the node
 * counts that is served last. What a protocol adds (agreement, grants, receiving) is left out: that is
 * for the simulator.
 *
 * Whole numbers only: the same on every machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    ANALYTIC_NODES_MAX = 1000000,
    ANALYTIC_ARITY_MAX = 1024,
    ANALYTIC_ARITY_TRIED = 16,   /* the widest tree that is tried where none is wished for */
    ANALYTIC_COMMAND_ARITY = 8,  /* of the primitives' tree */
    ANALYTIC_CHUNK_BYTES = 65536 /* the simulator's bulk chunk, too */
};
#define ANALYTIC_IMAGE_MAX_BYTES ((uint64_t)1 << 40)
#define ANALYTIC_LAMBDA_MAX_NS   ((uint64_t)3600 * 1000 * 1000 * 1000)
#define ANALYTIC_NO_LIMIT        UINT64_MAX /* a host that is never the bottleneck */

/* A kind of network, and of the hosts on it; the numbers are round, except for the paper's. */
struct analytic_network {
    const char *name;
    const char *words; /* what it stands for */
    bool hardware;     /* its switches broadcast: no trees, and the next three are not used */
    uint64_t link_bytes_per_s;
    uint64_t latency_ns;
    uint64_t message_ns; /* of a processor, for one message */
    uint64_t host_bytes_per_s;
    uint64_t exec_ns;
    uint64_t timeslice_ns;
};

/* The networks there are, the paper's first; NULL beyond the last. */
const struct analytic_network *analytic_at(uint32_t index);
const struct analytic_network *analytic_find(const char *name); /* NULL if there is none */

/* ---- QsNet ---- */

/* Equation 3: what reaches every node, in bytes a second. */
uint64_t analytic_qsnet_rate(uint64_t cable_mm, uint32_t switches);
/* Equation 4: the diagonal of a square room with a square metre for every node. */
uint64_t analytic_diameter_mm(uint32_t nodes);
/* Equation 5 rounded up, and at least one. */
uint32_t analytic_switches(uint32_t nodes);

/* ---- a launch ---- */

enum analytic_way { ANALYTIC_HARDWARE, ANALYTIC_TREE, ANALYTIC_PAIR };

struct analytic_launch {
    enum analytic_way way;
    uint32_t arity;            /* of a tree */
    uint32_t levels;           /* of trees */
    uint64_t rate_bytes_per_s; /* once the first chunk is through */
    bool host_bound;           /* the network would be faster */
    uint64_t transfer_ns;
    uint64_t command_ns; /* 0 where T_exec has it */
    uint64_t exec_ns;
    uint64_t timeslice_ns;
    uint64_t launch_ns; /* the sum */
};

/* Of an image that is not empty on 1 to ANALYTIC_NODES_MAX nodes. Arity 0: the way that takes the
 * least time; hardware that broadcasts has no arity. */
struct analytic_launch analytic_launch(const struct analytic_network *n, uint32_t nodes,
                                       uint64_t image_bytes, uint32_t arity);

/* The transfer alone, down software trees of this arity or, with 0, a pair of binary ones. */
uint64_t analytic_transfer_ns(const struct analytic_network *n, uint32_t nodes,
                              uint64_t image_bytes, uint32_t arity);

/* ---- a launcher that starts programs down a tree of remote executions ----
 *
 * The cost model of the paper on such a launcher; lambda is the time of one remote execution. */

/* lambda * A * log_A(nodes). A chain (arity 1), which that leaves open: lambda * nodes. */
uint64_t analytic_kary_ns(uint64_t lambda_ns, uint32_t arity, uint32_t nodes);
/* lambda * log_2(nodes). */
uint64_t analytic_binomial_ns(uint64_t lambda_ns, uint32_t nodes);
