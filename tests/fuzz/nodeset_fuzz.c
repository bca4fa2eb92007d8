/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the reader of node sets.
 *
 * The first two bytes choose the universe (1 .. 4096), the rest is the text. What is refused leaves
 * the set as it was and points into the text; what is accepted formats to a text that reads as the
 * same set and formats the same again.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/nodeset.h"

#define UNIVERSE_MAX 4096
#define TEXT_MAX     4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const struct nodeset *s) {
    static char once[8 * UNIVERSE_MAX], twice[8 * UNIVERSE_MAX];
    uint64_t storage[UNIVERSE_MAX / 64];
    struct nodeset back;
    nodeset_init(&back, s->universe, storage);
    size_t len = nodeset_format(s, "n", once, sizeof once);
    ASSERT(len < sizeof once && strlen(once) == len);
    ASSERT(nodeset_parse(&back, once, "n", NULL) == 0);
    ASSERT(nodeset_equal(s, &back) && nodeset_equal(&back, s));
    ASSERT(nodeset_format(&back, "n", twice, sizeof twice) == len);
    ASSERT(memcmp(once, twice, len) == 0);
}

static void check_count(const struct nodeset *s) {
    uint32_t count = 0, runs = 0, from = 0;
    struct noderange range;
    for (; nodeset_next_range(s, from, &range); from = range.last + 1, runs++)
        count += range.last - range.first + 1;
    ASSERT(count == nodeset_count(s));
    ASSERT(runs == nodeset_range_count(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size - 2 > TEXT_MAX)
        return 0;
    uint32_t universe = 1 + (uint32_t)(data[0] | data[1] << 8) % UNIVERSE_MAX;
    char text[TEXT_MAX + 1];
    memcpy(text, data + 2, size - 2);
    text[size - 2] = '\0';

    uint64_t storage[UNIVERSE_MAX / 64];
    struct nodeset s;
    size_t where = SIZE_MAX;
    nodeset_init(&s, universe, storage);
    nodeset_add(&s, universe / 2);
    int e = nodeset_parse(&s, text, "n", &where);
    if (e < 0) {
        ASSERT(e == -EINVAL || e == -ERANGE);
        ASSERT(where <= strlen(text));
        ASSERT(nodeset_count(&s) == 1 && nodeset_has(&s, universe / 2));
        return 0;
    }
    check_count(&s);
    check_round_trip(&s);
    return 0;
}
