/* SPDX-License-Identifier: MIT */
/* The manifest of a bundle, in a file: see manifest.h. */
#include "os/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MARKS_MAX = 8192 };

static struct bytes all(const struct manifest *m) {
    return bytes_of(m->map, m->bytes);
}

static void count(struct manifest *m) {
    struct manifest_cursor c;
    for (bool more = manifest_first(m, &c); more; more = manifest_next(m, &c)) {
        m->entries++;
        m->files += c.e.kind == ENTRY_FILE;
    }
}

static int set_marks(struct manifest *m) {
    struct manifest_cursor c;
    size_t at = 0;
    m->stride = (m->entries + MARKS_MAX - 1) / MARKS_MAX;
    m->marks = calloc(m->entries / m->stride + 1, sizeof *m->marks);
    if (m->marks == NULL)
        return -ENOMEM;
    for (bool more = manifest_first(m, &c); more; more = manifest_next(m, &c)) {
        if (c.number % m->stride == 0)
            m->marks[m->mark_count++] =
                (struct manifest_mark){.offset = c.offset, .at = (uint32_t)at};
        at = c.next;
    }
    return 0;
}

int manifest_open(struct manifest *m, int fd, uint32_t bytes, uint64_t stream_bytes) {
    struct stat s;
    *m = (struct manifest){.bytes = bytes};
    if (fstat(fd, &s) < 0)
        return -errno;
    if ((uint64_t)s.st_size < bytes)
        return -EBADMSG; /* what is behind the end of a file must not be looked at */
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    m->map = map;
    int r = -EBADMSG;
    if (manifest_fits(all(m), stream_bytes)) {
        count(m);
        r = set_marks(m);
    }
    if (r < 0)
        manifest_close(m);
    return r;
}

void manifest_close(struct manifest *m) {
    if (m->map != NULL)
        munmap((void *)(uintptr_t)m->map, m->bytes);
    free(m->marks);
    *m = (struct manifest){0};
}

/* All of it was judged: what makes no sense now was changed in the file meanwhile, and counts as the end. */
bool manifest_first(const struct manifest *m, struct manifest_cursor *c) {
    *c = (struct manifest_cursor){.offset = m->bytes};
    return entry_next(all(m), &c->next, &c->e) == 1;
}

bool manifest_next(const struct manifest *m, struct manifest_cursor *c) {
    c->offset += c->e.bytes;
    c->number++;
    return entry_next(all(m), &c->next, &c->e) == 1;
}

static bool go_to_mark(const struct manifest *m, uint32_t mark, struct manifest_cursor *c) {
    *c = (struct manifest_cursor){
        .number = mark * m->stride, .offset = m->marks[mark].offset, .next = m->marks[mark].at};
    return entry_next(all(m), &c->next, &c->e) == 1;
}

bool manifest_at(const struct manifest *m, uint32_t number, struct manifest_cursor *c) {
    if (number >= m->entries)
        return false;
    bool more = go_to_mark(m, number / m->stride, c);
    while (more && c->number < number)
        more = manifest_next(m, c);
    return more;
}

bool manifest_seek(const struct manifest *m, uint64_t offset, struct manifest_cursor *c) {
    uint32_t low = 0, high = m->mark_count; /* the mark is in [low, high) */
    ASSERT(offset >= m->bytes && high > 0);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (m->marks[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    bool more = go_to_mark(m, low, c);
    while (more && offset - c->offset >= c->e.bytes)
        more = manifest_next(m, c);
    return more;
}
