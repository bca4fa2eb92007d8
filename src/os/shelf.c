/* SPDX-License-Identifier: MIT */
/* Files that are kept by their digests: see shelf.h. */
#include "os/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/units.h"
#include "os/digest.h"
#include "os/files.h"

enum { HEAD_BYTES = MARK_HEAD_BYTES };

static const char data_name[] = ".data", table_name[] = MARK_TABLE_NAME;

enum { FOLDER_MAX = 2 + 1 + 64 + 1 };

static void folder_of(const uint8_t sum[32], char out[FOLDER_MAX]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 32; i++) {
        out[3 + 2 * i] = digits[sum[i] >> 4];
        out[4 + 2 * i] = digits[sum[i] & 15];
    }
    out[0] = out[3];
    out[1] = out[4];
    out[2] = '/';
    out[FOLDER_MAX - 1] = '\0';
}

void shelf_path(const uint8_t sum[32], const char *name, char path[SHELF_PATH_MAX]) {
    folder_of(sum, path);
    snprintf(path + FOLDER_MAX - 1, SHELF_PATH_MAX - FOLDER_MAX + 1, "/%s", name);
}

bool shelf_name_fits(const char *name) {
    return *name != '\0' && strlen(name) <= BUNDLE_NAME_BYTES_MAX && strchr(name, '/') == NULL &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, data_name) != 0 &&
           strcmp(name, table_name) != 0;
}

/* ---- slots ---- */

static uint32_t *bucket_of(struct shelf *s, const uint8_t sum[32]) {
    return &s->buckets[load_le32(sum) % SHELF_BUCKETS];
}

uint32_t shelf_find(const struct shelf *s, const uint8_t sum[32]) {
    uint32_t slot = s->buckets[load_le32(sum) % SHELF_BUCKETS];
    while (slot != SHELF_NONE && memcmp(s->objects[slot].sum, sum, 32) != 0)
        slot = s->objects[slot].next;
    return slot;
}

static int grow(struct shelf *s) {
    uint32_t cap = s->objects_cap == 0 ? 64 : s->objects_cap * 2;
    if (cap > SHELF_OBJECTS_MAX)
        return -E2BIG;
    struct object *more = realloc(s->objects, cap * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    s->objects = more;
    s->objects_cap = cap;
    return 0;
}

/* A slot that nobody has; the oldest has to go if there is none. */
static int take_slot(struct shelf *s, uint32_t *ret) {
    int r = 0;
    if (s->free == SHELF_NONE && s->objects_end == s->objects_cap)
        r = grow(s);
    if (r == -E2BIG && shelf_oldest(s) != SHELF_NONE) {
        shelf_remove(s, shelf_oldest(s));
        r = 0;
    }
    if (r < 0)
        return r;
    *ret = s->free;
    if (s->free != SHELF_NONE)
        s->free = s->objects[s->free].next;
    else
        *ret = s->objects_end++;
    return 0;
}

static int add(struct shelf *s, const struct object *o, uint32_t *ret) {
    int r = take_slot(s, ret);
    if (r < 0)
        return r;
    uint32_t *bucket = bucket_of(s, o->sum);
    s->objects[*ret] = *o;
    s->objects[*ret].here = true;
    s->objects[*ret].next = *bucket;
    *bucket = *ret;
    s->bytes += o->mark.bytes;
    return 0;
}

static void forget(struct shelf *s, uint32_t slot) {
    struct object *o = &s->objects[slot];
    uint32_t *at = bucket_of(s, o->sum);
    while (*at != slot)
        at = &s->objects[*at].next;
    *at = o->next;
    s->bytes -= o->mark.bytes;
    *o = (struct object){.next = s->free};
    s->free = slot;
}

/* It is gone at once, though removing takes a while and may be interrupted. */
static void discard(struct shelf *s, const char *path) {
    static const char gone[] = "gone";
    files_remove(s->waste, gone);
    if (renameat(s->folder, path, s->waste, gone) == 0)
        files_remove(s->waste, gone);
    else
        files_remove(s->folder, path);
}

void shelf_remove(struct shelf *s, uint32_t slot) {
    char path[FOLDER_MAX];
    ASSERT(s->objects[slot].here);
    folder_of(s->objects[slot].sum, path);
    forget(s, slot);
    discard(s, path);
}

uint32_t shelf_oldest(const struct shelf *s) {
    uint32_t oldest = SHELF_NONE;
    for (uint32_t i = 0; i < s->objects_end; i++) {
        const struct object *o = &s->objects[i];
        if (o->here && o->pins == 0 &&
            (oldest == SHELF_NONE || o->used_ns < s->objects[oldest].used_ns))
            oldest = i;
    }
    return oldest;
}

void shelf_pin(struct shelf *s, const uint8_t sum[32]) {
    uint32_t slot = shelf_find(s, sum);
    if (slot != SHELF_NONE)
        s->objects[slot].pins++;
}

/* Pins go with a damaged object, and it may have come again since. */
void shelf_unpin(struct shelf *s, const uint8_t sum[32]) {
    uint32_t slot = shelf_find(s, sum);
    if (slot == SHELF_NONE || s->objects[slot].pins == 0)
        return;
    s->objects[slot].pins--;
    if (s->objects[slot].damaged)
        shelf_damaged(s, slot);
}

void shelf_damaged(struct shelf *s, uint32_t slot) {
    s->objects[slot].damaged = true;
    if (s->objects[slot].pins == 0)
        shelf_remove(s, slot);
}

/* ---- marks ---- */

static struct mark mark_of(const struct shelf *s, const struct stat *st) {
    return (struct mark){.bytes = (uint64_t)st->st_size,
                         .mtime_ns = files_mtime_ns(st),
                         .ctime_ns = files_ctime_ns(st),
                         .inode = st->st_ino,
                         .boot = s->boot};
}

static bool same_mark(const struct mark *a, const struct mark *b) {
    return a->bytes == b->bytes && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
           a->inode == b->inode && a->boot == b->boot;
}

static void head_encode(uint8_t head[HEAD_BYTES], const struct object *o, enum digest_kind digest,
                        uint32_t rows) {
    const uint64_t mark[] = {o->mark.bytes, o->mark.mtime_ns, o->mark.ctime_ns, o->mark.inode,
                             o->mark.boot};
    store_le64(head, MARK_TABLE_MAGIC);
    store_le32(head + 8, digest);
    store_le32(head + 12, rows);
    for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
        store_le64(head + MARK_AT + 8 * i, mark[i]);
    memcpy(head + MARK_SHA_AT, o->sum, 32);
    store_le64(head + MARK_CHECK_AT, mark_check(head));
}

static bool head_decode(const uint8_t head[HEAD_BYTES], struct object *o, struct shelf_table *t) {
    if (!mark_load(head, &o->mark))
        return false;
    t->digest = load_le32(head + 8) == DIGEST_XXH3 ? DIGEST_XXH3 : DIGEST_SHA256;
    t->rows = load_le32(head + 12);
    memcpy(o->sum, head + MARK_SHA_AT, 32);
    return true;
}

/* The file's mark is its mark from now on. */
static int mark_again(struct shelf *s, uint32_t slot) {
    struct object *o = &s->objects[slot], old;
    struct shelf_table t;
    uint8_t head[HEAD_BYTES];
    char path[SHELF_PATH_MAX];
    struct stat st;
    shelf_path(o->sum, data_name, path);
    if (fstatat(s->folder, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    shelf_path(o->sum, table_name, path);
    int fd = openat(s->folder, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = files_read_all(fd, room_of(head, sizeof head), 0);
    if (r == 0 && !head_decode(head, &old, &t))
        r = -EUCLEAN;
    if (r == 0) {
        s->bytes += (uint64_t)st.st_size - o->mark.bytes;
        o->mark = mark_of(s, &st);
        head_encode(head, o, t.digest, t.rows);
        r = files_write(fd, bytes_of(head, sizeof head), 0);
    }
    close(fd);
    return r;
}

int shelf_fits(int fd, const uint8_t sum[32]) {
    enum { CHUNK = 256 * 1024 };
    uint8_t *chunk = malloc(CHUNK), found[32];
    struct sum *s = sum_new(sum_kind(sum));
    long n = chunk == NULL || s == NULL ? -ENOMEM : 1;
    for (uint64_t at = 0; n > 0; at += (uint64_t)n) {
        n = files_read(fd, room_of(chunk, CHUNK), at);
        if (n > 0)
            sum_add(s, bytes_of(chunk, (size_t)n));
    }
    sum_end(s, found);
    free(chunk);
    return n < 0 ? (int)n : memcmp(found, sum, 32) == 0;
}

/* Reads it all; true if its contents are right. */
static bool is_right(struct shelf *s, uint32_t slot) {
    char path[SHELF_PATH_MAX];
    shelf_path(s->objects[slot].sum, data_name, path);
    int fd = openat(s->folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    int r = shelf_fits(fd, s->objects[slot].sum);
    close(fd);
    return r == 1;
}

/* Its mark, all zeros if there is no such file. */
static struct mark mark_now(const struct shelf *s, uint32_t slot) {
    char path[SHELF_PATH_MAX];
    struct stat st;
    shelf_path(s->objects[slot].sum, data_name, path);
    if (fstatat(s->folder, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return (struct mark){0};
    return mark_of(s, &st);
}

int shelf_check(struct shelf *s, uint32_t slot) {
    struct mark now = mark_now(s, slot);
    if (s->objects[slot].damaged)
        return -ENOENT;
    if (same_mark(&now, &s->objects[slot].mark))
        return 0;
    /* It gets a new mark only if it did not change while it was read. */
    if (is_right(s, slot) && mark_again(s, slot) == 0 && same_mark(&now, &s->objects[slot].mark))
        return 0;
    shelf_remove(s, slot);
    return -ENOENT;
}

int shelf_open(struct shelf *s, uint32_t slot) {
    int r = shelf_check(s, slot);
    return r < 0 ? r : shelf_open_unchecked(s, slot);
}

int shelf_open_unchecked(const struct shelf *s, uint32_t slot) {
    char path[SHELF_PATH_MAX];
    shelf_path(s->objects[slot].sum, data_name, path);
    int fd = openat(s->folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

void shelf_use(struct shelf *s, uint32_t slot) {
    struct object *o = &s->objects[slot];
    uint64_t now = files_now_ns();
    char path[SHELF_PATH_MAX];
    s->last_ns = now > s->last_ns ? now : s->last_ns + 1;
    o->used_ns = s->last_ns;
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = (time_t)(o->used_ns / NS_PER_S), .tv_nsec = (long)(o->used_ns % NS_PER_S)}};
    shelf_path(o->sum, table_name, path);
    utimensat(s->folder, path, times, AT_SYMLINK_NOFOLLOW); /* only for the next life */
}

int shelf_name(struct shelf *s, uint32_t slot, const char *name, unsigned mode) {
    struct object *o = &s->objects[slot];
    char data[SHELF_PATH_MAX], path[SHELF_PATH_MAX];
    struct stat st;
    if (!shelf_name_fits(name))
        return -EINVAL;
    shelf_path(o->sum, data_name, data);
    shelf_path(o->sum, name, path);
    bool there = fstatat(s->folder, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    bool same = there && st.st_ino == o->mark.inode;
    if (same && (mode & ~st.st_mode) == 0)
        return 0;
    if (there && !same)
        unlinkat(s->folder, path, 0);
    if (!same && linkat(s->folder, data, s->folder, path, 0) < 0)
        return -errno;
    if (fstatat(s->folder, data, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        ((mode & ~st.st_mode) != 0 &&
         fchmodat(s->folder, data, (st.st_mode | mode) & 07777, 0) < 0))
        return -errno;
    return mark_again(s, slot);
}

/* ---- tables ---- */

static uint32_t row_bytes(enum digest_kind digest) {
    return 8 + bundle_row_bytes(digest);
}

int shelf_table_open(const struct shelf *s, uint32_t slot, struct shelf_table *ret) {
    char path[SHELF_PATH_MAX];
    uint8_t head[HEAD_BYTES];
    struct object o;
    shelf_path(s->objects[slot].sum, table_name, path);
    ret->fd = openat(s->folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (ret->fd < 0)
        return -errno;
    int r = files_read_all(ret->fd, room_of(head, sizeof head), 0);
    if (r == 0 && !head_decode(head, &o, ret))
        r = -EUCLEAN;
    if (r < 0)
        close(ret->fd);
    return r;
}

bool shelf_table_row(const struct shelf_table *t, uint32_t row, uint64_t *ret_offset,
                     struct piece *ret) {
    uint8_t bytes[8 + 4 + DIGEST_BYTES_MAX];
    uint32_t len = row_bytes(t->digest);
    if (row >= t->rows ||
        files_read_all(t->fd, room_of(bytes, len), HEAD_BYTES + (uint64_t)row * len) < 0)
        return false;
    *ret_offset = load_le64(bytes);
    return piece_load(ret, t->digest, bytes_of(bytes + 8, len - 8), 0) && !ret->hole;
}

/* Returns how many. */
static long write_rows(int fd, struct shelf_source *source) {
    uint8_t buffer[8192];
    uint32_t len = row_bytes(source->digest), rows = 0;
    uint64_t at = HEAD_BYTES;
    size_t used = 0;
    struct piece p;
    for (uint64_t offset; source->next(source, &offset, &p); rows++) {
        if (used + len > sizeof buffer) {
            int r = files_write(fd, bytes_of(buffer, used), at);
            if (r < 0)
                return r;
            at += used;
            used = 0;
        }
        store_le64(buffer + used, offset);
        piece_store(buffer + used + 8, source->digest, &p);
        used += len;
    }
    int r = files_write(fd, bytes_of(buffer, used), at);
    return r < 0 ? r : (long)rows;
}

static int write_table(int folder, const struct object *o, struct shelf_source *source) {
    uint8_t head[HEAD_BYTES];
    int fd = openat(folder, table_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    long r = write_rows(fd, source);
    if (r >= 0) {
        head_encode(head, o, source->digest, (uint32_t)r);
        r = files_write(fd, bytes_of(head, sizeof head), 0);
    }
    close(fd);
    return (int)r;
}

/* ---- putting ---- */

static const char fresh_name[] = "object", fresh_data[] = "object/.data";

/* The file is in the folder of the object to be. */
static int fill(struct shelf *s, int dir, const char *name, struct object *o,
                struct shelf_source *source) {
    struct stat st;
    int folder = files_folder(dir, fresh_name, 0755);
    if (folder < 0)
        return folder;
    int r = linkat(folder, data_name, folder, name, 0) < 0 ? -errno : 0;
    if (r == 0 && fstatat(folder, data_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    if (r == 0) {
        o->mark = mark_of(s, &st);
        r = write_table(folder, o, source);
    }
    close(folder);
    return r;
}

static int move_in(struct shelf *s, int dir, const struct object *o) {
    char path[FOLDER_MAX], above[3] = "";
    folder_of(o->sum, path);
    memcpy(above, path, 2);
    if (mkdirat(s->folder, above, 0755) < 0 && errno != EEXIST)
        return -errno;
    if (renameat(dir, fresh_name, s->folder, path) == 0)
        return 0;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return -errno;
    discard(s, path); /* nothing that we know of */
    return renameat(dir, fresh_name, s->folder, path) < 0 ? -errno : 0;
}

int shelf_put(struct shelf *s, int dir, const char *part, const uint8_t sum[32], const char *name,
              struct shelf_source *source, uint32_t *ret_slot) {
    struct object o = {0};
    memcpy(o.sum, sum, 32);
    *ret_slot = shelf_find(s, sum);
    if (*ret_slot != SHELF_NONE)
        return 0;
    files_remove(dir, fresh_name);
    if (mkdirat(dir, fresh_name, 0755) < 0 || renameat(dir, part, dir, fresh_data) < 0)
        return -errno;
    int r = fill(s, dir, name, &o, source);
    if (r == 0)
        r = add(s, &o, ret_slot);
    if (r == 0) {
        r = move_in(s, dir, &o);
        if (r < 0)
            forget(s, *ret_slot);
    }
    if (r < 0) {
        renameat(dir, fresh_data, dir, part);
        files_remove(dir, fresh_name);
        return r;
    }
    shelf_use(s, *ret_slot);
    return 0;
}

/* ---- what was there before ---- */

static void load(struct shelf *s, int above, const char *name, const char *path) {
    struct object o = {0};
    struct shelf_table t = {.fd = -1};
    uint8_t head[HEAD_BYTES];
    char file[80], expected[FOLDER_MAX];
    struct stat st;
    uint32_t slot;
    snprintf(file, sizeof file, "%.64s/%s", name, table_name);
    int fd = openat(above, file, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &st) == 0 &&
                files_read_all(fd, room_of(head, sizeof head), 0) == 0 && head_decode(head, &o, &t);
    if (fd >= 0)
        close(fd);
    folder_of(o.sum, expected);
    if (!good || strcmp(expected, path) != 0) {
        discard(s, path);
        return;
    }
    o.used_ns = files_mtime_ns(&st);
    s->last_ns = o.used_ns > s->last_ns ? o.used_ns : s->last_ns;
    if (add(s, &o, &slot) < 0)
        discard(s, path);
}

static bool is_hex(const char *name, size_t len) {
    return strlen(name) == len && strspn(name, "0123456789abcdef") == len;
}

static DIR *open_dir(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    return dir;
}

static void load_all(struct shelf *s, const char *above) {
    DIR *dir = open_dir(s->folder, above);
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char path[FOLDER_MAX];
        if (!is_hex(e->d_name, 64))
            continue;
        snprintf(path, sizeof path, "%.2s/%.64s", above, e->d_name);
        load(s, dirfd(dir), e->d_name, path);
    }
    closedir(dir);
}

static uint64_t this_boot(void) {
    char id[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, id, sizeof id);
    close(fd);
    return len > 0 ? hash_once(id, (size_t)len) : 0;
}

int shelf_init(struct shelf *s, int folder, int waste) {
    *s = (struct shelf){.folder = folder, .waste = waste, .boot = this_boot(), .free = SHELF_NONE};
    for (uint32_t i = 0; i < SHELF_BUCKETS; i++)
        s->buckets[i] = SHELF_NONE;
    DIR *dir = open_dir(folder, ".");
    if (dir == NULL)
        return -errno;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (is_hex(e->d_name, 2))
            load_all(s, e->d_name);
    closedir(dir);
    return 0;
}

void shelf_fini(struct shelf *s) {
    free(s->objects);
    s->objects = NULL;
}
