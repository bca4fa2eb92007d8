/* SPDX-License-Identifier: MIT */
/* The master of a remote queue: see queue.h.
 *
 *     consumed <= delivered <= sent <= pushed,   sent <= consumed + slots
 *
 * An input only changes state; act() then does whatever the state allows, so that the rules are in
 * one place. Invariants:
 *  - Whoever has entered gets every message from then on. Hence nodes enter only when nothing is under
 *    way, the next transfer goes alone, and when one has failed all after it are sent again (those who
 *    have them pass over them: the same bytes in the same slots).
 *  - The nodes are asked only about messages that are delivered: a node that is idle then, because it
 *    has lost its memory, has none of them, and is right to be in nobody's way.
 *  - A transfer whose outcome is unknown is waited for. If this node is fenced it will never be
 *    known; it is sent again when this node is back, marked, so that nobody takes it for new. */
#include "rm/queue.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

/* Tags by use; the flights' come first. */
enum { TAG_FLOW = QUEUE_FLIGHTS_MAX, TAG_ENTER };

/* For so many compares after one that did not hold we take it that somebody is slow. */
enum { CALM = 32 };

enum flight_state { FLIGHT_OUT, FLIGHT_DONE, FLIGHT_FAILED };

struct flight {
    enum flight_state state;
    uint32_t count; /* messages */
};

/* A request that is made again until it has succeeded. */
struct errand {
    bool out;
    bool standing;     /* the next compare */
    uint64_t at;       /* not before */
    uint64_t pause_ns; /* the next one */
    uint64_t value;    /* compared with */
    uint32_t calm;     /* compares for which somebody is still taken to be slow */
    uint32_t blamed;   /* node that it was refused for */
    uint64_t blamed_at;
};

enum enter_stage {
    ENTER_NOBODY,
    ENTER_RESET, /* tell them that a master begins */
    ENTER_DRAIN, /* until they have nothing left of an earlier one */
    ENTER_READY, /* and nothing is under way */
};

struct queue {
    struct queue_config config;
    uint8_t *backlog;
    uint64_t session; /* 0 until the first nodes have been reset */
    uint64_t pushed, sent, delivered, consumed;
    uint64_t again; /* up to this number messages have been sent before */
    uint64_t drain; /* ask until this number is consumed */
    bool parked;    /* fenced, not yet a member again */
    bool fresh;     /* somebody has entered, and nothing was delivered since */
    bool failed;
    uint32_t culprit;
    struct flight flights[QUEUE_FLIGHTS_MAX]; /* oldest at `head`, in the order of their messages */
    uint32_t head, flying;
    struct errand send, flow, entry;
    enum enter_stage stage;
    struct nodeset wanted;   /* to be in the queue whenever they are up */
    struct nodeset active;   /* have entered */
    struct nodeset entering; /* being reset */
    struct nodeset waiting;  /* to be reset next */
    uint64_t timer_at;
    uint64_t due; /* of this step: when there is more to do */
    uint32_t lost_node;
    uint32_t lost, entered;
    uint64_t transfers, compares, standing, repeated;
    struct effects *out; /* of this step */
    uint64_t now;
};

/* ---- construction ---- */

void queue_config_times(struct queue_config *c, uint64_t period_ns) {
    c->flights = 4;
    c->timeout_ns = 30 * period_ns;
    c->backoff_min_ns = period_ns / 100 + 1;
    c->backoff_max_ns = period_ns;
    c->patience_ns = 10 * period_ns;
}

static void carve(struct queue *q, const struct queue_config *c, struct arena *a) {
    uint8_t *backlog = ARENA_TAKE(a, uint8_t, (size_t)c->backlog * c->shape.slot_bytes);
    struct nodeset *sets[] = {&q->wanted, &q->active, &q->entering, &q->waiting};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        uint64_t *storage = ARENA_TAKE(a, uint64_t, nodeset_bytes(c->universe) / 8);
        if (!arena_measuring(a))
            nodeset_init(sets[i], c->universe, storage);
    }
    if (!arena_measuring(a))
        q->backlog = backlog;
}

size_t queue_bytes(const struct queue_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    struct queue scratch;
    ARENA_TAKE(&a, struct queue, 1);
    carve(&scratch, c, &a);
    return arena_used(&a);
}

static void renew(const struct queue *q, struct errand *e) {
    uint32_t calm = e->calm > 0 ? e->calm - 1 : 0;
    bool standing =
        q->config.wait == QUEUE_WAIT_MIXED ? calm > 0 : q->config.wait == QUEUE_WAIT_STANDING;
    *e = (struct errand){.standing = standing,
                         .pause_ns = q->config.backoff_min_ns,
                         .calm = calm,
                         .blamed = NO_NODE};
}

struct queue *queue_new(const struct queue_config *c, struct arena *a) {
    ASSERT(c->shape.slots >= 1 && c->shape.slots <= QUEUE_SLOTS_MAX);
    ASSERT(c->shape.slot_bytes >= QUEUE_HEADER_BYTES && c->shape.slot_bytes <= c->body_bytes);
    ASSERT(c->backlog >= 1 && c->flights >= 1 && c->flights <= QUEUE_FLIGHTS_MAX);
    ASSERT(c->wait < QUEUE_WAITS && c->backoff_min_ns > 0);
    struct queue *q = ARENA_TAKE(a, struct queue, 1);
    memset(q, 0, sizeof *q);
    q->config = *c;
    q->culprit = NO_NODE;
    carve(q, c, a);
    renew(q, &q->send);
    renew(q, &q->flow);
    renew(q, &q->entry);
    return q;
}

const char *queue_wait_name(enum queue_wait wait) {
    static const char *const names[QUEUE_WAITS] = {"mixed", "standing", "backoff"};
    return wait < QUEUE_WAITS ? names[wait] : "?";
}

/* ---- small things ---- */

static uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint8_t *message_at(const struct queue *q, uint64_t number) {
    return q->backlog + number % q->config.backlog * q->config.shape.slot_bytes;
}

static struct flight *flight_at(struct queue *q, uint32_t i) {
    return &q->flights[(q->head + i) % QUEUE_FLIGHTS_MAX];
}

static bool any_flight(struct queue *q, enum flight_state state) {
    for (uint32_t i = 0; i < q->flying; i++)
        if (flight_at(q, i)->state == state)
            return true;
    return false;
}

/* May it be tried now? If not, we will be back. */
static bool is_due(struct queue *q, const struct errand *e) {
    if (e->out)
        return false;
    if (e->at <= q->now)
        return true;
    if (q->due == 0 || e->at < q->due)
        q->due = e->at;
    return false;
}

static void try_later(const struct queue *q, struct errand *e) {
    e->at = q->now + e->pause_ns;
    e->pause_ns = min_u64(2 * e->pause_ns, q->config.backoff_max_ns);
}

static struct primitive *request(struct queue *q, enum primitive_kind kind, uint32_t tag,
                                 const struct nodeset *set) {
    struct effect *e = effects_add(q->out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = kind,
                                    .tag = q->config.tag + tag,
                                    .set = effects_copy_set(q->out, set),
                                    .timeout_ns = q->config.timeout_ns,
                                    .remote_event = NO_EVENT,
                                    .local_event = NO_EVENT,
                                    .variable = q->config.shape.dequeued,
                                    .write_variable = NO_VARIABLE};
    return &e->request;
}

static void compare(struct queue *q, struct errand *e, uint32_t tag, const struct nodeset *set,
                    enum relation relation, uint64_t value) {
    enum primitive_kind kind = e->standing ? PRIMITIVE_STANDING : PRIMITIVE_COMPARE;
    struct primitive *r = request(q, kind, tag, set);
    r->relation = relation;
    r->value = value;
    e->value = value;
    e->out = true;
    q->standing += e->standing;
    q->compares += !e->standing;
}

/* ---- nodes that are lost ---- */

static void lose(struct queue *q, const struct nodeset *gone) {
    NODESET_EACH (n, gone) {
        bool active = nodeset_has(&q->active, n);
        if (!active && !nodeset_has(&q->entering, n) && !nodeset_has(&q->waiting, n))
            continue;
        q->lost++;
        q->lost_node = n;
        if (active)
            q->send.at = q->now; /* what has failed can go to the others */
        if (active && q->config.loss == QUEUE_LOSS_FAIL && !q->failed) {
            q->failed = true;
            q->culprit = n;
        }
    }
    nodeset_subtract(&q->active, gone);
    nodeset_subtract(&q->entering, gone);
    nodeset_subtract(&q->waiting, gone);
}

/* Requests are refused because of this node. It may be on its way back, so it gets some time. */
static void blame(struct queue *q, struct errand *e, uint32_t node) {
    if (!nodeset_has(&q->active, node) && !nodeset_has(&q->entering, node))
        return;
    if (e->blamed != node) {
        e->blamed = node;
        e->blamed_at = q->now;
    }
    if (q->config.patience_ns == 0 || q->now - e->blamed_at < q->config.patience_ns)
        return;
    struct nodeset gone;
    size_t bytes = nodeset_bytes(q->config.universe);
    nodeset_init(&gone, q->config.universe, effects_room(q->out, bytes));
    nodeset_add(&gone, node);
    lose(q, &gone);
    e->blamed = NO_NODE;
}

/* ---- completions ---- */

/* A request that has not succeeded will be made again. A deadline that is over does not tell that
 * a node is lost if the request was to wait for it. */
static void failed_try(struct queue *q, struct errand *e, const struct completion *c, bool waits) {
    try_later(q, e);
    if (c->outcome == OUTCOME_LOST)
        q->parked = true;
    else if (c->culprit != NO_NODE && (c->outcome == OUTCOME_REFUSED || !waits))
        blame(q, e, c->culprit);
}

static void on_flight(struct queue *q, struct flight *f, const struct completion *c) {
    if (c->outcome == OUTCOME_DONE) {
        f->state = FLIGHT_DONE;
        q->fresh = false;
        renew(q, &q->send);
        return;
    }
    f->state = FLIGHT_FAILED;
    failed_try(q, &q->send, c, false);
}

/* The end of a compare; true if it held. */
static bool compared(struct queue *q, struct errand *e, const struct completion *c) {
    e->out = false;
    if (c->outcome == OUTCOME_DONE) {
        renew(q, e);
        return true;
    }
    if (c->outcome == OUTCOME_FALSE)
        e->calm = CALM;
    if (c->outcome == OUTCOME_FALSE && q->config.wait == QUEUE_WAIT_MIXED)
        e->standing = true;
    else
        failed_try(q, e, c, true);
    return false;
}

static void on_entry(struct queue *q, const struct completion *c) {
    if (q->stage == ENTER_DRAIN) {
        if (compared(q, &q->entry, c))
            q->stage = ENTER_READY;
        return;
    }
    q->entry.out = false;
    if (c->outcome != OUTCOME_DONE) {
        failed_try(q, &q->entry, c, false);
        return;
    }
    renew(q, &q->entry);
    q->stage = ENTER_DRAIN;
    if (q->session == 0)
        q->session = c->order;
}

static void on_completion(struct queue *q, const struct completion *c) {
    uint64_t tag = c->tag - q->config.tag;
    if (c->outcome == OUTCOME_UNKNOWN)
        return; /* the final outcome follows; until then it is not made again */
    uint64_t asked = q->flow.value;
    if (tag < QUEUE_FLIGHTS_MAX)
        on_flight(q, &q->flights[tag], c);
    else if (tag == TAG_ENTER)
        on_entry(q, c);
    else if (compared(q, &q->flow, c))
        q->consumed = asked;
}

/* ---- acting on the state ---- */

/* Takes note of transfers that are over, oldest first. After a failure, when nothing is under way
 * any more, everything from there on is to be sent again. */
static void settle_flights(struct queue *q) {
    while (q->flying > 0 && flight_at(q, 0)->state == FLIGHT_DONE) {
        q->delivered += flight_at(q, 0)->count;
        q->head = (q->head + 1) % QUEUE_FLIGHTS_MAX;
        q->flying--;
    }
    if (q->flying == 0 || any_flight(q, FLIGHT_OUT))
        return;
    if (q->sent > q->again)
        q->again = q->sent;
    q->sent = q->delivered;
    q->flying = 0;
}

/* Nodes enter between two transfers: nobody's first message is one whose successor is already on its
 * way to the others. */
static void let_in(struct queue *q) {
    if (q->stage == ENTER_READY && q->flying == 0) {
        q->entered += nodeset_count(&q->entering);
        nodeset_unite(&q->active, &q->entering);
        nodeset_clear(&q->entering);
        q->fresh = true;
    }
    if (nodeset_empty(&q->entering) && !q->entry.out) {
        renew(q, &q->entry);
        nodeset_copy(&q->entering, &q->waiting);
        nodeset_clear(&q->waiting);
        q->stage = nodeset_empty(&q->entering) ? ENTER_NOBODY : ENTER_RESET;
    }
    bool asks = q->stage == ENTER_RESET || q->stage == ENTER_DRAIN;
    if (!asks || nodeset_empty(&q->entering) || !is_due(q, &q->entry))
        return;
    if (q->stage == ENTER_DRAIN) {
        compare(q, &q->entry, TAG_ENTER, &q->entering, RELATION_EQ, QUEUE_IDLE);
        return;
    }
    struct primitive *r = request(q, PRIMITIVE_XFER, TAG_ENTER, &q->entering);
    r->heap_offset = q->config.shape.heap_offset;
    r->remote_event = q->config.shape.event;
    q->entry.out = true;
}

/* The bytes of one transfer: consecutive slots, the last one cut to its message. */
static struct bytes gather(struct queue *q, uint64_t first, uint32_t count) {
    uint32_t slot_bytes = q->config.shape.slot_bytes;
    uint8_t *body = effects_room(q->out, (size_t)count * slot_bytes);
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = first + i;
        struct queue_header h = queue_header_load(message_at(q, number));
        h.session = q->session;
        h.flags = number <= q->again ? QUEUE_FLAG_AGAIN : 0;
        q->repeated += number <= q->again;
        uint8_t *to = body + (size_t)i * slot_bytes;
        memcpy(to, message_at(q, number), QUEUE_HEADER_BYTES + h.len);
        queue_header_store(to, &h);
        len = (size_t)i * slot_bytes + QUEUE_HEADER_BYTES + h.len;
        if (i + 1 < count)
            memset(body + len, 0, (size_t)(i + 1) * slot_bytes - len);
    }
    return bytes_of(body, len);
}

static void transfer(struct queue *q, uint64_t first, uint32_t count) {
    const struct queue_shape *s = &q->config.shape;
    uint32_t index = (q->head + q->flying++) % QUEUE_FLIGHTS_MAX;
    q->flights[index] = (struct flight){.count = count};
    struct bytes body = gather(q, first, count);
    struct primitive *r = request(q, PRIMITIVE_XFER, index, &q->active);
    r->heap_offset = s->heap_offset + (uint32_t)(first % s->slots) * s->slot_bytes;
    r->body = body;
    r->remote_event = s->event;
    q->sent += count;
    q->transfers++;
}

/* The last message of this one's part of the ring; transfers and compares keep to a part, so a wrap
 * splits them. If there is plenty to send and nobody is slow a part is the whole ring: the fewest
 * operations. Otherwise it is a half: while one is being consumed the other is filled, and a message
 * that comes alone finds room. */
static uint64_t part_end(const struct queue *q, uint64_t number) {
    uint64_t slots = q->config.shape.slots;
    uint64_t slot = number % slots;
    uint64_t half = (slots + 1) / 2;
    bool slow = q->flow.calm > 0 || q->config.wait == QUEUE_WAIT_STANDING;
    bool whole = !slow && q->pushed - q->consumed >= slots;
    return number + (slot < half && !whole ? half : slots) - 1 - slot;
}

/* How many messages the next transfer has; 0 if it is better to wait. While one is under way a
 * message waits for others, unless so many have come that more would not fit into one transfer. */
static uint32_t next_count(struct queue *q) {
    const struct queue_shape *s = &q->config.shape;
    uint64_t room = q->consumed + s->slots - q->sent;
    uint64_t ready = min_u64(q->pushed - q->sent, room);
    uint64_t most = part_end(q, q->sent + 1) - q->sent;
    most = min_u64(most, q->config.body_bytes / s->slot_bytes);
    if (ready < most && q->flying > 0)
        return 0;
    return (uint32_t)min_u64(ready, most);
}

/* The first transfer to somebody who has entered goes alone: if it failed and one after it did not,
 * they would begin with the latter. */
static void send(struct queue *q) {
    bool may = q->session != 0 && q->stage != ENTER_READY && !nodeset_empty(&q->active) &&
               !any_flight(q, FLIGHT_FAILED);
    if (!may || q->sent == q->pushed || !is_due(q, &q->send))
        return;
    uint32_t most = q->fresh ? 1 : q->config.flights;
    uint32_t count;
    while (q->flying < most && (count = next_count(q)) > 0)
        transfer(q, q->sent + 1, count);
}

/* Algorithm 1, ahead of time: as soon as a part of the ring is delivered we ask whether it is
 * consumed. (The paper's listing has the condition inverted; its text says what is meant.) */
static void ask_for_space(struct queue *q) {
    uint64_t value = part_end(q, q->consumed + 1);
    if (value > q->delivered && q->drain > q->consumed)
        value = q->delivered;
    if (value > q->delivered || value == q->consumed || nodeset_empty(&q->active) ||
        !is_due(q, &q->flow))
        return;
    compare(q, &q->flow, TAG_FLOW, &q->active, RELATION_GE, value);
}

static void act(struct queue *q) {
    q->due = 0;
    settle_flights(q);
    if (!q->failed && !q->parked) {
        let_in(q);
        ask_for_space(q); /* first: a compare waits for the transfers before it */
        send(q);
    }
    if (q->due != q->timer_at)
        effects_timer(q->out, q->config.timer, q->due);
    q->timer_at = q->due;
}

/* ---- from outside ---- */

static void begin_step(struct queue *q, uint64_t now, struct effects *out) {
    q->now = now;
    q->out = out;
    q->lost = q->entered = 0;
    q->lost_node = NO_NODE;
}

static uint32_t room_of_backlog(const struct queue *q) {
    return q->config.backlog - (uint32_t)(q->pushed - q->delivered);
}

int queue_push(struct queue *q, struct bytes message, uint64_t now, struct effects *out,
               uint64_t *ret_number) {
    if (q->failed)
        return -EPIPE;
    if (message.len > queue_message_max(&q->config.shape))
        return -EMSGSIZE;
    if (room_of_backlog(q) == 0)
        return -ENOSPC;
    begin_step(q, now, out);
    uint8_t *at = message_at(q, ++q->pushed);
    struct queue_header h = {.number = q->pushed, .len = (uint32_t)message.len};
    queue_header_store(at, &h);
    if (message.len > 0)
        memcpy(at + QUEUE_HEADER_BYTES, message.at, message.len);
    *ret_number = q->pushed;
    act(q);
    return 0;
}

void queue_add(struct queue *q, const struct nodeset *nodes, uint64_t now, struct effects *out) {
    begin_step(q, now, out);
    nodeset_unite(&q->wanted, nodes);
    nodeset_unite(&q->waiting, nodes);
    nodeset_subtract(&q->waiting, &q->active);
    nodeset_subtract(&q->waiting, &q->entering);
    act(q);
}

void queue_drain(struct queue *q, uint64_t now, struct effects *out) {
    begin_step(q, now, out);
    q->drain = q->pushed;
    act(q);
}

static void on_nodes(struct queue *q, const struct input_nodes *in) {
    if (!in->up) {
        lose(q, in->nodes);
        return;
    }
    NODESET_EACH (n, in->nodes) {
        bool in_already = nodeset_has(&q->active, n) || nodeset_has(&q->entering, n);
        if (nodeset_has(&q->wanted, n) && !in_already)
            nodeset_add(&q->waiting, n);
    }
}

/* Changes the state; false if the input does not concern this queue. */
static bool take(struct queue *q, const struct input *in) {
    switch (in->kind) {
    case INPUT_COMPLETION:
        if (in->completion.tag - q->config.tag >= QUEUE_TAGS)
            return false;
        on_completion(q, &in->completion);
        return true;
    case INPUT_TIMER:
        if (in->timer.id != q->config.timer)
            return false;
        q->timer_at = 0;
        return true;
    case INPUT_NODES:
        on_nodes(q, &in->nodes);
        return true;
    case INPUT_JOINED:
        q->parked = false;
        return true;
    default:
        return false;
    }
}

bool queue_step(struct queue *q, const struct input *in, struct effects *out,
                struct queue_news *ret) {
    *ret = (struct queue_news){.lost_node = NO_NODE};
    begin_step(q, in->now, out);
    uint64_t delivered = q->delivered;
    uint64_t consumed = q->consumed;
    bool full = room_of_backlog(q) == 0;
    bool failed = q->failed;
    if (!take(q, in))
        return false;
    act(q);
    *ret = (struct queue_news){.room = full && room_of_backlog(q) > 0,
                               .delivered = q->delivered > delivered,
                               .consumed = q->consumed > consumed,
                               .entered = q->entered,
                               .lost = q->lost,
                               .lost_node = q->lost_node,
                               .failed = q->failed && !failed};
    return true;
}

void queue_status(const struct queue *q, struct queue_status *ret) {
    *ret = (struct queue_status){
        .pushed = q->pushed,
        .sent = q->sent,
        .delivered = q->delivered,
        .consumed = q->consumed,
        .nodes = nodeset_count(&q->active),
        .entering = nodeset_count(&q->entering) + nodeset_count(&q->waiting),
        .room = room_of_backlog(q),
        .failed = q->failed,
        .culprit = q->culprit,
        .transfers = q->transfers,
        .compares = q->compares,
        .standing = q->standing,
        .repeated = q->repeated,
    };
}
