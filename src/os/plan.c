/* SPDX-License-Identifier: MIT */
/* What all daemons of a cluster must agree on: see plan.h. */
#include "os/plan.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/units.h"

enum { ARITY = 8, ARITY_MAX = 1024 };

/* Every change of view goes to all: when many nodes come one after the other, the root waits for so much
 * longer a node to take them in at once. */
#define JOIN_NS (50 * NS_PER_US)

/* Room for children that a dead neighbour has left behind. */
enum { CHILDREN_MORE = 16 };

/* Pages that nobody touches cost nothing, so the tables are as large as they could ever be needed. */
static struct limits choose_limits(const struct tree *t) {
    return (struct limits){.nodes = t->nodes,
                           .roots = 1,
                           .variables = 64,
                           .events = 8,
                           .heap_bytes = PLAN_BODY_BYTES,
                           .children = CHILDREN_MORE + (t->shape == SHAPE_KARY ? t->arity : 0),
                           .window = 64,
                           .queue = 256,
                           .outstanding = 64,
                           .body_bytes = PLAN_BODY_BYTES,
                           .standing = 8,
                           .transfers = 4,
                           .chunk_bytes = 64 * KIB,
                           .slots = 4,
                           .record_channels = 4,
                           .record_bytes = 256};
}

struct prim_config plan_prim(uint32_t nodes, struct tree tree, uint64_t period_ns) {
    struct prim_config c = {.tree = tree};
    c.tree.nodes = nodes;
    c.limits = choose_limits(&c.tree);
    prim_config_times(&c, period_ns);
    if (c.settle_ns < nodes * JOIN_NS)
        c.settle_ns = nodes * JOIN_NS;
    return c;
}

bool plan_tree(const char *text, struct tree *ret) {
    char name[16];
    uint64_t arity = ARITY;
    size_t len = strcspn(text, ":");
    if (len >= sizeof name)
        return false;
    memcpy(name, text, len);
    name[len] = '\0';
    struct tree t = {.shape = SHAPE_KARY};
    if (strcmp(name, "kary") != 0 && !shape_parse(name, &t.shape))
        return false;
    if (text[len] == ':') {
        int digits = text_scan_u64(text + len + 1, &arity);
        if (t.shape != SHAPE_KARY || digits <= 0 || text[len + 1 + (size_t)digits] != '\0')
            return false;
    }
    if (arity < 1 || arity > ARITY_MAX)
        return false;
    t.arity = (uint32_t)arity;
    *ret = t;
    return true;
}

void plan_tree_text(const struct tree *t, char out[32]) {
    if (t->shape == SHAPE_KARY)
        snprintf(out, 32, "%s:%u", shape_name(t->shape), t->arity);
    else
        snprintf(out, 32, "%s", shape_name(t->shape));
}

static struct address local(const char *kind, uint32_t number) {
    char text[32];
    struct address a;
    snprintf(text, sizeof text, "%s%u.sock", kind, number);
    int r = address_parse(&a, text);
    ASSERT(r == 0);
    return a;
}

struct address plan_address(uint32_t node, enum transport links, struct in_addr host) {
    if (links == TRANSPORT_UNIX)
        return local("unix:n", node);
    struct address a = {.len = sizeof a.in};
    a.in = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr = host,
                                .sin_port = htons((uint16_t)(PLAN_PORT_FIRST + node))};
    return a;
}

struct address plan_mover(uint32_t node, enum transport links, struct in_addr host) {
    return links == TRANSPORT_UNIX ? local("unix:f", node)
                                   : plan_address(PLAN_NODES_MAX + 1 + node, links, host);
}

void plan_fabric(enum transport links, struct in_addr host, char out[INET_ADDRSTRLEN]) {
    bool local_only = links == TRANSPORT_UNIX || ntohl(host.s_addr) >> 24 == IN_LOOPBACKNET;
    if (local_only)
        host.s_addr = htonl(INADDR_LOOPBACK);
    inet_ntop(AF_INET, &host, out, INET_ADDRSTRLEN);
}

struct address plan_near(uint32_t node) {
    return local("unix:n", node);
}

struct address plan_launcher(uint32_t node) {
    return local("seqpacket:p", node);
}

struct address plan_strobe(uint32_t node) {
    return local("unix:s", node);
}

struct in_addr plan_draw_host(void) {
    uint8_t draw[3];
    ssize_t got = getrandom(draw, sizeof draw, 0);
    ASSERT(got == sizeof draw);
    uint32_t ip =
        127U << 24 | (64U + draw[0] % 64) << 16 | (uint32_t)draw[1] << 8 | (1U + draw[2] % 254);
    return (struct in_addr){.s_addr = htonl(ip)};
}
