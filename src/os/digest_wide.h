/* SPDX-License-Identifier: MIT */
/* The same digest as DIGEST_XXH3 by other instructions. */
#pragma once

#include "base/bytes.h"

/* What is asked for so far ahead comes in time from memory. A processor that sees by itself what will be wanted next does so up to the end of a
 * page: 100 MB that are in no cache take 13 ms instead of 18. */
#define DIGEST_AHEAD_BYTES 4096

bool digest_wide_works(void);
void digest_wide(struct bytes bytes, uint8_t out[16]);
/* The same of XXH3_128bits_update, for a state (XXH3_state_t) that the caller has; it is laid out alike. */
void digest_wide_add(void *state, struct bytes bytes);
