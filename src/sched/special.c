/* SPDX-License-Identifier: MIT */
/* How special nodes are: see special.h. */
#include "sched/special.h"

#include "base/log2.h"
#include "base/sort.h"

/* What tells machines apart that is worth something to a job. How fast one is was measured, and differs a little between
 * equals; processors count elsewhere, where the narrowest node that will do is taken. */
static bool counts(const struct traits *t, uint32_t id) {
    return id == TRAITS_MEMORY || id == TRAITS_GPUS || id == TRAITS_NETWORK || id == TRAITS_ROLE ||
           id == TRAITS_DEDICATED || (id >= TRAITS_BUILT_IN && id < t->count);
}

static void add(uint8_t *rank, uint32_t more) {
    uint32_t sum = *rank + more;
    *rank = (uint8_t)(sum > UINT8_MAX ? UINT8_MAX : sum);
}

/* So often half as many have it. */
static uint32_t rarity(size_t all, size_t have) {
    return (uint32_t)(log2_fixed(all / have) / LOG2_ONE);
}

/* Where the first number is that is not below. */
static size_t find(const uint64_t *sorted, size_t count, uint64_t value) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (sorted[mid] < value)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void add_values(const struct traits *t, const struct nodeset *nodes, uint32_t id,
                       uint64_t *sorted, uint8_t *ret) {
    bool ordered = (t->at[id].operators >> TRAITS_AT_LEAST & 1) != 0;
    size_t count = 0;
    NODESET_EACH (n, nodes)
        if (n < t->nodes && traits_get(t, n, id) != TRAITS_UNKNOWN)
            sorted[count++] = traits_get(t, n, id);
    if (count == 0)
        return;
    sort_u64(sorted, count);
    if (sorted[0] == sorted[count - 1])
        return;
    NODESET_EACH (n, nodes) {
        uint64_t value = n < t->nodes ? traits_get(t, n, id) : TRAITS_UNKNOWN;
        if (value == TRAITS_UNKNOWN)
            continue;
        size_t end = ordered ? count : find(sorted, count, value + 1);
        add(&ret[n], rarity(count, end - find(sorted, count, value)));
    }
}

static void add_labels(const struct traits *t, const struct nodeset *nodes, uint8_t *ret) {
    for (uint32_t bit = 0; bit < t->label_count; bit++) {
        size_t have = 0;
        NODESET_EACH (n, nodes)
            have += n < t->nodes && traits_get(t, n, TRAITS_LABELS) >> bit & 1;
        NODESET_EACH (n, nodes)
            if (n < t->nodes && traits_get(t, n, TRAITS_LABELS) >> bit & 1)
                add(&ret[n], rarity(nodeset_count(nodes), have));
    }
}

void special_reckon(const struct traits *t, const struct nodeset *nodes, uint64_t *scratch,
                    uint8_t *ret) {
    NODESET_EACH (n, nodes)
        ret[n] = 0;
    for (uint32_t id = 0; id < t->count; id++)
        if (counts(t, id))
            add_values(t, nodes, id, scratch, ret);
    add_labels(t, nodes, ret);
}
