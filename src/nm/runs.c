/* SPDX-License-Identifier: MIT */
/* The runs of a node. There are few at a time: one for each processor, and those just over. */
#include <string.h>

#include "nm/inside.h"
#include "nm/nm.h"

struct run *run_find(struct nm *n, uint64_t run) {
    for (uint32_t i = 0; run != 0 && i < n->config.runs; i++)
        if (n->runs[i].run == run)
            return &n->runs[i];
    return NULL;
}

struct run *run_add(struct nm *n, uint64_t run) {
    for (uint32_t i = 0; i < n->config.runs; i++) {
        struct run *r = &n->runs[i];
        if (r->run != 0)
            continue;
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
    return NULL;
}

void run_drop(struct nm *n, struct run *r) {
    if (r->handed)
        keeper_command(n, r->run, VERB_DROP, 0, 0);
    r->run = 0;
}

void run_over(struct nm *n, struct run *r, const struct ending *e) {
    if (r->over)
        return;
    r->over = true;
    r->ending = *e;
    r->ending.node = n->config.self;
    ends_own(n, r);
}
