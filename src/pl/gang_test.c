/* SPDX-License-Identifier: MIT */
/* Tests of gangs at the launcher: who is held and let go, in which order; and that two gangs never run at once. */
#include "base/random.h"
#include "launcher_alone.h"

enum { GROUPS = 12, STEPS = 4000, SEEDS = 20 };

static const struct pl_config config = {.groups = GROUPS,
                                        .processes = 4 * GROUPS,
                                        .setup_bytes = 8192,
                                        .resend_ns = NS_PER_S,
                                        .resend_max_ns = NS_PER_S,
                                        .means = GANG_BY_NAMESPACE,
                                        .prompt = true};

/* What the world would have done by now. */
static struct group { bool open, started, frozen; } groups[GROUPS];

static void tell_send(struct bench *b, const struct effect_send *s) {
    union message m;
    if (s->type == MESSAGE_HOLD)
        say(b, "HOLD");
    if (s->type != MESSAGE_TURNED)
        return;
    CHECK_EQ(message_decode(s->type, s->head, NULL, &m), 0);
    CHECK(m.turned.means == GANG_BY_NAMESPACE && m.turned.prompt);
    CHECK_EQ(m.turned.at_ns, b->now);
    say(b, "TURNED %llu to %u in %u missed %u", (unsigned long long)m.turned.number, m.turned.slot,
        m.turned.took_ns, m.turned.missed);
}

static void tell(struct bench *b, const struct effect *e) {
    struct group *g = e->kind >= EFFECT_GROUP_OPEN && e->kind <= EFFECT_GROUP_SIZE
                          ? &groups[e->group.group]
                          : NULL;
    switch (e->kind) {
    case EFFECT_SEND:
        tell_send(b, &e->send);
        break;
    case EFFECT_PROMPT:
        say(b, e->prompt ? "prompt" : "at ease");
        break;
    case EFFECT_GROUP_OPEN:
        *g = (struct group){.open = true};
        break;
    case EFFECT_GROUP_START:
        CHECK(g->open && !g->started);
        g->started = true;
        say(b, "start %u", e->group.group);
        break;
    case EFFECT_GROUP_FREEZE:
        CHECK(g->started && g->frozen != (e->group.value != 0)); /* nothing is said twice */
        g->frozen = e->group.value != 0;
        say(b, "%s %u", e->group.value ? "hold" : "go", e->group.group);
        break;
    case EFFECT_GROUP_KILL:
        say(b, "kill %u", e->group.group);
        break;
    case EFFECT_GROUP_SIGNAL:
        say(b, "signal %u", e->group.group);
        break;
    case EFFECT_GROUP_CLOSE:
        *g = (struct group){.open = false};
        break;
    default:
        break;
    }
}

static const char *setup(struct bench *b, uint64_t run, uint64_t slots) {
    return setup_of(b, &(struct setup){.run = run, .count = 2, .size = 2, .window = 100}, slots);
}

static const char *command(struct bench *b, uint64_t run, enum verb verb) {
    union message m = {.command = {.run = run, .verb = (uint8_t)verb, .value = 2}};
    return message(b, MESSAGE_COMMAND, &m);
}

static const char *launch(struct bench *b, uint64_t run, uint64_t slots) {
    setup(b, run, slots);
    return command(b, run, VERB_START);
}

static const char *turn_of(struct bench *b, uint64_t number, uint8_t slot, bool tells) {
    union message m = {.turn = {.number = number, .slot = slot, .tell = tells, .quantum_us = 1000}};
    return message(b, MESSAGE_TURN, &m);
}

static const char *cycle_of(struct bench *b, uint64_t number, uint8_t slot, uint64_t cycle) {
    union message m = {
        .turn = {.number = number, .slot = slot, .quantum_us = 1000, .cycle = cycle}};
    return message(b, MESSAGE_TURN, &m);
}

/* The timer rings, so many microseconds after what was last. */
static const char *slice(struct bench *b, uint64_t us) {
    b->now += us * NS_PER_US;
    return feed(b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_SLICE}});
}

static const char *turn(struct bench *b, uint8_t slot) {
    return turn_of(b, ++b->number, slot, false);
}

static const char *move(struct bench *b, uint64_t version, uint64_t run, uint64_t slots) {
    uint8_t row[SLOTS_ROW_BYTES];
    store_le64(row, run);
    store_le64(row + 8, slots);
    union message m = {.slots = {.version = version, .rows = bytes_of(row, sizeof row)}};
    return message(b, MESSAGE_SLOTS, &m);
}

static const char *child(struct bench *b, uint32_t group, uint32_t index) {
    return feed(b,
                (struct input){.kind = INPUT_CHILD,
                               .child = {.group = group, .index = index, .event = CHILD_EXITED}});
}

static const char *end(struct bench *b, uint32_t group) {
    static char text[TEXT];
    CHECK_STR(child(b, group, 0), "");
    memcpy(text, child(b, group, 1), TEXT);
    feed(b, (struct input){.kind = INPUT_EMPTY, .empty = {.group = group}});
    return text;
}

static void begin(struct bench *b) {
    memset(groups, 0, sizeof groups);
    launcher_begin(b, &config);
    link_up(b, LINK);
}

/* ---- directed ---- */

static void test_turns(void) {
    struct bench b;
    begin(&b);
    CHECK_STR(launch(&b, 10, 1), "start 0");
    CHECK_STR(turn(&b, 0), "prompt");
    CHECK_STR(launch(&b, 11, 2), ""); /* not its turn */
    CHECK_STR(turn(&b, 1), "hold 0; start 1");
    CHECK_STR(turn(&b, 0), "hold 1; go 0");
    CHECK_STR(turn(&b, 0), "");
    CHECK_STR(turn_of(&b, b.number - 1, 1, false), ""); /* late */
    CHECK_STR(turn(&b, 7), "hold 0");                   /* nobody here belongs to it */
    CHECK_STR(launch(&b, 12, 0), "start 2");            /* to every slot */
    CHECK_STR(turn(&b, 1), "go 1");
    launcher_end(&b);
}

static void test_only_one_row_is_left(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 1 | 2);
    turn(&b, 1);
    CHECK_STR(turn(&b, GANG_ALL), "go 0; at ease");
    /* Another row, before anybody has said so: what runs stays. */
    CHECK_STR(launch(&b, 12, 4), "");
    CHECK_STR(command(&b, 10, VERB_SUSPEND), "hold 0");
    CHECK_STR(command(&b, 11, VERB_SUSPEND), "hold 1; start 2");
    CHECK_STR(command(&b, 10, VERB_RESUME), "");
    CHECK_STR(turn(&b, 0), "hold 2; go 0; prompt");
    launcher_end(&b);
}

static void test_nothing_was_heard_yet(void) {
    struct bench b;
    begin(&b);
    CHECK_STR(launch(&b, 10, 1), "start 0");
    CHECK_STR(launch(&b, 11, 2), "");
    CHECK_STR(launch(&b, 12, 1), "start 2");
    end(&b, 0);
    CHECK_STR(end(&b, 2), "start 1");
    launcher_end(&b);
}

static void test_the_next_at_once(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 4);
    launch(&b, 12, 8);
    turn(&b, 2);
    turn(&b, 3);
    CHECK_STR(turn(&b, 0), "hold 2; go 0");
    CHECK_STR(end(&b, 0), "go 1"); /* the next slot that has somebody */
    CHECK_STR(end(&b, 1), "go 2");
    CHECK_STR(turn(&b, 1), "hold 2"); /* the strobe counts */
    CHECK_STR(turn(&b, 3), "go 2");
    launcher_end(&b);
}

static void test_users_hold_and_end_in_foreign_slots(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 2);
    turn(&b, 1);
    CHECK_STR(turn(&b, 0), "hold 1; go 0");
    CHECK_STR(command(&b, 11, VERB_SUSPEND), "");
    CHECK_STR(turn(&b, 1), "hold 0"); /* its user holds it */
    CHECK_STR(command(&b, 11, VERB_RESUME), "go 1");
    CHECK_STR(turn(&b, 0), "hold 1; go 0");
    CHECK_STR(command(&b, 11, VERB_SIGNAL), "signal 1");
    CHECK_STR(command(&b, 11, VERB_END), "signal 1"); /* seen when it is its turn */
    CHECK_STR(command(&b, 11, VERB_KILL), "kill 1");
    CHECK_STR(end(&b, 1), "");
    CHECK_STR(launch(&b, 12, 2), "");
    CHECK_STR(command(&b, 12, VERB_SUSPEND), "");
    CHECK_STR(turn(&b, 1), "hold 0; start 2; hold 2");
    CHECK_STR(launch(&b, 13, 1), "");
    CHECK_STR(command(&b, 13, VERB_KILL), ""); /* never began */
    launcher_end(&b);
}

static void test_slots_change(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 2);
    turn(&b, 1);
    turn(&b, 0);
    CHECK_STR(move(&b, 5, 11, 1 | 2), "go 1"); /* its columns are idle there as well */
    CHECK_STR(move(&b, 4, 11, 2), "");         /* said before */
    CHECK_STR(move(&b, 5, 77, 2), "");
    CHECK_STR(move(&b, 6, 10, 4), "hold 0");
    CHECK_STR(turn(&b, 2), "hold 1; go 0");
    launcher_end(&b);
}

/* What a former life of the manager said of slots is not compared with what this one says. */
static void test_slots_of_another_life(void) {
    const uint64_t first = (uint64_t)1 << 32, second = (uint64_t)2 << 32;
    struct bench b;
    begin(&b);
    launch(&b, 1, 1);
    launch(&b, 2, 2);
    move(&b, first, 1, 1);
    move(&b, first, 2, 2);
    CHECK_STR(turn(&b, 1), "hold 0; start 1; prompt");
    CHECK_STR(move(&b, second, 1, 2), "hold 1; go 0"); /* it has changed places with the other */
    CHECK_STR(turn(&b, 0), "hold 0");                  /* whose turn it is, nobody knows yet */
    CHECK_STR(move(&b, second, 2, 1), "go 1");
    CHECK_STR(turn(&b, 1), "hold 1; go 0");
    launcher_end(&b);
}

static void test_a_cycle(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 2);
    launch(&b, 12, 8);
    turn(&b, 1);
    turn(&b, 3);
    CHECK_STR(cycle_of(&b, ++b.number, 0, 1 | 2 | 8), "hold 2; go 0");
    uint64_t began = b.now;
    CHECK_STR(slice(&b, 999), ""); /* too early */
    CHECK_STR(slice(&b, 1), "hold 0; go 1");
    CHECK_EQ(b.pl->gang.next_at, began + 2 * NS_PER_MS);
    CHECK_STR(slice(&b, 1000), "hold 1; go 2");
    CHECK_STR(slice(&b, 1300), "hold 2; go 0"); /* late, and on the grid again */
    CHECK_STR(slice(&b, 700), "hold 0; go 1");
    CHECK_STR(slice(&b, 3000), "");             /* a whole round late */
    CHECK_STR(slice(&b, 2000), "hold 1; go 0"); /* two turns late */
    CHECK_STR(end(&b, 0), "go 1");
    CHECK_STR(slice(&b, 1000), ""); /* its turn anyway */
    CHECK_STR(slice(&b, 1000), "hold 1; go 2");
    CHECK_STR(turn(&b, 1), "hold 2; go 1"); /* a strobe ends it */
    CHECK_STR(slice(&b, 5000), "");
    launcher_end(&b);
}

/* One slot, or turns that are too short, are no cycle. */
static void test_no_cycle(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 2);
    cycle_of(&b, ++b.number, 0, 1);
    CHECK_STR(slice(&b, 5000), "");
    cycle_of(&b, ++b.number, GANG_ALL, 3);
    CHECK_STR(slice(&b, 5000), "");
    union message m = {.turn = {.number = ++b.number, .quantum_us = 99, .cycle = 3}};
    message(&b, MESSAGE_TURN, &m);
    CHECK_STR(slice(&b, 5000), "");
    launcher_end(&b);
}

static void test_how_long_it_took(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    turn_of(&b, 5, 0, false);
    turn_of(&b, 9, 1, true);
    b.now += 30 * NS_PER_US;
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_TURNED}}),
              "TURNED 9 to 1 in 30000 missed 3");
    turn_of(&b, (uint64_t)1 << STROBE_EPOCH_SHIFT | 7, 1, true); /* of another manager */
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_TURNED}}),
              "TURNED 1099511627783 to 1 in 0 missed 0");
    launcher_end(&b);
}

/* A strobe that came past the manager, and the same by it. */
static void test_two_ways(void) {
    struct bench b;
    uint8_t body[64];
    begin(&b);
    launch(&b, 10, 1);
    launch(&b, 11, 2);
    union message m = {.turn = {.slot = 1, .quantum_us = 1}};
    long len = message_encode(MESSAGE_TURN, &m, room_of(body + 2, sizeof body - 2));
    store_le16(body, MESSAGE_TURN);
    struct input in = {
        .kind = INPUT_STROBE,
        .strobe = {.channel = CHANNEL_TURN, .number = 40, .body = bytes_of(body, 2 + (size_t)len)}};
    CHECK_STR(feed(&b, in), "hold 0; start 1; prompt");
    CHECK_STR(turn_of(&b, 40, 1, false), "");
    for (size_t cut = 0; cut < in.strobe.body.len; cut++) {
        struct input bad = in;
        bad.strobe.number = 41;
        bad.strobe.body.len = cut;
        CHECK_STR(feed(&b, bad), "");
    }
    store_le16(body, MESSAGE_LAUNCH);
    in.strobe.number = 42;
    CHECK_STR(feed(&b, in), "");
    CHECK_STR(turn_of(&b, 41, 0, false), "hold 1; go 0");
    /* Within one machine it counts when it was sent: two turns are over since. */
    m.turn = (struct message_turn){
        .slot = 0, .quantum_us = 1000, .cycle = 3, .sent_ns = b.now - 2500 * NS_PER_US};
    message_encode(MESSAGE_TURN, &m, room_of(body + 2, sizeof body - 2));
    store_le16(body, MESSAGE_TURN);
    in.strobe.number = 43;
    CHECK_STR(feed(&b, in), "");
    CHECK_EQ(b.pl->gang.next_at, b.now + 500 * NS_PER_US);
    CHECK_STR(slice(&b, 500), "hold 0; go 1");
    /* Of another machine the clock says nothing: the turn begins when we hear of it. */
    in.strobe.number = 44;
    in.strobe.far = true;
    CHECK_STR(feed(&b, in), "hold 1; go 0");
    CHECK_EQ(b.pl->gang.next_at, b.now + NS_PER_MS);
    launcher_end(&b);
}

/* A new manager is told that what waits for its turn has been started: it would not be told again. */
static void test_a_new_manager_while_one_waits(void) {
    struct bench b;
    begin(&b);
    launch(&b, 10, 1);
    turn(&b, 0);
    launch(&b, 11, 2);
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_LINK_UP,
                                      .link = {.link = LINK, .role = ROLE_KEEPER}}),
              "HOLD; HOLD");
    CHECK_STR(command(&b, 11, VERB_START), "");
    CHECK_STR(turn(&b, 1), "hold 0; start 1");
    launcher_end(&b);
}

/* ---- whatever happens ---- */

/* All that runs belongs to one slot; who is held by its user does not run; and a slot that was named runs. */
static void judge(struct bench *b) {
    const struct pl *p = b->pl;
    uint64_t together = UINT64_MAX;
    RUNS_EACH (r, p) {
        const struct group *g = &groups[run_group(p, r)];
        if (r->state != RUN_STARTED || r->empty || r->killing || r->left == 0)
            continue; /* none, or not for long */
        CHECK_EQ(r->still, g->frozen);
        if (r->suspended)
            CHECK(g->frozen);
        if (!g->frozen)
            together &= r->slots == 0 ? UINT64_MAX : r->slots;
        bool named = p->gang.heard && p->gang.slot != GANG_ALL && !p->gang.over;
        bool member = r->slots == 0 || (named && r->slots >> p->gang.slot & 1);
        if (named)
            CHECK_EQ(!g->frozen, member && !r->suspended);
    }
    CHECK(together != 0);
}

static struct run *pick(struct bench *b, struct random *r) {
    struct run *run = &b->pl->runs[random_below(r, GROUPS)];
    return run->state == RUN_FREE ? NULL : run;
}

static void end_one(struct bench *b, struct run *r) {
    uint32_t group = run_group(b->pl, r);
    if (r->state != RUN_STARTED)
        return;
    for (uint32_t i = 0; i < r->count; i++)
        child(b, group, i);
    judge(b);
    feed(b, (struct input){.kind = INPUT_EMPTY, .empty = {.group = group}});
    judge(b);
    command(b, r->run, VERB_DROP);
}

static void act(struct bench *b, struct random *r, uint64_t step) {
    uint64_t slots = random_below(r, 8); /* 0: all */
    struct run *run = pick(b, r);
    switch (random_below(r, 9)) {
    case 0:
        if (b->pl->run_count < GROUPS)
            launch(b, 1000 + step, slots);
        break;
    case 1:
        if (run != NULL)
            end_one(b, run);
        break;
    case 2:
        if (run != NULL)
            command(b, run->run, random_chance(r, 1, 2) ? VERB_SUSPEND : VERB_RESUME);
        break;
    case 3:
        if (run != NULL)
            move(b, random_below(r, step + 1), run->run, slots);
        break;
    case 4:
        if (run != NULL && random_chance(r, 1, 4))
            command(b, run->run, random_chance(r, 1, 2) ? VERB_KILL : VERB_END);
        break;
    case 5:
        slice(b, random_below(r, 3000));
        break;
    case 6:
        cycle_of(b, random_below(r, 2 * step + 2), (uint8_t)random_below(r, 4),
                 random_below(r, 16));
        break;
    default:
        turn_of(b, random_below(r, 2 * step + 2),
                random_chance(r, 1, 6) ? GANG_ALL : (uint8_t)random_below(r, 4), false);
        break;
    }
}

static void test_never_two_gangs(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct bench b;
        struct random r;
        begin(&b);
        random_init(&r, seed);
        for (uint64_t step = 0; step < STEPS; step++) {
            act(&b, &r, step);
            judge(&b);
            CHECK(pl_wrong(b.pl) == NULL);
        }
        launcher_end(&b);
    }
}

int main(void) {
    TEST(test_turns);
    TEST(test_only_one_row_is_left);
    TEST(test_nothing_was_heard_yet);
    TEST(test_the_next_at_once);
    TEST(test_users_hold_and_end_in_foreign_slots);
    TEST(test_slots_change);
    TEST(test_slots_of_another_life);
    TEST(test_a_cycle);
    TEST(test_no_cycle);
    TEST(test_how_long_it_took);
    TEST(test_two_ways);
    TEST(test_a_new_manager_while_one_waits);
    TEST(test_never_two_gangs);
    return tap_finish();
}
