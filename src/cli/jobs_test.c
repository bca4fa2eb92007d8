/* SPDX-License-Identifier: MIT */
/* Tests of jobs as commands name and show them. Complaints go to stderr, which tests may fill. */
#include "cli/jobs.h"

#include <stdlib.h>

#include "cli/complain.h"
#include "tap.h"

static int read_words(struct joblist *l, const char *a, const char *b) {
    char *argv[] = {(char *)a, (char *)b, NULL};
    return joblist_read(l, "kill", argv);
}

static void test_numbers(void) {
    struct joblist l;
    CHECK_EQ(read_words(&l, "7", "9-11"), 0);
    CHECK_EQ(l.count, 4);
    CHECK(l.at[0] == 7 && l.at[1] == 9 && l.at[3] == 11);
    struct bytes bytes = joblist_bytes(&l);
    CHECK(bytes.len == 16 && load_le32(bytes.at + 12) == 11);
    free((void *)bytes.at);
    joblist_fini(&l);
    CHECK_EQ(read_words(&l, "10", "8-11"), 0);
    CHECK(l.count == 4 && l.at[0] == 10 && l.at[1] == 8 && l.at[2] == 9 && l.at[3] == 11);
    joblist_fini(&l);
    static const char *const wrong[] = {"x", "0", "-3", "3-", "5-3", "4294967296", "1-4294967295"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(read_words(&l, wrong[i], NULL), STATUS_USAGE);
    CHECK_EQ(read_words(&l, NULL, NULL), STATUS_USAGE);
}

static void test_times(void) {
    setenv("TZ", "UTC", 1);
    CHECK_STR(moment_of(0).text, "-");
    CHECK_STR(moment_of(86399 * NS_PER_S).text, "1970-01-01 23:59:59");
    struct job_row row = {.started_ns = NS_PER_S, .ended_ns = 91 * NS_PER_S};
    CHECK_STR(job_duration(&row).text, "1m 30s");
    row.started_ns = 0;
    CHECK_STR(job_duration(&row).text, "");
}

static void test_json(void) {
    char *text = NULL;
    size_t len = 0;
    struct json j = {.out = open_memstream(&text, &len)};
    struct job_row row = {.job = 7,
                          .state = STATE_FAILED,
                          .kind = JOB_RUN,
                          .procs = 4,
                          .nodes = 2,
                          .ppn = 2,
                          .status = 139,
                          .submitted_ns = NS_PER_S,
                          .name = bytes_from_str("a.out"),
                          .node_list = bytes_from_str("n[0-1]")};
    job_json(&j, &row);
    fclose(j.out);
    CHECK_STR(
        text,
        "{\"id\":7,\"name\":\"a.out\",\"state\":\"failed\",\"kind\":\"run\",\"procs\":4,"
        "\"nodes\":2,\"ppn\":2,\"node_list\":\"n[0-1]\",\"priority\":0,\"parent\":0,\"hosts\":0,"
        "\"exit_status\":139,\"submit_time\":1.000000,\"start_time\":null,"
        "\"end_time\":null,\"expected_start\":null,\"why\":\"\",\"usage\":null}");
    free(text);
}

int main(void) {
    TEST(test_numbers);
    TEST(test_times);
    TEST(test_json);
    return tap_finish();
}
