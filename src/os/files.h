/* SPDX-License-Identifier: MIT */
/* Files as a whole: what the system's calls do in parts. */
#pragma once

#include <sys/stat.h>

#include "base/bytes.h"

/* All of the bytes are written; 0 or -errno. */
int files_write(int fd, struct bytes bytes, uint64_t offset);
/* As many bytes as there are; that number or -errno. */
long files_read(int fd, struct room room, uint64_t offset);
/* Writes a file of this path in place of what was there, durable, all or nothing, readable by its owner only. 0 or
 * -errno. */
int files_replace(const char *path, struct bytes bytes);
/* A file or folder is durable, as it is now; 0 or -errno. */
int files_sync(const char *path);
/* Once more what is open, with flags of its own; a descriptor or -errno. */
int files_open_again(int fd, int flags);
/* Exactly so many: -ENODATA if there are fewer. */
int files_read_all(int fd, struct room room, uint64_t offset);

/* A file of text that is shorter than `max`, with a NUL behind it, for the caller to free. -errno; -EBADMSG: it is no
 * text, or too long. */
int files_text(const char *path, size_t max, char **ret);

/* Opens a folder in another, made if it is not there; links are not followed. */
int files_folder(int folder, const char *name, unsigned mode);
/* A file, or a folder with all that is in it, as far as that is possible. */
void files_remove(int folder, const char *name);

/* The real time; file times are compared with it. */
uint64_t files_now_ns(void);
uint64_t files_mtime_ns(const struct stat *s);
uint64_t files_ctime_ns(const struct stat *s);
