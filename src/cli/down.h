/* SPDX-License-Identifier: MIT */
/* The end of a cluster, for whoever is asked for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What `storm down` does. The exit status, after words about it. */
int down_cluster(const char *name, const char *folder, bool keep_jobs);

/* Ends what a former life of a cluster that does not run, or has no hosts any more, may have left on hosts. How many could not be
 * ended: each was named. */
uint32_t down_forsaken(const char *name, const char *folder);
