/* SPDX-License-Identifier: MIT */
/*
 * A folder for programs and libraries that a test makes, all for the machine that it runs on.
 *
 *     struct workshop w;
 *     workshop_open(&w);
 *     workshop_make(&w, "bin/prog", &(struct elfmaker){.needs = {"liba.so"}, .interpreter = w.loader});
 *     ... workshop_path(&w, "bin/prog") ...
 *     workshop_close(&w);
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf.h"
#include "elfmaker.h"
#include "os/errand.h"
#include "tap.h"

struct workshop {
    char folder[64];
    struct elf kind;  /* of this machine */
    char loader[256]; /* its loader */
};

/* What the path is in the folder; good for the next 63 calls. */
static inline const char *workshop_path(const struct workshop *w, const char *path) {
    static char buffers[64][2048];
    static unsigned next;
    char *out = buffers[next++ % 64];
    snprintf(out, sizeof buffers[0], "%s/%s", w->folder, path);
    return out;
}

static inline long workshop_pread(void *self, uint64_t at, void *to, size_t len) {
    return pread(*(int *)self, to, len, (off_t)at);
}

/* The test itself tells what programs of this machine are. */
static inline bool workshop_open(struct workshop *w) {
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int r = elf_read(&w->kind, (struct elf_source){workshop_pread, &fd});
    if (r == 0)
        r = elf_interpreter(&w->kind, w->loader, sizeof w->loader);
    close(fd);
    snprintf(w->folder, sizeof w->folder, "/tmp/storm-workshop-XXXXXX");
    return CHECK_EQ(r, 0) && CHECK(mkdtemp(w->folder) != NULL);
}

static inline int workshop_do(const char *const *argv) {
    struct errand e = {.argv = argv};
    int r = errand_run(&e);
    return r < 0 ? r : e.status;
}

static inline void workshop_close(struct workshop *w) {
    const char *const argv[] = {"rm", "-rf", w->folder, NULL};
    CHECK_EQ(workshop_do(argv), 0);
}

/* Makes the folders that the path goes through. */
static inline void workshop_folders(const struct workshop *w, const char *path) {
    char part[2048];
    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        snprintf(part, sizeof part, "%s/%.*s", w->folder, (int)(at - path), path);
        mkdir(part, 0777);
    }
}

static inline void workshop_write(const struct workshop *w, const char *path, const void *data,
                                  size_t len) {
    workshop_folders(w, path);
    FILE *file = fopen(workshop_path(w, path), "wb");
    if (CHECK(file != NULL)) {
        CHECK_EQ(fwrite(data, 1, len, file), len);
        fclose(file);
    }
    CHECK_EQ(chmod(workshop_path(w, path), 0755), 0);
}

static inline void workshop_make(const struct workshop *w, const char *path,
                                 const struct elfmaker *m) {
    static uint8_t out[ELFMAKER_BYTES_MAX];
    struct elfmaker maker = *m;
    maker.wide = w->kind.wide;
    maker.big = w->kind.big;
    maker.flags = w->kind.flags;
    if (maker.machine == 0)
        maker.machine = w->kind.machine;
    workshop_write(w, path, out, elfmaker_make(&maker, out, sizeof out));
}

static inline void workshop_link(const struct workshop *w, const char *path, const char *target) {
    workshop_folders(w, path);
    CHECK_EQ(symlink(target, workshop_path(w, path)), 0);
}
