/* SPDX-License-Identifier: MIT */
/* The runs of a node. There are few at a time: one for each processor, and those just over. */
#include <string.h>

#include "nm/inside.h"
#include "nm/nm.h"

struct run *run_find(struct nm *n, uint64_t run) {
    RUNS_EACH (r, n) {
        if (r->run == run)
            return r;
    }
    return NULL;
}

static struct run *free_run(struct nm *n) {
    for (uint32_t i = 0; i < n->run_end; i++)
        if (n->runs[i].run == 0)
            return &n->runs[i];
    return n->run_end < n->config.runs ? &n->runs[n->run_end++] : NULL;
}

struct run *run_add(struct nm *n, uint64_t run) {
    struct run *r = free_run(n);
    if (r == NULL)
        return NULL;
    *r = (struct run){.run = run,
                      .setup = r->setup,
                      .endings = r->endings,
                      .set = r->set,
                      .told = r->told,
                      .clean = r->clean};
    nodeset_clear(&r->set);
    nodeset_clear(&r->told);
    nodeset_clear(&r->clean);
    return r;
}

void run_drop(struct nm *n, struct run *r) {
    if (r->handed)
        keeper_drop(n, r->run);
    r->run = 0;
    while (n->run_end > 0 && n->runs[n->run_end - 1].run == 0)
        n->run_end--;
}

void run_over(struct nm *n, struct run *r, const struct ending *e) {
    if (r->over)
        return;
    owner_measured(n, r, &e->usage);
    r->over = true;
    r->ending = *e;
    r->ending.node = n->config.self;
    usage_place(&r->ending.usage, n->config.self);
    ends_own(n, r);
}
