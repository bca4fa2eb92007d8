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

/* What may be on its way to one of them: enough to keep its link busy, not so much that all slots are held by
 * one who is slow. */
#define UNSENT_BYTES (256 * KIB)
enum { UNSENT_MIN = 2 };

/* At a source, where everything goes by way of the shelf: two trees together must leave places on it to read ahead. If one
 * could fill it, it would be served alone until its receivers had no room, then the other: half of the
 * nodes would always wait. */
enum { UNSENT_SHELVED = 3 };

/* Who takes less in a second is as good as stopped. */
#define SLOWEST_BYTES_PER_S MIB

struct taker *taker_find(const struct mover *m, uint32_t link) {
    TAKERS_EACH (t, m)
        if (t->link == link)
            return t;
    return NULL;
}

static struct bytes encode(struct mover *m, uint16_t type, const union message *msg) {
    long len = message_encode(type, msg, effects_tail(m->out));
    ASSERT(len >= 0);
    return effects_take(m->out, (size_t)len);
}

static void send_encoded(struct mover *m, struct taker *t, uint16_t type, struct bytes encoded) {
    effects_send(m->out, t->link, 0, type, encoded, (struct bytes){0});
    t->said_at = m->now;
}

static void send(struct mover *m, struct taker *t, uint16_t type, const union message *msg) {
    send_encoded(m, t, type, encode(m, type, msg));
}

static void forget(struct mover *m, struct taker *t) {
    t->link = 0;
    while (m->taker_end > 0 && m->takers[m->taker_end - 1].link == 0)
        m->taker_end--;
}

static void leave(struct mover *m, struct taker *t) {
    effects_add(m->out, EFFECT_CLOSE)->close.link = t->link;
    forget(m, t);
}

static void part(struct mover *m, struct taker *t, int32_t error, struct bytes text) {
    union message p = {.part = {.error = error, .text = text}};
    send(m, t, MESSAGE_PART, &p);
    leave(m, t);
}

void taker_up(struct mover *m, const struct input_link *in) {
    for (uint32_t i = 0; i < m->config.takers; i++) {
        struct taker *t = &m->takers[i];
        if (i < m->taker_end && t->link != 0)
            continue;
        *t = (struct taker){
            .link = in->link, .since = m->now, .said_at = m->now, .heard_at = m->now};
        if (m->taker_end <= i)
            m->taker_end = i + 1;
        return;
    }
    struct taker none = {.link = in->link};
    part(m, &none, -EAGAIN, bytes_from_str("too many take from it")); /* it finds another */
}

void taker_down(struct mover *m, uint32_t link) {
    struct taker *t = taker_find(m, link);
    if (t == NULL)
        return;
    struct haul *h = t->haul;
    forget(m, t);
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

/* Many may wait for the same page: it is encoded only once. */
void taker_page(struct mover *m, struct haul *h, uint32_t page, struct bytes table) {
    union message p = {.page = {.page = page, .table = table}};
    struct bytes encoded = {0};
    TAKERS_EACH (t, m) {
        if (t->haul != h)
            continue;
        if (t->page == page) {
            t->fetching = false;
            if (page_due(t, h)) {
                if (encoded.len == 0)
                    encoded = encode(m, MESSAGE_PAGE, &p);
                send_encoded(m, t, MESSAGE_PAGE, encoded);
                t->page++;
            }
        }
        want_page(m, t); /* others may be known with this one, if it was judged late */
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
    if (t->unsent++ == 0)
        t->left_at = m->now;
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

static uint32_t unsent_max(const struct haul *h, const struct taker *t) {
    uint64_t fit = UNSENT_BYTES / h->piece_bytes;
    if (fit > t->slots / 2)
        fit = t->slots / 2;
    if (h->gives && fit > UNSENT_SHELVED)
        fit = UNSENT_SHELVED;
    return fit < UNSENT_MIN ? UNSENT_MIN : (uint32_t)fit;
}

/* Could it be sent something now? */
static bool ready(const struct haul *h, const struct taker *t) {
    return t->sent != t->room && t->unsent < unsent_max(h, t);
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
            slot_shelve(m, h, piece, i > 0 || !ready(h, t));
    }
}

static void serve(struct mover *m, struct taker *t) {
    struct haul *h = t->haul;
    uint32_t piece, buffer;
    uint64_t offset;
    while (ready(h, t) && next_need(h, t, t->cursor, &piece)) {
        t->cursor = piece;
        struct slot *s = slot_find(h, piece, &buffer, &offset);
        if (!haul_has(h, piece) && !(planted(PLANTED_UNJUDGED) && s != NULL))
            return;
        if (s == NULL) {
            t->reads = true;
            break;
        }
        t->reads = buffer == h->shelf;
        put(m, t, s, buffer, offset);
    }
    if (t->reads || h->gives)
        shelve_ahead(m, t);
}

void taker_serve(struct mover *m, struct haul *h) {
    TAKERS_EACH (t, m)
        if (t->haul == h)
            serve(m, t);
}

void taker_sent(struct mover *m, uint32_t link) {
    struct taker *t = taker_find(m, link);
    if (t == NULL)
        return; /* it has gone */
    ASSERT(t->unsent > 0);
    t->unsent--;
    t->left_at = m->now;
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
    if (haul_stuck(m, h)) {
        part(m, t, -EBUSY, bytes_from_str("its disk does not answer"));
        return;
    }
    t->haul = h;
    t->heard_at = m->now;
    if (h->met_at == 0)
        h->met_at = m->now;
    want_page(m, t);
    serve(m, t);
}

static bool waits_for(const struct taker *t, const struct haul *h) {
    return t->haul == NULL && t->transfer == h->transfer;
}

void taker_adopt(struct mover *m, struct haul *h) {
    TAKERS_EACH (t, m)
        if (waits_for(t, h))
            meet(m, t, h);
}

static void on_join(struct mover *m, struct taker *t, const struct message_join *j) {
    if (t->transfer != 0 || j->transfer == 0) {
        leave(m, t);
        return;
    }
    t->transfer = j->offer != 0 ? j->offer : j->transfer;
    t->tree = j->tree;
    t->page = j->page;
    t->asked = t->first = j->first;
    t->buffer = j->buffer;
    t->slots = j->slots;
    t->slot = j->slot;
    t->room = j->room;
    struct haul *h = haul_find(m, t->transfer);
    if (h != NULL)
        meet(m, t, h);
    else if (j->offer != 0) /* we would know: an offer is made before anybody hears of it */
        part(m, t, -ENOENT, bytes_from_str("it is not on offer any more"));
}

static bool needs_all(const struct haul *h, const struct taker *t, uint32_t page) {
    const uint8_t *need = t->need[page % PAGES_AHEAD];
    for (uint32_t i = 0; i < h->page_pieces; i++)
        if ((need[i / 8] >> i % 8 & 1) == 0)
            return false;
    return true;
}

/* Needs come in order, each in the place of one that lies so far back that nothing of it is needed. They may come
 * before we have heard of the transfer. */
static void on_need(struct mover *m, struct taker *t, const struct message_need *n) {
    struct haul *h = t->haul;
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
    if (h->gives && n->page > 0) {
        h->asked = true;
        h->spared |= !needs_all(h, t, n->page);
    }
    want_page(m, t);
    serve(m, t);
}

void taker_message(struct mover *m, struct taker *t, const struct input_message *in) {
    union message msg;
    t->heard_at = m->now;
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
        if (t->haul == h || waits_for(t, h))
            part(m, t, error, text);
}

/* It has stopped, or the way to it has: what it does not take it must not hold. */
static bool stuck(const struct mover *m, const struct taker *t) {
    uint64_t bytes = (uint64_t)t->unsent * t->haul->piece_bytes;
    uint64_t patience = SILENT_BEATS * m->config.beat_ns + bytes * NS_PER_S / SLOWEST_BYTES_PER_S;
    return m->now - t->heard_at > patience || (t->unsent > 0 && m->now - t->left_at > patience);
}

void taker_tick(struct mover *m, struct taker *t) {
    uint64_t beat_ns = m->config.beat_ns;
    bool opening = t->haul == NULL && haul_find(m, t->transfer) != NULL;
    if (t->haul == NULL && !opening) {
        if (m->now - t->since > STRANGE_NS)
            leave(m, t);
    } else if (!opening && stuck(m, t)) {
        leave(m, t);
    } else if (m->now - t->said_at >= beat_ns || m->now - t->heard_at >= beat_ns) {
        union message beat = {0};
        send(m, t, MESSAGE_BEAT, &beat);
    }
}
