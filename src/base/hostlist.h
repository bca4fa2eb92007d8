/* SPDX-License-Identifier: MIT */
/*
 * Folded lists of host names: "n[0-63]", "n[001-128,200]", "rack[1-4]n[0-31]", "a,b,db-primary".
 *
 * Items are separated by commas; an item with several brackets stands for every combination, the
 * rightmost running fastest. A range keeps the zero padding of its first number. Names consist of
 * letters, digits and . _ - : @ % + and do not begin with '-', so that none can pass for an option
 * of a remote shell. "" is the empty list. Nothing is allocated: an iterator walks the text, which
 * must stay; folding works in the caller's scratch memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HOSTLIST_HOSTS_MAX    1000000
#define HOSTLIST_NAME_MAX     255 /* characters in a name */
#define HOSTLIST_BRACKETS_MAX 8   /* in one item */
#define HOSTLIST_DIGITS_MAX   18  /* in a bracket's number, padding included */

struct hostlist_wheel {
    size_t open;  /* offset behind '[' */
    size_t close; /* offset behind ']' */
    size_t range; /* offset of the current range */
    uint64_t value, last;
    unsigned width; /* at least so many digits */
};

struct hostlist {
    const char *text;
    size_t item; /* offset of the current item, of the NUL at the end */
    unsigned wheels;
    struct hostlist_wheel wheel[HOSTLIST_BRACKETS_MAX];
};

/*
 * Is this a host list? 0, with the number of names in *ret_count (if not NULL); or -EINVAL for bad
 * syntax, -E2BIG for too many hosts, -ENAMETOOLONG, -ERANGE for too large a number: then *ret_where
 * is the offset of the offending character and *ret_reason says in a few words what is wrong with
 * it (either may be NULL).
 */
int hostlist_check(const char *text, uint32_t *ret_count, size_t *ret_where,
                   const char **ret_reason);

/* Begins an expansion; errors as hostlist_check. */
int hostlist_init(struct hostlist *it, const char *text);

/* 1 and the next name; 0 at the end; -ENOSPC if `cap` is too small (the name is not skipped). */
int hostlist_next(struct hostlist *it, char *buf, size_t cap);

/* Name number n, counted from 0; -ENOENT beyond the last, -ENOSPC, or as hostlist_check. */
int hostlist_nth(const char *text, uint32_t n, char *buf, size_t cap);

/* Scratch memory (aligned to 8) that folding these names takes. */
size_t hostlist_fold_bytes(const char *const *names, uint32_t n);

/*
 * Folds names that differ in one number: each joins the largest group it could, groups stand where
 * their first name stood, numbers inside are sorted, padding and repeated names are kept. The text
 * is cut to `cap`; *ret_len is the length of the whole. -EINVAL or -ENAMETOOLONG for a bad name,
 * -E2BIG for too many; *ret_bad (if not NULL) is then its place in `names`.
 */
int hostlist_fold(const char *const *names, uint32_t n, void *scratch, size_t scratch_len,
                  char *buf, size_t cap, size_t *ret_len, uint32_t *ret_bad);
