/* SPDX-License-Identifier: MIT */
/* How much this machine has to do, and how much of its memory is in use. */
#pragma once

#include "machine/machine.h"

/* What cannot be read is 0. */
void burden_read(struct input_gauged *ret);

/* The same out of the texts of /proc/loadavg and /proc/meminfo. */
void burden_parse(const char *loadavg, const char *meminfo, struct input_gauged *ret);
