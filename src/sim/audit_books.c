/* SPDX-License-Identifier: MIT */
/* Judges those who keep books, by the books: epochs, tables, limits. See audit.h. */
#include <inttypes.h>

#include "sim/audit_inside.h"

/* ---- S8 ---- */

static void judge_epoch(struct audit *a, uint32_t who, const struct prim_status *s) {
    struct audit_epoch *e = &a->epochs[who];
    uint32_t boots = world_boots(hall_world(a->hall), who);
    uint32_t least = e->boots == boots ? e->last : s->epoch == 0 ? 0 : e->highest;
    if (s->epoch < least)
        verdict_add(a->verdict, "S8", "node %" PRIu32 ": epoch %" PRIu32 " after %" PRIu32, who,
                    s->epoch, least);
    e->boots = boots;
    e->last = s->epoch;
    if (e->highest < s->epoch)
        e->highest = s->epoch;
}

/* ---- S10 ---- */

static void complain(struct audit *a, const char *rule, uint32_t who, const char *why) {
    if (why != NULL)
        verdict_add(a->verdict, rule, "%" PRIu32 ": %s", who, why);
}

static void judge_links(struct audit *a, uint32_t who) {
    if (world_links(hall_world(a->hall), who) > a->links_max)
        complain(a, "S10", who, "there are too many links");
}

static void judge_prim(struct audit *a, uint32_t who) {
    const struct limits *l = &hall_mm_config(a->hall)->limits;
    struct prim_status s;
    prim_status(world_prim(hall_world(a->hall), who), &s);
    judge_epoch(a, who, &s);
    judge_links(a, who);
    if (s.children > (who < a->nodes ? l->children : a->nodes))
        complain(a, "S10", who, "there are too many children");
    if (s.outstanding > l->outstanding)
        complain(a, "S10", who, "too many requests are not answered");
    if (s.in_flight > l->window)
        complain(a, "S10", who, "too many operations are under way");
}

/* ---- each ---- */

void audit_root(struct audit *a, bool all) {
    const struct mm *m = hall_mm(a->hall);
    if (m == NULL)
        return;
    judge_prim(a, a->nodes);
    complain(a, "S10", a->nodes, mm_over_limit(m));
    complain(a, "S9", a->nodes, mm_wrong(m, a->scratch, all));
}

void audit_node(struct audit *a, uint32_t node) {
    const struct nm *n = hall_nm(a->hall, node);
    if (n == NULL)
        return;
    judge_prim(a, node);
    complain(a, "S10", node, nm_wrong(n));
}

/* Its groups are those of its runs, until what they have written is taken: neither is left behind. */
void audit_launcher(struct audit *a, uint32_t node) {
    const struct pl *p = hall_pl(a->hall, node);
    uint32_t who = hall_launcher(a->hall, node);
    if (p == NULL)
        return;
    judge_links(a, who);
    complain(a, "S10", who, pl_wrong(p));
    if (pl_groups(p) != sim_kernel_open(hall_kernel(a->hall, node)))
        complain(a, "S10", who, "there are groups that are of no run, or runs without a group");
}
