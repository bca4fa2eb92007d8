/* SPDX-License-Identifier: MIT */
/* Which nodes a job needs: an expression over their attributes (traits.h).
 *
 *     MEM>=512MB, NIC=FAST
 *     (Arch == "HPPA" && OpSys == "HPUX9") && (Memory >= 32 && Dedicated == TRUE)
 *     not (role = service or 6.2 <= kernel)
 *
 * From what binds most to what binds least: comparisons; ! or not; && or and; || or or; the comma, which is another
 * "and". The attribute may stand on either side of a comparison. Values are words, or texts in quotes of either kind;
 * a flag alone asks whether it is TRUE. Versions are compared part by part, as many parts as are written: 6.1.55 is 6.1,
 * and is not above it.
 *
 * An expression is compiled once, against the attributes that there are: what cannot hold of any node because it is
 * mistyped is refused then, and pointed at. The program is for that edition of the table and no other. It has no
 * pointers, a fixed size, and neither reading nor running it recurses. */
#pragma once

#include "base/mistake.h"
#include "sched/traits.h"

enum {
    NEED_TERMS_MAX = 64,  /* comparisons */
    NEED_STEPS_MAX = 192, /* those, what joins them, and negations of all */
    NEED_DEPTH_MAX = 32,  /* results that wait for others */
    NEED_NEST_MAX = 64,   /* parentheses, negations and operators that are not done with */
    NEED_TEXTS_MAX = 512  /* of texts that are compared with, together */
};

struct need_term {
    uint8_t attribute;
    uint8_t op;    /* enum traits_operator */
    uint16_t text; /* where it begins, for attributes of texts */
    struct traits_value value;
};

struct need {
    uint64_t edition;
    uint16_t term_count, step_count, text_len;
    uint8_t steps[NEED_STEPS_MAX]; /* postfix: the number of a term, or what joins */
    struct need_term terms[NEED_TERMS_MAX];
    char texts[NEED_TEXTS_MAX]; /* in small letters, each with a NUL */
};

/* -EINVAL: `m` says what is wrong and where. An empty text is the need that all nodes meet. */
int need_compile(struct need *ret, const struct traits *t, const char *text, struct mistake *m);

/* Does the node meet it? */
bool need_match(const struct need *n, const struct traits *t, uint32_t node);

/* All nodes that do, into a set of as many nodes as the table has, or more. */
void need_select(const struct need *n, const struct traits *t, struct nodeset *out);

/* Written anew: names and values as they were defined, && for every "and", no parenthesis too many. Needs that differ
 * only in such things have the same text. With a NUL, cut to `cap`; the length of the whole. */
size_t need_format(const struct need *n, const struct traits *t, char *buf, size_t cap);

static inline bool need_is_current(const struct need *n, const struct traits *t) {
    return n->edition == t->edition;
}
