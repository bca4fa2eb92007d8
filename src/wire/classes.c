/* SPDX-License-Identifier: MIT */
/* Classes of hosts: see classes.h. */
#include "wire/classes.h"

#include <errno.h>

#include "wire/kinds.h"

static void walk(struct codec *c, struct host_class *h) {
    codec_u32(c, &h->least);
    codec_u32(c, &h->most);
    codec_u32(c, &h->ppn);
    codec_bytes(c, &h->name, 1);
    codec_bytes(c, &h->need, 1);
    if (h->name.len == 0 || h->name.len > CLASS_NAME_MAX || h->need.len > NEED_TEXT_MAX ||
        h->ppn == 0 || h->most == 0 || h->least > h->most)
        c->failed = true;
}

int class_next(struct bytes list, size_t *at, struct host_class *ret) {
    if (*at == list.len)
        return 0;
    struct codec c = {.in = list.at, .len = list.len, .at = *at};
    *ret = (struct host_class){0};
    walk(&c, ret);
    *at = c.at;
    return c.failed ? -EBADMSG : 1;
}

long class_store(const struct host_class *h, struct room out) {
    struct host_class copy = *h;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}
