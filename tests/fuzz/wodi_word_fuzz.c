/* SPDX-License-Identifier: MIT */
/* Words of the work distributor: a stream of them, as a connection and as a journal. What is read can be written again. */
#include <string.h>

#include "base/assert.h"
#include "wodi/profile.h"
#include "wodi/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same_again(const struct word *w, const uint8_t *as_read, size_t len) {
    static uint8_t room[WORD_PREFIX + WORD_BYTES_MAX];
    size_t back = word_write(w, room_of(room, sizeof room));
    ASSERT(back == len && memcmp(room, as_read, len) == 0);
    struct profile p;
    if (profile_read(&p, w->body))
        ASSERT(profile_write(&p, room_of(room, sizeof room)) == w->body.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct word w;
    for (size_t at = 0; at < size;) {
        long len = word_next(bytes_of(data + at, size - at), &w);
        if (len <= 0)
            break;
        same_again(&w, data + at + WORD_PREFIX, (size_t)len - WORD_PREFIX);
        at += (size_t)len;
    }
    if (word_read(&w, bytes_of(data, size)))
        same_again(&w, data, size);
    for (size_t at = 0; at < size;) {
        long len = record_next(bytes_of(data + at, size - at), &w);
        if (len <= 0)
            break;
        at += (size_t)len;
    }
    return 0;
}
