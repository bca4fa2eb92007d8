/* SPDX-License-Identifier: MIT */
/* What an earlier life of a cluster has left, before a new one begins on it. */
#pragma once

/* Whether this version can read it: the manager's program is asked. 0, or the exit status after a complaint. */
int state_check(const char *name, const char *folder, const char *manager_program);
