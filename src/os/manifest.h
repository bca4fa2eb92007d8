/* SPDX-License-Identifier: MIT */
/* The manifest of a bundle, in a file: which entry a byte of the stream belongs to.
 *
 * However many entries there are, few bytes of memory are our own: the file is mapped, and only the places of
 * every so-manyth entry are remembered. */
#pragma once

#include "wire/bundle.h"

struct manifest_mark {
    uint64_t offset;
    uint32_t at;
};

struct manifest {
    const uint8_t *map;
    uint32_t bytes;
    uint32_t entries, files;
    uint32_t stride; /* entries from one mark to the next */
    uint32_t mark_count;
    struct manifest_mark *marks;
};

/* An entry, and where it is. */
struct manifest_cursor {
    uint32_t number;
    uint64_t offset; /* in the stream, of its contents */
    size_t next;     /* in the manifest */
    struct entry e;
};

/* The manifest is the first `bytes` of the file, and of the stream. -EBADMSG: it makes no sense. */
int manifest_open(struct manifest *m, int fd, uint32_t bytes, uint64_t stream_bytes);
/* Also of one that is all zeros. */
void manifest_close(struct manifest *m);

/* The first entry, and the next one; false if there is none. */
bool manifest_first(const struct manifest *m, struct manifest_cursor *c);
bool manifest_next(const struct manifest *m, struct manifest_cursor *c);
/* The entry of this number; false if there is none. */
bool manifest_at(const struct manifest *m, uint32_t number, struct manifest_cursor *c);
/* The file that has this byte of the stream, which must be behind the manifest; false if none has. */
bool manifest_seek(const struct manifest *m, uint64_t offset, struct manifest_cursor *c);
