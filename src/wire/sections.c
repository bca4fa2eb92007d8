/* SPDX-License-Identifier: MIT */
/* Sections of a job: see sections.h. */
#include "wire/sections.h"

#include <errno.h>

#include "wire/message.h"

static void walk(struct codec *c, struct section *s) {
    codec_u32(c, &s->nodes);
    codec_u32(c, &s->ppn);
    codec_u32(c, &s->procs);
    codec_bytes(c, &s->need, 1);
    if (s->need.len > NEED_TEXT_MAX)
        c->failed = true;
}

int section_next(struct bytes list, size_t *at, struct section *ret) {
    if (*at == list.len)
        return 0;
    struct codec c = {.in = list.at, .len = list.len, .at = *at};
    *ret = (struct section){0};
    walk(&c, ret);
    *at = c.at;
    return c.failed ? -EBADMSG : 1;
}

long section_store(const struct section *s, struct room out) {
    struct section copy = *s;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}
