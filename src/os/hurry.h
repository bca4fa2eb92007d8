/* SPDX-License-Identifier: MIT */
/* Daemons go before programs: whoever computes on a node must not hold up what all nodes of a launch wait for. They are
 * mostly asleep, so nobody misses what they take.
 *
 * All of a node go alike: a mover before its manager would starve that. An ordinary user may not ask for it, and has the
 * usual share. */
#pragma once

#include <stdbool.h>

/* From now on, and for those whom we start. *ret_usual is how it was, for programs; NULL: nobody asks. False: it cannot be. */
bool hurry(int *ret_usual);
