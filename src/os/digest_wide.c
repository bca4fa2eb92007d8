/* SPDX-License-Identifier: MIT */
/* XXH3 with vectors of 32 bytes, for processors that have them: twice as fast as with those that all have. */
#include "os/digest_wide.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC target("avx2")
#pragma GCC optimize("O3", "unroll-loops")
#define XXH_VECTOR        2 /* AVX2 */
#define XXH_PREFETCH_DIST DIGEST_AHEAD_BYTES
#define XXH_INLINE_ALL
#define NAME digest_wide_32

static bool works(void) {
    return __builtin_cpu_supports("avx2");
}

#include "os/digest_vectors.h"

#else

static bool works(void) {
    return false;
}

const struct digest_wide digest_wide_32 = {.works = works};

#endif
