/* SPDX-License-Identifier: MIT */
/*
 * Bounded text writer: every piece passes through text_strn, the only place that stores.
 *
 * Invariant: len < cap and at[len] is NUL, unless cap is 0; full >= len, and cut exactly if full >
 * len.
 */
#include "base/text.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"

#define TEXT_DIGITS_MAX 20 /* of a 64-bit number */

void text_init(struct text *t, char *buf, size_t cap) {
    *t = (struct text){.at = buf, .cap = cap};
    if (cap > 0)
        buf[0] = '\0';
}

void text_strn(struct text *t, const char *s, size_t n) {
    t->full += n;
    if (t->cut || n == 0)
        return;
    size_t left = t->cap > 0 ? t->cap - 1 - t->len : 0;
    if (n > left) {
        t->cut = true;
        n = left;
    }
    if (t->cap == 0)
        return;
    memcpy(t->at + t->len, s, n);
    t->len += n;
    t->at[t->len] = '\0';
}

void text_char(struct text *t, char c) {
    text_strn(t, &c, 1);
}

void text_str(struct text *t, const char *s) {
    text_strn(t, s, strlen(s));
}

void text_u64_pad(struct text *t, uint64_t v, unsigned width) {
    ASSERT(width <= TEXT_DIGITS_MAX);
    char digits[TEXT_DIGITS_MAX];
    unsigned at = TEXT_DIGITS_MAX;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    while (TEXT_DIGITS_MAX - at < width)
        digits[--at] = '0';
    text_strn(t, digits + at, TEXT_DIGITS_MAX - at);
}

void text_u64(struct text *t, uint64_t v) {
    text_u64_pad(t, v, 1);
}

unsigned text_digits(uint64_t v) {
    unsigned n = 1;
    for (; v >= 10; v /= 10)
        n++;
    return n;
}

void text_i64(struct text *t, int64_t v) {
    if (v < 0)
        text_char(t, '-');
    text_u64(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void text_time(struct text *t, uint64_t calendar_ns) {
    text_char(t, '@');
    text_u64(t, calendar_ns / NS_PER_S);
}

void text_hex(struct text *t, const void *bytes, size_t len) {
    static const char digits[] = "0123456789abcdef";
    const uint8_t *at = bytes;
    for (size_t i = 0; i < len; i++) {
        text_char(t, digits[at[i] >> 4]);
        text_char(t, digits[at[i] & 15]);
    }
}

void text_hex64(struct text *t, uint64_t v) {
    char digits[16];
    for (unsigned i = 0; i < 16; i++)
        digits[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
    text_strn(t, digits, sizeof digits);
}

int text_scan_u64(const char *at, uint64_t *ret_value) {
    uint64_t v = 0;
    int n = 0;
    for (; text_is_digit(at[n]); n++) {
        uint64_t digit = (uint64_t)(at[n] - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        v = v * 10 + digit;
    }
    if (n > 0)
        *ret_value = v;
    return n;
}

bool text_alike(const char *a, const char *b) {
    while (*a != '\0' && text_lower(*a) == text_lower(*b))
        a++, b++;
    return *a == *b;
}
