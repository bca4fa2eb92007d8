/* SPDX-License-Identifier: MIT */
/* Options in a script: lines "#STORM -n 4 --time 10m" among the comments it begins with. */
#pragma once

#include "cli/options.h"

struct script {
    char *text; /* what options point into */
};

/* Reads the options of the file into the table's places; a file that cannot be read has none. 0, or the
 * exit status after a complaint. */
int script_options(struct script *s, const char *path, const struct option *table);
void script_fini(struct script *s);
