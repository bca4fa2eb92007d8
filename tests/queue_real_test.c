/* SPDX-License-Identifier: MIT */
/* A remote queue on real processes: none lost, none doubled, memory flat, with one slow node.
 *
 * The master at the root sends STORM_QUEUE_MESSAGES (20,000; `make soak` a million) messages through
 * a queue of 16 slots to 64 nodes. One of them takes its time, so the flow control is at work all
 * the while. Everyone verifies number, order and contents. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/units.h"
#include "os/crew.h"
#include "os/process.h"
#include "queue_daemons.h"
#include "tap.h"

enum { NODES = 64, ROOT = NODES, SLOTS = 16, SLOT_BYTES = 64, SLOW_NODE = 37 };
enum { MESSAGES = 20000 };

#define PERIOD (500 * NS_PER_MS)

/* Of the slow node, for each batch of half a queue. */
#define SLOW_NS (2 * NS_PER_MS)

struct results {
    struct queue_master_result master;
    struct queue_consumer_result consumers[NODES];
};

struct stage {
    struct crew *crew;
    struct results *results; /* shared */
    struct limits limits;
    uint64_t messages;
    struct nodeset nodes;
    uint64_t storage[8];
    /* of this process */
    struct queue_daemon daemon;
    struct queue_master master;
    struct queue_consumer consumer;
};

static const struct queue_shape shape = {
    .slots = SLOTS, .slot_bytes = SLOT_BYTES, .event = 1, .dequeued = 0};

static void make_master(struct stage *s) {
    struct queue_master_config c = {.nodes = &s->nodes,
                                    .messages = s->messages,
                                    .life = 1,
                                    .at_root = true,
                                    .wait_consumed = true};
    c.queue = (struct queue_config){.shape = shape,
                                    .universe = limits_universe(&s->limits),
                                    .body_bytes = s->limits.body_bytes,
                                    .backlog = 64,
                                    .tag = queue_daemon_tag(0),
                                    .timer = queue_daemon_timer(0, QUEUE_TIMER_MASTER)};
    queue_config_times(&c.queue, PERIOD);
    struct arena arena;
    size_t bytes = queue_master_bytes(&c) + 4096;
    arena_init(&arena, aligned_alloc(64, align_up(bytes, 64)), bytes);
    memset(arena.mem, 0, bytes);
    queue_master_init(&s->master, &c, &s->results->master, &arena);
    s->daemon = (struct queue_daemon){.masters = {&s->master}, .master_count = 1};
}

static void make_consumer(struct stage *s, uint32_t node) {
    struct queue_consumer_config c = {
        .reader = {.shape = shape,
                   .heap = crew_heap(s->crew, node),
                   .timer = queue_daemon_timer(0, QUEUE_TIMER_READER)}};
    if (node == SLOW_NODE)
        c.pace_ns = SLOW_NS;
    queue_consumer_init(&s->consumer, &c, &s->results->consumers[node]);
    s->daemon = (struct queue_daemon){.consumers = {&s->consumer}, .consumer_count = 1};
}

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct stage *s = context;
    (void)globals;
    if (node == ROOT)
        make_master(s);
    else
        make_consumer(s, node);
    return (struct machine){.self = &s->daemon, .step = queue_daemon_step};
}

/* Only the root wakes us, when it has finished. */
static void observe(void *context, struct life *l) {
    struct stage *s = context;
    if (life_node(l) == ROOT && s->results->master.finished)
        crew_ring(s->crew);
}

static uint64_t largest(const struct stage *s) {
    uint64_t most = 0;
    for (uint32_t n = 0; n <= NODES; n++) {
        uint64_t kib = process_private_bytes(crew_pid(s->crew, n)) / KIB;
        most = kib > most ? kib : most;
    }
    return most;
}

static void begin(struct stage *s) {
    const char *wanted = getenv("STORM_QUEUE_MESSAGES");
    struct crew_config c = {
        .links = TRANSPORT_TCP, .daemon = make_daemon, .observe = observe, .context = s};
    *s = (struct stage){.messages = wanted != NULL ? strtoull(wanted, NULL, 10) : MESSAGES};
    s->limits = c.prim.limits = (struct limits){.nodes = NODES,
                                                .roots = 1,
                                                .variables = 4,
                                                .events = 4,
                                                .heap_bytes = SLOTS * SLOT_BYTES,
                                                .children = 24,
                                                .window = 16,
                                                .queue = 32,
                                                .outstanding = 16,
                                                .body_bytes = SLOTS * SLOT_BYTES,
                                                .standing = 4,
                                                .transfers = 1,
                                                .chunk_bytes = 4096,
                                                .slots = 2};
    c.prim.tree = (struct tree){.shape = SHAPE_KARY, .arity = 8, .nodes = NODES};
    prim_config_times(&c.prim, PERIOD);
    nodeset_init(&s->nodes, NODES + 1, s->storage);
    ASSERT(nodeset_bytes(NODES + 1) <= sizeof s->storage);
    nodeset_add_range(&s->nodes, 0, NODES - 1);
    s->results =
        mmap(NULL, sizeof *s->results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(s->results != MAP_FAILED);
    int error;
    s->crew = crew_new(&c, &error);
    ASSERT(s->crew != NULL);
    CHECK_EQ(crew_start_all(s->crew), 0);
}

/* Waits until the master has sent so many, or has finished; false if nothing moves for a minute. */
static bool await(struct stage *s, uint64_t delivered) {
    const struct queue_master_result *m = &s->results->master;
    uint64_t seen = 0, since = clock_ns();
    while (!m->finished && m->delivered < delivered) {
        CHECK_EQ(crew_wait(s->crew, 100), 0);
        if (m->delivered != seen)
            since = clock_ns();
        seen = m->delivered;
        if (clock_ns() - since > 60 * NS_PER_S)
            return false;
    }
    return true;
}

static void test_one_slow_node(void) {
    static struct stage s;
    begin(&s);
    CHECK(await(&s, s.messages / 10));
    uint64_t early = largest(&s);
    CHECK(await(&s, UINT64_MAX));
    uint64_t late = largest(&s);
    const struct queue_master_result *m = &s.results->master;
    CHECK_EQ(m->pushed, s.messages);
    CHECK_EQ(m->delivered, s.messages);
    CHECK_EQ(m->consumed, s.messages);
    CHECK_EQ(m->lost, 0);
    CHECK_EQ(m->failed, 0);
    for (uint32_t n = 0; n < NODES; n++) {
        const struct queue_consumer_result *r = &s.results->consumers[n];
        CHECK_EQ(r->consumed, s.messages);
        CHECK_EQ(r->last, s.messages);
        CHECK_EQ(r->begun, 1);
        CHECK_EQ(r->wrong + r->misplaced + r->fault, 0);
    }
    CHECK(late <= early + 64);
    printf("## queue of %d slots, %d processes, one slow: %" PRIu64 " messages in %" PRIu64
           " transfers, %" PRIu64 " compares, %" PRIu64 " standing; largest process %" PRIu64
           " KiB early, %" PRIu64 " KiB late\n",
           SLOTS, NODES, s.messages, m->transfers, m->compares, m->standing, early, late);
    crew_free(s.crew);
    munmap(s.results, sizeof *s.results);
}

int main(void) {
    TEST(test_one_slow_node);
    return tap_finish();
}
