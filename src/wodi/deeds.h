/* SPDX-License-Identifier: MIT */
/* What the desk wants done: frames to be sent, records to be written, connections to be closed, in order.
 *
 * They lie one after the other in memory of the world, which carries them out and empties it. The desk writes nothing that
 * may not fit: see desk.h. */
#pragma once

#include <stdbool.h>

#include "wodi/words.h"

enum deed_kind { DEED_SEND, DEED_LOG, DEED_CLOSE };

struct deeds {
    uint8_t *at;
    size_t len, cap;
};

struct deed {
    enum deed_kind kind;
    uint32_t link;      /* SEND, CLOSE */
    struct bytes bytes; /* SEND: a frame; LOG: a record */
};

/* The largest deed. */
enum { DEED_HEAD = 9, DEED_MAX = DEED_HEAD + RECORD_PREFIX + WORD_BYTES_MAX };

static inline size_t deeds_room(const struct deeds *d) {
    return d->cap - d->len;
}

void deeds_send(struct deeds *d, uint32_t link, const struct word *w);
void deeds_log(struct deeds *d, const struct word *w);
void deeds_close(struct deeds *d, uint32_t link);

/* Of the deeds the one at *at, which moves on; false: that was all. */
bool deeds_next(const struct deeds *d, size_t *at, struct deed *ret);
