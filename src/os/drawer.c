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

#include "base/assert.h"
#include "machine/machine.h"

/* Before the bytes: a word that says that they are whole, and how many they are. */
enum { HEAD = 16 };
#define WHOLE UINT64_C(0x44524157455231)

/* As large as it is needed: there must be no trouble with a full disk later. */
enum { SIZE = 32 * 1024 };
_Static_assert(STOW_BYTES_MAX + HEAD <= SIZE, "room for all that may be stowed");

void drawer_init(struct drawer *d, const char *folder) {
    *d = (struct drawer){.at = NULL};
    snprintf(d->path, sizeof d->path, "%s/drawer", folder);
}

/* Maps the file, made if it is not there and `make`. */
static void open_it(struct drawer *d, bool make) {
    struct stat s;
    int fd = open(d->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
    if (fd < 0)
        return;
    bool good = fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
    if (good && s.st_size < SIZE) /* with its blocks: they must not be missing when we write */
        good = make && posix_fallocate(fd, 0, SIZE) == 0;
    void *at = good ? mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    d->at = at == MAP_FAILED ? NULL : at;
    close(fd);
}

void drawer_make(struct drawer *d) {
    if (d->at == NULL)
        open_it(d, true);
}

void drawer_fini(struct drawer *d) {
    if (d->at != NULL)
        munmap(d->at, SIZE);
    d->at = NULL;
}

struct bytes drawer_look(struct drawer *d) {
    if (d->at == NULL)
        open_it(d, false);
    if (d->at == NULL || load_le64(d->at) != WHOLE || load_le64(d->at + 8) > SIZE - HEAD)
        return (struct bytes){0};
    return bytes_of(d->at + HEAD, (size_t)load_le64(d->at + 8));
}

void drawer_put(struct drawer *d, struct bytes bytes) {
    ASSERT(bytes.len <= STOW_BYTES_MAX);
    if (d->at == NULL)
        open_it(d, true);
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
