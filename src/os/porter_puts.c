/* SPDX-License-Identifier: MIT */
/* Pieces that go out and come in: see porter_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "os/porter_inside.h"

/* Less is copied as fast. */
enum { TWIN_BYTES_MIN = 16 * KIB };

/* A place in the table of what is lent. */
static int64_t lend_place(struct porter *p) {
    if (p->lent_free_count == 0) {
        uint32_t cap = p->lent_cap ? 2 * p->lent_cap : 64;
        struct lent *lent = realloc(p->lent, cap * sizeof *lent);
        if (lent != NULL)
            p->lent = lent;
        uint32_t *free_list = realloc(p->lent_free, cap * sizeof *free_list);
        if (free_list != NULL)
            p->lent_free = free_list;
        if (lent == NULL || free_list == NULL)
            return -ENOMEM;
        for (uint32_t i = cap; i > p->lent_cap; i--) {
            p->lent[i - 1] = (struct lent){0};
            p->lent_free[p->lent_free_count++] = i - 1;
        }
        p->lent_cap = cap;
    }
    return p->lent_free[--p->lent_free_count];
}

static void porter_tell_sent(struct porter *p, const struct effect_put *put) {
    if (p->sent_count == p->sent_cap) {
        uint32_t cap = p->sent_cap ? 2 * p->sent_cap : 64;
        struct input_sent *sent = realloc(p->sent, cap * sizeof *sent);
        ASSERT(sent != NULL);
        p->sent = sent;
        p->sent_cap = cap;
    }
    p->sent[p->sent_count++] = (struct input_sent){
        .link = put->link, .buffer = put->buffer, .offset = put->offset, .note = put->note};
}

void porter_sent(void *context, uint64_t tag) {
    struct porter *p = context;
    struct lent lent = p->lent[tag];
    p->lent[tag].file = NULL;
    p->lent_free[p->lent_free_count++] = (uint32_t)tag;
    buffers_unlend(&p->buffers, lent.put.buffer);
    original_drop(lent.file);
    diary_note(&p->diary, DIARY_SEND, lent.since, diary_now(&p->diary), lent.put.note);
    porter_tell_sent(p, &lent.put);
}

/* Is what lies in the file still what was surveyed? */
static bool holds_good(struct porter *p, const struct place_loan *l) {
    struct opened *o = &p->bundles[l->bundle];
    int r = survey_loan_check(l->survey, &l->loan, o->why);
    if (r < 0) {
        o->error = r;
        p->spoilt = true;
    }
    return r == 0;
}

static struct twin *twin_place(struct porter *p, uint32_t buffer, uint64_t offset) {
    uint64_t mixed = (buffer + 31 * offset) * 0x9e3779b97f4a7c15u;
    return &p->twins[(mixed >> 32) % TWINS];
}

void porter_note_twin(struct porter *p, const struct effect_piece *e, bool stored) {
    struct twin *t = twin_place(p, e->buffer, e->offset);
    if (stored)
        *t = (struct twin){e->buffer, e->bundle, e->piece, e->offset};
    else if (t->buffer == e->buffer && t->offset == e->offset)
        t->buffer = 0;
}

void porter_forget_twins(struct porter *p, uint32_t bundle) {
    for (struct twin *t = p->twins; t < p->twins + TWINS; t++)
        if (t->bundle == bundle)
            t->buffer = 0;
}

static int open_twin(struct porter *p, const struct effect_put *put, uint64_t *ret_offset) {
    const struct twin *t = twin_place(p, put->buffer, put->offset);
    if (put->len < TWIN_BYTES_MIN || t->buffer != put->buffer || t->offset != put->offset ||
        p->bundles[t->bundle].in == NULL)
        return -1;
    uint32_t len;
    return depot_lend(p->bundles[t->bundle].in, t->piece, ret_offset, &len);
}

/* What a link is to send: bytes, or a file that has them at an offset, or both; neither, if there is nothing any more. */
struct goods {
    const uint8_t *at;
    int fd;
    uint64_t offset;
};

/* Somebody may have changed it since it was said to be here: then it is read after all, and judged. */
static struct goods find_kept(struct porter *p, const struct place_loan *l, uint8_t *slot,
                              uint32_t len) {
    struct goods g = {0};
    struct depot_bundle *in = p->bundles[l->bundle].in;
    char why[256];
    uint32_t lies;
    g.fd = depot_lend(in, l->piece, &g.offset, &lies);
    if (g.fd < 0 && depot_load(in, l->piece, room_of(slot, len), why) == (long)len)
        g.at = slot;
    return g;
}

static struct goods find_goods(struct porter *p, const struct effect_put *put,
                               const struct place_loan *l, uint8_t *slot) {
    struct goods g = {.at = slot};
    if (l == NULL) {
        g.fd = open_twin(p, put, &g.offset);
    } else if (l->survey == NULL) {
        g = find_kept(p, l, slot, put->len);
    } else {
        g = (struct goods){
            .at = l->loan.bytes.at, .fd = original_lend_fd(l->loan.file), .offset = l->loan.offset};
    }
    return g;
}

void porter_put(struct porter *p, const struct effect_put *put) {
    const struct buffer *b = buffers_find(&p->buffers, put->buffer);
    ASSERT(b != NULL && put->offset <= b->bytes && put->len <= b->bytes - put->offset);
    const struct place_loan *l = loans_find(&p->loans, put->buffer, put->offset);
    if (l != NULL && l->survey != NULL && !holds_good(p, l)) {
        porter_tell_sent(p, put); /* nobody waits for it: the bundle fails next */
        return;
    }
    int64_t tag = lend_place(p);
    ASSERT(tag >= 0);
    p->lent[tag] =
        (struct lent){.put = *put,
                      .file = l == NULL || l->survey == NULL ? NULL : original_hold(l->loan.file),
                      .since = diary_now(&p->diary)};
    buffers_lend(&p->buffers, put->buffer);
    if (carriage_put(p->carriage, put, b, (uint64_t)tag))
        return;
    struct goods g = find_goods(p, put, l, b->at + put->offset);
    links_lend(p->links, put, bytes_of(g.at, put->len), (uint64_t)tag, g.fd, g.offset);
}

uint8_t *porter_place(void *context, uint32_t link, const struct message_put *m) {
    const struct porter *p = context;
    const struct buffer *b = buffers_find(&p->buffers, m->buffer);
    if (b == NULL || b->link != link || m->offset > b->bytes || m->body.len > b->bytes - m->offset)
        return NULL;
    return b->at + m->offset;
}

enum refusal porter_came(void *context, uint32_t link, const struct message_put *m) {
    struct porter *p = context;
    const struct buffer *b = buffers_find(&p->buffers, m->buffer);
    if (b == NULL || b->link != link)
        return REFUSAL_NONE;
    uint8_t *at = porter_place(context, link, m);
    if (at == NULL)
        return REFUSAL_BODY;
    if (at != m->body.at && m->body.len > 0)
        memcpy(at, m->body.at, m->body.len);
    uint64_t now = diary_now(&p->diary);
    diary_note(&p->diary, DIARY_CAME, now, now, m->note);
    struct input_put put = {.link = link,
                            .buffer = m->buffer,
                            .offset = m->offset,
                            .len = (uint32_t)m->body.len,
                            .note = m->note};
    carriage_came(p->carriage, &put);
    return REFUSAL_NONE;
}
