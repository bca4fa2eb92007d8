/* SPDX-License-Identifier: MIT */
/* Tests of what is read from a loader, and of the levels of processors. */
#include "base/rtld.h"

#include <errno.h>

#include "tap.h"

#define READ(ret, text) rtld_read((ret), bytes_of((text), sizeof(text)))

static void test_debian(void) {
    static const char file[] = "code\0/proc/self/\0/lib/cpp\0x/lib/\0\0/lib/aarch64-linux-gnu/\0"
                               "/usr/lib/aarch64-linux-gnu/\0/lib/\0/usr/lib/\0\0/lib/later/\0"
                               "/etc/ld.so.cache\0--argv0";
    struct rtld r;
    if (!CHECK_EQ(READ(&r, file), 0))
        return;
    CHECK_EQ(r.folders, 4);
    CHECK_STR(r.folder[0], "/lib/aarch64-linux-gnu/");
    CHECK_STR(r.folder[1], "/usr/lib/aarch64-linux-gnu/");
    CHECK_STR(r.folder[2], "/lib/");
    CHECK_STR(r.folder[3], "/usr/lib/");
    CHECK_STR(r.lib, "lib/aarch64-linux-gnu");
    CHECK_STR(r.cache, "/etc/ld.so.cache");
    CHECK(r.argv0);
}

static void test_others(void) {
    struct rtld r;
    CHECK_EQ(READ(&r, "\0/lib64/\0/usr/lib64/\0--argv0=\0/etc/ld.so.cache"), 0);
    CHECK_EQ(r.folders, 2);
    CHECK_STR(r.lib, "lib64");
    CHECK(!r.argv0);
    CHECK_EQ(READ(&r, "\0/nix/store/x-glibc/lib/\0"
                      "\0/nix/store/x-glibc/etc/ld.so.cache"),
             0);
    CHECK_EQ(r.folders, 1);
    CHECK_STR(r.cache, "/nix/store/x-glibc/etc/ld.so.cache");
}

static void test_none(void) {
    struct rtld r;
    CHECK_EQ(READ(&r, ""), -ENOENT);
    CHECK_EQ(READ(&r, "\0/lib:/usr/local/lib:/usr/lib\0/etc/ld-musl-aarch64.path"), -ENOENT);
    CHECK_EQ(READ(&r, "\0/lib/\0/usr/lib/"), -ENOENT);
    CHECK_EQ(READ(&r, "\0/lib/\0ld.so.cache\0\n/ld.so.cache"), -ENOENT);
    CHECK_EQ(rtld_read(&r, bytes_of("\0/lib/", 6)), -ENOENT); /* cut before its end */
}

#define V2 "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2"
#define V3 "avx avx2 f16c fma abm movbe bmi1 bmi2"
#define V4 "avx512f avx512bw avx512cd avx512dq avx512vl"

static void test_hwcaps(void) {
    CHECK_STR(rtld_hwcaps(""), "");
    CHECK_STR(rtld_hwcaps("processor : 0\nFeatures\t: fp asimd\n"), "");
    CHECK_STR(rtld_hwcaps("model\t: 1\nflags\t\t: fpu pni\nbugs\t: " V2 "\n"), "");
    CHECK_STR(rtld_hwcaps("model\t: 1\nflags\t\t: fpu " V2 " tsc\n"), "x86-64-v2");
    CHECK_STR(rtld_hwcaps("model\t: 1\nflags\t\t: fpu " V2 " avx512_" V3 "\n"), "x86-64-v2");
    CHECK_STR(rtld_hwcaps("\nflags\t\t: " V3 " " V2), "x86-64-v3:x86-64-v2");
    CHECK_STR(rtld_hwcaps("\nflags\t\t: " V4 " " V2), "x86-64-v2");
    CHECK_STR(rtld_hwcaps("\nflags\t\t: " V4 " " V3 " " V2 "\n"), "x86-64-v4:x86-64-v3:x86-64-v2");
}

int main(void) {
    TEST(test_debian);
    TEST(test_others);
    TEST(test_none);
    TEST(test_hwcaps);
    return tap_finish();
}
