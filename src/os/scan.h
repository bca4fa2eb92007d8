/* SPDX-License-Identifier: MIT */
/* Reads files that are to be sent: their pieces and their sums.
 *
 * Large files are looked at where the system has them (feed.h), small ones are read. Where there is much to look at
 * there is a second thread: where sums are SHA-256 it computes that, and reads for itself, out of the cache that the first one has
 * filled; otherwise it has the second half of the file (half.h). */
#pragma once

#include "os/pieces.h"
#include "os/walk.h"

struct scan {
    const struct survey_config *config;
    struct pieces *pieces;
    uint64_t done, all, told; /* bytes of all files: looked at, in all, when it was last told */
    uint64_t read;            /* bytes that were really read */
    uint8_t *block;           /* of the second thread */
};

/* Both: 0 or -errno; the reason is for the caller to give. The file is `f->e.bytes` long, otherwise -ESTALE.
 * Its sum goes to `f`, its bytes to the pieces: */
/* to those that are being cut, */
int scan_small(struct scan *s, int fd, struct found *f);
/* or between them, in pieces of its own, of which holes are some. */
int scan_large(struct scan *s, int fd, struct found *f);
/* So many bytes were looked at without being read. */
int scan_skip(struct scan *s, uint64_t bytes);
void scan_fini(struct scan *s);
