/* SPDX-License-Identifier: MIT */
/* How a node is: see vitals.h. */
#include "wire/vitals.h"

#include <errno.h>

/* In whole units, rounded to the nearest: what is read is at most half a unit off. */
static void walk_units(struct codec *c, uint64_t *v, uint64_t unit) {
    uint64_t count = *v / unit + (*v % unit >= unit / 2);
    codec_number(c, &count);
    if (c->encoding)
        return;
    c->failed = c->failed || count > UINT64_MAX / unit;
    *v = c->failed ? 0 : count * unit;
}

static void walk_owner(struct codec *c, struct vitals *v) {
    uint64_t word = (uint64_t)v->watch << 1 | v->active;
    codec_number(c, &word);
    c->failed = c->failed || word >> 1 > UINT32_MAX || word == 1;
    v->watch = (uint32_t)(word >> 1);
    v->active = (word & 1) != 0;
}

static void walk_head(struct codec *c, struct vitals *v) {
    struct input_gauged *g = &v->gauge;
    uint64_t load = g->load_x100;
    codec_number(c, &load);
    c->failed = c->failed || load > UINT32_MAX;
    g->load_x100 = (uint32_t)load;
    walk_units(c, &g->memory_bytes, MIB);
    walk_units(c, &g->memory_used, MIB);
    walk_owner(c, v);
}

static void walk_run(struct codec *c, struct vitals_run *r) {
    codec_number(c, &r->run);
    walk_units(c, &r->usage.user_ns, NS_PER_MS);
    walk_units(c, &r->usage.system_ns, NS_PER_MS);
    walk_units(c, &r->usage.read_bytes, KIB);
    walk_units(c, &r->usage.written_bytes, KIB);
    walk_units(c, &r->usage.peak_bytes, KIB);
    walk_units(c, &r->usage.node_bytes, KIB);
}

long vitals_begin(const struct vitals *v, struct room out) {
    struct vitals copy = *v;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_head(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

long vitals_add(const struct vitals_run *r, struct room out) {
    struct vitals_run copy = *r;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_run(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int vitals_read(struct bytes record, struct vitals *ret, size_t *at) {
    struct codec c = {.in = record.at, .len = record.len};
    *ret = (struct vitals){0};
    walk_head(&c, ret);
    *at = c.at;
    return c.failed ? -EBADMSG : 0;
}

int vitals_next(struct bytes record, size_t *at, uint32_t node, struct vitals_run *ret) {
    struct codec c = {.in = record.at, .len = record.len, .at = *at};
    if (*at >= record.len)
        return 0;
    *ret = (struct vitals_run){0};
    walk_run(&c, ret);
    usage_place(&ret->usage, node);
    *at = c.at;
    return c.failed ? -EBADMSG : 1;
}
