/* SPDX-License-Identifier: MIT */
/* How a run ended on one node: see ending.h. */
#include "wire/ending.h"

#include "machine/machine.h"

static void walk_ending_fixed(struct codec *c, struct ending *e) {
    codec_u32(c, &e->node);
    codec_enum(c, &e->cause, CAUSES);
    codec_enum(c, &e->step, SPAWN_STEPS);
    uint8_t flags = (uint8_t)(c->encoding ? e->ours | e->more << 1 | e->loose << 2 : 0);
    codec_enum(c, &flags, 8);
    e->ours = (flags & 1) != 0;
    e->more = (flags & 2) != 0;
    e->loose = (flags & 4) != 0;
    codec_u32(c, &e->rank);
    codec_u32(c, &e->value);
    codec_u32(c, &e->bad);
    codec_u64(c, &e->output);
}

static void walk_ending(struct codec *c, struct ending *e) {
    walk_ending_fixed(c, e);
    codec_usage(c, &e->usage);
}

void ending_store(uint8_t out[ENDING_BYTES], const struct ending *e) {
    struct ending copy = *e;
    struct codec c = {.encoding = true, .out = out, .len = ENDING_BYTES};
    walk_ending(&c, &copy);
}

bool ending_load(struct ending *ret, struct bytes ends, uint32_t index) {
    if ((size_t)index >= ends.len / ENDING_BYTES)
        return false;
    struct codec c = {.in = ends.at + (size_t)index * ENDING_BYTES, .len = ENDING_BYTES};
    walk_ending(&c, ret);
    return !c.failed;
}

void ending_fixed_store(uint8_t out[ENDING_FIXED_BYTES], const struct ending *e) {
    struct ending copy = *e;
    struct codec c = {.encoding = true, .out = out, .len = ENDING_FIXED_BYTES};
    walk_ending_fixed(&c, &copy);
}

bool ending_fixed_load(struct ending *ret, struct bytes ending) {
    struct codec c = {.in = ending.at, .len = ending.len};
    *ret = (struct ending){0};
    walk_ending_fixed(&c, ret);
    return !c.failed && c.at == c.len;
}
