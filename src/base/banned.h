/* SPDX-License-Identifier: MIT */
/*
 * Calls that we do not make; using one is a compile error.
 *
 * The build includes this file in front of every source file. A poisoned name is an error wherever
 * it appears later, in system headers too, so those that declare the names come first.
 */
#pragma once

/* Hidden state. As names these two are common, in headers of libraries too, so it is the call that is an error; a
 * compiler wants to hear of that first. */
int rand(void) __attribute__((__error__("use base/random.h")));
void srand(unsigned seed) __attribute__((__error__("use base/random.h")));

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* They write past the end of a buffer, keep hidden state or eat the stack. */
#undef alloca
#pragma GCC poison strcpy stpcpy strcat sprintf vsprintf gets strtok alloca

/* Equal elements come out in an order that depends on the C library; a trace must not. */
#ifdef STORM_LOGIC
#pragma GCC poison qsort qsort_r
#endif
