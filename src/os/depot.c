/* SPDX-License-Identifier: MIT */
/* Where a node keeps files that come to it: see depot.h, and depot_inside.h for how. */
#include "os/depot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/depot_inside.h"
#include "wire/folder.h"
#include "os/files.h"

int depot_fail(char why[256], int error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, 256, format, args);
    va_end(args);
    return error;
}

const char *depot_reason(int error) {
    switch (error) {
    case -ELOOP:
        return "a symbolic link is in the way; links are not followed";
    case -EISDIR:
        return "a folder is in the way";
    case -ENOTDIR:
        return "something that is not a folder is in the way";
    case -EEXIST:
        return "something that is not a file is in the way";
    default:
        return strerror(-error);
    }
}

/* Two that use one spool would remove each other's files. */
static int take_lock(struct depot *d, int spool) {
    d->lock = openat(spool, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (d->lock < 0)
        return -errno;
    if (flock(d->lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

static int open_spool(struct depot *d, const char *path, char why[256]) {
    int spool = files_folder(AT_FDCWD, path, 0755);
    int r = spool < 0 ? spool : take_lock(d, spool);
    if (r == 0)
        r = d->objects = files_folder(spool, "objects", 0755);
    if (r >= 0)
        r = d->partial = files_folder(spool, "partial", 0700);
    if (spool >= 0)
        close(spool);
    d->spool = realpath(path, NULL);
    if (r >= 0 && d->spool == NULL)
        r = -errno;
    if (r == -EBUSY)
        return depot_fail(why, r, "%s: it is in use", path);
    return r < 0 ? depot_fail(why, r, "%s: %s", path, depot_reason(r)) : 0;
}

static int start(struct depot *d, const struct depot_config *c, char why[256]) {
    d->root = open(c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->root < 0)
        return depot_fail(why, -errno, "%s: %s", c->root, depot_reason(-errno));
    d->top = open(c->top != NULL ? c->top : c->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (d->top < 0)
        return depot_fail(why, -errno, "%s: %s", c->top, depot_reason(-errno));
    int r = open_spool(d, c->spool, why);
    if (r < 0)
        return r;
    r = shelf_init(&d->shelf, d->objects, d->partial);
    if (r < 0)
        return depot_fail(why, r, "%s/objects: %s", d->spool, depot_reason(r));
    kept_load(d);
    return 0;
}

int depot_beneath(const struct depot *d, const char *path) {
    char whole[2 * RUN_FOLDER_MAX];
    snprintf(whole, sizeof whole, "/%s", path); /* cut, if it is longer: its beginning tells */
    return run_folder_of(bytes_from_str(whole)) != 0 ? d->root : d->top;
}

int depot_new(const struct depot_config *c, struct depot **ret, char why[256]) {
    struct depot *d = calloc(1, sizeof *d);
    if (d == NULL)
        return depot_fail(why, -ENOMEM, "no memory");
    d->cache_bytes = c->cache_bytes;
    d->partial_ns = c->partial_ns != 0 ? c->partial_ns : 3600 * NS_PER_S;
    d->lock = d->objects = d->partial = d->root = d->top = -1;
    d->lender.slot = SHELF_NONE;
    list_init(&d->bundles);
    int r = start(d, c, why);
    if (r < 0) {
        depot_free(d);
        return r;
    }
    *ret = d;
    return 0;
}

void depot_free(struct depot *d) {
    if (d == NULL)
        return;
    ASSERT(list_empty(&d->bundles));
    find_close(d);
    shelf_fini(&d->shelf);
    hints_fini(&d->hints);
    const int fds[] = {d->objects, d->partial, d->root, d->top, d->lock};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(d->scratch.at);
    free(d->spool);
    free(d);
}

int depot_object(struct depot *d, const uint8_t sum[32], const char *name, char *path,
                 size_t path_bytes) {
    char inside[SHELF_PATH_MAX];
    uint32_t slot = shelf_find(&d->shelf, sum);
    if (!shelf_name_fits(name))
        return -EINVAL;
    if (slot == SHELF_NONE)
        return -ENOENT;
    int r = shelf_check(&d->shelf, slot);
    if (r == 0)
        r = shelf_name(&d->shelf, slot, name, 0);
    if (r < 0)
        return r;
    shelf_use(&d->shelf, slot);
    shelf_path(sum, name, inside);
    int n = snprintf(path, path_bytes, "%s/objects/%s", d->spool, inside);
    return n < 0 || (size_t)n >= path_bytes ? -ENAMETOOLONG : 0;
}

void depot_pin(struct depot *d, const uint8_t sum[32]) {
    shelf_pin(&d->shelf, sum);
}

void depot_unpin(struct depot *d, const uint8_t sum[32]) {
    shelf_unpin(&d->shelf, sum);
    kept_trim(d);
}

uint64_t depot_bytes(const struct depot *d) {
    return d->shelf.bytes + d->kept_bytes;
}
