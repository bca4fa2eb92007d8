/* SPDX-License-Identifier: MIT */
/*
 * Host lists: checking and expanding; folding is in hostlist_fold.c.
 *
 * hostlist_check is the only reader of foreign text: it is total, and names the offending
 * character. The iterator walks checked text only, so it need not look for mistakes again; it is an
 * odometer whose wheels are the brackets of one item.
 */
#include "base/hostlist.h"

#include <errno.h>
#include <stdbool.h>

#include "base/assert.h"
#include "base/hostlist_name.h"
#include "base/text.h"

struct range {
    uint64_t first, last;
    unsigned width;
    size_t end; /* offset behind it */
};

struct checker {
    const char *text;
    size_t at;
    const char *reason;
};

static int refuse(struct checker *c, size_t where, int error, const char *reason) {
    c->at = where;
    c->reason = reason;
    return error;
}

/* Reads checked text: "7", "0-63", "001-128" at `at`. */
static struct range range_at(const char *text, size_t at) {
    struct range r = {0};
    int n = text_scan_u64(text + at, &r.first);
    ASSERT(n > 0);
    r.end = at + (size_t)n;
    r.width = (unsigned)n;
    r.last = r.first;
    if (text[r.end] == '-') {
        n = text_scan_u64(text + r.end + 1, &r.last);
        ASSERT(n > 0);
        r.end += 1 + (size_t)n;
    }
    return r;
}

/* ---- checking ---- */

static int check_number(struct checker *c, size_t at, unsigned *ret_digits) {
    unsigned n = 0;
    while (text_is_digit(c->text[at + n])) {
        if (n == HOSTLIST_DIGITS_MAX)
            return refuse(c, at, -ERANGE, "number too large");
        n++;
    }
    if (n > 0) {
        *ret_digits = n;
        return 0;
    }
    if (c->text[at] == '\0')
        return refuse(c, at, -EINVAL, "unclosed bracket");
    return refuse(c, at, -EINVAL, "number expected");
}

/* One range inside brackets. */
static int check_range(struct checker *c, struct range *ret) {
    size_t at = c->at;
    unsigned first_digits, last_digits;
    int e = check_number(c, at, &first_digits);
    if (e < 0)
        return e;
    size_t second = at + first_digits + 1;
    if (c->text[second - 1] == '-') {
        e = check_number(c, second, &last_digits);
        if (e < 0)
            return e;
        if (c->text[second] == '0' && last_digits > 1 && last_digits != first_digits)
            return refuse(c, second, -EINVAL, "both ends of a range need the same padding");
    }
    struct range r = range_at(c->text, at);
    if (r.last < r.first)
        return refuse(c, second, -EINVAL, "range runs backwards");
    if (r.last - r.first >= HOSTLIST_HOSTS_MAX)
        return refuse(c, at, -E2BIG, "too many hosts");
    c->at = r.end;
    *ret = r;
    return 0;
}

/* From behind '[' to behind ']': how many numbers, and how many digits the longest has. */
static int check_bracket(struct checker *c, uint64_t *ret_count, size_t *ret_digits) {
    uint64_t count = 0;
    size_t digits = 0;
    for (;;) {
        struct range r;
        size_t start = c->at;
        int e = check_range(c, &r);
        if (e < 0)
            return e;
        count += r.last - r.first + 1;
        if (count > HOSTLIST_HOSTS_MAX)
            return refuse(c, start, -E2BIG, "too many hosts");
        unsigned longest = text_digits(r.last) > r.width ? text_digits(r.last) : r.width;
        digits = longest > digits ? longest : digits;
        if (c->text[c->at] != ',')
            break;
        c->at++;
    }
    if (c->text[c->at] == '\0')
        return refuse(c, c->at, -EINVAL, "unclosed bracket");
    if (c->text[c->at] != ']')
        return refuse(c, c->at, -EINVAL, "comma or closing bracket expected");
    c->at++;
    *ret_count = count;
    *ret_digits = digits;
    return 0;
}

/* One character of an item that is not in brackets. */
static int check_char(struct checker *c, size_t item) {
    char ch = c->text[c->at];
    if (ch == ']')
        return refuse(c, c->at, -EINVAL, "bracket was not opened");
    if (!hostlist_name_char(ch))
        return refuse(c, c->at, -EINVAL, "character not allowed in a host name");
    if (ch == '-' && c->at == item)
        return refuse(c, c->at, -EINVAL, "host name begins with a dash");
    c->at++;
    return 0;
}

/* From the start of an item to its comma or the end: how many names it stands for. */
static int check_item(struct checker *c, uint64_t *ret_count) {
    size_t item = c->at, len = 0;
    unsigned brackets = 0;
    uint64_t count = 1;
    while (c->text[c->at] != '\0' && c->text[c->at] != ',') {
        size_t start = c->at, digits = 1;
        int e;
        if (c->text[c->at] == '[') {
            if (++brackets > HOSTLIST_BRACKETS_MAX)
                return refuse(c, start, -EINVAL, "too many brackets in one name");
            uint64_t numbers = 1;
            c->at++;
            e = check_bracket(c, &numbers, &digits);
            count *= numbers; /* at most 10^12: both factors are checked */
            if (e == 0 && count > HOSTLIST_HOSTS_MAX)
                return refuse(c, start, -E2BIG, "too many hosts");
        } else {
            e = check_char(c, item);
        }
        if (e < 0)
            return e;
        len += digits;
        if (len > HOSTLIST_NAME_MAX)
            return refuse(c, start, -ENAMETOOLONG, "host name too long");
    }
    if (c->at == item)
        return refuse(c, item, -EINVAL, "empty host name");
    *ret_count = count;
    return 0;
}

static int check_list(struct checker *c, uint32_t *ret_count) {
    uint64_t total = 0;
    while (c->text[c->at] != '\0') {
        uint64_t count;
        size_t item = c->at;
        int e = check_item(c, &count);
        if (e < 0)
            return e;
        total += count;
        if (total > HOSTLIST_HOSTS_MAX)
            return refuse(c, item, -E2BIG, "too many hosts");
        if (c->text[c->at] == ',') {
            c->at++;
            if (c->text[c->at] == '\0')
                return refuse(c, c->at, -EINVAL, "empty host name");
        }
    }
    *ret_count = (uint32_t)total;
    return 0;
}

int hostlist_check(const char *text, uint32_t *ret_count, size_t *ret_where,
                   const char **ret_reason) {
    struct checker c = {.text = text};
    uint32_t count;
    int e = check_list(&c, &count);
    if (e == 0) {
        if (ret_count)
            *ret_count = count;
        return 0;
    }
    if (ret_where)
        *ret_where = c.at;
    if (ret_reason)
        *ret_reason = c.reason;
    return e;
}

/* ---- expanding ---- */

static void wheel_to(struct hostlist *it, struct hostlist_wheel *w, size_t range) {
    struct range r = range_at(it->text, range);
    w->range = range;
    w->value = r.first;
    w->last = r.last;
    w->width = r.width;
}

/* Sets the wheels of the item at it->item to their first numbers. */
static void open_item(struct hostlist *it) {
    it->wheels = 0;
    for (size_t at = it->item; it->text[at] != '\0'; at++) {
        if (it->text[at] == ',')
            return;
        if (it->text[at] != '[')
            continue;
        ASSERT(it->wheels < HOSTLIST_BRACKETS_MAX);
        struct hostlist_wheel *w = &it->wheel[it->wheels++];
        w->open = at + 1;
        wheel_to(it, w, w->open);
        while (it->text[at] != ']')
            at++;
        w->close = at + 1;
    }
}

static void next_item(struct hostlist *it) {
    size_t at = it->item;
    if (it->wheels > 0)
        at = it->wheel[it->wheels - 1].close;
    while (it->text[at] != '\0' && it->text[at] != ',')
        at++;
    it->item = it->text[at] == ',' ? at + 1 : at;
    open_item(it);
}

/* Turns one wheel; false if it went round. */
static bool turn(struct hostlist *it, struct hostlist_wheel *w) {
    if (w->value < w->last) {
        w->value++;
        return true;
    }
    size_t end = range_at(it->text, w->range).end;
    bool more = it->text[end] == ',';
    wheel_to(it, w, more ? end + 1 : w->open);
    return more;
}

/* How often the last wheel of the item can still turn within its range: skipped in one go. */
static uint64_t skippable(const struct hostlist *it) {
    if (it->wheels == 0)
        return 0;
    const struct hostlist_wheel *w = &it->wheel[it->wheels - 1];
    return w->last - w->value;
}

static void advance(struct hostlist *it) {
    for (unsigned i = it->wheels; i > 0; i--)
        if (turn(it, &it->wheel[i - 1]))
            return;
    next_item(it);
}

static int write_name(const struct hostlist *it, char *buf, size_t cap) {
    struct text t;
    text_init(&t, buf, cap);
    size_t at = it->item;
    for (unsigned i = 0; i < it->wheels; i++) {
        const struct hostlist_wheel *w = &it->wheel[i];
        text_strn(&t, it->text + at, w->open - 1 - at);
        text_u64_pad(&t, w->value, w->width);
        at = w->close;
    }
    size_t end = at;
    while (it->text[end] != '\0' && it->text[end] != ',')
        end++;
    text_strn(&t, it->text + at, end - at);
    return t.cut ? -ENOSPC : 1;
}

int hostlist_init(struct hostlist *it, const char *text) {
    int e = hostlist_check(text, NULL, NULL, NULL);
    if (e < 0)
        return e;
    it->text = text;
    it->item = 0;
    open_item(it);
    return 0;
}

int hostlist_next(struct hostlist *it, char *buf, size_t cap) {
    if (it->text[it->item] == '\0')
        return 0;
    int r = write_name(it, buf, cap);
    if (r > 0)
        advance(it);
    return r;
}

int hostlist_nth(const char *text, uint32_t n, char *buf, size_t cap) {
    struct hostlist it;
    int e = hostlist_init(&it, text);
    if (e < 0)
        return e;
    uint64_t left = n;
    while (left > 0 && text[it.item] != '\0') {
        uint64_t jump = skippable(&it) < left ? skippable(&it) : left;
        if (jump > 0)
            it.wheel[it.wheels - 1].value += jump;
        left -= jump;
        if (left > 0) {
            advance(&it);
            left--;
        }
    }
    if (text[it.item] == '\0')
        return -ENOENT;
    int r = write_name(&it, buf, cap);
    return r < 0 ? r : 0;
}
