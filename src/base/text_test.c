/* SPDX-License-Identifier: MIT */
/*
 * Bounded text: numbers, cutting at every capacity, reading numbers back.
 */
#include "base/text.h"

#include <errno.h>

#include "tap.h"

static void test_pieces(void) {
    char buf[128];
    struct text t;
    text_init(&t, buf, sizeof buf);
    CHECK_STR(buf, "");
    text_str(&t, "a");
    text_strn(&t, "bcdef", 2);
    text_char(&t, ' ');
    text_u64(&t, 0);
    text_char(&t, ' ');
    text_u64(&t, UINT64_MAX);
    text_char(&t, ' ');
    text_i64(&t, INT64_MIN);
    text_char(&t, ' ');
    text_i64(&t, 42);
    text_char(&t, ' ');
    text_u64_pad(&t, 7, 3);
    text_u64_pad(&t, 1234, 3);
    text_char(&t, ' ');
    text_hex64(&t, 0x0123456789abcdef);
    CHECK_STR(buf, "abc 0 18446744073709551615 -9223372036854775808 42 0071234 0123456789abcdef");
    CHECK(!t.cut);
    CHECK_EQ(t.len, strlen(buf));
    CHECK_EQ(t.full, t.len);
}

static void test_number_edges(void) {
    char buf[64];
    struct text t;
    text_init(&t, buf, sizeof buf);
    text_i64(&t, 0);
    text_char(&t, ' ');
    text_i64(&t, -1);
    text_char(&t, ' ');
    text_i64(&t, INT64_MAX);
    text_char(&t, ' ');
    text_u64_pad(&t, 1, 20);
    CHECK_STR(buf, "0 -1 9223372036854775807 00000000000000000001");
}

static void test_cut_at_every_capacity(void) {
    for (size_t cap = 0; cap <= 12; cap++) {
        char buf[16];
        struct text t;
        memset(buf, 'X', sizeof buf);
        text_init(&t, buf, cap);
        text_str(&t, "abcde");
        text_u64(&t, 12345);
        text_char(&t, '!');
        CHECK_EQ(t.full, 11);
        CHECK_EQ(t.cut, cap < 12);
        CHECK_EQ(buf[cap], 'X');
        if (cap > 0) {
            CHECK_EQ(t.len, cap - 1);
            CHECK_EQ(strlen(buf), t.len);
            CHECK_EQ(memcmp(buf, "abcde12345!", t.len), 0);
        }
    }
}

static void test_nothing_after_a_cut(void) {
    char buf[4];
    struct text t;
    text_init(&t, buf, sizeof buf);
    text_str(&t, "ab");
    text_str(&t, "cdef");
    text_str(&t, "");
    text_char(&t, 'x');
    CHECK_STR(buf, "abc");
    CHECK(t.cut);
    CHECK_EQ(t.full, 7);
    text_init(&t, NULL, 0);
    text_str(&t, "ab");
    CHECK(t.cut && t.full == 2 && t.len == 0);
}

static void test_scan(void) {
    uint64_t v = 77;
    CHECK_EQ(text_scan_u64("", &v), 0);
    CHECK_EQ(text_scan_u64("x1", &v), 0);
    CHECK_EQ(v, 77);
    CHECK_EQ(text_scan_u64("0012x", &v), 4);
    CHECK_EQ(v, 12);
    CHECK_EQ(text_scan_u64("18446744073709551615", &v), 20);
    CHECK_EQ(v, UINT64_MAX);
    CHECK_EQ(text_scan_u64("18446744073709551616", &v), -ERANGE);
    CHECK_EQ(text_scan_u64("99999999999999999999", &v), -ERANGE);
    CHECK_EQ(v, UINT64_MAX);
}

static void test_digits(void) {
    CHECK_EQ(text_digits(0), 1);
    CHECK_EQ(text_digits(9), 1);
    CHECK_EQ(text_digits(10), 2);
    CHECK_EQ(text_digits(UINT64_MAX), 20);
}

static void test_alike(void) {
    CHECK(text_alike("", "") && text_alike("NIC", "nic") && text_alike("x86_64", "X86_64"));
    CHECK(!text_alike("NIC", "NI") && !text_alike("NI", "NIC") && !text_alike("a[", "A{"));
    CHECK(text_lower('Z') == 'z' && text_lower('[') == '[' && text_lower('9') == '9');
    CHECK(text_is_letter('a') && text_is_letter('Z') && !text_is_letter('@') &&
          !text_is_letter('{'));
}

int main(void) {
    TEST(test_pieces);
    TEST(test_number_edges);
    TEST(test_cut_at_every_capacity);
    TEST(test_nothing_after_a_cut);
    TEST(test_scan);
    TEST(test_digits);
    TEST(test_alike);
    return tap_finish();
}
