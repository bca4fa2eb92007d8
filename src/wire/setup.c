/* SPDX-License-Identifier: MIT */
/* What a launcher must know of a run: see setup.h. */
#include "wire/setup.h"

#include <errno.h>
#include <string.h>

static void walk(struct codec *c, struct setup *s) {
    codec_u64(c, &s->run);
    codec_u32(c, &s->first);
    codec_bytes(c, &s->ranks, SETUP_RANK_BYTES);
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

uint32_t setup_rank(const struct setup *s, uint32_t index) {
    return s->ranks.len == 0 ? s->first + index
                             : load_le32(s->ranks.at + (size_t)index * SETUP_RANK_BYTES);
}

bool setup_has(const struct setup *s, uint32_t rank) {
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (setup_rank(s, middle) < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && setup_rank(s, low) == rank;
}

static bool ranks_good(const struct setup *s) {
    if (s->ranks.len == 0)
        return true;
    if (s->ranks.len != (size_t)s->count * SETUP_RANK_BYTES || setup_rank(s, 0) != s->first)
        return false;
    for (uint32_t i = 1; i < s->count; i++)
        if (setup_rank(s, i) <= setup_rank(s, i - 1))
            return false;
    return setup_rank(s, s->count - 1) < s->size;
}

int setup_decode(struct bytes in, struct setup *ret) {
    memset(ret, 0, sizeof *ret);
    struct codec c = {.in = in.at, .len = in.len};
    walk(&c, ret);
    bool good = !c.failed && c.at == c.len && ret->count > 0 && ret->count <= ret->size &&
                ret->first <= ret->size - ret->count && ranks_good(ret);
    return good ? 0 : -EBADMSG;
}
