/* SPDX-License-Identifier: MIT */
/* What a cluster leaves behind when it ends, and taking it away: processes, sockets, groups.
 *
 * The sweeper is the parent of the watcher and outlives it, however that ends. All that descends from
 * a cluster comes to it in the end (it is a subreaper), so it can wait until nothing is left. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Makes orphans among our descendants our children. */
void remains_adopt(void);

/* Ends all children, and what comes to us of theirs, until there are none. */
void remains_children(void);

/* Ends those children that nobody knows: what a dead launcher has left. */
void remains_strangers(bool (*known)(void *context, pid_t pid), void *context);

/* Removes the group that the folder tells of, sockets, files that were sent to its nodes, and the cluster's
 * file: a cluster that is not there. What it must remember and its log stay. */
void remains_folder(const char *folder);

/* Forgets who was a member of the cluster, in which epoch. Whoever starts all daemons anew, with a new
 * key, need not know: nobody is left who was. A new root would only wait for survivors. */
void remains_forget(const char *folder);

/* Remembers in the folder that there is a group; "" forgets. */
int remains_note_group(const char *folder, const char *group);
/* The same for its place of limits on memory: see ration.h. */
int remains_note_rations(const char *folder, const char *place);
