/* SPDX-License-Identifier: MIT */
/* A temporary cluster with files to send: see cargo.h. */
#include "cli/cargo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/sample.h"
#include "os/files.h"
#include "os/floor.h"

static int make_folders(struct cargo *c, bool ram) {
    snprintf(c->floor, sizeof c->floor, "%s/floor", c->cluster.home);
    if (ram)
        snprintf(c->files, sizeof c->files, "/dev/shm/storm-bench.XXXXXX");
    else
        snprintf(c->files, sizeof c->files, "%s/files", c->cluster.home);
    bool made = ram ? mkdtemp(c->files) != NULL : mkdir(c->files, 0700) == 0;
    int r = made && mkdir(c->floor, 0700) == 0 ? 0 : -errno;
    if (r < 0)
        complain("bench", "%s: %s", made ? c->floor : c->files, strerror(-r));
    if (!made)
        c->files[0] = '\0';
    return r;
}

int cargo_up(struct cargo *c, const char *command, uint32_t nodes, bool ram,
             const char *const *more) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return -EIO;
    *c = (struct cargo){.nodes = nodes};
    random_init(&c->random, seed);
    int r = tempcluster_up(&c->cluster, command, nodes, more);
    if (r < 0)
        return r;
    r = make_folders(c, ram);
    if (r < 0)
        cargo_down(c);
    return r;
}

void cargo_down(struct cargo *c) {
    if (c->files[0] != '\0')
        files_remove(AT_FDCWD, c->files);
    tempcluster_down(&c->cluster);
}

void cargo_path(const struct cargo *c, const char *name, char out[CARGO_PATH_MAX]) {
    snprintf(out, CARGO_PATH_MAX, "%s/%s", c->files, name);
}

int cargo_make(struct cargo *c, const char *name, uint64_t bytes, const char *nop) {
    char path[CARGO_PATH_MAX];
    cargo_path(c, name, path);
    int r = nop != NULL ? sample_program(path, nop, bytes, &c->random)
                        : sample_file(path, bytes, &c->random);
    if (r < 0)
        complain("bench", "%s: %s", path, strerror(-r));
    return r;
}

void cargo_cool(const struct cargo *c, const char *name) {
    char path[CARGO_PATH_MAX];
    cargo_path(c, name, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    fdatasync(fd); /* what is not written yet is not dropped */
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

int cargo_launch(const struct cargo *c, const char *name, const char *nop, const char *tree,
                 uint64_t *ret_ns) {
    char count[16], path[CARGO_PATH_MAX];
    const char *args[TEMPCLUSTER_ARGS_MAX] = {"run", "-N", count};
    int at = 3;
    snprintf(count, sizeof count, "%" PRIu32, c->nodes);
    if (name != NULL) {
        cargo_path(c, name, path);
        args[at++] = "--copy";
    }
    if (name != NULL && tree != NULL) {
        args[at++] = "--tree";
        args[at++] = tree;
    }
    args[at] = name == NULL ? nop : path;
    return tempcluster_run(&c->cluster, args, NULL, 0, ret_ns);
}

/* ---- what nodes have ---- */

static int open_folder(const struct cargo *c, uint32_t node, const char *name) {
    char path[CARGO_PATH_MAX];
    snprintf(path, sizeof path, "%s/local/n%" PRIu32 "/%s", c->cluster.home, node, name);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void cargo_clear_path(const struct cargo *c, const char *path) {
    for (uint32_t i = 0; i < c->nodes; i++) {
        int folder = open_folder(c, i, "root");
        if (folder < 0)
            continue;
        files_remove(folder, path);
        close(folder);
    }
}

/* Calls with the name of each folder in this one, which is closed. */
static void each_folder(int folder, void (*call)(int folder, const char *inner, const char *name),
                        const char *name) {
    DIR *d = folder < 0 ? NULL : fdopendir(folder);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.')
            call(dirfd(d), e->d_name, name);
    if (d != NULL)
        closedir(d);
}

/* All of it, not only the name: what is left would be written to the disk while others are measured. */
static void drop_object(int folder, const char *object, const char *name) {
    char path[NAME_MAX + 1 + CARGO_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", object, name);
    if (faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        files_remove(folder, object);
}

static void drop_objects(int folder, const char *inner, const char *name) {
    each_folder(openat(folder, inner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), drop_object,
                name);
}

void cargo_clear_cache(const struct cargo *c, const char *name) {
    for (uint32_t i = 0; i < c->nodes; i++)
        each_folder(open_folder(c, i, "spool/objects"), drop_objects, name);
}

/* ---- the floor ---- */

void cargo_clear_floor(const struct cargo *c) {
    files_remove(AT_FDCWD, c->floor);
    mkdir(c->floor, 0700);
}

int cargo_floor(const struct cargo *c, const char *name, bool execute, uint64_t *ret_ns) {
    char path[CARGO_PATH_MAX];
    struct bytes contents;
    cargo_path(c, name, path);
    int r = sample_map(path, &contents);
    if (r == 0) {
        struct floor_files f = {
            .folder = c->floor, .contents = contents, .files = c->nodes, .execute = execute};
        r = floor_write(&f, ret_ns);
        munmap((void *)contents.at, contents.len);
    }
    if (r < 0)
        complain("bench", "%" PRIu32 " files written: %s", c->nodes, strerror(-r));
    return r;
}
