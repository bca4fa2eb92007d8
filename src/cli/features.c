/* SPDX-License-Identifier: MIT */
/* What nodes are like: see features.h. */
#include "cli/features.h"

#include <string.h>

/* ---- words ---- */

/* Values that have blanks are in quotes. */
static const uint8_t *end_of_value(const uint8_t *at, const uint8_t *end) {
    bool quoted = at < end && *at == '"';
    const uint8_t *close = quoted ? memchr(at + 1, '"', (size_t)(end - at) - 1) : NULL;
    const uint8_t *from = close != NULL ? close : at;
    const uint8_t *blank = from < end ? memchr(from, ' ', (size_t)(end - from)) : NULL;
    return blank != NULL ? blank : end;
}

static struct bytes without_quotes(struct bytes v) {
    bool quoted = v.len >= 2 && v.at[0] == '"' && v.at[v.len - 1] == '"';
    return quoted ? bytes_of(v.at + 1, v.len - 2) : v;
}

bool feature_next(struct bytes told, size_t *at, struct feature *ret) {
    if (*at >= told.len)
        return false;
    const uint8_t *from = told.at + *at, *end = told.at + told.len;
    const uint8_t *is = memchr(from, '=', (size_t)(end - from));
    if (is == NULL)
        return false;
    const uint8_t *behind = end_of_value(is + 1, end);
    ret->name = bytes_of(from, (size_t)(is - from));
    ret->value = without_quotes(bytes_of(is + 1, (size_t)(behind - is) - 1));
    ret->word = bytes_of(from, (size_t)(behind - from));
    *at = (size_t)(behind - told.at) + 1;
    return true;
}

/* ---- which of them tell nodes apart ---- */

/* Host and speed are never quite the same; processors and memory are shown anyway. */
static bool is_of_machine(struct bytes name) {
    static const char *const names[] = {"HOST", "SPEED", "PROCESSORS", "MEMORY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_equal(name, bytes_from_str(names[i])))
            return true;
    return false;
}

/* TRAITS_MAX: it is not among them. */
static uint32_t find(const struct features *f, struct bytes name) {
    for (uint32_t i = 0; i < f->count; i++)
        if (bytes_equal(f->at[i].name, name))
            return i;
    return TRAITS_MAX;
}

void features_add(struct features *f, struct bytes told, bool up) {
    struct feature one;
    f->nodes += up;
    for (size_t at = 0; feature_next(told, &at, &one);) {
        uint32_t i = find(f, one.name);
        if (i == TRAITS_MAX && (f->count == TRAITS_MAX || is_of_machine(one.name)))
            continue;
        if (i == TRAITS_MAX) {
            i = f->count++;
            f->at[i].name = one.name;
            f->at[i].value = one.value;
        }
        f->at[i].have += up;
        f->at[i].differs |= !bytes_equal(f->at[i].value, one.value);
    }
}

/* Labels that only some have tell these apart, too. */
void features_settle(struct features *f) {
    for (uint32_t i = 0; i < f->count; i++)
        f->at[i].differs |= f->at[i].have > 0 && f->at[i].have < f->nodes;
}

bool features_any(const struct features *f) {
    for (uint32_t i = 0; i < f->count; i++)
        if (f->at[i].differs)
            return true;
    return false;
}

size_t features_write(const struct features *f, struct bytes told, char *out) {
    struct feature one;
    size_t len = 0;
    for (size_t at = 0; feature_next(told, &at, &one);) {
        uint32_t i = find(f, one.name);
        if (i == TRAITS_MAX || !f->at[i].differs)
            continue;
        if (len > 0)
            out[len++] = ' ';
        memcpy(out + len, one.word.at, one.word.len);
        len += one.word.len;
    }
    return len;
}
