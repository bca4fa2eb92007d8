/* SPDX-License-Identifier: MIT */
/* Liveness and the gathering of status on real processes.
 *
 * The root's daemon embeds both; every node publishes a record. A node that is stopped is found
 * silent, by name, and named as missing by a gather; when it goes on it answers again. A node that
 * is killed goes down. Whatever happens, the records gathered are those of the nodes. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/units.h"
#include "os/crew.h"
#include "rm/gather.h"
#include "rm/liveness.h"
#include "tap.h"

enum { NODES = 20, ROOT = NODES, STOPPED = 7, KILLED = 13, CHANNEL = 0 };
enum { TAG_LIVENESS = 1, TAG_GATHER = 2, TIMER_GATHER = 1 };

/* Long enough for a busy machine not to make the living look silent. */
#define PERIOD  (400 * NS_PER_MS)
#define GATHER  (2 * PERIOD)
#define PATIENT (100 * PERIOD)

/* What the root shows; one writer. */
struct view {
    atomic_uint silences[NODES], returns[NODES], downs[NODES], ups[NODES];
    atomic_uint wanted, gathers; /* asked for by the test, ended */
    _Atomic uint64_t missing;    /* of the last one, a bit for each node */
    atomic_uint right;           /* records of the last one that are as published */
};

struct stage {
    struct crew *crew;
    struct view *view; /* shared */
    struct limits limits;
    uint32_t node; /* of this process */
    struct liveness *liveness;
    struct gather *gather;
    struct nodeset all;
    uint64_t storage[8];
};

static void store_record(uint8_t record[12], uint32_t node) {
    store_le32(record, node);
    store_le64(record + 4, (uint64_t)node * node + 7);
}

static void count_each(atomic_uint *counts, const struct nodeset *set) {
    NODESET_EACH (n, set)
        if (n < NODES)
            atomic_fetch_add(&counts[n], 1);
}

static void gathered(struct stage *s) {
    uint64_t missing = 0;
    uint32_t right = 0;
    for (uint32_t n = 0; n < NODES; n++) {
        struct gather_record r;
        uint8_t expected[12];
        store_record(expected, n);
        if (nodeset_has(gather_missing(s->gather), n))
            missing |= (uint64_t)1 << n;
        else
            right += gather_get(s->gather, n, &r) && r.bytes.len == sizeof expected &&
                     memcmp(r.bytes.at, expected, sizeof expected) == 0;
    }
    atomic_store(&s->view->missing, missing);
    atomic_store(&s->view->right, right);
    atomic_fetch_add(&s->view->gathers, 1);
}

static void step_root(struct stage *s, const struct input *in, struct effects *out) {
    const struct liveness_news *news = liveness_input(s->liveness, in, out);
    if (news != NULL) {
        count_each(s->view->ups, &news->up);
        count_each(s->view->silences, &news->silent);
        count_each(s->view->returns, &news->back);
        count_each(s->view->downs, &news->down);
    }
    if (gather_input(s->gather, in, out) != GATHER_NOTHING)
        gathered(s);
    if (atomic_load(&s->view->wanted) > atomic_load(&s->view->gathers) && !gather_busy(s->gather) &&
        in->kind == INPUT_TIMER)
        gather_start(s->gather, &s->all, GATHER, in->now, out);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct stage *s = self;
    uint8_t record[12];
    if (s->node == ROOT) {
        step_root(s, in, out);
    } else if (in->kind == INPUT_JOINED) {
        store_record(record, s->node);
        gather_publish(CHANNEL, effects_copy(out, bytes_of(record, sizeof record)), out);
    }
}

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct stage *s = context;
    struct liveness_config l = {.limits = s->limits, .period_ns = PERIOD, .tag = TAG_LIVENESS};
    struct gather_config g = {.limits = s->limits,
                              .channel = CHANNEL,
                              .tries = 2,
                              .timer = TIMER_GATHER,
                              .tag = TAG_GATHER};
    (void)globals;
    s->node = node;
    if (node == ROOT) {
        size_t bytes = liveness_bytes(&l) + gather_bytes(&g) + 128;
        struct arena arena;
        arena_init(&arena, calloc(1, bytes), bytes);
        ASSERT(arena.mem != NULL);
        s->liveness = liveness_new(&l, &arena);
        s->gather = gather_new(&g, &arena);
    }
    return (struct machine){.self = s, .step = step};
}

static void poked(void *context, struct life *l) {
    struct input in = {.kind = INPUT_TIMER, .now = life_now(l)};
    (void)context;
    in.timer.id = TIMER_GATHER + 1;
    life_feed(l, LAYER_DAEMON, &in);
}

#define UNTIL(s, condition)                            \
    ({                                                 \
        uint64_t until_end = clock_ns() + PATIENT;     \
        while (!(condition) && clock_ns() < until_end) \
            crew_wait((s)->crew, 10);                  \
        (condition);                                   \
    })

static bool all_up(const struct stage *s) {
    for (uint32_t n = 0; n < NODES; n++)
        if (atomic_load(&s->view->ups[n]) == 0)
            return false;
    return true;
}

/* One gather of all nodes, now. */
static bool gather_now(struct stage *s) {
    uint32_t wanted = atomic_fetch_add(&s->view->wanted, 1) + 1;
    crew_poke(s->crew, ROOT);
    return UNTIL(s, atomic_load(&s->view->gathers) == wanted);
}

static void begin(struct stage *s, enum transport links) {
    struct crew_config c = {.links = links, .daemon = make_daemon, .poked = poked, .context = s};
    *s = (struct stage){0};
    s->limits = c.prim.limits = (struct limits){.nodes = NODES,
                                                .roots = 1,
                                                .variables = 2,
                                                .events = 2,
                                                .heap_bytes = 64,
                                                .children = 24,
                                                .window = 8,
                                                .queue = 8,
                                                .outstanding = 8,
                                                .body_bytes = 64,
                                                .standing = 1,
                                                .transfers = 1,
                                                .chunk_bytes = 64,
                                                .slots = 1,
                                                .record_channels = 1,
                                                .record_bytes = 16};
    c.prim.tree = (struct tree){.shape = SHAPE_KARY, .arity = 4, .nodes = NODES};
    prim_config_times(&c.prim, PERIOD);
    ASSERT(nodeset_bytes(NODES + 1) <= sizeof s->storage);
    nodeset_init(&s->all, NODES + 1, s->storage);
    nodeset_add_range(&s->all, 0, NODES - 1);
    s->view =
        mmap(NULL, sizeof *s->view, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(s->view != MAP_FAILED);
    int error;
    s->crew = crew_new(&c, &error);
    ASSERT(s->crew != NULL);
    CHECK_EQ(crew_start_all(s->crew), 0);
    CHECK(UNTIL(s, all_up(s)));
}

static void watch_them(enum transport links) {
    static struct stage s;
    begin(&s, links);
    struct view *v = s.view;

    CHECK(gather_now(&s));
    CHECK_EQ(v->missing, 0);
    CHECK_EQ(v->right, NODES);

    CHECK_EQ(crew_signal(s.crew, STOPPED, SIGSTOP), 0);
    CHECK(UNTIL(&s, atomic_load(&v->silences[STOPPED]) > 0));
    CHECK_EQ(v->downs[STOPPED], 0);
    CHECK(gather_now(&s));
    CHECK_EQ(v->missing, (uint64_t)1 << STOPPED);
    CHECK_EQ(v->right, NODES - 1);
    CHECK_EQ(crew_signal(s.crew, STOPPED, SIGCONT), 0);
    CHECK(UNTIL(&s, atomic_load(&v->returns[STOPPED]) > 0 || atomic_load(&v->ups[STOPPED]) > 1));

    crew_kill(s.crew, KILLED);
    CHECK(UNTIL(&s, atomic_load(&v->downs[KILLED]) > 0));
    CHECK(gather_now(&s));
    CHECK_EQ(v->missing, (uint64_t)1 << KILLED);
    CHECK_EQ(crew_start(s.crew, KILLED), 0);
    CHECK(UNTIL(&s, atomic_load(&v->ups[KILLED]) > 1));
    CHECK(UNTIL(&s, gather_now(&s) && v->missing == 0 && v->right == NODES));

    crew_free(s.crew);
    munmap(s.view, sizeof *s.view);
}

static void test_over_tcp(void) {
    watch_them(TRANSPORT_TCP);
}

static void test_over_unix_sockets(void) {
    watch_them(TRANSPORT_UNIX);
}

int main(void) {
    TEST(test_over_tcp);
    TEST(test_over_unix_sockets);
    return tap_finish();
}
