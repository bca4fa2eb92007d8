/* SPDX-License-Identifier: MIT */
/* Bundles of a job of several programs: see crates.h. */
#include "wire/crates.h"

#include <errno.h>

static void walk(struct codec *c, struct crate *p) {
    codec_bytes(c, &p->ranges, CRATE_RANGE_BYTES);
    codec_bytes(c, &p->copy, 1);
}

static void walk_range(struct codec *c, struct rank_range *r) {
    codec_u32(c, &r->first);
    codec_u32(c, &r->count);
}

void crate_range_store(uint8_t out[CRATE_RANGE_BYTES], struct rank_range r) {
    struct codec c = {.encoding = true, .out = out, .len = CRATE_RANGE_BYTES};
    walk_range(&c, &r);
}

bool crate_range_load(const struct crate *p, uint32_t index, struct rank_range *ret) {
    if ((size_t)index >= p->ranges.len / CRATE_RANGE_BYTES)
        return false;
    struct codec c = {.in = p->ranges.at + (size_t)index * CRATE_RANGE_BYTES,
                      .len = CRATE_RANGE_BYTES};
    walk_range(&c, ret);
    return !c.failed;
}

long crate_store(const struct crate *p, struct room out) {
    struct crate copy = *p;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int crate_next(struct bytes crates, size_t *at, struct crate *ret) {
    struct codec c = {.in = crates.at, .len = crates.len, .at = *at};
    if (*at >= crates.len)
        return 0;
    walk(&c, ret);
    *at = c.at;
    return c.failed || ret->ranges.len == 0 || ret->copy.len == 0 ? -EBADMSG : 1;
}

int crate_at(struct bytes crates, uint32_t number, struct crate *ret) {
    size_t at = 0;
    int r = crate_next(crates, &at, ret);
    while (r == 1 && number-- > 0)
        r = crate_next(crates, &at, ret);
    return r;
}
