/* SPDX-License-Identifier: MIT */
/* The launch of a program as a formula: see analytic.h. */
#include "sim/analytic.h"

#include <string.h>

#include "base/assert.h"
#include "base/log2.h"
#include "base/units.h"

__extension__ typedef unsigned __int128 uint128;

#define MB_PER_S ((uint64_t)1000 * 1000)
#define US       NS_PER_US
#define MS       NS_PER_MS

/* A copy into a file that is in memory, by one processor. */
#define HOST_TODAY (5000 * MB_PER_S)
/* A process starts, ends, and its parent has been told. */
#define EXEC_TODAY (1 * MS)

/* Where it is not the paper's, daemons act when a message comes: they wait for no time slice. */
static const struct analytic_network networks[] = {
    {.name = "qsnet",
     .words = "QsNet, broadcasts in hardware; the STORM paper's",
     .hardware = true,
     .host_bytes_per_s = 131 * MIB,
     .exec_ns = 10 * MS,
     .timeslice_ns = 8500 * US}, /* what is left of the 110 ms that the paper measured */
    {.name = "1gbe",
     .words = "1 Gbit/s Ethernet, TCP through the kernel",
     .link_bytes_per_s = 125 * MB_PER_S,
     .latency_ns = 30 * US,
     .message_ns = 5 * US,
     .host_bytes_per_s = HOST_TODAY,
     .exec_ns = EXEC_TODAY},
    {.name = "10gbe",
     .words = "10 Gbit/s Ethernet, TCP through the kernel",
     .link_bytes_per_s = 1250 * MB_PER_S,
     .latency_ns = 20 * US,
     .message_ns = 5 * US,
     .host_bytes_per_s = HOST_TODAY,
     .exec_ns = EXEC_TODAY},
    {.name = "100gbe",
     .words = "100 Gbit/s Ethernet, TCP through the kernel",
     .link_bytes_per_s = 12500 * MB_PER_S,
     .latency_ns = 10 * US,
     .message_ns = 5 * US,
     .host_bytes_per_s = HOST_TODAY,
     .exec_ns = EXEC_TODAY},
    {.name = "400gbe",
     .words = "400 Gbit/s Ethernet, TCP through the kernel",
     .link_bytes_per_s = 50000 * MB_PER_S,
     .latency_ns = 10 * US,
     .message_ns = 5 * US,
     .host_bytes_per_s = HOST_TODAY,
     .exec_ns = EXEC_TODAY},
    {.name = "ib-hdr",
     .words = "InfiniBand HDR, 200 Gbit/s, messages from user space",
     .link_bytes_per_s = 25000 * MB_PER_S,
     .latency_ns = 1500,
     .message_ns = 500,
     .host_bytes_per_s = HOST_TODAY,
     .exec_ns = EXEC_TODAY},
    {.name = "ib-ndr",
     .words = "InfiniBand NDR, 400 Gbit/s, messages from user space",
     .link_bytes_per_s = 50000 * MB_PER_S,
     .latency_ns = 1500,
     .message_ns = 500,
     .host_bytes_per_s = HOST_TODAY,
     .exec_ns = EXEC_TODAY},
};

const struct analytic_network *analytic_at(uint32_t index) {
    return index < sizeof networks / sizeof *networks ? &networks[index] : NULL;
}

const struct analytic_network *analytic_find(const char *name) {
    const struct analytic_network *n;
    for (uint32_t i = 0; (n = analytic_at(i)) != NULL; i++)
        if (strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Rounded to the nearest nanosecond. */
static uint64_t time_ns(uint64_t bytes, uint64_t bytes_per_s) {
    return (uint64_t)(((uint128)bytes * NS_PER_S + bytes_per_s / 2) / bytes_per_s);
}

/* ---- QsNet: table 2 of the paper, in femtoseconds ---- */

#define FS_PER_S     ((uint64_t)1000 * 1000 * NS_PER_S)
#define FS_PER_NS    ((uint64_t)1000 * 1000)
#define PACKET_BYTES 320
#define PACKET_FS    (953 * FS_PER_NS)
#define BASE_FS      (580 * FS_PER_NS)
#define CABLE_FS_MM  ((uint64_t)3940) /* of a millimetre: 3.94 ns a metre */
#define SWITCH_FS    (73 * FS_PER_NS)

uint64_t analytic_qsnet_rate(uint64_t cable_mm, uint32_t switches) {
    uint64_t acknowledged_fs = BASE_FS + 2 * cable_mm * CABLE_FS_MM + switches * SWITCH_FS;
    return PACKET_BYTES * FS_PER_S / most(PACKET_FS, acknowledged_fs);
}

/* Rounded down, bit by bit from the highest. */
static uint64_t square_root(uint64_t value) {
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit >>= 1)
        if ((root + bit) * (root + bit) <= value)
            root += bit;
    return root;
}

uint64_t analytic_diameter_mm(uint32_t nodes) {
    enum { MM2_PER_M2 = 1000 * 1000 };
    return square_root((uint64_t)2 * nodes * MM2_PER_M2);
}

/* Twice the logarithm to base four is the one to base two. */
uint32_t analytic_switches(uint32_t nodes) {
    uint32_t doublings = 0;
    while (((uint64_t)1 << doublings) < nodes)
        doublings++;
    return doublings > 2 ? doublings - 1 : 1;
}

static struct analytic_launch by_hardware(const struct analytic_network *n, uint32_t nodes,
                                          uint64_t image_bytes) {
    uint64_t rate = analytic_qsnet_rate(analytic_diameter_mm(nodes), analytic_switches(nodes));
    struct analytic_launch l = {.way = ANALYTIC_HARDWARE,
                                .rate_bytes_per_s = least(rate, n->host_bytes_per_s),
                                .host_bound = n->host_bytes_per_s < rate};
    l.transfer_ns = time_ns(image_bytes, l.rate_bytes_per_s);
    return l;
}

/* ---- software trees ---- */

/* Levels below the source that hold all nodes. */
static uint32_t count_levels(uint32_t arity, uint32_t nodes) {
    if (arity == 1)
        return nodes;
    uint32_t levels = 0;
    uint64_t held = 0;
    for (uint64_t width = arity; held < nodes; width *= arity, levels++)
        held += width;
    return levels;
}

/* `sends`: of each chunk, by a node in the midst of the transfer; `children`: before the last child
 * has a chunk. They differ only in a pair of trees. */
static struct analytic_launch by_tree(const struct analytic_network *n, uint32_t nodes,
                                      uint64_t image_bytes, uint32_t sends, uint32_t children) {
    uint64_t chunks = (image_bytes - 1) / ANALYTIC_CHUNK_BYTES + 1;
    uint64_t chunk_bytes = (image_bytes - 1) / chunks + 1;
    uint64_t send_ns = time_ns(chunk_bytes, n->link_bytes_per_s) + n->message_ns;
    uint64_t host_ns = time_ns(chunk_bytes, n->host_bytes_per_s);
    uint64_t step_ns = most(most(sends * send_ns, host_ns), 1);
    struct analytic_launch l = {.way = sends == children ? ANALYTIC_TREE : ANALYTIC_PAIR,
                                .arity = children,
                                .levels = count_levels(children, nodes),
                                .rate_bytes_per_s = chunk_bytes * NS_PER_S / step_ns,
                                .host_bound = host_ns > sends * send_ns};
    l.transfer_ns = (chunks - 1) * step_ns + l.levels * (children * send_ns + n->latency_ns);
    return l;
}

/* Of the shapes that nobody has wished for. */
static struct analytic_launch by_best(const struct analytic_network *n, uint32_t nodes,
                                      uint64_t image_bytes) {
    struct analytic_launch best = by_tree(n, nodes, image_bytes, 1, 2);
    for (uint32_t arity = 1; arity <= ANALYTIC_ARITY_TRIED; arity++) {
        struct analytic_launch l = by_tree(n, nodes, image_bytes, arity, arity);
        if (l.transfer_ns < best.transfer_ns)
            best = l;
    }
    return best;
}

uint64_t analytic_transfer_ns(const struct analytic_network *n, uint32_t nodes,
                              uint64_t image_bytes, uint32_t arity) {
    ASSERT(!n->hardware && nodes >= 1 && arity <= ANALYTIC_ARITY_MAX && image_bytes >= 1);
    uint32_t sends = arity == 0 ? 1 : arity, children = arity == 0 ? 2 : arity;
    return by_tree(n, nodes, image_bytes, sends, children).transfer_ns;
}

static uint64_t command_ns(const struct analytic_network *n, uint32_t nodes) {
    return (uint64_t)2 * count_levels(ANALYTIC_COMMAND_ARITY, nodes) *
           (n->latency_ns + ANALYTIC_COMMAND_ARITY * n->message_ns);
}

struct analytic_launch analytic_launch(const struct analytic_network *n, uint32_t nodes,
                                       uint64_t image_bytes, uint32_t arity) {
    ASSERT(nodes >= 1 && nodes <= ANALYTIC_NODES_MAX);
    ASSERT(image_bytes >= 1 && image_bytes <= ANALYTIC_IMAGE_MAX_BYTES);
    ASSERT(arity <= ANALYTIC_ARITY_MAX && !(n->hardware && arity > 0));
    struct analytic_launch l = n->hardware ? by_hardware(n, nodes, image_bytes)
                               : arity > 0 ? by_tree(n, nodes, image_bytes, arity, arity)
                                           : by_best(n, nodes, image_bytes);
    l.command_ns = n->hardware ? 0 : command_ns(n, nodes);
    l.exec_ns = n->exec_ns;
    l.timeslice_ns = n->timeslice_ns;
    l.launch_ns = l.transfer_ns + l.command_ns + l.exec_ns + l.timeslice_ns;
    return l;
}

/* ---- trees of remote executions ---- */

uint64_t analytic_kary_ns(uint64_t lambda_ns, uint32_t arity, uint32_t nodes) {
    ASSERT(nodes >= 1 && arity >= 1 && lambda_ns <= ANALYTIC_LAMBDA_MAX_NS);
    if (arity == 1)
        return lambda_ns * nodes;
    uint64_t base = log2_fixed(arity);
    return (uint64_t)(((uint128)lambda_ns * arity * log2_fixed(nodes) + base / 2) / base);
}

uint64_t analytic_binomial_ns(uint64_t lambda_ns, uint32_t nodes) {
    ASSERT(nodes >= 1 && lambda_ns <= ANALYTIC_LAMBDA_MAX_NS);
    return (uint64_t)((uint128)lambda_ns * log2_fixed(nodes) / LOG2_ONE);
}
