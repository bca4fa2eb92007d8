/* SPDX-License-Identifier: MIT */
/* Tests of the world as a whole: a crowd of machines that chatter at random, under every fault.
 *
 * The same seed must give the same trace anywhere; another seed another trace; and the recorded
 * inputs of a node, fed to fresh machines, must bring forth the same effects step by step. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/random.h"
#include "base/units.h"
#include "machine/record.h"
#include "sim/trace.h"
#include "sim/world.h"
#include "tap.h"
#include "wire/message.h"

enum { NODES = 24, LINKS_MAX = 16, STEPS_MAX = 1 << 16, LOG_MAX = 16 << 20, WATCHED = 2 };
enum { TIMER_TALK = 1, TIMER_OPEN = 2, TIMER_ASK = 3 };
enum { OUR_BUFFER = 7, BUFFER_BYTES = 4096 };

/* The trace of seed 1. It changes with the world's model (not with the compiler or the byte order):
 * if that was meant, the new value belongs here. */
#define TRACE_OF_SEED_1 0x161089E057F1B768

struct crowd {
    uint64_t effects[STEPS_MAX]; /* hash of each step's effects of the watched node */
    uint32_t steps;
    uint8_t *log;
    size_t log_len;
};

struct talker {
    struct crowd *crowd;
    uint32_t node;
    struct random random;
    uint32_t links[LINKS_MAX];
    enum role roles[LINKS_MAX];
    uint32_t link_count;
    uint64_t sum;    /* of what was heard */
    uint64_t ticket; /* of the last value persisted */
};

/* ---- what a talker does ---- */

static void open_some(struct talker *t, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_OPEN);
    uint64_t other = random_below(&t->random, NODES);
    bool slot = random_chance(&t->random, 1, 4);
    e->open = (struct effect_open){
        .node = (uint32_t)other, .purpose = slot ? PURPOSE_SLOT : PURPOSE_TREE, .cookie = ++t->sum};
}

static void put_some(struct talker *t, uint32_t link, struct effects *out) {
    uint32_t len = (uint32_t)random_below(&t->random, BUFFER_BYTES);
    struct effect *e = effects_add(out, EFFECT_PUT);
    e->put = (struct effect_put){.link = link,
                                 .buffer = OUR_BUFFER,
                                 .len = len,
                                 .peer_buffer = OUR_BUFFER,
                                 .peer_offset = BUFFER_BYTES - len,
                                 .note = t->sum};
}

/* To every peer of that role, one body. */
static void send_to_all(struct talker *t, enum role role, uint16_t type, struct bytes head,
                        struct bytes tail, struct effects *out) {
    uint32_t *links = (uint32_t *)(void *)effects_room(out, LINKS_MAX * sizeof(uint32_t));
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->link_count; i++)
        if (t->roles[i] == role)
            links[count++] = t->links[i];
    struct effect *e = effects_add(out, EFFECT_SEND);
    e->send = (struct effect_send){links, count, (uint32_t)t->ticket, type, head, tail};
}

static void talk(struct talker *t, uint8_t hops, struct bytes tail, struct effects *out) {
    uint8_t head[9] = {hops};
    store_le64(head + 1, t->sum);
    struct bytes copy = effects_copy(out, bytes_of(head, sizeof head));
    send_to_all(t, ROLE_PARENT, MESSAGE_ACK, copy, tail, out);
    send_to_all(t, ROLE_CHILD, MESSAGE_TICK, copy, tail, out);
    for (uint32_t i = 0; i < t->link_count; i++)
        if (t->roles[i] == ROLE_SINK)
            put_some(t, t->links[i], out);
}

static void hear(struct talker *t, const struct input *in, struct effects *out) {
    struct bytes body = in->message.body;
    t->sum = t->sum * 31 + hash_once(body.at, body.len);
    if (body.len > 0 && body.len < 1000 && body.at[0] > 0)
        talk(t, (uint8_t)(body.at[0] - 1), body, out);
}

static void link_is_up(struct talker *t, const struct input *in, struct effects *out) {
    struct effect *grant = effects_add(out, EFFECT_BUFFER_GRANT);
    grant->buffer = (struct effect_buffer){.buffer = OUR_BUFFER, .link = in->link.link};
    if (t->link_count == LINKS_MAX) {
        struct effect *e = effects_add(out, EFFECT_CLOSE);
        e->close.link = in->link.link;
        return;
    }
    t->links[t->link_count] = in->link.link;
    t->roles[t->link_count++] = in->link.role;
}

static void link_is_down(struct talker *t, const struct input *in, struct effects *out) {
    for (uint32_t i = 0; i < t->link_count; i++) {
        if (t->links[i] != in->link.link)
            continue;
        t->links[i] = t->links[--t->link_count];
        t->roles[i] = t->roles[t->link_count];
        break;
    }
    if (in->link.role == ROLE_PARENT || in->link.role == ROLE_SOURCE)
        effects_timer(out, TIMER_OPEN, in->now + 300 * NS_PER_US);
}

static void talk_again(struct talker *t, uint64_t now, struct effects *out) {
    uint8_t bytes[200];
    size_t len = random_below(&t->random, sizeof bytes);
    random_bytes(&t->random, bytes, len);
    talk(t, 1, effects_copy(out, bytes_of(bytes, len)), out);
    effects_timer(out, TIMER_TALK, now + random_below(&t->random, NS_PER_MS));
    if (t->link_count > 2 && random_chance(&t->random, 1, 8)) {
        struct effect *e = effects_add(out, EFFECT_CLOSE);
        e->close.link = t->links[--t->link_count];
        open_some(t, out);
    }
    struct effect *e = effects_add(out, EFFECT_PERSIST);
    e->persist.ticket = ++t->ticket;
    e->persist.value = t->ticket;
}

static void talker_boot(struct talker *t, const struct input *in, struct effects *out) {
    random_init(&t->random, in->boot.random_seed);
    struct effect *e = effects_add(out, EFFECT_BUFFER_OPEN);
    e->buffer = (struct effect_buffer){.buffer = OUR_BUFFER, .bytes = BUFFER_BYTES};
    t->ticket = in->boot.kept;
    open_some(t, out);
    open_some(t, out);
    effects_timer(out, TIMER_TALK, in->now + random_below(&t->random, NS_PER_MS));
}

static void write_heap(uint64_t value, struct effects *out) {
    uint8_t word[8];
    store_le64(word, value);
    struct bytes bytes = effects_copy(out, bytes_of(word, sizeof word));
    struct effect *e = effects_add(out, EFFECT_HEAP_WRITE);
    e->heap = (struct effect_heap){.offset = (uint32_t)(value % 64), .bytes = bytes};
}

static void talker_react(struct talker *t, const struct input *in, struct effects *out) {
    switch (in->kind) {
    case INPUT_BOOT:
        talker_boot(t, in, out);
        break;
    case INPUT_MESSAGE:
        hear(t, in, out);
        break;
    case INPUT_LINK_UP:
        link_is_up(t, in, out);
        break;
    case INPUT_LINK_DOWN:
        link_is_down(t, in, out);
        break;
    case INPUT_TIMER:
        if (in->timer.id == TIMER_TALK)
            talk_again(t, in->now, out);
        else
            open_some(t, out);
        break;
    case INPUT_DURABLE:
        write_heap(in->durable.ticket, out);
        break;
    case INPUT_PUT:
        t->sum += in->put.note * in->put.len;
        break;
    case INPUT_REQUEST:
        write_heap(t->sum + in->request.value, out);
        effects_raise(out, INPUT_COMPLETION, in->now)->completion.tag = t->sum;
        break;
    default:
        break;
    }
}

/* ---- machines: a talker below, a daemon that asks it for something now and then ---- */

static void note_effects(struct talker *t, uint32_t from, const struct effects *out) {
    if (t->node != WATCHED || t->crowd->steps == STEPS_MAX)
        return;
    struct hash h;
    hash_init(&h, 0);
    struct effects mine = {.list = out->list + from, .count = out->count - from};
    trace_effects(&h, &mine);
    t->crowd->effects[t->crowd->steps++] = hash_done(&h);
}

static void talker_step(void *self, const struct input *in, struct effects *out) {
    uint32_t from = out->count;
    talker_react(self, in, out);
    note_effects(self, from, out);
}

static struct machine talker_new(void *context, uint32_t node, struct arena *a) {
    struct talker *t = ARENA_TAKE(a, struct talker, 1);
    t->crowd = context;
    t->node = node;
    return (struct machine){.self = t, .step = talker_step};
}

static void daemon_step(void *self, const struct input *in, struct effects *out) {
    (void)self;
    if (in->kind != INPUT_TIMER && in->kind != INPUT_BOOT && in->kind != INPUT_COMPLETION)
        return;
    if (in->kind == INPUT_TIMER) {
        struct effect *e = effects_add(out, EFFECT_REQUEST);
        e->request.kind = PRIMITIVE_SET;
        e->request.value = in->now;
    }
    uint64_t wait = in->kind == INPUT_COMPLETION ? in->completion.tag % NS_PER_MS : NS_PER_MS;
    effects_timer(out, TIMER_ASK, in->now + wait);
}

static struct machine daemon_new(void *context, uint32_t node, struct globals globals) {
    (void)context;
    (void)node;
    (void)globals;
    return (struct machine){.step = daemon_step};
}

/* ---- a run under faults ---- */

static void keep(void *context, struct bytes record) {
    struct crowd *c = context;
    if (!CHECK(record.len <= LOG_MAX - c->log_len))
        return;
    memcpy(c->log + c->log_len, record.at, record.len);
    c->log_len += record.len;
}

static void one_fault(struct world *w, struct random *r) {
    uint32_t node = (uint32_t)random_below(r, NODES);
    uint32_t pick = (uint32_t)random_u64(r);
    uint64_t until = world_now(w) + random_below(r, 4 * NS_PER_MS);
    uint8_t bytes[80];
    random_bytes(r, bytes, sizeof bytes);
    switch (random_below(r, 8)) {
    case 0:
        if (world_up(w, node))
            world_crash(w, node);
        else
            world_boot(w, node, false);
        break;
    case 1:
        world_pause(w, node, until);
        break;
    case 2:
        world_reset(w, node, pick);
        break;
    case 3:
        world_mute(w, node, pick, pick & 1, until);
        break;
    case 4:
        world_duplicate(w, node, until);
        break;
    case 5:
        world_slow(w, node, 1 + pick % 20, until);
        break;
    case 6:
        world_garbage(w, node, pick, bytes, pick % sizeof bytes);
        break;
    default:
        if (!world_up(w, node))
            world_boot(w, node, false);
        break;
    }
}

static struct crowd *crowd_new(void) {
    struct crowd *c = calloc(1, sizeof *c);
    if (c != NULL)
        c->log = malloc(LOG_MAX);
    if (c == NULL || c->log == NULL)
        abort();
    return c;
}

static void crowd_free(struct crowd *c) {
    free(c->log);
    free(c);
}

static uint64_t run(uint64_t seed, struct crowd *crowd, struct world_counts *ret_counts) {
    struct world_config config = {.seed = seed,
                                  .hash = true,
                                  .daemon = daemon_new,
                                  .context = crowd,
                                  .lower = talker_new,
                                  .lower_bytes = sizeof(struct talker)};
    config.link = (struct link_model){.latency_ns = 20 * NS_PER_US,
                                      .jitter_ns = 15 * NS_PER_US,
                                      .bytes_per_s = 100000000,
                                      .cpu_receive_ns = 700,
                                      .cpu_send_ns = 300,
                                      .connect_ns = 60 * NS_PER_US,
                                      .durable_ns = 100 * NS_PER_US};
    config.prim.limits.nodes = NODES;
    config.prim.limits.heap_bytes = 128;
    struct world *w = world_new(&config);
    struct random faults;
    random_init(&faults, seed);
    world_record(w, WATCHED, keep, crowd);
    for (uint32_t i = 0; i < NODES; i++)
        world_boot(w, i, false);
    for (uint32_t i = 0; i < 100; i++) {
        world_run_until(w, world_now(w) + 500 * NS_PER_US);
        one_fault(w, &faults);
    }
    uint64_t hash = world_hash(w);
    *ret_counts = *world_counts(w);
    world_free(w);
    return hash;
}

/* ---- tests ---- */

static void test_same_seed_same_trace(void) {
    struct world_counts a, b;
    struct crowd *one = crowd_new(), *two = crowd_new(), *three = crowd_new();
    uint64_t first = run(1, one, &a);
    CHECK_EQ(run(1, two, &b), first);
    CHECK(run(2, three, &b) != first);
    CHECK(a.messages > 10000);
    CHECK(a.refused[REFUSAL_DUPLICATE] > 0);
    CHECK(a.refused[REFUSAL_GAP] > 0);
    CHECK_EQ(one->log_len, two->log_len);
    CHECK(memcmp(one->log, two->log, one->log_len) == 0);
    printf("# %llu messages, %llu steps, trace 0x%016llX\n", (unsigned long long)a.messages,
           (unsigned long long)a.steps, (unsigned long long)first);
    CHECK_EQ(first, (uint64_t)TRACE_OF_SEED_1);
    crowd_free(one);
    crowd_free(two);
    crowd_free(three);
}

struct rerun {
    struct crowd *crowd;
    struct stack stack;
    struct effects effects;
    _Alignas(64) uint8_t memory[1024];
};

static void feed_again(struct rerun *r, enum layer layer, const struct input *in) {
    effects_clear(&r->effects);
    if (in->kind != INPUT_BOOT) {
        stack_step(&r->stack, layer, in, &r->effects);
        return;
    }
    struct arena a;
    memset(r->memory, 0, sizeof r->memory);
    arena_init(&a, r->memory, sizeof r->memory);
    r->stack.prim = talker_new(r->crowd, WATCHED, &a);
    r->stack.daemon = daemon_new(NULL, WATCHED, (struct globals){0});
    stack_boot(&r->stack, in, &r->effects);
}

static void test_replay(void) {
    struct world_counts counts;
    struct crowd *real = crowd_new();
    run(3, real, &counts);
    struct rerun *again = aligned_alloc(64, align_up(sizeof *again, 64));
    struct effect *list = malloc(4096 * sizeof *list);
    uint8_t *bytes = malloc(MIB);
    memset(again, 0, sizeof *again);
    again->crowd = crowd_new();
    effects_init(&again->effects, list, 4096, bytes, MIB);
    uint32_t lives = 0, same = 0;
    for (size_t at = 0; at < real->log_len;) {
        struct record_scratch scratch;
        uint64_t storage[64];
        record_scratch_init(&scratch, NODES, storage);
        enum layer layer;
        struct input in;
        size_t used;
        struct bytes rest = bytes_of(real->log + at, real->log_len - at);
        if (!CHECK_EQ(record_decode(rest, &scratch, &layer, &in, &used), 0))
            break;
        lives += in.kind == INPUT_BOOT;
        feed_again(again, layer, &in);
        at += used;
        while (same < again->crowd->steps && again->crowd->effects[same] == real->effects[same])
            same++;
        if (!CHECK_EQ(same, again->crowd->steps))
            break;
    }
    CHECK_EQ(same, real->steps);
    CHECK(same > 1000);
    CHECK(lives > 1);
    printf("# %u steps of %u lives replayed from %zu bytes\n", same, lives, real->log_len);
    crowd_free(real);
    crowd_free(again->crowd);
    free(again);
    free(list);
    free(bytes);
}

int main(void) {
    TEST(test_same_seed_same_trace);
    TEST(test_replay);
    return tap_finish();
}
