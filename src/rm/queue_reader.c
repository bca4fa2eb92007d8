/* SPDX-License-Identifier: MIT */
/* A remote queue as a node sees it: see queue.h.
 *
 * A reader is idle (its variable is QUEUE_IDLE, so no master waits for it) or in the session of a
 * master. The first message after being idle tells session and number: it begins there, and all that
 * follow come, in order. A master that begins, or that takes a node back, asks for a reset: the node
 * consumes what it still has, then is idle.
 *
 * The variable is changed in the very step of a signal, before the transfer can be called done: a
 * reader that was idle stores 0. So a master that asks about transfers that are done is never told of
 * a node that is idle only because it has not looked yet. */
#include <string.h>

#include "base/assert.h"
#include "rm/queue.h"

void queue_header_store(uint8_t *to, const struct queue_header *h) {
    store_le64(to, h->session);
    store_le64(to + 8, h->number);
    store_le32(to + 16, h->len);
    store_le32(to + 20, h->flags);
}

struct queue_header queue_header_load(const uint8_t *from) {
    return (struct queue_header){.session = load_le64(from),
                                 .number = load_le64(from + 8),
                                 .len = load_le32(from + 16),
                                 .flags = load_le32(from + 20)};
}

const char *queue_fault_name(enum queue_fault fault) {
    static const char *const names[QUEUE_FAULTS] = {"none", "doubled", "overrun", "foreign"};
    return fault < QUEUE_FAULTS ? names[fault] : "?";
}

static bool has_bit(const uint64_t *words, uint32_t i) {
    return words[i / 64] >> i % 64 & 1;
}

static void set_bit(uint64_t *words, uint32_t i) {
    words[i / 64] |= (uint64_t)1 << i % 64;
}

static void clear_bit(uint64_t *words, uint32_t i) {
    words[i / 64] &= ~((uint64_t)1 << i % 64);
}

static uint32_t slot_of(const struct queue_reader *r, uint64_t number) {
    return (uint32_t)(number % r->config.shape.slots);
}

static struct queue_header header_of(const struct queue_reader *r, uint32_t slot) {
    const struct queue_shape *s = &r->config.shape;
    return queue_header_load(r->config.heap + s->heap_offset + (size_t)slot * s->slot_bytes);
}

void queue_reader_init(struct queue_reader *r, const struct queue_reader_config *c) {
    ASSERT(c->shape.slots >= 1 && c->shape.slots <= QUEUE_SLOTS_MAX);
    ASSERT(c->shape.slot_bytes >= QUEUE_HEADER_BYTES);
    *r = (struct queue_reader){.config = *c};
}

static void set_dequeued(const struct queue_reader *r, uint64_t value, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){
        .kind = PRIMITIVE_SET, .variable = r->config.shape.dequeued, .value = value};
}

/* Nothing here, nothing awaited. */
static void become_idle(struct queue_reader *r) {
    r->session = 0;
    r->popped = r->done = 0;
    r->begun = r->signalled = r->resetting = false;
    memset(r->news, 0, sizeof r->news);
    memset(r->here, 0, sizeof r->here);
}

/* ---- what has come ---- */

static void fail(struct queue_reader *r, enum queue_fault fault) {
    if (r->fault == QUEUE_FAULT_NONE)
        r->fault = fault;
}

static void begin_session(struct queue_reader *r, struct effects *out) {
    struct queue_header h = header_of(r, r->first);
    if (h.session == 0 || h.number == 0) {
        fail(r, QUEUE_FAULT_FOREIGN);
        return;
    }
    r->session = h.session;
    r->popped = r->done = h.number - 1;
    r->begun = true;
    set_dequeued(r, r->done, out);
}

static void look_at(struct queue_reader *r, uint32_t slot) {
    const struct queue_shape *s = &r->config.shape;
    struct queue_header h = header_of(r, slot);
    bool again = (h.flags & QUEUE_FLAG_AGAIN) != 0;
    if (h.session != r->session || slot_of(r, h.number) != slot || h.len > queue_message_max(s)) {
        fail(r, QUEUE_FAULT_FOREIGN);
    } else if (h.number > r->done + s->slots) {
        fail(r, QUEUE_FAULT_OVERRUN);
    } else if (h.number > r->popped && !has_bit(r->here, slot)) {
        set_bit(r->here, slot);
    } else if (again) {
        r->repeated++;
    } else {
        fail(r, QUEUE_FAULT_DOUBLED);
    }
}

/* A master has asked for a reset: are we through with what we have? What came behind a gap will
 * never be complete; its master is gone and has told nobody that it was delivered. */
static bool drained(const struct queue_reader *r) {
    return r->resetting && !r->signalled && r->done == r->popped &&
           !(r->session != 0 && has_bit(r->here, slot_of(r, r->done + 1)));
}

static void look(struct queue_reader *r, struct effects *out) {
    bool news = r->signalled;
    r->signalled = false;
    if (news && r->session == 0)
        begin_session(r, out);
    for (uint32_t i = 0; news && i < r->config.shape.slots; i++)
        if (has_bit(r->news, i))
            look_at(r, i);
    memset(r->news, 0, sizeof r->news);
    if (drained(r)) {
        become_idle(r);
        set_dequeued(r, QUEUE_IDLE, out);
    }
}

static bool on_signal(struct queue_reader *r, const struct input *in, struct effects *out) {
    const struct queue_shape *s = &r->config.shape;
    const struct input_signal *signal = &in->signal;
    if (signal->event != s->event || signal->heap_offset < s->heap_offset ||
        signal->heap_offset - s->heap_offset >= queue_heap_bytes(s))
        return false;
    effects_timer(out, r->config.timer, in->now);
    if (signal->len == 0) {
        r->resetting = true;
        return false;
    }
    uint32_t first = (signal->heap_offset - s->heap_offset) / s->slot_bytes;
    uint64_t count = (signal->len + s->slot_bytes - 1) / s->slot_bytes;
    if (r->session == 0 && !r->signalled) {
        r->first = first;
        set_dequeued(r, 0, out);
    }
    r->signalled = true;
    for (uint32_t i = first; i < first + count && i < s->slots; i++)
        set_bit(r->news, i);
    return false;
}

bool queue_ready(const struct queue_reader *r) {
    return r->session != 0 && r->fault == QUEUE_FAULT_NONE &&
           has_bit(r->here, slot_of(r, r->popped + 1));
}

bool queue_reader_step(struct queue_reader *r, const struct input *in, struct effects *out) {
    switch (in->kind) {
    case INPUT_SIGNAL:
        return on_signal(r, in, out);
    case INPUT_TIMER:
        if (in->timer.id != r->config.timer)
            return false;
        look(r, out);
        return r->fault != QUEUE_FAULT_NONE || queue_ready(r);
    case INPUT_JOINED: /* what the snapshot says of the variable is somebody else's */
        become_idle(r);
        set_dequeued(r, QUEUE_IDLE, out);
        return false;
    case INPUT_FENCED:
        become_idle(r);
        return false;
    default:
        return false;
    }
}

/* ---- consuming ---- */

bool queue_pop(struct queue_reader *r, struct queue_message *ret) {
    const struct queue_shape *s = &r->config.shape;
    uint32_t slot = slot_of(r, r->popped + 1);
    if (!queue_ready(r))
        return false;
    const uint8_t *at = r->config.heap + s->heap_offset + (size_t)slot * s->slot_bytes;
    struct queue_header h = queue_header_load(at);
    if (h.session != r->session || h.number != r->popped + 1 || h.len > queue_message_max(s)) {
        fail(r, QUEUE_FAULT_OVERRUN);
        return false;
    }
    clear_bit(r->here, slot);
    r->popped++;
    *ret = (struct queue_message){
        .number = h.number, .bytes = bytes_of(at + QUEUE_HEADER_BYTES, h.len), .first = r->begun};
    r->begun = false;
    return true;
}

void queue_done(struct queue_reader *r, uint64_t number, struct effects *out) {
    if (r->session == 0)
        return; /* fenced or given up meanwhile */
    ASSERT(number <= r->popped);
    if (number <= r->done)
        return;
    r->done = number;
    bool idle = drained(r);
    if (idle)
        become_idle(r);
    set_dequeued(r, idle ? QUEUE_IDLE : number, out);
}
