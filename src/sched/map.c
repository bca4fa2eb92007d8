/* SPDX-License-Identifier: MIT */
/* Which process is on which node: see map.h. */
#include "sched/map.h"

#include "base/assert.h"
#include "sched/size.h"

const char *map_name(enum map_kind kind) {
    static const char *const names[MAPS] = {"block", "cyclic", "list"};
    return names[kind];
}

static uint32_t listed(const struct map *m, uint32_t rank) {
    return load_le32(m->places.at + (size_t)rank * MAP_PLACE_BYTES);
}

/* From this rank on; procs: there is none. */
static uint32_t find(const struct map *m, uint32_t place, uint32_t rank) {
    while (rank < m->procs && listed(m, rank) != place)
        rank++;
    return rank;
}

bool map_good(const struct map *m) {
    if (m->nodes == 0 || m->nodes > m->procs || m->kind >= MAPS)
        return false;
    if (m->kind != MAP_LIST)
        return m->places.len == 0;
    if (m->places.len != (size_t)m->procs * MAP_PLACE_BYTES)
        return false;
    for (uint32_t rank = 0; rank < m->procs; rank++)
        if (listed(m, rank) >= m->nodes)
            return false;
    return true;
}

uint32_t map_place(const struct map *m, uint32_t rank) {
    ASSERT(rank < m->procs);
    return m->kind == MAP_LIST     ? listed(m, rank)
           : m->kind == MAP_CYCLIC ? rank % m->nodes
                                   : size_node_of(m->nodes, m->procs, rank);
}

uint32_t map_count(const struct map *m, uint32_t place) {
    uint32_t count = 0;
    if (m->kind != MAP_LIST) /* both share out evenly, and the first nodes have one more */
        return size_share(m->nodes, m->procs, place).count;
    for (uint32_t rank = find(m, place, 0); rank < m->procs; rank = find(m, place, rank + 1))
        count++;
    return count;
}

uint32_t map_first(const struct map *m, uint32_t place) {
    return m->kind == MAP_LIST     ? find(m, place, 0)
           : m->kind == MAP_CYCLIC ? place
                                   : size_share(m->nodes, m->procs, place).first;
}

uint32_t map_next(const struct map *m, uint32_t place, uint32_t rank) {
    if (m->kind == MAP_LIST)
        return find(m, place, rank + 1);
    if (m->kind == MAP_CYCLIC)
        return rank + m->nodes;
    struct size_share share = size_share(m->nodes, m->procs, place);
    return rank + 1 < share.first + share.count ? rank + 1 : m->procs;
}

void map_nodes_of(const struct map *m, uint32_t first, uint32_t count, const struct nodeset *nodes,
                  struct nodeset *ret) {
    uint32_t end = first < m->procs && count < m->procs - first ? first + count : m->procs;
    if (m->kind == MAP_CYCLIC && end > first && end - first > m->nodes)
        end = first + m->nodes; /* from here on they come again */
    for (uint32_t rank = first; rank < end; rank++) {
        uint32_t place = map_place(m, rank), node = nodeset_at(nodes, place);
        if (node != NODESET_NONE)
            nodeset_add(ret, node);
        if (m->kind == MAP_BLOCK) { /* the rest of this node's */
            struct size_share share = size_share(m->nodes, m->procs, place);
            rank = share.first + share.count - 1;
        }
    }
}
