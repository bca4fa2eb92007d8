/* SPDX-License-Identifier: MIT */
/* Whether the owner of this machine works there (wire/owner.h). The root has told what to look for, and hears with the node's other
 * vitals what was found.
 *
 * Files are looked at by the world. What others than our runs use of the processors is reckoned here: what everybody has used
 * between two looks, without what the launcher has measured of our runs. That is asked for at a look, and known at the next one; so the
 * time before the last look is judged. A run that ends in between is counted a little too early: a mean over about half a
 * minute does not care. */
#include "nm/inside.h"
#include "rm/gather.h"

enum { MEAN_LOOKS = 8 };

void owner_look(struct nm *n) {
    struct bytes text = bytes_of(n->owner.text, n->owner.len);
    struct bytes copy = effects_copy(n->out, text);
    effects_add(n->out, EFFECT_GAUGE)->gauge = copy;
}

void owner_heard(struct nm *n, const struct message_owner *m) {
    struct owner *o = &n->owner;
    struct mistake wrong;
    struct bytes now = bytes_of(o->text, o->len);
    if (m->watch.len >= sizeof o->text || bytes_equal(now, m->watch))
        return;
    *o = (struct owner){.len = (uint32_t)m->watch.len};
    for (uint32_t i = 0; i < o->len; i++)
        o->text[i] = (char)m->watch.at[i];
    if (o->len > 0 && owner_read(bytes_of(o->text, o->len), &o->watch, &wrong) < 0)
        *o = (struct owner){0}; /* of a version that knows more than we do */
    owner_look(n);
}

/* ---- processors ---- */

static uint64_t total(const struct usage *u) {
    return u->user_ns + u->system_ns;
}

void owner_measured(struct nm *n, const struct run *r, const struct usage *u) {
    bool ours = r->whole || r->measured; /* else it has begun before we did */
    uint64_t before = r->measured ? total(&r->usage) : 0;
    if (ours && total(u) > before)
        n->runs_ns += total(u) - before;
}

/* Between the two looks before this one, in hundredths of a processor. What runs have used in a time that is not the same to
 * the moment may be more than all. */
static int64_t used_by_others(const struct nm *n) {
    const struct owner *o = &n->owner;
    uint64_t took = o->looked_at[1] - o->looked_at[0];
    int64_t used =
        (int64_t)(o->busy_ns[1] - o->busy_ns[0]) - (int64_t)(n->runs_ns - o->runs_before_ns);
    return took == 0 ? 0 : used / ((int64_t)took / 100 + 1);
}

static void reckon_load(struct nm *n, const struct input_gauged *in) {
    struct owner *o = &n->owner;
    if (o->looks >= 2)
        o->others_x800 += used_by_others(n) - o->others_x800 / MEAN_LOOKS;
    o->looked_at[0] = o->looked_at[1];
    o->busy_ns[0] = o->busy_ns[1];
    o->looked_at[1] = n->now;
    o->busy_ns[1] = in->busy_ns;
    o->runs_before_ns = n->runs_ns;
    o->looks += o->looks < 2;
}

static bool is_loaded(struct nm *n, uint32_t sign) {
    struct owner *o = &n->owner;
    const struct owner_sign *s = &o->watch.signs[sign];
    if (o->others_x800 > (int64_t)s->load_x100 * MEAN_LOOKS)
        o->loaded_at[sign] = n->now;
    return o->loaded_at[sign] != 0 && n->now - o->loaded_at[sign] < s->quiet_ns;
}

/* ---- judging ---- */

void owner_gauged(struct nm *n, const struct input_gauged *in) {
    struct owner *o = &n->owner;
    if (o->len == 0)
        return;
    o->judged = true;
    o->active = in->owner;
    if (in->busy_ns != 0)
        reckon_load(n, in);
    for (uint32_t i = 0; i < o->watch.count; i++)
        if (o->watch.signs[i].kind == OWNER_LOAD && is_loaded(n, i))
            o->active = true;
}
