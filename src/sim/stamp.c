/* SPDX-License-Identifier: MIT */
/* Stamps: see stamp.h. A buffer has as many as its ring has slots: a plain array. */
#include "sim/stamp.h"

#include <stdlib.h>

#include "sim/inside.h"

static struct stamp *find(const struct buffer *b, uint64_t offset) {
    for (uint32_t i = 0; i < b->stamp_count; i++)
        if (b->stamps[i].offset == offset)
            return &b->stamps[i];
    return NULL;
}

static void write_to(struct buffer *b, uint64_t offset, uint32_t len, uint64_t tag) {
    struct stamp *s = find(b, offset);
    ASSERT(offset <= b->bytes && len <= b->bytes - offset);
    if (s == NULL) {
        if ((b->stamp_count & (b->stamp_count - 1)) == 0) {
            uint32_t cap = b->stamp_count == 0 ? 1 : 2 * b->stamp_count;
            b->stamps = realloc(b->stamps, cap * sizeof *b->stamps);
            ASSERT(b->stamps != NULL);
        }
        s = &b->stamps[b->stamp_count++];
        *s = (struct stamp){.offset = offset};
    }
    ASSERT(s->leaving == 0);
    s->len = len;
    s->tag = tag;
}

void stamp_read(struct node *n, const struct effect_put *p, uint8_t ret[STAMP_BYTES]) {
    struct buffer *b = node_buffer(n, p->buffer);
    ASSERT(b != NULL);
    struct stamp *s = find(b, p->offset);
    ASSERT(s != NULL && s->len == p->len);
    s->leaving++;
    store_le64(ret, s->tag);
    store_le32(ret + 8, s->len);
}

uint32_t stamp_len(struct bytes stamp) {
    return stamp.len == STAMP_BYTES ? load_le32(stamp.at + 8) : 0;
}

void stamp_write(struct node *n, uint32_t buffer, uint64_t offset, struct bytes stamp) {
    if (stamp.len == STAMP_BYTES)
        write_to(node_buffer(n, buffer), offset, load_le32(stamp.at + 8), load_le64(stamp.at));
}

void stamp_left(struct node *n, uint32_t buffer, uint64_t offset) {
    const struct buffer *b = node_buffer(n, buffer);
    struct stamp *s = b != NULL ? find(b, offset) : NULL;
    if (s == NULL)
        return; /* the buffer was closed meanwhile */
    ASSERT(s->leaving > 0);
    s->leaving--;
}

bool world_stamp(const struct world *w, uint32_t body, uint32_t buffer, uint64_t offset,
                 uint64_t *ret_tag, uint32_t *ret_len) {
    const struct buffer *b = node_buffer(&w->nodes[body], buffer);
    const struct stamp *s = b != NULL ? find(b, offset) : NULL;
    if (s == NULL)
        return false;
    *ret_tag = s->tag;
    *ret_len = s->len;
    return true;
}

void world_set_stamp(struct world *w, uint32_t body, uint32_t buffer, uint64_t offset, uint32_t len,
                     uint64_t tag) {
    struct buffer *b = node_buffer(&w->nodes[body], buffer);
    if (b != NULL)
        write_to(b, offset, len, tag);
}
