/* SPDX-License-Identifier: MIT */
/* What processes have used: see usage.h. */
#include "base/usage.h"

/* Nobody is named where there is nothing: then zeros add nothing. */
static void keep_larger(uint64_t *bytes, uint32_t *node, uint64_t other, uint32_t where) {
    if (other == 0 || other < *bytes || (other == *bytes && where >= *node))
        return;
    *bytes = other;
    *node = where;
}

void usage_add(struct usage *to, const struct usage *u) {
    to->user_ns += u->user_ns;
    to->system_ns += u->system_ns;
    to->read_bytes += u->read_bytes;
    to->written_bytes += u->written_bytes;
    keep_larger(&to->peak_bytes, &to->peak_node, u->peak_bytes, u->peak_node);
    keep_larger(&to->node_bytes, &to->node_node, u->node_bytes, u->node_node);
}

void usage_place(struct usage *u, uint32_t node) {
    u->peak_node = u->peak_bytes > 0 ? node : 0;
    u->node_node = u->node_bytes > 0 ? node : 0;
}

bool usage_same(const struct usage *a, const struct usage *b) {
    return a->user_ns == b->user_ns && a->system_ns == b->system_ns &&
           a->read_bytes == b->read_bytes && a->written_bytes == b->written_bytes &&
           a->peak_bytes == b->peak_bytes && a->node_bytes == b->node_bytes &&
           a->peak_node == b->peak_node && a->node_node == b->node_node;
}
