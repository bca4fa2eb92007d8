/* SPDX-License-Identifier: MIT */
/* A file that is looked over by a thread of its own while what it has found so far is used already.
 *
 * Only rows go from one to the other. Whoever waits for them is told through a descriptor. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "os/pieces.h"

struct growth;

/* Takes the descriptor of the file over, and closes it in any case. Pieces are of about `usual` bytes, and told so many at a time. */
int growth_begin(int fd, uint64_t bytes, uint32_t usual, uint32_t at_a_time, struct growth **ret);
/* Becomes readable when there is more. */
int growth_fd(const struct growth *g);
/* The file, for whoever wants to see whether it is what it was. */
int growth_file(const struct growth *g);
/* Rows that were found since the last time are behind those of `to`. 0: more will come; 1: that was all;
 * or -errno: -ESTALE if it is shorter than it was. */
int growth_take(struct growth *g, struct pieces *to);
/* Nobody has anything of it: soon it is cut evenly. */
void growth_even(struct growth *g);
/* Stops it, if it is not over. */
void growth_free(struct growth *g);
