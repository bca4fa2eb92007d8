/* SPDX-License-Identifier: MIT */
/* Names of shapes: see spread.h. */
#include "rm/spread.h"

#include <string.h>

#include "base/text.h"

static const char *const names[SPREAD_SHAPES] = {"auto",     "chain", "k-ary",
                                                 "binomial", "flat",  "pair"};

const char *spread_name(enum spread_shape shape) {
    return (uint32_t)shape < SPREAD_SHAPES ? names[shape] : "?";
}

/* What follows the prefix, NULL if the text does not begin with it. */
static const char *after(const char *text, const char *prefix) {
    size_t len = strlen(prefix);
    return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

static bool parse_kary(const char *text, struct spread *ret) {
    const char *rest = after(text, "k-ary");
    if (rest == NULL)
        rest = after(text, "kary");
    if (rest == NULL)
        return false;
    uint64_t arity = SPREAD_ARITY_USUAL;
    if (*rest == ':') {
        int digits = text_scan_u64(++rest, &arity);
        if (digits <= 0 || arity < 1 || arity > SPREAD_ARITY_MAX)
            return false;
        rest += digits;
    }
    if (*rest != '\0')
        return false;
    *ret = (struct spread){.shape = SPREAD_KARY, .arity = (uint32_t)arity};
    return true;
}

bool spread_parse(const char *text, struct spread *ret) {
    for (uint8_t shape = 0; shape < SPREAD_SHAPES; shape++)
        if (shape != SPREAD_KARY && strcmp(text, names[shape]) == 0) {
            *ret = (struct spread){.shape = shape};
            return true;
        }
    return parse_kary(text, ret);
}

size_t spread_format(const struct spread *s, char *buf, size_t cap) {
    struct text t;
    text_init(&t, buf, cap);
    text_str(&t, spread_name(s->shape));
    if (s->shape == SPREAD_KARY) {
        text_char(&t, ':');
        text_u64(&t, s->arity);
    }
    return t.len;
}
