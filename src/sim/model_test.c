/* SPDX-License-Identifier: MIT */
/* Tests of the world under the primitives: order, outcomes, memory, membership, and scale. */
#include "sim/model.h"

#include <stdlib.h>

#include "base/units.h"
#include "sim/idle.h"
#include "sim/measure.h"
#include "sim/network.h"
#include "tap.h"
#include "wire/message.h"

enum { NODES = 64, ROOT = NODES, UNIVERSE = NODES + 1, ACTS_MAX = 32, HEARD_MAX = 512 };

/* ---- actors: do what a script says, keep what they hear ---- */

struct act {
    uint64_t at;
    uint32_t node;
    struct primitive request;
};

struct heard {
    uint64_t at;
    uint32_t node;
    enum input_kind kind;
    struct completion completion;
    uint32_t count; /* of nodes */
    bool up;
    uint64_t number; /* signal, strobe: event or channel; gather: nodes missing */
};

struct scene {
    struct model *model;
    struct act acts[ACTS_MAX];
    uint32_t act_count;
    struct heard heard[HEARD_MAX];
    uint32_t heard_count;
    struct nodeset all;
    struct nodeset some;
    uint64_t storage[2][8];
    struct actor {
        struct scene *scene;
        uint32_t node;
    } actors[UNIVERSE];
    bool deaf; /* compute nodes are idle */
};

static void keep(struct scene *s, uint32_t node, const struct input *in) {
    if (s->heard_count == HEARD_MAX)
        return;
    struct heard *h = &s->heard[s->heard_count++];
    *h = (struct heard){.at = in->now, .node = node, .kind = in->kind};
    if (in->kind == INPUT_COMPLETION)
        h->completion = in->completion;
    if (in->kind == INPUT_NODES) {
        h->count = nodeset_count(in->nodes.nodes);
        h->up = in->nodes.up;
    }
    if (in->kind == INPUT_MESSAGE) {
        h->count = in->message.peer;
        h->number = in->message.body.len == 3 ? in->message.type : 0;
    }
    if (in->kind == INPUT_SIGNAL)
        h->number = in->signal.event;
    if (in->kind == INPUT_STROBE)
        h->number = load_le64(in->strobe.body.at);
    if (in->kind == INPUT_GATHERED) {
        struct reply r;
        for (size_t at = 0; reply_next(in->gathered.records, &at, &r);)
            h->count += r.record.len == 3;
        h->number = nodeset_count(in->gathered.missing);
        h->completion.tag = in->gathered.tag;
    }
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct actor *a = self;
    struct scene *s = a->scene;
    if (in->kind == INPUT_BOOT) {
        for (uint32_t i = 0; i < s->act_count; i++)
            if (s->acts[i].node == a->node && s->acts[i].at >= in->now)
                effects_timer(out, i, s->acts[i].at);
    } else if (in->kind == INPUT_TIMER) {
        effects_add(out, EFFECT_REQUEST)->request = s->acts[in->timer.id].request;
    } else if (in->kind != INPUT_WAVE) {
        keep(s, a->node, in);
    }
}

static struct machine make(void *context, uint32_t node, struct globals globals) {
    struct scene *s = context;
    (void)globals;
    if (s->deaf && node != ROOT)
        return idle_machine();
    s->actors[node] = (struct actor){.scene = s, .node = node};
    return (struct machine){.self = &s->actors[node], .step = step};
}

static struct primitive request(const struct scene *s, enum primitive_kind kind) {
    return (struct primitive){.kind = kind,
                              .set = &s->all,
                              .timeout_ns = NS_PER_S,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

/* The tag of an act is its number. */
static uint32_t act(struct scene *s, uint64_t at, uint32_t node, struct primitive r) {
    r.tag = s->act_count;
    s->acts[s->act_count] = (struct act){.at = at, .node = node, .request = r};
    return s->act_count++;
}

static struct scene *begin(void) {
    struct scene *s = calloc(1, sizeof *s);
    nodeset_init(&s->all, UNIVERSE, s->storage[0]);
    nodeset_init(&s->some, UNIVERSE, s->storage[1]);
    nodeset_add_range(&s->all, 0, NODES - 1);
    return s;
}

static void power_on(struct scene *s) {
    struct model_config c = {.seed = 1, .daemon = make, .context = s};
    c.prim.limits = (struct limits){.nodes = NODES,
                                    .roots = 1,
                                    .variables = 4,
                                    .events = 4,
                                    .heap_bytes = 8192,
                                    .window = 8,
                                    .queue = 8,
                                    .outstanding = 4,
                                    .body_bytes = 256,
                                    .standing = 2,
                                    .record_channels = 1,
                                    .record_bytes = 8};
    c.prim.tree = (struct tree){.shape = SHAPE_KARY, .arity = 4, .nodes = NODES};
    prim_config_times(&c.prim, 100 * NS_PER_MS);
    cost_init(&c.cost, &c.prim.tree, &network_at(0)->link);
    s->model = model_new(&c);
    model_boot(s->model, ROOT, true);
    for (uint32_t n = 0; n < NODES; n++)
        model_boot(s->model, n, false);
}

static void end(struct scene *s) {
    model_free(s->model);
    free(s);
}

/* The n-th completion of an act, NULL if there was none. */
static const struct heard *answer(const struct scene *s, uint32_t number, uint32_t n) {
    for (uint32_t i = 0; i < s->heard_count; i++)
        if (s->heard[i].kind == INPUT_COMPLETION && s->heard[i].completion.tag == number &&
            n-- == 0)
            return &s->heard[i];
    return NULL;
}

static enum outcome outcome_of(const struct scene *s, uint32_t number) {
    const struct heard *h = answer(s, number, 0);
    return h != NULL ? h->completion.outcome : OUTCOMES;
}

static uint32_t count_kind(const struct scene *s, enum input_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->heard_count; i++)
        count += s->heard[i].kind == kind;
    return count;
}

static const struct heard *gathered(const struct scene *s, uint32_t number) {
    for (uint32_t i = 0; i < s->heard_count; i++)
        if (s->heard[i].kind == INPUT_GATHERED && s->heard[i].completion.tag == number)
            return &s->heard[i];
    return NULL;
}

static uint64_t variable(const struct scene *s, uint32_t node, uint32_t which) {
    return model_globals(s->model, node).variables[which];
}

#define AT(ms) ((ms)*NS_PER_MS)

/* ---- operations ---- */

static void test_join(void) {
    struct scene *s = begin();
    power_on(s);
    model_run_until(s->model, AT(50));
    CHECK_EQ(count_kind(s, INPUT_JOINED), UNIVERSE);
    CHECK_EQ(count_kind(s, INPUT_NODES), 2); /* the root itself, then all others together */
    for (uint32_t n = 0; n < UNIVERSE; n++)
        CHECK(model_member(s->model, n));
    end(s);
}

static void test_xfer(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_XFER);
    uint8_t seen[5];
    r.body = bytes_of("hello", 5);
    r.heap_offset = 4094; /* across two pages */
    r.remote_event = 1;
    r.local_event = 2;
    uint32_t op = act(s, AT(50), ROOT, r);
    r.heap_offset = 8190; /* beyond the heap */
    uint32_t wrong = act(s, AT(51), 7, r);
    power_on(s);
    model_run_until(s->model, AT(60));
    CHECK_EQ(outcome_of(s, op), OUTCOME_DONE);
    CHECK_EQ(outcome_of(s, wrong), OUTCOME_REFUSED);
    CHECK_EQ(count_kind(s, INPUT_SIGNAL), NODES);
    for (uint32_t n = 0; n < NODES; n++) {
        model_heap(s->model, n, 4094, room_of(seen, 5));
        CHECK(memcmp(seen, "hello", 5) == 0);
        CHECK_EQ(model_globals(s->model, n).events[1], 1);
    }
    CHECK_EQ(model_globals(s->model, ROOT).events[2], 1);
    CHECK_EQ(model_globals(s->model, ROOT).events[1], 0);
    end(s);
}

static void test_compare(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_COMPARE);
    r.relation = RELATION_EQ;
    r.write_variable = 1;
    r.write_value = 42;
    uint32_t yes = act(s, AT(50), ROOT, r);
    struct primitive set = request(s, PRIMITIVE_SET);
    set.value = 5;
    act(s, AT(55), 9, set);
    r.write_value = 43;
    uint32_t no = act(s, AT(60), 20, r);
    nodeset_add_range(&s->some, 10, 20);
    r.set = &s->some; /* where it still holds */
    r.write_value = 44;
    uint32_t part = act(s, AT(65), 20, r);
    power_on(s);
    model_run_until(s->model, AT(70));
    CHECK_EQ(outcome_of(s, yes), OUTCOME_DONE);
    CHECK_EQ(outcome_of(s, no), OUTCOME_FALSE);
    CHECK_EQ(outcome_of(s, part), OUTCOME_DONE);
    CHECK_EQ(variable(s, 9, 0), 5);
    CHECK_EQ(variable(s, 9, 1), 42);
    CHECK_EQ(variable(s, 10, 1), 44);
    CHECK_EQ(variable(s, 21, 1), 42);
    const struct heard *root = answer(s, yes, 0), *leaf = answer(s, part, 0);
    if (CHECK(root != NULL && leaf != NULL)) /* a request has a way to go and to come back */
        CHECK(leaf->at - AT(65) > 4 * network_at(0)->link.latency_ns);
    end(s);
}

/* Many at once, from everywhere: every node ends with the value of the last in order. */
static void test_race(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_COMPARE);
    r.relation = RELATION_GE;
    r.write_variable = 3;
    for (uint32_t i = 0; i < 12; i++) {
        r.write_value = 100 + i;
        act(s, AT(50), (i * 5) % NODES, r);
    }
    power_on(s);
    model_run_until(s->model, AT(100));
    uint64_t orders = 0, last = 0, winner = 0;
    for (uint32_t i = 0; i < 12; i++) {
        const struct heard *h = answer(s, i, 0);
        if (!CHECK(h != NULL && h->completion.outcome == OUTCOME_DONE))
            continue;
        CHECK((orders & (uint64_t)1 << h->completion.order) == 0);
        orders |= (uint64_t)1 << h->completion.order;
        if (h->completion.order > last) {
            last = h->completion.order;
            winner = 100 + i;
        }
    }
    for (uint32_t n = 0; n < NODES; n++)
        CHECK_EQ(variable(s, n, 3), winner);
    end(s);
}

/* Answered when it has become true, or when its time is over; more than the limit are refused. */
static void test_standing(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_STANDING);
    nodeset_add(&s->some, 5);
    r.set = &s->some;
    r.relation = RELATION_GE;
    r.value = 1;
    uint32_t met = act(s, AT(50), ROOT, r);
    r.value = 2;
    r.timeout_ns = AT(30);
    uint32_t never = act(s, AT(50), 3, r);
    uint32_t third = act(s, AT(60), 4, r);
    struct primitive set = request(s, PRIMITIVE_SET);
    set.value = 1;
    act(s, AT(70), 5, set);
    power_on(s);
    model_run_until(s->model, AT(69));
    CHECK(answer(s, met, 0) == NULL);
    CHECK_EQ(outcome_of(s, third), OUTCOME_REFUSED);
    model_run_until(s->model, AT(100));
    CHECK_EQ(outcome_of(s, met), OUTCOME_DONE);
    const struct heard *h = answer(s, met, 0);
    if (CHECK(h != NULL))
        CHECK(h->at > AT(70) && h->at < AT(72));
    CHECK_EQ(outcome_of(s, never), OUTCOME_FAILED);
    end(s);
}

static void test_strobe(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_STROBE);
    uint8_t bodies[2][8];
    for (uint64_t i = 0; i < 2; i++) {
        store_le64(bodies[i], 7 + i);
        r.body = bytes_of(bodies[i], 8);
        act(s, AT(50 + i), ROOT, r);
    }
    power_on(s);
    model_run_until(s->model, AT(60));
    CHECK_EQ(count_kind(s, INPUT_STROBE), 2 * NODES);
    CHECK_EQ(count_kind(s, INPUT_COMPLETION), 0);
    uint64_t newest = 0;
    for (uint32_t i = 0; i < s->heard_count; i++)
        if (s->heard[i].kind == INPUT_STROBE && s->heard[i].node == 33)
            newest = s->heard[i].number;
    CHECK_EQ(newest, 8);
    end(s);
}

static void test_bulk(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_BULK);
    uint8_t seen[8192], sent[8192];
    r.buffer = 1;
    r.buffer_bytes = sizeof sent;
    r.remote_event = 0;
    uint32_t op = act(s, AT(50), 11, r);
    power_on(s);
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 7);
    memcpy(model_buffer(s->model, 11, 1, sizeof sent), sent, sizeof sent);
    model_run_until(s->model, AT(90));
    CHECK_EQ(outcome_of(s, op), OUTCOME_DONE);
    for (uint32_t n = 0; n < NODES; n++) {
        model_heap(s->model, n, 0, room_of(seen, sizeof seen));
        CHECK(memcmp(seen, sent, sizeof sent) == 0);
    }
    end(s);
}

/* More than a node may have unanswered. */
static void test_limits(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_COMPARE);
    for (int i = 0; i < 6; i++)
        act(s, AT(50), 8, r);
    power_on(s);
    model_run_until(s->model, AT(60));
    uint32_t done = 0, refused = 0;
    for (uint32_t i = 0; i < 6; i++) {
        done += outcome_of(s, i) == OUTCOME_DONE;
        refused += outcome_of(s, i) == OUTCOME_REFUSED;
    }
    CHECK_EQ(done, 4);
    CHECK_EQ(refused, 2);
    end(s);
}

/* ---- faults ---- */

static void test_crash(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_COMPARE);
    r.write_variable = 1;
    r.write_value = 1;
    uint32_t before = act(s, AT(50), ROOT, r);
    r.write_value = 2;
    uint32_t during = act(s, AT(60), ROOT, r);
    uint32_t after = act(s, AT(61), 3, r);
    nodeset_add_range(&s->some, 0, 29);
    r.set = &s->some;
    r.write_value = 3;
    uint32_t others = act(s, AT(70), 3, r);
    r.set = &s->all;
    r.write_value = 4;
    uint32_t again = act(s, AT(300), 30, r);
    power_on(s);
    model_run_until(s->model, AT(60));
    model_run_until(s->model, AT(60) + 50 * NS_PER_US);
    model_crash(s->model, 30);
    model_run_until(s->model, AT(195));
    CHECK_EQ(outcome_of(s, before), OUTCOME_DONE);
    CHECK_EQ(outcome_of(s, during), OUTCOME_FAILED);
    CHECK_EQ(outcome_of(s, after), OUTCOME_REFUSED);
    CHECK_EQ(outcome_of(s, others), OUTCOME_DONE);
    const struct heard *h = answer(s, during, 0);
    if (CHECK(h != NULL))
        CHECK_EQ(h->completion.culprit, 30);
    h = answer(s, after, 0);
    if (CHECK(h != NULL))
        CHECK_EQ(h->completion.culprit, 30);
    CHECK_EQ(variable(s, 31, 1), 1); /* nothing of what failed */
    CHECK_EQ(variable(s, 29, 1), 3);
    CHECK(!model_member(s->model, 30));
    const struct heard *down = &s->heard[s->heard_count - 1];
    for (; down > s->heard && down->kind != INPUT_NODES; down--)
        ;
    CHECK(down->kind == INPUT_NODES && !down->up && down->count == 1);
    model_boot(s->model, 30, false);
    CHECK_EQ(variable(s, 30, 1), 0);
    model_run_until(s->model, AT(290));
    CHECK(model_member(s->model, 30));
    CHECK_EQ(variable(s, 30, 1), variable(s, ROOT, 1)); /* the snapshot */
    model_run_until(s->model, AT(350));
    CHECK_EQ(outcome_of(s, again), OUTCOME_DONE);
    end(s);
}

/* Node 9 crashes: the gather waits until it is given up, or its own time is over. */
static void test_gather(void) {
    struct scene *s = begin();
    struct primitive record = request(s, PRIMITIVE_RECORD);
    record.body = bytes_of("abc", 3);
    for (uint32_t n = 0; n < 20; n++)
        act(s, NS_PER_S, n, record);
    struct primitive r = request(s, PRIMITIVE_GATHER);
    uint32_t all = act(s, 2 * NS_PER_S, ROOT, r);
    uint32_t refused = act(s, 2 * NS_PER_S, 3, r);
    uint32_t patient = act(s, 3 * NS_PER_S, ROOT, r);
    r.timeout_ns = 20 * NS_PER_MS;
    uint32_t hasty = act(s, 3 * NS_PER_S, ROOT, r);
    r.channel = NO_CHANNEL;
    uint32_t after = act(s, 4 * NS_PER_S, ROOT, r);
    power_on(s);
    model_run_until(s->model, 3 * NS_PER_S - 1);
    model_crash(s->model, 9);
    model_run_until(s->model, 5 * NS_PER_S);
    const struct heard *h = gathered(s, all);
    CHECK(h != NULL && h->count == 20 && h->number == 0 && h->at < 2 * NS_PER_S + NS_PER_MS);
    CHECK_EQ(outcome_of(s, refused), OUTCOME_REFUSED);
    h = gathered(s, patient);
    CHECK(h != NULL && h->count == 19 && h->number == 1 && h->at < 3 * NS_PER_S + 200 * NS_PER_MS);
    h = gathered(s, hasty);
    CHECK(h != NULL && h->count == 19 && h->number == 1 && h->at == 3 * NS_PER_S + 20 * NS_PER_MS);
    h = gathered(s, after);
    CHECK(h != NULL && h->count == 0 && h->number == 1 && h->at < 4 * NS_PER_S + NS_PER_MS);
    end(s);
}

static uint32_t letters(const struct scene *s, uint32_t node, uint32_t origin, uint16_t type) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->heard_count; i++) {
        const struct heard *h = &s->heard[i];
        count +=
            h->kind == INPUT_MESSAGE && h->node == node && h->count == origin && h->number == type;
    }
    return count;
}

/* In a tree of arity 4 node 0 has 1, 6, 11 and 16 below it, node 1 has 2 to 5. */
static void test_mail(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_MAIL);
    r.body = bytes_of("abc", 3);
    r.way = MAIL_DOWN;
    r.type = MESSAGE_COMMAND;
    act(s, NS_PER_S, ROOT, r);
    r.type = MESSAGE_ENDS; /* not the root's to send */
    act(s, NS_PER_S, ROOT, r);
    r.way = MAIL_PARENT;
    act(s, NS_PER_S, 2, r);
    act(s, 2 * NS_PER_S, 2, r);
    r.way = MAIL_ROOT;
    r.type = MESSAGE_HAVE;
    act(s, NS_PER_S, 2, r);
    r.type = MESSAGE_COMMAND; /* not a node's */
    act(s, NS_PER_S, 2, r);
    power_on(s);
    model_run_until(s->model, 2 * NS_PER_S - 1);
    for (uint32_t n = 0; n < NODES; n++)
        CHECK_EQ(letters(s, n, ROOT, MESSAGE_COMMAND), 1);
    CHECK_EQ(letters(s, 1, 2, MESSAGE_ENDS), 1);
    CHECK_EQ(letters(s, ROOT, 2, MESSAGE_HAVE), 1);
    model_crash(s->model, 1);
    model_run_until(s->model, 3 * NS_PER_S);
    CHECK_EQ(letters(s, 0, 2, MESSAGE_ENDS), 1); /* who takes its place */
    uint32_t all = 0;
    for (uint32_t i = 0; i < s->heard_count; i++)
        all += s->heard[i].kind == INPUT_MESSAGE;
    CHECK_EQ(all, NODES + 3);
    end(s);
}

static void test_root_crash(void) {
    struct scene *s = begin();
    struct primitive r = request(s, PRIMITIVE_COMPARE);
    r.write_variable = 1;
    r.write_value = 9;
    uint32_t before = act(s, AT(50), 2, r);
    r.timeout_ns = AT(10);
    r.write_value = 10;
    uint32_t during = act(s, AT(80), 2, r);
    power_on(s);
    model_run_until(s->model, AT(70));
    model_crash(s->model, ROOT);
    model_run_until(s->model, AT(400));
    CHECK_EQ(outcome_of(s, before), OUTCOME_DONE);
    CHECK_EQ(outcome_of(s, during), OUTCOME_UNKNOWN);
    CHECK(answer(s, during, 1) == NULL);
    model_boot(s->model, ROOT, true);
    model_run_until(s->model, AT(600));
    const struct heard *h = answer(s, during, 1);
    if (CHECK(h != NULL))
        CHECK_EQ(h->completion.outcome, OUTCOME_DONE);
    for (uint32_t n = 0; n < NODES; n++)
        CHECK_EQ(variable(s, n, 1), 10);
    CHECK_EQ(variable(s, ROOT, 1), 9); /* from the survivors; not in the set of the other */
    end(s);
}

/* ---- both depths, and scale ---- */

static void fill_tasks(struct driver_task tasks[3], uint32_t runs) {
    for (int i = 0; i < 3; i++)
        tasks[i] = (struct driver_task){.request = {.kind = PRIMITIVE_COMPARE,
                                                    .timeout_ns = 100 * NS_PER_S,
                                                    .remote_event = NO_EVENT,
                                                    .local_event = NO_EVENT,
                                                    .write_variable = NO_VARIABLE},
                                        .runs = runs};
    tasks[0].request.write_variable = 1;
    tasks[2].wave = true;
    tasks[2].runs = 2;
}

static void test_depths_agree(void) {
    struct driver_task tasks[3];
    struct tree tree = {.shape = SHAPE_BINOMIAL, .nodes = 200};
    struct cost cost;
    struct measure links, primitives;
    fill_tasks(tasks, 3);
    cost_init(&cost, &tree, &network_at(0)->link);
    struct measure_config c = {
        .tree = tree, .link = cost.link, .cost = &cost, .seed = 1, .tasks = tasks, .task_count = 3};
    if (!CHECK_EQ(measure_run(&c, &links), 0))
        return;
    c.depth = DEPTH_PRIMITIVES;
    if (!CHECK_EQ(measure_run(&c, &primitives), 0))
        return;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(measure_median(&links.tasks[i]), measure_median(&primitives.tasks[i]));
        CHECK_EQ(primitives.tasks[i].done, tasks[i].runs);
    }
    CHECK_EQ(links.tasks[0].messages, primitives.tasks[0].messages);
    measure_fini(&links);
    measure_fini(&primitives);
}

static void test_scale(void) {
    struct driver_task tasks[3];
    struct tree tree = {.shape = SHAPE_KARY, .arity = 8, .nodes = 100000};
    struct cost cost;
    struct measure m;
    fill_tasks(tasks, 100);
    cost_init(&cost, &tree, &network_at(0)->link);
    struct measure_config c = {.depth = DEPTH_PRIMITIVES,
                               .tree = tree,
                               .link = cost.link,
                               .cost = &cost,
                               .seed = 1,
                               .tasks = tasks,
                               .task_count = 3};
    if (!CHECK_EQ(measure_run(&c, &m), 0))
        return;
    CHECK_EQ(m.tasks[0].done, 100);
    CHECK_EQ(m.tasks[1].done, 100);
    CHECK(m.steps < 1000); /* idle daemons are not stepped */
    measure_fini(&m);
}

int main(void) {
    TEST(test_join);
    TEST(test_xfer);
    TEST(test_compare);
    TEST(test_race);
    TEST(test_standing);
    TEST(test_strobe);
    TEST(test_bulk);
    TEST(test_limits);
    TEST(test_crash);
    TEST(test_gather);
    TEST(test_mail);
    TEST(test_root_crash);
    TEST(test_depths_agree);
    TEST(test_scale);
    return tap_finish();
}
