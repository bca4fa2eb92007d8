/* SPDX-License-Identifier: MIT */
/* What a helper is to do: see task.h. */
#include "spread/task.h"

#include <errno.h>

#include "wire/codec.h"

static void walk_hop(struct codec *c, struct hop_config *h) {
    uint8_t shape = (uint8_t)h->shape;
    codec_u32(c, &h->hosts);
    codec_u32(c, &h->children);
    codec_u32(c, &h->fanout);
    codec_u32(c, &h->at_once);
    codec_enum(c, &shape, HOP_SHAPES);
    codec_u64(c, &h->connect_ns);
    codec_u64(c, &h->late_ns);
    codec_u64(c, &h->silent_ns);
    h->shape = (enum hop_shape)shape;
}

static void walk_count(struct codec *c, uint32_t *count) {
    codec_u32(c, count);
    if (*count > TASK_FILES_MAX) {
        c->failed = true;
        *count = 0;
    }
}

static void walk(struct codec *c, struct task *t) {
    walk_hop(c, &t->hop);
    codec_u32(c, &t->self);
    codec_u64(c, &t->command_ns);
    codec_u64(c, &t->beat_ns);
    codec_bool(c, &t->input);
    codec_u32(c, &t->input_host);
    codec_bytes(c, &t->name, 1);
    codec_bytes(c, &t->connector, 1);
    codec_bytes(c, &t->command, 1);
    codec_bytes(c, &t->own, 1);
    walk_count(c, &t->put_count);
    for (uint32_t i = 0; i < t->put_count && !c->failed; i++) {
        codec_bytes(c, &t->put[i].path, 1);
        codec_u64(c, &t->put[i].bytes);
        codec_u16(c, &t->put[i].mode);
    }
    walk_count(c, &t->get_count);
    for (uint32_t i = 0; i < t->get_count && !c->failed; i++)
        codec_bytes(c, &t->get[i], 1);
}

long task_write(const struct task *t, struct room out) {
    struct task copy = *t;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? -ENOSPC : (long)c.at;
}

/* Each word ends in a zero, and there is one. */
static bool are_words(struct bytes b) {
    return b.len > 1 && b.at[b.len - 1] == '\0' && b.at[0] != '\0';
}

int task_read(struct bytes in, struct task *ret) {
    struct codec c = {.in = in.at, .len = in.len};
    *ret = (struct task){.self = 0};
    walk(&c, ret);
    const struct hop_config *h = &ret->hop;
    bool sound = !c.failed && c.at == in.len && h->hosts > 0 && h->hosts <= TASK_HOSTS_MAX &&
                 ret->self < h->hosts && h->children > 0 && h->children <= h->hosts &&
                 h->at_once > 0 && (h->shape != HOP_KARY || h->fanout > 0) &&
                 are_words(ret->connector);
    return sound ? 0 : -EPROTO;
}

static void walk_host(struct codec *c, struct task_host *h) {
    uint8_t len = (uint8_t)h->name.len;
    codec_u32(c, &h->host);
    codec_u16(c, &h->crate);
    codec_u8(c, &len);
    if (c->failed || c->len - c->at < len) {
        c->failed = true;
        return;
    }
    for (uint8_t i = 0; i < len && c->encoding; i++)
        c->out[c->at + i] = h->name.at[i];
    if (!c->encoding)
        h->name = bytes_of(c->in + c->at, len);
    c->at += len;
}

long task_host_write(const struct task_host *h, struct room out) {
    struct task_host copy = *h;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    ASSERT(h->name.len <= UINT8_MAX);
    walk_host(&c, &copy);
    return c.failed ? -ENOSPC : (long)c.at;
}

/* A name can be written into a command line as it is. */
static bool is_name(struct bytes name) {
    bool is = name.len > 0 && name.at[0] != '-';
    for (size_t i = 0; i < name.len && is; i++)
        is = name.at[i] > ' ' && name.at[i] < 0x7f;
    return is;
}

int task_host_read(struct bytes *in, struct task_host *ret) {
    struct codec c = {.in = in->at, .len = in->len};
    if (in->len == 0)
        return 0;
    *ret = (struct task_host){.host = 0};
    walk_host(&c, ret);
    if (c.failed || !is_name(ret->name))
        return -EPROTO;
    *in = bytes_of(in->at + c.at, in->len - c.at);
    return 1;
}
