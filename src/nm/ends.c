/* SPDX-License-Identifier: MIT */
/* Ends of runs on their way up: Algorithms 8 and 9 of the STORM paper, combined in the tree.
 *
 * A node waits until its own part of a run and the parts of all nodes of the run below it are over, and
 * says so with one message; what is wrong is said at once. What has been passed on is not kept: each
 * node says its own end again, until it is told to forget it. So any message may be lost.
 *
 * Ends without anything to say about are a set, with one sum of what these nodes have written and used. Nobody can take a
 * sum apart, so nothing may be in two of them that go the same way: whoever has told before is passed on by itself, not in a
 * sum, and a sum that has one of these in it goes on as it is. The root takes a sum of nodes that it has all not heard of,
 * and no other: who was in it says its end again, alone. */
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "nm/inside.h"
#include "rm/say.h"

/* What nobody has acknowledged is said again after so long. */
#define REPEAT_NS (2 * NS_PER_S)

static bool is_clean(const struct ending *e) {
    return e->cause == CAUSE_EXITED && e->value == 0 && !e->ours && !e->loose;
}

static bool is_urgent(const struct ending *e) {
    return e->cause != CAUSE_EXITED || e->value != 0;
}

/* `m` lacks its endings. */
static void send(struct nm *n, struct message_ends m, const struct ending *endings,
                 uint32_t count) {
    uint8_t *room = effects_room(n->out, (size_t)count * ENDING_BYTES);
    for (uint32_t i = 0; i < count; i++)
        ending_store(room + (size_t)i * ENDING_BYTES, &endings[i]);
    m.ends = bytes_of(room, (size_t)count * ENDING_BYTES);
    say_parent(n->out, MESSAGE_ENDS, &(union message){.ends = m});
}

static void flush(struct nm *n, struct run *r) {
    if (nodeset_empty(&r->clean) && r->ending_count == 0)
        return;
    struct message_ends m = {
        .run = r->run, .clean = &r->clean, .output = r->clean_output, .usage = r->clean_usage};
    send(n, m, r->endings, r->ending_count);
    nodeset_clear(&r->clean);
    r->clean_output = 0;
    r->clean_usage = (struct usage){0};
    r->ending_count = 0;
}

/* Has everybody whose end comes through here told? */
static bool complete(struct nm *n, const struct run *r) {
    if (!r->whole)
        return true;
    if (!nodeset_has(&r->told, n->config.self) && nodeset_has(&r->set, n->config.self))
        return false;
    nodeset_and(&n->work, &r->set, &n->below);
    return nodeset_covers(&r->told, &n->work);
}

static void send_if_complete(struct nm *n, struct run *r) {
    if (r->sent || !complete(n, r))
        return;
    r->sent = true;
    flush(n, r);
}

/* One node's end joins what waits to be sent. */
static void collect(struct nm *n, struct run *r, const struct ending *e) {
    bool first = !nodeset_has(&r->told, e->node);
    nodeset_add(&r->told, e->node);
    if (nodeset_has(&r->clean, e->node))
        return;
    if (is_clean(e) && first) {
        nodeset_add(&r->clean, e->node);
        r->clean_output += e->output;
        usage_add(&r->clean_usage, &e->usage);
        return;
    }
    if (r->ending_count == ENDINGS_MAX)
        flush(n, r);
    r->endings[r->ending_count++] = *e;
}

/* It is not put off by what ends meanwhile. */
static void repeat_later(struct nm *n) {
    if (n->repeat_at != 0)
        return;
    n->repeat_at = n->now + REPEAT_NS;
    effects_timer(n->out, TIMER_REPEAT, n->repeat_at);
}

void ends_asked(struct nm *n, struct run *r) {
    collect(n, r, &r->ending);
    flush(n, r);
}

void ends_own(struct nm *n, struct run *r) {
    repeat_later(n);
    collect(n, r, &r->ending);
    if (r->sent || is_urgent(&r->ending))
        flush(n, r);
    send_if_complete(n, r);
}

/* So do those of many, if all of them are new. */
static void collect_clean(struct nm *n, struct run *r, const struct message_ends *m) {
    if (nodeset_covers(&r->clean, m->clean))
        return;
    nodeset_and(&n->work, &r->told, m->clean);
    bool first = nodeset_empty(&n->work);
    nodeset_unite(&r->told, m->clean);
    if (!first) {
        send(n, *m, NULL, 0);
        return;
    }
    nodeset_unite(&r->clean, m->clean);
    r->clean_output += m->output;
    usage_add(&r->clean_usage, &m->usage);
}

static bool fits(const struct nm *n, const struct message_ends *m) {
    struct ending e;
    for (uint32_t i = 0; ending_load(&e, m->ends, i); i++)
        if (e.node >= n->config.limits.nodes)
            return false;
    return true;
}

void ends_heard(struct nm *n, const struct message_ends *m) {
    struct run *r = run_find(n, m->run);
    if (!fits(n, m))
        return;
    if (r == NULL) {
        say_parent(n->out, MESSAGE_ENDS, &(union message){.ends = *m});
        return;
    }
    bool urgent = r->sent;
    collect_clean(n, r, m);
    struct ending e;
    for (uint32_t i = 0; ending_load(&e, m->ends, i); i++) {
        collect(n, r, &e);
        urgent = urgent || is_urgent(&e);
    }
    if (urgent)
        flush(n, r);
    send_if_complete(n, r);
}

void ends_check(struct nm *n) {
    RUNS_EACH (r, n) {
        if (!nodeset_empty(&r->told))
            send_if_complete(n, r);
    }
}

void ends_repeat(struct nm *n) {
    bool any = false;
    RUNS_EACH (r, n) {
        if (!r->over)
            continue;
        any = true;
        collect(n, r, &r->ending);
        flush(n, r);
    }
    n->repeat_at = any ? n->now + REPEAT_NS : 0;
    effects_timer(n->out, TIMER_REPEAT, n->repeat_at);
}

/* Past those in between: they would take it for the end. */
void ends_early(struct nm *n, const struct run *r) {
    uint8_t bytes[ENDING_BYTES];
    if (r->over || !r->ending.more)
        return;
    ending_store(bytes, &r->ending);
    nodeset_clear(&n->work);
    union message m = {
        .ends = {.run = r->run, .clean = &n->work, .ends = bytes_of(bytes, sizeof bytes)}};
    say_root(n->out, MESSAGE_ENDS, &m, (struct bytes){0});
}

void ends_unknown(struct nm *n, uint64_t run) {
    struct ending e = {.node = n->config.self, .cause = CAUSE_UNKNOWN, .bad = 1};
    nodeset_clear(&n->work);
    send(n, (struct message_ends){.run = run, .clean = &n->work}, &e, 1);
}
