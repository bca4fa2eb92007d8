/* SPDX-License-Identifier: MIT */
/* A command with places for values, as GNU parallel has them.
 *
 *     {}    the value; of several, all of them      {1} {2} ...  the first, the second, ...
 *     {.}   without its extension                   {1.} {2/} ...  the same of one of several
 *     {/}   without its folder                      {#}    the number of the line, from 1
 *     {//}  its folder                              {/.}   without folder and extension
 *
 * A command that has none gets {} behind it. Values are quoted, so that a shell takes them as they are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { TEMPLATE_VALUES_MAX = 16 };

/* Is there a place in it for anything? */
bool template_has_place(const char *text);

/* The highest number of a value that it asks for; 0: none by number. */
uint32_t template_highest(const char *text);

/* The command of these values; free() it. NULL: there is no memory. */
char *template_fill(const char *text, const struct bytes *values, uint32_t count, uint64_t seq);
