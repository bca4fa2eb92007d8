/* SPDX-License-Identifier: MIT */
/* What a dynamic loader of glibc has built in: the folders where it looks last, its table of libraries.
 *
 * They differ between distributions (Debian's has /lib/aarch64-linux-gnu, Fedora's /lib64, that of Nix
 * one of its own), but each loader carries them as text: the folders one behind the other, each with a slash at
 * its end. So they are read from the loader that a program asks for. Any bytes may be given. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { RTLD_FOLDERS_MAX = 8, RTLD_TEXT_MAX = 256 };

struct rtld {
    uint32_t folders;
    char folder[RTLD_FOLDERS_MAX][RTLD_TEXT_MAX]; /* each ends in a slash */
    char lib[RTLD_TEXT_MAX];   /* what $LIB stands for: "lib/aarch64-linux-gnu" */
    char cache[RTLD_TEXT_MAX]; /* "/etc/ld.so.cache" */
    bool argv0;                /* knows --argv0 (glibc 2.33 and later) */
};

/* -ENOENT: that is not a loader of glibc. */
int rtld_read(struct rtld *ret, struct bytes file);

/* Folders below glibc-hwcaps that a processor of x86-64 can use, best first, with colons between; from the line
 * "flags" of /proc/cpuinfo. "" also for all other processors. */
const char *rtld_hwcaps(const char *cpuinfo);
