/* SPDX-License-Identifier: MIT */
/* What a node leaves on a machine that had nothing of ours, and taking it away.
 *
 * Its folder, the programs beside it that all nodes of the cluster on this machine share, and the helper of the remote shell
 * in the user's cache, if it came for the cluster's sake. */
#pragma once

#include <stdbool.h>

/* The helper that has started us: if it came just now, or is known to be there because of us, that is noted in the node's folder. */
void footprints_note(const char *folder, bool known);

/* Is it noted there? */
bool footprints_noted(const char *folder);

/* Removes it all. Nothing of the node runs any more. The programs stay while another node needs them. */
void footprints_remove(const char *base, const char *folder);
