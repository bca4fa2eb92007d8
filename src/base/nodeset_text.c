/* SPDX-License-Identifier: MIT */
/*
 * Node sets as text: "n[0-3,7]".
 *
 * The reader is total and runs twice, first without a set to fill: a text with a mistake at its end
 * changes nothing. Grammar: item {"," item}; item = prefix (number | "[" range {"," range} "]");
 * range = number ["-" number].
 */
#include <errno.h>
#include <string.h>

#include "base/nodeset.h"
#include "base/text.h"

struct reader {
    const char *text;
    size_t at;
    uint32_t universe;
    struct nodeset *into; /* NULL: only look */
};

static int read_number(struct reader *r, uint32_t *ret) {
    uint64_t v = 0;
    int n = text_scan_u64(r->text + r->at, &v);
    if (n == 0)
        return -EINVAL;
    if (n < 0 || v >= r->universe)
        return -ERANGE;
    r->at += (size_t)n;
    *ret = (uint32_t)v;
    return 0;
}

static int read_range(struct reader *r) {
    uint32_t first, last;
    int e = read_number(r, &first);
    if (e < 0)
        return e;
    last = first;
    if (r->text[r->at] == '-') {
        size_t second = ++r->at;
        e = read_number(r, &last);
        if (e < 0)
            return e;
        if (last < first) {
            r->at = second;
            return -EINVAL;
        }
    }
    if (r->into)
        nodeset_add_range(r->into, first, last);
    return 0;
}

static int read_bracket(struct reader *r) {
    for (;;) {
        int e = read_range(r);
        if (e < 0)
            return e;
        if (r->text[r->at] != ',')
            break;
        r->at++;
    }
    if (r->text[r->at] != ']')
        return -EINVAL;
    r->at++;
    return 0;
}

static int read_item(struct reader *r, const char *prefix) {
    for (size_t i = 0; prefix[i] != '\0'; i++, r->at++)
        if (r->text[r->at] != prefix[i])
            return -EINVAL;
    if (r->text[r->at] == '[') {
        r->at++;
        return read_bracket(r);
    }
    uint32_t n;
    int e = read_number(r, &n);
    if (e == 0 && r->into)
        nodeset_add(r->into, n);
    return e;
}

static int read_list(struct reader *r, const char *prefix) {
    if (r->text[0] == '\0')
        return 0;
    for (;;) {
        int e = read_item(r, prefix);
        if (e < 0)
            return e;
        if (r->text[r->at] == '\0')
            return 0;
        if (r->text[r->at] != ',')
            return -EINVAL;
        r->at++;
    }
}

int nodeset_parse(struct nodeset *s, const char *text, const char *prefix, size_t *ret_where) {
    struct reader look = {.text = text, .universe = s->universe};
    int e = read_list(&look, prefix);
    if (e < 0) {
        if (ret_where)
            *ret_where = look.at;
        return e;
    }
    nodeset_clear(s);
    struct reader fill = {.text = text, .universe = s->universe, .into = s};
    return read_list(&fill, prefix);
}

size_t nodeset_format(const struct nodeset *s, const char *prefix, char *buf, size_t cap) {
    struct text t;
    text_init(&t, buf, cap);
    struct noderange range;
    if (!nodeset_next_range(s, 0, &range))
        return 0;
    uint32_t last = nodeset_last(s);
    text_str(&t, prefix);
    if (s->count > 1)
        text_char(&t, '[');
    for (bool more = true; more; more = nodeset_next_range(s, range.last + 1, &range)) {
        text_u64(&t, range.first);
        if (range.last > range.first) {
            text_char(&t, '-');
            text_u64(&t, range.last);
        }
        if (range.last < last)
            text_char(&t, ',');
    }
    if (s->count > 1)
        text_char(&t, ']');
    return t.full;
}
