/* SPDX-License-Identifier: MIT */
/* To be served at once: a real-time priority for this process, as long as it switches gangs.
 *
 * A process of the usual kind that is woken while others compute waits for milliseconds. What we start has the usual
 * priority in any case, threads too. */
#pragma once

#include <stdbool.h>

/* Could we? Root may, others need RLIMIT_RTPRIO. */
bool prompt_allowed(void);

/* From now on, or no more. Without effect where it is not allowed. */
void prompt_set(bool on);
