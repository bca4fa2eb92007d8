/* SPDX-License-Identifier: MIT */
/* Hashing of inputs and effects: see trace.h.
 *
 * Inputs that stay inside the stack (requests, notices) need no hashing: they follow from those
 * that come from the world, and what they lead to shows in the effects. */
#include "sim/trace.h"

static void add_bytes(struct hash *h, struct bytes b) {
    hash_bytes(h, b.at, b.len);
}

static void add_usage(struct hash *h, const struct input_measured *m) {
    hash_u64(h, m->group);
    hash_u64(h, m->usage.user_ns);
    hash_u64(h, m->usage.peak_bytes);
}

static void add_roster(struct hash *h, const struct input_roster *r) {
    hash_u64(h, nodeset_count(r->taken));
    NODESET_EACH (n, r->taken)
        hash_u64(h, n);
    add_bytes(h, r->names);
}

/* What only movers hear, or only the machine's manager; programs that talk. */
static void trace_rare_input(struct hash *h, const struct input *in) {
    switch (in->kind) {
    case INPUT_ROSTER:
        add_roster(h, &in->roster);
        break;
    case INPUT_TRAITS:
        add_bytes(h, in->traits.traits);
        add_bytes(h, in->traits.widths);
        add_bytes(h, in->traits.switches);
        break;
    case INPUT_GAUGED:
        hash_u64(h, in->gauged.load_x100);
        hash_u64(h, in->gauged.memory_used);
        hash_u64(h, in->gauged.owner);
        break;
    case INPUT_PETITION:
        hash_u64(h, (uint64_t)in->petition.place << 32 | in->petition.event);
        hash_u64(h, (uint64_t)in->petition.group << 32 | in->petition.rank);
        hash_u64(h, in->petition.type);
        add_bytes(h, in->petition.body);
        break;
    case INPUT_SENT:
        hash_u64(h, (uint64_t)in->sent.link << 32 | in->sent.buffer);
        hash_u64(h, in->sent.offset);
        hash_u64(h, in->sent.note);
        break;
    case INPUT_BUNDLE:
        hash_u64(h, (uint64_t)in->bundle.bundle << 32 | (uint32_t)in->bundle.error);
        hash_u64(h, in->bundle.committed);
        break;
    case INPUT_PAGE:
        hash_u64(h, (uint64_t)in->page.bundle << 32 | in->page.page);
        hash_u64(h, (uint32_t)in->page.error);
        add_bytes(h, in->page.table);
        add_bytes(h, in->page.have);
        break;
    case INPUT_PIECE:
        hash_u64(h, (uint64_t)in->piece.bundle << 32 | in->piece.piece);
        hash_u64(h, (uint64_t)in->piece.loaded << 32 | (uint32_t)in->piece.error);
        hash_u64(h, (uint64_t)in->piece.buffer << 32 | in->piece.len);
        hash_u64(h, in->piece.offset);
        break;
    default:
        break;
    }
}

static void add_boot(struct hash *h, const struct input_boot *b) {
    hash_u64(h, (uint64_t)b->boots << 32 | b->epoch);
    hash_u64(h, b->kept);
    hash_u64(h, b->root);
    hash_u64(h, b->random_seed);
    if (b->stowed.len > 0)
        add_bytes(h, b->stowed);
    if (b->folders.len > 0)
        add_bytes(h, b->folders);
}

void trace_input(struct hash *h, uint32_t node, enum layer layer, const struct input *in) {
    hash_u64(h, in->now);
    hash_u64(h, (uint64_t)node << 32 | (uint64_t)layer << 16 | (uint64_t)in->kind);
    switch (in->kind) {
    case INPUT_BOOT:
        add_boot(h, &in->boot);
        break;
    case INPUT_MESSAGE:
        hash_u64(h, (uint64_t)in->message.link << 32 | in->message.epoch);
        hash_u64(h, in->message.type);
        add_bytes(h, in->message.body);
        break;
    case INPUT_LINK_UP:
    case INPUT_LINK_DOWN:
        hash_u64(h, (uint64_t)in->link.link << 32 | in->link.peer);
        hash_u64(h, in->link.cookie);
        hash_u64(h, in->link.role);
        break;
    case INPUT_TIMER:
        hash_u64(h, in->timer.id);
        break;
    case INPUT_DURABLE:
        hash_u64(h, in->durable.ticket);
        break;
    case INPUT_PUT:
        hash_u64(h, (uint64_t)in->put.link << 32 | in->put.buffer);
        hash_u64(h, in->put.offset);
        hash_u64(h, in->put.len);
        hash_u64(h, in->put.note);
        break;
    case INPUT_REPLAY:
        hash_u64(h, in->replay.key);
        add_bytes(h, in->replay.body);
        break;
    case INPUT_LOGGED:
        hash_u64(h, in->logged.ticket);
        hash_u64(h, (uint64_t)(int64_t)in->logged.error);
        break;
    case INPUT_FETCHED:
        hash_u64(h, in->fetched.ticket);
        add_bytes(h, in->fetched.body);
        break;
    case INPUT_LOOKED:
        hash_u64(h, in->looked.ticket);
        hash_u64(h, (uint64_t)(int64_t)in->looked.error);
        break;
    case INPUT_CHILD:
        hash_u64(h, (uint64_t)in->child.group << 32 | in->child.index);
        hash_u64(h, (uint64_t)in->child.event << 32 | in->child.value);
        hash_u64(h, in->child.step);
        break;
    case INPUT_EMPTY:
    case INPUT_MEASURED:
        add_usage(h, in->kind == INPUT_EMPTY ? &in->empty : &in->measured);
        break;
    case INPUT_STREAM:
        hash_u64(h, (uint64_t)in->stream.group << 32 | in->stream.index);
        hash_u64(h, (uint64_t)in->stream.stream << 1 | in->stream.end);
        hash_u64(h, in->stream.offset);
        add_bytes(h, in->stream.bytes);
        break;
    case INPUT_DRAINED:
        hash_u64(h, (uint64_t)in->drained.group << 32 | in->drained.index);
        hash_u64(h, in->drained.offset);
        break;
    default:
        trace_rare_input(h, in);
        break;
    }
}

static void trace_send(struct hash *h, const struct effect_send *s) {
    hash_u64(h, (uint64_t)s->epoch << 32 | s->type);
    hash_u64(h, s->link_count);
    for (uint32_t i = 0; i < s->link_count; i++)
        hash_u64(h, s->links[i]);
    add_bytes(h, s->head);
    add_bytes(h, s->tail);
}

static void trace_put(struct hash *h, const struct effect_put *p) {
    hash_u64(h, (uint64_t)p->link << 32 | p->buffer);
    hash_u64(h, p->offset);
    hash_u64(h, (uint64_t)p->len << 32 | p->peer_buffer);
    hash_u64(h, p->peer_offset);
    hash_u64(h, p->note);
}

static void trace_group(struct hash *h, const struct effect_group *g) {
    hash_u64(h, (uint64_t)g->group << 32 | g->value);
    hash_u64(h, g->rows);
    add_bytes(h, g->setup);
}

static void trace_stream(struct hash *h, const struct effect_stream *s) {
    hash_u64(h, (uint64_t)s->group << 32 | s->index);
    hash_u64(h, (uint64_t)s->stream << 1 | s->end);
    hash_u64(h, s->offset);
    add_bytes(h, s->bytes);
}

static void trace_log(struct hash *h, const struct effect_log *l) {
    hash_u64(h, l->ticket);
    hash_u64(h, l->key << 1 | l->closes);
    add_bytes(h, l->body);
}

static void trace_bundle(struct hash *h, const struct effect_bundle *b) {
    hash_u64(h, (uint64_t)b->bundle << 2 | (uint64_t)b->gives << 1 | b->keep);
    hash_u64(h, b->transfer);
    add_bytes(h, b->descriptor);
}

static void trace_piece(struct hash *h, const struct effect_piece *p) {
    hash_u64(h, (uint64_t)p->bundle << 32 | p->piece);
    hash_u64(h, (uint64_t)p->buffer << 32 | p->len);
    hash_u64(h, p->offset);
}

static void trace_mover_effect(struct hash *h, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_BUNDLE_OPEN:
    case EFFECT_BUNDLE_COMMIT:
    case EFFECT_BUNDLE_CLOSE:
        trace_bundle(h, &e->bundle);
        break;
    case EFFECT_PAGE_KEEP:
    case EFFECT_PAGE_FETCH:
        hash_u64(h, (uint64_t)e->page.bundle << 32 | e->page.page);
        add_bytes(h, e->page.table);
        break;
    case EFFECT_PIECE_STORE:
    case EFFECT_PIECE_LOAD:
        trace_piece(h, &e->piece);
        break;
    default:
        break;
    }
}

static void trace_pair(struct hash *h, uint64_t a, uint64_t b) {
    hash_u64(h, a);
    hash_u64(h, b);
}

static void trace_gang_effect(struct hash *h, const struct effect *e) {
    if (e->kind == EFFECT_PROMPT)
        hash_u64(h, e->prompt);
    else if (e->kind == EFFECT_CAST)
        trace_pair(h, e->cast.channel, e->cast.number);
}

static void trace_petition_effect(struct hash *h, const struct effect *e) {
    if (e->kind < EFFECT_PETITION_READ || e->kind > EFFECT_PETITION_CLOSE)
        return;
    hash_u64(h, (uint64_t)e->petition.place << 32 | e->petition.type);
    add_bytes(h, e->petition.body);
}

static void trace_effect(struct hash *h, const struct effect *e) {
    hash_u64(h, (uint64_t)e->kind << 8 | e->layer);
    switch (e->kind) {
    case EFFECT_SEND:
        trace_send(h, &e->send);
        break;
    case EFFECT_OPEN:
        trace_pair(h, (uint64_t)e->open.node << 32 | (uint64_t)e->open.purpose, e->open.cookie);
        break;
    case EFFECT_CLOSE:
        hash_u64(h, (uint64_t)e->close.link << 32 | e->close.refusal);
        break;
    case EFFECT_TIMER:
        trace_pair(h, e->timer.id, e->timer.at);
        break;
    case EFFECT_PERSIST:
        trace_pair(h, e->persist.ticket, e->persist.value);
        break;
    case EFFECT_STOW:
        add_bytes(h, e->stow);
        break;
    case EFFECT_HEAP_WRITE:
    case EFFECT_HEAP_PUBLISH:
        hash_u64(h, (uint64_t)e->heap.offset << 32 | e->heap.buffer);
        hash_u64(h, e->heap.len);
        add_bytes(h, e->heap.bytes);
        break;
    case EFFECT_BUFFER_OPEN:
    case EFFECT_BUFFER_GRANT:
    case EFFECT_BUFFER_CLOSE:
        hash_u64(h, (uint64_t)e->buffer.link << 32 | e->buffer.buffer);
        hash_u64(h, e->buffer.bytes);
        break;
    case EFFECT_PUT:
        trace_put(h, &e->put);
        break;
    case EFFECT_LOG:
        trace_log(h, &e->log);
        break;
    case EFFECT_FETCH:
        trace_pair(h, e->fetch.ticket, e->fetch.key);
        break;
    case EFFECT_LOOK:
        trace_pair(h, e->look.ticket, e->look.run);
        break;
    case EFFECT_NOTE:
        add_bytes(h, e->note);
        break;
    case EFFECT_GROUP_OPEN:
    case EFFECT_GROUP_START:
    case EFFECT_GROUP_SIGNAL:
    case EFFECT_GROUP_FREEZE:
    case EFFECT_GROUP_KILL:
    case EFFECT_GROUP_CLOSE:
    case EFFECT_GROUP_SIZE:
    case EFFECT_GROUP_MEASURE:
        trace_group(h, &e->group);
        break;
    case EFFECT_STREAM_TAKEN:
    case EFFECT_STREAM_AGAIN:
    case EFFECT_STREAM_FEED:
        trace_stream(h, &e->stream);
        break;
    default:
        trace_gang_effect(h, e);
        trace_petition_effect(h, e);
        trace_mover_effect(h, e);
        break;
    }
}

void trace_effects(struct hash *h, const struct effects *e) {
    for (uint32_t i = 0; i < e->count; i++)
        if (e->list[i].kind != EFFECT_NONE)
            trace_effect(h, &e->list[i]);
}
