/* SPDX-License-Identifier: MIT */
/* Fuzzes the decoder of specs: what decodes encodes to the same bytes, and its strings end inside it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_strings(struct bytes list) {
    uint32_t count = 0;
    size_t at = 0;
    while (strings_next(list, &at) != NULL)
        count++;
    ASSERT(at == list.len && count == strings_count(list));
}

/* Each rank has the program that the list says, and nobody else has one. */
static void check_programs(const struct spec *s) {
    struct spec_program p, found;
    uint32_t count = 0;
    spec_program_first(s, &p);
    do {
        ASSERT(p.index == count++ && p.program.len > 0 && p.arguments.len > 0);
        check_strings(p.arguments);
        check_strings(p.environment);
        ASSERT(spec_program_of(s, p.first, &found) && found.index == p.index);
        if (p.ranks > 0)
            ASSERT(spec_program_of(s, p.first + (p.ranks - 1), &found) && found.index == p.index);
    } while (spec_program_next(s, &p));
    ASSERT(count == spec_programs(s) && spec_ranks(s) <= UINT32_MAX);
    ASSERT(spec_ranks(s) == 0 || !spec_program_of(s, (uint32_t)spec_ranks(s), &found));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct spec s;
    if (spec_decode(bytes_of(data, size), &s) < 0)
        return 0;
    ASSERT(s.arguments.len > 0 && s.program.len > 0);
    check_strings(s.arguments);
    check_strings(s.environment);
    check_programs(&s);
    struct rlimit_spec limit;
    uint32_t limits = 0;
    while (spec_limit_load(&limit, s.limits, limits))
        limits++;
    ASSERT(limits * (size_t)SPEC_LIMIT_BYTES == s.limits.len);
    uint8_t *again = malloc(size);
    ASSERT(again != NULL);
    ASSERT(spec_encode(&s, room_of(again, size)) == (long)size);
    ASSERT(memcmp(again, data, size) == 0);
    free(again);
    return 0;
}
