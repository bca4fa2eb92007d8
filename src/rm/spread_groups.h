/* SPDX-License-Identifier: MIT */
/* Groups of a plan, and the pair's rule for who is on top of whom: for spread*.c alone. */
#pragma once

#include "rm/spread.h"

/* The group that a position is in. */
uint32_t spread_group(const struct spread *s, uint32_t position);

/* Is something of more than one group in this range of positions? */
bool spread_mixed(const struct spread *s, uint32_t first, uint32_t last);

/* Who of the range, which is not empty, is above all others of it in this tree of a pair. */
uint32_t spread_pair_top(const struct spread *s, uint32_t tree, uint32_t first, uint32_t last);
