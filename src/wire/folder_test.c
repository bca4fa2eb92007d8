/* SPDX-License-Identifier: MIT */
/* Folders of runs have one name each, and nothing else is taken for one. */
#include "wire/folder.h"

#include <string.h>

#include "tap.h"
#include "wire/message.h"

static void test_names(void) {
    char name[RUN_FOLDER_MAX];
    run_folder_name(run_of(42, 1), name);
    CHECK(strcmp(name, "42.1") == 0);
    run_folder_path(run_of(42, 1), name);
    CHECK(strcmp(name, "/jobs/42.1") == 0);
    run_folder_path(run_of(UINT32_MAX, UINT16_MAX), name);
    CHECK(strcmp(name, "/jobs/4294967295.65535") == 0);
}

static void test_reads_what_it_wrote(void) {
    const uint64_t runs[] = {run_of(1, 1), run_of(42, 7), run_of(UINT32_MAX, UINT16_MAX)};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char name[RUN_FOLDER_MAX];
        run_folder_name(runs[i], name);
        CHECK_EQ(run_folder_read(name), runs[i]);
    }
}

static void test_reads_nothing_else(void) {
    static const char *const wrong[] = {"",
                                        "1",
                                        "1.",
                                        ".1",
                                        "1.1 ",
                                        "01.1",
                                        "1.01",
                                        "1.65536",
                                        "x",
                                        "1.1.1",
                                        "-1.1",
                                        "..",
                                        "1/1",
                                        "4294967296.1",
                                        "1.99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(run_folder_read(wrong[i]), 0);
}

static void test_paths(void) {
    CHECK_EQ(run_folder_of(bytes_from_str("/jobs/42.1/out/*.dat")), run_of(42, 1));
    CHECK_EQ(run_folder_of(bytes_from_str("/jobs/42.1")), run_of(42, 1));
    CHECK_EQ(run_folder_of(bytes_from_str("/jobs/42/x")), 0);
    CHECK_EQ(run_folder_of(bytes_from_str("/jobs/")), 0);
    CHECK_EQ(run_folder_of(bytes_from_str("/jobs")), 0);
    CHECK_EQ(run_folder_of(bytes_from_str("/data/42.1/x")), 0);
    CHECK_EQ(run_folder_of(bytes_from_str("/jobs/11111111111111111111111111111111111111.1/x")), 0);
    CHECK_EQ(run_folder_of((struct bytes){0}), 0);
}

int main(void) {
    TEST(test_names);
    TEST(test_reads_what_it_wrote);
    TEST(test_reads_nothing_else);
    TEST(test_paths);
    return tap_finish();
}
