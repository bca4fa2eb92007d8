/* SPDX-License-Identifier: MIT */
/* How 10,000 nodes are, gathered at the root: what that costs there. The primitives are real, the network simulated; nodes
 * say what they would say with a job on each.
 *
 * The figures are printed: messages and bytes that come to the root for one gather, and how long it takes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "machine/record.h"
#include "rm/gather.h"
#include "sim/network.h"
#include "sim/world.h"
#include "tap.h"
#include "wire/header.h"
#include "wire/message.h"
#include "wire/vitals.h"

enum { NODES = 10000, ARITY = 8, TIMER_GO = 1, TIMER_GATHER = 2, TAG = 7, RECORD = 256 };

struct stage {
    struct world *world;
    struct gather *gather;
    struct nodeset all;
    uint32_t members;
    bool busy;        /* each node has a run */
    bool watched;     /* the gather is under way */
    uint64_t started; /* and since then */
    uint64_t took;
    uint32_t messages;
    uint64_t bytes;
};

struct speaker {
    struct stage *stage;
    uint32_t node;
};

static void publish(const struct stage *s, uint32_t node, struct effects *out) {
    uint8_t record[RECORD];
    struct vitals g = {.gauge = {.load_x100 = node % 6400,
                                 .memory_bytes = 256 * GIB,
                                 .memory_used = (1 + node % 255) * GIB}};
    struct vitals_run r = {.run = (uint64_t)123456 << 16 | 1,
                           .usage = {.user_ns = (40000 + node) * NS_PER_S,
                                     .system_ns = (300 + node) * NS_PER_S,
                                     .read_bytes = (uint64_t)node * GIB,
                                     .written_bytes = (uint64_t)node * MIB,
                                     .peak_bytes = (2 + node % 100) * GIB}};
    long len = vitals_begin(&g, room_of(record, sizeof record));
    if (s->busy)
        len += vitals_add(&r, room_of(record + len, sizeof record - (size_t)len));
    gather_publish(CHANNEL_VITALS, bytes_of(record, (size_t)len), out);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct speaker *who = self;
    struct stage *s = who->stage;
    if (in->kind == INPUT_JOINED)
        publish(s, who->node, out);
    if (who->node != NODES)
        return;
    if (in->kind == INPUT_BOOT)
        effects_timer(out, TIMER_GO, in->now + 20 * NS_PER_S);
    if (in->kind == INPUT_NODES && in->nodes.up)
        s->members += nodeset_count(in->nodes.nodes);
    if (in->kind == INPUT_TIMER && in->timer.id == TIMER_GO) {
        s->watched = gather_start(s->gather, &s->all, 2 * NS_PER_S, in->now, out);
        s->started = in->now;
    }
    if (gather_input(s->gather, in, out) == GATHER_COMPLETE) {
        s->watched = false;
        s->took = in->now - s->started;
    }
}

static struct speaker speakers[NODES + 1];

static struct machine daemon_of(void *context, uint32_t node, struct globals globals) {
    (void)globals;
    speakers[node] = (struct speaker){context, node};
    return (struct machine){.self = &speakers[node], .step = step};
}

/* Every input of the root. */
static void note(void *context, struct bytes record) {
    static uint64_t words[(NODES + 64) / 64 + 1];
    struct stage *s = context;
    struct record_scratch scratch;
    enum layer layer;
    struct input in;
    size_t used;
    record_scratch_init(&scratch, NODES + 1, words);
    if (!s->watched || record_decode(record, &scratch, &layer, &in, &used) < 0 ||
        in.kind != INPUT_MESSAGE || in.message.type != MESSAGE_RECORDS)
        return;
    s->messages++;
    s->bytes += HEADER_BYTES + in.message.body.len;
}

static struct world_config config_of(struct stage *s) {
    struct world_config c = {
        .link = network_at(0)->link, .seed = 1, .daemon = daemon_of, .context = s};
    c.prim.limits = (struct limits){.nodes = NODES,
                                    .roots = 1,
                                    .variables = 4,
                                    .events = 4,
                                    .heap_bytes = 64,
                                    .children = 4 * ARITY,
                                    .window = 8,
                                    .queue = 24,
                                    .outstanding = 32,
                                    .body_bytes = 128 * KIB,
                                    .standing = 2,
                                    .transfers = 1,
                                    .chunk_bytes = 4096,
                                    .slots = 4,
                                    .record_channels = 1,
                                    .record_bytes = RECORD};
    c.prim.tree = (struct tree){.shape = SHAPE_KARY, .arity = ARITY, .nodes = NODES};
    prim_config_times(&c.prim, 100 * NS_PER_MS);
    return c;
}

static void play(bool busy) {
    static struct stage s;
    s = (struct stage){.busy = busy};
    struct world_config c = config_of(&s);
    struct gather_config gc = {.limits = c.prim.limits,
                               .channel = CHANNEL_VITALS,
                               .tries = 1,
                               .timer = TIMER_GATHER,
                               .tag = TAG};
    struct arena a;
    size_t bytes = gather_bytes(&gc);
    void *memory = calloc(1, bytes), *storage = calloc(1, nodeset_bytes(NODES + 1));
    arena_init(&a, memory, bytes);
    s.gather = gather_new(&gc, &a);
    nodeset_init(&s.all, NODES + 1, storage);
    nodeset_add_range(&s.all, 0, NODES - 1);
    s.world = world_new(&c);
    if (s.world == NULL) {
        printf("# there is no room for so many nodes\n");
    } else {
        world_boot(s.world, NODES, true);
        for (uint32_t i = 0; i < NODES; i++)
            world_boot(s.world, i, false);
        world_record(s.world, NODES, note, &s);
        while (s.took == 0 && world_now(s.world) < 40 * NS_PER_S && world_step(s.world))
            continue;
        printf("# %s: %u nodes, %" PRIu32 " messages to the root, %" PRIu64
               " bytes, %.1f a node, in %.3f ms\n",
               busy ? "a run on each" : "idle", NODES, s.messages, s.bytes, (double)s.bytes / NODES,
               (double)s.took / NS_PER_MS);
        CHECK_EQ(s.members, NODES + 1);
        CHECK(s.took > 0);
        CHECK(s.bytes < (uint64_t)NODES * (busy ? 64 : 24));
        CHECK(s.messages <= ARITY * (1 + s.bytes / (64 * KIB)));
        world_free(s.world);
    }
    free(memory);
    free(storage);
}

static void test_idle(void) {
    play(false);
}

static void test_busy(void) {
    play(true);
}

int main(void) {
    TEST(test_idle);
    TEST(test_busy);
    return tap_finish();
}
