/* SPDX-License-Identifier: MIT */
/* Rows of lists: see row.h. */
#include "wire/row.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"

enum { LENGTH_BYTES = 4 };

static void walk_job(struct codec *c, void *row) {
    struct job_row *r = row;
    codec_u32(c, &r->job);
    codec_u64(c, &r->run);
    codec_enum(c, &r->state, STATES);
    codec_enum(c, &r->kind, JOB_KINDS);
    codec_u32(c, &r->flags);
    codec_u32(c, &r->procs);
    codec_u32(c, &r->nodes);
    codec_u32(c, &r->ppn);
    codec_u32(c, &r->status);
    uint32_t priority = (uint32_t)r->priority;
    codec_u32(c, &priority);
    r->priority = (int32_t)priority;
    codec_u32(c, &r->array);
    codec_u32(c, &r->parent);
    codec_u32(c, &r->hosts);
    codec_u64(c, &r->submitted_ns);
    codec_u64(c, &r->started_ns);
    codec_u64(c, &r->ended_ns);
    codec_u64(c, &r->begin_ns);
    codec_u64(c, &r->limit_ns);
    codec_u64(c, &r->expected_ns);
    codec_bytes(c, &r->name, 1);
    codec_bytes(c, &r->node_list, 1);
    codec_bytes(c, &r->why, 1);
    codec_bytes(c, &r->reservation, 1);
    codec_bool(c, &r->measured);
    codec_usage(c, &r->usage);
    codec_u64(c, &r->measured_ns);
    codec_u32(c, &r->measured_nodes);
    codec_bytes(c, &r->peak_where, 1);
    codec_bytes(c, &r->node_where, 1);
}

static void walk_node(struct codec *c, void *row) {
    struct node_row *r = row;
    codec_u32(c, &r->node);
    codec_enum(c, &r->state, NODE_STATES);
    codec_u32(c, &r->pes);
    codec_u32(c, &r->used);
    codec_u64(c, &r->since_ns);
    codec_bytes(c, &r->name, 1);
    codec_bytes(c, &r->reason, 1);
    codec_bytes(c, &r->jobs, 4);
    codec_bytes(c, &r->traits, 1);
    codec_u64(c, &r->seen_ns);
    codec_u32(c, &r->load_x100);
    codec_u64(c, &r->memory_bytes);
    codec_u64(c, &r->memory_used);
    codec_enum(c, &r->owner, NODE_OWNERS);
}

static void walk_cluster(struct codec *c, void *row) {
    struct cluster_row *r = row;
    codec_u32(c, &r->epoch);
    codec_u32(c, &r->nodes);
    codec_u32(c, &r->up);
    codec_u32(c, &r->pes);
    codec_u32(c, &r->used);
    codec_u32(c, &r->queued);
    codec_u32(c, &r->running);
    codec_u64(c, &r->started_ns);
    codec_u64(c, &r->said);
}

static void walk_policy(struct codec *c, void *row) {
    struct policy_row *r = row;
    codec_enum(c, &r->chosen, 2);
    codec_enum(c, &r->sliced, 2);
    codec_u32(c, &r->slots);
    codec_u32(c, &r->rows);
    codec_u64(c, &r->quantum_ns);
    codec_u32(c, &r->samples);
    codec_u64(c, &r->skew_ns);
    codec_u64(c, &r->skew99_ns);
    codec_u64(c, &r->reach_ns);
    codec_u64(c, &r->reach99_ns);
    codec_u64(c, &r->missed);
    codec_u32(c, &r->unprompt);
    codec_u32(c, &r->unwhole);
    codec_bytes(c, &r->name, 1);
    codec_bytes(c, &r->words, 1);
    codec_bytes(c, &r->fault, 1);
}

static void walk_reservation(struct codec *c, void *row) {
    struct reservation_row *r = row;
    codec_enum(c, &r->open, 2);
    codec_u32(c, &r->nodes);
    codec_u32(c, &r->waiting);
    codec_u32(c, &r->running);
    codec_u64(c, &r->from_ns);
    codec_u64(c, &r->to_ns);
    codec_bytes(c, &r->name, 1);
    codec_bytes(c, &r->node_list, 1);
}

static void walk_peer(struct codec *c, void *row) {
    struct peer_row *r = row;
    codec_u32(c, &r->place);
    codec_u32(c, &r->job);
    codec_u32(c, &r->rank);
    codec_u32(c, &r->number);
    codec_u32(c, &r->node);
    codec_u32(c, &r->host);
    codec_u64(c, &r->reach.token[0]);
    codec_u64(c, &r->reach.token[1]);
    codec_u64(c, &r->reach.door);
    codec_u64(c, &r->reach.ip[0]);
    codec_u64(c, &r->reach.ip[1]);
    codec_u16(c, &r->reach.port);
    codec_bytes(c, &r->name, 1);
    codec_bytes(c, &r->class_name, 1);
}

uint64_t said_hash(const struct input_traits *in) {
    struct hash h;
    hash_init(&h, 0);
    hash_bytes(&h, in->traits.at, in->traits.len);
    hash_bytes(&h, in->widths.at, in->widths.len);
    hash_bytes(&h, in->switches.at, in->switches.len);
    hash_bytes(&h, in->owners.at, in->owners.len);
    hash_bytes(&h, in->owner_texts.at, in->owner_texts.len);
    return hash_done(&h);
}

static long encode(void (*walk)(struct codec *, void *), void *row, struct room out) {
    if (out.len < LENGTH_BYTES)
        return -ENOBUFS;
    struct codec c = {
        .encoding = true, .out = out.at + LENGTH_BYTES, .len = out.len - LENGTH_BYTES};
    walk(&c, row);
    if (c.failed)
        return -ENOBUFS;
    store_le32(out.at, (uint32_t)c.at);
    return (long)c.at + LENGTH_BYTES;
}

static int next(void (*walk)(struct codec *, void *), struct bytes rows, size_t *at, void *ret) {
    if (*at == rows.len)
        return 0;
    if (rows.len - *at < LENGTH_BYTES)
        return -EBADMSG;
    size_t len = load_le32(rows.at + *at);
    if (len > rows.len - *at - LENGTH_BYTES)
        return -EBADMSG;
    struct codec c = {.in = rows.at + *at + LENGTH_BYTES, .len = len};
    walk(&c, ret);
    *at += LENGTH_BYTES + len;
    return c.failed || c.at != c.len ? -EBADMSG : 1;
}

long job_row_encode(const struct job_row *r, struct room out) {
    struct job_row copy = *r;
    return encode(walk_job, &copy, out);
}

long node_row_encode(const struct node_row *r, struct room out) {
    struct node_row copy = *r;
    return encode(walk_node, &copy, out);
}

long cluster_row_encode(const struct cluster_row *r, struct room out) {
    struct cluster_row copy = *r;
    return encode(walk_cluster, &copy, out);
}

long policy_row_encode(const struct policy_row *r, struct room out) {
    struct policy_row copy = *r;
    return encode(walk_policy, &copy, out);
}

long reservation_row_encode(const struct reservation_row *r, struct room out) {
    struct reservation_row copy = *r;
    return encode(walk_reservation, &copy, out);
}

long peer_row_encode(const struct peer_row *r, struct room out) {
    struct peer_row copy = *r;
    return encode(walk_peer, &copy, out);
}

int job_row_next(struct bytes rows, size_t *at, struct job_row *ret) {
    memset(ret, 0, sizeof *ret);
    return next(walk_job, rows, at, ret);
}

int node_row_next(struct bytes rows, size_t *at, struct node_row *ret) {
    memset(ret, 0, sizeof *ret);
    return next(walk_node, rows, at, ret);
}

int cluster_row_next(struct bytes rows, size_t *at, struct cluster_row *ret) {
    memset(ret, 0, sizeof *ret);
    return next(walk_cluster, rows, at, ret);
}

int policy_row_next(struct bytes rows, size_t *at, struct policy_row *ret) {
    memset(ret, 0, sizeof *ret);
    return next(walk_policy, rows, at, ret);
}

int reservation_row_next(struct bytes rows, size_t *at, struct reservation_row *ret) {
    memset(ret, 0, sizeof *ret);
    return next(walk_reservation, rows, at, ret);
}

int peer_row_next(struct bytes rows, size_t *at, struct peer_row *ret) {
    memset(ret, 0, sizeof *ret);
    return next(walk_peer, rows, at, ret);
}

const char *node_state_name(enum node_state s) {
    static const char *const names[NODE_STATES] = {
        [NODE_UP] = "up", [NODE_DOWN] = "down", [NODE_DRAINED] = "drained"};
    return s < NODE_STATES ? names[s] : "?";
}

const char *node_owner_name(enum node_owner o) {
    static const char *const names[NODE_OWNERS] = {[NODE_OWNER_NONE] = "none",
                                                   [NODE_OWNER_AWAY] = "away",
                                                   [NODE_OWNER_ACTIVE] = "active",
                                                   [NODE_OWNER_UNKNOWN] = "unknown"};
    return o < NODE_OWNERS ? names[o] : "?";
}

/* ---- traits ---- */

static const uint8_t *end_of_value(const uint8_t *at, const uint8_t *end) {
    bool quoted = at < end && *at == '"';
    const uint8_t *close = quoted ? memchr(at + 1, '"', (size_t)(end - at) - 1) : NULL;
    const uint8_t *from = close != NULL ? close : at;
    const uint8_t *blank = memchr(from, ' ', (size_t)(end - from));
    return blank != NULL ? blank : end;
}

static struct bytes without_quotes(struct bytes v) {
    bool quoted = v.len >= 2 && v.at[0] == '"' && v.at[v.len - 1] == '"';
    return quoted ? bytes_of(v.at + 1, v.len - 2) : v;
}

bool node_row_trait(struct bytes *traits, struct bytes *ret_name, struct bytes *ret_value) {
    const uint8_t *is = traits->len == 0 ? NULL : memchr(traits->at, '=', traits->len);
    if (is == NULL)
        return false;
    const uint8_t *end = traits->at + traits->len;
    const uint8_t *behind = end_of_value(is + 1, end);
    *ret_name = bytes_of(traits->at, (size_t)(is - traits->at));
    *ret_value = without_quotes(bytes_of(is + 1, (size_t)(behind - is) - 1));
    const uint8_t *next = behind < end ? behind + 1 : end;
    *traits = bytes_of(next, (size_t)(end - next));
    return true;
}
