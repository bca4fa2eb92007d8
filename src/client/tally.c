/* SPDX-License-Identifier: MIT */
/* How far output has been written: see tally.h. */
#include "client/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

struct tally {
    int fd;
    struct tally_note *old; /* what was there */
    size_t old_count;
    struct tally_note *fresh; /* not written yet */
    size_t fresh_count, fresh_cap;
};

static uint32_t check_of(struct tally_note n) {
    n.check = 0;
    return (uint32_t)hash_once(&n, sizeof n) | 1; /* never that of zeros */
}

static int load(struct tally *t) {
    struct stat st;
    if (fstat(t->fd, &st) < 0)
        return -errno;
    size_t count = (size_t)st.st_size / sizeof *t->old;
    t->old = calloc(count + 1, sizeof *t->old);
    if (t->old == NULL)
        return -ENOMEM;
    ssize_t n = pread(t->fd, t->old, count * sizeof *t->old, 0);
    if (n < 0)
        return -errno;
    count = (size_t)n / sizeof *t->old;
    while (t->old_count < count && t->old[t->old_count].check == check_of(t->old[t->old_count]))
        t->old_count++;
    off_t end = (off_t)(t->old_count * sizeof *t->old);
    return ftruncate(t->fd, end) < 0 || lseek(t->fd, end, SEEK_SET) < 0 ? -errno : 0;
}

struct tally *tally_open(const char *path) {
    struct tally *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int r = t->fd < 0 ? -errno : load(t);
    if (r == 0)
        return t;
    tally_close(t);
    errno = -r;
    return NULL;
}

void tally_close(struct tally *t) {
    if (t == NULL)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t->old);
    free(t->fresh);
    free(t);
}

int tally_add(struct tally *t, const struct tally_note *n) {
    if (t->fresh_count == t->fresh_cap) {
        size_t cap = t->fresh_cap ? 2 * t->fresh_cap : 16;
        struct tally_note *more = realloc(t->fresh, cap * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        t->fresh = more;
        t->fresh_cap = cap;
    }
    struct tally_note *at = &t->fresh[t->fresh_count++];
    *at = *n;
    at->check = check_of(*n);
    return 0;
}

int tally_commit(struct tally *t) {
    size_t len = t->fresh_count * sizeof *t->fresh;
    t->fresh_count = 0;
    if (len == 0)
        return 0;
    ssize_t n = write(t->fd, t->fresh, len);
    return n == (ssize_t)len ? 0 : n < 0 ? -errno : -ENOSPC;
}

void tally_each(const struct tally *t, uint64_t run,
                void (*note)(void *context, const struct tally_note *n), void *context) {
    for (size_t i = 0; i < t->old_count; i++)
        if (t->old[i].run == run)
            note(context, &t->old[i]);
}
