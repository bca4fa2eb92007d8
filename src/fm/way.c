/* SPDX-License-Identifier: MIT */
/* Towards who gives: our parent in a tree of the transfer or, if it cannot, whoever is above it.
 *
 * The giver tells pages of the table, we say which pieces of each we lack, it puts these into our slots in turn,
 * as far as there is room. Another giver goes on where the last one stopped: we ask for what
 * is missing then. */
#include <errno.h>

#include "base/assert.h"
#include "base/units.h"
#include "fm/inside.h"

/* Between two tries to reach the source, when nobody else is left to be asked. */
#define RETRY_NS (200 * NS_PER_MS)

/* What does not fit, from the source itself: what it gives is not what it has announced. From anybody: it is
 * spoiled here. */
enum { WRONG_MAX = 3, WRONG_ALL_MAX = 32 };

/* A mover that cannot be reached just after we have heard of a transfer is perhaps only being started: it is
 * asked again, soon and then less soon. */
#define START_NS (500 * NS_PER_MS)
#define AGAIN_NS (2 * NS_PER_MS)

/* Slots that may be kept for slow takers; the others are for what comes. */
static uint32_t lingering_max(const struct haul *h) {
    return h->slots / 2;
}

/* Who is so many rungs up from us. */
static uint32_t giver_position(const struct haul *h, uint32_t tree, uint32_t rung) {
    uint32_t at = h->position;
    for (uint32_t i = 0; i <= rung && at != 0; i++)
        at = spread_parent(&h->spread, tree, at);
    return at;
}

static bool at_source(const struct haul *h, uint32_t tree) {
    return giver_position(h, tree, h->ways[tree].rung) == 0;
}

static void open_link(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    uint32_t position = giver_position(h, tree, w->rung);
    struct effect *e = effects_add(m->out, EFFECT_OPEN);
    e->open = (struct effect_open){.purpose = PURPOSE_FILES, .cookie = ++m->cookies};
    e->open.node = position == 0 ? h->source : haul_node(h, position);
    if (position == 0 && h->source == NO_NODE)
        e->open.address = bytes_of(h->address, h->address_len);
    w->cookie = m->cookies;
    w->opened_at = m->now;
    w->retry_at = 0;
}

/* Nothing of this tree is missing that we know of, nor will be. */
static bool complete(const struct haul *h, uint32_t tree) {
    return h->known == h->pages && h->ways[tree].first == h->pages;
}

static void find_first(struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    for (; w->first < h->known; w->first++) {
        uint32_t from = w->first * h->page_pieces, count = haul_page_pieces(h, w->first);
        for (uint32_t i = 0; i < count; i++)
            if ((from + i) % h->trees == tree && !haul_has(h, from + i))
                return;
    }
}

void way_begin(struct mover *m, struct haul *h, uint32_t tree) {
    h->ways[tree].heard_at = m->now;
    if (h->pages > 0)
        open_link(m, h, tree);
}

void way_end(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    if (w->link != 0)
        effects_add(m->out, EFFECT_CLOSE)->close.link = w->link;
    w->link = 0;
    w->cookie = 0;
    w->retry_at = 0;
}

struct haul *way_of_link(const struct mover *m, uint32_t link, uint32_t *ret_tree) {
    HAULS_EACH (h, m)
        for (uint32_t tree = 0; tree < h->trees; tree++)
            if (h->ways[tree].link == link) {
                *ret_tree = tree;
                return h;
            }
    return NULL;
}

/* Room that a giver has in all on this link, as slots are free now. */
static uint32_t room(const struct haul *h, const struct way *w) {
    return h->slots + w->freed - w->base;
}

static void send(struct mover *m, const struct way *w, uint16_t type, const union message *msg) {
    long len = message_encode(type, msg, effects_tail(m->out));
    ASSERT(len >= 0);
    effects_send(m->out, w->link, 0, type, effects_take(m->out, (size_t)len), (struct bytes){0});
}

static void say_room(struct mover *m, const struct way *w) {
    union message r = {.room = {.room = w->told}};
    send(m, w, MESSAGE_ROOM, &r);
}

static void join(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    if (w->buffer == 0)
        w->buffer = slot_buffer(m, h, (uint64_t)h->slots * h->piece_bytes);
    struct effect *e = effects_add(m->out, EFFECT_BUFFER_GRANT);
    e->buffer = (struct effect_buffer){.buffer = w->buffer, .link = w->link};
    w->base = w->came;
    w->told = room(h, w);
    w->page = h->kept;
    find_first(h, tree);
    if (!planted(PLANTED_NOT_AGAIN) || w->asked < w->first)
        w->asked = w->first;
    union message j = {.join = {.transfer = h->transfer,
                                .offer = at_source(h, tree) ? h->offer : 0,
                                .tree = (uint8_t)tree,
                                .page = w->page,
                                .first = w->first,
                                .buffer = w->buffer,
                                .slots = h->slots,
                                .slot = w->came % h->slots,
                                .room = w->told}};
    send(m, w, MESSAGE_JOIN, &j);
    way_ask(m, h, tree);
}

static struct haul *of_cookie(const struct mover *m, uint64_t cookie, uint32_t *ret_tree) {
    HAULS_EACH (h, m)
        for (uint32_t tree = 0; tree < h->trees; tree++)
            if (cookie != 0 && h->ways[tree].cookie == cookie) {
                *ret_tree = tree;
                return h;
            }
    return NULL;
}

void way_up(struct mover *m, const struct input_link *in) {
    uint32_t tree;
    struct haul *h = of_cookie(m, in->cookie, &tree);
    if (h == NULL) { /* nobody waits for it any more */
        effects_add(m->out, EFFECT_CLOSE)->close.link = in->link;
        return;
    }
    h->ways[tree].cookie = 0;
    h->ways[tree].refused = 0;
    h->ways[tree].link = in->link;
    h->ways[tree].heard_at = m->now;
    join(m, h, tree);
}

void way_next(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    bool last = at_source(h, tree);
    way_end(m, h, tree);
    if (h->phase != HAUL_MOVING || complete(h, tree))
        return;
    w->rung = last ? 0 : w->rung + 1;
    w->refused = 0;
    if (last) {
        w->moved = false;
        w->retry_at = m->now + RETRY_NS;
    } else {
        open_link(m, h, tree);
    }
}

void way_down(struct mover *m, const struct input_link *in) {
    uint32_t tree;
    struct haul *h =
        in->link != 0 ? way_of_link(m, in->link, &tree) : of_cookie(m, in->cookie, &tree);
    if (h == NULL)
        return;
    struct way *w = &h->ways[tree];
    w->link = 0;
    w->cookie = 0;
    if (in->link == 0 && m->now - h->since < START_NS)
        w->retry_at = m->now + (AGAIN_NS << w->refused++);
    else
        way_next(m, h, tree);
}

/* A need of every page, in order, also of one that lacks nothing: that lets the giver tell more pages. */
void way_ask(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    find_first(h, tree);
    if (w->link == 0)
        return;
    for (; w->asked < h->known && w->asked < w->first + PAGES_AHEAD; w->asked++) {
        uint8_t bits[BUNDLE_PAGE_PIECES_MAX / 8] = {0};
        uint32_t from = w->asked * h->page_pieces, count = haul_page_pieces(h, w->asked);
        for (uint32_t i = 0; i < count; i++)
            if ((from + i) % h->trees == tree && !haul_has(h, from + i))
                bits[i / 8] |= (uint8_t)(1U << i % 8);
        union message n = {.need = {.page = w->asked, .bits = bytes_of(bits, (count + 7) / 8)}};
        send(m, w, MESSAGE_NEED, &n);
    }
    if (complete(h, tree))
        way_end(m, h, tree);
}

static void on_page(struct mover *m, struct haul *h, uint32_t tree, const struct message_page *p) {
    struct way *w = &h->ways[tree];
    if (p->page != w->page || p->page >= h->pages || p->page >= w->asked + PAGES_AHEAD) {
        way_next(m, h, tree);
        return;
    }
    w->page++;
    w->moved = true;
    if (p->page == h->kept) {
        h->kept++;
        h->tellers[p->page % PAGES_AHEAD] = (uint8_t)tree;
        struct effect *e = effects_add(m->out, EFFECT_PAGE_KEEP);
        e->page = (struct effect_page){
            .bundle = haul_index(m, h), .page = p->page, .table = effects_copy(m->out, p->table)};
    }
}

/* What the source cannot give any more others may have: all of them are asked before it is given up. */
static void on_part(struct mover *m, struct haul *h, uint32_t tree, const struct message_part *p) {
    bool source = at_source(h, tree);
    if (source && p->error == -EAGAIN) /* it will have a place for us: that is not nothing */
        h->moved_at = m->now;
    else if (source && !h->ways[tree].moved)
        haul_fail(m, h, p->error, p->text);
    way_next(m, h, tree);
}

void way_message(struct mover *m, struct haul *h, uint32_t tree, const struct input_message *in) {
    union message msg;
    h->ways[tree].heard_at = m->now;
    if (message_decode(in->type, in->body, m->scratch, &msg) < 0)
        way_next(m, h, tree);
    else if (in->type == MESSAGE_PAGE)
        on_page(m, h, tree, &msg.page);
    else if (in->type == MESSAGE_PART)
        on_part(m, h, tree, &msg.part);
    else if (in->type == MESSAGE_BEAT) /* so it hears of us, too, and that nothing was lost */
        say_room(m, &h->ways[tree]);
}

void way_put(struct mover *m, const struct input_put *in) {
    uint32_t tree;
    struct haul *h = way_of_link(m, in->link, &tree);
    if (h == NULL)
        return;
    struct way *w = &h->ways[tree];
    struct slot *s = &w->slots[w->came % h->slots];
    bool fits = in->buffer == w->buffer && w->came - w->base < w->told &&
                in->offset == (uint64_t)(w->came % h->slots) * h->piece_bytes &&
                in->len <= h->piece_bytes && in->note < h->pieces && in->note % h->trees == tree &&
                in->note / h->page_pieces < h->known;
    if (!fits) {
        way_next(m, h, tree);
        return;
    }
    w->heard_at = m->now;
    w->moved = true;
    w->came++;
    *s = (struct slot){.state = SLOT_BUSY, .piece = (uint32_t)in->note, .len = in->len};
    haul_busy(m, h);
    struct effect *e = effects_add(m->out, EFFECT_PIECE_STORE);
    e->piece = (struct effect_piece){.bundle = haul_index(m, h),
                                     .piece = s->piece,
                                     .buffer = w->buffer,
                                     .offset = in->offset,
                                     .len = in->len};
    if (planted(PLANTED_UNJUDGED))
        taker_serve(m, h);
}

void way_wrong(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    if (at_source(h, tree) && ++w->wrong >= WRONG_MAX)
        haul_fail(m, h, -EBADMSG, bytes_from_str("what the source gives does not fit its digest"));
    else if (++h->wrong >= WRONG_ALL_MAX)
        haul_fail(m, h, -EBADMSG, bytes_from_str("whoever gives it, it does not fit its digest"));
    else
        way_next(m, h, tree);
}

/* Did what lies in a slot come on the link that we have now? */
static bool came_now(const struct haul *h, const struct way *w, uint32_t index) {
    uint32_t behind = (index + h->slots - w->freed % h->slots) % h->slots;
    return w->link != 0 && w->freed + behind - w->base < w->came - w->base;
}

void way_stored(struct mover *m, struct haul *h, uint32_t tree, const struct input_piece *in) {
    struct way *w = &h->ways[tree];
    uint32_t index = (uint32_t)(in->offset / h->piece_bytes);
    ASSERT(in->buffer == w->buffer && index < h->slots);
    struct slot *s = &w->slots[index];
    ASSERT(s->state == SLOT_BUSY && s->piece == in->piece);
    s->state = in->error == 0 ? SLOT_READY : SLOT_FREE;
    haul_told(m, h);
    if (in->error == -EBADMSG) {
        if (came_now(h, w, index))
            way_wrong(m, h, tree);
    } else if (in->error != 0) {
        haul_fail(m, h, in->error, in->text);
        return;
    } else {
        haul_got(m, h, in->piece);
        way_ask(m, h, tree);
    }
    way_release(m, h, tree);
}

/* Slots go back in turn. One that a taker still needs may stay for a while: reading it again costs more. */
void way_release(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    while (w->freed != w->came) {
        struct slot *s = &w->slots[w->freed % h->slots];
        if (s->state == SLOT_BUSY || (s->sends > 0 && !planted(PLANTED_REUSE)))
            break;
        if (s->state == SLOT_READY && w->came - w->freed <= lingering_max(h) &&
            taker_wants(m, h, s->piece))
            break;
        s->state = SLOT_FREE;
        w->freed++;
    }
    uint32_t now = room(h, w);
    bool worth = now - w->told >= (h->slots + 3) / 4 || w->told == w->came - w->base;
    if (w->link == 0 || now == w->told || !worth)
        return;
    w->told = now;
    say_room(m, w);
}

void way_tick(struct mover *m, struct haul *h, uint32_t tree) {
    struct way *w = &h->ways[tree];
    uint64_t patience = SILENT_BEATS * m->config.beat_ns;
    if (w->retry_at != 0 && w->retry_at <= m->now)
        open_link(m, h, tree);
    else if ((w->link != 0 && m->now - w->heard_at > patience) ||
             (w->cookie != 0 && m->now - w->opened_at > patience))
        way_next(m, h, tree);
}

uint64_t way_due(const struct way *w) {
    return w->retry_at != 0 ? w->retry_at : UINT64_MAX;
}
