/* SPDX-License-Identifier: MIT */
/* A drawer: see drawer.h. */
#include "os/drawer.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before the bytes: a word that says that they are whole, and how many they are. */
enum { HEAD = 16 };
#define WHOLE UINT64_C(0x44524157455231)

/* A launch of one process with its environment, in most cases. */
enum { GRAIN = 8 * 1024 };

void drawer_init(struct drawer *d, const char *folder) {
    *d = (struct drawer){.at = NULL};
    snprintf(d->path, sizeof d->path, "%s/drawer", folder);
}

static void close_it(struct drawer *d) {
    if (d->at != NULL)
        munmap(d->at, d->size);
    d->at = NULL;
    d->size = 0;
}

/* Maps the file as it is, or, if `room` is not 0, with at least so much room. */
static void open_it(struct drawer *d, size_t room) {
    struct stat s;
    close_it(d);
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (room > 0 ? O_CREAT : 0);
    int fd = open(d->path, flags, 0600);
    if (fd < 0)
        return;
    bool good = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
    size_t size = good ? (size_t)s.st_size : 0;
    if (good && size < room) {
        size = (room + GRAIN - 1) / GRAIN * GRAIN;
        good =
            posix_fallocate(fd, 0, (off_t)size) == 0; /* a full disk must not show when we write */
    }
    if (good && size >= HEAD) {
        void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        d->at = at == MAP_FAILED ? NULL : at;
        d->size = size;
    }
    close(fd);
}

void drawer_make(struct drawer *d) {
    if (d->at == NULL)
        open_it(d, HEAD);
}

void drawer_fini(struct drawer *d) {
    close_it(d);
}

struct bytes drawer_look(struct drawer *d) {
    if (d->at == NULL)
        open_it(d, 0);
    if (d->at == NULL || load_le64(d->at) != WHOLE || load_le64(d->at + 8) > d->size - HEAD)
        return (struct bytes){0};
    return bytes_of(d->at + HEAD, (size_t)load_le64(d->at + 8));
}

void drawer_put(struct drawer *d, struct bytes bytes) {
    if (d->at == NULL || d->size - HEAD < bytes.len)
        open_it(d, HEAD + bytes.len);
    if (d->at == NULL)
        return;
    store_le64(d->at, 0);
    atomic_signal_fence(memory_order_seq_cst); /* we may be killed anywhere */
    if (bytes.len > 0)
        memcpy(d->at + HEAD, bytes.at, bytes.len);
    store_le64(d->at + 8, bytes.len);
    atomic_signal_fence(memory_order_seq_cst);
    store_le64(d->at, WHOLE);
}
