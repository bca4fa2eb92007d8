/* SPDX-License-Identifier: MIT */
/* Ends on their way up: what is combined, what goes by itself, and that the sums are exact whatever is lost and said again. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "nm/inside.h"
#include "tap.h"

enum { NODES = 15, LINK = 5, EFFECTS = 256, BYTES = 256 * 1024, RUN = 10, WORDS = 8 };

static const struct roster roster = {.prefix = "n", .capacity = NODES, .count = NODES};

/* A manager, and what it has said upwards. */
struct bench {
    uint32_t self;
    void *memory;
    struct nm *nm;
    struct effects out;
    struct effect list[EFFECTS];
    uint64_t bytes[BYTES / 8];
};

static struct nm_config config_of(uint32_t self) {
    return (struct nm_config){.limits = {.nodes = NODES, .roots = 1, .body_bytes = 1024},
                              .self = self,
                              .runs = 4,
                              .roster = &roster,
                              .lease_ns = 1000000};
}

static void begin(struct bench *b, uint32_t self) {
    struct nm_config c = config_of(self);
    struct arena a;
    size_t bytes = nm_bytes(&c);
    b->self = self;
    b->memory = calloc(1, bytes);
    arena_init(&a, b->memory, bytes);
    b->nm = nm_new(&c, &a);
    effects_init(&b->out, b->list, EFFECTS, (uint8_t *)b->bytes, BYTES);
}

static void feed(struct bench *b, struct input in) {
    struct machine m = nm_machine(b->nm);
    effects_clear(&b->out);
    in.now = 1000;
    m.step(m.self, &in, &b->out);
}

/* Node k has 2k + 1 and 2k + 2 below it; all of them belong to the run. */
static void add_below(struct nodeset *set, uint32_t node) {
    for (uint32_t child = 2 * node + 1; child <= 2 * node + 2 && child < NODES; child++) {
        nodeset_add(set, child);
        add_below(set, child);
    }
}

static void launch(struct bench *b) {
    uint8_t room[512];
    uint64_t words[WORDS];
    struct nodeset set;
    nodeset_init(&set, NODES + 1, words);
    nodeset_clear(&set);
    add_below(&set, b->self);
    feed(b,
         (struct input){.kind = INPUT_TREE, .tree = {.below = &set, .attached = true, .epoch = 1}});
    feed(b, (struct input){.kind = INPUT_LINK_UP,
                           .link = {.link = LINK, .role = ROLE_LAUNCHER, .life = 9}});
    nodeset_add_range(&set, 0, NODES - 1);
    union message m = {.launch = {.run = RUN, .procs = NODES, .window = 1, .set = &set}};
    long len = message_encode(MESSAGE_LAUNCH, &m, room_of(room + 2, sizeof room - 2));
    CHECK(len > 0);
    store_le16(room, MESSAGE_LAUNCH);
    feed(b, (struct input){.kind = INPUT_SIGNAL,
                           .signal = {.event = EVENT_LAUNCH,
                                      .order = 1,
                                      .body = bytes_of(room, 2 + (size_t)len)}});
}

static struct usage use_of(uint32_t node) {
    return (struct usage){.user_ns = (uint64_t)1 << node, .peak_bytes = 100 + node};
}

/* The launcher's word: the run is over. Node 7 has a process that failed. */
static void end(struct bench *b) {
    uint8_t bytes[ENDING_BYTES], body[256];
    struct ending e = {.cause = CAUSE_EXITED,
                       .value = b->self == 7,
                       .bad = b->self == 7,
                       .output = 1000 + b->self,
                       .usage = use_of(b->self)};
    ending_store(bytes, &e);
    union message m = {.ended = {.run = RUN, .ends = bytes_of(bytes, sizeof bytes)}};
    long len = message_encode(MESSAGE_ENDED, &m, room_of(body, sizeof body));
    feed(b, (struct input){.kind = INPUT_MESSAGE,
                           .message = {.link = LINK,
                                       .type = MESSAGE_ENDED,
                                       .body = bytes_of(body, (size_t)len)}});
}

/* ---- who stands above all: takes ends as the machine manager does ---- */

struct top {
    bool heard[NODES];
    uint32_t left;
    uint64_t output;
    struct usage usage;
    uint32_t messages, passed;
    size_t longest;
};

static void count(struct top *t, uint32_t node) {
    t->heard[node] = true;
    t->left--;
}

static void take(struct top *t, struct bytes body) {
    uint64_t words[2][WORDS];
    struct nodeset sets[2];
    union message m;
    struct ending e;
    bool fresh = true;
    nodeset_init(&sets[0], NODES + 1, words[0]);
    nodeset_init(&sets[1], NODES + 1, words[1]);
    CHECK_EQ(message_decode(MESSAGE_ENDS, body, sets, &m), 0);
    t->messages++;
    t->longest = body.len > t->longest ? body.len : t->longest;
    NODESET_EACH (n, m.ends.clean)
        fresh = fresh && !t->heard[n];
    t->passed += !fresh;
    if (fresh) {
        t->output += m.ends.output;
        usage_add(&t->usage, &m.ends.usage);
        NODESET_EACH (n, m.ends.clean)
            count(t, n);
    }
    for (uint32_t i = 0; ending_load(&e, m.ends.ends, i); i++) {
        if (t->heard[e.node])
            continue;
        t->output += e.output;
        usage_add(&t->usage, &e.usage);
        count(t, e.node);
    }
}

static void is_exact(const struct top *t) {
    struct usage all = {0};
    uint64_t output = 0;
    for (uint32_t n = 0; n < NODES; n++) {
        struct usage u = use_of(n);
        usage_place(&u, n);
        usage_add(&all, &u);
        output += 1000 + n;
    }
    CHECK_EQ(t->left, 0);
    CHECK_EQ(t->output, output);
    CHECK(usage_same(&t->usage, &all));
}

/* ---- a tree of them ---- */

struct grove {
    struct bench nodes[NODES];
    struct random random;
    uint32_t lost_percent, astray_percent;
    struct top top;
};

static void grove_init(struct grove *g, uint64_t seed) {
    memset(&g->top, 0, sizeof g->top);
    g->top.left = NODES;
    random_init(&g->random, seed);
    for (uint32_t i = 0; i < NODES; i++) {
        begin(&g->nodes[i], i);
        launch(&g->nodes[i]);
    }
}

static void grove_fini(struct grove *g) {
    for (uint32_t i = 0; i < NODES; i++)
        free(g->nodes[i].memory);
}

/* What a node has said goes to whoever is above it, to somebody else as the tree has changed, or nowhere. */
static void pass_on(struct grove *g, uint32_t from) {
    struct bytes said[EFFECTS];
    uint32_t many = 0;
    for (uint32_t i = 0; i < g->nodes[from].out.count; i++) {
        const struct effect *e = &g->nodes[from].list[i];
        if (e->kind == EFFECT_REQUEST && e->request.kind == PRIMITIVE_MAIL &&
            e->request.type == MESSAGE_ENDS)
            said[many++] = e->request.body;
    }
    for (uint32_t i = 0; i < many; i++) {
        bool lost = random_chance(&g->random, g->lost_percent, 100);
        bool astray = random_chance(&g->random, g->astray_percent, 100);
        uint32_t other = (uint32_t)random_below(&g->random, NODES);
        uint32_t to = astray && other != from ? other : (from - 1) / 2;
        if (lost)
            continue;
        if (from == 0 || (astray && other == from)) {
            take(&g->top, said[i]);
            continue;
        }
        if (astray && to > from)
            to = (from - 1) / 2; /* never round and round */
        feed(&g->nodes[to],
             (struct input){.kind = INPUT_MESSAGE,
                            .message = {.type = MESSAGE_ENDS, .peer = from, .body = said[i]}});
        pass_on(g, to);
    }
}

static void repeat(struct grove *g, uint32_t node) {
    feed(&g->nodes[node], (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_REPEAT}});
    pass_on(g, node);
}

static void end_all(struct grove *g) {
    uint32_t order[NODES];
    for (uint32_t i = 0; i < NODES; i++)
        order[i] = i;
    for (uint32_t i = NODES; i > 1; i--) {
        uint32_t k = (uint32_t)random_below(&g->random, i), kept = order[k];
        order[k] = order[i - 1];
        order[i - 1] = kept;
    }
    for (uint32_t i = 0; i < NODES; i++) {
        end(&g->nodes[order[i]]);
        pass_on(g, order[i]);
        while (random_chance(&g->random, g->lost_percent, 200))
            repeat(g, order[random_below(&g->random, i + 1)]);
    }
}

/* In the ordinary case all come as one sum, but for what is wrong. */
static void test_one_sum(void) {
    static struct grove g;
    grove_init(&g, 1);
    end_all(&g);
    is_exact(&g.top);
    CHECK_EQ(g.top.passed, 0);
    CHECK(g.top.messages <= 3);
    CHECK(g.top.longest < 8 + 32 + 8 + USAGE_BYTES + 4 + 2 * ENDING_BYTES);
    grove_fini(&g);
}

/* Whatever is lost, comes twice or by another way: in the end all are heard of, and counted once. */
static void test_exact_whatever_happens(void) {
    static struct grove g;
    uint32_t passed = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        g.lost_percent = (uint32_t)(seed % 7) * 10;
        g.astray_percent = (uint32_t)(seed % 5) * 15;
        grove_init(&g, seed);
        end_all(&g);
        g.lost_percent = g.astray_percent = 0;
        for (uint32_t round = 0; g.top.left > 0 && round < 4; round++)
            for (uint32_t i = 0; i < NODES; i++)
                repeat(&g, i);
        is_exact(&g.top);
        passed += g.top.passed;
        grove_fini(&g);
    }
    CHECK(passed > 0); /* or nothing was put to the test */
}

int main(void) {
    TEST(test_one_sum);
    TEST(test_exact_whatever_happens);
    return tap_finish();
}
