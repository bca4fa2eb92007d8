/* SPDX-License-Identifier: MIT */
/* The process of a node's manager: see node.h. */
#include "os/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "nm/nm.h"
#include "os/life.h"

/* Runs on a node at once, those that are over and not forgotten included. */
enum { RUNS_MAX = 256 };

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    const struct node_config *c = context;
    struct nm_config config = {
        .limits = c->prim.limits, .self = node, .runs = RUNS_MAX, .lease_ns = c->lease_ns};
    struct arena arena;
    size_t bytes = nm_bytes(&config);
    void *at = calloc(1, bytes); /* pages that are never touched cost nothing */
    (void)globals;
    if (at == NULL)
        _exit(1);
    snprintf(config.prefix, sizeof config.prefix, "%s", c->prefix);
    arena_init(&arena, at, bytes);
    return nm_machine(nm_new(&config, &arena));
}

_Noreturn void node_live(struct node_config *c) {
    char folder[16];
    int error = 0;
    snprintf(folder, sizeof folder, "n%" PRIu32, c->self);
    struct life_config config = {.prim = c->prim,
                                 .self = c->self,
                                 .book = c->book,
                                 .listener = c->listener,
                                 .launcher = &c->launcher,
                                 .key = {c->key[0], c->key[1]},
                                 .folder = folder,
                                 .daemon = make_daemon,
                                 .context = c};
    struct life *l = life_new(&config, &error);
    if (l == NULL)
        _exit(1);
    life_run(l);
    _exit(0);
}
