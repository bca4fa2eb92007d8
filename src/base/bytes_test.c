/* SPDX-License-Identifier: MIT */
/*
 * Views of bytes and little-endian numbers, at odd addresses too.
 */
#include "base/bytes.h"

#include <errno.h>

#include "tap.h"

static void test_equal(void) {
    CHECK(bytes_equal(bytes_from_str("abc"), bytes_of("abcd", 3)));
    CHECK(!bytes_equal(bytes_from_str("abc"), bytes_from_str("abd")));
    CHECK(!bytes_equal(bytes_from_str("abc"), bytes_from_str("ab")));
    CHECK(bytes_equal(bytes_of(NULL, 0), bytes_from_str("")));
}

static void test_sub(void) {
    struct bytes whole = bytes_from_str("abcdef"), part = {0};
    CHECK_EQ(bytes_sub(whole, 2, 3, &part), 0);
    CHECK(bytes_equal(part, bytes_from_str("cde")));
    CHECK_EQ(bytes_sub(whole, 6, 0, &part), 0);
    CHECK_EQ(part.len, 0);
    CHECK_EQ(bytes_sub(whole, 0, 6, &part), 0);
    CHECK_EQ(part.len, 6);
    CHECK_EQ(bytes_sub(whole, 0, 7, &part), -ERANGE);
    CHECK_EQ(bytes_sub(whole, 7, 0, &part), -ERANGE);
    CHECK_EQ(bytes_sub(whole, 3, SIZE_MAX, &part), -ERANGE);
    CHECK_EQ(bytes_sub(whole, SIZE_MAX, 3, &part), -ERANGE);
    CHECK_EQ(part.len, 6); /* untouched by failures */
    CHECK_EQ(bytes_sub(bytes_of(NULL, 0), 0, 0, &part), 0);
}

static void test_room(void) {
    uint8_t memory[8] = {0};
    struct room part = {0};
    CHECK_EQ(room_sub(room_of(memory, sizeof memory), 4, 4, &part), 0);
    CHECK(part.at == memory + 4);
    CHECK_EQ(room_sub(room_of(memory, sizeof memory), 4, 5, &part), -ERANGE);
    CHECK_EQ(room_bytes(part).len, 4);
}

static void test_little_endian(void) {
    uint8_t m[16];
    for (size_t at = 0; at < 8; at++) {
        memset(m, 0xEE, sizeof m);
        store_le64(m + at, 0x8877665544332211);
        for (size_t i = 0; i < 8; i++)
            CHECK_EQ(m[at + i], 0x11 * (i + 1));
        CHECK_EQ(m[at + 8], 0xEE);
        CHECK_EQ(load_le64(m + at), 0x8877665544332211);
        CHECK_EQ(load_le32(m + at), 0x44332211);
        CHECK_EQ(load_le32(m + at + 4), 0x88776655);
        CHECK_EQ(load_le16(m + at + 6), 0x8877);
        store_le32(m + at, 0xFEDCBA98);
        store_le16(m + at + 4, 0x8001);
        CHECK_EQ(load_le64(m + at), 0x88778001FEDCBA98);
    }
}

static void test_align(void) {
    CHECK_EQ(align_up(0, 8), 0);
    CHECK_EQ(align_up(1, 8), 8);
    CHECK_EQ(align_up(8, 8), 8);
    CHECK_EQ(align_up(9, 1), 9);
    CHECK_EQ(align_up(4097, 4096), 8192);
    CHECK(is_power_of_two(1) && is_power_of_two(64) && !is_power_of_two(0) && !is_power_of_two(6));
}

int main(void) {
    TEST(test_equal);
    TEST(test_sub);
    TEST(test_room);
    TEST(test_little_endian);
    TEST(test_align);
    return tap_finish();
}
