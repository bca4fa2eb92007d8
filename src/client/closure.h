/* SPDX-License-Identifier: MIT */
/* The closure of a program: all libraries that the dynamic loader of glibc would load before the program begins, and
 * where it would find each of them on this machine.
 *
 * They are found as ld.so(8) has it: libraries of the program, then theirs; a name that is loaded already (as it
 * was asked for, or as the library calls itself) stands for what is loaded; then DT_RPATH of who asks and of
 * those who brought it in (unless who asks has a DT_RUNPATH), LD_LIBRARY_PATH, its DT_RUNPATH, the
 * loader's table, the loader's own folders. In each folder the parts of glibc-hwcaps that suit this processor come
 * first; a library for another kind of machine is passed over. Relative folders are below the current one.
 *
 * Not known here:
 * - What a program loads while it runs: dlopen(), and with it the name services and character sets of glibc.
 * - Folders of glibc 2.36 and older for single capabilities of a processor (tls, atomics, haswell): they are not
 *   looked into.
 * - glibc-hwcaps of s390x and ppc64le.
 * A library from below a folder glibc-hwcaps needs a processor like the one here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { CLOSURE_LIBRARIES_MAX = 2048, CLOSURE_WHY_MAX = 256 };

struct closure;

struct closure_library {
    const char *name; /* as it is asked for */
    /* The file, absolute. Two names may have the same one: it must stay one file, or it is loaded twice. */
    const char *path;
    /* Its name in a folder of all libraries in which the program is to find it (wire/outfit.h). NULL: the program
     * asks for it by a path, and no such folder can stand in for that. */
    const char *place;
};

/* `library_path` and `preload` are LD_LIBRARY_PATH and LD_PRELOAD of the program's environment; NULL: not set. What
 * is to be preloaded and is not there is left out, as the loader does.
 * 0, or -errno with the reason in one line: -ENOENT: a library is not found; -ENOEXEC: it is a script; -EBADMSG: it
 * is no program, or damaged; -EOPNOTSUPP: its loader is not one of glibc; -E2BIG. A static program has an empty
 * closure. */
int closure_new(const char *program, const char *library_path, const char *preload,
                struct closure **ret, char why[CLOSURE_WHY_MAX]);
void closure_free(struct closure *c);

uint32_t closure_count(const struct closure *c);
const struct closure_library *closure_at(const struct closure *c, uint32_t index);

/* The loader that the program asks for; NULL: it is static. */
const char *closure_interpreter(const struct closure *c);

/* Whether that loader knows --argv0. */
bool closure_argv0(const struct closure *c);

/* Places of libraries, as a list of strings (wire/spec.h), that have a DT_RPATH and no DT_RUNPATH: they look there
 * before they look where they are told to. The program itself is "", and the first. The length, or -ENOBUFS. */
long closure_stubborn(const struct closure *c, struct room out);
