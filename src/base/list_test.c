/* SPDX-License-Identifier: MIT */
/*
 * Intrusive lists: order, removal, walking while removing.
 */
#include "base/list.h"

#include "tap.h"

struct thing {
    int number;
    struct list link;
};

static struct thing *thing_of(struct list *l) {
    return CONTAINER_OF(l, struct thing, link);
}

/* The numbers in order as decimal digits, e.g. 123. */
static int digits(struct list *head) {
    int n = 0;
    LIST_EACH (l, head) {
        n = n * 10 + thing_of(l)->number;
    }
    return n;
}

static void things_init(struct thing *things, int n) {
    for (int i = 0; i < n; i++) {
        things[i].number = i + 1;
        list_init(&things[i].link);
    }
}

static void test_order(void) {
    struct list head;
    struct thing t[4];
    things_init(t, 4);
    list_init(&head);
    CHECK(list_empty(&head));
    CHECK(!list_first(&head) && !list_last(&head) && !list_pop_front(&head));
    list_push_back(&head, &t[1].link);
    list_push_back(&head, &t[2].link);
    list_push_front(&head, &t[0].link);
    CHECK_EQ(digits(&head), 123);
    CHECK(list_first(&head) == &t[0].link && list_last(&head) == &t[2].link);
    CHECK(list_linked(&t[1].link) && !list_linked(&t[3].link));
}

static void test_remove(void) {
    struct list head;
    struct thing t[3];
    things_init(t, 3);
    list_init(&head);
    for (int i = 0; i < 3; i++)
        list_push_back(&head, &t[i].link);
    list_remove(&t[1].link);
    list_remove(&t[1].link);
    CHECK(!list_linked(&t[1].link));
    CHECK_EQ(digits(&head), 13);
    CHECK(list_pop_front(&head) == &t[0].link);
    CHECK(list_pop_front(&head) == &t[2].link);
    CHECK(list_empty(&head));
}

static void test_each_safe(void) {
    struct list head;
    struct thing t[6];
    things_init(t, 6);
    list_init(&head);
    for (int i = 0; i < 6; i++)
        list_push_back(&head, &t[i].link);
    int seen = 0;
    LIST_EACH_SAFE (l, &head) {
        seen++;
        if (thing_of(l)->number % 2 == 0)
            list_remove(l);
    }
    CHECK_EQ(seen, 6);
    CHECK_EQ(digits(&head), 135);
    LIST_EACH_SAFE (l, &head) {
        list_remove(l);
    }
    CHECK(list_empty(&head));
}

static void test_move_all(void) {
    struct list a, b;
    struct thing t[4];
    things_init(t, 4);
    list_init(&a);
    list_init(&b);
    list_move_all(&a, &b);
    CHECK(list_empty(&a));
    list_push_back(&a, &t[0].link);
    list_push_back(&b, &t[1].link);
    list_push_back(&b, &t[2].link);
    list_move_all(&a, &b);
    CHECK(list_empty(&b));
    list_push_back(&a, &t[3].link);
    CHECK_EQ(digits(&a), 1234);
    list_move_all(&b, &a);
    CHECK_EQ(digits(&b), 1234);
    CHECK(list_empty(&a));
}

int main(void) {
    TEST(test_order);
    TEST(test_remove);
    TEST(test_each_safe);
    TEST(test_move_all);
    return tap_finish();
}
