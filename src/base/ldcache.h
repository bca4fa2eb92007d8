/* SPDX-License-Identifier: MIT */
/* /etc/ld.so.cache, the table of libraries that ldconfig writes and the loader of glibc reads.
 *
 * The present format ("glibc-ld.so.cache1.1") alone or behind the one of libc5. Any bytes may be given. The
 * loader searches the sorted table by halves; we read all of it, which finds the same in every
 * table that ldconfig has sorted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct ldcache {
    struct bytes file;
    struct bytes table; /* the rest of the file from the present format on */
    bool big;
    uint32_t entries;
    struct bytes hwcaps; /* offsets in the file of names of folders below glibc-hwcaps */
};

/* Borrows the file. -EBADMSG: there is nothing in it for a machine of this byte order. */
int ldcache_read(struct ldcache *ret, struct bytes file, bool big);

/* How a library for such a machine is marked (e_machine, width, e_flags of ELF). */
uint32_t ldcache_mark(uint16_t machine, bool wide, uint32_t flags);

/* The path of the library with this name and mark, in the file; NULL: there is none. `hwcaps` are the folders
 * below glibc-hwcaps that this machine can use, best first, with colons between. */
const char *ldcache_find(const struct ldcache *c, const char *name, uint32_t mark,
                         const char *hwcaps);
