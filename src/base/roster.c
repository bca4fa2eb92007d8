/* SPDX-License-Identifier: MIT */
/*
 * Names of nodes: see roster.h.
 *
 * Folding needs no memory: members are told in the order of their numbers, and each joins the bracket before it if
 * it differs from the last in the same one number. Hosts that were listed in order get the shortest text; others
 * a longer one that means the same.
 */
#include "base/roster.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/hostlist.h"
#include "base/hostlist_name.h"
#include "base/text.h"

_Static_assert(ROSTER_NAME_MAX > ROSTER_PREFIX_MAX + 10, "a prefix and a number fit into a name");
_Static_assert(ROSTER_NAME_ROOM > ROSTER_PREFIX_MAX + 10, "and so do those of all numbers");

struct roster roster_plain(const char *prefix, uint32_t capacity) {
    struct roster r = {.capacity = capacity, .count = capacity};
    struct text t;
    text_init(&t, r.prefix, sizeof r.prefix);
    text_str(&t, prefix);
    return r;
}

/* ---- storage ---- */

static uint32_t finder_places(uint32_t capacity) {
    uint32_t places = 16;
    while (places < 2 * (uint64_t)capacity)
        places *= 2;
    return places;
}

static void carve(struct roster *r, struct arena *a) {
    r->places = ARENA_TAKE(a, uint32_t, r->capacity);
    r->finder = ARENA_TAKE(a, uint32_t, finder_places(r->capacity));
    r->text = ARENA_TAKE(a, char, (size_t)r->capacity *ROSTER_NAME_ROOM);
    r->finder_mask = finder_places(r->capacity) - 1;
}

size_t roster_bytes(uint32_t capacity) {
    struct roster r = {.capacity = capacity};
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(&r, &a);
    return align_up(arena_used(&a), 8);
}

void roster_init(struct roster *r, const char *prefix, uint32_t capacity, void *storage) {
    struct arena a;
    ASSERT(capacity <= NODESET_UNIVERSE_MAX / ROSTER_NAME_ROOM);
    *r = roster_plain(prefix, capacity);
    arena_init(&a, storage, roster_bytes(capacity));
    carve(r, &a);
}

/* ---- filling ---- */

static bool name_fits(struct bytes name) {
    if (name.len == 0 || name.len >= ROSTER_NAME_MAX || name.at[0] == '-')
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!hostlist_name_char((char)name.at[i]))
            return false;
    return true;
}

static const char *name_at(const struct roster *r, uint32_t node) {
    bool has = r->filled && node < r->capacity && r->places[node] != 0;
    return has ? r->text + r->places[node] - 1 : NULL;
}

/* Where the number of this name stands, or would. */
static uint32_t *finder_at(const struct roster *r, struct bytes name) {
    for (uint32_t i = (uint32_t)hash_once(name.at, name.len) & r->finder_mask;;
         i = (i + 1) & r->finder_mask) {
        uint32_t *at = &r->finder[i];
        if (*at == 0)
            return at;
        const char *other = name_at(r, *at - 1);
        if (strlen(other) == name.len && memcmp(other, name.at, name.len) == 0)
            return at;
    }
}

static void empty(struct roster *r) {
    ASSERT(r->finder != NULL);
    memset(r->places, 0, r->capacity * sizeof *r->places);
    memset(r->finder, 0, ((size_t)r->finder_mask + 1) * sizeof *r->finder);
    r->filled = true;
    r->count = 0;
    r->text_len = 0;
}

static int take(struct roster *r, uint32_t node, struct bytes name) {
    if (node >= r->capacity)
        return -ERANGE;
    if (!name_fits(name))
        return -EINVAL;
    if (name.len + 1 > (size_t)r->capacity * ROSTER_NAME_ROOM - r->text_len)
        return -ENOBUFS;
    uint32_t *at = finder_at(r, name);
    if (*at != 0)
        return -EEXIST;
    memcpy(r->text + r->text_len, name.at, name.len);
    r->text[r->text_len + name.len] = '\0';
    r->places[node] = r->text_len + 1;
    r->text_len += (uint32_t)name.len + 1;
    *at = node + 1;
    r->count++;
    return 0;
}

static size_t plain_name(const struct roster *r, uint32_t node, char *buf, size_t cap) {
    struct text t;
    text_init(&t, buf, cap);
    text_str(&t, r->prefix);
    text_u64(&t, node);
    return t.full;
}

/* The next of `names`, which begin at *at; empty if there is none. */
static struct bytes next_name(struct bytes names, size_t *at) {
    const uint8_t *from = names.at + *at;
    const uint8_t *end = *at < names.len ? memchr(from, '\0', names.len - *at) : NULL;
    if (end == NULL)
        return (struct bytes){0};
    *at += (size_t)(end - from) + 1;
    return bytes_of(from, (size_t)(end - from));
}

int roster_fill(struct roster *r, const struct nodeset *taken, struct bytes names,
                uint32_t *ret_bad) {
    char plain[ROSTER_NAME_MAX];
    uint32_t bad = 0;
    size_t at = 0;
    int error = 0;
    empty(r);
    NODESET_EACH (n, taken) {
        struct bytes name = names.len > 0 ? next_name(names, &at)
                                          : bytes_of(plain, plain_name(r, n, plain, sizeof plain));
        bad = n;
        error = take(r, n, name);
        if (error < 0)
            break;
    }
    if (error == 0 && at != names.len)
        error = -EINVAL;
    if (error < 0)
        empty(r);
    if (error < 0 && ret_bad != NULL)
        *ret_bad = bad;
    return error;
}

void roster_copy(struct roster *to, const struct roster *from) {
    memcpy(to->prefix, from->prefix, sizeof to->prefix);
    to->filled = false;
    to->count = to->capacity;
    if (!from->filled)
        return;
    empty(to);
    for (uint32_t i = 0; i < from->capacity && i < to->capacity; i++)
        if (name_at(from, i) != NULL)
            (void)take(to, i, bytes_from_str(name_at(from, i)));
}

/* ---- one name ---- */

bool roster_taken(const struct roster *r, uint32_t node) {
    return node < r->capacity && (!r->filled || r->places[node] != 0);
}

bool roster_same(const struct roster *a, const struct roster *b, uint32_t node) {
    char of_a[ROSTER_NAME_MAX], of_b[ROSTER_NAME_MAX];
    if (!roster_taken(a, node) || !roster_taken(b, node))
        return false;
    roster_name(a, node, of_a, sizeof of_a);
    roster_name(b, node, of_b, sizeof of_b);
    return strcmp(of_a, of_b) == 0;
}

size_t roster_name(const struct roster *r, uint32_t node, char *buf, size_t cap) {
    const char *name = name_at(r, node);
    struct text t;
    if (name == NULL)
        return plain_name(r, node, buf, cap);
    text_init(&t, buf, cap);
    text_str(&t, name);
    return t.full;
}

static bool find_plain(const struct roster *r, const char *name, uint32_t *ret) {
    size_t len = strlen(r->prefix);
    uint64_t value = 0;
    if (strncmp(name, r->prefix, len) != 0 || (name[len] == '0' && name[len + 1] != '\0'))
        return false;
    int digits = text_scan_u64(name + len, &value);
    if (digits <= 0 || name[len + (size_t)digits] != '\0' || value >= r->capacity)
        return false;
    *ret = (uint32_t)value;
    return true;
}

bool roster_find(const struct roster *r, const char *name, uint32_t *ret) {
    if (!r->filled)
        return find_plain(r, name, ret);
    const uint32_t *at = finder_at(r, bytes_from_str(name));
    if (*at == 0)
        return false;
    *ret = *at - 1;
    return true;
}

void roster_all(const struct roster *r, struct nodeset *set) {
    nodeset_clear(set);
    if (!r->filled && r->capacity > 0)
        nodeset_add_range(set, 0, r->capacity - 1);
    for (uint32_t i = 0; r->filled && i < r->capacity; i++)
        if (r->places[i] != 0)
            nodeset_add(set, i);
}

/* ---- folding ---- */

static size_t digits_at(const char *text) {
    size_t n = 0;
    while (text_is_digit(text[n]))
        n++;
    return n;
}

/* Do two names differ in one number only? Then where that begins. */
static bool differ_in_number(const char *a, const char *b, size_t *ret_start) {
    size_t at = 0;
    while (a[at] != '\0' && a[at] == b[at])
        at++;
    while (at > 0 && text_is_digit(a[at - 1]))
        at--;
    size_t in_a = digits_at(a + at), in_b = digits_at(b + at);
    if (in_a == 0 || in_b == 0 || in_a > HOSTLIST_DIGITS_MAX || in_b > HOSTLIST_DIGITS_MAX ||
        strcmp(a + at + in_a, b + at + in_b) != 0)
        return false;
    *ret_start = at;
    return true;
}

struct number {
    uint64_t value;
    unsigned digits;
};

static struct number number_at(const char *text) {
    struct number n = {0};
    n.digits = (unsigned)text_scan_u64(text, &n.value);
    return n;
}

static void write_number(struct text *out, struct number n) {
    text_u64_pad(out, n.value, n.digits);
}

/* Can it stand behind `last` in a range whose numbers have at least `width` digits? */
static bool continues(struct number last, struct number n, unsigned width) {
    unsigned natural = text_digits(n.value);
    return n.value == last.value + 1 && n.digits == (natural > width ? natural : width);
}

/* A bracket, as it is being written. */
struct bracket {
    struct text *out;
    size_t start; /* of the number, in each name */
    struct number first, last;
};

static void end_range(const struct bracket *b) {
    if (b->last.value == b->first.value)
        return;
    text_char(b->out, '-');
    write_number(b->out, b->last);
}

static void add_number(struct bracket *b, struct number n) {
    if (!continues(b->last, n, b->first.digits)) {
        end_range(b);
        text_char(b->out, ',');
        write_number(b->out, n);
        b->first = n;
    }
    b->last = n;
}

static uint32_t name_next(const struct roster *r, const struct nodeset *set, uint32_t node,
                          char buf[ROSTER_NAME_MAX]) {
    uint32_t next = nodeset_next(set, node);
    if (next != NODESET_NONE)
        roster_name(r, next, buf, ROSTER_NAME_MAX);
    return next;
}

/* Writes this member and those behind it that fit into one bracket; the first that does not. */
static uint32_t write_group(const struct roster *r, const struct nodeset *set, uint32_t node,
                            struct text *out) {
    char names[2][ROSTER_NAME_MAX], *last = names[0], *next = names[1];
    struct bracket b = {.out = out};
    size_t start;
    roster_name(r, node, last, ROSTER_NAME_MAX);
    uint32_t after = name_next(r, set, node, next);
    if (after == NODESET_NONE || !differ_in_number(last, next, &b.start)) {
        text_str(out, last);
        return after;
    }
    b.first = b.last = number_at(last + b.start);
    text_strn(out, last, b.start);
    text_char(out, '[');
    write_number(out, b.first);
    while (after != NODESET_NONE && differ_in_number(last, next, &start) && start == b.start) {
        char *spare = last;
        add_number(&b, number_at(next + start));
        last = next;
        next = spare;
        after = name_next(r, set, after, next);
    }
    end_range(&b);
    text_char(out, ']');
    text_str(out, last + b.start + b.last.digits);
    return after;
}

size_t roster_format(const struct roster *r, const struct nodeset *set, char *buf, size_t cap) {
    struct text t;
    if (!r->filled)
        return nodeset_format(set, r->prefix, buf, cap);
    text_init(&t, buf, cap);
    for (uint32_t n = nodeset_first(set); n != NODESET_NONE;) {
        if (t.full > 0)
            text_char(&t, ',');
        n = write_group(r, set, n, &t);
    }
    return t.full;
}
