/* SPDX-License-Identifier: MIT */
/* Switches of a transfer's receivers: see switches.h. */
#include "rm/switches.h"

size_t switches_encode(const struct nodeset *receivers, const uint32_t *of_node, uint32_t nodes,
                       struct room out) {
    size_t len = 0;
    uint32_t run = 0, last = 0;
    bool known = false;
    NODESET_EACH (n, receivers) {
        uint32_t here = n < nodes ? of_node[n] : 0;
        known = known || here != 0;
        if (run == 0 || here != last) {
            if (len + SWITCH_RUN_BYTES > out.len)
                return 0;
            len += SWITCH_RUN_BYTES;
            run = 0;
        }
        last = here;
        store_le32(out.at + len - SWITCH_RUN_BYTES, ++run);
        store_le32(out.at + len - SWITCH_RUN_BYTES / 2, here);
    }
    return known ? len : 0;
}

bool switches_decode(struct bytes runs, uint32_t *ret, uint32_t receivers) {
    uint32_t at = 0;
    for (size_t i = 0; i + SWITCH_RUN_BYTES <= runs.len; i += SWITCH_RUN_BYTES) {
        uint32_t count = load_le32(runs.at + i);
        uint32_t here = load_le32(runs.at + i + SWITCH_RUN_BYTES / 2);
        if (count == 0 || count > receivers - at)
            return false;
        for (uint32_t k = 0; k < count; k++)
            ret[at++] = here;
    }
    return at == receivers && runs.len % SWITCH_RUN_BYTES == 0;
}

static uint32_t switch_at(const uint32_t *of_receiver, uint32_t source_switch,
                          const uint32_t *order, uint32_t position) {
    return position == 0 ? source_switch : of_receiver[order[position - 1]];
}

uint32_t switches_crossed(const struct spread *s, const uint32_t *of_receiver,
                          uint32_t source_switch, const uint32_t *order) {
    uint32_t crossed = 0;
    for (uint32_t tree = 0; tree < spread_trees(s); tree++)
        for (uint32_t at = 1; at <= s->receivers; at++)
            crossed += switch_at(of_receiver, source_switch, order, at) !=
                       switch_at(of_receiver, source_switch, order, spread_parent(s, tree, at));
    return crossed;
}
