/* SPDX-License-Identifier: MIT */
/* Words: a table of the fields of each kind, and one walk over them. */
#include "wodi/words.h"

#include "base/hash.h"
#include "wire/codec.h"

enum {
    F_FLAG = 1 << 0,
    F_STATUS = 1 << 1,
    F_SESSION = 1 << 2,
    F_ID = 1 << 3,
    F_CYCLE = 1 << 4,
    F_STEP = 1 << 5,
    F_SEQ = 1 << 6,
    F_NS = 1 << 7,
    F_COUNT = 1 << 8,
    F_BYTES = 1 << 9,
    F_TOKEN = 1 << 10,
    F_NAME = 1 << 11,
    F_BODY = 1 << 12,
};

static const uint16_t fields_of[WORD_KINDS] = {
    [WORD_MASTER] = F_FLAG | F_TOKEN | F_NAME | F_BODY | F_COUNT,
    [WORD_BEGIN] = F_CYCLE | F_COUNT | F_BODY,
    [WORD_WORK] = F_CYCLE | F_STEP | F_BODY,
    [WORD_ACK] = F_SEQ,
    [WORD_END] = F_CYCLE | F_SEQ | F_BODY,
    [WORD_COMPLETE] = F_SEQ,
    [WORD_WORKER] = F_TOKEN | F_ID | F_NS | F_NAME,
    [WORD_RESULT] = F_ID | F_STATUS | F_NS | F_BODY,
    [WORD_PONG] = 0,
    [WORD_WELCOME] =
        F_FLAG | F_SESSION | F_CYCLE | F_STEP | F_SEQ | F_COUNT | F_BYTES | F_NS | F_TOKEN | F_NAME,
    [WORD_ANSWER] = F_STATUS,
    [WORD_KEPT] = F_COUNT | F_BYTES,
    [WORD_CONFIRM] = F_SEQ,
    [WORD_KNOWN] = F_STEP,
    [WORD_DELIVER] = F_SEQ | F_STATUS | F_CYCLE | F_STEP | F_NS | F_BYTES | F_BODY,
    [WORD_INIT] = F_SESSION | F_NAME | F_BODY,
    [WORD_START] = F_SESSION | F_CYCLE | F_BODY,
    [WORD_STEP] = F_FLAG | F_SESSION | F_ID | F_CYCLE | F_STEP | F_BODY,
    [WORD_FINISH] = F_SESSION | F_CYCLE | F_BODY,
    [WORD_OVER] = F_SESSION,
    [WORD_PING] = 0,
    [WORD_REFUSED] = F_STATUS,
    [WORD_LOG_MASTER] = F_SESSION | F_FLAG | F_COUNT | F_SEQ | F_NAME | F_BODY,
    [WORD_LOG_BEGIN] = F_SESSION | F_CYCLE | F_COUNT | F_BODY,
    [WORD_LOG_WORK] = F_SESSION | F_STEP | F_BODY,
    [WORD_LOG_RESULT] = F_SESSION | F_STEP | F_STATUS | F_NS | F_BODY,
    [WORD_LOG_ACK] = F_SESSION | F_SEQ,
    [WORD_LOG_END] = F_SESSION | F_CYCLE | F_SEQ | F_BODY,
    [WORD_LOG_COMPLETE] = F_SESSION,
    [WORD_LOG_RANGE] = F_SESSION | F_STEP | F_COUNT,
};

static void walk(struct codec *c, struct word *w) {
    codec_enum(c, &w->kind, (uint8_t)WORD_KINDS);
    if (c->failed)
        return;
    uint16_t f = fields_of[w->kind];
    if (f & F_FLAG)
        codec_u8(c, &w->flag);
    if (f & F_STATUS)
        codec_u32(c, &w->status);
    if (f & F_SESSION)
        codec_u32(c, &w->session);
    if (f & F_ID)
        codec_u32(c, &w->id);
    if (f & F_CYCLE)
        codec_u64(c, &w->cycle);
    if (f & F_STEP)
        codec_u64(c, &w->step);
    if (f & F_SEQ)
        codec_u64(c, &w->seq);
    if (f & F_NS)
        codec_u64(c, &w->ns);
    if (f & F_COUNT)
        codec_u64(c, &w->count);
    if (f & F_BYTES)
        codec_u64(c, &w->bytes);
    if (f & F_TOKEN) {
        codec_u64(c, &w->token[0]);
        codec_u64(c, &w->token[1]);
    }
    if (f & F_NAME)
        codec_bytes(c, &w->name, 1);
    if (f & F_BODY)
        codec_rest(c, &w->body);
}

size_t word_write(const struct word *w, struct room out) {
    struct word copy = *w; /* the walk takes fields to be written by reference too */
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? 0 : c.at;
}

bool word_read(struct word *w, struct bytes in) {
    *w = (struct word){0};
    struct codec c = {.in = in.at, .len = in.len};
    walk(&c, w);
    return !c.failed && c.at == c.len && w->name.len <= WORD_NAME_MAX &&
           w->body.len <= WORD_BODY_MAX;
}

size_t word_frame(const struct word *w, struct room out) {
    if (out.len < WORD_PREFIX)
        return 0;
    size_t len = word_write(w, room_of(out.at + WORD_PREFIX, out.len - WORD_PREFIX));
    store_le32(out.at, (uint32_t)len);
    return len ? len + WORD_PREFIX : 0;
}

long word_next(struct bytes in, struct word *ret) {
    if (in.len < WORD_PREFIX)
        return 0;
    uint32_t len = load_le32(in.at);
    if (len == 0 || len > WORD_BYTES_MAX)
        return -1;
    if (in.len - WORD_PREFIX < len)
        return 0;
    if (!word_read(ret, bytes_of(in.at + WORD_PREFIX, len)))
        return -1;
    return (long)(len + WORD_PREFIX);
}

static uint32_t checksum(const uint8_t *at, size_t len) {
    return (uint32_t)hash_once(at, len);
}

size_t record_frame(const struct word *w, struct room out) {
    if (out.len < RECORD_PREFIX)
        return 0;
    size_t len = word_write(w, room_of(out.at + RECORD_PREFIX, out.len - RECORD_PREFIX));
    if (len == 0)
        return 0;
    store_le32(out.at, (uint32_t)len);
    store_le32(out.at + 4, checksum(out.at + RECORD_PREFIX, len));
    return len + RECORD_PREFIX;
}

long record_next(struct bytes in, struct word *ret) {
    if (in.len < RECORD_PREFIX)
        return 0;
    uint32_t len = load_le32(in.at);
    if (len == 0 || len > WORD_BYTES_MAX)
        return -1;
    if (in.len - RECORD_PREFIX < len)
        return 0;
    const uint8_t *body = in.at + RECORD_PREFIX;
    if (checksum(body, len) != load_le32(in.at + 4) || !word_read(ret, bytes_of(body, len)))
        return -1;
    return (long)(len + RECORD_PREFIX);
}
