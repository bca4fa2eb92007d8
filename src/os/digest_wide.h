/* SPDX-License-Identifier: MIT */
/* The same digest as DIGEST_XXH3 by other instructions. */
#pragma once

#include "base/bytes.h"

bool digest_wide_works(void);
void digest_wide(struct bytes bytes, uint8_t out[16]);
