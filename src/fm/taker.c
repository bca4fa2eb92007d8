/* SPDX-License-Identifier: MIT */
/* Those who take from us: each at its own pace.
 *
 * A taker is told pages as far as it has said what it needs of earlier ones, and a few ahead. It gets the
 * pieces that it needs in ascending order, as far as it has room. What is not at hand any more is
 * read onto the shelf first, the next one while the last is still on its way. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "fm/inside.h"

/* For someone who asks for a transfer that we have not heard of: the order may be on its way. */
#define STRANGE_NS (10 * NS_PER_S)

/* Pieces read ahead for a taker. */
enum { SHELVED_AHEAD = 2 };

struct taker *taker_find(const struct mover *m, uint32_t link) {
    TAKERS_EACH (t, m)
        if (t->link == link)
            return t;
    return NULL;
}

static void send(struct mover *m, struct taker *t, uint16_t type, const union message *msg) {
    long len = message_encode(type, msg, effects_tail(m->out));
    ASSERT(len >= 0);
    effects_send(m->out, t->link, 0, type, effects_take(m->out, (size_t)len), (struct bytes){0});
    t->said_at = m->now;
}

static void leave(struct mover *m, struct taker *t) {
    effects_add(m->out, EFFECT_CLOSE)->close.link = t->link;
    t->link = 0;
}

static void part(struct mover *m, struct taker *t, int32_t error, struct bytes text) {
    union message p = {.part = {.error = error, .text = text}};
    send(m, t, MESSAGE_PART, &p);
    leave(m, t);
}

void taker_up(struct mover *m, const struct input_link *in) {
    for (uint32_t i = 0; i < m->config.takers; i++) {
        struct taker *t = &m->takers[i];
        if (t->link != 0)
            continue;
        *t = (struct taker){.link = in->link, .since = m->now, .said_at = m->now};
        if (m->taker_end <= i)
            m->taker_end = i + 1;
        return;
    }
    effects_add(m->out, EFFECT_CLOSE)->close.link = in->link; /* it finds another */
}

void taker_down(struct mover *m, uint32_t link) {
    struct taker *t = taker_find(m, link);
    if (t == NULL)
        return;
    struct haul *h = t->haul;
    t->link = 0;
    if (h == NULL)
        return;
    for (uint32_t tree = 0; tree < h->trees; tree++)
        way_release(m, h, tree);
}

/* ---- pages ---- */

static bool page_due(const struct taker *t, const struct haul *h) {
    return t->page < h->known && t->page < t->asked + PAGES_AHEAD;
}

static void want_page(struct mover *m, struct taker *t) {
    if (t->fetching || t->haul == NULL || !page_due(t, t->haul))
        return;
    t->fetching = true;
    struct effect *e = effects_add(m->out, EFFECT_PAGE_FETCH);
    e->page = (struct effect_page){.bundle = haul_index(m, t->haul), .page = t->page};
}

void taker_page(struct mover *m, struct haul *h, uint32_t page, struct bytes table) {
    union message p = {.page = {.page = page, .table = table}};
    TAKERS_EACH (t, m) {
        if (t->haul != h || t->page != page)
            continue;
        t->fetching = false;
        if (!page_due(t, h))
            continue;
        send(m, t, MESSAGE_PAGE, &p);
        t->page++;
        want_page(m, t);
    }
}

/* ---- pieces ---- */

static uint8_t *needs(struct taker *t, uint32_t page) {
    return t->need[page % PAGES_AHEAD];
}

/* The first piece from `from` on that it needs. */
static bool next_need(const struct haul *h, const struct taker *t, uint32_t from, uint32_t *ret) {
    uint32_t end = t->asked < h->pages ? t->asked * h->page_pieces : h->pieces;
    uint32_t first = t->first * h->page_pieces;
    for (uint32_t piece = from < first ? first : from; piece < end; piece++) {
        uint32_t i = piece % h->page_pieces;
        const uint8_t *bits = t->need[piece / h->page_pieces % PAGES_AHEAD];
        if (i % 8 == 0 && bits[i / 8] == 0) {
            uint32_t rest = h->page_pieces - i;
            piece += rest < 8 ? rest - 1 : 7;
            continue;
        }
        if (bits[i / 8] >> i % 8 & 1) {
            *ret = piece;
            return true;
        }
    }
    return false;
}

bool taker_wants(const struct mover *m, const struct haul *h, uint32_t piece) {
    uint32_t next;
    TAKERS_EACH (t, m)
        if (t->haul == h && t->cursor <= piece && next_need(h, t, piece, &next) && next == piece)
            return true;
    return false;
}

static void put(struct mover *m, struct taker *t, struct slot *s, uint32_t buffer,
                uint64_t offset) {
    struct haul *h = t->haul;
    struct effect *e = effects_add(m->out, EFFECT_PUT);
    uint32_t slot = (t->slot + t->sent) % t->slots;
    e->put = (struct effect_put){.link = t->link,
                                 .buffer = buffer,
                                 .offset = offset,
                                 .len = s->len,
                                 .peer_buffer = t->buffer,
                                 .peer_offset = (uint64_t)slot * h->piece_bytes,
                                 .note = s->piece};
    s->sends++;
    t->sent++;
    t->cursor = s->piece + 1;
    t->said_at = m->now;
    uint32_t i = s->piece % h->page_pieces;
    needs(t, s->piece / h->page_pieces)[i / 8] &= (uint8_t) ~(1U << i % 8);
    if (h->first_at == 0)
        h->first_at = m->now;
    h->bytes_put += s->len;
    if (h->furthest < t->cursor)
        h->furthest = t->cursor;
}

/* What it will need next, if that must be read first. Only what can be sent as soon as it is there: otherwise those
 * who have no room would take the places of the shelf from each other, for ever. */
static void shelve_ahead(struct mover *m, struct taker *t) {
    uint32_t piece = t->cursor, buffer, room = t->room - t->sent;
    uint64_t offset;
    struct haul *h = t->haul;
    for (uint32_t i = 0; i < SHELVED_AHEAD && i < room && next_need(h, t, piece, &piece);
         i++, piece++) {
        if (!haul_has(h, piece))
            return;
        if (slot_find(h, piece, &buffer, &offset) == NULL)
            slot_shelve(m, h, piece, i > 0 || t->sent == t->room);
    }
}

static void serve(struct mover *m, struct taker *t) {
    struct haul *h = t->haul;
    uint32_t piece, buffer;
    uint64_t offset;
    bool read = false;
    while (t->sent != t->room && next_need(h, t, t->cursor, &piece)) {
        t->cursor = piece;
        if (!haul_has(h, piece))
            return;
        struct slot *s = slot_find(h, piece, &buffer, &offset);
        if (s == NULL) {
            read = true;
            break;
        }
        read = buffer == h->shelf;
        put(m, t, s, buffer, offset);
    }
    if (read || h->gives)
        shelve_ahead(m, t);
}

void taker_serve(struct mover *m, struct haul *h) {
    TAKERS_EACH (t, m)
        if (t->haul == h)
            serve(m, t);
}

/* ---- what they say ---- */

static void meet(struct mover *m, struct taker *t, struct haul *h) {
    if (h->phase == HAUL_OPENING)
        return; /* adopted when it is open */
    if (h->phase == HAUL_FAILED) {
        part(m, t, h->error, bytes_of(h->text, h->text_len));
        return;
    }
    uint32_t trees = h->gives ? TREES : h->trees; /* a source serves all that takers agree on */
    if (t->tree >= trees || t->page > h->pages) {
        part(m, t, -EBADMSG, bytes_from_str("it asked for what cannot be"));
        return;
    }
    t->haul = h;
    if (h->met_at == 0)
        h->met_at = m->now;
    want_page(m, t);
    serve(m, t);
}

void taker_adopt(struct mover *m, struct haul *h) {
    TAKERS_EACH (t, m)
        if (t->haul == NULL && t->transfer != 0 &&
            (t->transfer == h->transfer || (h->gives && t->offer == h->offer)))
            meet(m, t, h);
}

static void on_join(struct mover *m, struct taker *t, const struct message_join *j) {
    if (t->transfer != 0 || j->transfer == 0) {
        leave(m, t);
        return;
    }
    t->transfer = j->transfer;
    t->offer = j->offer;
    t->tree = j->tree;
    t->page = j->page;
    t->asked = t->first = j->first;
    t->buffer = j->buffer;
    t->slots = j->slots;
    t->slot = j->slot;
    t->room = j->room;
    struct haul *h = haul_find(m, j->transfer, j->offer);
    if (h != NULL)
        meet(m, t, h);
}

/* Needs come in order, each in the place of one that lies so far back that nothing of it is needed. They may come
 * before we have heard of the transfer. */
static void on_need(struct mover *m, struct taker *t, const struct message_need *n) {
    const struct haul *h = t->haul;
    bool fits = n->page == t->asked && n->bits.len <= sizeof t->need[0] &&
                (h == NULL || n->page < h->pages);
    if (!fits) {
        leave(m, t);
        return;
    }
    memset(needs(t, n->page), 0, sizeof t->need[0]);
    memcpy(needs(t, n->page), n->bits.at, n->bits.len);
    t->asked++;
    if (t->asked - t->first > PAGES_AHEAD)
        t->first = t->asked - PAGES_AHEAD;
    if (h == NULL)
        return;
    want_page(m, t);
    serve(m, t);
}

void taker_message(struct mover *m, struct taker *t, const struct input_message *in) {
    union message msg;
    if (message_decode(in->type, in->body, m->scratch, &msg) < 0) {
        leave(m, t);
    } else if (in->type == MESSAGE_JOIN) {
        on_join(m, t, &msg.join);
    } else if (t->transfer != 0 && in->type == MESSAGE_NEED) {
        on_need(m, t, &msg.need);
    } else if (in->type == MESSAGE_ROOM && msg.room.room - t->sent <= t->slots) {
        t->room = msg.room.room;
        if (t->haul != NULL)
            serve(m, t);
    } else {
        leave(m, t);
    }
}

void taker_dismiss(struct mover *m, struct haul *h, int32_t error, struct bytes text) {
    TAKERS_EACH (t, m)
        if (t->haul == h)
            part(m, t, error, text);
}

void taker_tick(struct mover *m, struct taker *t) {
    if (t->haul == NULL && m->now - t->since > STRANGE_NS) {
        leave(m, t);
    } else if (t->haul != NULL && m->now - t->said_at >= m->config.beat_ns) {
        union message beat = {0};
        send(m, t, MESSAGE_BEAT, &beat);
    }
}
