/* SPDX-License-Identifier: MIT */
/*
 * Durations and sizes: exact decimal scaling without floating point.
 *
 * A number with a fraction is read as whole part and up to 18 decimals; both are scaled by the
 * unit in 128 bits, so nothing is lost before the final check against 64 bits.
 */
#include "base/units.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"

#define UNITS_DECIMALS_MAX 18

__extension__ typedef unsigned __int128 uint128;

struct unit {
    const char *name;
    uint64_t scale;
};

/* An empty name is the unit of a bare number. */
static const struct unit duration_units[] = {
    {"", NS_PER_S},          {"ns", 1},
    {"us", NS_PER_US},       {"ms", NS_PER_MS},
    {"s", NS_PER_S},         {"m", 60 * NS_PER_S},
    {"min", 60 * NS_PER_S},  {"h", 3600 * NS_PER_S},
    {"d", 86400 * NS_PER_S}, {NULL, 0},
};

/* Behind the letter, "B" and "iB" are optional; letters are taken in either case. */
static const char size_letters[] = "KMGTP";

struct decimal {
    uint64_t whole;
    uint64_t part; /* 10^-18 */
};

/* How many characters the number takes; -EINVAL, -ERANGE. */
static int scan_decimal(const char *text, struct decimal *ret) {
    struct decimal d = {0};
    int n = text_scan_u64(text, &d.whole);
    if (n <= 0)
        return n == 0 ? -EINVAL : n;
    if (text[n] == '.') {
        n++;
        if (!text_is_digit(text[n]))
            return -EINVAL;
        uint64_t place = 1000000000000000000; /* 10^18 */
        for (; text_is_digit(text[n]); n++) {
            place /= 10;
            d.part += place * (uint64_t)(text[n] - '0');
        }
    }
    *ret = d;
    return n;
}

static int scale_decimal(struct decimal d, uint64_t scale, uint64_t *ret) {
    uint128 part = (uint128)d.part * scale / 1000000000000000000;
    uint128 v = (uint128)d.whole * scale + part;
    if (v > UINT64_MAX)
        return -ERANGE;
    *ret = (uint64_t)v;
    return 0;
}

static bool same(const char *a, const char *b) {
    size_t n = strlen(a);
    return n == strlen(b) && memcmp(a, b, n) == 0;
}

/* "m:s" or "h:m:s"; only the first field may pass 59. */
static int parse_clock(const char *text, uint64_t *ret_ns) {
    uint64_t seconds = 0;
    for (int field = 0; field < 3; field++) {
        uint64_t v = 0;
        int n = text_scan_u64(text, &v);
        if (n <= 0)
            return n == 0 ? -EINVAL : n;
        if (field > 0 && (v > 59 || n > 2))
            return -EINVAL;
        if (__builtin_mul_overflow(seconds, 60, &seconds) ||
            __builtin_add_overflow(seconds, v, &seconds))
            return -ERANGE;
        text += n;
        if (*text == '\0' && field > 0)
            return scale_decimal((struct decimal){.whole = seconds}, NS_PER_S, ret_ns);
        if (*text != ':')
            return -EINVAL;
        text++;
    }
    return -EINVAL;
}

int units_parse_duration(const char *text, uint64_t *ret_ns) {
    struct decimal d;
    int n = scan_decimal(text, &d);
    if (n < 0)
        return n;
    if (text[n] == ':')
        return parse_clock(text, ret_ns);
    for (const struct unit *u = duration_units; u->name; u++)
        if (same(text + n, u->name))
            return scale_decimal(d, u->scale, ret_ns);
    return -EINVAL;
}

/* The power of 1024 that a size's unit stands for; -EINVAL. */
static int scan_size_unit(const char *text) {
    int power = 0;
    for (int i = 0; size_letters[i] != '\0' && power == 0; i++)
        if (*text == size_letters[i] || *text == size_letters[i] + ('a' - 'A'))
            power = i + 1;
    if (power > 0) {
        text++;
        if (text[0] == 'i' && text[1] == 'B')
            text++;
    }
    if (*text == 'B')
        text++;
    return *text == '\0' ? power : -EINVAL;
}

int units_parse_size(const char *text, uint64_t *ret_bytes) {
    struct decimal d;
    int n = scan_decimal(text, &d);
    if (n < 0)
        return n;
    int power = scan_size_unit(text + n);
    if (power < 0)
        return power;
    return scale_decimal(d, (uint64_t)1 << (10 * power), ret_bytes);
}

int units_parse_rate(const char *text, uint64_t *ret_bytes_per_s) {
    static const char letters[] = "kKmMgGtT";
    struct decimal d;
    int n = scan_decimal(text, &d);
    if (n < 0)
        return n;
    const char *letter = text[n] == '\0' ? NULL : strchr(letters, text[n]);
    const char *end = text + n + 1;
    if (letter == NULL || !(same(end, "bit") || same(end, "bit/s") || same(end, "bps")))
        return -EINVAL;
    uint64_t scale = 125; /* bytes of a thousand bits */
    for (ptrdiff_t i = (letter - letters) / 2; i > 0; i--)
        scale *= 1000;
    return scale_decimal(d, scale, ret_bytes_per_s);
}

/* v / scale in hundredths, tenths or wholes, so that three digits count; v is at least scale. */
static bool write_three_digits(struct text *t, uint64_t v, uint64_t scale, uint64_t limit) {
    uint64_t grain = v / scale >= 100 ? 1 : v / scale >= 10 ? 10 : 100;
    uint64_t n = (uint64_t)(((uint128)v * grain + scale / 2) / scale);
    if (n >= limit * grain)
        return false; /* rounding reached the next unit */
    text_u64(t, n / grain);
    uint64_t rest = n % grain * (100 / grain);
    if (rest > 0) {
        text_char(t, '.');
        text_u64(t, rest / 10);
        if (rest % 10 > 0)
            text_u64(t, rest % 10);
    }
    return true;
}

static void write_long_duration(struct text *t, uint64_t seconds) {
    static const struct unit units[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
    int i = 0;
    while (seconds < units[i].scale)
        i++;
    text_u64(t, seconds / units[i].scale);
    text_str(t, units[i].name);
    uint64_t rest = seconds % units[i].scale / units[i + 1].scale;
    if (rest > 0) {
        text_char(t, ' ');
        text_u64(t, rest);
        text_str(t, units[i + 1].name);
    }
}

size_t units_format_duration(uint64_t ns, char *buf, size_t cap) {
    static const struct unit units[] = {
        {" ns", 1}, {" us", NS_PER_US}, {" ms", NS_PER_MS}, {" s", NS_PER_S}};
    ASSERT(cap > 0);
    struct text t;
    text_init(&t, buf, cap);
    for (int i = 0; i < 4; i++) {
        uint64_t limit = i == 3 ? 60 : 1000;
        if (ns / units[i].scale >= limit)
            continue;
        uint64_t v = ns < units[i].scale ? units[i].scale : ns; /* rounded up from below */
        if (ns == 0)
            text_char(&t, '0');
        else if (!write_three_digits(&t, v, units[i].scale, limit))
            continue;
        text_str(&t, units[i].name);
        return t.len;
    }
    uint64_t seconds = ns / NS_PER_S;
    write_long_duration(&t, seconds < 60 ? 60 : seconds);
    return t.len;
}

size_t units_format_size(uint64_t bytes, char *buf, size_t cap) {
    ASSERT(cap > 0);
    struct text t;
    text_init(&t, buf, cap);
    for (unsigned power = 0; power <= 6; power++) {
        uint64_t scale = (uint64_t)1 << (10 * power);
        if (power < 6 && bytes / scale >= 1024)
            continue;
        uint64_t v = bytes < scale ? scale : bytes;
        if (bytes == 0)
            text_char(&t, '0');
        else if (!write_three_digits(&t, v, scale, 1024))
            continue;
        text_char(&t, ' ');
        if (power > 0) {
            text_char(&t, "KMGTPE"[power - 1]);
            text_char(&t, 'i');
        }
        text_char(&t, 'B');
        break;
    }
    return t.len;
}
