/* SPDX-License-Identifier: MIT */
/* A simulated cluster that a command tells a story with: see story.h. */
#include "cli/story.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/units.h"
#include "cli/terminal.h"

enum { ARITY = 8, CELLS = 4, CELL_BYTES = 64 };
#define PERIOD_NS (100 * NS_PER_MS)
#define POLL_NS   (50 * NS_PER_US)

/* ---- beginning and end ---- */

static void choose_limits(struct story *s, uint32_t nodes) {
    s->prim.limits = (struct limits){.nodes = nodes,
                                     .roots = 1,
                                     .variables = 4,
                                     .events = 4,
                                     .heap_bytes = CELLS * CELL_BYTES,
                                     .children = 4 * ARITY,
                                     .window = 8,
                                     .queue = 24,
                                     .outstanding = 32,
                                     .body_bytes = CELL_BYTES,
                                     .standing = 2,
                                     .transfers = 1,
                                     .chunk_bytes = 4096,
                                     .slots = 4};
    s->prim.tree = (struct tree){.shape = SHAPE_KARY, .arity = ARITY, .nodes = nodes};
    prim_config_times(&s->prim, PERIOD_NS);
    layout_init(&s->layout, &s->prim.limits, CELLS, CELL_BYTES);
}

static void make_sets(struct story *s) {
    uint32_t universe = limits_universe(&s->prim.limits);
    s->storage = calloc(2, nodeset_bytes(universe));
    ASSERT(s->storage != NULL);
    nodeset_init(&s->all, universe, s->storage);
    nodeset_init(&s->set, universe, s->storage + nodeset_bytes(universe) / 8);
    nodeset_add_range(&s->all, 0, universe - 1);
}

bool story_begin(struct story *s, uint32_t nodes, const uint32_t *speakers, uint32_t count,
                 FILE *out) {
    *s = (struct story){
        .nodes = nodes, .root = nodes, .network = network_at(0), .teller = {.out = out}};
    choose_limits(s, nodes);
    make_sets(s);
    nodeset_add(&s->set, s->root);
    for (uint32_t i = 0; i < count; i++)
        nodeset_add(&s->set, speakers[i]);
    struct chorus_config cc = {
        .limits = s->prim.limits, .layout = s->layout, .poll_ns = POLL_NS, .speakers = &s->set};
    s->chorus = chorus_new(&cc);
    struct world_config wc = {.prim = s->prim,
                              .link = s->network->link,
                              .seed = 1,
                              .hash = true,
                              .daemon = chorus_daemon,
                              .context = s->chorus,
                              .observe = chorus_observe};
    s->world = world_new(&wc);
    return s->world != NULL;
}

void story_end(struct story *s) {
    world_free(s->world);
    chorus_free(s->chorus);
    free(s->storage);
}

/* ---- telling ---- */

void story_tell(struct story *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    teller_line(&s->teller, world_now(s->world), format, args);
    va_end(args);
}

bool story_check(struct story *s, bool holds, const char *format, ...) {
    va_list args;
    va_start(args, format);
    teller_check(&s->teller, world_now(s->world), holds, format, args);
    va_end(args);
    return holds;
}

/* ---- time ---- */

void story_pass(struct story *s, uint64_t ns) {
    world_run_until(s->world, world_now(s->world) + ns);
}

bool story_until(struct story *s, uint64_t limit_ns, bool (*holds)(struct story *s, uint32_t what),
                 uint32_t what) {
    uint64_t limit = world_now(s->world) + limit_ns;
    while (!holds(s, what))
        if (world_now(s->world) > limit || !world_step(s->world))
            return false;
    return true;
}

/* ---- requests ---- */

struct primitive story_request(const struct story *s, enum primitive_kind kind) {
    return (struct primitive){.kind = kind,
                              .set = &s->all,
                              .timeout_ns = 10 * NS_PER_S,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

static bool answered(struct story *s, uint32_t number) {
    return chorus_op(s->chorus, number)->answered;
}

struct chorus_op *story_await(struct story *s, uint32_t number) {
    story_until(s, 20 * NS_PER_S, answered, number);
    return chorus_op(s->chorus, number);
}

struct chorus_op *story_ask(struct story *s, uint32_t node, const struct primitive *request) {
    return story_await(s, chorus_say(s->chorus, node, request));
}

/* ---- the cluster ---- */

void story_crash(struct story *s, uint32_t node) {
    chorus_crash(s->chorus, node, world_now(s->world));
    world_crash(s->world, node);
}

uint32_t story_parent(const struct story *s, uint32_t node) {
    const struct prim *prim = world_prim(s->world, node);
    struct prim_status status;
    if (prim == NULL)
        return NO_NODE;
    prim_status(prim, &status);
    return status.attached ? status.parent : NO_NODE;
}

uint64_t story_variable(const struct story *s, uint32_t node, uint32_t variable) {
    struct globals globals = world_globals(s->world, node);
    return globals.variables != NULL ? globals.variables[variable] : UINT64_MAX;
}

uint64_t story_us(const struct chorus_op *op) {
    return (op->answered_ns - op->asked_ns) / NS_PER_US;
}
