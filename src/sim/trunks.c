/* SPDX-License-Identifier: MIT */
/* Links between switches: see trunks.h. */
#include "sim/trunks.h"

#include "base/units.h"
#include "sim/inside.h"

static uint32_t switch_of(const struct world *w, uint32_t node) {
    uint32_t nodes = w->config.prim.limits.nodes;
    if (node >= w->universe) /* launchers, movers, then clients */
        node = node >= w->first_client ? nodes : (node - w->universe) % nodes;
    return node < nodes ? w->config.switches[node] : 0;
}

uint64_t trunks_pass(struct world *w, uint32_t from, uint32_t to, const struct frame *f) {
    uint64_t last = f->sent_at, rate = w->config.between_bytes_per_s;
    if (w->config.switches == NULL || rate == 0)
        return last;
    uint32_t at = switch_of(w, from), goal = switch_of(w, to);
    ASSERT(at < SWITCHES_MAX && goal < SWITCHES_MAX);
    uint64_t own = w->config.link.bytes_per_s, bytes = frame_bytes(f);
    uint64_t first = own == 0 ? last : last - bytes * NS_PER_S / own;
    uint64_t takes = bytes * NS_PER_S / rate;
    while (at != goal) {
        bool up = at < goal;
        uint64_t *free_at = &w->trunks.free_at[up ? at : at - 1][up ? 0 : 1][f->lane];
        first = *free_at > first ? *free_at : first;
        *free_at = first + takes;
        last = *free_at > last ? *free_at : last;
        w->trunks.crossed_bytes += bytes;
        at = up ? at + 1 : at - 1;
    }
    return last;
}
