/* SPDX-License-Identifier: MIT */
/* Tests of hints: what was added is found as long as there is room; no more memory is ever taken. */
#include "os/hints.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/random.h"
#include "tap.h"

static void digest_nr(uint32_t number, uint8_t out[16]) {
    struct random r;
    random_init(&r, number);
    store_le64(out, random_u64(&r));
    store_le64(out + 8, random_u64(&r));
}

static bool is_found(const struct hints *h, uint32_t number, uint32_t source) {
    uint8_t digest[16];
    struct hint out[HINTS_WAYS];
    digest_nr(number, digest);
    uint32_t count = hints_find(h, digest, out);
    for (uint32_t i = 0; i < count; i++)
        if (out[i].source == source && out[i].row == number)
            return true;
    return false;
}

static void test_found(void) {
    struct hints h;
    uint8_t digest[16];
    uint32_t found = 0;
    CHECK_EQ(hints_init(&h, 10000), 0);
    for (uint32_t i = 0; i < 4000; i++) {
        digest_nr(i, digest);
        hints_add(&h, digest, 1 + i % 3, i);
    }
    for (uint32_t i = 0; i < 4000; i++)
        found += is_found(&h, i, 1 + i % 3);
    CHECK(found > 3950);
    for (uint32_t i = 4000; i < 8000; i++)
        CHECK(!is_found(&h, i, 1 + i % 3));
    hints_fini(&h);
}

static void test_several_sources(void) {
    struct hints h;
    uint8_t digest[16];
    struct hint out[HINTS_WAYS];
    CHECK_EQ(hints_init(&h, 64), 0);
    digest_nr(7, digest);
    hints_add(&h, digest, 1, 7);
    hints_add(&h, digest, 2, 7);
    hints_add(&h, digest, 1, 7); /* known */
    CHECK_EQ(hints_find(&h, digest, out), 2);
    CHECK(is_found(&h, 7, 1));
    CHECK(is_found(&h, 7, 2));
    hints_fini(&h);
}

/* The new is found; as many as there is room for. */
static void test_forgets(void) {
    struct hints h;
    uint8_t digest[16];
    uint32_t found = 0;
    CHECK_EQ(hints_init(&h, 64), 0);
    for (uint32_t i = 0; i < 10000; i++) {
        digest_nr(i, digest);
        hints_add(&h, digest, 5, i);
        CHECK(is_found(&h, i, 5));
    }
    for (uint32_t i = 0; i < 10000; i++)
        found += is_found(&h, i, 5);
    CHECK_EQ(found, 64);
    hints_fini(&h);
}

int main(void) {
    TEST(test_found);
    TEST(test_several_sources);
    TEST(test_forgets);
    return tap_finish();
}
