/* SPDX-License-Identifier: MIT */
/* An input log replays exactly: what the world fed to one node's primitives, over several lives and
 * under faults, fed again to fresh machines gives the same effects, step by step. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/units.h"
#include "machine/record.h"
#include "sim/trace.h"
#include "sim/world.h"
#include "tap.h"

enum { NODES = 12, ROOT = NODES, WATCHED = 1, LOG_MAX = 1 << 24 };

struct tape {
    uint8_t *log;
    size_t len;
    struct hash hash; /* of every effect of the watched node's primitives */
    uint32_t steps;
};

/* The primitives of one node, with an ear at their effects. */
struct ear {
    struct machine prim;
    struct tape *tape; /* NULL: do not listen */
};

static void listen(void *self, const struct input *in, struct effects *out) {
    struct ear *e = self;
    uint32_t before = out->count;
    e->prim.step(e->prim.self, in, out);
    if (e->tape == NULL)
        return;
    struct effects fresh = {.list = out->list + before, .count = out->count - before};
    trace_effects(&e->tape->hash, &fresh);
    e->tape->steps++;
}

/* Every node asks for a transfer to all now and then; no node depends on what it hears. */
static void chatter(void *self, const struct input *in, struct effects *out) {
    (void)self;
    if (in->kind == INPUT_BOOT || in->kind == INPUT_TIMER)
        effects_timer(out, 1, in->now + 3 * NS_PER_MS);
    if (in->kind != INPUT_TIMER)
        return;
    uint64_t storage[8];
    struct nodeset all;
    nodeset_init(&all, NODES + 1, storage);
    nodeset_add_range(&all, 0, NODES - 1);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_XFER,
                                    .tag = 1,
                                    .set = effects_copy_set(out, &all),
                                    .timeout_ns = 20 * NS_PER_MS,
                                    .body = effects_copy(out, bytes_of("replayed", 8)),
                                    .remote_event = 0,
                                    .local_event = NO_EVENT};
}

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    (void)node;
    (void)globals;
    return (struct machine){.self = context, .step = chatter};
}

static struct prim_config primitives(void) {
    struct prim_config c = {0};
    c.limits = (struct limits){.nodes = NODES,
                               .roots = 1,
                               .variables = 4,
                               .events = 2,
                               .heap_bytes = 64,
                               .children = 8,
                               .window = 8,
                               .queue = 64,
                               .outstanding = 4,
                               .body_bytes = 32,
                               .standing = 2,
                               .transfers = 1,
                               .chunk_bytes = 64,
                               .slots = 2};
    c.tree = (struct tree){.shape = SHAPE_KARY, .arity = 2, .nodes = NODES};
    prim_config_times(&c, 10 * NS_PER_MS);
    return c;
}

static struct machine make_ear(struct tape *t, uint32_t node, struct arena *a) {
    struct prim_config c = primitives();
    struct ear *e = ARENA_TAKE(a, struct ear, 1);
    e->tape = node == WATCHED ? t : NULL;
    e->prim = prim_machine(prim_new(&c, node >= NODES, a));
    return (struct machine){.self = e, .step = listen};
}

static struct machine make_lower(void *context, uint32_t node, struct arena *a) {
    return make_ear(context, node, a);
}

static size_t lower_bytes(void) {
    struct prim_config c = primitives();
    return align_up(prim_bytes(&c, true) + sizeof(struct ear) + 64, 64);
}

static struct world_config config(struct tape *t) {
    struct world_config c = {.seed = 5,
                             .prim = primitives(),
                             .lower = make_lower,
                             .lower_bytes = lower_bytes(),
                             .daemon = make_daemon,
                             .context = t};
    c.link = (struct link_model){.latency_ns = 20 * NS_PER_US,
                                 .jitter_ns = 9 * NS_PER_US,
                                 .cpu_receive_ns = NS_PER_US,
                                 .cpu_send_ns = NS_PER_US,
                                 .connect_ns = 60 * NS_PER_US,
                                 .durable_ns = 50 * NS_PER_US};
    return c;
}

static void keep(void *context, struct bytes record) {
    struct tape *t = context;
    ASSERT(t->len + record.len <= LOG_MAX);
    memcpy(t->log + t->len, record.at, record.len);
    t->len += record.len;
}

static void record_a_run(struct tape *t) {
    struct world_config c = config(t);
    struct world *w = world_new(&c);
    world_record(w, WATCHED, keep, t);
    world_boot(w, ROOT, true);
    for (uint32_t n = 0; n < NODES; n++)
        world_boot(w, n, false);
    world_run_until(w, 100 * NS_PER_MS);
    world_crash(w, 0); /* its parent */
    world_run_until(w, 150 * NS_PER_MS);
    world_pause(w, WATCHED, 210 * NS_PER_MS); /* long enough to be given up */
    world_run_until(w, 300 * NS_PER_MS);
    world_crash(w, WATCHED);
    world_boot(w, 0, false);
    world_run_until(w, 320 * NS_PER_MS);
    world_boot(w, WATCHED, false);
    world_crash(w, ROOT);
    world_run_until(w, 330 * NS_PER_MS);
    world_boot(w, ROOT, true);
    world_run_until(w, 500 * NS_PER_MS);
    CHECK(world_up(w, WATCHED));
    world_free(w);
}

struct again {
    struct effects effects;
    struct stack stack;
    void *memory;
    uint32_t lives;
    struct tape tape;
};

static void begin_life(struct again *a) {
    free(a->memory);
    a->memory = aligned_alloc(64, lower_bytes());
    ASSERT(a->memory != NULL);
    memset(a->memory, 0, lower_bytes());
    struct arena arena;
    arena_init(&arena, a->memory, lower_bytes());
    a->stack = (struct stack){.daemon = make_daemon(NULL, WATCHED, (struct globals){0}),
                              .prim = make_ear(&a->tape, WATCHED, &arena)};
    a->lives++;
}

/* Feeds the log to fresh machines. */
static void play(const struct tape *t, struct again *a) {
    for (size_t at = 0; at < t->len;) {
        struct record_scratch scratch;
        uint64_t storage[16];
        record_scratch_init(&scratch, NODES + 1, storage);
        enum layer layer;
        struct input in;
        size_t used;
        struct bytes rest = bytes_of(t->log + at, t->len - at);
        if (!CHECK_EQ(record_decode(rest, &scratch, &layer, &in, &used), 0))
            break;
        at += used;
        effects_clear(&a->effects);
        if (in.kind == INPUT_BOOT) {
            begin_life(a);
            stack_boot(&a->stack, &in, &a->effects);
        } else {
            stack_step(&a->stack, layer, &in, &a->effects);
        }
    }
}

static void test_log_replays(void) {
    struct tape t = {.log = malloc(LOG_MAX)};
    struct effect *list = malloc(4096 * sizeof *list);
    uint8_t *bytes = malloc(MIB);
    ASSERT(t.log != NULL && list != NULL && bytes != NULL);
    hash_init(&t.hash, 1);
    record_a_run(&t);
    struct again again = {0};
    hash_init(&again.tape.hash, 1);
    effects_init(&again.effects, list, 4096, bytes, MIB);
    play(&t, &again);
    CHECK_EQ(again.lives, 2);
    CHECK(t.steps > 1000);
    CHECK_EQ(again.tape.steps, t.steps);
    CHECK_EQ(hash_done(&again.tape.hash), hash_done(&t.hash));
    printf("# %u steps of %u lives replayed from %zu bytes\n", t.steps, again.lives, t.len);
    free(again.memory);
    free(list);
    free(bytes);
    free(t.log);
}

int main(void) {
    TEST(test_log_replays);
    return tap_finish();
}
