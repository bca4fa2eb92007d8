/* SPDX-License-Identifier: MIT */
/* Looking at a file where the system has it, without a copy: part after part of it is mapped.
 *
 * Somebody may cut the file short meanwhile. That is an error then, and not the end of the process, as long as it is only
 * touched within mapped_try. */
#pragma once

#include "base/bytes.h"

struct mapped {
    uint8_t *at; /* NULL: nothing is */
    uint64_t from;
    size_t bytes;
    uintptr_t place; /* where there was room for a part; 0: not known yet */
    bool settled;    /* the user's: all of the file is there, and will be looked at */
};

/* Of what is before these bytes so much is mapped as well, if the file has it. */
enum { MAPPED_BEFORE = 64 };

/* These bytes of a file that has `size` of them, or shall have, in place of what was mapped before, unless that has them; empty: they must be read.
 * Always of the same file. */
struct bytes mapped_part(struct mapped *m, int fd, uint64_t size, uint64_t from, size_t len);
void mapped_end(struct mapped *m);

/* What `look` returns, which may touch what is mapped and nothing that must not be left as it is in between; or -ESTALE: the file does not
 * reach so far any more. */
int mapped_try(int (*look)(void *context), void *context);
int mapped_copy(const uint8_t *from, struct room out);
