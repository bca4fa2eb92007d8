/* SPDX-License-Identifier: MIT */
/* Bytes of a file on their way to be cut and summed: looked at where the system has them, or read if it maps nothing of that
 * file. */
#pragma once

#include "os/digest.h"
#include "os/mapped.h"
#include "os/pieces.h"

struct feed {
    int fd;
    uint64_t size; /* of the file; 0: it is read */
    struct mapped mapped;
};

/* Some of the bytes [at, to) go to the pieces and, unless that is NULL, to the sum: how many, at least one; or -errno: -ESTALE if there are
 * none any more. A piece that has begun must have begun in this file if it is not read. */
long feed_some(struct feed *f, uint64_t at, uint64_t to, struct pieces *pieces, struct sum *sum);
void feed_end(struct feed *f);
