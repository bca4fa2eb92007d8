/* SPDX-License-Identifier: MIT */
/* storm-mm --history: jobs of the past, for storm ps -a.
 *
 * The log is read beside a manager that writes it, or without one. To standard output: the number of all
 * jobs there were (4 bytes), then the rows (wire/row.h), newest last. */
#pragma once

/* The last `most` jobs (0: all), or only one (not 0). Returns the exit status. */
int past_print(const char *folder, unsigned most, unsigned only);
