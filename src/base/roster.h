/* SPDX-License-Identifier: MIT */
/*
 * Names of nodes: a prefix and the number, or a name for each number that is taken.
 *
 * Of a roster that was never filled all numbers are taken, and a name is the prefix and the number. One that was
 * filled knows which numbers are taken, and by whom; the others are vacant. Whoever asks for the name of a vacant
 * number, or of one beyond all, hears the prefix and the number: there may be events of somebody who is gone.
 * Names are those of hosts, as in hostlist.h. The storage is the caller's; without any a roster cannot be filled.
 */
#pragma once

#include "base/bytes.h"
#include "base/nodeset.h"

enum {
    ROSTER_PREFIX_MAX = 16,
    ROSTER_NAME_MAX = 128, /* of one name, with its NUL */
    ROSTER_NAME_ROOM = 64  /* of all names together: so many bytes for each number */
};

struct roster {
    char prefix[ROSTER_PREFIX_MAX];
    uint32_t capacity; /* numbers are below this */
    uint32_t count;    /* of taken ones */
    bool filled;
    uint32_t *places; /* by number: one more than where its name begins; 0: it is vacant */
    char *text;
    uint32_t text_len;
    uint32_t *finder; /* by the hash of a name: one more than its number; 0: none */
    uint32_t finder_mask;
};

/* One without storage, of which all numbers are taken. The prefix is cut if it is too long. */
struct roster roster_plain(const char *prefix, uint32_t capacity);

/* The same with storage (aligned to 8): it can be filled. */
size_t roster_bytes(uint32_t capacity);
void roster_init(struct roster *r, const char *prefix, uint32_t capacity, void *storage);

/*
 * These numbers are taken from now on, and no others. `names`: one for each in ascending order, every one with a NUL
 * behind it; empty: the prefix and the number. -EINVAL: that cannot be a name, or there are not as many as numbers;
 * -EEXIST: another has it; -ERANGE: a number beyond all; -ENOBUFS: too much text. Then all are vacant, and *ret_bad
 * (if not NULL) is the number.
 */
int roster_fill(struct roster *r, const struct nodeset *taken, struct bytes names,
                uint32_t *ret_bad);

/* As the other is, as far as numbers go; `to` has storage if `from` was filled. */
void roster_copy(struct roster *to, const struct roster *from);

bool roster_taken(const struct roster *r, uint32_t node);
/* Is it taken in both, by the same name? */
bool roster_same(const struct roster *a, const struct roster *b, uint32_t node);

static inline uint32_t roster_count(const struct roster *r) {
    return r->count;
}

/* With a NUL, cut to `cap`; the length of the whole. */
size_t roster_name(const struct roster *r, uint32_t node, char *buf, size_t cap);

/* The number that has this name; false: none has. */
bool roster_find(const struct roster *r, const char *name, uint32_t *ret);

/* Those that are taken, into a set whose universe has all numbers. */
void roster_all(const struct roster *r, struct nodeset *set);

/*
 * Names of a set, folded as far as neighbours differ in one number: "h[0-31],gate". With a NUL, cut to `cap`; the
 * length of the whole.
 */
size_t roster_format(const struct roster *r, const struct nodeset *set, char *buf, size_t cap);
