/* SPDX-License-Identifier: MIT */
/* Operations as nodes remember them, and how they were resolved: see message.h. */
#include "wire/message.h"

static void walk_record(struct codec *c, struct record *r) {
    codec_u64(c, &r->order);
    codec_u32(c, &r->id.node);
    codec_u64(c, &r->id.number);
    codec_u64(c, &r->id.incarnation);
    codec_enum(c, &r->state, RECORD_STATES);
}

void record_store(uint8_t out[RECORD_BYTES], const struct record *r) {
    struct record copy = *r;
    struct codec c = {.encoding = true, .out = out, .len = RECORD_BYTES};
    walk_record(&c, &copy);
}

bool record_load(struct record *ret, struct bytes records, uint32_t index) {
    if ((size_t)index >= records.len / RECORD_BYTES)
        return false;
    struct codec c = {.in = records.at + (size_t)index * RECORD_BYTES, .len = RECORD_BYTES};
    walk_record(&c, ret);
    return !c.failed;
}

static void walk_resolution(struct codec *c, struct resolution *r) {
    codec_u64(c, &r->order);
    codec_bool(c, &r->commit);
}

void resolution_store(uint8_t out[RESOLUTION_BYTES], const struct resolution *r) {
    struct resolution copy = *r;
    struct codec c = {.encoding = true, .out = out, .len = RESOLUTION_BYTES};
    walk_resolution(&c, &copy);
}

bool resolution_load(struct resolution *ret, struct bytes resolutions, uint32_t index) {
    if ((size_t)index >= resolutions.len / RESOLUTION_BYTES)
        return false;
    struct codec c = {.in = resolutions.at + (size_t)index * RESOLUTION_BYTES,
                      .len = RESOLUTION_BYTES};
    walk_resolution(&c, ret);
    return !c.failed;
}
