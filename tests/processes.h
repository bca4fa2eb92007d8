/* SPDX-License-Identifier: MIT */
/*
 * For tests of a launcher's processes: what is to be run, what was heard of it, and turns until it is
 * over; with cgroups, with pid namespaces, and without either.
 */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "os/cgroup.h"
#include "os/kernel.h"
#include "os/pen.h"
#include "turns.h"
#include "wire/message.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { GROUPS = 4, PROCESSES = 8, KEPT = 16 * 1024, WINDOW = 64 * 1024 };

/* ---- what was heard ---- */

struct heard_stream {
    uint64_t next; /* offset expected */
    uint64_t hash;
    uint32_t pieces;
    bool ended;
    char text[KEPT];
    size_t len;
};

struct heard {
    struct input_child start, end;
    uint32_t starts, ends;
    struct heard_stream stream[2];
    uint64_t drained;
    uint32_t drains;
};

struct heard_group {
    struct heard heard[PROCESSES];
    uint32_t empties;
    uint32_t measures;
    struct usage usage; /* as it was told last */
};

static struct {
    struct loop loop;
    struct kernel *kernel;
    const char *cgroup; /* for the next kernel */
    enum confine confine;
    const char *rations;
    bool hold;        /* take nothing */
    bool kill_at_end; /* as a launcher does when its own processes have ended */
    struct heard_group groups[GROUPS];
} stage;

static inline void carry(enum effect_kind kind, uint32_t group, uint32_t value) {
    struct effect e = {.kind = kind, .group = {.group = group, .value = value}};
    CHECK(kernel_wants(kind));
    kernel_carry(stage.kernel, &e);
}

static inline void take(uint32_t group, uint32_t index, uint8_t stream, uint64_t offset) {
    struct effect e = {
        .kind = EFFECT_STREAM_TAKEN,
        .stream = {.group = group, .index = index, .stream = stream, .offset = offset}};
    kernel_carry(stage.kernel, &e);
}

static inline void hear_stream(const struct input_stream *in) {
    struct heard_stream *s = &stage.groups[in->group].heard[in->index].stream[in->stream - 1];
    CHECK(in->stream == 1 || in->stream == 2);
    CHECK_EQ(in->offset, s->next);
    CHECK(!s->ended);
    CHECK(in->bytes.len <= 64 * 1024);
    CHECK(in->bytes.len > 0 || in->end);
    s->next += in->bytes.len;
    s->pieces++;
    s->ended = in->end;
    for (size_t i = 0; i < in->bytes.len; i++)
        s->hash = (s->hash ^ in->bytes.at[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < in->bytes.len && s->len < KEPT - 1; i++)
        s->text[s->len++] = (char)in->bytes.at[i];
    if (!stage.hold)
        take(in->group, in->index, in->stream, s->next);
}

static inline void hear_child(const struct input_child *in) {
    struct heard *h = &stage.groups[in->group].heard[in->index];
    if (in->event == CHILD_STARTED || in->event == CHILD_FAILED) {
        h->start = *in;
        h->starts++;
        CHECK_EQ(h->ends, 0);
    } else {
        h->end = *in;
        h->ends++;
        CHECK_EQ(h->starts, 1);
        if (stage.kill_at_end)
            carry(EFFECT_GROUP_KILL, in->group, 0);
    }
}

static inline void hear_usage(const struct input *in) {
    bool empty = in->kind == INPUT_EMPTY;
    const struct input_measured *m = empty ? &in->empty : &in->measured;
    stage.groups[m->group].empties += empty;
    stage.groups[m->group].measures += !empty;
    stage.groups[m->group].usage = m->usage;
}

static inline void feed(void *context, const struct input *in) {
    CHECK(context == &stage);
    CHECK_EQ(in->now, stage.loop.now);
    if (in->kind == INPUT_CHILD)
        hear_child(&in->child);
    else if (in->kind == INPUT_STREAM)
        hear_stream(&in->stream);
    else if (in->kind == INPUT_EMPTY || in->kind == INPUT_MEASURED)
        hear_usage(in);
    else if (CHECK_EQ(in->kind, INPUT_DRAINED)) {
        struct heard *h = &stage.groups[in->drained.group].heard[in->drained.index];
        CHECK(in->drained.offset >= h->drained || in->drained.offset == UINT64_MAX);
        h->drained = in->drained.offset;
        h->drains++;
    }
}

/* ---- what is to be run ---- */

/* A spec and setup under construction. */
struct order {
    struct setup setup;
    struct spec spec;
    char arguments[4096];
    char environment[1024];
    uint8_t limits[4 * SPEC_LIMIT_BYTES];
};

static inline void add_string(struct bytes *list, char *room, const char *s) {
    memcpy(room + list->len, s, strlen(s) + 1);
    list->at = (const uint8_t *)room;
    list->len += strlen(s) + 1;
}

static inline void order_program(struct order *o, const char *program,
                                 const char *const *arguments) {
    *o = (struct order){
        .setup = {.run = run_of(7, 1), .count = 1, .size = 1, .window = WINDOW},
        .spec = {.umask = 022},
    };
    o->setup.node_name = bytes_from_str("n3");
    o->setup.node_list = bytes_from_str("n[3-4]");
    o->spec.folder = bytes_from_str("/");
    o->spec.program = bytes_from_str(program);
    add_string(&o->spec.environment, o->environment, "PATH=/usr/bin:/bin");
    for (; *arguments != NULL; arguments++)
        add_string(&o->spec.arguments, o->arguments, *arguments);
}

static inline void order_shell(struct order *o, const char *script) {
    order_program(o, "/bin/sh", (const char *[]){"sh", "-c", script, NULL});
}

static inline void order_count(struct order *o, uint32_t count) {
    o->setup.count = o->setup.size = count;
}

static inline void order_limit(struct order *o, uint8_t resource, uint64_t soft, uint64_t hard) {
    struct rlimit_spec l = {.resource = resource, .soft = soft, .hard = hard};
    spec_limit_store(o->limits + o->spec.limits.len, &l);
    o->spec.limits = bytes_of(o->limits, o->spec.limits.len + SPEC_LIMIT_BYTES);
}

/* ---- the stage ---- */

static inline void stage_begin(void) {
    int r;
    stage.hold = stage.kill_at_end = false;
    memset(stage.groups, 0, sizeof stage.groups);
    CHECK_EQ(loop_init(&stage.loop), 0);
    struct kernel_config config = {.loop = &stage.loop,
                                   .feed = feed,
                                   .context = &stage,
                                   .cgroup = stage.cgroup,
                                   .confine = stage.confine,
                                   .rations = stage.rations,
                                   .groups = GROUPS};
    stage.kernel = kernel_new(&config, &r);
    CHECK_EQ(r, 0);
    CHECK(confine_met(stage.confine, kernel_guarantee(stage.kernel)));
    CHECK(kernel_notice(stage.kernel) == NULL);
}

static inline void stage_end(void) {
    kernel_free(stage.kernel);
    loop_fini(&stage.loop);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* no child is left, dead or alive */
}

static inline void open_group(uint32_t group, struct order *o) {
    static uint8_t spec[8192], setup[16384];
    long n = spec_encode(&o->spec, room_of(spec, sizeof spec));
    CHECK(n > 0);
    o->setup.spec = bytes_of(spec, (size_t)n);
    n = setup_encode(&o->setup, room_of(setup, sizeof setup));
    CHECK(n > 0);
    memset(&stage.groups[group], 0, sizeof stage.groups[group]);
    struct effect e = {.kind = EFFECT_GROUP_OPEN,
                       .group = {.group = group, .setup = bytes_of(setup, (size_t)n)}};
    kernel_carry(stage.kernel, &e);
    memset(setup, 0xee, sizeof setup); /* it was copied */
    carry(EFFECT_GROUP_START, group, 0);
    kernel_settle(stage.kernel);
}

#define UNTIL(condition) TURN_UNTIL(&stage.loop, kernel_settle(stage.kernel), condition)

static inline void close_group(uint32_t group) {
    carry(EFFECT_GROUP_CLOSE, group, 0);
    kernel_settle(stage.kernel);
}

/* All streams of the group have ended, and it is empty. */
static inline bool over(uint32_t group, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!stage.groups[group].heard[i].stream[0].ended ||
            !stage.groups[group].heard[i].stream[1].ended)
            return false;
    return stage.groups[group].empties > 0;
}

/* Runs it as group 0 to its end, closes it; what the first process did. */
static inline const struct heard *run(struct order *o) {
    open_group(0, o);
    CHECK(UNTIL(over(0, o->setup.count)));
    CHECK_EQ(stage.groups[0].empties, 1);
    close_group(0);
    return &stage.groups[0].heard[0];
}

static inline void check_ended(const struct heard *h, enum child_event event, uint32_t value) {
    CHECK_EQ(h->starts, 1);
    CHECK_EQ(h->start.event, CHILD_STARTED);
    CHECK_EQ(h->ends, 1);
    CHECK_EQ(h->end.event, event);
    CHECK_EQ(h->end.value, value);
}

static inline void check_failed(const struct heard *h, enum spawn_step step, int error) {
    CHECK_EQ(h->starts, 1);
    CHECK_EQ(h->start.event, CHILD_FAILED);
    CHECK_EQ(h->start.step, step);
    CHECK_EQ(h->start.value, error);
    CHECK_EQ(h->ends, 0);
}

/* For the standard input of a process of group 0. */
static inline void type(uint32_t index, uint64_t offset, const void *bytes, size_t len, bool end) {
    struct effect e = {.kind = EFFECT_STREAM_FEED,
                       .stream = {.group = 0,
                                  .index = index,
                                  .offset = offset,
                                  .bytes = bytes_of(bytes, len),
                                  .end = end}};
    kernel_carry(stage.kernel, &e);
}

/* ---- all of it, every way ---- */

static inline void with_namespaces(void (*all)(void)) {
    struct pens_trouble t;
    if (pens_try(&t) < 0) {
        SKIP("with pid namespaces", t.words);
        return;
    }
    stage.confine = CONFINE_NAMESPACE;
    all();
}

/* Runs the tests by descent alone, then with pid namespaces and with cgroups if there are any. */
static inline int every_way(void (*all)(void)) {
    char own[PATH_MAX], folder[PATH_MAX];
    stage.confine = CONFINE_NONE;
    all();
    with_namespaces(all);
    if (cgroup_own(own, sizeof own) < 0) {
        SKIP("with cgroups", "no cgroup version 2 is mounted");
        return tap_finish();
    }
    snprintf(folder, sizeof folder, "%.3000s/storm-test-%d", own, (int)getpid());
    if (mkdir(folder, 0755) < 0) {
        SKIP("with cgroups", "the cgroup of this process cannot be divided");
        return tap_finish();
    }
    stage.cgroup = folder;
    stage.confine = CONFINE_CGROUP;
    all();
    rmdir(folder);
    return tap_finish();
}
