/* SPDX-License-Identifier: MIT */
/* The same plays for the model kernel and for Linux: processes, groups and streams must tell the same.
 *
 * A play is what actors do (sim/act.h), what is done to them, step by step, and the history that must
 * come of it. The history has what can be relied on, in an order of its own: what each process has written and
 * how it ended, in which scene (a scene begins with every NOTE), and what was known at each NOTE. No step waits
 * for a time: CLOCK lets an actor of its own run for a while, WAIT_* wait for what must come. */
#pragma once

#include <stdlib.h>

#include "machine/machine.h"
#include "sim/act.h"
#include "tap.h"
#include "wire/message.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { ACTORS_MAX = 8, ACTORS_STEPS = 12, ACTORS_TEXT = 2048, ACTORS_PIECE = 4096 };
enum { STAGE, CLOCK, ACTORS_GROUPS }; /* groups */

enum step_kind {
    STEP_NONE, /* the last: waits until all is over and told */
    STEP_START,
    STEP_SIGNAL,
    STEP_FREEZE,
    STEP_THAW,
    STEP_KILL,
    STEP_FEED,         /* so many bytes to every process, then the end */
    STEP_TAKE,         /* from now on */
    STEP_AGAIN,        /* the first stream of the first process, from this offset */
    STEP_CLOCK,        /* so many milliseconds go by */
    STEP_NOTE,         /* what is known now */
    STEP_WAIT_HEARD,   /* bytes of all processes, told again or not */
    STEP_WAIT_ENDS,    /* so many processes */
    STEP_WAIT_DRAINED, /* by every process that reads */
    STEP_WAIT_EMPTY
};

struct step {
    enum step_kind kind;
    uint32_t value;
};

struct play {
    const char *name;
    uint32_t count; /* of processes */
    const char *words;
    const char *program, *folder; /* NULL: the actor, / */
    uint32_t window;              /* 0: 64 KiB */
    uint8_t stdin_mode;           /* the rank is 1 */
    bool hold;                    /* nothing is taken before TAKE */
    struct step steps[ACTORS_STEPS];
    const char *history;
};

/* What was heard of one process. */
struct actor_heard {
    bool started, failed, over;
    struct input_child end;
    uint32_t scene; /* of its end */
    uint64_t next[2];
    bool ended[2];
    uint64_t drained;
};

/* A world: carries an effect; lets something happen and feeds it to actors_hear, false if nothing ever
 * will. */
struct actors {
    void (*carry)(struct actors *a, const struct effect *e);
    bool (*turn)(struct actors *a);
    const char *program; /* the actor's path */
    bool hold;
    uint64_t want; /* bytes to be fed */
    bool feeding;
    uint64_t fed[ACTORS_MAX];
    struct actor_heard heard[ACTORS_MAX];
    uint32_t count;
    uint64_t total; /* bytes told */
    uint64_t wrong; /* of them */
    uint32_t ends, empties[ACTORS_GROUPS];
    uint32_t scene;
    char text[ACTORS_TEXT];
};

__attribute__((format(printf, 2, 3))) static inline void actors_say(struct actors *a,
                                                                    const char *format, ...) {
    size_t used = strlen(a->text);
    va_list args;
    va_start(args, format);
    vsnprintf(a->text + used, sizeof a->text - used, format, args);
    va_end(args);
}

/* ---- what is heard ---- */

static inline void actors_take(struct actors *a, uint32_t index, uint8_t stream) {
    struct effect e = {.kind = EFFECT_STREAM_TAKEN,
                       .stream = {.group = STAGE,
                                  .index = index,
                                  .stream = stream,
                                  .offset = a->heard[index].next[stream - 1]}};
    a->carry(a, &e);
}

static inline void actors_hear_stream(struct actors *a, const struct input_stream *s) {
    struct actor_heard *h = &a->heard[s->index];
    uint32_t i = s->stream - 1U;
    CHECK_EQ(s->offset, h->next[i]);
    for (size_t at = 0; at < s->bytes.len; at++)
        a->wrong += s->bytes.at[at] != act_byte(s->offset + at);
    h->next[i] = s->offset + s->bytes.len;
    h->ended[i] = s->end;
    a->total += s->bytes.len;
    if (!a->hold && s->bytes.len > 0)
        actors_take(a, s->index, s->stream);
}

static inline void actors_hear_child(struct actors *a, const struct input_child *c) {
    struct actor_heard *h = &a->heard[c->index];
    if (c->event == CHILD_STARTED) {
        CHECK(!h->started && !h->over);
        h->started = true;
        return;
    }
    CHECK(!h->over && h->started == (c->event != CHILD_FAILED));
    h->over = true;
    h->end = *c;
    h->scene = a->scene;
    a->ends++;
}

static inline void actors_hear(struct actors *a, const struct input *in) {
    if (in->kind == INPUT_EMPTY)
        a->empties[in->empty.group]++;
    else if (in->kind == INPUT_CHILD && in->child.group == STAGE)
        actors_hear_child(a, &in->child);
    else if (in->kind == INPUT_STREAM && in->stream.group == STAGE)
        actors_hear_stream(a, &in->stream);
    else if (in->kind == INPUT_DRAINED && in->drained.group == STAGE)
        a->heard[in->drained.index].drained = in->drained.offset;
}

/* ---- what is done ---- */

static inline void actors_group(struct actors *a, enum effect_kind kind, uint32_t group,
                                uint32_t value) {
    struct effect e = {.kind = kind, .group = {.group = group, .value = value}};
    a->carry(a, &e);
}

/* Words are parted by single blanks. */
static inline void actors_open(struct actors *a, const struct play *p, uint32_t group,
                               const char *words, uint32_t count) {
    uint8_t spec_bytes[1024], setup_bytes[2048];
    char arguments[256];
    int len = snprintf(arguments, sizeof arguments, "actor %s", words) + (words[0] != '\0');
    for (char *c = arguments; *c != '\0'; c++)
        if (*c == ' ')
            *c = '\0';
    bool stage = group == STAGE;
    struct spec spec = {.stdin_mode = stage ? p->stdin_mode : STDIN_NONE,
                        .stdin_rank = 1,
                        .umask = 022,
                        .folder = bytes_from_str(stage && p->folder ? p->folder : "/"),
                        .program = bytes_from_str(stage && p->program ? p->program : a->program),
                        .arguments = bytes_of(arguments, (size_t)len)};
    long spec_len = spec_encode(&spec, room_of(spec_bytes, sizeof spec_bytes));
    struct setup setup = {.run = run_of(7 + group, 0),
                          .count = count,
                          .size = count,
                          .window = p->window ? p->window : 65536,
                          .node_name = bytes_from_str("n0"),
                          .node_list = bytes_from_str("n0"),
                          .spec = bytes_of(spec_bytes, (size_t)spec_len)};
    long setup_len = setup_encode(&setup, room_of(setup_bytes, sizeof setup_bytes));
    CHECK(spec_len > 0 && setup_len > 0);
    struct effect e = {
        .kind = EFFECT_GROUP_OPEN,
        .group = {.group = group, .setup = bytes_of(setup_bytes, (size_t)setup_len)}};
    a->carry(a, &e);
}

/* As far as it was taken up; what was not accepted is said again. */
static inline void actors_feed(struct actors *a) {
    uint8_t piece[ACTORS_PIECE];
    for (uint32_t i = 0; a->feeding && i < a->count; i++) {
        struct actor_heard *h = &a->heard[i];
        while (h->drained != UINT64_MAX && a->fed[i] <= a->want &&
               a->fed[i] - h->drained < 8 * ACTORS_PIECE) {
            uint64_t left = a->want - a->fed[i];
            size_t n = left < ACTORS_PIECE ? (size_t)left : ACTORS_PIECE;
            for (size_t at = 0; at < n; at++)
                piece[at] = act_byte(a->fed[i] + at);
            struct effect e = {.kind = EFFECT_STREAM_FEED,
                               .stream = {.group = STAGE,
                                          .index = i,
                                          .offset = a->fed[i],
                                          .bytes = bytes_of(piece, n),
                                          .end = n == left}};
            a->carry(a, &e);
            a->fed[i] += n + (n == left); /* one more than there are: the end was said */
        }
    }
}

static inline bool actors_drained(const struct actors *a) {
    for (uint32_t i = 0; i < a->count; i++)
        if (a->heard[i].drained < a->want)
            return false;
    return true;
}

/* Everything that was written, and that no more comes. */
static inline bool actors_read(const struct actors *a) {
    for (uint32_t i = 0; i < 2 * a->count; i++)
        if (a->heard[i / 2].next[i % 2] > 0 && !a->heard[i / 2].ended[i % 2])
            return false;
    return true;
}

static inline bool actors_holds(const struct actors *a, const struct step *s) {
    switch (s->kind) {
    case STEP_WAIT_HEARD:
        return a->total >= s->value;
    case STEP_WAIT_ENDS:
        return a->ends >= s->value;
    case STEP_WAIT_DRAINED:
        return actors_drained(a);
    case STEP_WAIT_EMPTY:
        return a->empties[STAGE] > 0;
    case STEP_NONE:
        return a->empties[STAGE] > 0 && actors_read(a);
    case STEP_CLOCK:
        return a->empties[CLOCK] > 0;
    default:
        return true;
    }
}

static inline void actors_wait(struct actors *a, const struct step *s) {
    while (!actors_holds(a, s)) {
        actors_feed(a);
        if (!a->turn(a)) {
            actors_say(a, "waits for ever\n");
            return;
        }
    }
}

static inline void actors_clock(struct actors *a, const struct play *p, const struct step *s) {
    char words[32];
    snprintf(words, sizeof words, "run %ums", s->value);
    a->empties[CLOCK] = 0;
    actors_open(a, p, CLOCK, words, 1);
    actors_group(a, EFFECT_GROUP_START, CLOCK, 0);
    actors_wait(a, s);
    actors_group(a, EFFECT_GROUP_CLOSE, CLOCK, 0);
}

static inline void actors_again(struct actors *a, uint64_t offset) {
    struct effect e = {.kind = EFFECT_STREAM_AGAIN,
                       .stream = {.group = STAGE, .stream = 1, .offset = offset}};
    a->heard[0].next[0] = offset;
    a->carry(a, &e);
}

static inline void actors_step(struct actors *a, const struct play *p, const struct step *s) {
    switch (s->kind) {
    case STEP_START:
        actors_group(a, EFFECT_GROUP_START, STAGE, 0);
        break;
    case STEP_SIGNAL:
        actors_group(a, EFFECT_GROUP_SIGNAL, STAGE, s->value);
        break;
    case STEP_FREEZE:
    case STEP_THAW:
        actors_group(a, EFFECT_GROUP_FREEZE, STAGE, s->kind == STEP_FREEZE);
        break;
    case STEP_KILL:
        actors_group(a, EFFECT_GROUP_KILL, STAGE, 0);
        break;
    case STEP_FEED:
        a->want = s->value;
        a->feeding = true;
        break;
    case STEP_TAKE:
        a->hold = false;
        for (uint32_t i = 0; i < 2 * a->count; i++)
            actors_take(a, i / 2, (uint8_t)(i % 2 + 1));
        break;
    case STEP_AGAIN:
        actors_again(a, s->value);
        break;
    case STEP_CLOCK:
        actors_clock(a, p, s);
        break;
    case STEP_NOTE:
        actors_say(a, "note: heard %u, ended %u%s\n", (unsigned)a->total, a->ends,
                   a->empties[STAGE] > 0 ? ", empty" : "");
        a->scene++;
        break;
    default:
        actors_wait(a, s);
    }
}

static inline void actors_tell(struct actors *a, uint32_t index) {
    const struct actor_heard *h = &a->heard[index];
    static const char *const events[] = {"", "failed", "exited", "killed"};
    actors_say(a, "%u:", index);
    if (h->next[0] > 0 || h->next[1] > 0)
        actors_say(a, " wrote %u %u", (unsigned)h->next[0], (unsigned)h->next[1]);
    actors_say(a, " %s %u", h->over ? events[h->end.event] : "alive", h->end.value);
    if (h->over && h->end.event == CHILD_FAILED)
        actors_say(a, " step %u", h->end.step);
    if (h->scene > 0)
        actors_say(a, " in scene %u", h->scene);
    actors_say(a, "\n");
}

static inline void actors_play(struct actors *a, const struct play *p) {
    static const struct step last = {.kind = STEP_NONE};
    a->count = p->count;
    a->hold = p->hold;
    actors_open(a, p, STAGE, p->words, p->count);
    for (uint32_t i = 0; i < ACTORS_STEPS && p->steps[i].kind != STEP_NONE; i++)
        actors_step(a, p, &p->steps[i]);
    actors_wait(a, &last);
    for (uint32_t i = 0; i < a->count; i++)
        actors_tell(a, i);
    CHECK_EQ(a->empties[STAGE], 1);
    CHECK_EQ(a->wrong, 0);
    actors_group(a, EFFECT_GROUP_CLOSE, STAGE, 0);
    if (!CHECK_STR(a->text, p->history))
        printf("# in the play: %s\n", p->name);
}

/* ---- the plays ---- */

/* clang-format off */
static const struct play plays[] = {
    {"ends", 3, "exit 3", .steps = {{STEP_START, 0}},
     .history = "0: exited 3\n1: exited 3\n2: exited 3\n"},
    {"does nothing", 1, "", .steps = {{STEP_START, 0}}, .history = "0: exited 0\n"},
    {"does not understand", 1, "juggle", .steps = {{STEP_START, 0}}, .history = "0: exited 2\n"},
    {"status of one byte", 1, "exit 259", .steps = {{STEP_START, 0}}, .history = "0: exited 3\n"},
    {"takes a while", 2, "run 20ms exit 1", .steps = {{STEP_START, 0}},
     .history = "0: exited 1\n1: exited 1\n"},
    {"ends by a signal", 1, "signal 11", .steps = {{STEP_START, 0}}, .history = "0: killed 11\n"},
    {"kills itself", 1, "signal 9", .steps = {{STEP_START, 0}}, .history = "0: killed 9\n"},
    {"no such program", 2, "", .program = "/none", .steps = {{STEP_START, 0}},
     .history = "0: failed 2 step 0\n1: failed 2 step 0\n"},
    {"no program at all", 1, "", .program = "/etc/passwd", .steps = {{STEP_START, 0}},
     .history = "0: failed 13 step 0\n"},
    {"no such folder", 1, "", .folder = "/none", .steps = {{STEP_START, 0}},
     .history = "0: failed 2 step 1\n"},
    {"nothing begins before the start", 1, "write 10",
     .steps = {{STEP_CLOCK, 30}, {STEP_NOTE, 0}, {STEP_START, 0}},
     .history = "note: heard 0, ended 0\n0: wrote 10 0 exited 0 in scene 1\n"},
    {"writes", 2, "write 100 error 50 write 28", .steps = {{STEP_START, 0}},
     .history = "0: wrote 128 50 exited 0\n1: wrote 128 50 exited 0\n"},
    {"writes much", 2, "write 1000000 error 300000 exit 1", .steps = {{STEP_START, 0}},
     .history = "0: wrote 1000000 300000 exited 1\n1: wrote 1000000 300000 exited 1\n"},
    {"is not told more than the window", 1, "write 100000", .window = 8192, .hold = true,
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 8192}, {STEP_CLOCK, 30}, {STEP_NOTE, 0},
               {STEP_TAKE, 0}},
     .history = "note: heard 8192, ended 0\n0: wrote 100000 0 exited 0 in scene 1\n"},
    {"ends while its output waits", 1, "write 10000", .window = 8192, .hold = true,
     .steps = {{STEP_START, 0}, {STEP_WAIT_ENDS, 1}, {STEP_WAIT_EMPTY, 0}, {STEP_NOTE, 0},
               {STEP_TAKE, 0}, {STEP_WAIT_HEARD, 10000}},
     .history = "note: heard 8192, ended 1, empty\n0: wrote 10000 0 exited 0\n"},
    {"is told again", 1, "write 300 hang", .hold = true,
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 300}, {STEP_AGAIN, 100}, {STEP_WAIT_HEARD, 500},
               {STEP_NOTE, 0}, {STEP_KILL, 0}},
     .history = "note: heard 500, ended 0\n0: wrote 300 0 killed 9 in scene 1\n"},
    {"is told again from what was taken", 1, "write 300 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 300}, {STEP_AGAIN, 300}, {STEP_CLOCK, 20},
               {STEP_NOTE, 0}, {STEP_KILL, 0}},
     .history = "note: heard 300, ended 0\n0: wrote 300 0 killed 9 in scene 1\n"},
    {"copies", 1, "cat exit 5", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_FEED, 500000}},
     .history = "0: wrote 500000 0 exited 5\n"},
    {"copies nothing", 1, "cat", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_FEED, 0}}, .history = "0: exited 0\n"},
    {"one of them reads", 3, "cat", .stdin_mode = STDIN_RANK,
     .steps = {{STEP_START, 0}, {STEP_FEED, 1000}},
     .history = "0: exited 0\n1: wrote 1000 0 exited 0\n2: exited 0\n"},
    {"none of them reads", 1, "cat", .steps = {{STEP_START, 0}}, .history = "0: exited 0\n"},
    {"all of them read", 3, "read 10 cat", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_FEED, 10}},
     .history = "0: exited 0\n1: exited 0\n2: exited 0\n"},
    {"input goes into the pipe", 1, "hang", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_FEED, 5000}, {STEP_WAIT_DRAINED, 0}, {STEP_KILL, 0}},
     .history = "0: killed 9\n"},
    {"is terminated", 2, "write 1 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 2}, {STEP_SIGNAL, 15}},
     .history = "0: wrote 1 0 killed 15\n1: wrote 1 0 killed 15\n"},
    {"is interrupted", 1, "hang", .steps = {{STEP_START, 0}, {STEP_SIGNAL, 2}},
     .history = "0: killed 2\n"},
    {"does not mind a window", 1, "write 1 run 30ms exit 4",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_SIGNAL, 28}},
     .history = "0: wrote 1 0 exited 4\n"},
    {"ignores", 1, "ignore-term write 1 run 30ms exit 4",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_SIGNAL, 15}},
     .history = "0: wrote 1 0 exited 4\n"},
    {"ignores and is killed", 1, "ignore-term write 1 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_SIGNAL, 15}, {STEP_CLOCK, 20},
               {STEP_NOTE, 0}, {STEP_KILL, 0}},
     .history = "note: heard 1, ended 0\n0: wrote 1 0 killed 9 in scene 1\n"},
    {"catches", 1, "catch-term 77 write 1 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_SIGNAL, 15}},
     .history = "0: wrote 1 0 exited 77\n"},
    {"stops and goes on", 1, "write 1 read 9 exit 6", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_SIGNAL, 19}, {STEP_FEED, 9},
               {STEP_CLOCK, 50}, {STEP_NOTE, 0}, {STEP_SIGNAL, 18}},
     .history = "note: heard 1, ended 0\n0: wrote 1 0 exited 6 in scene 1\n"},
    {"is frozen", 2, "cat", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_FREEZE, 0}, {STEP_FEED, 10}, {STEP_CLOCK, 50}, {STEP_NOTE, 0},
               {STEP_THAW, 0}},
     .history = "note: heard 0, ended 0\n0: wrote 10 0 exited 0 in scene 1\n"
                "1: wrote 10 0 exited 0 in scene 1\n"},
    {"is frozen before it starts", 1, "write 10",
     .steps = {{STEP_FREEZE, 0}, {STEP_START, 0}, {STEP_THAW, 0}},
     .history = "0: wrote 10 0 exited 0\n"},
    {"is killed while frozen", 2, "write 1 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 2}, {STEP_FREEZE, 0}, {STEP_KILL, 0}},
     .history = "0: wrote 1 0 killed 9\n1: wrote 1 0 killed 9\n"},
    {"a signal waits for the thaw", 1, "catch-term 8 write 1 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_FREEZE, 0}, {STEP_CLOCK, 30},
               {STEP_SIGNAL, 15}, {STEP_CLOCK, 30}, {STEP_NOTE, 0}, {STEP_THAW, 0}},
     .history = "note: heard 1, ended 0\n0: wrote 1 0 exited 8 in scene 1\n"},
    {"what was stopped stays so", 2, "write 1 read 9 exit 6", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 2}, {STEP_SIGNAL, 19}, {STEP_CLOCK, 30}, {STEP_FREEZE, 0},
               {STEP_FEED, 9}, {STEP_CLOCK, 30}, {STEP_THAW, 0}, {STEP_CLOCK, 50}, {STEP_NOTE, 0},
               {STEP_SIGNAL, 18}},
     .history = "note: heard 2, ended 0\n0: wrote 1 0 exited 6 in scene 1\n"
                "1: wrote 1 0 exited 6 in scene 1\n"},
    {"is told to go on while frozen", 1, "write 1 read 9 exit 6", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 1}, {STEP_SIGNAL, 19}, {STEP_CLOCK, 30}, {STEP_FREEZE, 0},
               {STEP_SIGNAL, 18}, {STEP_FEED, 9}, {STEP_CLOCK, 50}, {STEP_NOTE, 0}, {STEP_THAW, 0}},
     .history = "note: heard 1, ended 0\n0: wrote 1 0 exited 6 in scene 1\n"},
    {"leaves a child", 2, "fork exit 3",
     .steps = {{STEP_START, 0}, {STEP_WAIT_ENDS, 2}, {STEP_CLOCK, 30}, {STEP_NOTE, 0},
               {STEP_KILL, 0}},
     .history = "note: heard 0, ended 2\n0: exited 3\n1: exited 3\n"},
    {"gets away", 2, "fork-away write 10 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_ENDS, 2}, {STEP_WAIT_HEARD, 20}, {STEP_CLOCK, 30},
               {STEP_NOTE, 0}, {STEP_KILL, 0}},
     .history = "note: heard 20, ended 2\n0: wrote 10 0 exited 0\n1: wrote 10 0 exited 0\n"},
    {"gets away and ends by itself", 1, "fork-away run 20ms write 10 exit 9",
     .steps = {{STEP_START, 0}, {STEP_WAIT_ENDS, 1}}, .history = "0: wrote 10 0 exited 0\n"},
    {"gets away and ignores", 1, "ignore-term fork-away write 10 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 10}, {STEP_SIGNAL, 15}, {STEP_CLOCK, 30},
               {STEP_NOTE, 0}, {STEP_KILL, 0}},
     .history = "note: heard 10, ended 1\n0: wrote 10 0 exited 0\n"},
    {"gets away and is terminated", 1, "fork-away write 10 hang",
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 10}, {STEP_SIGNAL, 15}},
     .history = "0: wrote 10 0 exited 0\n"},
    {"who got away is frozen too", 1, "fork-away write 10 read 9 write 10", .stdin_mode = STDIN_ALL,
     .steps = {{STEP_START, 0}, {STEP_WAIT_HEARD, 10}, {STEP_WAIT_ENDS, 1}, {STEP_FREEZE, 0},
               {STEP_FEED, 9}, {STEP_CLOCK, 50}, {STEP_NOTE, 0}, {STEP_THAW, 0}},
     .history = "note: heard 10, ended 1\n0: wrote 20 0 exited 0\n"},
};
/* clang-format on */

enum { PLAYS = sizeof plays / sizeof plays[0] };
