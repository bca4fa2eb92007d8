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

/* The cells of these nodes, with slashes between them. */
static const char *cells(const struct node_row *rows, size_t count) {
    static char text[256];
    static const char *const titles[] = {USE_NODE_TITLES, NULL};
    struct use_nodes u = {0};
    struct table t;
    for (size_t i = 0; i < count; i++)
        use_nodes_add(&u, &rows[i]);
    table_init(&t, titles);
    use_nodes_cells(&t, &u);
    snprintf(text, sizeof text, "%s/%s/%s", t.cells[3], t.cells[4], t.cells[5]);
    table_fini(&t);
    return text;
}

static void test_nodes(void) {
    struct node_row rows[] = {
        {.seen_ns = 1, .load_x100 = 42, .memory_used = 3 * GIB, .memory_bytes = 24 * GIB},
        {.load_x100 = 900, .memory_used = 9 * GIB}, /* has not told */
        {.seen_ns = 1, .load_x100 = 10, .memory_used = 2 * GIB, .memory_bytes = 24 * GIB},
        {.seen_ns = 1, .load_x100 = 10, .memory_used = 512 * MIB, .memory_bytes = 24 * GIB + 1}};
    CHECK_STR(cells(rows, 1), "0.42/3 GiB/24 GiB");
    CHECK_STR(cells(rows, 3), "0.10-0.42/2-3 GiB/24 GiB");
    CHECK_STR(cells(rows, 4), "0.10-0.42/512 MiB-3 GiB/24 GiB");
    CHECK_STR(cells(rows + 1, 1), "-/-/-");
}

int main(void) {
    TEST(test_words);
    TEST(test_json);
    TEST(test_age);
    TEST(test_nodes);
    return tap_finish();
}
