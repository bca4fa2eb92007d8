/* SPDX-License-Identifier: MIT */
/* One anonymous mapping a region: see region.h. Renewing maps fresh pages over a part, which unlike
 * advice to the kernel is sure to leave zeros, under emulation too. */
#include "sim/region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"

enum { PROTECTION = PROT_READ | PROT_WRITE };
enum { SHARING = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/* Parts so small will all be touched: large pages do no harm, and thousands of small ones would
 * cost a walk through the page tables at nearly every event. */
enum { SMALL_PART = 16384 };

int region_init(struct region *r, uint32_t count, size_t bytes, bool dense) {
    *r = (struct region){0};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t stride = align_up(bytes ? bytes : 1, page);
    size_t all;
    if (__builtin_mul_overflow(stride, (size_t)(count ? count : 1), &all))
        return -ENOMEM;
    void *at = mmap(NULL, all, PROTECTION, SHARING, -1, 0);
    if (at == MAP_FAILED)
        return -ENOMEM;
    if (dense || stride <= SMALL_PART)
        madvise(at, all, MADV_HUGEPAGE);
    *r = (struct region){.at = at, .stride = stride, .count = count ? count : 1};
    return 0;
}

void region_fini(struct region *r) {
    if (r->at != NULL)
        munmap(r->at, r->stride * r->count);
    *r = (struct region){0};
}

void region_renew(struct region *r, uint32_t part) {
    ASSERT(part < r->count);
    if (r->stride <= SMALL_PART) {
        memset(region_at(r, part), 0, r->stride);
        return;
    }
    void *at = mmap(region_at(r, part), r->stride, PROTECTION, SHARING | MAP_FIXED, -1, 0);
    ASSERT(at == region_at(r, part));
}
