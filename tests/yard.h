/* SPDX-License-Identifier: MIT */
/* A depot in a folder of its own, parcels that are sent to it, and what came of them. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/depot.h"
#include "os/files.h"
#include "parcel.h"
#include "tap.h"

struct yard {
    char folder[64];
    char spool[128], root[128];
    struct depot_config config;
    struct depot *d;
    char why[256];
    uint32_t open_files; /* before */
};

static inline uint32_t yard_open_files(void) {
    uint32_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count;
}

static inline void yard_start(struct yard *y) {
    y->config.spool = y->spool;
    y->config.root = y->root;
    int r = depot_new(&y->config, &y->d, y->why);
    if (!CHECK_EQ(r, 0))
        printf("# %s\n", y->why);
}

/* In a folder of its own beneath `base`. */
static inline void yard_init_at(struct yard *y, const char *base, uint64_t cache_bytes) {
    *y = (struct yard){.config.cache_bytes = cache_bytes, .open_files = yard_open_files()};
    snprintf(y->folder, sizeof y->folder, "%s/storm-depot-XXXXXX", base);
    CHECK(mkdtemp(y->folder) != NULL);
    snprintf(y->spool, sizeof y->spool, "%s/spool", y->folder);
    snprintf(y->root, sizeof y->root, "%s/root", y->folder);
    CHECK_EQ(mkdir(y->root, 0755), 0);
    yard_start(y);
}

static inline void yard_init(struct yard *y, uint64_t cache_bytes) {
    yard_init_at(y, "/tmp", cache_bytes);
}

static inline void yard_restart(struct yard *y) {
    depot_free(y->d);
    yard_start(y);
}

static inline void yard_fini(struct yard *y) {
    depot_free(y->d);
    CHECK_EQ(yard_open_files(), y->open_files);
    files_remove(AT_FDCWD, y->folder);
}

/* ---- sending ---- */

static inline struct depot_bundle *yard_open(struct yard *y, const struct parcel *p) {
    struct depot_bundle *b = NULL;
    int r = depot_open(y->d, parcel_descriptor(p), &b, y->why);
    if (!CHECK_EQ(r, 0))
        printf("# %s\n", y->why);
    return b;
}

/* Hands all pages over, again or for the first time; have[i]: piece i is there. Returns how many pieces are that
 * are no holes. */
static inline uint32_t yard_pages(struct yard *y, struct depot_bundle *b, const struct parcel *p,
                                  bool *have) {
    uint32_t count = 0;
    for (uint32_t page = 0; page < bundle_page_count(&p->b); page++) {
        uint8_t bits[BUNDLE_PAGE_PIECES_MAX / 8];
        int r = depot_page(b, page, parcel_page(p, page), bits, y->why);
        if (!CHECK_EQ(r, 0))
            printf("# %s\n", y->why);
        for (uint32_t i = 0; i < bundle_page_pieces(&p->b, page); i++) {
            uint32_t piece = page * p->b.page_pieces + i;
            have[piece] = r == 0 && (bits[i / 8] >> i % 8 & 1) != 0;
            count += have[piece] && !parcel_is_hole(p, piece);
        }
    }
    return count;
}

static inline bool *yard_bools(const struct parcel *p) {
    return calloc(p->pieces, sizeof(bool));
}

/* Stores what is not there, from `from` to before `end`; returns how many. */
static inline uint32_t yard_fill(struct yard *y, struct depot_bundle *b, const struct parcel *p,
                                 const bool *have, uint32_t from, uint32_t end) {
    uint32_t sent = 0;
    for (uint32_t i = from; i < end; i++) {
        if (have[i])
            continue;
        int r = depot_store(b, i, parcel_piece(p, i), y->why);
        if (!CHECK_EQ(r, 0)) {
            printf("# piece %u: %s\n", i, y->why);
            return sent;
        }
        sent++;
    }
    return sent;
}

static inline uint32_t yard_manifest_pieces(const struct parcel *p) {
    uint32_t i = 0;
    while (i < p->pieces && p->starts[i] < p->manifest_bytes)
        i++;
    return i;
}

/* As a mover would: pages, the manifest, pages again, the rest. Returns how many pieces were sent. */
static inline uint32_t yard_take(struct yard *y, struct depot_bundle *b, const struct parcel *p) {
    bool *have = yard_bools(p);
    uint32_t front = yard_manifest_pieces(p);
    yard_pages(y, b, p, have);
    uint32_t sent = yard_fill(y, b, p, have, 0, front);
    yard_pages(y, b, p, have);
    sent += yard_fill(y, b, p, have, front, p->pieces);
    free(have);
    return sent;
}

static inline void yard_commit(struct yard *y, struct depot_bundle *b) {
    int r = depot_commit(b, y->why);
    if (!CHECK_EQ(r, 0))
        printf("# %s\n", y->why);
}

/* All of it; returns how many pieces were sent. */
static inline uint32_t yard_send(struct yard *y, const struct parcel *p) {
    struct depot_bundle *b = yard_open(y, p);
    uint32_t sent = yard_take(y, b, p);
    yard_commit(y, b);
    depot_close(b, true);
    return sent;
}

/* ---- what came of it ---- */

static inline const char *yard_path(const struct yard *y, const char *name, char out[512]) {
    snprintf(out, 512, "%s/%.400s", y->folder, name);
    return out;
}

/* Whether the file, in the yard's folder, has these contents. */
static inline bool yard_has(const struct yard *y, const char *name, struct bytes bytes) {
    char path[512];
    struct stat s;
    int fd = open(yard_path(y, name, path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    uint8_t *found = malloc(bytes.len + 1);
    bool same = fstat(fd, &s) == 0 && (size_t)s.st_size == bytes.len &&
                files_read_all(fd, room_of(found, bytes.len), 0) == 0 &&
                bytes_equal(bytes_of(found, bytes.len), bytes);
    free(found);
    close(fd);
    return same;
}

static inline bool yard_is_there(const struct yard *y, const char *name) {
    char path[512];
    struct stat s;
    return lstat(yard_path(y, name, path), &s) == 0;
}

static inline void yard_put(const struct yard *y, const char *name, struct bytes bytes) {
    char path[512];
    int fd = open(yard_path(y, name, path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(files_write(fd, bytes, 0), 0);
    close(fd);
}

/* Entries of a folder whose names begin so. */
static inline uint32_t yard_count(const struct yard *y, const char *name, const char *begin) {
    char path[512];
    uint32_t count = 0;
    DIR *dir = opendir(yard_path(y, name, path));
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                 strncmp(e->d_name, begin, strlen(begin)) == 0;
    if (dir != NULL)
        closedir(dir);
    return count;
}

static inline bool yard_nothing_partial(const struct yard *y) {
    return yard_count(y, "spool/partial", "") == 0;
}

/* The path of an object of these contents, whatever its name was made by, or -errno. */
static inline int yard_object(struct yard *y, struct bytes bytes, const char *name,
                              char path[PATH_MAX]) {
    int r = -ENOENT;
    for (enum digest_kind kind = 0; kind < DIGEST_KINDS && r == -ENOENT; kind++) {
        uint8_t sum[32];
        struct sum *s = sum_new(kind);
        sum_add(s, bytes);
        sum_end(s, sum);
        r = depot_object(y->d, sum, name, path, PATH_MAX);
    }
    return r;
}
