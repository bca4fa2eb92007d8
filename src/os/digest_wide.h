/* SPDX-License-Identifier: MIT */
/* The same digest as DIGEST_XXH3 by other instructions. */
#pragma once

#include "base/bytes.h"

/* What is asked for so far ahead comes in time from memory. A processor that sees by itself what will be wanted next does so up to the end of a
 * page: 100 MB that are in no cache take 13 ms instead of 18. */
#define DIGEST_AHEAD_BYTES 4096

struct digest_wide {
    bool (*works)(void); /* on this processor */
    void (*whole)(struct bytes bytes, uint8_t out[16]);
    /* As XXH3_128bits_update, for a state (XXH3_state_t) that the caller has; it is laid out alike. */
    void (*add)(void *state, struct bytes bytes);
};

/* By vectors of 32 and of 64 bytes. Either may work nowhere, as where the compiler knows no such processor. */
extern const struct digest_wide digest_wide_32, digest_wide_64;
