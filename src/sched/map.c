/* SPDX-License-Identifier: MIT */
/* Which process is on which node: see map.h. */
#include "sched/map.h"

#include <errno.h>

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

/* ---- sections ---- */

/* On the wire: how many, the processes of each, then runs of places: which section, how many. */
enum { COUNT_BYTES = 1, PROCS_BYTES = 4, RUN_BYTES = 5 };

/* A section by itself: a map of its own, whose first rank is `first`. */
struct section {
    struct map map;
    uint32_t first;
};

static uint32_t section_count(const struct map *m) {
    return m->sections.at[0];
}

static struct bytes runs_of(const struct map *m) {
    size_t head = COUNT_BYTES + (size_t)section_count(m) * PROCS_BYTES;
    return bytes_of(m->sections.at + head, m->sections.len - head);
}

static uint32_t section_procs(const struct map *m, uint32_t section) {
    return load_le32(m->sections.at + COUNT_BYTES + (size_t)section * PROCS_BYTES);
}

static struct section section_at(const struct map *m, uint32_t section) {
    struct section s = {.map = {.kind = m->kind, .procs = section_procs(m, section)}};
    struct bytes runs = runs_of(m);
    for (uint32_t i = 0; i < section; i++)
        s.first += section_procs(m, i);
    for (size_t at = 0; at < runs.len; at += RUN_BYTES)
        s.map.nodes += runs.at[at] == section ? load_le32(runs.at + at + 1) : 0;
    return s;
}

/* The section of a place, and how many of its nodes are before. */
static uint32_t find_section(const struct map *m, uint32_t place, uint32_t *ret_inner) {
    struct bytes runs = runs_of(m);
    uint32_t before[MAP_SECTIONS_MAX] = {0};
    for (size_t at = 0; at < runs.len; at += RUN_BYTES) {
        uint32_t section = runs.at[at], len = load_le32(runs.at + at + 1);
        if (place < len) {
            *ret_inner = before[section] + place;
            return section;
        }
        place -= len;
        before[section] += len;
    }
    ASSERT(false);
    return 0;
}

/* The place of a section's node. */
static uint32_t place_in(const struct map *m, uint32_t section, uint32_t inner) {
    struct bytes runs = runs_of(m);
    uint32_t place = 0;
    for (size_t at = 0; at < runs.len; at += RUN_BYTES) {
        uint32_t len = load_le32(runs.at + at + 1);
        if (runs.at[at] == section && inner < len)
            return place + inner;
        inner -= runs.at[at] == section ? len : 0;
        place += len;
    }
    ASSERT(false);
    return 0;
}

uint32_t map_section(const struct map *m, uint32_t place) {
    uint32_t inner;
    return m->sections.len == 0 ? 0 : find_section(m, place, &inner);
}

static bool sections_good(const struct map *m) {
    uint32_t count = m->sections.at[0];
    uint64_t nodes[MAP_SECTIONS_MAX] = {0}, all = 0, procs = 0;
    size_t head = COUNT_BYTES + (size_t)count * PROCS_BYTES;
    if (m->kind == MAP_LIST || count == 0 || count > MAP_SECTIONS_MAX || m->sections.len < head ||
        (m->sections.len - head) % RUN_BYTES != 0)
        return false;
    struct bytes runs = runs_of(m);
    for (size_t at = 0; at < runs.len; at += RUN_BYTES) {
        if (runs.at[at] >= count)
            return false;
        nodes[runs.at[at]] += load_le32(runs.at + at + 1);
        all += load_le32(runs.at + at + 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        procs += section_procs(m, i);
        if (nodes[i] == 0 || nodes[i] > section_procs(m, i))
            return false;
    }
    return all == m->nodes && procs == m->procs;
}

long map_sections_store(const uint32_t *procs, uint32_t count, const struct nodeset *nodes,
                        const uint16_t *section_of, struct room out) {
    size_t at = COUNT_BYTES + (size_t)count * PROCS_BYTES, run = 0;
    if (at > out.len)
        return -ENOBUFS;
    out.at[0] = (uint8_t)count;
    for (uint32_t i = 0; i < count; i++)
        store_le32(out.at + COUNT_BYTES + (size_t)i * PROCS_BYTES, procs[i]);
    NODESET_EACH (n, nodes) {
        if (run == 0 || out.at[run] != section_of[n]) {
            run = at;
            at += RUN_BYTES;
            if (at > out.len)
                return -ENOBUFS;
            out.at[run] = (uint8_t)section_of[n];
            store_le32(out.at + run + 1, 0);
        }
        store_le32(out.at + run + 1, load_le32(out.at + run + 1) + 1);
    }
    return (long)at;
}

/* ---- all of it ---- */

bool map_good(const struct map *m) {
    if (m->nodes == 0 || m->nodes > m->procs || m->kind >= MAPS)
        return false;
    if (m->sections.len > 0)
        return sections_good(m) && m->places.len == 0;
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
    if (m->sections.len > 0) {
        uint32_t section = 0;
        for (; rank >= section_procs(m, section); section++)
            rank -= section_procs(m, section);
        struct section s = section_at(m, section);
        return place_in(m, section, map_place(&s.map, rank));
    }
    return m->kind == MAP_LIST     ? listed(m, rank)
           : m->kind == MAP_CYCLIC ? rank % m->nodes
                                   : size_node_of(m->nodes, m->procs, rank);
}

uint32_t map_count(const struct map *m, uint32_t place) {
    uint32_t count = 0, inner;
    if (m->sections.len > 0) {
        struct section s = section_at(m, find_section(m, place, &inner));
        return map_count(&s.map, inner);
    }
    if (m->kind != MAP_LIST) /* both share out evenly, and the first nodes have one more */
        return size_share(m->nodes, m->procs, place).count;
    for (uint32_t rank = find(m, place, 0); rank < m->procs; rank = find(m, place, rank + 1))
        count++;
    return count;
}

uint32_t map_first(const struct map *m, uint32_t place) {
    uint32_t inner;
    if (m->sections.len > 0) {
        struct section s = section_at(m, find_section(m, place, &inner));
        return s.first + map_first(&s.map, inner);
    }
    return m->kind == MAP_LIST     ? find(m, place, 0)
           : m->kind == MAP_CYCLIC ? place
                                   : size_share(m->nodes, m->procs, place).first;
}

uint32_t map_next(const struct map *m, uint32_t place, uint32_t rank) {
    uint32_t inner;
    if (m->sections.len > 0) {
        struct section s = section_at(m, find_section(m, place, &inner));
        uint32_t next = map_next(&s.map, inner, rank - s.first);
        return next < s.map.procs ? s.first + next : m->procs;
    }
    if (m->kind == MAP_LIST)
        return find(m, place, rank + 1);
    if (m->kind == MAP_CYCLIC)
        return rank + m->nodes;
    struct size_share share = size_share(m->nodes, m->procs, place);
    return rank + 1 < share.first + share.count ? rank + 1 : m->procs;
}

/* Of sections: ranks of a node ascend, so the first that is not before them decides. */
static void sections_nodes_of(const struct map *m, uint32_t first, uint32_t end,
                              const struct nodeset *nodes, struct nodeset *ret) {
    uint32_t place = 0;
    for (uint32_t node = nodeset_first(nodes); node != NODESET_NONE && place < m->nodes;
         node = nodeset_next(nodes, node), place++) {
        uint32_t rank = map_first(m, place);
        while (rank < first)
            rank = map_next(m, place, rank);
        if (rank < end)
            nodeset_add(ret, node);
    }
}

enum { PLACES_MAX = 65536 }; /* no cluster has more nodes */

void map_nodes_of(const struct map *m, uint32_t first, uint32_t count, const struct nodeset *nodes,
                  struct nodeset *ret) {
    uint32_t end = first < m->procs && count < m->procs - first ? first + count : m->procs;
    if (m->sections.len > 0) {
        sections_nodes_of(m, first, end, nodes, ret);
        return;
    }
    if (m->kind == MAP_CYCLIC && end > first && end - first > m->nodes)
        end = first + m->nodes;             /* from here on they come again */
    uint64_t marked[PLACES_MAX / 64] = {0}; /* so the set is gone through once */
    for (uint32_t rank = first; rank < end; rank++) {
        uint32_t place = map_place(m, rank);
        if (place < PLACES_MAX)
            marked[place / 64] |= (uint64_t)1 << place % 64;
        if (m->kind == MAP_BLOCK) { /* the rest of this node's */
            struct size_share share = size_share(m->nodes, m->procs, place);
            rank = share.first + share.count - 1;
        }
    }
    uint32_t place = 0;
    for (uint32_t node = nodeset_first(nodes); node != NODESET_NONE && place < PLACES_MAX;
         node = nodeset_next(nodes, node), place++)
        if (marked[place / 64] >> place % 64 & 1)
            nodeset_add(ret, node);
}
