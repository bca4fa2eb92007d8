/* SPDX-License-Identifier: MIT */
/* One walk writes and reads a profile. */
#include "wodi/profile.h"

#include "wire/codec.h"

static void walk(struct codec *c, struct profile *p) {
    codec_enum(c, &p->classes, PROFILE_CLASSES_MAX + 1);
    codec_bool(c, &p->fewest);
    for (uint8_t i = 0; i < p->classes && !c->failed; i++) {
        codec_u32(c, &p->needs[i]);
        codec_u64(c, &p->speeds[i]);
    }
    codec_bytes(c, &p->bench, 1);
    codec_rest(c, &p->init);
}

size_t profile_write(const struct profile *p, struct room out) {
    struct profile copy = *p;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? 0 : c.at;
}

bool profile_read(struct profile *p, struct bytes in) {
    *p = (struct profile){0};
    struct codec c = {.in = in.at, .len = in.len};
    walk(&c, p);
    return !c.failed && c.at == c.len;
}
