/* SPDX-License-Identifier: MIT */
/* Interned texts: against a plain list of who uses what. */
#include "base/intern.h"

#include <stdalign.h>

#include "base/random.h"
#include "tap.h"

enum { CAPACITY = 20, USERS = 20, TEXTS = 40 };

static alignas(8) uint8_t storage[8192];

static void test_texts(void) {
    struct intern s;
    CHECK(intern_bytes(CAPACITY) <= sizeof storage);
    intern_init(&s, 2, storage);
    CHECK_EQ(intern_find(&s, "x86_64"), INTERN_NONE);
    uint32_t a = intern_take(&s, "x86_64");
    CHECK_EQ(intern_take(&s, "X86_64"), a);
    CHECK_STR(intern_text(&s, a), "x86_64");
    uint32_t b = intern_take(&s, "");
    CHECK(b != a && b != INTERN_NONE);
    CHECK_EQ(intern_take(&s, "aarch64"), INTERN_NONE);
    intern_drop(&s, a);
    CHECK_EQ(intern_find(&s, "X86_64"), a);
    intern_drop(&s, a);
    CHECK_EQ(intern_find(&s, "x86_64"), INTERN_NONE);
    CHECK(intern_take(&s, "aarch64") != INTERN_NONE);
}

static void test_long_texts(void) {
    struct intern s;
    char text[100];
    intern_init(&s, CAPACITY, storage);
    memset(text, 'a', sizeof text);
    text[99] = '\0';
    uint32_t a = intern_take(&s, text);
    CHECK_EQ(strlen(intern_text(&s, a)), INTERN_TEXT_MAX - 1);
    text[INTERN_TEXT_MAX] = 'b'; /* is not looked at */
    CHECK_EQ(intern_find(&s, text), a);
    text[0] = 'b';
    CHECK_EQ(intern_find(&s, text), INTERN_NONE);
}

static void test_many_users(void) {
    struct intern s;
    struct random r;
    char text[16];
    uint32_t has[USERS], number[USERS];
    intern_init(&s, CAPACITY, storage);
    random_init(&r, 1);
    memset(has, 0xff, sizeof has);
    for (int i = 0; i < 20000; i++) {
        uint32_t user = (uint32_t)random_below(&r, USERS);
        if (has[user] != UINT32_MAX)
            intern_drop(&s, number[user]);
        has[user] = random_chance(&r, 1, 4) ? UINT32_MAX : (uint32_t)random_below(&r, TEXTS);
        snprintf(text, sizeof text, "%s%u", i % 2 ? "host" : "HOST", has[user]);
        if (has[user] != UINT32_MAX)
            number[user] = intern_take(&s, text);
        for (uint32_t k = 0; k < USERS; k++) {
            snprintf(text, sizeof text, "Host%u", has[k]);
            if (has[k] != UINT32_MAX && !CHECK_EQ(intern_find(&s, text), number[k]))
                return;
        }
    }
}

int main(void) {
    TEST(test_texts);
    TEST(test_long_texts);
    TEST(test_many_users);
    return tap_finish();
}
