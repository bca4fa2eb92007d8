/* SPDX-License-Identifier: MIT */
/* Owners: people who work at machines that are nodes. What is lent leaves a machine whose owner is there.
 *
 * The node file says what tells of them (wire/owner.h), nodes look, and say what they have found with their vitals; that is gathered every
 * few seconds. A node's record also says what it looks for: who looks for something else, or for nothing, is told (again).
 * So nothing else is needed for messages that are lost, nodes that begin anew, and a node file that is changed.
 *
 * Nothing that is lent comes to a node until it is known that its owner is away. What is there stays until he is known to be there. */
#include "mm/inside.h"

#include <string.h>

#include "rm/say.h"
#include "wire/vitals.h"

size_t owners_bytes(const struct mm_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    (void)ARENA_TAKE(&a, uint16_t, c->limits.nodes);
    (void)ARENA_TAKE(&a, struct owner_kept, OWNERS_MAX);
    return arena_used(&a);
}

void owners_init(struct mm *m, struct arena *a) {
    m->owners.of = ARENA_TAKE(a, uint16_t, m->config.limits.nodes);
    m->owners.kept = ARENA_TAKE(a, struct owner_kept, OWNERS_MAX);
    m->owners.untold = true; /* as far as we know */
}

/* ---- what nodes say ---- */

static bool look(const struct mm *m, uint32_t node, struct vitals *ret) {
    struct gather_record record;
    size_t at;
    return m->vitals != NULL && gather_get(m->vitals, node, &record) &&
           vitals_read(record.bytes, ret, &at) == 0;
}

enum node_owner owners_of(const struct mm *m, uint32_t node) {
    struct vitals v;
    if (m->owners.of[node] == 0 || m->vitals == NULL)
        return NODE_OWNER_NONE;
    if (!look(m, node, &v) || v.watch != m->owners.kept[m->owners.of[node] - 1].mark)
        return NODE_OWNER_UNKNOWN;
    return v.active ? NODE_OWNER_ACTIVE : NODE_OWNER_AWAY;
}

static void judge(struct mm *m) {
    struct nodeset *barred = &m->work;
    nodeset_clear(barred);
    nodeset_clear(&m->owners.reclaimed);
    for (uint32_t n = 0; n < m->config.limits.nodes; n++) {
        enum node_owner o = owners_of(m, n);
        if (o == NODE_OWNER_ACTIVE)
            nodeset_add(&m->owners.reclaimed, n);
        if (o == NODE_OWNER_ACTIVE || o == NODE_OWNER_UNKNOWN)
            nodeset_add(barred, n);
    }
    nodeset_copy(&m->owners.barred, barred);
    loans_bar(m);
    m->dirty = true; /* loans may be called back, or go on */
}

/* ---- what the administrator says ---- */

static void take_texts(struct mm *m, struct bytes texts) {
    m->owners.count = 0;
    for (size_t at = 0; at < texts.len && m->owners.count < OWNERS_MAX;) {
        const uint8_t *end = memchr(texts.at + at, 0, texts.len - at);
        size_t len = end == NULL ? texts.len - at : (size_t)(end - texts.at) - at;
        struct owner_kept *k = &m->owners.kept[m->owners.count++];
        *k = (struct owner_kept){.len = len < OWNER_TEXT_MAX ? (uint32_t)len : 0};
        memcpy(k->text, texts.at + at, k->len);
        k->mark = owner_mark(bytes_of(k->text, k->len));
        at += len + 1;
    }
}

void owners_said(struct mm *m, const struct input_traits *in) {
    bool before = m->owners.count > 0;
    take_texts(m, in->owner_texts);
    for (uint32_t n = 0; n < m->config.limits.nodes; n++) {
        size_t at = (size_t)n * 4;
        uint32_t said = at < in->owners.len ? load_le32(in->owners.at + at) : 0;
        m->owners.of[n] = said <= m->owners.count ? (uint16_t)said : 0;
    }
    m->owners.untold = m->owners.untold || before;
    if (before || m->owners.count > 0)
        judge(m);
}

/* ---- telling nodes ---- */

static uint32_t mark_of(const struct mm *m, uint32_t node) {
    uint32_t owner = m->owners.of[node];
    return owner == 0 ? 0 : m->owners.kept[owner - 1].mark;
}

/* These, one of whom is to look for the same as the others. */
static void tell(struct mm *m, const struct nodeset *nodes, uint32_t one) {
    uint32_t owner = m->owners.of[one];
    const struct owner_kept *k = owner == 0 ? NULL : &m->owners.kept[owner - 1];
    union message o = {0};
    if (k != NULL)
        o.owner.watch = bytes_of(k->text, k->len);
    say_down(m->out, nodes, MESSAGE_OWNER, &o, (struct bytes){0});
}

/* Who looks for something else than it should; those who should look for the same hear of it together. */
static bool tell_all(struct mm *m) {
    struct nodeset *untold = &m->scratch[0];
    struct vitals v;
    nodeset_clear(untold);
    NODESET_EACH (n, &m->members)
        if (n < m->config.limits.nodes && look(m, n, &v) && v.watch != mark_of(m, n))
            nodeset_add(untold, n);
    bool any = !nodeset_empty(untold);
    while (!nodeset_empty(untold)) {
        uint32_t first = nodeset_first(untold);
        nodeset_clear(&m->work);
        NODESET_EACH (n, untold)
            if (m->owners.of[n] == m->owners.of[first])
                nodeset_add(&m->work, n);
        tell(m, &m->work, first);
        nodeset_subtract(untold, &m->work);
    }
    return any;
}

void owners_gathered(struct mm *m) {
    if (!m->owners.untold && m->owners.count == 0)
        return;
    m->owners.untold = tell_all(m);
    judge(m);
}
