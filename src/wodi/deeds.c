/* SPDX-License-Identifier: MIT */
/* Deeds one after the other: kind, link, length, bytes. */
#include "wodi/deeds.h"

static void put(struct deeds *d, enum deed_kind kind, uint32_t link, size_t len) {
    uint8_t *head = d->at + d->len;
    head[0] = (uint8_t)kind;
    store_le32(head + 1, link);
    store_le32(head + 5, (uint32_t)len);
    d->len += DEED_HEAD + len;
}

static struct room rest(const struct deeds *d) {
    ASSERT(deeds_room(d) > DEED_HEAD);
    return room_of(d->at + d->len + DEED_HEAD, deeds_room(d) - DEED_HEAD);
}

void deeds_send(struct deeds *d, uint32_t link, const struct word *w) {
    size_t len = word_frame(w, rest(d));
    ASSERT(len > 0);
    put(d, DEED_SEND, link, len);
}

void deeds_log(struct deeds *d, const struct word *w) {
    size_t len = record_frame(w, rest(d));
    ASSERT(len > 0);
    put(d, DEED_LOG, 0, len);
}

void deeds_close(struct deeds *d, uint32_t link) {
    rest(d);
    put(d, DEED_CLOSE, link, 0);
}

bool deeds_next(const struct deeds *d, size_t *at, struct deed *ret) {
    if (*at >= d->len)
        return false;
    const uint8_t *head = d->at + *at;
    size_t len = load_le32(head + 5);
    *ret = (struct deed){.kind = (enum deed_kind)head[0],
                         .link = load_le32(head + 1),
                         .bytes = bytes_of(head + DEED_HEAD, len)};
    *at += DEED_HEAD + len;
    return true;
}
