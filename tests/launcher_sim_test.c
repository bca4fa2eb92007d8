/* SPDX-License-Identifier: MIT */
/* The launcher's machine on the model kernel, with a manager that says anything at any time, dies, comes back and
 * loses what was under way.
 *
 * Whatever happens: a run that is said to be over has no process left; every run ends when it is killed; what was
 * written and taken is complete, in order, and as much as the end says; nothing is left when all is
 * dropped. */
#include <stdlib.h>

#include "base/random.h"
#include "base/units.h"
#include "pl/launcher.h"
#include "sim/act.h"
#include "sim/kernel.h"
#include "tap.h"
#include "wire/message.h"
#include "wire/setup.h"
#include "wire/spec.h"

#ifdef STORM_SLOW
enum { SEEDS = 20 };
#else
enum { SEEDS = 300 };
#endif
enum { GROUPS = 8, PROCESSES = 20, RUNS = 24, COUNT_MAX = 4, TIMERS = 4, ACTIONS = 400 };

struct run_seen {
    bool known;   /* SETUP was said */
    bool over;    /* ENDED was heard */
    bool dropped; /* DROP was said */
    bool maybe;   /* whether it was taken in was not heard */
    bool hurt;    /* END, KILL, a signal or a lost lease: it may end before all is written */
    uint32_t count;
    struct ending end;
    uint64_t next[COUNT_MAX][2];
};

struct trial {
    struct random random;
    struct sim_kernel *kernel;
    struct machine machine;
    struct pl *pl;
    struct effects out;
    uint64_t timers[TIMERS];
    uint64_t now;
    uint32_t link; /* the manager's, 0 if there is none */
    uint32_t links;
    bool deaf; /* what is said to the manager gets lost */
    struct run_seen runs[RUNS];
};

static const char *const scripts[] = {
    "a exit 0",
    "a run 1ms-30ms exit 2",
    "a write 20000 error 500 run 5ms",
    "a signal 11",
    "a ignore-term hang",
    "a fork-away run 3ms write 100 run 10ms",
    "a fork exit 1",
    "a run 2ms write 200000",
    "a catch-term 3 write 5000 hang",
    "a cat exit 0",
    "a write 9 run 5ms write 9 run 5ms write 9 run 5ms error 9 write 9 run 5ms write 9",
};

static const struct pl_config config = {.groups = GROUPS,
                                        .processes = PROCESSES,
                                        .setup_bytes = 4096,
                                        .resend_ns = 20 * NS_PER_MS,
                                        .resend_max_ns = 200 * NS_PER_MS,
                                        .lease_ns = NS_PER_S};

static void feed(struct trial *t, struct input *in);

/* ---- the manager hears ---- */

static void hear_output(struct trial *t, const struct message_output *m) {
    struct run_seen *r = &t->runs[m->run % RUNS];
    uint64_t *next = &r->next[m->rank][m->stream - 1];
    CHECK(r->known && m->rank < r->count);
    if (m->offset > *next)
        return; /* what is missing comes again, and this with it */
    for (size_t i = 0; i < m->bytes.len; i++)
        CHECK(m->bytes.at[i] == act_byte(m->offset + i));
    if (*next < m->offset + m->bytes.len)
        *next = m->offset + m->bytes.len;
}

static void hear_ended(struct trial *t, const struct message_ended *m) {
    struct run_seen *r = &t->runs[m->run % RUNS];
    struct ending e;
    CHECK(ending_load(&e, m->ends, 0));
    if (e.more)
        return; /* one of them has ended badly */
    CHECK_EQ(sim_kernel_alive(t->kernel, m->run), 0);
    if (e.cause == CAUSE_UNKNOWN) {
        CHECK(!r->known || r->dropped || r->over || r->maybe);
        r->over = r->over || r->maybe;
        r->dropped = r->dropped || r->maybe;
        return;
    }
    CHECK(r->known);
    if (r->over) /* it does not change its mind */
        CHECK(r->end.cause == e.cause && r->end.value == e.value && r->end.output == e.output);
    r->over = true;
    r->end = e;
}

static void hear(struct trial *t, const struct effect_send *s) {
    static uint8_t body[256 * 1024];
    union message m;
    CHECK_EQ(s->links[0], t->link);
    if (t->deaf)
        return;
    memcpy(body, s->head.at, s->head.len);
    if (s->tail.len > 0)
        memcpy(body + s->head.len, s->tail.at, s->tail.len);
    CHECK_EQ(message_decode(s->type, bytes_of(body, s->head.len + s->tail.len), NULL, &m), 0);
    if (s->type == MESSAGE_OUTPUT)
        hear_output(t, &m.output);
    else if (s->type == MESSAGE_ENDED)
        hear_ended(t, &m.ended);
    else if (s->type == MESSAGE_HOLD)
        CHECK(t->runs[m.hold.run % RUNS].known && !t->runs[m.hold.run % RUNS].over);
}

/* ---- the world ---- */

static void carry(struct trial *t, const struct effect *e) {
    if (e->kind == EFFECT_SEND)
        hear(t, &e->send);
    else if (e->kind == EFFECT_TIMER)
        t->timers[e->timer.id] = e->timer.at;
    else if (e->kind != EFFECT_CLOSE)
        sim_kernel_carry(t->kernel, e, t->now);
    if (e->kind == EFFECT_CLOSE)
        CHECK_EQ(e->close.refusal, 0);
}

static void feed(struct trial *t, struct input *in) {
    in->now = t->now;
    effects_clear(&t->out);
    t->machine.step(t->machine.self, in, &t->out);
    for (uint32_t i = 0; i < t->out.count; i++)
        carry(t, &t->out.list[i]);
}

/* Everything that happens until then. */
static void let_pass(struct trial *t, uint64_t until) {
    for (;;) {
        struct input in;
        while (sim_kernel_tell(t->kernel, t->now, &in))
            feed(t, &in);
        uint32_t due = 0;
        uint64_t next = sim_kernel_next(t->kernel);
        for (uint32_t i = 1; i < TIMERS; i++)
            if (t->timers[i] != 0 && t->timers[i] <= next) {
                next = t->timers[i];
                due = i;
            }
        if (next > until)
            break;
        t->now = next > t->now ? next : t->now;
        if (due == 0)
            continue;
        t->timers[due] = 0;
        in = (struct input){.kind = INPUT_TIMER, .timer = {.id = due}};
        feed(t, &in);
    }
    t->now = until;
}

/* ---- the manager says ---- */

static void say(struct trial *t, uint16_t type, const union message *m) {
    uint8_t body[2048];
    long len = message_encode(type, m, room_of(body, sizeof body));
    CHECK(len >= 0);
    struct input in = {
        .kind = INPUT_MESSAGE,
        .message = {.link = t->link, .type = type, .body = bytes_of(body, (size_t)len)}};
    if (t->link != 0)
        feed(t, &in);
}

static void command(struct trial *t, uint64_t run, enum verb verb, uint32_t value) {
    union message m = {.command = {.run = run, .verb = (uint8_t)verb, .value = value}};
    say(t, MESSAGE_COMMAND, &m);
}

static void come(struct trial *t) {
    struct input in = {.kind = INPUT_LINK_UP, .link = {.link = ++t->links, .role = ROLE_KEEPER}};
    t->link = t->links;
    t->deaf = false;
    feed(t, &in);
}

static void go(struct trial *t) {
    struct input in = {.kind = INPUT_LINK_DOWN, .link = {.link = t->link, .role = ROLE_KEEPER}};
    feed(t, &in);
    t->link = 0;
}

static void set_up(struct trial *t, uint64_t run) {
    uint8_t spec_bytes[256], setup_bytes[512];
    char words[128];
    struct run_seen *r = &t->runs[run];
    const char *script = scripts[random_below(&t->random, sizeof scripts / sizeof *scripts)];
    snprintf(words, sizeof words, "%s", script);
    for (char *c = words; *c != '\0'; c++)
        if (*c == ' ')
            *c = '\0';
    if (r->known || t->link == 0)
        return;
    r->known = true;
    r->maybe = t->deaf;
    r->count = 1 + (uint32_t)random_below(&t->random, COUNT_MAX);
    struct spec spec = {.stdin_mode = STDIN_ALL,
                        .program = bytes_from_str(random_chance(&t->random, 1, 20) ? "/none" : "a"),
                        .arguments = bytes_of(words, strlen(script) + 1)};
    long spec_len = spec_encode(&spec, room_of(spec_bytes, sizeof spec_bytes));
    struct setup setup = {.run = run,
                          .count = r->count,
                          .size = r->count,
                          .window = 8192,
                          .spec = bytes_of(spec_bytes, (size_t)spec_len)};
    long len = setup_encode(&setup, room_of(setup_bytes, sizeof setup_bytes));
    union message m = {.setup = {.run = run, .setup = bytes_of(setup_bytes, (size_t)len)}};
    say(t, MESSAGE_SETUP, &m);
}

static void take(struct trial *t, uint64_t run) {
    for (uint32_t i = 0; i < 2 * t->runs[run].count; i++) {
        union message m = {.taken = {.run = run,
                                     .rank = i / 2,
                                     .stream = (uint8_t)(i % 2 + 1),
                                     .offset = t->runs[run].next[i / 2][i % 2]}};
        say(t, MESSAGE_TAKEN, &m);
    }
}

static void type(struct trial *t, uint64_t run) {
    uint8_t bytes[100];
    for (uint64_t i = 0; i < sizeof bytes; i++)
        bytes[i] = act_byte(i);
    union message m = {
        .typed = {
            .run = run, .rank = RANK_ALL, .end = true, .bytes = bytes_of(bytes, sizeof bytes)}};
    say(t, MESSAGE_TYPED, &m);
}

static uint64_t output_of(const struct run_seen *r) {
    uint64_t output = 0;
    for (uint32_t i = 0; i < 2 * r->count; i++)
        output += r->next[i / 2][i % 2];
    return output;
}

static bool complete(const struct run_seen *r) {
    return output_of(r) >= r->end.output;
}

static void judge_output(const struct run_seen *r) {
    if (!r->over || r->dropped)
        return;
    if (r->end.ours || r->hurt || r->end.cause == CAUSE_LOST)
        CHECK(complete(r));
    else
        CHECK_EQ(output_of(r), r->end.output);
}

static void drop(struct trial *t, uint64_t run) {
    struct run_seen *r = &t->runs[run];
    if (t->link == 0 || !r->known || (!r->over && !random_chance(&t->random, 1, 50)))
        return;
    if (r->over && !complete(r)) /* its output may still come */
        return;
    judge_output(r);
    r->dropped = r->hurt = true;
    command(t, run, VERB_DROP, 0);
}

static void act(struct trial *t) {
    static const enum verb verbs[] = {VERB_SUSPEND, VERB_RESUME, VERB_RESUME, VERB_RESEND,
                                      VERB_CHECK};
    uint64_t run = random_below(&t->random, RUNS);
    struct run_seen *r = &t->runs[run];
    switch (random_below(&t->random, 12)) {
    case 0:
        set_up(t, run);
        break;
    case 1:
    case 2:
    case 3:
        for (run = 0; run < RUNS; run++)
            if (t->runs[run].known && random_chance(&t->random, 1, 2))
                command(t, run, VERB_START, 0);
        break;
    case 4:
        command(t, run, verbs[random_below(&t->random, 5)], 0);
        break;
    case 5:
        r->hurt = r->hurt || t->link != 0;
        command(t, run, random_chance(&t->random, 1, 2) ? VERB_END : VERB_KILL, 0);
        break;
    case 6:
        for (run = 0; run < RUNS; run++)
            drop(t, run);
        break;
    case 7:
        type(t, run);
        break;
    case 8:
        if (random_chance(&t->random, 1, 4))
            come(t);
        else if (t->link != 0 && random_chance(&t->random, 1, 4))
            go(t);
        else if (t->link != 0)
            t->deaf = random_chance(&t->random, 1, 2); /* on the way to those who want to know */
        break;
    case 9:
        command(t, 0, VERB_RENEW, 60);
        break;
    default:
        take(t, run);
    }
}

/* ---- a trial ---- */

/* A manager that does everything right comes, and ends what there is. */
static void heal(struct trial *t) {
    come(t);
    command(t, 0, VERB_RENEW, 3600000);
    for (uint64_t run = 0; run < RUNS; run++)
        if (t->runs[run].known && !t->runs[run].over) {
            t->runs[run].hurt = true;
            command(t, run, VERB_KILL, 0);
        }
    for (uint32_t round = 0; round < 100; round++) {
        for (uint64_t run = 0; run < RUNS; run++)
            take(t, run);
        let_pass(t, t->now + 10 * NS_PER_MS);
    }
}

static void judge(struct trial *t) {
    CHECK_EQ(sim_kernel_alive_all(t->kernel), 0);
    for (uint64_t run = 0; run < RUNS; run++) {
        struct run_seen *r = &t->runs[run];
        if (!r->known || r->dropped)
            continue;
        CHECK(r->over);
        judge_output(r);
        command(t, run, VERB_DROP, 0);
    }
    CHECK_EQ(pl_runs(t->pl), 0);
}

static void trial(uint64_t seed) {
    struct trial t = {.now = NS_PER_S};
    struct arena arena;
    random_init(&t.random, seed);
    struct sim_kernel_config kernel = {.groups = GROUPS, .seed = seed, .spawn_ns = NS_PER_MS};
    kernel.fail_permille = random_chance(&t.random, 1, 2) ? 50 : 0;
    t.kernel = sim_kernel_new(&kernel);
    void *memory = malloc(pl_bytes(&config));
    arena_init(&arena, memory, pl_bytes(&config));
    t.pl = pl_new(&config, &arena);
    t.machine = pl_machine(t.pl);
    struct effect *list = calloc(pl_effects_max(&config), sizeof *list);
    uint8_t *bytes = malloc(pl_effect_bytes_max(&config));
    effects_init(&t.out, list, pl_effects_max(&config), bytes, pl_effect_bytes_max(&config));
    come(&t);
    for (uint32_t i = 0; i < ACTIONS; i++) {
        act(&t);
        let_pass(&t, t.now + random_below(&t.random, 4 * NS_PER_MS));
    }
    heal(&t);
    judge(&t);
    sim_kernel_free(t.kernel);
    free(memory);
    free(list);
    free(bytes);
}

static void test_whatever_the_manager_does(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        bool before = tap_current_fail;
        trial(seed);
        if (!before && tap_current_fail)
            printf("# seed %llu\n", (unsigned long long)seed);
    }
}

int main(void) {
    TEST(test_whatever_the_manager_does);
    return tap_finish();
}
