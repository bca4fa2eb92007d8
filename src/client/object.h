/* SPDX-License-Identifier: MIT */
/* A file that the dynamic loader can load, with what it says of its libraries: a program, a library, a loader.
 *
 * All of it is read at once and the file closed again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/elf.h"

enum { OBJECT_PATH_MAX = 4096, OBJECT_WHY_MAX = 256 };

struct object_need {
    enum elf_need_kind kind;
    char *name;
};

struct object {
    char *called; /* the path by which it was opened */
    char *path;   /* the same, absolute */
    char *origin; /* the folder of `path` */
    dev_t device;
    ino_t inode;
    struct elf elf;
    char *interpreter, *soname, *rpath, *runpath; /* NULL: none */
    struct object_need *needs;
    uint32_t need_count;
    const struct object *loader; /* whose library it is; NULL: the program */
};

/* 1; 0: there is none, it may not be read, or it is for another kind of machine than `like`; -errno with the
 * reason (without its path). `like` may be NULL. */
int object_open(const char *path, const struct object *like, struct object **ret,
                char why[OBJECT_WHY_MAX]);
void object_free(struct object *o);
