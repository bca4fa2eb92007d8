/* SPDX-License-Identifier: MIT */
/* Folders beneath a root: whatever others put in the way, nothing outside of it is reached.
 *
 * No link is followed, neither in the way nor at its end, so a path means the same as long as its folders are
 * there. Paths are relative, without "." and ".." (-EINVAL); "" is the root itself. What is
 * opened serves to reach what is in it (O_PATH). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A descriptor, or -errno: -ELOOP if a link is in the way, -ENOTDIR if another thing is. */
int beneath_open(int root, const char *path);

/* The same for kernels without openat2. */
int beneath_walk(int root, const char *path);

/* Opens as much of the path as is there; *ret_len is how many characters of it that is. */
int beneath_nearest(int root, const char *path, size_t *ret_len);

/* Makes what is missing. */
int beneath_make(int root, const char *path);
