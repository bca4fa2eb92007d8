/* SPDX-License-Identifier: MIT */
/* Nodes as commands name them. */
#pragma once

#include "client/cluster.h"

/* All that are typed, in one set whose storage is to be freed; none if nothing is typed. 0, or the exit status after a
 * complaint. */
int nodes_read(const struct cluster *c, const char *command, char **argv, struct nodeset *set);
