/* SPDX-License-Identifier: MIT */
/* Tests of the launcher: inputs in, effects out, as lines of text. */
#include <errno.h>
#include <signal.h>

#include "launcher_alone.h"
#include "wire/gate.h"

enum { GROUPS = 3, PROCESSES = 8, SETUP_BYTES = 1024 };

static const struct pl_config config = {.groups = GROUPS,
                                        .processes = PROCESSES,
                                        .setup_bytes = SETUP_BYTES,
                                        .resend_ns = NS_PER_S,
                                        .resend_max_ns = 10 * NS_PER_S,
                                        .lease_ns = 5 * NS_PER_S,
                                        .host = {(const uint8_t *)"here", 4}};

/* ---- effects as text ---- */

static void tell_ended(struct bench *b, const union message *m) {
    static const char *const causes[CAUSES] = {"exited", "killed",  "failed",
                                               "lost",   "unknown", "memory"};
    struct ending e;
    CHECK(ending_load(&e, m->ended.ends, 0));
    CHECK_EQ(e.node, 0);
    say(b, "ENDED %llu %s %u rank %u bad %u output %llu%s", (unsigned long long)m->ended.run,
        causes[e.cause], e.value, e.rank, e.bad, (unsigned long long)e.output,
        e.ours ? " ours" : "");
    if (e.usage.user_ns > 0)
        say(b, "used %llu", (unsigned long long)e.usage.user_ns);
    if (e.loose)
        say(b, "loose");
    if (e.cause == CAUSE_FAILED)
        say(b, "step %u", e.step);
}

static void tell_pids(struct bench *b, const struct message_pids *m) {
    say(b, "PIDS %llu to %u from %.*s on %.*s", (unsigned long long)m->run, m->asker,
        (int)m->host.len, (const char *)m->host.at, (int)m->node.len, (const char *)m->node.at);
    for (size_t at = 0; at < m->rows.len; at += PIDS_ROW_BYTES)
        say(b, "%u is %u", load_le32(m->rows.at + at), load_le32(m->rows.at + at + 4));
}

static void tell_send(struct bench *b, const struct effect_send *s) {
    union message m;
    uint8_t body[2048];
    CHECK(s->link_count == 1 && s->head.len + s->tail.len <= sizeof body);
    memcpy(body, s->head.at, s->head.len);
    if (s->tail.len > 0)
        memcpy(body + s->head.len, s->tail.at, s->tail.len);
    if (!CHECK_EQ(message_decode(s->type, bytes_of(body, s->head.len + s->tail.len), NULL, &m), 0))
        return;
    CHECK(message_rule(s->type)->from & 1 << ROLE_LAUNCHER);
    if (s->type == MESSAGE_ENDED)
        tell_ended(b, &m);
    else if (s->type == MESSAGE_MEASURED)
        say(b, "MEASURED %llu %llu", (unsigned long long)m.measured.run,
            (unsigned long long)m.measured.usage.user_ns);
    else if (s->type == MESSAGE_HOLD)
        say(b, "HOLD %llu %s %zu", (unsigned long long)m.hold.run,
            m.hold.started ? "started" : "ready", m.hold.setup.len);
    else if (s->type == MESSAGE_PIDS)
        tell_pids(b, &m.pids);
    else if (s->type == MESSAGE_OUTPUT)
        say(b, "OUTPUT %llu.%u.%u @%llu %.*s%s", (unsigned long long)m.output.run, m.output.rank,
            m.output.stream, (unsigned long long)m.output.offset, (int)m.output.bytes.len,
            (const char *)m.output.bytes.at, m.output.end ? " end" : "");
    else if (s->type == MESSAGE_DRAINED && m.drained.offset == UINT64_MAX)
        say(b, "DRAINED %u no more", m.drained.rank);
    else if (s->type == MESSAGE_DRAINED)
        say(b, "DRAINED %u @%llu", m.drained.rank, (unsigned long long)m.drained.offset);
    else
        CHECK(false);
    if (s->links[0] != LINK)
        say(b, "on link %u", s->links[0]);
}

static void tell(struct bench *b, const struct effect *e) {
    const struct effect_stream *s = &e->stream;
    switch (e->kind) {
    case EFFECT_SEND:
        tell_send(b, &e->send);
        break;
    case EFFECT_CLOSE:
        say(b, "close %u %s", e->close.link, e->close.refusal == REFUSAL_BODY ? "body" : "");
        break;
    case EFFECT_TIMER:
        if (e->timer.id == 1)
            say(b, "soon");
        else
            say(b, "timer %u +%llu", e->timer.id,
                e->timer.at ? (unsigned long long)((e->timer.at - b->now) / NS_PER_MS) : 0);
        break;
    case EFFECT_GROUP_OPEN:
        say(b, "open %u", e->group.group);
        break;
    case EFFECT_GROUP_START:
        say(b, "start %u", e->group.group);
        break;
    case EFFECT_GROUP_SIGNAL:
        if (e->group.one > 0)
            say(b, "poke %u.%u %u", e->group.group, e->group.one - 1, e->group.value);
        else
            say(b, "signal %u %u", e->group.group, e->group.value);
        break;
    case EFFECT_GROUP_FREEZE:
        say(b, "%s %u", e->group.value ? "freeze" : "thaw", e->group.group);
        break;
    case EFFECT_GROUP_KILL:
        say(b, "kill %u", e->group.group);
        break;
    case EFFECT_GROUP_CLOSE:
        say(b, "let go %u", e->group.group);
        break;
    case EFFECT_GROUP_MEASURE:
        say(b, "measure %u", e->group.group);
        break;
    case EFFECT_GROUP_SIZE:
        say(b, "size %u %ux%u", e->group.group, e->group.value, e->group.rows);
        break;
    case EFFECT_STREAM_TAKEN:
        say(b, "taken %u.%u.%u @%llu", s->group, s->index, s->stream,
            (unsigned long long)s->offset);
        break;
    case EFFECT_STREAM_AGAIN:
        say(b, "again %u.%u.%u @%llu", s->group, s->index, s->stream,
            (unsigned long long)s->offset);
        break;
    case EFFECT_STREAM_FEED:
        say(b, "feed %u.%u @%llu %.*s%s", s->group, s->index, (unsigned long long)s->offset,
            (int)s->bytes.len, (const char *)s->bytes.at, s->end ? " end" : "");
        break;
    default:
        CHECK(false);
    }
}

/* ---- inputs ---- */

static const char *link_down(struct bench *b, uint32_t link) {
    return feed(b, (struct input){.kind = INPUT_LINK_DOWN,
                                  .link = {.link = link, .peer = 0, .role = ROLE_KEEPER}});
}

static const char *setup(struct bench *b, uint64_t run, uint32_t first, uint32_t count) {
    return setup_of(b,
                    &(struct setup){.run = run,
                                    .first = first,
                                    .count = count,
                                    .size = first + count,
                                    .window = 100,
                                    .spec = bytes_from_str("spec")},
                    0);
}

static const char *command_value(struct bench *b, uint64_t run, enum verb verb, uint32_t value,
                                 uint32_t more) {
    union message m = {
        .command = {.run = run, .verb = (uint8_t)verb, .value = value, .more = more}};
    return message(b, MESSAGE_COMMAND, &m);
}

static const char *command(struct bench *b, uint64_t run, enum verb verb) {
    return command_value(b, run, verb, 0, 0);
}

static const char *child(struct bench *b, uint32_t group, uint32_t index, enum child_event event,
                         uint32_t value) {
    return feed(b, (struct input){.kind = INPUT_CHILD,
                                  .child = {.group = group,
                                            .index = index,
                                            .event = event,
                                            .value = value,
                                            .step = SPAWN_PROGRAM,
                                            .loose = b->loose}});
}

static const char *empty(struct bench *b, uint32_t group) {
    return feed(b, (struct input){.kind = INPUT_EMPTY, .empty = {.group = group}});
}

static const char *timer(struct bench *b, uint32_t id, uint64_t after_ms) {
    b->now += after_ms * NS_PER_MS;
    return feed(b, (struct input){.kind = INPUT_TIMER, .timer = {.id = id}});
}

static const char *stream(struct bench *b, uint32_t group, uint32_t index, uint8_t number,
                          uint64_t offset, const char *text, bool end) {
    return feed(b, (struct input){.kind = INPUT_STREAM,
                                  .stream = {.group = group,
                                             .index = index,
                                             .stream = number,
                                             .offset = offset,
                                             .end = end,
                                             .bytes = bytes_from_str(text)}});
}

static const char *taken(struct bench *b, uint64_t run, uint32_t rank, uint8_t number,
                         uint64_t offset) {
    union message m = {.taken = {.run = run, .rank = rank, .stream = number, .offset = offset}};
    return message(b, MESSAGE_TAKEN, &m);
}

static const char *typed(struct bench *b, uint64_t run, uint32_t rank, uint64_t offset,
                         const char *text, bool end) {
    union message m = {
        .typed = {
            .run = run, .rank = rank, .offset = offset, .end = end, .bytes = bytes_from_str(text)}};
    return message(b, MESSAGE_TYPED, &m);
}

static const char *drained(struct bench *b, uint32_t group, uint32_t index, uint64_t offset) {
    return feed(b, (struct input){.kind = INPUT_DRAINED,
                                  .drained = {.group = group, .index = index, .offset = offset}});
}

static void begin(struct bench *b) {
    launcher_begin(b, &config);
    CHECK_STR(feed(b, (struct input){.kind = INPUT_BOOT}), "");
    CHECK_STR(link_up(b, LINK), "");
}

/* Run 5 with ranks 4, 5, 6 is started in group 0. */
static void begin_started(struct bench *b) {
    begin(b);
    CHECK_STR(setup(b, 5, 4, 3), "open 0; timer 3 +5000");
    CHECK_STR(command(b, 5, VERB_START), "start 0");
    for (uint32_t i = 0; i < 3; i++)
        CHECK_STR(child(b, 0, i, CHILD_STARTED, 1000 + i), "");
}

/* ---- tests ---- */

static void test_a_run_from_setup_to_drop(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(setup(&b, 5, 4, 3), ""); /* said twice */
    CHECK_STR(command(&b, 5, VERB_START), "");
    CHECK_STR(command(&b, 5, VERB_CHECK), "");
    CHECK_STR(child(&b, 0, 0, CHILD_EXITED, 0), "");
    CHECK_STR(child(&b, 0, 2, CHILD_EXITED, 0), "");
    CHECK_STR(child(&b, 0, 1, CHILD_EXITED, 0), "soon");
    CHECK_STR(empty(&b, 0), "ENDED 5 exited 0 rank 4 bad 0 output 0; let go 0");
    CHECK_STR(timer(&b, 1, 0), ""); /* nothing is left to kill */
    CHECK_STR(command(&b, 5, VERB_CHECK), "ENDED 5 exited 0 rank 4 bad 0 output 0");
    CHECK_STR(command(&b, 5, VERB_KILL), "ENDED 5 exited 0 rank 4 bad 0 output 0");
    CHECK_STR(command(&b, 5, VERB_SUSPEND), "");
    CHECK_STR(link_up(&b, LINK + 1), "close 7 ; ENDED 5 exited 0 rank 4 bad 0 output 0; on link 8");
    CHECK_STR(command(&b, 5, VERB_DROP), ""); /* by the old link */
    CHECK_STR(link_up(&b, LINK), "close 8 ; ENDED 5 exited 0 rank 4 bad 0 output 0");
    CHECK_EQ(pl_runs(b.pl), 1);
    CHECK_STR(command(&b, 5, VERB_DROP), "");
    CHECK_EQ(pl_runs(b.pl), 0);
    CHECK_STR(command(&b, 5, VERB_DROP), "");
    CHECK_STR(command(&b, 5, VERB_CHECK), "ENDED 5 unknown 0 rank 0 bad 0 output 0");
    launcher_end(&b);
}

static void test_what_outlives_the_processes_is_killed(void) {
    struct bench b;
    begin(&b);
    setup(&b, 9, 0, 1);
    command(&b, 9, VERB_START);
    CHECK_STR(child(&b, 0, 0, CHILD_EXITED, 3), "soon");
    CHECK_STR(timer(&b, 1, 0), "kill 0");
    CHECK_STR(timer(&b, 1, 0), "");
    CHECK_STR(empty(&b, 0), "ENDED 9 exited 3 rank 0 bad 1 output 0; let go 0");
    launcher_end(&b);
}

static void test_what_it_uses(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(setup(&b, 6, 0, 1), "open 1; timer 3 +5000"); /* has not begun */
    CHECK_STR(command(&b, 0, VERB_MEASURE), "measure 0");
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_MEASURED, .measured = {0, {.user_ns = 17}}}),
              "MEASURED 5 17");
    for (uint32_t i = 0; i < 3; i++)
        child(&b, 0, i, CHILD_EXITED, 0);
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_EMPTY, .empty = {0, {.user_ns = 30}}}),
              "ENDED 5 exited 0 rank 4 bad 0 output 0; used 30; let go 0");
    CHECK_STR(command(&b, 0, VERB_MEASURE), "");
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_MEASURED, .measured = {0, {.user_ns = 40}}}),
              "");
    CHECK_STR(command(&b, 5, VERB_CHECK),
              "ENDED 5 exited 0 rank 4 bad 0 output 0; used 30"); /* however often it is told */
    launcher_end(&b);
}

static void test_the_worst_stands_for_all(void) {
    struct bench b;
    begin_started(&b);
    child(&b, 0, 0, CHILD_EXITED, 130);
    child(&b, 0, 1, CHILD_KILLED, SIGSEGV);
    child(&b, 0, 2, CHILD_EXITED, 0);
    CHECK_STR(empty(&b, 0), "ENDED 5 killed 11 rank 5 bad 2 output 0; let go 0");
    launcher_end(&b);
}

/* It counts as killed, but it is not STORM that has done it, whatever STORM does. */
static void test_who_used_too_much_is_named(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(child(&b, 0, 1, CHILD_EXCEEDED, 4096), "ENDED 5 memory 4096 rank 5 bad 1 output 0");
    command(&b, 5, VERB_KILL);
    CHECK_STR(child(&b, 0, 0, CHILD_KILLED, SIGKILL), "");
    child(&b, 0, 2, CHILD_KILLED, SIGKILL);
    CHECK_STR(empty(&b, 0), "ENDED 5 memory 4096 rank 5 bad 1 output 0 ours; let go 0");
    launcher_end(&b);
}

/* Once, as soon as it is known, and again with the end. */
static void test_a_limit_that_is_not_kept_is_told(void) {
    struct bench b;
    begin(&b);
    setup(&b, 5, 4, 2);
    command(&b, 5, VERB_START);
    b.loose = true;
    CHECK_STR(child(&b, 0, 0, CHILD_STARTED, 98), "ENDED 5 exited 0 rank 4 bad 0 output 0; loose");
    CHECK_STR(child(&b, 0, 1, CHILD_STARTED, 99), "");
    b.loose = false;
    CHECK_STR(child(&b, 0, 1, CHILD_EXITED, 3), "ENDED 5 exited 3 rank 5 bad 1 output 0; loose");
    child(&b, 0, 0, CHILD_EXITED, 0);
    CHECK_STR(empty(&b, 0), "ENDED 5 exited 3 rank 5 bad 1 output 0; loose; let go 0");
    launcher_end(&b);
}

static void test_a_failed_start_ends_the_rest_at_once(void) {
    struct bench b;
    begin(&b);
    setup(&b, 5, 4, 3);
    command(&b, 5, VERB_START);
    CHECK_STR(child(&b, 0, 0, CHILD_STARTED, 99), "");
    CHECK_STR(child(&b, 0, 1, CHILD_FAILED, ENOENT), "kill 0");
    CHECK_STR(child(&b, 0, 2, CHILD_FAILED, ENOENT), "");
    CHECK_STR(child(&b, 0, 0, CHILD_KILLED, SIGKILL), "soon");
    CHECK_STR(empty(&b, 0), "ENDED 5 failed 2 rank 5 bad 2 output 0 ours; step 0; let go 0");
    launcher_end(&b);
}

static void test_what_we_end_does_not_count(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(command(&b, 5, VERB_SUSPEND), "freeze 0");
    CHECK_STR(command(&b, 5, VERB_SUSPEND), "");
    CHECK_STR(command(&b, 5, VERB_END), "thaw 0; signal 0 15");
    child(&b, 0, 0, CHILD_KILLED, SIGTERM);
    child(&b, 0, 1, CHILD_EXITED, 7); /* its handler does as it likes */
    CHECK_STR(command(&b, 5, VERB_KILL), "kill 0");
    child(&b, 0, 2, CHILD_KILLED, SIGKILL);
    CHECK_STR(empty(&b, 0), "ENDED 5 exited 0 rank 4 bad 0 output 0 ours; let go 0");
    launcher_end(&b);
}

/* Nor does it hide what went wrong before, or by itself. */
static void test_what_went_wrong_itself_counts(void) {
    struct bench b;
    begin_started(&b);
    child(&b, 0, 0, CHILD_KILLED, SIGABRT);
    command(&b, 5, VERB_END);
    child(&b, 0, 1, CHILD_KILLED, SIGTERM);
    child(&b, 0, 2, CHILD_KILLED, SIGKILL); /* somebody else's: we have killed nobody */
    CHECK_STR(empty(&b, 0), "ENDED 5 killed 9 rank 6 bad 2 output 0 ours; let go 0");
    launcher_end(&b);
}

static void test_signals_of_users_count(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(command_value(&b, 5, VERB_SIGNAL, SIGTERM, 0), "signal 0 15");
    CHECK_STR(command_value(&b, 5, VERB_SIGNAL, 0, 0), "");
    CHECK_STR(command_value(&b, 5, VERB_SIGNAL, 65, 0), "");
    CHECK_STR(command_value(&b, 5, VERB_SIZE, 80, 25), "size 0 80x25");
    for (uint32_t i = 0; i < 3; i++)
        child(&b, 0, i, CHILD_KILLED, SIGTERM);
    CHECK_STR(empty(&b, 0), "ENDED 5 killed 15 rank 4 bad 3 output 0; let go 0");
    launcher_end(&b);
}

static const char *signal_ranks(struct bench *b, uint32_t signal, const char *ranks) {
    uint8_t bytes[RANKS_BYTES_MAX];
    union message m = {.command = {.run = 5, .verb = VERB_SIGNAL, .value = signal}};
    CHECK_EQ(ranks_parse(ranks, bytes, &m.command.ranks), 0);
    return message(b, MESSAGE_COMMAND, &m);
}

/* Ranks 4, 5 and 6 are here. */
static void test_signals_to_some(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(signal_ranks(&b, SIGUSR1, "0,5-9"), "poke 0.1 10; poke 0.2 10");
    CHECK_STR(signal_ranks(&b, SIGUSR1, "0-3,7"), "");
    CHECK_STR(signal_ranks(&b, 0, "4"), "");
    CHECK_STR(signal_ranks(&b, 65, "4"), "");
    child(&b, 0, 1, CHILD_EXITED, 0);
    CHECK_STR(signal_ranks(&b, SIGKILL, "4-5"), "poke 0.0 9");
    launcher_end(&b);
}

/* Those that run; of the others, that they have ended. */
static void test_numbers_of_processes(void) {
    struct bench b;
    begin(&b);
    setup(&b, 5, 4, 3);
    command(&b, 5, VERB_START);
    CHECK_STR(command_value(&b, 5, VERB_PIDS, 7, 0), "");
    child(&b, 0, 2, CHILD_STARTED, 1002);
    CHECK_STR(command_value(&b, 5, VERB_PIDS, 7, 0), "PIDS 5 to 7 from here on ; 6 is 1002");
    child(&b, 0, 0, CHILD_STARTED, 1000);
    child(&b, 0, 1, CHILD_FAILED, ENOENT);
    child(&b, 0, 2, CHILD_EXITED, 0);
    CHECK_STR(command_value(&b, 5, VERB_PIDS, 8, 0),
              "PIDS 5 to 8 from here on ; 4 is 1000; 5 is 0; 6 is 0");
    launcher_end(&b);
}

static void test_before_it_is_started(void) {
    struct bench b;
    begin(&b);
    setup(&b, 5, 0, 1);
    CHECK_STR(command_value(&b, 5, VERB_SIGNAL, SIGINT, 0), "");
    CHECK_STR(typed(&b, 5, 0, 0, "abc", false), "");
    CHECK_STR(command(&b, 5, VERB_KILL), "ENDED 5 exited 0 rank 0 bad 0 output 0 ours; let go 0");
    CHECK_STR(typed(&b, 5, 0, 0, "abc", false), "DRAINED 0 no more");
    CHECK_STR(command(&b, 5, VERB_START), "ENDED 5 exited 0 rank 0 bad 0 output 0 ours");
    CHECK_STR(command(&b, 5, VERB_DROP), "");
    setup(&b, 6, 0, 1);
    CHECK_STR(command(&b, 6, VERB_DROP), "let go 0");
    setup(&b, 7, 0, 1);
    CHECK_STR(command(&b, 7, VERB_SUSPEND), "");
    CHECK_STR(command(&b, 7, VERB_START), "start 0; freeze 0");
    CHECK_STR(command(&b, 7, VERB_RESUME), "thaw 0");
    launcher_end(&b);
}

static void test_dropped_while_it_runs(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(command(&b, 5, VERB_DROP), "kill 0");
    CHECK_STR(link_up(&b, LINK + 1), "close 7 "); /* nobody is told of it */
    for (uint32_t i = 0; i < 3; i++)
        child(&b, 0, i, CHILD_KILLED, SIGKILL);
    CHECK_STR(empty(&b, 0), "let go 0");
    CHECK_EQ(pl_runs(b.pl), 0);
    launcher_end(&b);
}

static void test_a_new_manager_is_told_everything(void) {
    struct bench b;
    begin_started(&b);
    setup(&b, 6, 0, 2);
    setup(&b, 8, 0, 1);
    command(&b, 8, VERB_KILL);
    stream(&b, 0, 1, 2, 0, "oops", false);
    CHECK_STR(link_down(&b, LINK), "");
    CHECK_STR(stream(&b, 0, 1, 2, 4, "!", true), ""); /* nobody hears it yet */
    CHECK_STR(link_up(&b, LINK), "HOLD 5 started 48; again 0.1.2 @0; HOLD 6 ready 48; "
                                 "ENDED 8 exited 0 rank 0 bad 0 output 0 ours");
    CHECK_STR(stream(&b, 0, 1, 2, 0, "oops!", true), "OUTPUT 5.5.2 @0 oops! end");
    launcher_end(&b);
}

static void test_output_is_told_until_it_is_taken(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(stream(&b, 0, 0, 1, 0, "one ", false), "timer 2 +1000; OUTPUT 5.4.1 @0 one ");
    CHECK_STR(stream(&b, 0, 0, 1, 4, "two", true), "OUTPUT 5.4.1 @4 two end");
    CHECK_STR(stream(&b, 0, 1, 1, 0, "", true), ""); /* an end alone is not worth a message */
    CHECK_STR(taken(&b, 5, 4, 1, 4), "taken 0.0.1 @4");
    CHECK_STR(taken(&b, 5, 4, 1, 3), ""); /* late */
    CHECK_STR(taken(&b, 5, 4, 1, 8), ""); /* of what is not there */
    CHECK_STR(taken(&b, 5, 7, 1, 1), ""); /* nor such a rank */
    CHECK_STR(taken(&b, 6, 4, 1, 7), ""); /* nor such a run */
    CHECK_STR(timer(&b, 2, 1000), "again 0.0.1 @4; timer 2 +2000");
    CHECK_STR(timer(&b, 2, 2000), "again 0.0.1 @4; timer 2 +4000");
    CHECK_STR(command(&b, 5, VERB_RESEND), "again 0.0.1 @4; timer 2 +1000");
    for (uint64_t ms = 1000, next = 2000; ms < 10000;
         ms = next, next = ms < 5000 ? 2 * ms : 10000) {
        char expected[64];
        snprintf(expected, sizeof expected, "again 0.0.1 @4; timer 2 +%llu",
                 (unsigned long long)next);
        CHECK_STR(timer(&b, 2, ms), expected);
    }
    CHECK_STR(timer(&b, 2, 10000), "again 0.0.1 @4; timer 2 +10000");
    CHECK_STR(taken(&b, 5, 4, 1, 7), "taken 0.0.1 @7");
    CHECK_STR(timer(&b, 2, 10000), "");
    CHECK_STR(command(&b, 5, VERB_RESEND), "");
    for (uint32_t i = 0; i < 3; i++)
        child(&b, 0, i, CHILD_EXITED, 0);
    CHECK_STR(empty(&b, 0), "ENDED 5 exited 0 rank 4 bad 0 output 7; let go 0");
    launcher_end(&b);
}

static void test_ranks_that_do_not_follow_each_other(void) {
    struct bench b;
    uint8_t ranks[3 * SETUP_RANK_BYTES];
    begin(&b);
    for (uint32_t i = 0; i < 3; i++)
        store_le32(ranks + (size_t)i * SETUP_RANK_BYTES, 1 + 4 * i);
    setup_of(&b,
             &(struct setup){.run = 5,
                             .first = 1,
                             .count = 3,
                             .size = 10,
                             .window = 100,
                             .ranks = bytes_of(ranks, sizeof ranks),
                             .spec = bytes_from_str("spec")},
             0);
    command(&b, 5, VERB_START);
    CHECK_STR(stream(&b, 0, 2, 1, 0, "last", false), "timer 2 +1000; OUTPUT 5.9.1 @0 last");
    CHECK_STR(taken(&b, 5, 3, 1, 4), ""); /* it is on another node */
    CHECK_STR(taken(&b, 5, 10, 1, 4), "");
    CHECK_STR(taken(&b, 5, 9, 1, 4), "taken 0.2.1 @4");
    child(&b, 0, 0, CHILD_EXITED, 0);
    child(&b, 0, 1, CHILD_EXITED, 3);
    child(&b, 0, 2, CHILD_EXITED, 0);
    stream(&b, 0, 2, 1, 4, "", true);
    CHECK_STR(empty(&b, 0), "ENDED 5 exited 3 rank 5 bad 1 output 4; let go 0");
    launcher_end(&b);
}

static void test_output_that_has_no_room_delays_the_end(void) {
    struct bench b;
    char line[101];
    memset(line, 'x', 100);
    line[100] = '\0';
    for (int killed = 0; killed < 2; killed++) {
        begin(&b);
        setup(&b, 5, 0, 1);
        command(&b, 5, VERB_START);
        stream(&b, 0, 0, 2, 0, line, false);
        CHECK_STR(child(&b, 0, 0, CHILD_EXITED, 0), "soon");
        CHECK_STR(empty(&b, 0), ""); /* the end of the stream is to come */
        CHECK_STR(timer(&b, 1, 0), "");
        if (killed) {
            CHECK_STR(command(&b, 5, VERB_KILL), "ENDED 5 exited 0 rank 0 bad 0 output 100");
        } else {
            CHECK_STR(taken(&b, 5, 0, 2, 100), "taken 0.0.2 @100");
            CHECK_STR(stream(&b, 0, 0, 1, 0, "", true), ""); /* the other one is not meant */
            CHECK_STR(stream(&b, 0, 0, 2, 100, "rest", true),
                      "OUTPUT 5.0.2 @100 rest end; ENDED 5 exited 0 rank 0 bad 0 output 104");
        }
        launcher_end(&b);
    }
}

/* Those that are taken from do not keep the timer from the one that is not. */
static void test_each_stream_waits_for_itself(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(stream(&b, 0, 0, 1, 0, "lost", false), "timer 2 +1000; OUTPUT 5.4.1 @0 lost");
    b.now += 500 * NS_PER_MS;
    CHECK_STR(stream(&b, 0, 2, 1, 0, "x", false), "OUTPUT 5.6.1 @0 x");
    CHECK_STR(taken(&b, 5, 6, 1, 1), "taken 0.2.1 @1");
    CHECK_STR(stream(&b, 0, 2, 1, 1, "y", false), "OUTPUT 5.6.1 @1 y");
    CHECK_STR(timer(&b, 2, 500), "again 0.0.1 @0; timer 2 +500");
    CHECK_STR(timer(&b, 2, 500), "again 0.2.1 @1; timer 2 +1500");
    launcher_end(&b);
}

static void test_input(void) {
    struct bench b;
    begin_started(&b);
    CHECK_STR(typed(&b, 5, 5, 0, "abc", false), "feed 0.1 @0 abc");
    CHECK_STR(drained(&b, 0, 1, 3), "DRAINED 5 @3");
    CHECK_STR(typed(&b, 5, 5, 0, "abc", false), "DRAINED 5 @3"); /* the answer was lost */
    CHECK_STR(typed(&b, 5, 5, 2, "cd", false), "feed 0.1 @2 cd");
    CHECK_STR(typed(&b, 5, 5, 3, "", true), "feed 0.1 @3  end");
    CHECK_STR(typed(&b, 5, 9, 0, "x", false), "");
    CHECK_STR(typed(&b, 5, 5, UINT64_MAX, "x", false), "");
    CHECK_STR(drained(&b, 0, 0, UINT64_MAX), ""); /* nobody has asked for that one */
    CHECK_STR(typed(&b, 5, RANK_ALL, 4, "z", false),
              "DRAINED 4 no more; feed 0.1 @4 z; feed 0.2 @4 z");
    CHECK_STR(link_up(&b, LINK), "close 7 ; HOLD 5 started 48; DRAINED 4 no more; DRAINED 5 @3; "
                                 "DRAINED 6 @0");
    CHECK_STR(child(&b, 0, 1, CHILD_EXITED, 0), "DRAINED 5 no more");
    CHECK_STR(drained(&b, 0, 1, UINT64_MAX), "");
    launcher_end(&b);
}

static void test_without_a_manager_for_too_long(void) {
    struct bench b;
    begin_started(&b);
    setup(&b, 6, 0, 1);
    CHECK_STR(command_value(&b, 0, VERB_RENEW, 3000, 0), "timer 3 +3000");
    link_down(&b, LINK);
    CHECK_STR(timer(&b, 3, 3000), "kill 0; let go 1");
    CHECK_STR(child(&b, 0, 1, CHILD_EXITED, 0), "");
    CHECK_STR(child(&b, 0, 0, CHILD_KILLED, SIGKILL), "");
    CHECK_STR(child(&b, 0, 2, CHILD_KILLED, SIGKILL), "soon");
    CHECK_STR(empty(&b, 0), "let go 0");
    CHECK_STR(link_up(&b, LINK), "ENDED 5 lost 0 rank 4 bad 2 output 0; "
                                 "ENDED 6 lost 0 rank 0 bad 1 output 0");
    CHECK_STR(command(&b, 5, VERB_DROP), "");
    CHECK_STR(command(&b, 6, VERB_DROP), "");
    CHECK_STR(command_value(&b, 0, VERB_RENEW, 3000, 0), "timer 3 +0"); /* nothing to watch over */
    CHECK_STR(setup(&b, 7, 0, 1), "open 0; timer 3 +3000");
    launcher_end(&b);
}

static void test_there_is_room_for_so_much(void) {
    struct bench b;
    begin(&b);
    CHECK_STR(setup(&b, 1, 0, 9), "ENDED 1 failed 11 rank 0 bad 9 output 0; step 4");
    CHECK_STR(setup(&b, 1, 0, 4), "open 0; timer 3 +5000");
    CHECK_STR(setup(&b, 2, 0, 2), "open 1; timer 3 +5000");
    CHECK_STR(setup(&b, 3, 0, 3), "ENDED 3 failed 11 rank 0 bad 3 output 0; step 4");
    CHECK_STR(setup(&b, 3, 0, 2), "open 2; timer 3 +5000");
    CHECK_STR(setup(&b, 4, 0, 1), "ENDED 4 failed 11 rank 0 bad 1 output 0; step 4");
    for (uint64_t run = 1; run <= 3; run++)
        command(&b, run, VERB_START);
    stream(&b, 2, 1, 1, 0, "kept", true);
    child(&b, 2, 0, CHILD_EXITED, 1);
    CHECK_STR(command(&b, 1, VERB_DROP), "kill 0");
    CHECK_STR(empty(&b, 0), "let go 0");
    CHECK_STR(setup(&b, 4, 0, 4), "open 0; timer 3 +5000"); /* in the place of the first */
    stream(&b, 1, 1, 1, 0, "second", false);
    CHECK_STR(child(&b, 2, 1, CHILD_EXITED, 0), "soon");
    CHECK_STR(empty(&b, 2), "ENDED 3 exited 1 rank 0 bad 1 output 4");
    CHECK_STR(taken(&b, 3, 1, 1, 4), "taken 2.1.1 @4; let go 2"); /* nobody will ask for it again */
    CHECK_STR(command(&b, 3, VERB_RESEND), "");
    CHECK_STR(taken(&b, 2, 1, 1, 6), "taken 1.1.1 @6");
    CHECK_STR(command(&b, 4, VERB_KILL), "ENDED 4 exited 0 rank 0 bad 0 output 0 ours; let go 0");
    launcher_end(&b);
}

static void test_set_ups_are_bounded_too(void) {
    struct bench b;
    begin(&b);
    static uint8_t bytes[SETUP_BYTES + 1];
    struct setup s = {.run = 1, .count = 1, .size = 1};
    s.spec = bytes_of(calloc(1, SETUP_BYTES), SETUP_BYTES - 43);
    long len = setup_encode(&s, room_of(bytes, sizeof bytes));
    CHECK_EQ(len, SETUP_BYTES + 1);
    union message m = {.setup = {.run = 1, .setup = bytes_of(bytes, (size_t)len)}};
    CHECK_STR(message(&b, MESSAGE_SETUP, &m), "ENDED 1 failed 11 rank 0 bad 1 output 0; step 4");
    s.spec.len--;
    len = setup_encode(&s, room_of(bytes, sizeof bytes));
    m.setup.setup.len = (size_t)len;
    CHECK_STR(message(&b, MESSAGE_SETUP, &m), "open 0; timer 3 +5000");
    free((void *)(uintptr_t)s.spec.at);
    launcher_end(&b);
}

static void test_nonsense_closes_the_link(void) {
    struct bench b;
    begin(&b);
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_MESSAGE,
                                      .message = {.link = LINK,
                                                  .type = MESSAGE_COMMAND,
                                                  .body = bytes_from_str("what?")}}),
              "close 7 body");
    CHECK_STR(setup(&b, 1, 0, 1), ""); /* it is not heard any more */
    CHECK_STR(link_up(&b, LINK), "");
    union message m = {.setup = {.run = 1, .setup = bytes_from_str("no set-up")}};
    CHECK_STR(message(&b, MESSAGE_SETUP, &m), "close 7 body");
    launcher_end(&b);
}

int main(void) {
    TEST(test_a_run_from_setup_to_drop);
    TEST(test_what_outlives_the_processes_is_killed);
    TEST(test_what_it_uses);
    TEST(test_the_worst_stands_for_all);
    TEST(test_who_used_too_much_is_named);
    TEST(test_a_limit_that_is_not_kept_is_told);
    TEST(test_a_failed_start_ends_the_rest_at_once);
    TEST(test_what_we_end_does_not_count);
    TEST(test_what_went_wrong_itself_counts);
    TEST(test_signals_of_users_count);
    TEST(test_signals_to_some);
    TEST(test_numbers_of_processes);
    TEST(test_before_it_is_started);
    TEST(test_dropped_while_it_runs);
    TEST(test_a_new_manager_is_told_everything);
    TEST(test_output_is_told_until_it_is_taken);
    TEST(test_ranks_that_do_not_follow_each_other);
    TEST(test_output_that_has_no_room_delays_the_end);
    TEST(test_each_stream_waits_for_itself);
    TEST(test_input);
    TEST(test_without_a_manager_for_too_long);
    TEST(test_there_is_room_for_so_much);
    TEST(test_set_ups_are_bounded_too);
    TEST(test_nonsense_closes_the_link);
    return tap_finish();
}
