/* SPDX-License-Identifier: MIT */
/* Where the folder of a run is on a node: beneath the node's root, "jobs/42.1" for the first attempt of job 42. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define RUN_FOLDERS "jobs"

enum { RUN_FOLDER_MAX = 32 };

/* "42.1" */
void run_folder_name(uint64_t run, char out[RUN_FOLDER_MAX]);
/* "/jobs/42.1", as the node sees it. */
void run_folder_path(uint64_t run, char out[RUN_FOLDER_MAX]);
/* The run whose folder, on a node, this path leads into; 0: into none. */
uint64_t run_folder_of(struct bytes path);
/* The run of a name, 0: it is not the name of a run's folder. */
uint64_t run_folder_read(const char *name);
