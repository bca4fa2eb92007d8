/* SPDX-License-Identifier: MIT */
/* A temporary cluster with files to send to it, for benches: what is measured is done as a user would, what is
 * not, making files and taking copies away again, goes round the cluster. */
#pragma once

#include "cli/tempcluster.h"

#include "base/random.h"

enum { CARGO_PATH_MAX = 160 };

struct cargo {
    struct tempcluster cluster;
    uint32_t nodes;
    char files
        [96]; /* a folder for what is to be sent: in memory, or on the disk that the nodes share */
    char floor[112]; /* a folder of the file system where nodes keep what comes */
    struct random random;
};

/* -errno after complaining. `more` as for tempcluster_up. */
int cargo_up(struct cargo *c, const char *command, uint32_t nodes, bool ram,
             const char *const *more);
void cargo_down(struct cargo *c);

void cargo_path(const struct cargo *c, const char *name, char out[CARGO_PATH_MAX]);
/* A file of random bytes, or a program that does nothing. -errno after complaining. */
int cargo_make(struct cargo *c, const char *name, uint64_t bytes, const char *nop);
/* The file is read from the disk next time. */
void cargo_cool(const struct cargo *c, const char *name);

/* `storm run` with one process a node: of the program that was made and is sent first, or of `nop`. */
int cargo_launch(const struct cargo *c, const char *name, const char *nop, const char *tree,
                 uint64_t *ret_ns);

/* Takes away what was copied to a path of all nodes, or the objects in their caches that have this name. */
void cargo_clear_path(const struct cargo *c, const char *path);
void cargo_clear_cache(const struct cargo *c, const char *name);
/* Empties the floor's folder, which others may have used. */
void cargo_clear_floor(const struct cargo *c);

/* The floor: as many copies of the file as there are nodes, written by two threads, executed too if it is a program. */
int cargo_floor(const struct cargo *c, const char *name, bool execute, uint64_t *ret_ns);
