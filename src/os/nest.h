/* SPDX-License-Identifier: MIT */
/* A folder that is ours alone, in a place where others may write too, such as /tmp.
 *
 * Whoever guesses its name may be there first: with a folder of his own, or a link to somewhere else. So nothing is taken that
 * is not ours, no link is followed where others could have laid it, and nothing above it may be another's, or be
 * such that others could put something else in its place. */
#pragma once

enum { NEST_WHY_MAX = 256 };

/* Makes it unless it is there, with what is missing above it. 0, or -errno and why, with its name. -EPERM: it is somebody else's;
 * -EACCES: others can get at it. */
int nest_make(const char *path, char why[NEST_WHY_MAX]);

/* The same without making anything: -ENOENT if it is not there. */
int nest_look(const char *path, char why[NEST_WHY_MAX]);

/* Removes it if it is empty, then the one above it, and so on, at most so many. */
void nest_leave(const char *path, int levels);
