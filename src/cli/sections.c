/* SPDX-License-Identifier: MIT */
/* Which programs of a job share nodes: see sections.h. */
#include "cli/sections.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "wire/message.h"

/* ---- of one part ---- */

static int merge(struct size *size, const struct part *p, const char *text, enum size_part which,
                 const char *command) {
    char why[SIZE_WHY_MAX], place[PART_PLACE_MAX];
    struct size more;
    if (text == NULL)
        return 0;
    int r = which == SIZE_PARTS ? size_parse(text, &more, why, sizeof why)
                                : size_parse_part(text, which, &more, why, sizeof why);
    if (r == 0)
        r = size_merge(size, &more, why, sizeof why);
    return r == 0 ? 0 : complain(part_place(p, text, command, place), "%s", why);
}

static int read_size(const struct part *p, const char *command, struct size *ret) {
    char place[PART_PLACE_MAX];
    *ret = (struct size){0};
    int r = merge(ret, p, p->size, SIZE_PARTS, command);
    if (r == 0)
        r = merge(ret, p, p->nodes, SIZE_NODES, command);
    if (r == 0)
        r = merge(ret, p, p->procs, SIZE_PROCS, command);
    if (r == 0 && p->need != NULL && strlen(p->need) > NEED_TEXT_MAX)
        r = complain(part_place(p, p->need, command, place),
                     "--need is too long (at most %d characters)", NEED_TEXT_MAX);
    if (r == 0 && ret->nodes == 0 && ret->ppn == 0 && ret->procs == 0)
        ret->procs = 1;
    return r;
}

static bool has_nodes(const struct size *s) {
    return s->nodes != 0 || s->ppn != 0;
}

static bool same_need(const struct part *a, const struct part *b) {
    return strcmp(a->need != NULL ? a->need : "", b->need != NULL ? b->need : "") == 0;
}

/* ---- all ---- */

static int resolve(struct size *size, const struct cluster *c, const char *place) {
    char why[SIZE_WHY_MAX];
    if (size_resolve(size, cluster_count(c), c->pes, c->widths ? 0 : c->pes, why, sizeof why) == 0)
        return 0;
    complain(place, "%s", why);
    return STATUS_STORM;
}

/* From this part on: all that share nodes with it. */
static uint32_t end_of(const struct parts *parts, const struct size *sizes, uint32_t from) {
    uint32_t end = from + 1;
    while (end < parts->count && !has_nodes(&sizes[from]) && !has_nodes(&sizes[end]) &&
           same_need(&parts->at[from], &parts->at[end]))
        end++;
    return end;
}

static int take(struct sections *s, const struct parts *parts, const struct cluster *c,
                const char *command, struct size *sizes, uint32_t from, uint32_t end) {
    struct size size = sizes[from];
    uint64_t procs = 0;
    char place[PART_PLACE_MAX];
    const char *need = parts->at[from].need != NULL ? parts->at[from].need : "";
    for (uint32_t i = from; i < end; i++)
        procs += sizes[i].procs;
    if (procs > SIZE_PART_MAX)
        return complain(command, "more than %d processes in all", SIZE_PART_MAX);
    if (!has_nodes(&size))
        size.procs = (uint32_t)procs;
    int r = resolve(&size, c, part_place(&parts->at[from], NULL, command, place));
    if (r == 0 && s->count == MAP_SECTIONS_MAX)
        r = complain(command,
                     "more than %d programs, or rows of them, with sizes or needs of their own",
                     MAP_SECTIONS_MAX);
    if (r != 0)
        return r;
    if (has_nodes(&sizes[from]))
        sizes[from] = size;
    s->at[s->count++] = (struct section){
        .nodes = size.nodes, .ppn = size.ppn, .procs = size.procs, .need = bytes_from_str(need)};
    return 0;
}

static void encode(struct sections *s) {
    size_t cap = 0;
    for (uint32_t i = 0; i < s->count; i++)
        cap += s->at[i].need.len + 32;
    s->encoded = malloc(cap);
    ASSERT(s->encoded != NULL);
    for (uint32_t i = 0; i < s->count; i++) {
        long len = section_store(&s->at[i], room_of(s->encoded + s->len, cap - s->len));
        ASSERT(len > 0);
        s->len += (size_t)len;
    }
}

/* As if nodes were given in a row. */
static void map_in_a_row(struct sections *s, uint32_t nodes) {
    uint32_t procs[MAP_SECTIONS_MAX], at = 0;
    uint16_t *section_of = calloc(nodes, sizeof *section_of);
    size_t cap = 64 + (size_t)MAP_SECTIONS_MAX * 16;
    void *storage = malloc(nodeset_bytes(nodes));
    struct nodeset all;
    s->mapped = malloc(cap);
    ASSERT(section_of != NULL && storage != NULL && s->mapped != NULL);
    nodeset_init(&all, nodes, storage);
    nodeset_add_range(&all, 0, nodes - 1);
    for (uint32_t i = 0; i < s->count; i++) {
        procs[i] = s->at[i].procs;
        for (uint32_t k = 0; k < s->at[i].nodes; k++)
            section_of[at++] = (uint16_t)i;
    }
    long len = map_sections_store(procs, s->count, &all, section_of, room_of(s->mapped, cap));
    ASSERT(len > 0);
    s->mapped_len = (size_t)len;
    free(section_of);
    free(storage);
}

static int add_up(struct sections *s, const struct cluster *c, const char *command,
                  struct size *ret) {
    uint64_t nodes = 0, procs = 0;
    *ret = (struct size){0};
    for (uint32_t i = 0; i < s->count; i++) {
        nodes += s->at[i].nodes;
        procs += s->at[i].procs;
        ret->ppn = s->at[i].ppn > ret->ppn ? s->at[i].ppn : ret->ppn;
    }
    if (nodes > cluster_count(c)) {
        complain(command, "its programs need %llu nodes; the cluster has %u",
                 (unsigned long long)nodes, cluster_count(c));
        return STATUS_STORM;
    }
    if (procs > SIZE_PART_MAX)
        return complain(command, "more than %d processes in all", SIZE_PART_MAX);
    ret->nodes = (uint32_t)nodes;
    ret->procs = (uint32_t)procs;
    return 0;
}

int sections_read(struct sections *s, const struct parts *parts, const struct cluster *c,
                  const char *command, struct size *sizes, struct size *ret_all,
                  const char **ret_need) {
    int r = 0;
    for (uint32_t i = 0; i < parts->count && r == 0; i++)
        r = read_size(&parts->at[i], command, &sizes[i]);
    for (uint32_t from = 0, end; r == 0 && from < parts->count; from = end) {
        end = end_of(parts, sizes, from);
        r = take(s, parts, c, command, sizes, from, end);
    }
    if (r == 0)
        r = add_up(s, c, command, ret_all);
    if (r != 0)
        return r;
    if (s->count == 1) { /* then it is a job like any other */
        *ret_need = parts->at[0].need;
        *ret_all = (struct size){.procs = ret_all->procs};
        s->count = 0;
        return 0;
    }
    encode(s);
    map_in_a_row(s, ret_all->nodes);
    return 0;
}

void sections_fini(struct sections *s) {
    free(s->encoded);
    free(s->mapped);
    *s = (struct sections){0};
}
