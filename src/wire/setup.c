/* SPDX-License-Identifier: MIT */
/* What a launcher must know of a run: see setup.h. */
#include "wire/setup.h"

#include <errno.h>
#include <string.h>

static void walk(struct codec *c, struct setup *s) {
    codec_u64(c, &s->run);
    codec_u32(c, &s->first);
    codec_u32(c, &s->count);
    codec_u32(c, &s->size);
    codec_u32(c, &s->window);
    codec_u32(c, &s->node);
    codec_u32(c, &s->array);
    codec_bytes(c, &s->node_name, 1);
    codec_bytes(c, &s->node_list, 1);
    codec_rest(c, &s->spec);
}

long setup_encode(const struct setup *s, struct room out) {
    struct setup copy = *s;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int setup_decode(struct bytes in, struct setup *ret) {
    memset(ret, 0, sizeof *ret);
    struct codec c = {.in = in.at, .len = in.len};
    walk(&c, ret);
    bool good = !c.failed && c.at == c.len && ret->count > 0 && ret->count <= ret->size &&
                ret->first <= ret->size - ret->count;
    return good ? 0 : -EBADMSG;
}
