/* SPDX-License-Identifier: MIT */
/* Bytes of a file on their way to be cut and summed: see feed.h. */
#include "os/feed.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

struct serving {
    struct bytes bytes;
    struct pieces *pieces;
    struct sum *sum;
};

static int serve(void *context) {
    const struct serving *s = context;
    if (s->sum != NULL)
        sum_add(s->sum, s->bytes);
    return pieces_add_there(s->pieces, s->bytes);
}

static long read_some(int fd, uint64_t at, struct pieces *p, struct room room, struct sum *sum) {
    ssize_t n;
    do
        n = pread(fd, room.at, room.len, (off_t)at);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -ESTALE;
    if (sum != NULL)
        sum_add(sum, bytes_of(room.at, (size_t)n));
    int r = pieces_add(p, (size_t)n);
    return r < 0 ? r : n;
}

/* The last page of a file is mapped as a whole. */
static bool reaches(int fd, uint64_t to) {
    struct stat s;
    return fstat(fd, &s) == 0 && (uint64_t)s.st_size >= to;
}

long feed_some(struct feed *f, uint64_t at, uint64_t to, struct pieces *pieces, struct sum *sum) {
    struct room room = pieces_room(pieces);
    if (room.len == 0)
        return -ENOMEM;
    room.len = room.len < to - at ? room.len : (size_t)(to - at);
    f->mapped.settled = true;
    struct serving s = {.bytes = mapped_part(&f->mapped, f->fd, f->size, at, room.len),
                        .pieces = pieces,
                        .sum = sum};
    if (s.bytes.len == 0)
        return read_some(f->fd, at, pieces, room, sum);
    int r = mapped_try(serve, &s);
    bool ends = at + s.bytes.len == to;
    if ((r == 0 && ends) || r == -ESTALE) /* if it was not cut short it could not be read */
        r = !reaches(f->fd, to) ? -ESTALE : r == 0 ? 0 : -EIO;
    return r < 0 ? r : (long)s.bytes.len;
}

void feed_end(struct feed *f) {
    mapped_end(&f->mapped);
}
