/* SPDX-License-Identifier: MIT */
/*
 * Id tables: stale ids are refused, slots are reused last in first out, storage is touched lazily.
 */
#include "base/idtable.h"

#include <errno.h>

#include "base/random.h"
#include "tap.h"

#define CAP 50

static void test_life_of_an_id(void) {
    uint32_t storage[4], id = 0, index = 99, again = 0;
    struct idtable t;
    idtable_init(&t, 4, storage);
    CHECK_EQ(idtable_get(&t, 0, &index), -ENOENT);
    CHECK_EQ(idtable_alloc(&t, &id, &index), 0);
    CHECK(id != 0 && index == 0);
    CHECK_EQ(idtable_get(&t, id, &index), 0);
    CHECK_EQ(index, 0);
    CHECK_EQ(idtable_id(&t, 0), id);
    CHECK_EQ(idtable_id(&t, 1), 0);
    CHECK_EQ(idtable_free(&t, id), 0);
    CHECK_EQ(idtable_free(&t, id), -ENOENT);
    CHECK_EQ(idtable_id(&t, 0), 0);
    CHECK_EQ(idtable_alloc(&t, &again, &index), 0);
    CHECK(again != id && index == 0);
    CHECK_EQ(idtable_get(&t, id, &index), -ENOENT);
    CHECK_EQ(idtable_index_of(again), 0);
}

static void test_full_and_order(void) {
    uint32_t storage[3], id[3], index, extra = 7;
    struct idtable t;
    idtable_init(&t, 3, storage);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(idtable_alloc(&t, &id[i], &index), 0);
        CHECK_EQ(index, i);
    }
    CHECK_EQ(idtable_alloc(&t, &extra, &index), -ENOSPC);
    CHECK_EQ(extra, 7);
    idtable_free(&t, id[0]);
    idtable_free(&t, id[2]);
    CHECK_EQ(idtable_count(&t), 1);
    idtable_alloc(&t, &extra, &index);
    CHECK_EQ(index, 2);
    idtable_alloc(&t, &extra, &index);
    CHECK_EQ(index, 0);
}

static void test_generations_wrap(void) {
    uint32_t storage[1], id = 0, first = 0, index;
    struct idtable t;
    idtable_init(&t, 1, storage);
    idtable_alloc(&t, &first, &index);
    idtable_free(&t, first);
    for (int i = 1; i < 4095; i++) {
        idtable_alloc(&t, &id, &index);
        if (!CHECK(id != 0 && id != first && idtable_get(&t, first, &index) == -ENOENT))
            return;
        idtable_free(&t, id);
    }
    idtable_alloc(&t, &id, &index);
    CHECK_EQ(id, first); /* the generations are used up */
}

static void test_lazy(void) {
    uint32_t storage[1000], id, index;
    memset(storage, 0xCC, sizeof storage);
    struct idtable t;
    idtable_init(&t, 1000, storage);
    idtable_alloc(&t, &id, &index);
    idtable_free(&t, id);
    idtable_alloc(&t, &id, &index);
    CHECK_EQ(storage[1], 0xCCCCCCCC);
    storage[1] = 1 << IDTABLE_INDEX_BITS | 1; /* looks live, but was never used */
    CHECK_EQ(idtable_id(&t, 1), 0);
    CHECK_EQ(idtable_get(&t, storage[1], &index), -ENOENT);
    CHECK_EQ(idtable_next(&t, 1), IDTABLE_NONE);
    CHECK_EQ(idtable_get(&t, 0xCCCCCCCC, &index), -ENOENT);
    CHECK_EQ(idtable_bytes(IDTABLE_CAP_MAX), 4 * (size_t)0xFFFFF);
}

static void test_random_against_model(void) {
    uint32_t storage[CAP], live[CAP] = {0}, dead[CAP] = {0}, count = 0;
    struct idtable t;
    struct random r;
    idtable_init(&t, CAP, storage);
    random_init(&r, 3);
    for (int i = 0; i < 20000; i++) {
        uint32_t slot = (uint32_t)random_below(&r, CAP), id = 0, index = 0;
        if (random_chance(&r, 1, 2)) {
            int e = idtable_alloc(&t, &id, &index);
            CHECK_EQ(e, count == CAP ? -ENOSPC : 0);
            if (e == 0) {
                CHECK(live[index] == 0 && id != dead[index]);
                live[index] = id;
                count++;
            }
        } else if (live[slot] != 0) {
            CHECK_EQ(idtable_free(&t, live[slot]), 0);
            dead[slot] = live[slot];
            live[slot] = 0;
            count--;
        }
        CHECK_EQ(idtable_count(&t), count);
        CHECK_EQ(idtable_get(&t, dead[slot], &index), -ENOENT);
        uint32_t seen = 0;
        IDTABLE_EACH (k, &t) {
            CHECK_EQ(idtable_id(&t, k), live[k]);
            seen++;
        }
        CHECK_EQ(seen, count);
    }
}

int main(void) {
    TEST(test_life_of_an_id);
    TEST(test_full_and_order);
    TEST(test_generations_wrap);
    TEST(test_lazy);
    TEST(test_random_against_model);
    return tap_finish();
}
