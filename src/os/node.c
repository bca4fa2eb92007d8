/* SPDX-License-Identifier: MIT */
/* The process of a node's manager: see node.h. */
#include "os/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "nm/nm.h"
#include "os/guide.h"
#include "os/life.h"
#include "os/mover_process.h"
#include "os/plan.h"

/* What a node's cache of files may take. */
#define CACHE_BYTES (4 * GIB)

/* Runs on a node at once, those that are over and not forgotten included. */
enum { RUNS_MAX = 256 };

static struct machine make_daemon(const struct node_config *c, uint32_t node,
                                  struct globals globals) {
    struct nm_config config = {.limits = c->prim.limits,
                               .self = node,
                               .runs = RUNS_MAX,
                               .roster = c->roster,
                               .report = c->report,
                               .lease_ns = c->lease_ns};
    struct arena arena;
    size_t bytes = nm_bytes(&config);
    void *at = calloc(1, bytes); /* pages that are never touched cost nothing */
    (void)globals;
    if (at == NULL)
        _exit(1);
    arena_init(&arena, at, bytes);
    return nm_machine(nm_new(&config, &arena));
}

struct node {
    struct node_config *config;
    struct mover_process mover;
};

static struct machine make(void *context, uint32_t number, struct globals globals) {
    const struct node *n = context;
    return make_daemon(n->config, number, globals);
}

static void summon(void *context, struct life *l) {
    struct node *n = context;
    mover_process_start(&n->mover, life_loop(l)); /* if not, nobody answers there */
}

static struct guide *find_guide(const struct node_config *c) {
    struct guide_config config = {.key = c->secret,
                                  .self = c->self,
                                  .nodes = c->prim.limits.nodes,
                                  .listens = true,
                                  .port = address_port(c->listener),
                                  .files_port = address_port(c->mover_listener)};
    struct guide *g = NULL;
    snprintf(config.host, sizeof config.host, "%s", c->address);
    int r = guide_new(&config, &g);
    if (r == 0 && !guide_ready(g)) /* and the movers that we fork need not make it again */
        r = -ENOMEM;
    if (r < 0) {
        fprintf(stderr, "n%" PRIu32 ": its key: %s\n", c->self, strerror(-r));
        _exit(1);
    }
    return g;
}

_Noreturn void node_live(struct node_config *c) {
    char folder[16];
    int error = 0;
    struct node n = {.config = c};
    struct mover_process_config mover = {.asks = c->asks,
                                         .top = c->alone ? "/" : NULL,
                                         .secret = c->secret,
                                         .far_listener = c->mover_listener,
                                         .manager = c->book[c->prim.limits.nodes],
                                         .self = c->self,
                                         .nodes = c->prim.limits.nodes,
                                         .links = c->links,
                                         .host = c->host,
                                         .key = {c->key[0], c->key[1]},
                                         .cache_bytes = CACHE_BYTES};
    struct address files = plan_mover(c->self, c->asks ? TRANSPORT_UNIX : c->links, c->host);
    mover_process_init(&n.mover, &mover);
    snprintf(folder, sizeof folder, "n%" PRIu32, c->self);
    struct life_config config = {.prim = c->prim,
                                 .self = c->self,
                                 .book = c->book,
                                 .listener = c->listener,
                                 .launcher = &c->launcher,
                                 .mover = &files,
                                 .summon = summon,
                                 .guide = c->asks ? find_guide(c) : NULL,
                                 .key = {c->key[0], c->key[1]},
                                 .folder = folder,
                                 .daemon = make,
                                 .context = &n};
    struct life *l = life_new(&config, &error);
    if (l == NULL)
        _exit(1);
    life_run(l);
    _exit(0);
}
