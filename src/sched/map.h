/* SPDX-License-Identifier: MIT */
/* Which process of a job is on which of its nodes.
 *
 * Nodes of a job are counted as they are numbered in the cluster: a node's place. Block gives each node ranks in a row,
 * cyclic deals them out one by one, and a list says it for every rank. Whatever the map is, ranks of a node ascend.
 *
 * A job may have sections: some of its nodes, with a size of their own. Ranks of the first section come first, and each is
 * mapped to its own nodes as a job without sections to all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"

enum map_kind { MAP_BLOCK, MAP_CYCLIC, MAP_LIST, MAPS };

/* As a list says it: the place of each rank. */
enum { MAP_PLACE_BYTES = 4 };

struct map {
    enum map_kind kind;
    uint32_t nodes, procs; /* nodes <= procs */
    struct bytes places;   /* of a list */
    struct bytes
        sections; /* as map_sections_store writes them; empty: it has none. Never of a list */
};

enum { MAP_SECTIONS_MAX = 8 };

/* How many processes each section has, and which section the node of each place belongs to (below `count`): length written,
 * or -ENOBUFS. */
long map_sections_store(const uint32_t *procs, uint32_t count, const struct nodeset *nodes,
                        const uint16_t *section_of, struct room out);

/* The section of a place, if there are any. */
uint32_t map_section(const struct map *m, uint32_t place);

/* "block", "cyclic", "list" */
const char *map_name(enum map_kind kind);

/* Has every process a node? Of a map that comes from others, where a node of a list may still have none. */
bool map_good(const struct map *m);

/* Where a rank is; rank < procs. */
uint32_t map_place(const struct map *m, uint32_t rank);

/* Processes on a node. */
uint32_t map_count(const struct map *m, uint32_t place);

/* The first rank of a node, and the one of it that follows another; at least procs: there is none. */
uint32_t map_first(const struct map *m, uint32_t place);
uint32_t map_next(const struct map *m, uint32_t place, uint32_t rank);

/* Those of the job's nodes that have one of `count` ranks from `first` on are added to `ret`; more ranks than there are
 * do not matter. */
void map_nodes_of(const struct map *m, uint32_t first, uint32_t count, const struct nodeset *nodes,
                  struct nodeset *ret);
