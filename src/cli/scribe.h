/* SPDX-License-Identifier: MIT */
/* The scribe: writes the output of submitted jobs to files, on the manager's side.
 *
 * It is a client that follows every batch job. Each has an `output` of its own, which writes and
 * acknowledges; what was not acknowledged is with the launchers and comes again. It lives as long as the
 * cluster does. */
#pragma once

/* Serves the cluster of this name until there is none. Returns the exit status. */
int scribe_run(const char *cluster);
