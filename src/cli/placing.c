/* SPDX-License-Identifier: MIT */
/* --map: see placing.h. */
#include "cli/placing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "cli/complain.h"
#include "cli/options.h"

enum { ITEM_MAX = 4096 };

/* What a list has said so far: the node of each rank. */
struct list_of_nodes {
    const struct cluster *cluster;
    struct roster roster;
    uint32_t *at;
    uint32_t count, cap;
};

static int add(struct list_of_nodes *l, uint32_t node, uint64_t times) {
    if (times > SIZE_PART_MAX - l->count)
        return -E2BIG;
    if (l->count + times > l->cap) {
        uint32_t cap = (l->count + (uint32_t)times) * 2;
        uint32_t *at = reallocarray(l->at, cap, sizeof *at);
        if (at == NULL)
            return -ENOMEM;
        l->at = at;
        l->cap = cap;
    }
    while (times-- > 0)
        l->at[l->count++] = node;
    return 0;
}

/* "n[0-3]*2": two processes on each of them, as they are named. */
static int add_item(struct list_of_nodes *l, char *item, const char *command) {
    char name[HOSTLIST_NAME_MAX + 1];
    const char *reason = "";
    size_t where = 0;
    uint64_t times = 1;
    uint32_t node;
    struct hostlist it;
    char *star = strchr(item, '*');
    if (star != NULL)
        *star++ = '\0';
    if (star != NULL && (!options_number(star, &times) || times == 0))
        return complain(command, "--map: \"*%s\": how many processes? for example n0*2", star);
    int r = hostlist_check(item, NULL, &where, &reason);
    if (r < 0 || hostlist_init(&it, item) < 0)
        return complain(command, "--map: %s at \"%.40s\"; give block, cyclic or a list of nodes",
                        reason, item + where);
    while (r >= 0 && hostlist_next(&it, name, sizeof name) > 0) {
        if (!roster_find(&l->roster, name, &node)) {
            complain("--map",
                     "%.150s: there is no such node in cluster `%s`; give block, cyclic or a list "
                     "of nodes; see: storm nodes",
                     name, l->cluster->name);
            return STATUS_STORM;
        }
        r = add(l, node, times);
    }
    if (r < 0)
        complain(command, "--map: %s", strerror(-r));
    return r < 0 ? STATUS_STORM : 0;
}

/* Up to the next comma that is not in brackets. */
static size_t item_len(const char *text) {
    int depth = 0;
    size_t len = 0;
    for (; text[len] != '\0' && (text[len] != ',' || depth > 0); len++)
        depth += text[len] == '[' ? 1 : text[len] == ']' ? -1 : 0;
    return len;
}

static int read_list(struct list_of_nodes *l, const char *text, const char *command) {
    char item[ITEM_MAX];
    int r = 0;
    do {
        size_t len = item_len(text);
        if (len >= sizeof item)
            return complain(command, "--map: \"%.40s...\" is too long", text);
        memcpy(item, text, len);
        item[len] = '\0';
        r = add_item(l, item, command);
        text += len;
    } while (r == 0 && *text++ == ',');
    return r;
}

static int keep(struct placing *p, const struct list_of_nodes *l, struct nodeset *on) {
    uint32_t *counts = calloc(l->cluster->nodes, sizeof *counts);
    p->places = malloc((size_t)l->count * MAP_PLACE_BYTES);
    if (counts == NULL || p->places == NULL) {
        free(counts);
        complain(NULL, "%s", strerror(ENOMEM));
        return STATUS_STORM;
    }
    for (uint32_t rank = 0; rank < l->count; rank++) {
        uint32_t node = l->at[rank];
        nodeset_add(on, node);
        if (++counts[node] > p->most) {
            p->most = counts[node];
            p->crowded = node;
        }
    }
    for (uint32_t rank = 0; rank < l->count; rank++)
        store_le32(p->places + (size_t)rank * MAP_PLACE_BYTES, nodeset_rank(on, l->at[rank]));
    p->procs = l->count;
    p->nodes = nodeset_count(on);
    free(counts);
    return 0;
}

int placing_read(struct placing *p, const char *text, const struct cluster *c, struct nodeset *on,
                 const char *command) {
    struct list_of_nodes l = {.cluster = c};
    *p = (struct placing){.kind = MAP_BLOCK};
    if (text == NULL || strcmp(text, map_name(MAP_BLOCK)) == 0)
        return 0;
    if (strcmp(text, map_name(MAP_CYCLIC)) == 0) {
        p->kind = MAP_CYCLIC;
        return 0;
    }
    p->kind = MAP_LIST;
    l.roster = cluster_roster(c);
    int r = read_list(&l, text, command);
    if (r == 0)
        r = keep(p, &l, on);
    free(l.at);
    return r;
}

void placing_fini(struct placing *p) {
    free(p->places);
    p->places = NULL;
}

/* What -N, -n or --size has said of it, and --map says otherwise. */
static int contradiction(uint32_t said, uint32_t listed, const char *what, const char *command) {
    if (said == 0 || said == listed)
        return 0;
    complain(command, "--map names %" PRIu32 " %s, and %" PRIu32 " %s asked for", listed, what,
             said, said == 1 ? "is" : "are");
    return STATUS_STORM;
}

int placing_size(const struct placing *p, const struct cluster *c, struct size *size,
                 const char *command) {
    char name[CLUSTER_NODE_NAME_MAX];
    int r = contradiction(size->procs, p->procs, "processes", command);
    if (r == 0)
        r = contradiction(size->nodes, p->nodes, "nodes", command);
    if (r == 0)
        r = contradiction(size->ppn, p->most, "processes on a node", command);
    if (r != 0)
        return r;
    if (p->most > c->pes && !c->widths) {
        cluster_node_name(c, p->crowded, name, sizeof name);
        complain(command,
                 "--map puts %" PRIu32 " processes on %s, which has %" PRIu32 " processor%s",
                 p->most, name, c->pes, c->pes == 1 ? "" : "s");
        return STATUS_STORM;
    }
    *size = (struct size){.nodes = p->nodes, .ppn = p->most, .procs = p->procs};
    return 0;
}

/* ---- showing ---- */

/* The end of a row of ranks: where they go on elsewhere, or run something else. */
static uint32_t row_end(const struct map *m, uint32_t place, uint32_t rank, uint32_t before) {
    uint32_t next = map_next(m, place, rank);
    while (next == rank + 1 && next < before) {
        rank = next;
        next = map_next(m, place, rank);
    }
    return rank;
}

static void print_ranks(const struct map *m, uint32_t place, const struct programs *programs) {
    const char *between = "";
    for (uint32_t rank = map_first(m, place); rank < m->procs;) {
        const struct ordered *o = programs->count > 0 ? programs_of(programs, rank) : NULL;
        uint32_t before = o != NULL ? o->spec.first + o->spec.ranks : m->procs;
        uint32_t last = row_end(m, place, rank, before), next = map_next(m, place, last);
        printf("%s%" PRIu32, between, rank);
        if (last > rank)
            printf("-%" PRIu32, last);
        if (o != NULL && next >= before)
            printf(" (%s)", ordered_short(o));
        between = o != NULL && next >= before ? " " : ",";
        rank = next;
    }
    putchar('\n');
}

void placing_print(const struct placing *p, const struct cluster *c, const struct size *size,
                   const struct nodeset *on, const struct programs *programs,
                   const struct sections *sections) {
    char name[CLUSTER_NODE_NAME_MAX];
    /* Which of them belongs to which section is not known before it starts. */
    bool known = on != NULL && nodeset_count(on) == size->nodes && sections->count == 0;
    uint32_t node = known ? nodeset_first(on) : 0;
    struct map m = {.kind = p->kind,
                    .nodes = size->nodes,
                    .procs = size->procs,
                    .sections = bytes_of(sections->mapped, sections->mapped_len),
                    .places = bytes_of(
                        p->places, p->kind == MAP_LIST ? (size_t)p->procs * MAP_PLACE_BYTES : 0)};
    printf("map       %s\n", map_name(p->kind));
    for (uint32_t place = 0; place < size->nodes; place++) {
        if (known)
            cluster_node_name(c, node, name, sizeof name);
        else
            snprintf(name, sizeof name, "node %" PRIu32, place);
        printf("  %s: ranks ", name);
        print_ranks(&m, place, programs);
        if (known && place + 1 < size->nodes)
            node = nodeset_next(on, node);
    }
}
