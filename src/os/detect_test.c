/* SPDX-License-Identifier: MIT */
/* What a machine is: this one's is what other sources say of it; versions and memory by example. */
#include "os/detect.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/units.h"
#include "tap.h"

static uint64_t version(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return a << 48 | b << 32 | c << 16 | d;
}

static void test_versions(void) {
    CHECK_EQ(detect_version("6.1.0-18-amd64"), version(6, 1, 0, 0));
    CHECK_EQ(detect_version("5.10"), version(5, 10, 0, 0));
    CHECK_EQ(detect_version("4.19.0.7.9"), version(4, 19, 0, 7));
    CHECK_EQ(detect_version("70000.1"), version(65534, 1, 0, 0));
    CHECK_EQ(detect_version("6."), version(6, 0, 0, 0));
    CHECK_EQ(detect_version("next"), TRAITS_UNKNOWN);
    CHECK_EQ(detect_version(""), TRAITS_UNKNOWN);
}

static void test_memory_as_it_was_bought(void) {
    const struct {
        uint64_t mib, gib;
    } machines[] = {{1972, 2},   {3915, 4},   {7857, 8},    {15884, 16},
                    {23960, 24}, {64100, 64}, {515000, 512}};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        CHECK_EQ(detect_built_in(machines[i].mib * MIB), machines[i].gib * GIB);
    CHECK_EQ(detect_built_in(8 * GIB), 8 * GIB);
    CHECK_EQ(detect_built_in(0), 0);
    CHECK_EQ(detect_built_in(UINT64_MAX), UINT64_MAX);
}

static void test_this_machine(void) {
    struct traits_report r = detect_machine();
    struct utsname u;
    CHECK_EQ(uname(&u), 0);
    CHECK(r.values[TRAITS_PROCESSORS] >= 1 && r.values[TRAITS_PROCESSORS] < 100000);
    CHECK(r.values[TRAITS_MEMORY] >= 64 * MIB && r.values[TRAITS_MEMORY] != TRAITS_UNKNOWN);
    CHECK(r.values[TRAITS_NUMA] >= 1 && r.values[TRAITS_NUMA] < 10000);
    CHECK(r.values[TRAITS_GPUS] < 10000);
    CHECK_EQ(r.values[TRAITS_KERNEL], detect_version(u.release));
    CHECK_STR(r.texts[TRAITS_ARCH], u.machine);
    CHECK_STR(r.texts[TRAITS_OPSYS], "Linux");
    CHECK(strncmp(r.texts[TRAITS_HOST], u.nodename, 8) == 0);
    CHECK_EQ(r.values[TRAITS_SPEED], TRAITS_UNKNOWN);
}

static void test_speed(void) {
    uint64_t speed = detect_speed();
    CHECK(speed > 0 && speed < 100000);
}

/* A table of one node that has heard it says it in words. */
static void test_it_can_be_told(void) {
    uint8_t blob[1024];
    char words[512];
    struct traits t;
    struct traits_report r = detect_machine(), back;
    void *storage = malloc(traits_bytes(1, TRAITS_BUILT_IN));
    CHECK(storage != NULL);
    traits_init(&t, 1, TRAITS_BUILT_IN, storage);
    long len = traits_report_encode(&r, room_of(blob, sizeof blob));
    CHECK(len > 0);
    CHECK_EQ(traits_report_decode(bytes_of(blob, (size_t)len), &back), 0);
    traits_hear(&t, 0, &back);
    traits_format(&t, 0, words, sizeof words);
    CHECK(strstr(words, "ARCH=") != NULL && strstr(words, "MEMORY=") != NULL);
    free(storage);
}

int main(void) {
    TEST(test_versions);
    TEST(test_memory_as_it_was_bought);
    TEST(test_this_machine);
    TEST(test_speed);
    TEST(test_it_can_be_told);
    return tap_finish();
}
