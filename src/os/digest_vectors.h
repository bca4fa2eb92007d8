/* SPDX-License-Identifier: MIT */
/* XXH3 by vectors of a certain length: the body of a file that has said which instructions it is compiled for, XXH_VECTOR, and the NAME of
 * what it defines. Included once by each of them; a text and not a library, as all functions of xxhash.h are compiled for one
 * processor. */
#pragma once

#include <xxhash.h>

#include "os/digest_wide.h"

static void whole(struct bytes bytes, uint8_t out[16]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.at, bytes.len));
    memcpy(out, canonical.digest, sizeof canonical.digest);
}

static void add(void *state, struct bytes bytes) {
    XXH3_128bits_update(state, bytes.at, bytes.len);
}

const struct digest_wide NAME = {.works = works, .whole = whole, .add = add};
