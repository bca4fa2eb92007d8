/* SPDX-License-Identifier: MIT */
/* What checkers may see of the node manager: whether its table of runs is in order.
 *
 * Nothing here changes anything. */
#include "nm/inside.h"

static bool twice(const struct nm *n, uint32_t place) {
    for (uint32_t i = 0; i < place; i++)
        if (n->runs[i].run == n->runs[place].run)
            return true;
    return false;
}

const char *nm_wrong(const struct nm *n) {
    for (uint32_t i = 0; i < n->config.runs; i++) {
        const struct run *r = &n->runs[i];
        if (r->run == 0)
            continue;
        if (i >= n->run_end)
            return "a run lies behind the end";
        if (twice(n, i))
            return "a run has two places";
        if (r->setup_len > n->config.limits.body_bytes)
            return "a set-up is larger than its room";
        if (r->ending_count > ENDINGS_MAX)
            return "more endings wait than there is room for";
        if (r->over && r->ending.more)
            return "a run that is over goes on";
    }
    return NULL;
}
