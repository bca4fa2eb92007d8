/* SPDX-License-Identifier: MIT */
/*
 * Bounded text writer, and reading decimal numbers.
 *
 * The text in the buffer always ends in NUL and never passes the capacity. The first piece that
 * does not fit is cut, `cut` is set and nothing more is stored, so a cut text is a prefix of the
 * whole; `full` goes on counting, which tells how long the whole text would be.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *at;
    size_t cap;
    size_t len;  /* stored, without the NUL */
    size_t full; /* what len would be with room enough */
    bool cut;
};

/* With cap 0 nothing is stored and `buf` may be NULL. */
void text_init(struct text *t, char *buf, size_t cap);

void text_char(struct text *t, char c);
void text_str(struct text *t, const char *s);
void text_strn(struct text *t, const char *s, size_t n);
void text_u64(struct text *t, uint64_t v);
void text_i64(struct text *t, int64_t v);

/* At least `width` digits (at most 20), filled with zeros. */
void text_u64_pad(struct text *t, uint64_t v, unsigned width);

/* How many digits text_u64 writes. */
unsigned text_digits(uint64_t v);

/* A time of the calendar, as seconds behind an @: whoever shows it does so in the time zone of who reads it. */
void text_time(struct text *t, uint64_t calendar_ns);

/* Two lower-case digits for each byte. */
void text_hex(struct text *t, const void *bytes, size_t len);

/* Always 16 lower-case digits. */
void text_hex64(struct text *t, uint64_t v);

/*
 * Reads the decimal digits at `at`: how many there are, 0 if none (then nothing is written),
 * -ERANGE if the number does not fit.
 */
int text_scan_u64(const char *at, uint64_t *ret_value);

static inline bool text_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline char text_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static inline bool text_is_letter(char c) {
    return text_lower(c) >= 'a' && text_lower(c) <= 'z';
}

/* Are they the same but for capital letters? */
bool text_alike(const char *a, const char *b);
