/* SPDX-License-Identifier: MIT */
/* Sizes of jobs: reading the triple, making it whole, sharing processes out; see size.h.
 *
 * Every refusal does the arithmetic for the user: what was asked for, what would come out, what
 * there is. Parts are at most 2^30, so that products of two fit into 64 bits. */
#include "sched/size.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"

#define QUOTE_MAX 32 /* characters of the user's text that a reason repeats */

static const char *const part_names[SIZE_PARTS] = {"nodes", "processes per node", "processes"};

static uint32_t divide_up(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

/* ---- words ---- */

/* "1 node", "4 nodes" */
static void say_count(struct text *t, uint64_t n, const char *one, const char *many) {
    text_u64(t, n);
    text_char(t, ' ');
    text_str(t, n == 1 ? one : many);
}

static void say_nodes(struct text *t, uint64_t n) {
    say_count(t, n, "node", "nodes");
}

static void say_processes(struct text *t, uint64_t n) {
    say_count(t, n, "process", "processes");
}

/* What the user wrote, short and without anything that a terminal would obey. */
static void say_quoted(struct text *t, const char *at, size_t len) {
    text_char(t, '\'');
    for (size_t i = 0; i < len && i < QUOTE_MAX; i++)
        text_char(t, at[i] >= ' ' && at[i] <= '~' ? at[i] : '?');
    text_str(t, len > QUOTE_MAX ? "...'" : "'");
}

/* ---- reading ---- */

static int refuse_part(enum size_part part, const char *at, size_t len, int error, const char *what,
                       char *why, size_t cap) {
    struct text t;
    text_init(&t, why, cap);
    text_str(&t, part_names[part]);
    text_str(&t, ": ");
    say_quoted(&t, at, len);
    text_str(&t, what);
    return error;
}

/* A number that fills all `len` characters. */
static int read_part(enum size_part part, const char *at, size_t len, uint32_t *ret, char *why,
                     size_t cap) {
    uint64_t v;
    for (size_t i = 0; i < len; i++)
        if (!text_is_digit(at[i]))
            return refuse_part(part, at, len, -EINVAL, " is not a number", why, cap);
    if (len == 0)
        return refuse_part(part, at, len, -EINVAL, " is not a number", why, cap);
    if (text_scan_u64(at, &v) < 0 || v > SIZE_PART_MAX)
        return refuse_part(part, at, len, -ERANGE, " is too large (at most 1073741824)", why, cap);
    if (v == 0)
        return refuse_part(part, at, len, -EINVAL, " must be at least 1", why, cap);
    *ret = (uint32_t)v;
    return 0;
}

static void set_part(struct size *s, enum size_part part, uint32_t v) {
    if (part == SIZE_NODES)
        s->nodes = v;
    else if (part == SIZE_PPN)
        s->ppn = v;
    else
        s->procs = v;
}

static int refuse_text(const char *text, const char *what, char *why, size_t cap) {
    struct text t;
    text_init(&t, why, cap);
    say_quoted(&t, text, strlen(text));
    text_str(&t, what);
    return -EINVAL;
}

int size_parse(const char *text, struct size *ret, char *why, size_t cap) {
    struct size s = {0};
    bool any = false;
    const char *at = text;
    for (unsigned part = 0;; part++) {
        if (part == SIZE_PARTS)
            return refuse_text(text, " has more than three parts (nodes:ppn:procs)", why, cap);
        const char *end = strchr(at, ':');
        size_t len = end ? (size_t)(end - at) : strlen(at);
        if (len > 0) {
            uint32_t v;
            int r = read_part(part, at, len, &v, why, cap);
            if (r < 0)
                return r;
            set_part(&s, part, v);
            any = true;
        }
        if (!end)
            break;
        at = end + 1;
    }
    if (!any)
        return refuse_text(text, " says no size (nodes:ppn:procs)", why, cap);
    *ret = s;
    return 0;
}

int size_parse_part(const char *text, enum size_part part, struct size *ret, char *why,
                    size_t cap) {
    uint32_t v;
    int r = read_part(part, text, strlen(text), &v, why, cap);
    if (r < 0)
        return r;
    *ret = (struct size){0};
    set_part(ret, part, v);
    return 0;
}

/* ---- putting together ---- */

static int merge_part(uint32_t *into, uint32_t more, enum size_part part, char *why, size_t cap) {
    if (*into == 0)
        *into = more;
    if (more == 0 || *into == more)
        return 0;
    struct text t;
    text_init(&t, why, cap);
    text_str(&t, part_names[part]);
    text_str(&t, " given twice: ");
    text_u64(&t, *into);
    text_str(&t, " and ");
    text_u64(&t, more);
    return -EINVAL;
}

int size_merge(struct size *s, const struct size *more, char *why, size_t cap) {
    struct size sum = *s;
    int r = merge_part(&sum.nodes, more->nodes, SIZE_NODES, why, cap);
    if (r == 0)
        r = merge_part(&sum.ppn, more->ppn, SIZE_PPN, why, cap);
    if (r == 0)
        r = merge_part(&sum.procs, more->procs, SIZE_PROCS, why, cap);
    if (r == 0)
        *s = sum;
    return r;
}

/* "4 nodes x 2 = 8 processes, not 9" */
static int refuse_product(const struct size *s, char *why, size_t cap) {
    struct text t;
    text_init(&t, why, cap);
    say_nodes(&t, s->nodes);
    text_str(&t, " x ");
    text_u64(&t, s->ppn);
    text_str(&t, " = ");
    say_processes(&t, (uint64_t)s->nodes * s->ppn);
    text_str(&t, ", not ");
    text_u64(&t, s->procs);
    return -EINVAL;
}

static int refuse_idle(const struct size *s, char *why, size_t cap) {
    struct text t;
    text_init(&t, why, cap);
    say_processes(&t, s->procs);
    text_str(&t, s->procs == 1 ? " is too few for " : " are too few for ");
    say_nodes(&t, s->nodes);
    text_str(&t, ": each gets at least one");
    return -EINVAL;
}

static int refuse_overflow(const struct size *s, char *why, size_t cap) {
    struct text t;
    text_init(&t, why, cap);
    say_nodes(&t, s->nodes);
    text_str(&t, " x ");
    text_u64(&t, s->ppn);
    text_str(&t, " = ");
    say_processes(&t, (uint64_t)s->nodes * s->ppn);
    text_str(&t, ": too large (at most 1073741824)");
    return -E2BIG;
}

/* "needs 128 processors; the cluster has 64" */
static int refuse_large(uint64_t need, uint64_t have, const char *one, const char *many,
                        const char *who, char *why, size_t cap) {
    struct text t;
    text_init(&t, why, cap);
    text_str(&t, "needs ");
    say_count(&t, need, one, many);
    text_str(&t, "; ");
    text_str(&t, who);
    text_char(&t, ' ');
    text_u64(&t, have);
    return -E2BIG;
}

/* ---- making whole ---- */

/* The missing parts; what comes out may still be too large for the cluster. */
static int fill(struct size *s, uint32_t pes, char *why, size_t cap) {
    if (s->nodes && s->ppn && s->procs && (uint64_t)s->nodes * s->ppn != s->procs)
        return refuse_product(s, why, cap);
    if (!s->procs) {
        s->nodes = s->nodes ? s->nodes : 1;
        s->ppn = s->ppn ? s->ppn : 1;
        if ((uint64_t)s->nodes * s->ppn > SIZE_PART_MAX)
            return refuse_overflow(s, why, cap);
        s->procs = s->nodes * s->ppn;
    }
    if (!s->nodes)
        s->nodes = divide_up(s->procs, s->ppn ? s->ppn : pes);
    if (s->procs < s->nodes)
        return refuse_idle(s, why, cap);
    s->ppn = divide_up(s->procs, s->nodes);
    return 0;
}

int size_resolve(struct size *s, uint32_t cluster_nodes, uint32_t pes_per_node, uint32_t most,
                 char *why, size_t cap) {
    struct size whole = *s;
    uint64_t have = most == 0 ? UINT64_MAX : (uint64_t)cluster_nodes * most;
    int r = fill(&whole, pes_per_node ? pes_per_node : 1, why, cap);
    if (r < 0)
        return r;
    if (most == 0 && !s->nodes && !s->ppn && whole.nodes > cluster_nodes && cluster_nodes > 0) {
        whole.nodes = cluster_nodes; /* on fewer and wider ones, if they are */
        whole.ppn = divide_up(whole.procs, whole.nodes);
    }
    /* Speak of what the user has spoken of: nodes if they were asked for, else processors. */
    if (s->nodes && whole.nodes > cluster_nodes)
        return refuse_large(whole.nodes, cluster_nodes, "node", "nodes", "the cluster has", why,
                            cap);
    if (whole.procs > have)
        return refuse_large(whole.procs, have, "processor", "processors", "the cluster has", why,
                            cap);
    if (most != 0 && whole.ppn > most)
        return refuse_large(whole.ppn, most, "processor per node", "processors per node",
                            "the nodes have", why, cap);
    if (whole.nodes > cluster_nodes)
        return refuse_large(whole.nodes, cluster_nodes, "node", "nodes", "the cluster has", why,
                            cap);
    *s = whole;
    return 0;
}

bool size_is_whole(const struct size *s) {
    return s->nodes >= 1 && s->procs >= s->nodes && s->procs <= SIZE_PART_MAX &&
           s->ppn == divide_up(s->procs, s->nodes);
}

/* ---- sharing out ---- */

struct size_share size_share(uint32_t nodes, uint32_t procs, uint32_t k) {
    ASSERT(k < nodes && nodes <= procs);
    uint32_t each = procs / nodes, more = procs % nodes; /* the first `more` nodes have one more */
    return (struct size_share){.first = k * each + (k < more ? k : more),
                               .count = each + (k < more)};
}

uint32_t size_node_of(uint32_t nodes, uint32_t procs, uint32_t rank) {
    ASSERT(rank < procs && nodes >= 1 && nodes <= procs);
    uint32_t each = procs / nodes, more = procs % nodes;
    uint32_t ahead = more * (each + 1); /* ranks on nodes that have one more */
    return rank < ahead ? rank / (each + 1) : more + (rank - ahead) / each;
}
