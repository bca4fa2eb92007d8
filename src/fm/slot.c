/* SPDX-License-Identifier: MIT */
/* Pieces at hand: in the slots of a way just after they came, or on the shelf. */
#include "base/assert.h"
#include "fm/inside.h"

uint32_t slot_buffer(struct mover *m, const struct haul *h, uint64_t bytes) {
    struct effect *e = effects_add(m->out, EFFECT_BUFFER_OPEN);
    e->buffer =
        (struct effect_buffer){.buffer = ++m->buffers, .bytes = bytes, .bundle = haul_index(m, h)};
    return m->buffers;
}

static struct slot *find_in(struct slot *slots, uint32_t count, uint32_t piece) {
    for (uint32_t i = 0; i < count; i++)
        if (slots[i].state != SLOT_FREE && slots[i].piece == piece)
            return &slots[i];
    return NULL;
}

struct slot *slot_find(struct haul *h, uint32_t piece, uint32_t *ret_buffer, uint64_t *ret_offset) {
    struct way *w = &h->ways[piece % h->trees];
    struct slot *s = find_in(w->slots, h->slots, piece);
    if (s != NULL && (s->state == SLOT_READY || planted(PLANTED_UNJUDGED))) {
        *ret_buffer = w->buffer;
        *ret_offset = (uint64_t)(s - w->slots) * h->piece_bytes;
        return s;
    }
    s = find_in(h->shelf_slots, SHELF_SLOTS, piece);
    if (s == NULL || s->state != SLOT_READY)
        return NULL;
    *ret_buffer = h->shelf;
    *ret_offset = (uint64_t)(s - h->shelf_slots) * h->piece_bytes;
    return s;
}

/* A place on the shelf: one that is free, or holds what lies furthest back. What was read ahead must not drive out
 * what somebody waits for: two could do that to each other for ever, and nothing would be sent. */
static struct slot *place(struct mover *m, struct haul *h, bool ahead) {
    struct slot *best = NULL;
    for (struct slot *s = h->shelf_slots; s < h->shelf_slots + SHELF_SLOTS; s++) {
        if (s->state == SLOT_FREE)
            return s;
        if (s->state == SLOT_READY && s->sends == 0 && (best == NULL || s->piece < best->piece) &&
            !(ahead && taker_wants(m, h, s->piece)))
            best = s;
    }
    return best;
}

void slot_shelve(struct mover *m, struct haul *h, uint32_t piece, bool ahead) {
    if (find_in(h->shelf_slots, SHELF_SLOTS, piece) != NULL)
        return;
    struct slot *s = place(m, h, ahead);
    if (s == NULL)
        return; /* when something on it was sent we are asked again */
    if (h->shelf == 0)
        h->shelf = slot_buffer(m, h, (uint64_t)SHELF_SLOTS * h->piece_bytes);
    *s = (struct slot){.state = SLOT_BUSY, .piece = piece};
    haul_busy(m, h);
    struct effect *e = effects_add(m->out, EFFECT_PIECE_LOAD);
    e->piece = (struct effect_piece){.bundle = haul_index(m, h),
                                     .piece = piece,
                                     .buffer = h->shelf,
                                     .offset = (uint64_t)(s - h->shelf_slots) * h->piece_bytes,
                                     .len = h->piece_bytes};
}

void slot_loaded(struct mover *m, struct haul *h, const struct input_piece *in) {
    struct slot *s = find_in(h->shelf_slots, SHELF_SLOTS, in->piece);
    ASSERT(s != NULL && s->state == SLOT_BUSY);
    haul_told(m, h);
    if (in->error != 0) {
        s->state = SLOT_FREE;
        if (h->gives)
            haul_fail(m, h, in->error, in->text);
        else
            taker_dismiss(m, h, in->error, in->text); /* they find another */
        return;
    }
    ASSERT(in->len <= h->piece_bytes);
    s->state = SLOT_READY;
    s->len = in->len;
    taker_serve(m, h);
}

static struct slot *of_buffer(struct haul *h, uint32_t buffer, uint64_t offset) {
    uint64_t index = offset / h->piece_bytes;
    if (buffer == h->shelf && index < SHELF_SLOTS)
        return &h->shelf_slots[index];
    for (uint32_t tree = 0; tree < h->trees; tree++)
        if (buffer == h->ways[tree].buffer && index < h->slots)
            return &h->ways[tree].slots[index];
    return NULL;
}

void slot_sent(struct mover *m, const struct input_sent *in) {
    taker_sent(m, in->link);
    HAULS_EACH (h, m) {
        struct slot *s = h->piece_bytes == 0 ? NULL : of_buffer(h, in->buffer, in->offset);
        if (s == NULL)
            continue;
        ASSERT(s->sends > 0);
        s->sends--;
        h->last_at = m->now;
        for (uint32_t tree = 0; tree < h->trees; tree++)
            way_release(m, h, tree);
        taker_serve(m, h);
        return;
    }
}
