/* SPDX-License-Identifier: MIT */
/* A transfer here, from its order to its end.
 *
 *   opening: the world makes ready -> moving: pages and pieces come -> committing -> here
 * A source is moving as soon as it is open. Whatever fails ends in `failed`, which the manager is told; it says
 * when nobody wants to hear of the transfer any more. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "fm/inside.h"
#include "rm/switches.h"

struct haul *haul_find(const struct mover *m, uint64_t transfer) {
    HAULS_EACH (h, m)
        if (h->transfer == transfer)
            return h;
    return NULL;
}

static void report(struct mover *m, uint64_t transfer, int32_t error, struct bytes text) {
    if (m->host == 0 && m->config.self != NO_NODE)
        return; /* it asks when it comes */
    union message a = {.arrived = {.transfer = transfer, .error = error, .text = text}};
    long len = message_encode(MESSAGE_ARRIVED, &a, effects_tail(m->out));
    ASSERT(len > 0);
    effects_send(m->out, m->host, 0, MESSAGE_ARRIVED, effects_take(m->out, (size_t)len),
                 (struct bytes){0});
}

static struct haul *free_place(struct mover *m) {
    for (uint32_t i = 0; i < m->config.hauls; i++)
        if (m->hauls[i].transfer == 0)
            return &m->hauls[i];
    return NULL;
}

/* As much as memory allows: a receiver has at least two slots in each tree. */
static uint32_t slots_for(const struct mover *m, const struct haul *h, uint32_t wanted) {
    uint64_t fit = m->config.slot_bytes / ((uint64_t)h->trees * h->piece_bytes);
    uint32_t most = fit < 2 ? 2 : fit > SLOTS_MAX ? SLOTS_MAX : (uint32_t)fit;
    return wanted < 2 ? 2 : wanted < most ? wanted : most;
}

/* Where we stand among the receivers: by number or, if their switches are known, those of a switch side by side. */
static uint32_t stand(const struct mover *m, struct haul *h, const struct message_transfer *t) {
    uint32_t rank = nodeset_rank(&h->set, m->config.self), at = 0;
    if (t->switches.len == 0)
        return rank;
    bool good = switches_decode(t->switches, m->switches, h->spread.receivers);
    ASSERT(good); /* it was plausible */
    h->spread.groups = spread_arrange(&h->spread, m->switches, t->source_switch, h->order, h->ends);
    h->spread.ends = h->ends;
    while (h->order[at] != rank)
        at++;
    return at;
}

/* Our place among the receivers. A node that has the files may be one of them, for another place. */
static void take_place(const struct mover *m, struct haul *h, const struct message_transfer *t) {
    nodeset_copy(&h->set, t->set);
    h->spread =
        (struct spread){.shape = t->shape, .arity = t->arity, .receivers = nodeset_count(&h->set)};
    h->position = h->gives ? 0 : 1;
    if (m->config.self == NO_NODE)
        h->spread.receivers = h->gives ? h->spread.receivers : 1; /* a command that fetches */
    else if (!h->gives)
        h->position += stand(m, h, t);
    h->trees = spread_trees(&h->spread);
}

static bool plausible(const struct mover *m, const struct haul *h, const struct message_transfer *t,
                      const struct bundle *b) {
    bool ours = h->gives || m->config.self == NO_NODE || nodeset_has(t->set, m->config.self);
    bool shaped = t->shape > SPREAD_AUTO && t->shape < SPREAD_SHAPES &&
                  (t->shape != SPREAD_KARY || t->arity > 0);
    bool placed = t->switches.len == 0 || h->gives || m->config.self == NO_NODE ||
                  switches_decode(t->switches, m->switches, nodeset_count(t->set));
    return ours && shaped && placed && b->pieces <= m->config.pieces &&
           t->address.len <= ADDRESS_BYTES &&
           (t->source == NO_NODE || t->source < m->config.universe);
}

void haul_begin(struct mover *m, const struct message_transfer *t) {
    struct bundle b;
    if (t->transfer == 0 || haul_find(m, t->transfer) != NULL)
        return;
    struct haul *h = free_place(m);
    if (h == NULL) {
        report(m, t->transfer, -EBUSY, bytes_from_str("too many transfers at once"));
        return;
    }
    struct nodeset set = h->set;
    uint8_t *have = h->have;
    uint32_t *order = h->order, *ends = h->ends;
    *h = (struct haul){.set = set,
                       .have = have,
                       .order = order,
                       .ends = ends,
                       .source = t->source,
                       .offer = t->offer};
    h->gives = t->source == m->config.self && t->transfer == t->offer;
    if (bundle_decode(t->descriptor, &b) < 0 || !plausible(m, h, t, &b)) {
        report(m, t->transfer, -EBADMSG, bytes_from_str("an order that makes no sense"));
        return;
    }
    h->transfer = t->transfer;
    h->address_len = (uint32_t)t->address.len;
    if (t->address.len > 0)
        memcpy(h->address, t->address.at, t->address.len);
    take_place(m, h, t);
    h->pieces = b.pieces;
    h->pages = bundle_page_count(&b);
    h->open = bundle_is_open(&b);
    h->page_pieces = b.page_pieces;
    h->piece_bytes = b.piece_bytes > 0 ? b.piece_bytes : 1;
    h->slots = slots_for(m, h, t->slots);
    h->since = h->moved_at = m->now;
    memset(h->have, 0, (b.pieces + 7) / 8);
    struct effect *e = effects_add(m->out, EFFECT_BUNDLE_OPEN);
    e->bundle = (struct effect_bundle){.bundle = haul_index(m, h),
                                       .gives = h->gives,
                                       .owners = t->source == NO_NODE,
                                       .transfer = h->gives ? h->offer : h->transfer,
                                       .descriptor = t->descriptor};
}

/* All that is left of it here. */
static void drop(struct mover *m, struct haul *h, bool keep) {
    for (uint32_t tree = 0; tree < h->trees; tree++)
        way_end(m, h, tree);
    taker_dismiss(m, h, -ECANCELED, bytes_from_str("the transfer is over"));
    if (h->phase != HAUL_FAILED)
        effects_add(m->out, EFFECT_BUNDLE_CLOSE)->bundle =
            (struct effect_bundle){.bundle = haul_index(m, h), .keep = keep};
    if (h->shelf != 0 && !planted(PLANTED_LEAK))
        effects_add(m->out, EFFECT_BUFFER_CLOSE)->buffer.buffer = h->shelf;
    for (uint32_t tree = 0; tree < h->trees; tree++)
        if (h->ways[tree].buffer != 0)
            effects_add(m->out, EFFECT_BUFFER_CLOSE)->buffer.buffer = h->ways[tree].buffer;
    h->transfer = 0;
}

void haul_enough(struct mover *m, const struct message_enough *e) {
    for (size_t at = 0; at < e->transfers.len; at += 8) {
        struct haul *h = haul_find(m, load_le64(e->transfers.at + at));
        if (h != NULL)
            drop(m, h, e->keep);
    }
}

/* What came is of use for another try if it is the others who have failed. If the source has changed this bundle
 * will not be sent again. */
static bool worth_keeping(int32_t error) {
    return error == -ETIMEDOUT || error == -ECANCELED || error == -EHOSTDOWN || error == -ENOENT;
}

void haul_fail(struct mover *m, struct haul *h, int32_t error, struct bytes text) {
    if (h->phase == HAUL_FAILED)
        return;
    h->error = error;
    h->text_len = (uint32_t)(text.len < TEXT_BYTES ? text.len : TEXT_BYTES);
    if (h->text_len > 0)
        memcpy(h->text, text.at, h->text_len);
    for (uint32_t tree = 0; tree < h->trees; tree++)
        way_end(m, h, tree);
    taker_dismiss(m, h, error, text);
    h->phase = HAUL_FAILED;
    effects_add(m->out, EFFECT_BUNDLE_CLOSE)->bundle =
        (struct effect_bundle){.bundle = haul_index(m, h), .keep = worth_keeping(error)};
    report(m, h->transfer, error, bytes_of(h->text, h->text_len));
}

void haul_report(struct mover *m) {
    HAULS_EACH (h, m) {
        if (h->phase == HAUL_HERE)
            report(m, h->transfer, 0, (struct bytes){0});
        else if (h->phase == HAUL_FAILED)
            report(m, h->transfer, h->error, bytes_of(h->text, h->text_len));
    }
}

static void check_whole(struct mover *m, struct haul *h) {
    uint32_t due = h->pieces - (planted(PLANTED_COMMIT_EARLY) && h->pieces > 1);
    if (h->gives || h->phase != HAUL_MOVING || h->known < h->pages || h->have_count < due)
        return;
    h->phase = HAUL_COMMITTING;
    for (uint32_t tree = 0; tree < h->trees; tree++)
        way_end(m, h, tree);
    effects_add(m->out, EFFECT_BUNDLE_COMMIT)->bundle.bundle = haul_index(m, h);
}

static struct haul *of_bundle(const struct mover *m, uint32_t bundle) {
    struct haul *h = bundle < m->config.hauls ? &m->hauls[bundle] : NULL;
    return h == NULL || h->transfer == 0 || h->phase == HAUL_FAILED ? NULL : h;
}

void haul_opened(struct mover *m, const struct input_bundle *in) {
    struct haul *h = of_bundle(m, in->bundle);
    if (h == NULL)
        return;
    if (in->error != 0) {
        haul_fail(m, h, in->error, in->text);
    } else if (in->committed && h->phase == HAUL_COMMITTING) {
        h->phase = HAUL_HERE;
        report(m, h->transfer, 0, (struct bytes){0});
    } else if (!in->committed && h->phase == HAUL_OPENING) {
        h->phase = HAUL_MOVING;
        h->moved_at = m->now;
        h->known = h->kept = h->gives && !h->open ? h->pages : 0;
        for (uint32_t tree = 0; !h->gives && tree < h->trees; tree++)
            way_begin(m, h, tree);
        taker_adopt(m, h);
        check_whole(m, h);
    }
}

/* What the page says is here already. */
static void take_bits(struct haul *h, const struct input_page *in) {
    uint32_t from = in->page * h->page_pieces;
    for (uint32_t i = 0; i < haul_page_pieces(h, in->page); i++) {
        uint32_t piece = from + i;
        if (i / 8 >= in->have.len || !(in->have.at[i / 8] >> i % 8 & 1) || haul_has(h, piece))
            continue;
        h->have[piece / 8] |= (uint8_t)(1U << piece % 8);
        h->have_count++;
    }
}

/* Whoever told us cannot be believed; what it told after that neither. */
static void on_wrong_page(struct mover *m, struct haul *h, uint32_t page) {
    uint32_t teller = h->tellers[page % PAGES_AHEAD];
    h->kept = h->known;
    h->judged = 0;
    for (uint32_t tree = 0; tree < h->trees && h->phase == HAUL_MOVING; tree++)
        if (tree == teller)
            way_wrong(m, h, tree);
        else
            way_next(m, h, tree);
}

/* The world judges them in any order; we pass them on in theirs. */
static void on_new_page(struct mover *m, struct haul *h, const struct input_page *in) {
    h->judged |= 1U << (in->page - h->known);
    for (; (h->judged & 1) != 0; h->judged >>= 1)
        h->known++;
    h->moved_at = m->now;
    take_bits(h, in);
    for (uint32_t tree = 0; tree < h->trees; tree++)
        way_ask(m, h, tree);
}

/* The last page of what was open. */
static void learn_count(struct haul *h, const struct input_page *in) {
    ASSERT(h->open && in->pieces <= h->pieces && (in->pieces - 1) / h->page_pieces == in->page);
    h->pieces = in->pieces;
    h->pages = in->page + 1;
    h->open = false;
}

/* What is told before we are open was meant for another transfer in this place, whose end it did not know yet. */
void haul_page(struct mover *m, const struct input_page *in) {
    struct haul *h = of_bundle(m, in->bundle);
    if (h == NULL || h->phase == HAUL_OPENING || in->page >= h->pages)
        return;
    bool found = h->gives && in->error == 0 && in->page == h->known; /* since we have begun */
    bool awaited =
        in->page >= h->known && in->page < h->kept && !(h->judged >> (in->page - h->known) & 1);
    if (!found && !awaited && (in->page >= h->known || in->error == -EBADMSG))
        return; /* it came with one that was wrong, and will come again */
    if ((found || awaited) && in->error == 0 && in->pieces != 0 && h->open)
        learn_count(h, in);
    if (found)
        h->kept = ++h->known;
    if (in->error == -EBADMSG)
        on_wrong_page(m, h, in->page);
    else if (in->error != 0)
        haul_fail(m, h, in->error, in->text);
    if (in->error != 0)
        return;
    if (awaited)
        on_new_page(m, h, in);
    if (in->page < h->known)
        taker_page(m, h, in->page, in->table);
    if (awaited)
        taker_serve(m, h);
    check_whole(m, h);
}

void haul_busy(struct mover *m, struct haul *h) {
    if (h->busy++ == 0)
        h->told_at = m->now;
}

void haul_told(struct mover *m, struct haul *h) {
    ASSERT(h->busy > 0);
    h->busy--;
    h->told_at = m->now;
}

bool haul_stuck(const struct mover *m, const struct haul *h) {
    return !h->gives && h->phase != HAUL_FAILED && h->busy > 0 &&
           m->now - h->told_at > SILENT_BEATS * m->config.beat_ns;
}

void haul_got(struct mover *m, struct haul *h, uint32_t piece) {
    h->moved_at = m->now;
    if (!haul_has(h, piece)) {
        h->have[piece / 8] |= (uint8_t)(1U << piece % 8);
        h->have_count++;
    }
    taker_serve(m, h);
    check_whole(m, h);
}

void haul_piece(struct mover *m, const struct input_piece *in) {
    struct haul *h = of_bundle(m, in->bundle);
    if (h == NULL || in->piece >= h->pieces)
        return;
    if (in->loaded)
        slot_loaded(m, h, in);
    else
        way_stored(m, h, in->piece % h->trees, in);
}
