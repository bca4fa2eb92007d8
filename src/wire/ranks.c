/* SPDX-License-Identifier: MIT */
/* Some ranks of a job: see ranks.h. */
#include "wire/ranks.h"

#include <errno.h>

#include "base/text.h"

struct range {
    uint32_t first, last;
};

static struct range range_at(struct bytes ranks, size_t index) {
    const uint8_t *at = ranks.at + index * RANKS_RANGE_BYTES;
    return (struct range){.first = load_le32(at), .last = load_le32(at + 4)};
}

static size_t ranges_in(struct bytes ranks) {
    return ranks.len / RANKS_RANGE_BYTES;
}

bool ranks_good(struct bytes ranks) {
    uint64_t free_from = 0; /* the next range may begin here */
    if (ranks.len % RANKS_RANGE_BYTES != 0 || ranks.len > RANKS_BYTES_MAX)
        return false;
    for (size_t i = 0; i < ranges_in(ranks); i++) {
        struct range r = range_at(ranks, i);
        if (r.first < free_from || r.last < r.first)
            return false;
        free_from = (uint64_t)r.last + 2;
    }
    return true;
}

bool ranks_has(struct bytes ranks, uint32_t rank) {
    size_t low = 0, high = ranges_in(ranks);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (range_at(ranks, middle).last < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges_in(ranks) && range_at(ranks, low).first <= rank;
}

uint64_t ranks_count(struct bytes ranks) {
    uint64_t n = 0;
    for (size_t i = 0; i < ranges_in(ranks); i++)
        n += (uint64_t)range_at(ranks, i).last - range_at(ranks, i).first + 1;
    return n;
}

uint32_t ranks_lowest(struct bytes ranks) {
    return range_at(ranks, 0).first;
}

uint32_t ranks_highest(struct bytes ranks) {
    return range_at(ranks, ranges_in(ranks) - 1).last;
}

/* ---- reading ---- */

static bool scan(const char **at, uint32_t *ret) {
    uint64_t value;
    int digits = text_scan_u64(*at, &value);
    if (digits <= 0 || value > UINT32_MAX)
        return false;
    *at += digits;
    *ret = (uint32_t)value;
    return true;
}

static bool scan_range(const char **at, struct range *ret) {
    if (!scan(at, &ret->first))
        return false;
    ret->last = ret->first;
    if (**at != '-')
        return true;
    ++*at;
    return scan(at, &ret->last) && ret->first <= ret->last;
}

/* Keeps them in order; those that touch become one. */
static void insert(struct range *ranges, size_t *count, struct range r) {
    size_t i = 0, end;
    while (i < *count && (uint64_t)ranges[i].last + 1 < r.first)
        i++;
    for (end = i; end < *count && ranges[end].first <= (uint64_t)r.last + 1; end++) {
        r.first = ranges[end].first < r.first ? ranges[end].first : r.first;
        r.last = ranges[end].last > r.last ? ranges[end].last : r.last;
    }
    size_t rest = *count - end;
    if (end == i)
        for (size_t k = *count; k > i; k--)
            ranges[k] = ranges[k - 1];
    else
        for (size_t k = 0; k < rest; k++)
            ranges[i + 1 + k] = ranges[end + k];
    ranges[i] = r;
    *count = i + 1 + rest;
}

int ranks_parse(const char *text, uint8_t out[RANKS_BYTES_MAX], struct bytes *ret) {
    struct range ranges[RANKS_RANGES_MAX + 1];
    size_t count = 0;
    do {
        struct range r;
        if (!scan_range(&text, &r))
            return -EINVAL;
        insert(ranges, &count, r);
        if (count > RANKS_RANGES_MAX)
            return -E2BIG;
    } while (*text++ == ',');
    if (text[-1] != '\0')
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        store_le32(out + i * RANKS_RANGE_BYTES, ranges[i].first);
        store_le32(out + i * RANKS_RANGE_BYTES + 4, ranges[i].last);
    }
    *ret = bytes_of(out, count * RANKS_RANGE_BYTES);
    return 0;
}
