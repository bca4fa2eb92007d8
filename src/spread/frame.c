/* SPDX-License-Identifier: MIT */
/* Frames between hops: see frame.h. */
#include "spread/frame.h"

#include <errno.h>

#include "spread/hop.h"

void frame_head(const struct frame *f, uint8_t out[FRAME_HEAD]) {
    ASSERT(f->body.len <= FRAME_BODY_MAX);
    store_le32(out, (uint32_t)f->body.len);
    out[4] = (uint8_t)f->kind;
    out[5] = f->flag;
    store_le16(out + 6, 0);
    store_le32(out + 8, f->host);
    store_le32(out + 12, f->number);
}

static const struct {
    bool up;
    uint8_t flags; /* below that */
} rules[FRAME_KINDS] = {
    [FRAME_TASK] = {false, 1},
    [FRAME_HOSTS] = {false, 1},
    [FRAME_LAST] = {false, 1},
    [FRAME_INPUT] = {false, 1},
    [FRAME_SIGNAL] = {false, 1},
    [FRAME_PUT] = {false, FRAME_END + 1},
    [FRAME_READY] = {true, 2},
    [FRAME_OUTPUT] = {true, 3},
    [FRAME_FETCHED] = {true, FETCHED_KINDS},
    [FRAME_OVER] = {true, FRAME_ENDS},
    [FRAME_RETURN] = {true, HOP_WHYS},
    [FRAME_LOST] = {true, 1},
    [FRAME_IDLE] = {true, 1},
    [FRAME_TAKEN] = {true, 1},
    [FRAME_BEAT] = {true, 1},
};

long frame_read(struct bytes in, bool up, struct frame *ret) {
    if (in.len < FRAME_HEAD)
        return 0;
    uint32_t len = load_le32(in.at);
    uint8_t kind = in.at[4], flag = in.at[5];
    if (len > FRAME_BODY_MAX || kind >= FRAME_KINDS || load_le16(in.at + 6) != 0 ||
        rules[kind].up != up || flag >= rules[kind].flags)
        return -EPROTO;
    if (in.len - FRAME_HEAD < len)
        return 0;
    *ret = (struct frame){.kind = (enum frame_kind)kind,
                          .flag = flag,
                          .host = load_le32(in.at + 8),
                          .number = load_le32(in.at + 12),
                          .body = bytes_of(in.at + FRAME_HEAD, len)};
    return FRAME_HEAD + (long)len;
}
