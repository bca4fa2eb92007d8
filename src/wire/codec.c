/* SPDX-License-Identifier: MIT */
/* Little-endian fields, written or read: see codec.h.
 *
 * After the first failure every call is a no-op that yields zeros, so walks need no error checks.
 */
#include "wire/codec.h"

#include <string.h>

static bool claim(struct codec *c, size_t n) {
    if (!c->failed && n > c->len - c->at)
        c->failed = true;
    return !c->failed;
}

void codec_u8(struct codec *c, uint8_t *v) {
    if (!claim(c, 1)) {
        *v = c->encoding ? *v : 0;
        return;
    }
    if (c->encoding)
        c->out[c->at] = *v;
    else
        *v = c->in[c->at];
    c->at += 1;
}

void codec_u16(struct codec *c, uint16_t *v) {
    if (!claim(c, 2)) {
        *v = c->encoding ? *v : 0;
        return;
    }
    if (c->encoding)
        store_le16(c->out + c->at, *v);
    else
        *v = load_le16(c->in + c->at);
    c->at += 2;
}

void codec_u32(struct codec *c, uint32_t *v) {
    if (!claim(c, 4)) {
        *v = c->encoding ? *v : 0;
        return;
    }
    if (c->encoding)
        store_le32(c->out + c->at, *v);
    else
        *v = load_le32(c->in + c->at);
    c->at += 4;
}

void codec_u64(struct codec *c, uint64_t *v) {
    if (!claim(c, 8)) {
        *v = c->encoding ? *v : 0;
        return;
    }
    if (c->encoding)
        store_le64(c->out + c->at, *v);
    else
        *v = load_le64(c->in + c->at);
    c->at += 8;
}

void codec_enum(struct codec *c, uint8_t *v, uint8_t end) {
    codec_u8(c, v);
    if (*v >= end) {
        c->failed = true;
        *v = c->encoding ? *v : 0;
    }
}

void codec_bool(struct codec *c, bool *v) {
    uint8_t byte = c->encoding ? *v : 0;
    codec_enum(c, &byte, 2);
    *v = byte != 0;
}

static void codec_view(struct codec *c, struct bytes *v, size_t len) {
    if (!claim(c, len)) {
        if (!c->encoding)
            *v = (struct bytes){0};
        return;
    }
    if (!c->encoding)
        *v = (struct bytes){c->in + c->at, len};
    else if (len > 0)
        memcpy(c->out + c->at, v->at, len);
    c->at += len;
}

void codec_bytes(struct codec *c, struct bytes *v, uint32_t unit) {
    uint32_t len = (uint32_t)v->len;
    codec_u32(c, &len);
    if (len % unit != 0)
        c->failed = true;
    codec_view(c, v, len);
}

void codec_rest(struct codec *c, struct bytes *v) {
    codec_view(c, v, c->encoding ? v->len : c->failed ? 0 : c->len - c->at);
}

/* On the wire a set is a count of ranges and the ranges, or a bitmap where that is shorter. */
enum set_form { SET_RANGES, SET_BITMAP, SET_FORMS };

static size_t bitmap_bytes(const struct nodeset *set) {
    return align_up((size_t)set->universe, 64) / 8;
}

static void encode_ranges(struct codec *c, const struct nodeset *set, uint32_t count) {
    codec_u32(c, &count);
    struct noderange r;
    for (uint32_t from = 0; nodeset_next_range(set, from, &r); from = r.last + 1) {
        codec_u32(c, &r.first);
        codec_u32(c, &r.last);
    }
}

static void encode_bitmap(struct codec *c, const struct nodeset *set) {
    size_t len = bitmap_bytes(set);
    if (!claim(c, len))
        return;
    uint8_t *map = c->out + c->at;
    memset(map, 0, len);
    struct noderange r;
    for (uint32_t from = 0; nodeset_next_range(set, from, &r); from = r.last + 1) {
        uint32_t first = r.first / 8, last = r.last / 8;
        uint8_t head = (uint8_t)(0xff << r.first % 8), tail = (uint8_t)(0xff >> (7 - r.last % 8));
        if (first == last) {
            map[first] |= head & tail;
            continue;
        }
        map[first] |= head;
        memset(map + first + 1, 0xff, last - first - 1);
        map[last] |= tail;
    }
    c->at += len;
}

static void decode_ranges(struct codec *c, struct nodeset *set) {
    uint32_t count = 0;
    codec_u32(c, &count);
    uint32_t least = 0; /* ranges ascend and never touch */
    for (uint32_t i = 0; i < count && !c->failed; i++) {
        struct noderange r = {0};
        codec_u32(c, &r.first);
        codec_u32(c, &r.last);
        if (c->failed || r.first < least || r.last < r.first || r.last >= set->universe) {
            c->failed = true;
            return;
        }
        nodeset_add_range(set, r.first, r.last);
        least = r.last + 2;
    }
}

/* The first bit from `from` on that is `value`; `end` if there is none. */
static uint32_t next_bit(const uint8_t *map, uint32_t from, uint32_t end, bool value) {
    uint64_t flip = value ? 0 : UINT64_MAX;
    while (from < end) {
        uint64_t word = (load_le64(map + from / 64 * 8) ^ flip) >> from % 64;
        if (word != 0)
            return from + (uint32_t)__builtin_ctzll(word);
        from = (from / 64 + 1) * 64;
    }
    return end;
}

static void decode_bitmap(struct codec *c, struct nodeset *set) {
    size_t len = bitmap_bytes(set);
    if (!claim(c, len))
        return;
    const uint8_t *map = c->in + c->at;
    uint32_t end = (uint32_t)len * 8;
    c->at += len;
    for (uint32_t n = next_bit(map, 0, end, true); n < end; n = next_bit(map, n, end, true)) {
        uint32_t stop = next_bit(map, n, end, false);
        if (stop > set->universe) {
            c->failed = true;
            return;
        }
        nodeset_add_range(set, n, stop - 1);
        n = stop;
    }
}

void codec_set(struct codec *c, struct nodeset *set) {
    uint32_t count = c->encoding ? nodeset_range_count(set) : 0;
    uint8_t form =
        (size_t)count * 8 + 4 <= bitmap_bytes(set) || count < 8 ? SET_RANGES : SET_BITMAP;
    codec_enum(c, &form, SET_FORMS);
    if (c->encoding) {
        if (form == SET_RANGES)
            encode_ranges(c, set, count);
        else
            encode_bitmap(c, set);
        return;
    }
    nodeset_clear(set);
    if (form == SET_RANGES)
        decode_ranges(c, set);
    else
        decode_bitmap(c, set);
    if (c->failed)
        nodeset_clear(set);
}

static void write_number(struct codec *c, uint64_t v) {
    for (; v >= 0x80; v >>= 7) {
        uint8_t byte = (uint8_t)(v | 0x80);
        codec_u8(c, &byte);
    }
    uint8_t last = (uint8_t)v;
    codec_u8(c, &last);
}

void codec_number(struct codec *c, uint64_t *v) {
    if (c->encoding) {
        write_number(c, *v);
        return;
    }
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (unsigned shift = 0; (byte & 0x80) != 0 && !c->failed; shift += 7) {
        codec_u8(c, &byte);
        if (shift > 63 || (shift == 63 && byte > 1))
            c->failed = true;
        else
            value |= (uint64_t)(byte & 0x7F) << shift;
    }
    *v = c->failed ? 0 : value;
}

void codec_usage(struct codec *c, struct usage *u) {
    codec_u64(c, &u->user_ns);
    codec_u64(c, &u->system_ns);
    codec_u64(c, &u->read_bytes);
    codec_u64(c, &u->written_bytes);
    codec_u64(c, &u->peak_bytes);
    codec_u64(c, &u->node_bytes);
    codec_u32(c, &u->peak_node);
    codec_u32(c, &u->node_node);
}
