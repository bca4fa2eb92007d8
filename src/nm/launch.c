/* SPDX-License-Identifier: MIT */
/* Launches, and what is to be done with runs.
 *
 * A launch is heard of twice: when it is prepared, so that the launcher can make everything ready, and
 * when it is decided. For a single process the launcher has everything ready at all times: then it is not
 * woken before it is to start it (stow.c). One that was prepared and dropped is forgotten when the
 * machine manager says so. */
#include <errno.h>

#include "base/assert.h"
#include "nm/inside.h"
#include "rm/say.h"
#include "sched/map.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { LIST_BYTES_MAX = 32 * 1024 };

/* Keeps the first `count` members. */
static void keep_first(struct nodeset *set, uint32_t count) {
    struct noderange r;
    for (uint32_t from = 0; nodeset_next_range(set, from, &r); from = r.last + 1) {
        uint32_t len = r.last - r.first + 1;
        if (len <= count) {
            count -= len;
            continue;
        }
        nodeset_remove_range(set, r.first + count, set->universe - 1);
        return;
    }
}

static void failed(struct nm *n, struct run *r, int error) {
    struct ending e = {
        .cause = CAUSE_FAILED, .step = SPAWN_FORK, .value = (uint32_t)error, .bad = 1};
    run_over(n, r, &e);
}

/* Which process is on which of its nodes. */
static int find_map(const struct message_launch *m, uint32_t parts, struct map *ret) {
    struct spec spec = {0};
    if (m->map == MAP_LIST && spec_decode(m->spec, &spec) < 0)
        return -EBADMSG;
    *ret = (struct map){.kind = m->map,
                        .nodes = parts,
                        .procs = m->procs,
                        .places = spec.places,
                        .sections = m->sections};
    return map_good(ret) ? 0 : -EBADMSG;
}

/* Those of this node, unless they follow each other. */
static bool list_ranks(struct nm *n, const struct map *map, uint32_t place, uint32_t count,
                       struct bytes *ret) {
    *ret = (struct bytes){0};
    if (map->kind == MAP_BLOCK)
        return true;
    size_t len = (size_t)count * SETUP_RANK_BYTES;
    if (len > n->config.limits.body_bytes)
        return false;
    uint8_t *at = effects_room(n->out, len);
    uint32_t rank = map_first(map, place);
    for (uint32_t i = 0; i < count; i++, rank = map_next(map, place, rank))
        store_le32(at + (size_t)i * SETUP_RANK_BYTES, rank);
    *ret = bytes_of(at, len);
    return true;
}

/* Makes what the launcher gets; 0 or -errno. */
static int describe(struct nm *n, struct run *r, const struct message_launch *m) {
    const struct roster *roster = n->config.roster;
    char name[ROSTER_NAME_MAX], few[256], *list = few;
    size_t name_len = roster_name(roster, n->config.self, name, sizeof name);
    size_t list_len = roster_format(roster, m->set, few, sizeof few);
    if (list_len >= LIST_BYTES_MAX)
        return -E2BIG;
    if (list_len >= sizeof few) {
        list = (char *)effects_room(n->out, list_len + 1);
        roster_format(roster, m->set, list, list_len + 1);
    }
    uint32_t parts = nodeset_count(&r->set);
    uint32_t place = nodeset_rank(m->set, n->config.self);
    if (place >= parts)
        return -EINVAL;
    struct map map;
    struct bytes ranks;
    int error = find_map(m, parts, &map);
    if (error < 0)
        return error;
    uint32_t count = map_count(&map, place);
    if (count == 0 || !list_ranks(n, &map, place, count, &ranks))
        return -EINVAL;
    struct setup s = {.run = m->run,
                      .first = map_first(&map, place),
                      .count = count,
                      .ranks = ranks,
                      .size = m->procs,
                      .window = m->window,
                      .node = place,
                      .array = m->index,
                      .node_name = bytes_of(name, name_len),
                      .node_list = bytes_of(list, list_len),
                      .spec = m->spec};
    long len = setup_encode(&s, room_of(r->setup, n->config.limits.body_bytes));
    if (len < 0)
        return (int)len;
    r->setup_len = (uint32_t)len;
    r->alone = count == 1;
    return 0;
}

/* The run that a launch is about, made if it is new; NULL if it is not ours or there is no place. */
static struct run *take(struct nm *n, struct bytes body, uint64_t order) {
    union message m;
    uint16_t type;
    if (say_heard(body, n->scratch, &type, &m) < 0 || type != MESSAGE_LAUNCH ||
        m.launch.procs == 0 || !nodeset_has(m.launch.set, n->config.self))
        return NULL;
    struct run *r = run_find(n, m.launch.run);
    if (r != NULL) {
        r->order = order;
        return r;
    }
    r = run_add(n, m.launch.run);
    if (r == NULL) {
        ends_unknown(n, m.launch.run);
        return NULL;
    }
    r->order = order;
    r->agreed_at = n->now;
    r->whole = true;
    r->slots = m.launch.slots;
    r->version = m.launch.version;
    nodeset_copy(&r->set, m.launch.set);
    keep_first(&r->set, m.launch.procs);
    int error =
        m.launch.folder && !folders_add(n, m.launch.run) ? -EAGAIN : describe(n, r, &m.launch);
    if (error < 0)
        failed(n, r, -error);
    return r;
}

static void make_ready(struct nm *n, struct run *r) {
    if (r != NULL && !r->over && !r->handed && !stow_run(n, r))
        keeper_hand(n, r);
}

static void vote(struct nm *n, uint64_t order, bool no) {
    struct effect *e = effects_add(n->out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_VOTE, .order = order, .value = no};
}

/* Whoever cannot begin says so while nobody has begun. */
void launch_prepared(struct nm *n, const struct input_prepared *in) {
    struct run *r = take(n, in->body, in->order);
    if (!in->ask) {
        make_ready(n, r);
    } else if (r == NULL || r->over) {
        vote(n, in->order, true);
    } else {
        struct effect *e = effects_add(n->out, EFFECT_LOOK);
        e->look.ticket = in->order;
        e->look.run = r->run;
        e->look.setup = bytes_of(r->setup, r->setup_len);
    }
}

void launch_looked(struct nm *n, const struct input_looked *in) {
    struct run *r = NULL;
    RUNS_EACH (each, n)
        r = each->order == in->ticket ? each : r;
    if (r != NULL && in->error < 0)
        run_over(n, r,
                 &(struct ending){.cause = CAUSE_FAILED,
                                  .step = (uint8_t)in->step,
                                  .rank = in->rank,
                                  .value = (uint32_t)-in->error,
                                  .bad = 1});
    make_ready(n, r);
    vote(n, in->ticket, r == NULL || r->over);
}

/* A launcher would have ended it by now, and the machine manager counts on that. */
static bool too_late(const struct nm *n, const struct run *r) {
    return !r->handed && n->now - r->agreed_at >= n->config.lease_ns;
}

void launch_decided(struct nm *n, const struct input_signal *in) {
    struct run *r = take(n, in->body, in->order);
    if (r == NULL || r->decided || r->over)
        return;
    r->decided = true;
    if (too_late(n, r))
        run_over(n, r, &(struct ending){.cause = CAUSE_LOST});
    else
        keeper_hand(n, r);
}

void launch_settled(struct nm *n) {
    RUNS_EACH (r, n) {
        if (!r->decided && !r->over)
            run_drop(n, r);
    }
}

/* To the launcher as it is, if the run is here. */
void launch_command(struct nm *n, const struct message_command *m) {
    struct run *r = run_find(n, m->run);
    if (m->run == 0 && m->verb == VERB_CHECK) { /* what is here at all? */
        n->announced = false;
        keeper_announce(n);
        return;
    }
    if (r == NULL && !n->ready)
        return; /* the launcher may have it */
    if (r == NULL) {
        if (m->verb == VERB_KILL)
            folders_drop(n, m->run);
        ends_unknown(n, m->run);
        return;
    }
    if (!r->decided && n->settled == 0)
        return; /* the view that will decide it has not come: we shall be told again */
    if (r->over) {
        ends_asked(n, r);
        if (m->verb == VERB_RESEND &&
            r->handed) /* what it has written is still with the launcher */
            keeper_command(n, m->run, VERB_RESEND, 0, 0);
        return;
    }
    if (m->verb == VERB_CHECK) {
        keeper_have(n, r);
        ends_early(n, r);
        return;
    }
    if (m->verb == VERB_START) { /* it was decided while we were not there */
        r->decided = true;
        keeper_hand(n, r);
        return;
    }
    if (m->verb == VERB_KILL && !r->handed) { /* no launcher yet: it will never start */
        struct ending e = {.cause = CAUSE_EXITED, .ours = true};
        run_over(n, r, &e);
        return;
    }
    if (!r->handed)
        keeper_hand(n, r);
    keeper_pass(n, m);
}

void launch_forget(struct nm *n, const struct message_forget *m) {
    for (size_t at = 0; at < m->runs.len; at += 8) {
        uint64_t run = load_le64(m->runs.at + at);
        struct run *r = run_find(n, run);
        if (r != NULL && !r->decided && !r->over && n->settled == 0)
            continue;
        if (r != NULL)
            run_drop(n, r);
        folders_drop(n, run);
    }
}
