/* SPDX-License-Identifier: MIT */
/* Values of attributes as texts: reading what people write, writing what nodes have; see traits.h.
 *
 * Whoever writes something that will not do hears what would. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/mistake.h"
#include "base/nearest.h"
#include "base/units.h"
#include "sched/traits.h"

enum { LIST_MAX = 120 /* characters of a list of names in a reason */ };

static const char *const operator_names[TRAITS_OPERATORS] = {"=", "!=", "<", "<=", ">", ">="};

#define KBIT     ((uint64_t)1000)
#define PART_MAX 65534 /* of a version: one of four such parts is still a known value */

/* ---- operators ---- */

const char *traits_operator_name(enum traits_operator o) {
    return operator_names[o];
}

int traits_operator_find(const char *name) {
    for (int i = 0; i < TRAITS_OPERATORS; i++)
        if (strcmp(operator_names[i], name) == 0)
            return i;
    return strcmp(name, "==") == 0 ? TRAITS_IS : -1;
}

void traits_write_operators(struct text *out, uint8_t operators) {
    bool first = true;
    for (unsigned i = 0; i < TRAITS_OPERATORS; i++) {
        if (!(operators >> i & 1))
            continue;
        text_str(out, first ? "" : ", ");
        text_str(out, operator_names[i]);
        first = false;
    }
}

void traits_write_names(const struct traits *t, struct text *out) {
    size_t begin = out->full;
    uint32_t own = t->count - TRAITS_BUILT_IN;
    for (uint32_t i = 0; i < t->count; i++) {
        text_str(out, i == 0 ? "" : ", ");
        if (out->full - begin > LIST_MAX) {
            text_str(out, "...");
            return;
        }
        text_str(out, t->at[i < own ? TRAITS_BUILT_IN + i : i - own].name);
    }
}

/* ---- reading ---- */

static int want(struct text *why, const char *name, const char *what, const char *word) {
    text_str(why, name);
    text_str(why, " wants ");
    text_str(why, what);
    text_str(why, ", not ");
    mistake_quote(why, word, strlen(word));
    return -EINVAL;
}

/* "; it has 256MB, 512MB, 2GB", as far as they fit. */
static void write_list(struct text *why, const char *lead, const char (*names)[TRAITS_WORD_MAX],
                       uint32_t count) {
    size_t begin = why->full;
    text_str(why, lead);
    for (uint32_t i = 0; i < count; i++) {
        text_str(why, i == 0 ? " " : ", ");
        if (why->full - begin > LIST_MAX) {
            text_str(why, "...");
            return;
        }
        text_str(why, names[i]);
    }
}

static const char *nearest_of(const char *word, const char (*names)[TRAITS_WORD_MAX],
                              uint32_t count) {
    const char *near = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const char *pair[] = {near, names[i]};
        near = near == NULL ? nearest_name(word, pair + 1, 1) : nearest_name(word, pair, 2);
    }
    return near;
}

static int find_among(const char *word, const char (*names)[TRAITS_WORD_MAX], uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (text_alike(names[i], word))
            return (int)i;
    return -ENOENT;
}

static int read_name(const struct traits *t, const struct trait *a, const char *word, uint64_t *ret,
                     struct text *why) {
    const char(*names)[TRAITS_WORD_MAX] = (const char(*)[TRAITS_WORD_MAX])t->names + a->first;
    int place = find_among(word, names, a->count);
    if (place >= 0) {
        *ret = (uint64_t)place;
        return 0;
    }
    text_str(why, a->name);
    text_str(why, " has no value ");
    mistake_quote(why, word, strlen(word));
    write_list(why, "; it has", names, a->count);
    mistake_suggest(why, nearest_of(word, names, a->count));
    return -EINVAL;
}

static int read_label(const struct traits *t, const char *word, uint64_t *ret, struct text *why) {
    const char(*labels)[TRAITS_WORD_MAX] = (const char(*)[TRAITS_WORD_MAX])t->labels;
    int bit = find_among(word, labels, t->label_count);
    if (bit >= 0) {
        *ret = (uint64_t)1 << bit;
        return 0;
    }
    text_str(why, "no node has the label ");
    mistake_quote(why, word, strlen(word));
    if (t->label_count > 0)
        write_list(why, "; there are", labels, t->label_count);
    mistake_suggest(why, nearest_of(word, labels, t->label_count));
    return -EINVAL;
}

static int read_flag(const struct trait *a, const char *word, uint64_t *ret, struct text *why) {
    *ret = text_alike(word, "true") || text_alike(word, "yes");
    if (*ret == 1 || text_alike(word, "false") || text_alike(word, "no"))
        return 0;
    return want(why, a->name, "TRUE or FALSE", word);
}

/* A copy in which units are written as base/units wants them, with `unit` behind a number that has none. */
static bool prepare(const char *word, const char *unit, bool capitals, char out[TRAITS_VALUE_MAX]) {
    struct text t;
    size_t len = strlen(word);
    text_init(&t, out, TRAITS_VALUE_MAX);
    for (size_t i = 0; i < len; i++) {
        char c = text_lower(word[i]);
        bool inner = c == 'i' && i + 2 == len; /* of KiB */
        text_char(&t, capitals && !inner && text_is_letter(c) ? (char)(c - 'a' + 'A') : c);
    }
    if (len > 0 && text_is_digit(word[len - 1]))
        text_str(&t, unit);
    return !t.cut;
}

static int read_size(const struct trait *a, const char *word, uint64_t *ret, struct text *why) {
    char ready[TRAITS_VALUE_MAX];
    int r = prepare(word, "M", true, ready) ? units_parse_size(ready, ret) : -EINVAL;
    if (r == 0 && *ret != TRAITS_UNKNOWN)
        return 0;
    if (r == -EINVAL)
        return want(why, a->name, "a size such as 24GiB, 512MB or 512 (MiB)", word);
    return want(why, a->name, "a size below 16384 PiB", word);
}

static int read_rate(const struct trait *a, const char *word, uint64_t *ret, struct text *why) {
    char ready[TRAITS_VALUE_MAX];
    size_t len = strlen(word);
    bool fits = prepare(word, "", false, ready);
    if (fits && len > 1 && text_is_digit(ready[len - 2]) &&
        strchr("kmgt", ready[len - 1]) != NULL && len + 4 <= sizeof ready)
        memcpy(ready + len, "bit", 4); /* 10G will do */
    int r = fits ? units_parse_rate(ready, ret) : -EINVAL;
    if (r == 0 && *ret < TRAITS_UNKNOWN / 8) {
        *ret *= 8;
        return 0;
    }
    if (r == -EINVAL)
        return want(why, a->name, "a rate such as 1Gbit or 100Mbit/s", word);
    return want(why, a->name, "a lower rate", word);
}

static int read_count(const struct trait *a, const char *word, uint64_t *ret, struct text *why) {
    int n = text_scan_u64(word, ret);
    if (n > 0 && word[n] == '\0' && *ret != TRAITS_UNKNOWN)
        return 0;
    return want(why, a->name, n < 0 ? "a smaller number" : "a number", word);
}

/* "6.1.0-13-amd64" is 6.1.0: what is behind the numbers is not compared. */
static int read_version(const struct trait *a, const char *word, struct traits_value *ret,
                        struct text *why) {
    uint64_t value = 0, part = 0;
    unsigned left = 4;
    const char *at = word;
    for (;;) {
        int n = text_scan_u64(at, &part);
        if (n <= 0 || part > PART_MAX)
            return want(why, a->name, n != 0 ? "smaller numbers" : "a version such as 6.1", word);
        at += n;
        left--;
        value |= part << 16 * left;
        if (*at != '.' || left == 0 || !text_is_digit(at[1]))
            break;
        at++;
    }
    if (*at != '\0' && strchr("-+_.", *at) == NULL)
        return want(why, a->name, "a version such as 6.1", word);
    ret->first = value;
    ret->last = value | (((uint64_t)1 << 16 * left) - 1);
    return 0;
}

int traits_read(const struct traits *t, uint32_t id, const char *word, struct traits_value *ret,
                struct text *why) {
    const struct trait *a = &t->at[id];
    uint64_t v = 0;
    int r = -EINVAL;
    switch ((enum traits_kind)a->kind) {
    case TRAITS_NAME:
        r = read_name(t, a, word, &v, why);
        break;
    case TRAITS_SIZE:
        r = read_size(a, word, &v, why);
        break;
    case TRAITS_COUNT:
        r = read_count(a, word, &v, why);
        break;
    case TRAITS_RATE:
        r = read_rate(a, word, &v, why);
        break;
    case TRAITS_VERSION:
        return read_version(a, word, ret, why);
    case TRAITS_FLAG:
        r = read_flag(a, word, &v, why);
        break;
    case TRAITS_WORDS:
        r = read_label(t, word, &v, why);
        break;
    case TRAITS_TEXT:
        ASSERT(false);
    }
    *ret = (struct traits_value){v, v};
    return r;
}

/* ---- writing ---- */

/* In the largest unit that it is a whole number of. */
static void write_size(struct text *out, uint64_t bytes) {
    unsigned power = 0;
    while (power < 5 && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        power++;
    }
    text_u64(out, bytes);
    if (power > 0) {
        text_char(out, "KMGTP"[power - 1]);
        text_char(out, 'i');
    }
    text_char(out, 'B');
}

static void write_rate(struct text *out, uint64_t bits) {
    unsigned power = 0;
    uint64_t rest = bits % KBIT;
    bits /= KBIT;
    while (rest == 0 && power < 3 && bits > 0 && bits % KBIT == 0) {
        bits /= KBIT;
        power++;
    }
    text_u64(out, bits);
    if (rest > 0) {
        text_char(out, '.');
        text_u64_pad(out, rest, 3);
    }
    text_char(out, "kMGT"[power]);
    text_str(out, "bit");
}

static void write_version(struct text *out, struct traits_value v) {
    for (unsigned left = 4; left > 0; left--) {
        unsigned shift = 16 * (left - 1);
        uint64_t below = ((uint64_t)1 << shift) - 1;
        if (left < 4)
            text_char(out, '.');
        text_u64(out, v.first >> shift & 0xffff);
        if ((v.last & below) == below && shift > 0)
            return; /* the rest was not said */
    }
}

void traits_write_value(const struct traits *t, uint32_t id, struct traits_value v,
                        struct text *out) {
    const struct trait *a = &t->at[id];
    switch ((enum traits_kind)a->kind) {
    case TRAITS_NAME:
        text_str(out, t->names[a->first + v.first]);
        break;
    case TRAITS_SIZE:
        write_size(out, v.first);
        break;
    case TRAITS_COUNT:
        text_u64(out, v.first);
        break;
    case TRAITS_RATE:
        write_rate(out, v.first);
        break;
    case TRAITS_VERSION:
        write_version(out, v);
        break;
    case TRAITS_FLAG:
        text_str(out, v.first ? "TRUE" : "FALSE");
        break;
    case TRAITS_WORDS:
        text_str(out, t->labels[__builtin_ctzll(v.first)]);
        break;
    case TRAITS_TEXT:
        text_str(out, intern_text(&t->texts, (uint32_t)v.first));
        break;
    }
}

static void write_labels(const struct traits *t, uint64_t set, struct text *out) {
    bool first = true;
    for (; set != 0; set &= set - 1) {
        text_str(out, first ? "" : "+");
        text_str(out, t->labels[__builtin_ctzll(set)]);
        first = false;
    }
}

/* "24 GiB" without the blank: three digits are enough for people. */
static void write_rounded(uint64_t bytes, struct text *out) {
    char size[UNITS_TEXT_MAX];
    units_format_size(bytes, size, sizeof size);
    for (const char *c = size; *c != '\0'; c++)
        if (*c != ' ')
            text_char(out, *c);
}

/* Three parts: kernels have so many. The fourth only if there is one. */
static void write_node_version(uint64_t v, struct text *out) {
    for (unsigned left = 4; left > 0; left--) {
        if (left == 1 && (v & 0xffff) == 0)
            return;
        if (left < 4)
            text_char(out, '.');
        text_u64(out, v >> 16 * (left - 1) & 0xffff);
    }
}

void traits_write(const struct traits *t, uint32_t node, uint32_t id, struct text *out) {
    uint64_t v = traits_get(t, node, id);
    uint8_t kind = t->at[id].kind;
    if (kind == TRAITS_WORDS) {
        write_labels(t, v, out);
        return;
    }
    if (v == TRAITS_UNKNOWN)
        return;
    if (kind == TRAITS_SIZE)
        write_rounded(v, out);
    else if (kind == TRAITS_VERSION)
        write_node_version(v, out);
    else
        traits_write_value(t, id, (struct traits_value){v, v}, out);
}

static bool has_value(const struct traits *t, uint32_t node, uint32_t id) {
    uint64_t v = traits_get(t, node, id);
    return t->at[id].kind == TRAITS_WORDS ? v != 0 : v != TRAITS_UNKNOWN;
}

static bool has_blank(const struct traits *t, uint32_t node, uint32_t id) {
    return t->at[id].kind == TRAITS_TEXT &&
           strchr(intern_text(&t->texts, (uint32_t)traits_get(t, node, id)), ' ') != NULL;
}

size_t traits_format(const struct traits *t, uint32_t node, char *buf, size_t cap) {
    return traits_format_some(t, node, UINT64_MAX, buf, cap);
}

size_t traits_format_some(const struct traits *t, uint32_t node, uint64_t which, char *buf,
                          size_t cap) {
    struct text out;
    text_init(&out, buf, cap);
    uint32_t own = t->count - TRAITS_BUILT_IN; /* the administrator's first */
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t id = i < own ? TRAITS_BUILT_IN + i : i - own;
        if ((which >> id & 1) == 0 || !has_value(t, node, id))
            continue;
        const char *quote = has_blank(t, node, id) ? "\"" : "";
        text_str(&out, out.full > 0 ? " " : "");
        text_str(&out, t->at[id].name);
        text_char(&out, '=');
        text_str(&out, quote);
        traits_write(t, node, id, &out);
        text_str(&out, quote);
    }
    return out.full;
}
