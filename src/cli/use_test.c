/* SPDX-License-Identifier: MIT */
/* What jobs have used, in words. */
#include "cli/use.h"

#include <string.h>

#include "base/units.h"
#include "tap.h"

static void test_words(void) {
    struct usage u = {.user_ns = 2 * NS_PER_S,
                      .system_ns = 12 * NS_PER_MS,
                      .written_bytes = 8 * MIB,
                      .peak_bytes = 66 * MIB};
    char out[USE_TEXT_MAX];
    use_text(&u, bytes_from_str("n1"), (struct bytes){0}, out);
    CHECK_STR(out, "2.01 s of processors (2 s user, 12 ms system), up to 66 MiB of memory in one "
                   "process on n1, 0 B read from storage, 8 MiB written");
    u.node_bytes = 80 * MIB;
    use_text(&u, (struct bytes){0}, bytes_from_str("n2"), out);
    CHECK(strstr(out, "in one process and 80 MiB in all on n2, 0 B read") != NULL);
}

static void test_json(void) {
    char text[1024] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    struct json j = {.out = f};
    struct job_row r = {.state = STATE_RUNNING};
    json_open(&j, NULL, '{');
    use_json(&j, &r);
    r.measured = true;
    r.measured_ns = NS_PER_S;
    r.measured_nodes = 3;
    r.usage.user_ns = 1500 * NS_PER_MS;
    r.usage.peak_bytes = 4096;
    r.peak_where = bytes_from_str("n7");
    use_json(&j, &r);
    json_close(&j, '}');
    fclose(f);
    CHECK_STR(text,
              "{\"usage\":null,\"usage\":{\"final\":false,\"as_of\":1.000000,\"running_nodes\":3,"
              "\"user_s\":1.500000,\"system_s\":0.000000,\"process_memory\":4096,"
              "\"process_memory_node\":\"n7\",\"node_memory\":null,\"node_memory_node\":null,"
              "\"read_bytes\":0,\"written_bytes\":0}}");
}

static void test_age(void) {
    struct job_row r = {.state = STATE_RUNNING};
    CHECK_STR(use_age(&r).text, "");
    r.measured = true;
    r.measured_ns = UINT64_MAX; /* a clock that goes wrong */
    CHECK_STR(use_age(&r).text, "0 ns ago");
    r.state = STATE_DONE;
    CHECK_STR(use_age(&r).text, "");
}

int main(void) {
    TEST(test_words);
    TEST(test_json);
    TEST(test_age);
    return tap_finish();
}
