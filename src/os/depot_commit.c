/* SPDX-License-Identifier: MIT */
/* Making a bundle visible: see depot_inside.h.
 *
 * First everything that can fail for lack of room or of a right: lengths, owners, modes and times of files, where they
 * are. Then folders are made and files moved, one call each; last come the modes of folders, as one that cannot be
 * written to could take nothing in. */
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
#include "os/digest.h"
#include "os/files.h"

/* ---- what is in the way ---- */

/* Whether an entry may take the place of what is there. */
static int check_kind(const struct entry *e, unsigned mode) {
    if (e->kind == ENTRY_FOLDER)
        return S_ISDIR(mode) ? 0 : S_ISLNK(mode) ? -ELOOP : -ENOTDIR;
    if (S_ISDIR(mode))
        return -EISDIR;
    return S_ISREG(mode) || S_ISLNK(mode) ? 0 : -EEXIST;
}

static int check_destination(struct depot_bundle *b, const struct entry *e) {
    char path[PATH_MAX];
    const char *name;
    struct stat s;
    int r = place_path(b, e, path);
    if (r == 0)
        r = place_spot(b, path, &name);
    if (r < 0 || !b->spot.there)
        return r;
    if (fstatat(b->spot.fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return check_kind(e, s.st_mode);
}

static struct bytes first_part(struct bytes path) {
    const uint8_t *slash = memchr(path.at, '/', path.len);
    return bytes_of(path.at, slash == NULL ? path.len : (size_t)(slash - path.at));
}

static int check_destinations(struct depot_bundle *b, char why[256]) {
    struct manifest_cursor c;
    struct bytes top = {0};
    place_spot_close(b); /* folders may have come since */
    for (bool more = manifest_first(&b->m, &c); more; more = manifest_next(&b->m, &c)) {
        struct bytes first = first_part(c.e.path);
        top = c.number == 0 ? first : top;
        if (b->b.replace && !bytes_equal(top, first))
            return depot_fail(why, -EINVAL, "several things cannot have one name: %.*s",
                              (int)b->b.to.len, (const char *)b->b.to.at);
        int r = check_destination(b, &c.e);
        if (r < 0)
            return place_fail(b, &c.e, r, why);
    }
    return 0;
}

int commit_check(struct depot_bundle *b, char why[256]) {
    if (b->b.goal == GOAL_PATH)
        return check_destinations(b, why);
    if (b->m.files > DEPOT_FILES_MAX)
        return depot_fail(why, -E2BIG, "%u files at once are more than the cache takes: %u",
                          b->m.files, DEPOT_FILES_MAX);
    return 0;
}

/* ---- files ---- */

static struct timespec time_of(int64_t ns) {
    int64_t s = ns / (int64_t)NS_PER_S, rest = ns % (int64_t)NS_PER_S;
    if (rest < 0) {
        s--;
        rest += (int64_t)NS_PER_S;
    }
    return (struct timespec){.tv_sec = s, .tv_nsec = (long)rest};
}

/* Owner first: changing it takes away some bits of the mode. */
static int dress(int fd, const struct entry *e, unsigned mode, bool owner) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, time_of(e->mtime_ns)};
    struct stat s;
    if (fstat(fd, &s) < 0)
        return -errno;
    bool other = s.st_uid != e->uid || s.st_gid != e->gid;
    if (owner && other && geteuid() == 0 && fchown(fd, e->uid, e->gid) < 0)
        return -errno;
    return fchmod(fd, mode) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

/* Its last bytes may be a hole, or it may have none at all. */
static int finish(struct depot_bundle *b, const struct manifest_cursor *c, unsigned mode,
                  bool owner, char why[256]) {
    int fd = place_part(b, c, true, why);
    if (fd < 0)
        return fd;
    int r = ftruncate(fd, (off_t)c->e.bytes) < 0 ? -errno : dress(fd, &c->e, mode, owner);
    return r < 0 ? place_fail(b, &c->e, r, why) : 0;
}

/* ---- into the cache ---- */

/* The pieces of one file that are of no other. */
struct rows {
    struct shelf_source source;
    struct depot_bundle *b;
    uint32_t piece;
    uint64_t from, end; /* in the stream */
};

static bool next_row(struct shelf_source *source, uint64_t *ret_offset, struct piece *ret) {
    struct rows *r = CONTAINER_OF(source, struct rows, source);
    while (r->piece < r->b->b.pieces) {
        uint64_t start;
        struct piece p = bundle_piece(r->b, r->piece++, &start);
        if (start + p.bytes > r->end)
            return false;
        if (p.hole || p.bytes == 0)
            continue;
        *ret_offset = start - r->from;
        *ret = p;
        return true;
    }
    return false;
}

/* The last part of its path, unless that is a name which the shelf needs. */
static void object_name(const struct entry *e, char out[NAME_MAX + 1]) {
    const uint8_t *slash = memrchr(e->path.at, '/', e->path.len);
    size_t skip = slash == NULL ? 0 : (size_t)(slash + 1 - e->path.at);
    snprintf(out, NAME_MAX + 1, "%.*s", (int)(e->path.len - skip), (const char *)e->path.at + skip);
    if (!shelf_name_fits(out))
        snprintf(out, NAME_MAX + 1, "file");
}

/* Nobody may write to it; whoever has the cache may read it. */
static unsigned object_mode(const struct entry *e) {
    return (e->mode & 0555) | 0400;
}

/* Pieces fit their digests, but where somebody is mistrusted that does not prove that the sum of the whole is
 * right, and others will ask for it by that. */
static int check_sum(struct depot_bundle *b, const struct manifest_cursor *c, char why[256]) {
    if (!sum_is_known(c->e.sum))
        return depot_fail(why, -EBADMSG, "%.*s: its sum is not known, by which caches have files",
                          (int)c->e.path.len, (const char *)c->e.path.at);
    if (b->b.digest == DIGEST_XXH3 || b->believed)
        return 0;
    bool strong = sum_kind(c->e.sum) == DIGEST_SHA256;
    int fd = strong ? place_part(b, c, false, why) : 0;
    int r = !strong ? 0 : fd < 0 ? fd : shelf_fits(fd, c->e.sum);
    if (r < 0)
        return fd < 0 ? r : place_fail(b, &c->e, r, why);
    if (r == 1)
        return 0;
    return depot_fail(why, -EINVAL, "%.*s: its contents have another digest than was said",
                      (int)c->e.path.len, (const char *)c->e.path.at);
}

static int put(struct depot_bundle *b, const struct manifest_cursor *c, const char *name,
               uint32_t *ret_slot) {
    struct shelf *s = &b->d->shelf;
    char part[DEPOT_PART_NAME_MAX];
    struct rows rows = {.source = {.next = next_row, .digest = b->b.digest},
                        .b = b,
                        .piece = bundle_piece_from(b, c->offset),
                        .from = c->offset,
                        .end = c->offset + c->e.bytes};
    *ret_slot = shelf_find(s, c->e.sum);
    if (*ret_slot != SHELF_NONE && shelf_check(s, *ret_slot) == 0)
        return 0; /* another bundle was faster */
    *ret_slot = shelf_find(s, c->e.sum);
    if (*ret_slot != SHELF_NONE)
        shelf_remove(s, *ret_slot); /* a damaged one that somebody still reads */
    place_part_name(c->number, part);
    int r = shelf_put(s, b->dir, part, c->e.sum, name, &rows.source, ret_slot);
    if (r == 0)
        find_add_object(b->d, *ret_slot);
    return r;
}

static int stow(struct depot_bundle *b, const struct manifest_cursor *c, char why[256]) {
    struct shelf *s = &b->d->shelf;
    char name[NAME_MAX + 1];
    uint32_t slot = SHELF_NONE;
    int r = 0;
    object_name(&c->e, name);
    bool whole = bits_test(b->whole, c->number);
    if (whole) {
        slot = shelf_find(s, c->e.sum);
        r = slot == SHELF_NONE ? -ENOENT : shelf_check(s, slot);
    } else {
        r = finish(b, c, object_mode(&c->e), false, why);
        if (r == 0)
            r = check_sum(b, c, why);
        place_close(b);
        if (r < 0)
            return r;
        r = put(b, c, name, &slot);
    }
    if (r == 0)
        r = shelf_name(s, slot, name, object_mode(&c->e));
    if (r < 0)
        return place_fail(b, &c->e, r, why);
    if (!whole)
        s->objects[slot].pins++;
    bits_set_run(b->whole, c->number, c->number);
    return 0;
}

static int stow_all(struct depot_bundle *b, char why[256]) {
    struct manifest_cursor c;
    for (bool more = manifest_first(&b->m, &c); more; more = manifest_next(&b->m, &c)) {
        int r = c.e.kind == ENTRY_FILE ? stow(b, &c, why) : 0;
        if (r < 0)
            return r;
    }
    kept_trim(b->d);
    return 0;
}

/* ---- to their paths ---- */

static int finish_all(struct depot_bundle *b, char why[256]) {
    struct manifest_cursor c;
    int r = 0;
    for (bool more = manifest_first(&b->m, &c); more && r == 0; more = manifest_next(&b->m, &c))
        if (c.e.kind == ENTRY_FILE)
            r = finish(b, &c, c.e.mode, true, why);
    place_close(b);
    place_spot_close(b);
    return r;
}

/* The folder that an entry goes to is there afterwards. */
static int arrive(struct depot_bundle *b, const struct entry *e, char path[PATH_MAX],
                  const char **ret_name) {
    int r = place_path(b, e, path);
    if (r == 0)
        r = place_spot(b, path, ret_name);
    if (r < 0 || b->spot.there)
        return r;
    int made = beneath_make(depot_beneath(b->d, b->spot.path), b->spot.path);
    if (made < 0)
        return made;
    close(b->spot.fd);
    b->spot.fd = made;
    b->spot.len = strlen(b->spot.path);
    b->spot.there = true;
    return 0;
}

static int move_file(struct depot_bundle *b, uint32_t number, const char *name) {
    char part[DEPOT_PART_NAME_MAX], path[PATH_MAX];
    const char *hidden;
    int r = 0;
    place_part_name(number, part);
    int folder = place_hidden(b->d, b->dir, part, path, &hidden);
    if (folder == -EINVAL) { /* no link: it is there itself */
        r = renameat(b->dir, part, b->spot.fd, name) < 0 ? -errno : 0;
    } else if (folder >= 0) {
        r = renameat(folder, hidden, b->spot.fd, name) < 0 ? -errno : 0;
        close(folder);
        if (r == 0)
            unlinkat(b->dir, part, 0);
    }
    if (r == 0)
        bits_clear_run(b->begun, number, number);
    return folder < 0 && folder != -EINVAL ? folder : r;
}

static int make_folder(struct depot_bundle *b, const struct manifest_cursor *c, const char *name) {
    if (mkdirat(b->spot.fd, name, (c->e.mode & 0777) | 0700) == 0) {
        bits_set_run(b->begun, c->number, c->number);
        return 0;
    }
    return errno == EEXIST ? check_destination(b, &c->e) : -errno;
}

static int make_link(struct depot_bundle *b, const struct manifest_cursor *c, const char *name) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, time_of(c->e.mtime_ns)};
    char target[PATH_MAX], hidden[NAME_MAX + 1], part[DEPOT_PART_NAME_MAX];
    int folder = b->spot.fd;
    snprintf(target, sizeof target, "%.*s", (int)c->e.target.len, (const char *)c->e.target.at);
    int r = place_hide(b, c->number, hidden);
    if (r < 0)
        return r;
    unlinkat(folder, hidden, 0); /* of an earlier life */
    if (symlinkat(target, folder, hidden) < 0 ||
        (geteuid() == 0 && fchownat(folder, hidden, c->e.uid, c->e.gid, AT_SYMLINK_NOFOLLOW) < 0) ||
        utimensat(folder, hidden, times, AT_SYMLINK_NOFOLLOW) < 0 ||
        renameat(folder, hidden, folder, name) < 0)
        return -errno;
    place_part_name(c->number, part);
    unlinkat(b->dir, part, 0);
    return 0;
}

static int reveal(struct depot_bundle *b, const struct manifest_cursor *c) {
    char path[PATH_MAX];
    const char *name;
    int r = arrive(b, &c->e, path, &name);
    if (r < 0)
        return r;
    switch ((enum entry_kind)c->e.kind) {
    case ENTRY_FILE:
        return move_file(b, c->number, name);
    case ENTRY_FOLDER:
        return make_folder(b, c, name);
    case ENTRY_LINK:
        return make_link(b, c, name);
    case ENTRY_KINDS:
        break;
    }
    return -EINVAL;
}

static int dress_folder(struct depot_bundle *b, const struct manifest_cursor *c) {
    char path[PATH_MAX];
    const char *name;
    int r = arrive(b, &c->e, path, &name);
    if (r < 0)
        return r;
    int fd = openat(b->spot.fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = dress(fd, &c->e, c->e.mode, true);
    close(fd);
    return r;
}

/* Those that we have made; what is in a folder comes before it. */
static int dress_folders(struct depot_bundle *b, char why[256]) {
    struct manifest_cursor c;
    for (uint32_t i = b->m.entries; i-- > 0;) {
        if (!bits_test(b->begun, i) || !manifest_at(&b->m, i, &c) || c.e.kind != ENTRY_FOLDER)
            continue;
        int r = dress_folder(b, &c);
        if (r < 0)
            return place_fail(b, &c.e, r, why);
    }
    return 0;
}

static int reveal_all(struct depot_bundle *b, char why[256]) {
    struct manifest_cursor c;
    for (bool more = manifest_first(&b->m, &c); more; more = manifest_next(&b->m, &c)) {
        int r = reveal(b, &c);
        if (r < 0)
            return place_fail(b, &c.e, r, why);
    }
    return dress_folders(b, why);
}

int depot_commit(struct depot_bundle *b, char why[256]) {
    if (b->committed)
        return 0;
    int r = bundle_error(b, why);
    if (r < 0)
        return r;
    if (b->have_count < b->b.pieces)
        return depot_fail(why, -ENODATA, "%u of %u pieces are missing", b->b.pieces - b->have_count,
                          b->b.pieces);
    ASSERT(b->known);
    find_old_close(b);
    r = commit_check(b, why);
    if (r == 0 && b->b.goal == GOAL_SPOOL)
        r = stow_all(b, why);
    if (r == 0 && b->b.goal == GOAL_PATH) {
        r = finish_all(b, why);
        if (r == 0)
            r = bundle_break(b, reveal_all(b, why), why); /* what was moved cannot be again */
    }
    place_spot_close(b);
    b->committed = r == 0;
    return r;
}
