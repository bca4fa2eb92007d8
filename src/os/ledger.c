/* SPDX-License-Identifier: MIT */
/* What was found out about files: see ledger.h.
 *
 *   head   magic, digest kind, length of pieces | device, inode, size, mtime, ctime | sum | rows
 *   digest of the rows, digest of all before it
 *   rows   as in the table of a bundle
 *
 * Written beside and renamed, without waiting for the disk: what a crash spoils has a wrong digest. */
#include "os/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "os/digest.h"

/* The coarsest clock of a file system that is still about (FAT) has two seconds. */
#define FRESH_NS ((int64_t)(2 * NS_PER_S))

enum { FACTS_BYTES = 96, SUM_BYTES = 16, HEAD_BYTES = FACTS_BYTES + 2 * SUM_BYTES, NAME_ROOM = 64 };
#define MAGIC 0x34524744454C5453ULL /* "STLEDGR4" */

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

/* ---- The folder -------------------------------------------------------------------------------- */

/* Makes the folder and those that it is in. */
static void make_folders(const char *path) {
    char part[PATH_MAX];
    size_t len = strlen(path);
    for (size_t i = 1; i <= len && i < sizeof part; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        mkdir(part, 0700); /* whether it is there now, opening will tell */
    }
}

/* A folder that others may write into could make us say what is not so. */
static bool is_ours(int folder) {
    struct stat s;
    return fstat(folder, &s) == 0 && s.st_uid == geteuid() && (s.st_mode & 022) == 0;
}

void ledger_open(struct ledger *l, const char *path) {
    *l = (struct ledger){.folder = -1, .opened_ns = now_ns()};
    if (path == NULL)
        return;
    l->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->folder < 0 && errno == ENOENT) {
        make_folders(path);
        l->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (l->folder >= 0 && !is_ours(l->folder)) {
        close(l->folder);
        l->folder = -1;
    }
}

struct page_of_ledger {
    int64_t used_ns;
    char name[NAME_ROOM];
};

static int newest_first(const void *a, const void *b) {
    const struct page_of_ledger *x = a, *y = b;
    return x->used_ns > y->used_ns ? -1 : x->used_ns < y->used_ns;
}

/* Names that are too long are none of ours. */
static size_t list(DIR *dir, struct page_of_ledger *pages, size_t max) {
    size_t count = 0;
    for (struct dirent *d; count < max && (d = readdir(dir)) != NULL;) {
        struct stat s;
        struct page_of_ledger *p = &pages[count];
        size_t len = strlen(d->d_name);
        if (len >= NAME_ROOM || fstatat(dirfd(dir), d->d_name, &s, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(s.st_mode))
            continue;
        memcpy(p->name, d->d_name, len + 1);
        p->used_ns = (int64_t)s.st_mtim.tv_sec * (int64_t)NS_PER_S + s.st_mtim.tv_nsec;
        count++;
    }
    return count;
}

/* Removes what was not used for longest, also what others left half written. */
static void prune(int folder) {
    enum { LOOKED_AT = 4 * LEDGER_FILES_MAX };
    struct page_of_ledger *pages = malloc(LOOKED_AT * sizeof *pages);
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    if (dir == NULL && again >= 0)
        close(again);
    if (dir != NULL && pages != NULL) {
        size_t count = list(dir, pages, LOOKED_AT);
        qsort(pages, count, sizeof *pages, newest_first);
        for (size_t i = LEDGER_FILES_MAX; i < count; i++)
            unlinkat(folder, pages[i].name, 0);
    }
    if (dir != NULL)
        closedir(dir);
    free(pages);
}

void ledger_close(struct ledger *l) {
    if (l->folder < 0)
        return;
    if (l->kept > 0)
        prune(l->folder);
    close(l->folder);
    l->folder = -1;
}

/* ---- One file ---------------------------------------------------------------------------------- */

static void name_of(const struct found *f, enum digest_kind digest, char out[NAME_ROOM]) {
    snprintf(out, NAME_ROOM, "%016llx-%016llx-%u", (unsigned long long)f->device,
             (unsigned long long)f->inode, (unsigned)digest);
}

/* What must be the same if the rest is to be believed; `rows` and SHA-256 stand behind it. */
enum { SAME_BYTES = 56, SHA_AT = SAME_BYTES, ROWS_AT = SHA_AT + 32 };
_Static_assert(ROWS_AT + 8 == FACTS_BYTES, "the facts");

static void store_facts(uint8_t head[HEAD_BYTES], const struct found *f, const struct pieces *p,
                        uint64_t rows) {
    store_le64(head, MAGIC);
    store_le32(head + 8, p->digest);
    store_le32(head + 12, p->usual);
    store_le64(head + 16, f->device);
    store_le64(head + 24, f->inode);
    store_le64(head + 32, f->e.bytes);
    store_le64(head + 40, (uint64_t)f->e.mtime_ns);
    store_le64(head + 48, (uint64_t)f->ctime_ns);
    memcpy(head + SHA_AT, f->e.sum, 32);
    store_le64(head + ROWS_AT, rows);
}

static void sum(struct bytes bytes, uint8_t out[SUM_BYTES]) {
    uint8_t digest[DIGEST_BYTES_MAX];
    digest_of(DIGEST_XXH3, bytes, digest);
    memcpy(out, digest, SUM_BYTES);
}

static bool sum_fits(struct bytes bytes, const uint8_t expected[SUM_BYTES]) {
    uint8_t is[SUM_BYTES];
    sum(bytes, is);
    return memcmp(is, expected, SUM_BYTES) == 0;
}

static bool read_exactly(int fd, uint8_t *to, size_t len, off_t from) {
    size_t at = 0;
    while (at < len) {
        ssize_t n = pread(fd, to + at, len - at, from + (off_t)at);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool load(int fd, bool sums, struct found *f, struct pieces *p) {
    uint8_t head[HEAD_BYTES], expected[HEAD_BYTES];
    store_facts(expected, f, p, 0);
    if (!read_exactly(fd, head, HEAD_BYTES, 0) || memcmp(head, expected, SAME_BYTES) != 0 ||
        !sum_fits(bytes_of(head, HEAD_BYTES - SUM_BYTES), head + HEAD_BYTES - SUM_BYTES) ||
        (sums && !sum_is_known(head + SHA_AT)))
        return false;
    uint64_t rows = load_le64(head + ROWS_AT);
    uint8_t *room = rows == 0 || rows > PIECES_MAX ? NULL : pieces_row_room(p, (uint32_t)rows);
    size_t len = (size_t)rows * bundle_row_bytes(p->digest);
    if (room == NULL || !read_exactly(fd, room, len, HEAD_BYTES) ||
        !sum_fits(bytes_of(room, len), head + FACTS_BYTES) ||
        !pieces_take_rows(p, (uint32_t)rows, f->e.bytes))
        return false;
    memcpy(f->e.sum, head + SHA_AT, 32);
    return true;
}

/* More files than are kept would only push each other out. */
static bool is_worth_it(const struct ledger *l, const struct found *f) {
    return l->folder >= 0 && f->e.bytes >= LEDGER_FILE_BYTES_MIN && l->asked <= LEDGER_FILES_MAX;
}

bool ledger_find(struct ledger *l, struct found *f, struct pieces *p) {
    l->asked += f->e.bytes >= LEDGER_FILE_BYTES_MIN;
    if (!is_worth_it(l, f))
        return false;
    char name[NAME_ROOM];
    name_of(f, p->digest, name);
    int fd = openat(l->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool found = load(fd, l->sums, f, p);
    if (found)
        futimens(fd, NULL); /* used: it stays */
    close(fd);
    return found;
}

static bool write_exactly(int fd, const uint8_t *from, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, from, len);
        if (n <= 0)
            return false;
        from += n;
        len -= (size_t)n;
    }
    return true;
}

void ledger_keep(struct ledger *l, const struct found *f, const struct pieces *p, uint32_t from) {
    int64_t changed = f->ctime_ns > f->e.mtime_ns ? f->ctime_ns : f->e.mtime_ns;
    if (!is_worth_it(l, f) || changed > l->opened_ns - FRESH_NS)
        return;
    uint8_t head[HEAD_BYTES];
    struct bytes rows = pieces_rows(p, from);
    store_facts(head, f, p, p->count - from);
    sum(rows, head + FACTS_BYTES);
    sum(bytes_of(head, HEAD_BYTES - SUM_BYTES), head + HEAD_BYTES - SUM_BYTES);
    char name[NAME_ROOM], fresh[NAME_ROOM + 16];
    name_of(f, p->digest, name);
    snprintf(fresh, sizeof fresh, "%s.%d", name, (int)getpid());
    int fd = openat(l->folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    bool good = write_exactly(fd, head, HEAD_BYTES) && write_exactly(fd, rows.at, rows.len);
    good = close(fd) == 0 && good;
    if (good && renameat(l->folder, fresh, l->folder, name) == 0)
        l->kept++;
    else
        unlinkat(l->folder, fresh, 0);
}
