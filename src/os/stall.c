/* SPDX-License-Identifier: MIT */
/* Where the processes of a group stand: which processors they are bound to, and what their user is told of it.
 *
 * The index-th process of a node goes to the index-th place there is, in turn. What a user is to know stands in the errors of the
 * first process of the node, before anything of its own: they reach him wherever he wants them. What is a warning is said on the
 * node of rank 0 alone, which has as many processes as any. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "os/group.h"

static const char *const words[BINDS] = {"", "core", "socket", "numa node"};

/* Of a node that shares the machine's processors with none, only its own. */
static void keep_own(struct kernel *k) {
    struct cpuset own = {0};
    uint32_t index = 0;
    for (uint32_t i = 0; i < 8 * sizeof own.bits && k->config.first > 0; i++) {
        if (!cpuset_has(&k->may, i))
            continue;
        index++;
        if (index >= k->config.first && index < k->config.first + k->config.pes)
            cpuset_add(&own, i);
    }
    if (!cpuset_empty(&own))
        k->may = own;
}

/* Where nothing is kept for the system, the topology is not needed before somebody wants to be bound. */
void stall_open(struct kernel *k) {
    memcpy(k->may.bits, k->home.everywhere, sizeof k->may.bits);
    if (k->config.system_cores > 0 && topology_ask(&k->topology) == 0) {
        topology_spare(&k->topology, k->config.system_cores, &k->may);
        k->spared = memcmp(k->may.bits, k->home.everywhere, sizeof k->may.bits) != 0;
        memcpy(k->home.everywhere, k->may.bits, sizeof k->may.bits);
    }
    keep_own(k);
}

static enum bind_to bind_of(const struct group *g) {
    return g->recipe == NULL ? BIND_NONE : (enum bind_to)g->recipe->spec.bind;
}

bool stall_binds(const struct group *g) {
    return bind_of(g) != BIND_NONE;
}

static uint32_t place(const struct group *g, uint32_t index, struct cpuset *ret, uint32_t *number) {
    struct kernel *k = g->kernel;
    if (topology_ask(&k->topology) < 0)
        return 0;
    return topology_place(&k->topology, (enum topology_level)(bind_of(g) - BIND_CORE), &k->may,
                          index, ret, number);
}

bool stall_seat(const struct process *p, struct cpuset *ret) {
    struct kernel *k = p->group->kernel;
    uint32_t number;
    if (stall_binds(p->group) && place(p->group, p->index, ret, &number) > 0)
        return true;
    if (k->spared)
        memcpy(ret->bits, k->home.everywhere, sizeof ret->bits);
    return k->spared;
}

/* ---- telling ---- */

static void say(struct group *g, const char *text) {
    const struct process *p = &g->processes[0];
    int fd = p->out[1]->far >= 0 ? p->out[1]->far : p->out[0]->far;
    if (write(fd, text, strlen(text)) < 0)
        return; /* nobody hears it then */
}

/* "rank 0", "ranks 0-3", or all of them, as far as they fit, where they do not follow each other. */
static void write_ranks(const struct setup *s, struct text *out) {
    text_str(out, s->count > 1 ? "ranks " : "rank ");
    text_u64(out, s->first);
    if (s->ranks.len == 0 && s->count > 1) {
        text_char(out, '-');
        text_u64(out, s->first + s->count - 1);
    }
    for (uint32_t i = 1; s->ranks.len > 0 && i < s->count; i++) {
        text_char(out, ',');
        text_u64(out, setup_rank(s, i));
    }
}

static void say_places(struct group *g, uint32_t places) {
    char text[512], list[256];
    const struct setup *s = &g->recipe->setup;
    struct cpuset numbers = {0}, set;
    for (uint32_t i = 0, number; i < g->count && i < places; i++)
        if (place(g, i, &set, &number) > 0)
            cpuset_add(&numbers, number);
    cpuset_format(&numbers, list, sizeof list);
    char ranks[128];
    struct text t;
    text_init(&t, ranks, sizeof ranks);
    write_ranks(s, &t);
    snprintf(text, sizeof text, "storm: bind: %s on %.*s: %s%s %s%s\n", ranks,
             (int)s->node_name.len, (const char *)s->node_name.at, words[bind_of(g)],
             g->count > 1 && places > 1 ? "s" : "", list,
             g->count > places && places > 1 ? " in turn" : "");
    say(g, text);
}

static void warn(struct group *g, uint32_t places) {
    char text[256];
    const char *what = words[bind_of(g)];
    if (places == 0)
        snprintf(text, sizeof text,
                 "storm: --bind: %.*s cannot tell its %ss: %s; nothing is bound there; leave "
                 "--bind out\n",
                 (int)g->recipe->setup.node_name.len, (const char *)g->recipe->setup.node_name.at,
                 what,
                 g->kernel->topology.error < 0 ? strerror(-g->kernel->topology.error) : "none");
    else
        snprintf(text, sizeof text,
                 "storm: --bind: %u processes on a node of %u %s%s: they share %s, in turn; use "
                 "more nodes, or fewer processes\n",
                 g->count, places, what, places == 1 ? "" : "s", places == 1 ? "it" : "them");
    say(g, text);
}

void stall_tell(struct group *g) {
    struct cpuset set;
    uint32_t number, places = place(g, 0, &set, &number);
    if (g->count > places && g->recipe->setup.first == 0 &&
        (places == 0 || bind_of(g) == BIND_CORE))
        warn(g, places);
    if (places > 0 && g->recipe->spec.bind_told)
        say_places(g, places);
}
