/* SPDX-License-Identifier: MIT */
/* Launchers and clients beside the nodes, their links, and the journal of the seat.
 *
 * Two compute nodes (0, 1), a seat (2), launchers (3, 4), a client (5). Below them is nothing: a machine
 * that only listens stands for the primitives. Daemons keep what they hear and do what the test hands
 * them when they hear a timer. */
#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "sim/journal.h"
#include "sim/world.h"
#include "tap.h"
#include "wire/message.h"

#define US NS_PER_US

enum { NODES = 2, SEAT = 2, LAUNCHER0 = 3, LAUNCHER1 = 4, CLIENT = 5, ALL = 6, HEARD = 64 };

struct kept {
    struct input in; /* pointers are not to be followed */
    char text[32];
};

struct body {
    struct kept heard[HEARD];
    uint32_t count;
    void (*act)(struct body *b, struct effects *out);
    uint64_t act_at;
    uint32_t link; /* the newest */
};

struct stage {
    struct world *w;
    struct body bodies[ALL];
    uint32_t lower[ALL]; /* inputs of the machine below, boots aside */
    bool news;
    uint32_t processes; /* effects about them */
    uint32_t deaths;
};

static void keep(struct body *b, const struct input *in) {
    struct bytes bytes = {0};
    if (in->kind == INPUT_REPLAY)
        bytes = in->replay.body;
    else if (in->kind == INPUT_FETCHED)
        bytes = in->fetched.body;
    else if (in->kind == INPUT_MESSAGE)
        bytes = in->message.body;
    CHECK(b->count < HEARD && bytes.len < sizeof b->heard[0].text);
    struct kept *k = &b->heard[b->count++];
    *k = (struct kept){.in = *in};
    if (bytes.len > 0)
        memcpy(k->text, bytes.at, bytes.len);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct body *b = self;
    if (in->kind == INPUT_BOOT && b->act != NULL)
        effects_timer(out, 1, b->act_at);
    if (in->kind == INPUT_LINK_UP)
        b->link = in->link.link;
    keep(b, in);
    if (in->kind == INPUT_TIMER && b->act != NULL)
        b->act(b, out);
}

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct stage *s = context;
    (void)globals;
    return (struct machine){.self = &s->bodies[node], .step = step};
}

static void step_below(void *self, const struct input *in, struct effects *out) {
    (void)out;
    *(uint32_t *)self += in->kind != INPUT_BOOT;
}

static struct machine make_lower(void *context, uint32_t node, struct arena *a) {
    struct stage *s = context;
    (void)a;
    return (struct machine){.self = &s->lower[node], .step = step_below};
}

static void on_process(void *context, uint32_t body, const struct effect *e) {
    struct stage *s = context;
    CHECK(body == LAUNCHER1 && e->kind == EFFECT_GROUP_KILL);
    s->processes++;
    s->news = true;
    world_poke(s->w, body, world_now(s->w) + 5 * US);
}

static bool on_news(void *context, uint32_t body, struct input *ret) {
    struct stage *s = context;
    if (!s->news)
        return false;
    s->news = false;
    *ret = (struct input){.kind = INPUT_EMPTY};
    ret->empty.group = body;
    return true;
}

static void on_death(void *context, uint32_t node) {
    struct stage *s = context;
    (void)node;
    s->deaths++;
}

static void begin(struct stage *s) {
    static const struct limits limits = {.nodes = NODES, .roots = 1, .heap_bytes = 64};
    struct world_config c = {
        .link = {.latency_ns = 10 * US, .connect_ns = 50 * US, .durable_ns = 100 * US},
        .hash = true,
        .daemon = make_daemon,
        .lower = make_lower,
        .lower_bytes = 64,
        .context = s,
        .launchers = true,
        .clients = 1,
        .process = on_process,
        .news = on_news,
        .died = on_death};
    c.prim.limits = limits;
    s->w = world_new(&c);
    CHECK(s->w != NULL);
}

static void boot_all(struct stage *s) {
    for (uint32_t i = 0; i < ALL; i++)
        world_boot(s->w, i, i == SEAT);
}

static const struct kept *heard(const struct body *b, enum input_kind kind, uint32_t nth) {
    static const struct kept nothing;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->heard[i].in.kind == kind && nth-- == 0)
            return &b->heard[i];
    CHECK(false); /* it was not heard */
    return &nothing;
}

static uint32_t count(const struct body *b, enum input_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->count; i++)
        n += b->heard[i].in.kind == kind;
    return n;
}

/* ---- links ---- */

static void open_launcher(struct body *b, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_OPEN);
    e->open = (struct effect_open){.node = 1, .purpose = PURPOSE_LAUNCHER, .cookie = 7};
    (void)b;
}

static void open_client(struct body *b, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_OPEN);
    e->open = (struct effect_open){.purpose = PURPOSE_CLIENT, .cookie = 8};
    (void)b;
}

static void say(struct body *b, struct effects *out) {
    effects_send(out, b->link, 0, MESSAGE_COMMAND, bytes_from_str("do it"), (struct bytes){0});
}

static void test_links_lead_to_launchers_and_to_the_root(void) {
    static struct stage s;
    s = (struct stage){0};
    s.bodies[1].act = open_launcher;
    s.bodies[CLIENT].act = open_client;
    s.bodies[1].act_at = s.bodies[CLIENT].act_at = US;
    begin(&s);
    boot_all(&s);
    world_run_until(s.w, 100 * US);
    const struct input_link *up = &heard(&s.bodies[1], INPUT_LINK_UP, 0)->in.link;
    CHECK(up->peer == 1 && up->role == ROLE_LAUNCHER && up->cookie == 7);
    up = &heard(&s.bodies[LAUNCHER1], INPUT_LINK_UP, 0)->in.link;
    CHECK(up->peer == 1 && up->role == ROLE_KEEPER && up->cookie == 0);
    up = &heard(&s.bodies[CLIENT], INPUT_LINK_UP, 0)->in.link;
    CHECK(up->peer == SEAT && up->role == ROLE_MANAGER && up->cookie == 8);
    up = &heard(&s.bodies[SEAT], INPUT_LINK_UP, 0)->in.link;
    CHECK(up->peer == NO_NODE && up->role == ROLE_CLIENT);
    CHECK_EQ(count(&s.bodies[LAUNCHER0], INPUT_LINK_UP), 0);
    for (uint32_t i = 0; i < ALL; i++)
        CHECK_EQ(s.lower[i], 0); /* it is the daemons' affair */
    world_free(s.w);
}

/* Opens, then speaks. */
static void open_and_say(struct body *b, struct effects *out) {
    if (b->link != 0) {
        say(b, out);
        return;
    }
    open_launcher(b, out);
    effects_timer(out, 1, b->act_at + 80 * US);
}

static void test_messages_and_ends_of_links(void) {
    static struct stage s;
    s = (struct stage){0};
    s.bodies[1].act = open_and_say;
    s.bodies[1].act_at = US;
    begin(&s);
    boot_all(&s);
    world_run_until(s.w, 95 * US);
    const struct kept *k = heard(&s.bodies[LAUNCHER1], INPUT_MESSAGE, 0);
    CHECK_STR(k->text, "do it");
    CHECK_EQ(k->in.message.peer, 1);
    CHECK_EQ(k->in.now, 91 * US);
    s.bodies[1].link = 0;
    s.bodies[1].act_at = 100 * US;
    world_crash(s.w, 1); /* its next life opens anew */
    world_boot(s.w, 1, false);
    world_run_until(s.w, 170 * US);
    CHECK_EQ(count(&s.bodies[LAUNCHER1], INPUT_LINK_DOWN), 1);
    CHECK_EQ(count(&s.bodies[LAUNCHER1], INPUT_LINK_UP), 2);
    world_crash(s.w, LAUNCHER1);
    world_run_until(s.w, 300 * US);
    CHECK_EQ(heard(&s.bodies[1], INPUT_LINK_DOWN, 0)->in.link.role, ROLE_LAUNCHER);
    CHECK_EQ(s.deaths, 2);
    world_free(s.w);
}

/* ---- what is outside ---- */

static void kill_group(struct body *b, struct effects *out) {
    (void)b;
    effects_add(out, EFFECT_GROUP_KILL)->group.group = 0;
}

static void test_processes_are_outside(void) {
    static struct stage s;
    s = (struct stage){0};
    s.bodies[LAUNCHER1].act = kill_group;
    s.bodies[LAUNCHER1].act_at = US;
    begin(&s);
    boot_all(&s);
    world_pause(s.w, LAUNCHER1, 0);
    world_run_until(s.w, 4 * US);
    CHECK_EQ(s.processes, 1);
    CHECK_EQ(count(&s.bodies[LAUNCHER1], INPUT_EMPTY), 0);
    world_pause(s.w, LAUNCHER1, 50 * US);
    world_run_until(s.w, 60 * US);
    CHECK_EQ(heard(&s.bodies[LAUNCHER1], INPUT_EMPTY, 0)->in.now, 50 * US);
    world_free(s.w);
}

/* ---- the journal ---- */

static void log_three(struct body *b, struct effects *out) {
    static const struct {
        uint64_t key;
        bool closes;
        const char *text;
    } events[] = {{5, false, "five"}, {6, false, "six"}, {5, true, "five is over"}};
    (void)b;
    for (uint64_t i = 0; i < 3; i++) {
        struct effect *e = effects_add(out, EFFECT_LOG);
        e->log = (struct effect_log){.ticket = i + 1,
                                     .key = events[i].key,
                                     .closes = events[i].closes,
                                     .body = bytes_from_str(events[i].text)};
    }
    struct effect *e = effects_add(out, EFFECT_FETCH);
    e->fetch.ticket = 9;
    e->fetch.key = 6;
}

static void test_what_was_logged_is_told_to_the_next_life(void) {
    static struct stage s;
    s = (struct stage){0};
    struct body *seat = &s.bodies[SEAT];
    seat->act = log_three;
    seat->act_at = US;
    begin(&s);
    boot_all(&s);
    CHECK_EQ(count(seat, INPUT_REPLAY), 1); /* nothing yet: the last one */
    CHECK_EQ(heard(seat, INPUT_REPLAY, 0)->in.replay.body.len, 0);
    world_run_until(s.w, 200 * US);
    CHECK_EQ(count(seat, INPUT_LOGGED), 3);
    CHECK_EQ(heard(seat, INPUT_LOGGED, 2)->in.logged.ticket, 3);
    CHECK_EQ(heard(seat, INPUT_LOGGED, 2)->in.now, 101 * US);
    CHECK_EQ(heard(seat, INPUT_FETCHED, 0)->in.fetched.body.len, 0); /* it was not there yet */
    seat->act_at = 250 * US;
    world_crash(s.w, SEAT);
    world_boot(s.w, SEAT, true);
    CHECK_EQ(count(seat, INPUT_REPLAY), 1 + 4); /* what is over was so just now */
    CHECK_STR(heard(seat, INPUT_REPLAY, 1)->text, "five");
    CHECK_STR(heard(seat, INPUT_REPLAY, 3)->text, "five is over");
    CHECK_EQ(heard(seat, INPUT_REPLAY, 2)->in.replay.key, 6);
    world_run_until(s.w, 290 * US);
    CHECK_STR(heard(seat, INPUT_FETCHED, 1)->text, "six");
    world_crash(s.w, SEAT); /* before the disk had taken it */
    CHECK_EQ(world_journal(s.w, SEAT)->count, 3);
    world_free(s.w);
}

static void test_a_full_disk(void) {
    static struct stage s;
    s = (struct stage){0};
    struct body *seat = &s.bodies[SEAT];
    seat->act = log_three;
    seat->act_at = US;
    begin(&s);
    boot_all(&s);
    world_fill_disk(s.w, SEAT, 200 * US);
    world_run_until(s.w, 150 * US);
    CHECK_EQ(count(seat, INPUT_LOGGED), 3);
    CHECK_EQ(heard(seat, INPUT_LOGGED, 1)->in.logged.error, -ENOSPC);
    CHECK_EQ(world_journal(s.w, SEAT)->count, 0);
    world_free(s.w);
}

static void test_what_is_long_over_is_not_told(void) {
    struct journal j = {0};
    struct input_replay r;
    for (uint64_t key = 1; key <= LOG_OVER_KEPT + 10; key++) {
        journal_append(&j, key, false, bytes_from_str("begins"));
        journal_append(&j, key, true, bytes_from_str("ends"));
    }
    journal_append(&j, 9999, false, bytes_from_str("goes on"));
    uint32_t at = 0, told = 0;
    while (journal_next(&j, &at, &r)) {
        CHECK(r.key > 10 && !r.over);
        told++;
    }
    CHECK_EQ(told, 2 * LOG_OVER_KEPT + 1);
    /* The highest of those that are over is told of, however long ago that was. */
    journal_append(&j, 9000, false, bytes_from_str("high"));
    journal_append(&j, 9000, true, bytes_from_str("over"));
    for (uint64_t key = 5000; key < 5000 + LOG_OVER_KEPT; key++)
        journal_append(&j, key, true, bytes_from_str("one"));
    uint32_t over = 0;
    for (at = 0; journal_next(&j, &at, &r);)
        over += r.over && r.key == 9000;
    CHECK_EQ(over, 1);
    journal_fini(&j);
}

int main(void) {
    TEST(test_links_lead_to_launchers_and_to_the_root);
    TEST(test_messages_and_ends_of_links);
    TEST(test_processes_are_outside);
    TEST(test_what_was_logged_is_told_to_the_next_life);
    TEST(test_a_full_disk);
    TEST(test_what_is_long_over_is_not_told);
    return tap_finish();
}
