/* SPDX-License-Identifier: MIT */
/* Files for benches, of random bytes, so that nothing of one is found in another.
 *
 * A program is storm-nop followed by so many random bytes that it has the size wanted; they are a part of it that the
 * kernel maps when it is executed, as it does with the constants of a large program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/random.h"

/* What is there is replaced. 0 or -errno. */
int sample_file(const char *path, uint64_t bytes, struct random *r);
/* From the program `nop`; no smaller than that is. */
int sample_program(const char *path, const char *nop, uint64_t bytes, struct random *r);

/* Makes `len` bytes of a program map what will follow it until `bytes`; false if it is of a kind that cannot be made to.
 * It is for this machine, not to be relocated, and has a note to spare. */
bool sample_pad(struct room program, uint64_t bytes);

/* A file in memory, to be given back with munmap. */
int sample_map(const char *path, struct bytes *ret);
