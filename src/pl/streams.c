/* SPDX-License-Identifier: MIT */
/* What processes write and read, as far as the launcher has to know: offsets.
 *
 * Bytes are told to the manager as they come; the world keeps them until the client has TAKEN them.
 * A stream of which nothing was taken for a while is told again, from where the client is, less and less
 * often. A process's end of a stream is said with its last bytes, if at all: the run's end says how
 * many there were. */
#include "base/assert.h"
#include "base/units.h"
#include "pl/inside.h"

/* Fits into a message of the table with its head. */
#define OUTPUT_BYTES_MAX (64 * KIB)

static void set_timer(struct pl *p, uint64_t at, struct effects *out) {
    if (p->resend_at != 0 && p->resend_at <= at)
        return; /* it looks again when it fires */
    p->resend_at = at;
    effects_timer(out, TIMER_RESEND, at);
}

static void wait_for_taken(struct pl *p, struct stream *s, uint64_t pause_ns, uint64_t now,
                           struct effects *out) {
    s->pause_ns = pause_ns;
    s->again_at = s->taken < s->read ? units_after(now, pause_ns) : 0;
    if (s->again_at != 0)
        set_timer(p, s->again_at, out);
}

void streams_written(struct pl *p, struct run *r, const struct input *in, struct effects *out) {
    const struct input_stream *told = &in->stream;
    ASSERT(told->index < r->count && told->stream >= 1 && told->stream <= STREAMS);
    struct stream *s = &run_process(p, r, told->index)->streams[told->stream - 1];
    uint64_t end = told->offset + told->bytes.len;
    ASSERT(told->offset <= s->read && end >= told->offset);
    if (s->read < end)
        s->read = end;
    s->ended = s->ended || told->end;
    if (s->ended && s->rest) {
        s->rest = false;
        r->rests--;
    }
    if (s->again_at == 0)
        wait_for_taken(p, s, p->config.resend_ns, in->now, out);
    for (size_t at = 0; at < told->bytes.len; at += OUTPUT_BYTES_MAX) {
        size_t len = told->bytes.len - at;
        bool last = len <= OUTPUT_BYTES_MAX;
        union message m = {.output = {.run = r->run,
                                      .rank = run_process(p, r, told->index)->rank,
                                      .stream = told->stream,
                                      .end = told->end && last,
                                      .offset = told->offset + at}};
        pl_send(p, MESSAGE_OUTPUT, &m, bytes_of(told->bytes.at + at, last ? len : OUTPUT_BYTES_MAX),
                out);
    }
}

/* A process that never wrote a byte may have had no stream at all. */
void streams_sealed(struct pl *p, struct run *r) {
    for (uint32_t i = 0; i < r->count * STREAMS; i++) {
        struct stream *s = &run_process(p, r, i / STREAMS)->streams[i % STREAMS];
        s->rest = !s->ended && s->read > 0;
        r->rests += s->rest;
    }
}

bool streams_done(struct pl *p, const struct run *r) {
    for (uint32_t i = 0; i < r->count * STREAMS; i++) {
        const struct stream *s = &run_process(p, r, i / STREAMS)->streams[i % STREAMS];
        if (s->rest || s->taken < s->read)
            return false;
    }
    return true;
}

/* The process of a rank, NULL if it is not of this run. */
static struct process *ranked(struct pl *p, const struct run *r, uint32_t rank,
                              uint32_t *ret_index) {
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (run_process(p, r, middle)->rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_index = low;
    return low < r->count && run_process(p, r, low)->rank == rank ? run_process(p, r, low) : NULL;
}

void streams_taken(struct pl *p, struct run *r, const struct message_taken *m, uint64_t now,
                   struct effects *out) {
    uint32_t index;
    struct process *process = ranked(p, r, m->rank, &index);
    if (process == NULL)
        return;
    struct stream *s = &process->streams[m->stream - 1];
    if (m->offset <= s->taken || m->offset > s->read)
        return; /* an old one; or of bytes that were never told */
    s->taken = m->offset;
    wait_for_taken(p, s, p->config.resend_ns, now, out);
    struct effect *e = effects_add(out, EFFECT_STREAM_TAKEN);
    e->stream = (struct effect_stream){
        .group = run_group(p, r), .index = index, .stream = m->stream, .offset = m->offset};
}

static void say_drained(struct pl *p, const struct run *r, uint32_t index, struct effects *out) {
    union message m = {.drained = {.run = r->run,
                                   .rank = run_process(p, r, index)->rank,
                                   .offset = run_process(p, r, index)->drained}};
    pl_send(p, MESSAGE_DRAINED, &m, (struct bytes){0}, out);
}

void streams_drained(struct pl *p, struct run *r, uint32_t index, uint64_t offset,
                     struct effects *out) {
    ASSERT(index < r->count);
    struct process *process = run_process(p, r, index);
    if (process->drained >= offset)
        return;
    process->drained = offset;
    if (process->typed)
        say_drained(p, r, index, out);
}

/* The world takes what continues what it has; what is in the pipe already is only told again. */
static void feed(struct pl *p, struct run *r, uint32_t index, const struct message_typed *m,
                 struct effects *out) {
    struct process *process = run_process(p, r, index);
    uint64_t end = m->offset + m->bytes.len;
    process->typed = true;
    if (process->drained == UINT64_MAX || (end <= process->drained && m->bytes.len > 0))
        say_drained(p, r, index, out);
    if (process->drained == UINT64_MAX || (end <= process->drained && !m->end))
        return;
    struct effect *e = effects_add(out, EFFECT_STREAM_FEED);
    e->stream = (struct effect_stream){.group = run_group(p, r),
                                       .index = index,
                                       .offset = m->offset,
                                       .bytes = m->bytes,
                                       .end = m->end};
}

void streams_typed(struct pl *p, struct run *r, const struct message_typed *m,
                   struct effects *out) {
    uint32_t index;
    if (m->bytes.len >= UINT64_MAX - m->offset)
        return; /* no stream is that long */
    if (r->state == RUN_READY)
        return; /* perhaps it never starts, and the next attempt wants it all; it will be said again */
    if (ranked(p, r, m->rank, &index) != NULL)
        feed(p, r, index, m, out);
    else if (m->rank == RANK_ALL)
        for (index = 0; index < r->count; index++)
            feed(p, r, index, m, out);
}

static void tell_again(struct pl *p, const struct run *r, uint32_t index, uint8_t stream,
                       struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_STREAM_AGAIN);
    e->stream =
        (struct effect_stream){.group = run_group(p, r),
                               .index = index,
                               .stream = stream,
                               .offset = run_process(p, r, index)->streams[stream - 1].taken};
}

void streams_again(struct pl *p, struct run *r, uint64_t now, struct effects *out) {
    for (uint32_t i = 0; i < r->count; i++) {
        struct process *process = run_process(p, r, i);
        for (uint8_t stream = 1; stream <= STREAMS; stream++) {
            struct stream *s = &process->streams[stream - 1];
            if (s->taken == s->read)
                continue;
            tell_again(p, r, i, stream, out);
            wait_for_taken(p, s, p->config.resend_ns, now, out);
        }
        if (process->typed)
            say_drained(p, r, i, out);
    }
}

static uint64_t longer(const struct pl *p, uint64_t pause_ns) {
    return pause_ns < p->config.resend_max_ns / 2 ? pause_ns * 2 : p->config.resend_max_ns;
}

/* Without a manager nothing is told; a new one will hear it all. */
void streams_timer(struct pl *p, uint64_t now, struct effects *out) {
    uint64_t next = 0;
    p->resend_at = 0;
    RUNS_EACH (r, p) {
        for (uint32_t i = 0; i < r->count; i++) {
            for (uint8_t stream = 1; stream <= STREAMS; stream++) {
                struct stream *s = &run_process(p, r, i)->streams[stream - 1];
                if (s->again_at != 0 && s->again_at <= now) {
                    s->pause_ns = longer(p, s->pause_ns);
                    s->again_at = units_after(now, s->pause_ns);
                    if (p->link != 0)
                        tell_again(p, r, i, stream, out);
                }
                if (s->again_at != 0 && (next == 0 || s->again_at < next))
                    next = s->again_at;
            }
        }
    }
    if (next != 0)
        set_timer(p, next, out);
}
