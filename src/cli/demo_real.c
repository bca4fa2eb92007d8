/* SPDX-License-Identifier: MIT */
/* storm demo: a cluster of real processes on this machine, its primitives, its deaths, its healing.
 *
 * Nothing here knows how the cluster works: requests go in, answers come out, and what is claimed
 * is read from the nodes' own memory. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/complain.h"
#include "cli/demo.h"
#include "cli/stats.h"
#include "cli/teller.h"
#include "os/fanout.h"
#include "os/puppets.h"

/* Variable 0 belongs to each node, 2 and 3 are written by compares. */
enum { VARIABLE_OWN, VARIABLE_RACE = 2, VARIABLE_LAST };
enum { EVENT_DATA = 1, EVENT_LOCAL = 3 };

enum { ARITY = 8, REPEATS = 21, STREAM = 24, RACERS = 6 };

#define PERIOD (250 * NS_PER_MS)
#define LIMIT  (20 * NS_PER_S)

struct demo {
    struct teller teller;
    struct puppets *puppets;
    struct crew *crew;
    struct tree tree;
    uint32_t nodes, root, victim;
    uint64_t begin_ns, died_ns;
    struct nodeset set;
    uint64_t *set_storage;
    uint64_t mark; /* of the last transfer */
};

/* ---- telling ---- */

static uint64_t since(uint64_t then) {
    return clock_ns() - then;
}

__attribute__((format(printf, 2, 3))) static void tell(struct demo *d, const char *format, ...) {
    va_list args;
    va_start(args, format);
    teller_line(&d->teller, since(d->begin_ns), format, args);
    va_end(args);
}

__attribute__((format(printf, 3, 4))) static bool check(struct demo *d, bool holds,
                                                        const char *format, ...) {
    va_list args;
    va_start(args, format);
    teller_check(&d->teller, since(d->begin_ns), holds, format, args);
    va_end(args);
    return holds;
}

static const char *ms(uint64_t ns, char out[UNITS_TEXT_MAX]) {
    units_format_duration(ns, out, UNITS_TEXT_MAX);
    return out;
}

/* ---- asking ---- */

static struct primitive request_of(enum primitive_kind kind) {
    return (struct primitive){.kind = kind,
                              .timeout_ns = 10 * NS_PER_S,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

static const struct puppet_op *ask(struct demo *d, uint32_t node, const struct primitive *r) {
    uint32_t number = puppets_tell(d->puppets, node, r);
    puppets_await(d->puppets, number, LIMIT);
    return puppets_op(d->puppets, number);
}

static enum outcome outcome_of(const struct puppet_op *op) {
    return op->stage == PUPPET_ANSWERED ? op->completion.outcome : OUTCOMES;
}

/* The same request again and again; false unless all end as expected. */
static bool repeat(struct demo *d, const struct primitive *r, enum outcome expected,
                   uint64_t *ret_median) {
    uint64_t took[REPEATS];
    bool good = true;
    for (int i = 0; i < REPEATS; i++) {
        const struct puppet_op *op = ask(d, d->root, r);
        good = good && outcome_of(op) == expected;
        took[i] = op->answered_ns - op->asked_ns;
    }
    sort_u64(took, REPEATS);
    *ret_median = took[REPEATS / 2];
    return good;
}

/* ---- looking ---- */

static uint32_t count_value(const struct demo *d, uint32_t variable, uint64_t value) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < d->nodes; n++)
        count +=
            crew_pid(d->crew, n) != 0 && puppets_node(d->puppets, n)->variables[variable] == value;
    return count;
}

/* In how many heaps, of processes that live, is the transfer with this mark? */
static uint32_t count_mark(const struct demo *d, uint64_t mark) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < d->nodes; n++)
        count += crew_pid(d->crew, n) != 0 && load_le64(crew_heap(d->crew, n)) == mark;
    return count;
}

struct value {
    const struct demo *demo;
    uint32_t variable;
    uint64_t value;
    uint32_t count;
};

static bool has_value(const struct puppets *p, void *what) {
    const struct value *v = what;
    (void)p;
    return count_value(v->demo, v->variable, v->value) >= v->count;
}

/* A node shows its variables at the end of its turn, a moment after the root knows. */
static uint32_t await_value(struct demo *d, uint32_t variable, uint64_t value, uint32_t count) {
    struct value v = {d, variable, value, count};
    puppets_until(d->puppets, LIMIT, has_value, &v);
    return count_value(d, variable, value);
}

static bool all_up(const struct puppets *p, void *what) {
    return puppets_up_count(p) == *(const uint32_t *)what;
}

static bool is_down(const struct puppets *p, void *what) {
    return !puppets_up(p, *(const uint32_t *)what);
}

static uint32_t planned_parent(const struct demo *d, uint32_t node) {
    uint32_t parent = d->root;
    tree_ancestors(&d->tree, node, &parent, 1);
    return parent;
}

struct family {
    const struct demo *demo;
    uint32_t parent;
};

/* Do all planned children of the victim hang below that parent? */
static bool children_hang(const struct puppets *p, void *what) {
    const struct family *f = what;
    const struct demo *d = f->demo;
    struct noderange below = tree_subtree(&d->tree, d->victim);
    for (uint32_t n = below.first + 1; n <= below.last; n++) {
        const struct puppet *child = puppets_node(p, n);
        if (planned_parent(d, n) == d->victim && (!child->attached || child->parent != f->parent))
            return false;
    }
    return true;
}

static const char *name_of(const struct demo *d, uint32_t node, char out[16]) {
    if (node == d->root)
        snprintf(out, 16, "root");
    else
        snprintf(out, 16, "n%" PRIu32, node);
    return out;
}

/* One line for each parent of the victim's family, as the nodes themselves see it now. */
static void draw_family(struct demo *d) {
    uint32_t parents[] = {planned_parent(d, d->victim), d->victim};
    struct noderange below = tree_subtree(&d->tree, d->victim);
    for (size_t i = 0; i < 2; i++) {
        char name[16], children[128];
        nodeset_clear(&d->set);
        for (uint32_t n = below.first; n <= below.last; n++)
            if (crew_pid(d->crew, n) != 0 && puppets_node(d->puppets, n)->parent == parents[i])
                nodeset_add(&d->set, n);
        nodeset_format(&d->set, "n", children, sizeof children);
        if (!nodeset_empty(&d->set))
            tell(d, "    %s ── %s", name_of(d, parents[i], name), children);
    }
}

/* ---- chapters ---- */

static bool bring_up(struct demo *d) {
    char took[UNITS_TEXT_MAX];
    teller_chapter(&d->teller, "A cluster comes up");
    if (crew_start_all(d->crew) < 0)
        return false;
    uint32_t everyone = d->nodes + 1;
    bool up = puppets_until(d->puppets, LIMIT, all_up, &everyone);
    return check(d, up,
                 "%" PRIu32
                 " nodes and the manager, a process each, are up after %s, in a tree %" PRIu32
                 " levels deep",
                 d->nodes, ms(since(d->begin_ns), took), tree_depth(&d->tree));
}

/* What a round costs with nothing of ours: to compare with. */
static uint64_t bare_round(const struct demo *d, enum transport links) {
    struct fanout_config config = {.transport = links, .nodes = d->nodes, .rounds = REPEATS};
    struct fanout_result result = {0};
    return fanout_run(&config, &result) < 0 ? 0 : result.median_ns;
}

static struct primitive make_xfer(struct demo *d, uint8_t *body, size_t len) {
    struct primitive r = request_of(PRIMITIVE_XFER);
    store_le64(body, ++d->mark);
    r.body = bytes_of(body, len);
    r.remote_event = EVENT_DATA;
    return r;
}

static bool all_signalled(const struct puppets *p, void *what) {
    const struct demo *d = what;
    return puppets_node(p, d->nodes - 1)->events[EVENT_DATA] == REPEATS &&
           puppets_node(p, d->root)->events[EVENT_LOCAL] == REPEATS;
}

static void show_xfer(struct demo *d) {
    uint8_t body[4096] = {0};
    char took[UNITS_TEXT_MAX];
    uint64_t median;
    struct primitive r = make_xfer(d, body, sizeof body);
    r.local_event = EVENT_LOCAL;
    bool done = repeat(d, &r, OUTCOME_DONE, &median);
    uint32_t have = count_mark(d, d->mark);
    check(d, done && have == d->nodes,
          "XFER-AND-SIGNAL of 4 KiB to all: done in %s (median of %d, two rounds), in %" PRIu32
          " heaps",
          ms(median, took), REPEATS, have);
    bool signalled = puppets_until(d->puppets, LIMIT, all_signalled, d);
    uint64_t remote = puppets_node(d->puppets, d->nodes - 1)->events[EVENT_DATA];
    uint64_t local = puppets_node(d->puppets, d->root)->events[EVENT_LOCAL];
    check(d, signalled,
          "TEST-EVENT: n%" PRIu32 " was signalled %" PRIu64
          " times, the manager's own event %" PRIu64,
          d->nodes - 1, remote, local);
}

static void store_own(struct demo *d, uint32_t node, uint64_t value) {
    struct primitive r = request_of(PRIMITIVE_SET);
    r.variable = VARIABLE_OWN;
    r.value = value;
    puppets_tell(d->puppets, node, &r);
    await_value(d, VARIABLE_OWN, value, value == 0 ? d->nodes : 1);
}

static void show_compare(struct demo *d) {
    char took[UNITS_TEXT_MAX];
    uint64_t median;
    uint32_t setter = d->nodes / 2;
    struct primitive r = request_of(PRIMITIVE_COMPARE);
    r.variable = VARIABLE_OWN;
    r.relation = RELATION_EQ;
    bool good = repeat(d, &r, OUTCOME_DONE, &median);
    check(d, good, "COMPARE: is v0 = 0 on all nodes? yes, in %s (one round)", ms(median, took));
    store_own(d, setter, 1);
    good = repeat(d, &r, OUTCOME_FALSE, &median);
    check(d, good, "the same after n%" PRIu32 " stored 1: no, in %s", setter, ms(median, took));
    struct primitive standing = r;
    standing.kind = PRIMITIVE_STANDING;
    uint32_t number = puppets_tell(d->puppets, d->root, &standing);
    ask(d, d->root, &r); /* it is armed everywhere by now, and says nothing */
    bool waits = puppets_op(d->puppets, number)->stage == PUPPET_ASKED;
    store_own(d, setter, 0);
    puppets_await(d->puppets, number, LIMIT);
    check(d, waits && outcome_of(puppets_op(d->puppets, number)) == OUTCOME_DONE,
          "a standing COMPARE waits until n%" PRIu32 " has stored 0, then says yes", setter);
    r.write_variable = VARIABLE_LAST;
    r.write_value = 4711;
    good = repeat(d, &r, OUTCOME_DONE, &median);
    check(d, good && await_value(d, VARIABLE_LAST, 4711, d->nodes) == d->nodes,
          "COMPARE-AND-WRITE of v3: done in %s (two rounds), on all nodes", ms(median, took));
}

static void show_race(struct demo *d) {
    uint32_t ops[RACERS];
    const struct puppet_op *last = NULL;
    struct primitive r = request_of(PRIMITIVE_COMPARE);
    r.relation = RELATION_EQ;
    r.write_variable = VARIABLE_RACE;
    for (uint32_t i = 0; i < RACERS; i++) {
        r.write_value = 100 + i;
        ops[i] = puppets_tell(d->puppets, i * (d->nodes / RACERS), &r);
    }
    for (int i = 0; i < RACERS; i++) {
        puppets_await(d->puppets, ops[i], LIMIT);
        const struct puppet_op *op = puppets_op(d->puppets, ops[i]);
        if (last == NULL || op->completion.order > last->completion.order)
            last = op;
    }
    uint32_t same = await_value(d, VARIABLE_RACE, last->request.write_value, d->nodes);
    check(d, same == d->nodes,
          "%d nodes race with different values: all %" PRIu32 " hold n%" PRIu32
          "'s, the last in order",
          RACERS, same, last->node);
}

/* ---- an inner node dies ---- */

static void show_death(struct demo *d, uint32_t ops[STREAM]) {
    uint8_t body[64] = {0};
    char took[UNITS_TEXT_MAX];
    tell(d, "n%" PRIu32 " is an inner node:", d->victim);
    draw_family(d);
    for (int i = 0; i < STREAM; i++) {
        struct primitive r = make_xfer(d, body, sizeof body);
        ops[i] = puppets_tell(d->puppets, d->root, &r);
        if (i == STREAM / 2) {
            puppets_await(d->puppets, ops[i - 4], LIMIT);
            d->died_ns = clock_ns();
            crew_kill(d->crew, d->victim);
        }
    }
    tell(d, "its process is killed in the middle of %d XFER-AND-SIGNALs to all nodes", STREAM);
    struct family family = {d, planned_parent(d, d->victim)};
    bool moved = puppets_until(d->puppets, LIMIT, children_hang, &family);
    check(d, moved,
          "its children have noticed and moved, %s after its death:", ms(since(d->died_ns), took));
    draw_family(d);
    bool down = puppets_until(d->puppets, LIMIT, is_down, &d->victim);
    check(d, down, "the manager has given it up, %s after its death", ms(since(d->died_ns), took));
}

static void show_stream(struct demo *d, const uint32_t ops[STREAM]) {
    uint32_t done = 0, failed = 0, blamed = 0;
    const struct puppet_op *last = NULL;
    for (int i = 0; i < STREAM; i++) {
        puppets_await(d->puppets, ops[i], LIMIT);
        const struct puppet_op *op = puppets_op(d->puppets, ops[i]);
        bool good = outcome_of(op) == OUTCOME_DONE;
        done += good;
        failed += !good;
        blamed += !good && op->completion.culprit == d->victim;
        last = good ? op : last;
    }
    check(d, done > 0 && done + blamed == STREAM,
          "of the %d transfers %" PRIu32 " are done, %" PRIu32
          " failed or were refused and name n%" PRIu32,
          STREAM, done, failed, d->victim);
    uint32_t have = last == NULL ? 0 : count_mark(d, load_le64(last->body));
    check(d, have == d->nodes - 1,
          "all or nothing: %" PRIu32 " heaps hold the last one done, none a failed one", have);
}

static void show_return(struct demo *d) {
    char took[UNITS_TEXT_MAX];
    uint64_t begin = clock_ns();
    uint32_t everyone = d->nodes + 1;
    crew_start(d->crew, d->victim);
    tell(d, "n%" PRIu32 " is started again, with empty memory", d->victim);
    bool up = puppets_until(d->puppets, LIMIT, all_up, &everyone);
    bool same = await_value(d, VARIABLE_LAST, 4711, d->nodes) == d->nodes;
    check(d, up && same, "it has joined after %s and holds the variables of the others",
          ms(since(begin), took));
    struct family family = {d, d->victim};
    bool back = puppets_until(d->puppets, LIMIT, children_hang, &family);
    check(d, back, "its children are back:");
    draw_family(d);
}

/* ---- the root dies ---- */

struct successor {
    const struct demo *demo;
    uint32_t epoch;
};

/* A manager of a later epoch has everyone. */
static bool succeeded(const struct puppets *p, void *what) {
    const struct successor *s = what;
    return puppets_node(p, s->demo->root)->epoch > s->epoch &&
           puppets_up_count(p) == s->demo->nodes + 1;
}

static void show_root(struct demo *d) {
    char took[UNITS_TEXT_MAX];
    uint32_t epoch = puppets_node(d->puppets, d->root)->epoch;
    uint32_t asker = d->nodes - 1;
    struct primitive r = request_of(PRIMITIVE_COMPARE);
    r.variable = VARIABLE_LAST;
    r.relation = RELATION_EQ;
    r.value = 4711;
    uint64_t begin = clock_ns();
    crew_signal(d->crew, d->root, SIGKILL);
    tell(d, "its process is killed; whoever has started it starts it again");
    struct successor successor = {d, epoch};
    bool up = puppets_until(d->puppets, LIMIT, succeeded, &successor);
    uint32_t next = puppets_node(d->puppets, d->root)->epoch;
    check(d, up,
          "epoch %" PRIu32 ": the new manager has collected all %" PRIu32 " survivors, %s later",
          next, d->nodes, ms(since(begin), took));
    const struct puppet_op *op = ask(d, asker, &r);
    check(d, outcome_of(op) == OUTCOME_DONE,
          "nothing is lost: COMPARE by n%" PRIu32 ", is v3 = 4711 everywhere? yes", asker);
}

static void tell_it_all(struct demo *d, enum transport links) {
    uint32_t ops[STREAM];
    char took[UNITS_TEXT_MAX];
    if (!bring_up(d))
        return;
    teller_chapter(&d->teller, "The three primitives");
    tell(d, "one round, a bare fan-out with acknowledgements, takes %s on this machine",
         ms(bare_round(d, links), took));
    show_xfer(d);
    show_compare(d);
    show_race(d);
    teller_chapter(&d->teller, "A node dies and comes back");
    show_death(d, ops);
    show_stream(d, ops);
    show_return(d);
    teller_chapter(&d->teller, "The manager dies and comes back");
    show_root(d);
}

int demo_real(uint32_t nodes, enum transport links) {
    struct demo d = {.teller = {.out = stdout},
                     .nodes = nodes,
                     .root = nodes,
                     .tree = {.shape = SHAPE_KARY, .arity = ARITY, .nodes = nodes}};
    struct crew_config config = {.links = links, .keep_root = true};
    config.prim.tree = d.tree;
    config.prim.limits = (struct limits){.nodes = nodes,
                                         .roots = 1,
                                         .variables = 4,
                                         .events = 4,
                                         .heap_bytes = 8 * KIB,
                                         .children = 3 * ARITY,
                                         .window = 16,
                                         .queue = 64,
                                         .outstanding = 32,
                                         .body_bytes = 4 * KIB,
                                         .standing = 4,
                                         .transfers = 2,
                                         .chunk_bytes = 64 * KIB,
                                         .slots = 4};
    prim_config_times(&config.prim, PERIOD);
    int error;
    d.begin_ns = clock_ns();
    d.victim = tree_subtree(&d.tree, 0).last + 1; /* the manager's second child */
    d.puppets = puppets_new(&config, &error);
    d.set_storage = malloc(nodeset_bytes(nodes + 1));
    if (d.puppets == NULL || d.set_storage == NULL) {
        complain("demo", "%s", strerror(-error));
        return STATUS_FAILED;
    }
    nodeset_init(&d.set, nodes + 1, d.set_storage);
    d.crew = puppets_crew(d.puppets);
    printf("%" PRIu32 " node processes on this machine, k-ary tree of arity %d, %s links\n", nodes,
           ARITY, transport_name(links));
    tell_it_all(&d, links);
    puppets_free(d.puppets);
    free(d.set_storage);
    return teller_conclude(&d.teller);
}
