/* SPDX-License-Identifier: MIT */
/*
 * Heaps against a plain search for the smallest item.
 */
#include "base/heap.h"

#include <errno.h>

#include "base/random.h"
#include "tap.h"

#define ITEMS 300

static bool before(const struct heap_item *a, const struct heap_item *b) {
    return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

static struct heap_item *smallest(struct heap_item *items) {
    struct heap_item *best = NULL;
    for (int i = 0; i < ITEMS; i++)
        if (heap_item_queued(&items[i]) && (!best || before(&items[i], best)))
            best = &items[i];
    return best;
}

static void test_random_against_search(void) {
    static struct heap_item items[ITEMS];
    static struct heap_item *array[ITEMS];
    struct heap h;
    struct random r;
    heap_init(&h, array, ITEMS);
    random_init(&r, 7);
    uint64_t sequence = 0;
    for (int i = 0; i < 50000; i++) {
        struct heap_item *item = &items[random_below(&r, ITEMS)];
        uint64_t key = random_below(&r, 40); /* few keys: ties decide */
        uint64_t what = random_below(&r, 4);
        if (what == 3) {
            struct heap_item *expected = smallest(items);
            if (!CHECK(heap_pop(&h) == expected))
                return;
        } else if (!heap_item_queued(item)) {
            item->key = key;
            item->tie = sequence++;
            CHECK_EQ(heap_push(&h, item), 0);
        } else if (what == 0) {
            heap_remove(&h, item);
        } else {
            heap_move(&h, item, key, sequence++);
        }
        if (!CHECK(heap_peek(&h) == smallest(items)))
            return;
    }
}

static void test_order(void) {
    struct heap_item items[100] = {0}, *array[100];
    struct heap h;
    heap_init(&h, array, 100);
    for (uint32_t i = 0; i < 100; i++) {
        items[i].key = i * 37 % 10;
        items[i].tie = i;
        CHECK_EQ(heap_push(&h, &items[i]), 0);
    }
    struct heap_item *last = heap_pop(&h);
    for (int i = 1; i < 100; i++) {
        struct heap_item *item = heap_pop(&h);
        CHECK(before(last, item));
        CHECK(!heap_item_queued(item));
        last = item;
    }
    CHECK(!heap_pop(&h) && !heap_peek(&h));
}

static void test_full(void) {
    struct heap_item a = {.key = 2}, b = {.key = 1}, *array[1];
    struct heap h;
    heap_init(&h, array, 1);
    CHECK_EQ(heap_push(&h, &a), 0);
    CHECK_EQ(heap_push(&h, &b), -ENOSPC);
    CHECK(!heap_item_queued(&b));
    CHECK(heap_pop(&h) == &a);
    CHECK_EQ(heap_push(&h, &b), 0);
    heap_remove(&h, &b);
    CHECK(!heap_peek(&h));
}

int main(void) {
    TEST(test_order);
    TEST(test_full);
    TEST(test_random_against_search);
    return tap_finish();
}
