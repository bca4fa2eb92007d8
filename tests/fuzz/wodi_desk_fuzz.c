/* SPDX-License-Identifier: MIT */
/* A desk to which anybody says anything: links come and go, words make sense or do not; or a journal is full of nonsense.
 *
 * The first byte: 0: inputs follow, each a byte that says which, a link, and a word with its length before it; 1: records to
 * be replayed, as words. Whatever it is, the desk holds its limits, and its snapshot leads to a desk with the same one. */
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "wodi/desk.h"

enum { LINKS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t deeds_at[4 * DEED_MAX], room[2 * (RECORD_PREFIX + WORD_BYTES_MAX)];

static struct desk *desk_new(struct desk_limits *l) {
    desk_usual(l);
    l->links = LINKS;
    l->masters = l->workers = 2;
    l->steps = 8;
    l->history = 8;
    l->bytes = 4 * WORD_BODY_MAX;
    l->steps_ahead = 4;
    void *mem = mmap(NULL, desk_bytes(l), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT(mem != MAP_FAILED);
    return desk_init(mem, l);
}

static uint64_t records(struct deeds *out) {
    uint64_t n = 0;
    struct deed d;
    for (size_t at = 0; deeds_next(out, &at, &d);)
        n += d.kind == DEED_LOG;
    out->len = 0;
    return n;
}

static void inputs(struct desk *d, const uint8_t *data, size_t size) {
    struct deeds out = {.at = deeds_at, .cap = sizeof deeds_at};
    uint64_t logged = 0, now = 0;
    for (size_t at = 0; size - at >= 2;) {
        uint8_t what = data[at], link = data[at + 1] % LINKS;
        struct word w;
        at += 2;
        now += (uint64_t)what << 20;
        if (what % 8 == 0) {
            desk_up(d, link, what & 8, now);
        } else if (what % 8 == 1) {
            desk_down(d, link, now);
        } else if (what % 8 == 2) {
            desk_time(d, now, &out);
        } else {
            long len = word_next(bytes_of(data + at, size - at), &w);
            if (len <= 0)
                return;
            desk_heard(d, link, &w, now, &out);
            at += (size_t)len;
        }
        logged += records(&out);
        for (bool more = true; more;) {
            more = desk_pump(d, now, &out);
            logged += records(&out);
        }
        desk_durable(d, logged);
        desk_drained(d, link);
    }
}

static void replay(struct desk *d, const uint8_t *data, size_t size) {
    struct word w;
    for (long len; (len = word_next(bytes_of(data, size), &w)) > 0 && desk_replay(d, &w);) {
        data += len;
        size -= (size_t)len;
    }
}

/* Of its snapshot, which is replayed into another desk if there is one. */
static uint64_t digest(const struct desk *d, struct desk *into) {
    struct desk_cursor c = {0};
    uint64_t sum = 0;
    struct word w;
    for (size_t len; (len = desk_snapshot(d, &c, room_of(room, sizeof room)));) {
        sum += hash_once(room, len);
        if (into)
            ASSERT(record_next(bytes_of(room, len), &w) == (long)len && desk_replay(into, &w));
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct desk_limits l;
    if (size == 0)
        return 0;
    struct desk *d = desk_new(&l), *again = desk_new(&l);
    if (data[0] & 1)
        replay(d, data + 1, size - 1);
    else
        inputs(d, data + 1, size - 1);
    ASSERT(digest(d, again) == digest(again, NULL));
    munmap(d, desk_bytes(&l));
    munmap(again, desk_bytes(&l));
    return 0;
}
