/* SPDX-License-Identifier: MIT */
/* The folders that runs have on a node, beneath the node's root (wire/folder.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of runs that have one, 8 bytes each, as many as there is room for; how many bytes that are. */
size_t jobfolders_list(const char *root, uint8_t *out, size_t cap);

/* 0, or -errno, and the folder's path. It is made if it is not there, unless it has to be there already: -ENOENT. */
int jobfolders_open(const char *root, uint64_t run, bool make, char *path, size_t cap);

/* With all that is in it. False if something is left. */
bool jobfolders_remove(const char *root, uint64_t run);
