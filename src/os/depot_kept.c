/* SPDX-License-Identifier: MIT */
/* Bundles that did not become whole and wait for another try, and what goes when there is too much in the
 * cache: see depot_inside.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/depot_inside.h"
#include "os/digest.h"
#include "os/files.h"

enum { STEM = 32 }; /* digits of a name before the dot */

void kept_stem(struct bytes descriptor, char out[DEPOT_NAME_MAX]) {
    uint8_t sha256[32];
    digest_of(DIGEST_SHA256, descriptor, sha256);
    for (size_t i = 0; i < STEM / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", sha256[i]);
}

static bool is_bundle(const char *name) {
    return strlen(name) < DEPOT_NAME_MAX && strspn(name, "0123456789abcdef") == STEM &&
           name[STEM] == '.';
}

static DIR *open_dir(const struct depot *d, const char *name) {
    int fd = openat(d->partial, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

/* ---- removing ---- */

static void remove_hidden(const struct depot *d, int dir, const char *part) {
    char path[PATH_MAX];
    const char *name;
    int folder = place_hidden(d, dir, part, path, &name);
    if (folder >= 0) {
        unlinkat(folder, name, 0);
        close(folder);
    }
    unlinkat(dir, part, 0);
}

/* What a bundle has outside of the spool. */
static void remove_all_hidden(const struct depot *d, const char *name) {
    DIR *dir = open_dir(d, name);
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        struct stat s;
        if (e->d_name[0] == 'f' && fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(s.st_mode))
            remove_hidden(d, dirfd(dir), e->d_name);
    }
    closedir(dir);
}

void kept_remove(struct depot *d, const char *name) {
    remove_all_hidden(d, name);
    files_remove(d->partial, name);
}

static void drop(struct depot *d, struct kept *k) {
    kept_remove(d, k->name);
    d->kept_bytes -= k->bytes;
    k->name[0] = '\0';
}

/* NULL if there is none. */
static struct kept *oldest(struct depot *d) {
    struct kept *old = NULL;
    for (struct kept *k = d->kept; k < d->kept + DEPOT_KEPT_MAX; k++)
        if (k->name[0] != '\0' && (old == NULL || k->used_ns < old->used_ns))
            old = k;
    return old;
}

void kept_expire(struct depot *d) {
    uint64_t now = files_now_ns();
    for (struct kept *k;
         (k = oldest(d)) != NULL && k->used_ns < now && now - k->used_ns > d->partial_ns;)
        drop(d, k);
}

void kept_trim(struct depot *d) {
    while (depot_bytes(d) > d->cache_bytes) {
        uint32_t slot = shelf_oldest(&d->shelf);
        struct kept *k = oldest(d);
        if (k != NULL && (slot == SHELF_NONE || k->used_ns < d->shelf.objects[slot].used_ns))
            drop(d, k);
        else if (slot != SHELF_NONE)
            shelf_remove(&d->shelf, slot);
        else
            break;
    }
}

/* ---- keeping ---- */

static void add(struct depot *d, const char *name, uint64_t bytes, uint64_t used_ns) {
    struct kept *k = d->kept;
    while (k < d->kept + DEPOT_KEPT_MAX && k->name[0] != '\0')
        k++;
    if (k == d->kept + DEPOT_KEPT_MAX) {
        k = oldest(d);
        drop(d, k);
    }
    *k = (struct kept){.bytes = bytes, .used_ns = used_ns};
    snprintf(k->name, sizeof k->name, "%s", name);
    d->kept_bytes += bytes;
    find_add_kept(d, (uint32_t)(k - d->kept));
}

void kept_add(struct depot *d, const char *name, uint64_t bytes) {
    add(d, name, bytes, files_now_ns());
    kept_trim(d);
}

static bool has_descriptor(const struct depot *d, const char *name, struct bytes descriptor) {
    char path[DEPOT_NAME_MAX + 16];
    struct stat s;
    uint8_t there[4096];
    bool same = true;
    snprintf(path, sizeof path, "%s/descriptor", name);
    int fd = openat(d->partial, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    same = fstat(fd, &s) == 0 && (size_t)s.st_size == descriptor.len;
    for (size_t at = 0; same && at < descriptor.len; at += sizeof there) {
        size_t n = descriptor.len - at < sizeof there ? descriptor.len - at : sizeof there;
        same = files_read_all(fd, room_of(there, n), at) == 0 &&
               memcmp(there, descriptor.at + at, n) == 0;
    }
    close(fd);
    return same;
}

/* NULL if there is none. */
static struct kept *kept_of(struct depot *d, struct bytes descriptor) {
    char stem[DEPOT_NAME_MAX];
    if (d->kept_bytes == 0)
        return NULL;
    kept_stem(descriptor, stem);
    for (struct kept *k = d->kept; k < d->kept + DEPOT_KEPT_MAX; k++)
        if (strncmp(k->name, stem, STEM) == 0 && has_descriptor(d, k->name, descriptor))
            return k;
    return NULL;
}

bool kept_take(struct depot *d, struct bytes descriptor, char name[DEPOT_NAME_MAX]) {
    struct kept *k = kept_of(d, descriptor);
    if (k == NULL)
        return false;
    memcpy(name, k->name, DEPOT_NAME_MAX);
    d->kept_bytes -= k->bytes;
    k->name[0] = '\0';
    return true;
}

void kept_drop(struct depot *d, struct bytes descriptor) {
    for (struct kept *k; (k = kept_of(d, descriptor)) != NULL;)
        drop(d, k);
}

/* ---- what was there before ---- */

/* When something in it was last written. */
static uint64_t newest_ns(const struct depot *d, const char *name) {
    uint64_t newest = 0;
    DIR *dir = open_dir(d, name);
    if (dir == NULL)
        return 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        struct stat s;
        if (fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(s.st_mode) &&
            files_mtime_ns(&s) > newest)
            newest = files_mtime_ns(&s);
    }
    closedir(dir);
    return newest;
}

/* Bytes that it says it has; 0 if it is worth nothing. */
static uint64_t bytes_of_bundle(struct depot *d, const char *name) {
    struct depot_bundle *b;
    if (bundle_raise(d, name, (struct bytes){0}, false, &b) < 0)
        return 0;
    uint64_t bytes = b->claimed_bytes;
    bundle_lower(b);
    return bytes;
}

static void load(struct depot *d, const char *name) {
    remove_all_hidden(d, name);
    uint64_t used_ns = newest_ns(d, name); /* before it is opened */
    uint64_t bytes = is_bundle(name) ? bytes_of_bundle(d, name) : 0;
    if (bytes > 0)
        add(d, name, bytes, used_ns);
    else
        kept_remove(d, name);
}

void kept_load(struct depot *d) {
    DIR *dir = open_dir(d, ".");
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            load(d, e->d_name);
    closedir(dir);
    kept_expire(d);
    kept_trim(d);
}
