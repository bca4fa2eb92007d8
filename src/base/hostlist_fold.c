/* SPDX-License-Identifier: MIT */
/*
 * Folding host names: "n1", "n2", "db" become "n[1-2],db".
 *
 * Two names belong together if they are equal but for one number. So each number of each name
 * gives a frame (the name without that number); a hash table counts the names in each frame, every
 * name chooses its fullest frame (the last number wins a draw), and one sort by (frame, number)
 * brings the members of a frame together. Frames take the place of the first name that chose them.
 * Only the last few numbers of a name are tried: time and memory stay linear, but for the sort.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/hostlist.h"
#include "base/hostlist_name.h"
#include "base/text.h"

#define NUMBERS_MAX 4 /* tried of each name, from its end */

_Static_assert(HOSTLIST_NAME_MAX <= UINT8_MAX, "offsets in names are bytes");

/* Decimal digits in a name. */
struct number {
    uint8_t start, digits;
};

struct frame {
    uint32_t name;  /* one that has this frame, plus one; 0: the entry is free */
    uint32_t tag;   /* of the hash, to compare fewer names */
    uint32_t count; /* names that could choose it */
    uint32_t first; /* the first name that did, or n */
    uint8_t start;  /* of the number left out */
};

struct member {
    uint64_t value;
    uint32_t group; /* place in the output */
    uint32_t name;
    struct number number; /* no digits: a name on its own */
};

struct fold {
    const char *const *names;
    uint32_t n;
    uint32_t mask; /* entries of the table less one */
    struct frame *frames;
    struct member *members, *spare;
};

/* The last numbers of a name, the very last first; how many. */
static unsigned find_numbers(const char *name, size_t len, struct number numbers[NUMBERS_MAX]) {
    unsigned n = 0;
    size_t end = len;
    while (end > 0 && n < NUMBERS_MAX) {
        size_t start = end;
        while (start > 0 && text_is_digit(name[start - 1]))
            start--;
        size_t digits = end - start;
        if (digits > 0 && digits <= HOSTLIST_DIGITS_MAX && start <= UINT8_MAX)
            numbers[n++] = (struct number){.start = (uint8_t)start, .digits = (uint8_t)digits};
        end = digits > 0 ? start : end - 1;
    }
    return n;
}

static struct number number_at(const char *name, uint8_t start) {
    struct number number = {.start = start};
    while (text_is_digit(name[start + number.digits]))
        number.digits++;
    return number;
}

/* ---- scratch ---- */

static void carve(struct fold *f, struct arena *a, uint32_t n, uint32_t numbers) {
    uint32_t entries = 16;
    while (entries < numbers + numbers / 4)
        entries *= 2;
    f->mask = entries - 1;
    f->frames = ARENA_TAKE(a, struct frame, entries);
    f->members = ARENA_TAKE(a, struct member, n);
    f->spare = ARENA_TAKE(a, struct member, n);
}

static uint32_t count_numbers(const char *const *names, uint32_t n) {
    uint32_t count = 0;
    struct number numbers[NUMBERS_MAX];
    for (uint32_t i = 0; i < n; i++)
        count += find_numbers(names[i], strlen(names[i]), numbers);
    return count;
}

size_t hostlist_fold_bytes(const char *const *names, uint32_t n) {
    if (n > HOSTLIST_HOSTS_MAX)
        return 0; /* folding refuses before it needs any */
    struct fold f;
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(&f, &a, n, count_numbers(names, n));
    return arena_used(&a);
}

/* ---- frames ---- */

static uint32_t frame_hash(const char *name, size_t len, struct number number) {
    size_t after = (size_t)number.start + number.digits;
    struct hash h;
    hash_init(&h, 0);
    hash_bytes(&h, name, number.start);
    hash_bytes(&h, name + after, len - after);
    return (uint32_t)(hash_done(&h) >> 32);
}

static bool same_frame(const char *a, struct number in_a, const char *b, struct number in_b) {
    if (in_a.start != in_b.start || memcmp(a, b, in_a.start) != 0)
        return false;
    const char *rest_a = a + in_a.start + in_a.digits, *rest_b = b + in_b.start + in_b.digits;
    size_t len = strlen(rest_a);
    return len == strlen(rest_b) && memcmp(rest_a, rest_b, len) == 0;
}

/* The frame of name i around one of its numbers; a new one has count 0. */
static struct frame *frame_of(struct fold *f, uint32_t i, size_t len, struct number number) {
    const char *name = f->names[i];
    uint32_t tag = frame_hash(name, len, number);
    for (uint32_t at = tag & f->mask;; at = (at + 1) & f->mask) {
        struct frame *frame = &f->frames[at];
        if (frame->name == 0) {
            *frame =
                (struct frame){.name = i + 1, .tag = tag, .first = f->n, .start = number.start};
            return frame;
        }
        const char *other = f->names[frame->name - 1];
        if (frame->tag == tag && same_frame(name, number, other, number_at(other, frame->start)))
            return frame;
    }
}

static int check_name(const char *name, size_t len) {
    if (len > HOSTLIST_NAME_MAX)
        return -ENAMETOOLONG;
    if (len == 0 || name[0] == '-')
        return -EINVAL;
    for (size_t i = 0; i < len; i++)
        if (!hostlist_name_char(name[i]))
            return -EINVAL;
    return 0;
}

static int check_names(const char *const *names, uint32_t n, uint32_t *ret_bad) {
    int e = 0;
    uint32_t i = 0;
    if (n > HOSTLIST_HOSTS_MAX) {
        e = -E2BIG;
        i = HOSTLIST_HOSTS_MAX;
    }
    for (; e == 0 && i < n; i++) {
        e = check_name(names[i], strlen(names[i]));
        if (e < 0)
            break;
    }
    if (e < 0 && ret_bad)
        *ret_bad = i;
    return e;
}

static void count_frames(struct fold *f) {
    memset(f->frames, 0, ((size_t)f->mask + 1) * sizeof f->frames[0]);
    for (uint32_t i = 0; i < f->n; i++) {
        struct number numbers[NUMBERS_MAX];
        size_t len = strlen(f->names[i]);
        unsigned n = find_numbers(f->names[i], len, numbers);
        for (unsigned k = 0; k < n; k++)
            frame_of(f, i, len, numbers[k])->count++;
    }
}

static struct member choose(struct fold *f, uint32_t i) {
    struct number numbers[NUMBERS_MAX], chosen = {0};
    struct frame *best = NULL;
    size_t len = strlen(f->names[i]);
    unsigned n = find_numbers(f->names[i], len, numbers);
    for (unsigned k = 0; k < n; k++) {
        struct frame *frame = frame_of(f, i, len, numbers[k]);
        if (!best || frame->count > best->count) {
            best = frame;
            chosen = numbers[k];
        }
    }
    struct member m = {.group = i, .name = i};
    if (!best || best->count == 1)
        return m;
    if (best->first == f->n)
        best->first = i;
    m.group = best->first;
    m.number = chosen;
    int digits = text_scan_u64(f->names[i] + chosen.start, &m.value);
    ASSERT(digits == chosen.digits);
    return m;
}

/* ---- sorting ---- */

static bool before(const struct member *a, const struct member *b) {
    if (a->group != b->group)
        return a->group < b->group;
    if (a->value != b->value)
        return a->value < b->value;
    return a->number.digits < b->number.digits;
}

/* Merges from[low, mid) and from[mid, high) into the same places of `to`. */
static void merge(struct member *to, const struct member *from, uint32_t low, uint32_t mid,
                  uint32_t high) {
    if (mid >= high || !before(&from[mid], &from[mid - 1])) {
        memcpy(to + low, from + low, (high - low) * sizeof to[0]);
        return;
    }
    uint32_t a = low, b = mid;
    for (uint32_t i = low; i < high; i++) {
        bool take_b = a == mid || (b < high && before(&from[b], &from[a]));
        to[i] = take_b ? from[b++] : from[a++];
    }
}

/* Stable; the result is in `members`. */
static void sort_members(struct fold *f) {
    for (uint32_t width = 1; width < f->n; width *= 2) {
        for (uint32_t low = 0; low < f->n; low += 2 * width) {
            uint32_t mid = low + width < f->n ? low + width : f->n;
            uint32_t high = mid + width < f->n ? mid + width : f->n;
            merge(f->spare, f->members, low, mid, high);
        }
        struct member *sorted = f->spare;
        f->spare = f->members;
        f->members = sorted;
    }
}

/* ---- writing ---- */

/* Can `next` stand behind `last` in a range that is padded to `width`? */
static bool continues(const struct member *last, const struct member *next, unsigned width) {
    unsigned natural = text_digits(next->value);
    return next->group == last->group && next->value == last->value + 1 &&
           next->number.digits == (natural > width ? natural : width);
}

static void write_number(struct text *t, const struct member *m) {
    text_u64_pad(t, m->value, m->number.digits);
}

/* The members [from, to) of one frame. */
static void write_group(const struct fold *f, struct text *t, uint32_t from, uint32_t to) {
    const struct member *m = f->members;
    const char *name = f->names[m[from].name];
    if (to - from == 1) {
        text_str(t, name);
        return;
    }
    text_strn(t, name, m[from].number.start);
    text_char(t, '[');
    for (uint32_t i = from, last; i < to; i = last + 1) {
        last = i;
        while (last + 1 < to && continues(&m[last], &m[last + 1], m[i].number.digits))
            last++;
        if (i > from)
            text_char(t, ',');
        write_number(t, &m[i]);
        if (last > i) {
            text_char(t, '-');
            write_number(t, &m[last]);
        }
    }
    text_char(t, ']');
    text_str(t, name + m[from].number.start + m[from].number.digits);
}

static void write_groups(const struct fold *f, struct text *t) {
    for (uint32_t from = 0, to; from < f->n; from = to) {
        to = from + 1;
        while (to < f->n && f->members[to].group == f->members[from].group)
            to++;
        if (from > 0)
            text_char(t, ',');
        write_group(f, t, from, to);
    }
}

int hostlist_fold(const char *const *names, uint32_t n, void *scratch, size_t scratch_len,
                  char *buf, size_t cap, size_t *ret_len, uint32_t *ret_bad) {
    int e = check_names(names, n, ret_bad);
    if (e < 0)
        return e;
    struct fold f = {.names = names, .n = n};
    struct arena a;
    arena_init(&a, scratch, scratch_len);
    carve(&f, &a, n, count_numbers(names, n));
    ASSERT(f.frames);
    count_frames(&f);
    for (uint32_t i = 0; i < n; i++)
        f.members[i] = choose(&f, i);
    sort_members(&f);
    struct text t;
    text_init(&t, buf, cap);
    write_groups(&f, &t);
    *ret_len = t.full;
    return 0;
}
