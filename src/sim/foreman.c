/* SPDX-License-Identifier: MIT */
/* Managers for measurements: see foreman.h. */
#include "sim/foreman.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "rm/say.h"
#include "rm/transfer.h"
#include "sim/cost.h"
#include "wire/message.h"

enum { EVENTS = EVENT_FILES + 1 }; /* EVENT_LAUNCH, too */
enum { VARIABLE_FILES, VARIABLE_ENDS, VARIABLES };
enum { COMMAND_ARITY = 8, TIMER_END = 1 };

/* Nothing goes wrong, so nothing is given up. */
#define PATIENCE_NS (24 * 3600 * NS_PER_S)

/* A heartbeat must not be under way all the time. */
enum { PERIOD_WAVES = 20 };

enum task { TASK_ORDER = 1, TASK_ARRIVE, TASK_JUDGE, TASK_START, TASK_END };

struct host {
    struct foreman *foreman;
    uint32_t node;
    uint32_t link; /* to its mover */
    uint8_t *order;
    size_t order_len;
};

struct foreman {
    struct foreman_config config;
    struct foreman_times times;
    struct host *hosts; /* of nodes; the root's is behind them */
    struct nodeset all, up;
    uint64_t *storage;
    uint64_t transfer;
    bool failed;
};

static struct nodeset *scratch(struct foreman *f, struct nodeset sets[2], uint64_t *storage) {
    uint32_t universe = f->config.nodes + 1;
    nodeset_init(&sets[0], universe, storage);
    nodeset_init(&sets[1], universe, storage + nodeset_bytes(universe) / 8);
    return sets;
}

/* ---- at the root ---- */

static struct primitive *request(struct foreman *f, struct effects *out, enum primitive_kind kind,
                                 enum task tag) {
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = kind,
                                    .tag = tag,
                                    .set = effects_copy_set(out, &f->all),
                                    .timeout_ns = PATIENCE_NS,
                                    .remote_event = NO_EVENT,
                                    .local_event = NO_EVENT,
                                    .write_variable = NO_VARIABLE};
    return &e->request;
}

static void tell(struct foreman *f, struct effects *out, enum task tag, uint32_t event,
                 struct bytes body) {
    struct primitive *p = request(f, out, PRIMITIVE_XFER, tag);
    p->remote_event = event;
    p->body = body;
}

static void compare(struct foreman *f, struct effects *out, enum primitive_kind kind, enum task tag,
                    uint32_t variable, uint64_t value) {
    struct primitive *p = request(f, out, kind, tag);
    p->variable = variable;
    p->relation = kind == PRIMITIVE_STANDING ? RELATION_GE : RELATION_EQ;
    p->value = value;
}

static void on_order(struct foreman *f, const struct input *in, struct effects *out) {
    const struct input_message *m = &in->message;
    ASSERT(m->type == MESSAGE_TRANSFER && m->body.len <= f->config.order_bytes);
    uint8_t *bytes = effects_tail(out).at;
    store_le16(bytes, m->type);
    memcpy(bytes + SAY_TYPE_BYTES, m->body.at, m->body.len);
    f->transfer = load_le64(m->body.at);
    f->times.asked_at = in->now;
    tell(f, out, TASK_ORDER, EVENT_FILES, effects_take(out, SAY_TYPE_BYTES + m->body.len));
}

static void start(struct foreman *f, struct effects *out) {
    uint8_t *bytes = effects_tail(out).at;
    memset(bytes, 0, f->config.command_bytes);
    tell(f, out, TASK_START, EVENT_LAUNCH, effects_take(out, f->config.command_bytes));
}

static void on_completion(struct foreman *f, const struct input *in, struct effects *out) {
    uint64_t here = transfer_value(f->transfer, false);
    if (in->completion.outcome != OUTCOME_DONE) {
        f->failed = true;
        return;
    }
    switch (in->completion.tag) {
    case TASK_ORDER:
        f->times.ordered_at = in->now;
        compare(f, out, PRIMITIVE_STANDING, TASK_ARRIVE, VARIABLE_FILES, here);
        break;
    case TASK_ARRIVE:
        compare(f, out, PRIMITIVE_COMPARE, TASK_JUDGE, VARIABLE_FILES, here);
        break;
    case TASK_JUDGE:
        f->times.known_at = in->now;
        if (f->config.command_bytes > 0)
            start(f, out);
        break;
    case TASK_START:
        compare(f, out, PRIMITIVE_STANDING, TASK_END, VARIABLE_ENDS, 1);
        break;
    default:
        f->times.ended_at = in->now;
    }
}

static void root_step(void *self, const struct input *in, struct effects *out) {
    struct foreman *f = ((struct host *)self)->foreman;
    if (in->kind == INPUT_NODES && in->nodes.up) {
        nodeset_unite(&f->up, in->nodes.nodes);
        if (f->times.up_at == 0 && nodeset_covers(&f->up, &f->all))
            f->times.up_at = in->now;
    } else if (in->kind == INPUT_NODES) {
        f->failed = true;
    } else if (in->kind == INPUT_MESSAGE && in->message.link == 0) {
        on_order(f, in, out);
    } else if (in->kind == INPUT_COMPLETION) {
        on_completion(f, in, out);
    }
}

/* ---- at the nodes ---- */

static void set(struct effects *out, uint32_t variable, uint64_t value) {
    effects_add(out, EFFECT_REQUEST)->request =
        (struct primitive){.kind = PRIMITIVE_SET, .variable = variable, .value = value};
}

static void on_signal(struct host *h, const struct input *in, struct effects *out) {
    if (in->signal.event == EVENT_LAUNCH) {
        effects_timer(out, TIMER_END, in->now + h->foreman->config.exec_ns);
        return;
    }
    h->order_len = in->signal.body.len - SAY_TYPE_BYTES;
    h->order = malloc(h->order_len);
    ASSERT(h->order != NULL);
    memcpy(h->order, in->signal.body.at + SAY_TYPE_BYTES, h->order_len);
    effects_add(out, EFFECT_OPEN)->open =
        (struct effect_open){.node = h->node, .purpose = PURPOSE_MOVER, .cookie = 1};
}

static void on_link(struct host *h, const struct input *in, struct effects *out) {
    h->link = in->link.link;
    h->foreman->times.heard_at = in->now;
    effects_send(out, h->link, 0, MESSAGE_TRANSFER,
                 effects_copy(out, bytes_of(h->order, h->order_len)), (struct bytes){0});
}

static void on_arrived(struct host *h, const struct input *in, struct effects *out) {
    struct foreman *f = h->foreman;
    struct nodeset sets[2];
    union message m;
    uint64_t *storage = malloc(2 * nodeset_bytes(f->config.nodes + 1));
    ASSERT(storage != NULL);
    int r = message_decode(in->message.type, in->message.body, scratch(f, sets, storage), &m);
    free(storage);
    if (r < 0 || in->message.type != MESSAGE_ARRIVED || m.arrived.error != 0)
        f->failed = true;
    else
        set(out, VARIABLE_FILES, transfer_value(m.arrived.transfer, false));
}

static void host_step(void *self, const struct input *in, struct effects *out) {
    struct host *h = self;
    switch (in->kind) {
    case INPUT_SIGNAL:
        on_signal(h, in, out);
        break;
    case INPUT_LINK_UP:
        on_link(h, in, out);
        break;
    case INPUT_LINK_DOWN:
        h->foreman->failed = true;
        break;
    case INPUT_MESSAGE:
        on_arrived(h, in, out);
        break;
    case INPUT_TIMER:
        set(out, VARIABLE_ENDS, 1);
        break;
    default:
        break;
    }
}

struct machine foreman_host(void *context, uint32_t who) {
    struct foreman *f = context;
    struct host *h = &f->hosts[who];
    *h = (struct host){.foreman = f, .node = who};
    return (struct machine){.self = h, .step = who == f->config.nodes ? root_step : host_step};
}

/* ---- the whole ---- */

struct foreman *foreman_new(const struct foreman_config *c) {
    struct foreman *f = calloc(1, sizeof *f);
    size_t set_bytes = nodeset_bytes(c->nodes + 1);
    ASSERT(f != NULL);
    f->config = *c;
    f->hosts = calloc((size_t)c->nodes + 1, sizeof *f->hosts);
    f->storage = calloc(2, set_bytes);
    ASSERT(f->hosts != NULL && f->storage != NULL);
    nodeset_init(&f->all, c->nodes + 1, f->storage);
    nodeset_init(&f->up, c->nodes + 1, f->storage + set_bytes / 8);
    nodeset_add_range(&f->all, 0, c->nodes - 1);
    return f;
}

void foreman_free(struct foreman *f) {
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->config.nodes; i++)
        free(f->hosts[i].order);
    free(f->hosts);
    free(f->storage);
    free(f);
}

/* Small limits: a simulated node should be cheap. */
struct prim_config foreman_prim(const struct foreman_config *c, const struct link_model *link) {
    uint32_t order = c->order_bytes + SAY_TYPE_BYTES;
    uint32_t body = order > c->command_bytes ? order : c->command_bytes;
    struct prim_config p = {
        .limits = {.nodes = c->nodes,
                   .roots = 1,
                   .variables = VARIABLES,
                   .events = EVENTS,
                   .heap_bytes = body,
                   .children = 8 + COMMAND_ARITY,
                   .window = 8,
                   .queue = 8,
                   .outstanding = 8,
                   .body_bytes = body,
                   .standing = 1,
                   .transfers = 1,
                   .chunk_bytes = 1024,
                   .slots = 1},
        .tree = {.shape = SHAPE_KARY, .arity = COMMAND_ARITY, .nodes = c->nodes}};
    struct cost cost;
    cost_init(&cost, &p.tree, link);
    uint64_t period = PERIOD_WAVES * cost_ns(&cost, COST_WAVE, 0, c->nodes);
    prim_config_times(&p, period > NS_PER_S ? period : NS_PER_S);
    return p;
}

const struct foreman_times *foreman_times(const struct foreman *f) {
    return &f->times;
}

bool foreman_failed(const struct foreman *f) {
    return f->failed;
}
