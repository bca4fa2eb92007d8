/* SPDX-License-Identifier: MIT */
/* Expected lengths of steps. */
#include "wodi/history.h"

#include "base/assert.h"

enum { LINE_MAX_BYTES = 48 };
#define HISTORY_NS_MAX ((uint64_t)1 << 55) /* a year; keeps sums from overflowing */

static uint64_t blend(uint64_t old, uint64_t latest, uint64_t weight) {
    return old ? old - old / weight + latest / weight : latest;
}

void history_add(struct history *h, uint64_t step, uint64_t ns) {
    ns = ns == 0 ? 1 : ns > HISTORY_NS_MAX ? HISTORY_NS_MAX : ns;
    h->usual_ns = blend(h->usual_ns, ns, 16);
    if (step >= h->cap)
        return;
    while (h->end <= step)
        h->ns[h->end++] = 0;
    h->ns[step] = blend(h->ns[step], ns, 2);
}

uint64_t history_expect(const struct history *h, uint64_t step, bool *ret_own) {
    bool own = step < h->end && h->ns[step] > 0;
    if (ret_own)
        *ret_own = own;
    return own ? h->ns[step] : h->usual_ns;
}

static size_t put_number(char *out, uint64_t v) {
    char digits[20];
    size_t n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

size_t history_write(const struct history *h, uint32_t *at, char *out, size_t size) {
    size_t len = 0;
    for (; *at < h->end && size - len >= LINE_MAX_BYTES; ++*at) {
        if (h->ns[*at] == 0)
            continue;
        len += put_number(out + len, *at);
        out[len++] = ' ';
        len += put_number(out + len, h->ns[*at]);
        out[len++] = '\n';
    }
    return len;
}

/* Digits from *at on; false: there are none, or too many. */
static bool get_number(struct bytes text, size_t *at, uint64_t *ret) {
    size_t from = *at;
    *ret = 0;
    for (; *at < text.len && text.at[*at] >= '0' && text.at[*at] <= '9'; ++*at)
        *ret = *ret * 10 + (uint64_t)(text.at[*at] - '0');
    return *at > from && *at - from <= 18;
}

void history_read(struct history *h, struct bytes text) {
    for (size_t at = 0; at < text.len; at++) {
        uint64_t step, ns;
        bool good = get_number(text, &at, &step) && at < text.len && text.at[at++] == ' ' &&
                    get_number(text, &at, &ns) && at < text.len && text.at[at] == '\n';
        if (good && ns > 0)
            history_add(h, step, ns);
        while (at < text.len && text.at[at] != '\n')
            at++;
    }
}
