/* SPDX-License-Identifier: MIT */
/* What checkers may see of the launcher: whether its tables add up and are within their limits.
 *
 * Nothing here changes anything. The sums are reckoned anew from the runs. */
#include "pl/inside.h"

static bool apart(const struct run *a, const struct run *b) {
    return a->process + a->count <= b->process || b->process + b->count <= a->process;
}

/* Runs before it in the table have other numbers and other processes. */
static const char *wrong_pair(const struct pl *p, const struct run *r) {
    for (const struct run *other = p->runs; other < r; other++) {
        if (other->state == RUN_FREE)
            continue;
        if (other->run == r->run)
            return "a run has two places";
        if (!apart(other, r))
            return "two runs share a process";
    }
    return NULL;
}

const char *pl_wrong(const struct pl *p) {
    uint32_t runs = 0;
    uint64_t processes = 0, setups = 0;
    RUNS_EACH (r, p) {
        const char *why = wrong_pair(p, r);
        if (why != NULL)
            return why;
        if (r->left > r->count)
            return "more processes are left than there were";
        runs++;
        processes += r->count;
        setups += r->setup_bytes;
    }
    for (uint32_t i = p->run_end; i < p->config.groups; i++)
        if (p->runs[i].state != RUN_FREE)
            return "a run lies behind the end";
    if (runs != p->run_count || processes != p->process_count || setups != p->setup_count)
        return "runs are counted wrong";
    if (processes > p->config.processes || setups > p->config.setup_bytes)
        return "there is more than there is room for";
    return NULL;
}

uint32_t pl_groups(const struct pl *p) {
    uint32_t n = 0;
    RUNS_EACH (r, p)
        n += !r->closed;
    return n;
}

bool pl_look(const struct pl *p, uint64_t run, struct pl_look *ret) {
    RUNS_EACH (r, p) {
        if (r->run != run)
            continue;
        *ret = (struct pl_look){.slots = r->slots,
                                .started = r->state == RUN_STARTED,
                                .suspended = r->suspended,
                                .killing = r->killing};
        return true;
    }
    return false;
}
