/* SPDX-License-Identifier: MIT */
/* What a file of the cache was like when it was last known to be right, written at the head of its table.
 *
 * Whoever runs such a file asks whether it is still the same. A change of its contents shows in the time of its last
 * change of status, which nobody can set. A file of its own: launchers ask, and they are small. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct mark {
    uint64_t bytes, mtime_ns, ctime_ns, inode;
    uint64_t boot; /* in which this was seen */
};

/* A table: magic, kind of digests, count of rows, the mark, SHA-256, a check of what is before it; then rows: the
 * place of a piece in the file and the piece as on the wire. */
#define MARK_TABLE_MAGIC 0x31454c42415453ULL /* "STABLE1" */
#define MARK_TABLE_NAME  ".table"
enum { MARK_AT = 16, MARK_SHA_AT = 56, MARK_CHECK_AT = 88, MARK_HEAD_BYTES = 96 };

/* Of the head of a table. */
uint64_t mark_check(const uint8_t head[MARK_HEAD_BYTES]);
/* Its mark; false if it is damaged. */
bool mark_load(const uint8_t head[MARK_HEAD_BYTES], struct mark *ret);

/* Whether a file of the cache is as the table beside it says. What was before the last boot is another's affair. */
bool mark_holds(const char *path, const struct stat *now);
/* The same by name: 0, -ESTALE, or -errno. */
int mark_look(const char *path);
