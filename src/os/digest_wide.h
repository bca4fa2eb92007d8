/* SPDX-License-Identifier: MIT */
/* The same digest as DIGEST_XXH3 by other instructions. */
#pragma once

#include "base/bytes.h"

bool digest_wide_works(void);
void digest_wide(struct bytes bytes, uint8_t out[16]);
/* The same of XXH3_128bits_update, for a state (XXH3_state_t) that the caller has; it is laid out alike. */
void digest_wide_add(void *state, struct bytes bytes);
