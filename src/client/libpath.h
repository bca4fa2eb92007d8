/* SPDX-License-Identifier: MIT */
/* Lists of folders for the dynamic loader (LD_LIBRARY_PATH, DT_RPATH, DT_RUNPATH) and what $ORIGIN, $LIB and
 * $PLATFORM in them stand for. */
#pragma once

#include <stddef.h>

/* What the words stand for; NULL: nobody knows, and what they are in is left out. */
struct libpath_words {
    const char *origin; /* the folder of the object that the list or name is from */
    const char *lib;
    const char *platform;
};

/* The text with its words replaced; -ENOENT: one stands for nothing; -ENAMETOOLONG. */
int libpath_expand(const char *text, size_t len, const struct libpath_words *w, char *out,
                   size_t cap);

/* The next folder of the list at *at, which moves on (NULL: no more), with a slash at its end, or "", the current
 * one. 1, or 0 at the end. Folders that cannot be named are passed over. `parting` are the characters between
 * folders. */
int libpath_next(const char **at, const char *parting, const struct libpath_words *w, char *out,
                 size_t cap);
