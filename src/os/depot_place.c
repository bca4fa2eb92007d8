/* SPDX-License-Identifier: MIT */
/* Where the contents of a bundle are while it comes, and afterwards: see depot_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/beneath.h"
#include "os/depot_inside.h"
#include "os/files.h"

/* ---- destinations ---- */

/* The part of an entry's path that comes behind `to`. */
static struct bytes behind(const struct depot_bundle *b, const struct entry *e) {
    if (!b->b.replace)
        return e->path;
    const uint8_t *slash = memchr(e->path.at, '/', e->path.len);
    size_t skip = slash == NULL ? e->path.len : (size_t)(slash + 1 - e->path.at);
    return bytes_of(e->path.at + skip, e->path.len - skip);
}

int place_path(const struct depot_bundle *b, const struct entry *e, char out[PATH_MAX]) {
    struct bytes to = bytes_of(b->b.to.at + 1, b->b.to.len - 1), rest = behind(b, e);
    const char *between = to.len > 0 && rest.len > 0 ? "/" : "";
    int n = snprintf(out, PATH_MAX, "%.*s%s%.*s", (int)to.len, (const char *)to.at, between,
                     (int)rest.len, (const char *)rest.at);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int place_fail(const struct depot_bundle *b, const struct entry *e, int error, char why[256]) {
    char path[PATH_MAX];
    if (b->b.goal == GOAL_PATH && place_path(b, e, path) == 0)
        return depot_fail(why, error, "/%s: %s", path, depot_reason(error));
    return depot_fail(why, error, "%.*s: %s", (int)e->path.len, (const char *)e->path.at,
                      depot_reason(error));
}

/* Whether a file can be moved from one folder to the other. A bind mount has the same device, but moving into it
 * does not work. */
static bool same_mount(int a, int b) {
#ifdef STATX_MNT_ID
    struct statx x, y;
    const unsigned mask = STATX_MNT_ID;
    return statx(a, "", AT_EMPTY_PATH, mask, &x) == 0 &&
           statx(b, "", AT_EMPTY_PATH, mask, &y) == 0 && (x.stx_mask & mask) != 0 &&
           (y.stx_mask & mask) != 0 && x.stx_mnt_id == y.stx_mnt_id &&
           x.stx_dev_major == y.stx_dev_major && x.stx_dev_minor == y.stx_dev_minor;
#else
    (void)a;
    (void)b;
    return false; /* nobody knows */
#endif
}

/* Cuts the path at its last slash: the folder, "" for the root, and the name in it. */
static const char *split(char *path, const char **ret_name) {
    char *slash = strrchr(path, '/');
    *ret_name = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        return "";
    *slash = '\0';
    return path;
}

void place_spot_close(struct depot_bundle *b) {
    if (b->spot.fd >= 0)
        close(b->spot.fd);
    b->spot.fd = -1;
}

int place_spot(struct depot_bundle *b, char *path, const char **ret_name) {
    struct spot *s = &b->spot;
    const char *folder = split(path, ret_name);
    if (s->fd >= 0 && strcmp(folder, s->path) == 0)
        return 0;
    place_spot_close(b);
    int top = depot_beneath(b->d, folder), fd = beneath_open(top, folder);
    s->len = strlen(folder);
    s->there = fd >= 0;
    if (fd == -ENOENT)
        fd = beneath_nearest(top, folder, &s->len);
    if (fd < 0)
        return fd;
    s->fd = fd;
    snprintf(s->path, sizeof s->path, "%s", folder);
    s->near = same_mount(fd, b->d->partial);
    return 0;
}

/* ---- hidden files ---- */

int place_hide(struct depot_bundle *b, uint32_t number, char name[NAME_MAX + 1]) {
    char part[DEPOT_PART_NAME_MAX], path[PATH_MAX];
    const struct spot *s = &b->spot;
    place_part_name(number, part);
    snprintf(name, NAME_MAX + 1, ".storm-%s-%u", b->name, number);
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)s->len, s->path, name);
    if (n < 0 || n >= (int)sizeof path)
        return -ENAMETOOLONG;
    unlinkat(b->dir, part, 0);
    return symlinkat(path, b->dir, part) < 0 ? -errno : 0;
}

int place_hidden(const struct depot *d, int dir, const char *part, char path[PATH_MAX],
                 const char **ret_name) {
    ssize_t len = readlinkat(dir, part, path, PATH_MAX - 1);
    if (len < 0)
        return -errno;
    path[len] = '\0';
    const char *folder = split(path, ret_name);
    if (strncmp(*ret_name, ".storm-", 7) != 0)
        return -EINVAL;
    return beneath_open(depot_beneath(d, folder), folder);
}

/* A mover that died in its commit had given some files their modes already, and we may not be allowed to write to what is ours then. */
static int allow_writing(int folder, const char *name) {
    char path[64];
    struct stat s;
    int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool ours = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid();
    int r = ours && chmod(path, 0600) == 0 ? 0 : -EACCES;
    close(fd);
    return r;
}

static int open_to_write(int folder, const char *name) {
    const int flags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(folder, name, flags);
    if (fd < 0 && errno == EACCES && allow_writing(folder, name) == 0)
        fd = openat(folder, name, flags);
    return fd < 0 ? -errno : fd;
}

/* Others may write in that folder: it must still be the file that we made, perhaps for its owner already. */
static int open_hidden(const struct depot_bundle *b, const struct entry *e, const char *part) {
    char path[PATH_MAX];
    const char *name;
    struct stat s;
    int folder = place_hidden(b->d, b->dir, part, path, &name);
    if (folder < 0)
        return folder;
    int fd = open_to_write(folder, name);
    int r = fd < 0 ? fd : fstat(fd, &s) < 0 ? -errno : 0;
    close(folder);
    if (r == 0 &&
        (!S_ISREG(s.st_mode) || s.st_nlink != 1 || (s.st_uid != geteuid() && s.st_uid != e->uid)))
        r = -ESTALE;
    if (r == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return r;
}

static int make_hidden(struct depot_bundle *b, uint32_t number) {
    char name[NAME_MAX + 1];
    int r = place_hide(b, number, name);
    if (r < 0)
        return r;
    unlinkat(b->spot.fd, name, 0); /* of an earlier life */
    int fd = openat(b->spot.fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* ---- files on their way ---- */

void place_part_name(uint32_t number, char out[DEPOT_PART_NAME_MAX]) {
    snprintf(out, DEPOT_PART_NAME_MAX, "f%u", number);
}

static int make_part(struct depot_bundle *b, const struct manifest_cursor *c) {
    char part[DEPOT_PART_NAME_MAX], path[PATH_MAX];
    const char *name;
    if (b->b.goal == GOAL_PATH) {
        int r = place_path(b, &c->e, path);
        if (r == 0)
            r = place_spot(b, path, &name);
        if (r < 0)
            return r;
        if (!b->spot.near)
            return make_hidden(b, c->number);
    }
    place_part_name(c->number, part);
    int fd = openat(b->dir, part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* One that was begun and is not there was taken away by somebody: it must not be begun again, with holes. */
static int open_part(struct depot_bundle *b, const struct manifest_cursor *c, bool make) {
    char part[DEPOT_PART_NAME_MAX];
    bool begun = bits_test(b->begun, c->number);
    int fd = -ENOENT;
    if (begun || b->adopted) {
        place_part_name(c->number, part);
        fd = open_to_write(b->dir, part);
        if (fd == -ELOOP)
            fd = open_hidden(b, &c->e, part);
    }
    if (fd == -ENOENT && make && !begun)
        fd = make_part(b, c);
    if (fd >= 0)
        bits_set_run(b->begun, c->number, c->number);
    return fd;
}

/* After the commit. */
static int open_destination(struct depot_bundle *b, const struct manifest_cursor *c) {
    char path[PATH_MAX];
    const char *name;
    int r = place_path(b, &c->e, path);
    if (r == 0)
        r = place_spot(b, path, &name);
    if (r < 0)
        return r;
    int fd = openat(b->spot.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_any(struct depot_bundle *b, const struct manifest_cursor *c, bool make) {
    if (bits_test(b->whole, c->number)) {
        uint32_t slot = shelf_find(&b->d->shelf, c->e.sum);
        return slot == SHELF_NONE ? -ENOENT : shelf_open(&b->d->shelf, slot);
    }
    return b->committed ? open_destination(b, c) : open_part(b, c, make);
}

static void close_part(struct part *p) {
    mapped_end(&p->mapped);
    if (p->reader >= 0)
        close(p->reader);
    if (p->fd >= 0)
        close(p->fd);
    p->fd = p->reader = -1;
}

/* The one of this entry that is open; NULL: none is. */
static struct part *open_one(struct depot_bundle *b, uint32_t number) {
    for (struct part *p = b->parts; p < b->parts + DEPOT_PARTS; p++)
        if (p->fd >= 0 && p->number == number)
            return p;
    return NULL;
}

int place_part(struct depot_bundle *b, const struct manifest_cursor *c, bool make, char why[256]) {
    struct part *p = open_one(b, c->number);
    if (p != NULL)
        return p->fd;
    int fd = open_any(b, c, make);
    if (fd < 0)
        return place_fail(b, &c->e, fd, why);
    p = &b->parts[b->next_part++ % DEPOT_PARTS];
    close_part(p);
    *p = (struct part){.number = c->number, .fd = fd, .reader = -1};
    return fd;
}

void place_close(struct depot_bundle *b) {
    for (struct part *p = b->parts; p < b->parts + DEPOT_PARTS; p++)
        close_part(p);
}

/* ---- parts of the stream ---- */

/* How many of the next `len` bytes of the stream are this entry's. */
static size_t share(const struct manifest_cursor *c, uint64_t offset, size_t len) {
    uint64_t left = c->offset + c->e.bytes - offset;
    return left < len ? (size_t)left : len;
}

static int spoilt(char why[256]) {
    return depot_fail(why, -EIO, "the manifest was changed on the disk while it was used");
}

/* The manifest itself is in the head already. */
int place_write(struct depot_bundle *b, uint64_t offset, struct bytes bytes, char why[256]) {
    struct manifest_cursor c;
    if (offset < b->b.manifest_bytes) {
        uint64_t skip = b->b.manifest_bytes - offset;
        if (skip >= bytes.len)
            return 0;
        bytes = bytes_of(bytes.at + skip, bytes.len - skip);
        offset += skip;
    }
    bool more = manifest_seek(&b->m, offset, &c);
    for (; bytes.len > 0 && more; more = manifest_next(&b->m, &c)) {
        size_t n = share(&c, offset, bytes.len);
        if (n > 0 && !bits_test(b->whole, c.number)) {
            int fd = place_part(b, &c, true, why);
            int r = fd < 0 ? fd : files_write(fd, bytes_of(bytes.at, n), offset - c.offset);
            if (r < 0)
                return fd < 0 ? r : place_fail(b, &c.e, r, why);
        }
        bytes = bytes_of(bytes.at + n, bytes.len - n);
        offset += n;
    }
    return bytes.len > 0 ? spoilt(why) : 0;
}

int place_read(struct depot_bundle *b, uint64_t offset, struct room room, char why[256]) {
    struct manifest_cursor c;
    if (offset < b->b.manifest_bytes) {
        uint64_t left = b->b.manifest_bytes - offset;
        size_t n = left < room.len ? (size_t)left : room.len;
        int r = files_read_all(b->head, room_of(room.at, n), offset);
        if (r < 0)
            return depot_fail(why, r, "the manifest of a bundle: %s", depot_reason(r));
        room = room_of(room.at + n, room.len - n);
        offset += n;
    }
    if (room.len == 0)
        return 0;
    bool more = manifest_seek(&b->m, offset, &c);
    for (; room.len > 0 && more; more = manifest_next(&b->m, &c)) {
        size_t n = share(&c, offset, room.len);
        if (n > 0) {
            int fd = place_part(b, &c, false, why);
            int r = fd < 0 ? fd : files_read_all(fd, room_of(room.at, n), offset - c.offset);
            if (r < 0)
                return fd < 0 ? r : place_fail(b, &c.e, r, why);
        }
        room = room_of(room.at + n, room.len - n);
        offset += n;
    }
    return room.len > 0 ? spoilt(why) : 0;
}

/* The entry that has all of these bytes, of which some are not here already. */
static bool one_file(struct depot_bundle *b, uint64_t start, uint32_t bytes,
                     struct manifest_cursor *c) {
    return b->known && start >= b->b.manifest_bytes && manifest_seek(&b->m, start, c) &&
           share(c, start, bytes) == bytes && !bits_test(b->whole, c->number);
}

int place_for(struct depot_bundle *b, uint64_t start, uint32_t bytes, uint64_t *ret_offset,
              char why[256]) {
    struct manifest_cursor c;
    if (!one_file(b, start, bytes, &c))
        return -ENOENT;
    *ret_offset = start - c.offset;
    return place_part(b, &c, true, why);
}

int place_blame(struct depot_bundle *b, uint64_t start, int error, char why[256]) {
    struct manifest_cursor c;
    return manifest_seek(&b->m, start, &c) ? place_fail(b, &c.e, error, why) : spoilt(why);
}

/* Is it as we have left it, as far as can be seen without reading it? */
static bool untouched(int fd, const struct entry *e) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size == (off_t)e->bytes &&
           s.st_mtim.tv_sec * (int64_t)NS_PER_S + s.st_mtim.tv_nsec == e->mtime_ns;
}

/* In which file a piece that is here lies, and where in it. */
static bool find_file(struct depot_bundle *b, uint32_t piece, struct manifest_cursor *c,
                      uint64_t *ret_offset, uint32_t *ret_len) {
    uint64_t start;
    if (b->error < 0 || !b->known || !bits_test(b->have, piece))
        return false;
    struct piece p = bundle_piece(b, piece, &start);
    if (p.hole || !one_file(b, start, p.bytes, c))
        return false;
    *ret_offset = start - c->offset;
    *ret_len = p.bytes;
    char why[256];
    int fd = place_part(b, c, false, why);
    return fd >= 0 && (!b->committed || untouched(fd, &c->e));
}

bool depot_lies(struct depot_bundle *b, uint32_t piece, uint32_t *ret_len) {
    struct manifest_cursor c;
    uint64_t offset;
    return find_file(b, piece, &c, &offset, ret_len);
}

int depot_lend(struct depot_bundle *b, uint32_t piece, uint64_t *ret_offset, uint32_t *ret_len) {
    struct manifest_cursor c;
    if (!find_file(b, piece, &c, ret_offset, ret_len))
        return -1;
    struct part *p = open_one(b, c.number);
    if (p->reader < 0)
        p->reader = files_open_again(p->fd, O_RDONLY);
    return p->reader < 0 ? -1 : fcntl(p->reader, F_DUPFD_CLOEXEC, 0);
}

/* Little is written as fast without; and of what is never sent not much is to be left. */
#define RESERVE_LEAST ((uint64_t)1 << 20)
#define RESERVE_MOST  ((uint64_t)32 << 20)

void place_reserve(struct depot_bundle *b, uint32_t piece, uint64_t start) {
    struct manifest_cursor c;
    struct part *p = manifest_seek(&b->m, start, &c) ? open_one(b, c.number) : NULL;
    uint64_t from = start - c.offset;
    if (p == NULL || (from >= p->reserved_from && from < p->reserved_to))
        return;
    uint64_t run = bundle_run(b, piece, RESERVE_MOST), left = c.e.bytes - from;
    run = run < left ? run : left;
    p->reserved_from = from;
    p->reserved_to = from + run;
    /* The file becomes longer at once: what is written within its length is mapped in larger units. */
    if (run >= RESERVE_LEAST)
        fallocate(p->fd, 0, (off_t)from, (off_t)run);
}

struct bytes place_view(struct depot_bundle *b, uint64_t start, uint32_t bytes) {
    struct manifest_cursor c;
    char why[256];
    if (!one_file(b, start, bytes, &c) || place_part(b, &c, false, why) < 0)
        return (struct bytes){0};
    struct part *p = open_one(b, c.number);
    return mapped_part(&p->mapped, p->fd, c.e.bytes, start - c.offset, bytes);
}
