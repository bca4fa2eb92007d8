/* SPDX-License-Identifier: MIT */
/* A cluster's place among the control groups (version 2), where there is one for it.
 *
 * Everything that a job starts lives in a group of its own, made by the node's launcher below the
 * node's: so all of it can be ended at once, however far it has forked away. Root makes the
 * place at the top; a user has one if the system has delegated the user's own group. No controller
 * is switched on: a group is only a name for its processes. */
#pragma once

#include <limits.h>
#include <stdint.h>

struct grounds {
    char path[PATH_MAX];
};

/* Where groups (version 2) are mounted. -ENOENT: nowhere. */
int grounds_mount(char out[PATH_MAX]);

/* Makes a place of this name where a process can be put into and killed in; tries it. -ENOENT: there are
 * no such groups here; -EACCES, -EROFS, -EPERM...: not for us; -EOPNOTSUPP: the kernel is too old. */
int grounds_make(struct grounds *ret, const char *name);

/* The place of a node below it. */
int grounds_make_node(const struct grounds *g, uint32_t node);
void grounds_node_path(const struct grounds *g, uint32_t node, char out[PATH_MAX]);

/* Ends everything in a node's groups. */
void grounds_kill_node(const struct grounds *g, uint32_t node);

/* Ends everything in it and removes it, with all groups below. 0, or -errno if it is still there;
 * what was never there is gone. */
int grounds_remove(const char *path);
