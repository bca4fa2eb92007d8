/* SPDX-License-Identifier: MIT */
/* Rows of jobs as lines of a trace. */
#include "cli/swf.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

enum { ROWS_BYTES = 4096, TEXT_BYTES = 4096 };

#define BASE ((uint64_t)1700000000 * NS_PER_S)

static uint8_t bytes[ROWS_BYTES];
static size_t len;

static void row(uint32_t job, uint64_t begin_ms, uint64_t start_ms, uint64_t end_ms,
                enum job_state state) {
    bool measured = job == 1 || job == 3; /* the third never ran */
    struct job_row r = {.job = job,
                        .state = (uint8_t)state,
                        .kind = JOB_BATCH,
                        .nodes = 2,
                        .ppn = 3,
                        .procs = 5,
                        .submitted_ns = BASE,
                        .begin_ns = begin_ms == 0 ? 0 : BASE + begin_ms * NS_PER_MS,
                        .started_ns = start_ms == 0 ? 0 : BASE + start_ms * NS_PER_MS,
                        .ended_ns = end_ms == 0 ? 0 : BASE + end_ms * NS_PER_MS,
                        .limit_ns = job == 1 ? 0 : 1500 * NS_PER_MS,
                        .measured = measured,
                        .usage = {.user_ns = measured ? 7 * NS_PER_S : 0,
                                  .system_ns = measured ? 2100 * NS_PER_MS : 0,
                                  .peak_bytes = measured ? 12 * MIB - 1000 : 0}};
    long n = job_row_encode(&r, room_of(bytes + len, sizeof bytes - len));
    CHECK(n > 0);
    len += (size_t)n;
}

/* The lines that are no remarks. */
static const char *lines(const struct swf_config *c) {
    static char text[TEXT_BYTES];
    struct swf s;
    FILE *f = fmemopen(text, sizeof text, "w");
    CHECK_EQ(swf_collect(&s, bytes_of(bytes, len), c), 0);
    swf_print(&s, "local", c, f);
    swf_fini(&s);
    fclose(f);
    const char *at = text;
    while (*at == ';')
        at = strchr(at, '\n') + 1;
    return at;
}

static void some(void) {
    len = 0;
    row(1, 0, 1400, 2600, STATE_DONE); /* moments are rounded, so it ran from 1 to 3 */
    row(2, 2000, 2100, 2200, STATE_TIMEOUT);
    row(3, 600, 0, 3000, STATE_KILLED);
    row(4, 0, 500, 0, STATE_RUNNING);
    row(5, 600, 700, 800, STATE_FAILED);
}

static void test_lines(void) {
    some();
    CHECK_STR(lines(&(struct swf_config){.scale_x1000 = SWF_SCALE_ONE}),
              "1 0 1 2 6 2 10240 6 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
              "3 1 2 -1 -1 -1 -1 6 2 -1 5 1 1 -1 1 -1 -1 -1\n"
              "5 1 0 1 6 -1 -1 6 2 -1 0 1 1 -1 1 -1 -1 -1\n"
              "2 2 0 1 6 -1 -1 6 2 -1 0 1 1 -1 1 -1 -1 -1\n");
}

static void test_scale(void) {
    uint32_t numbers[] = {2, 1, 77};
    struct joblist only = {.count = 3, .at = numbers};
    some();
    CHECK_STR(lines(&(struct swf_config){.scale_x1000 = 10 * SWF_SCALE_ONE, .only = &only}),
              "1 0 14 12 6 15 10240 6 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
              "2 20 1 1 6 -1 -1 6 15 -1 0 1 1 -1 1 -1 -1 -1\n");
    uint64_t x1000;
    CHECK(swf_scale("60", &x1000) && x1000 == 60000);
    CHECK(swf_scale("0.5", &x1000) && x1000 == 500);
    for (const char *const *bad =
             (const char *const[]){"", "0", "-1", "x", "1x", "nan", "1e9", NULL};
         *bad != NULL; bad++)
        CHECK(!swf_scale(*bad, &x1000));
}

/* No jobs, a clock that was set back, rows that are none. */
static void test_odd(void) {
    struct swf_config c = {.scale_x1000 = SWF_SCALE_ONE};
    struct swf s;
    len = 0;
    CHECK_STR(lines(&c), "");
    row(2, 5000, 3000, 2000, STATE_DONE);
    CHECK_STR(lines(&c), "2 0 0 1 6 -1 -1 6 2 -1 1 1 1 -1 1 -1 -1 -1\n");
    CHECK_EQ(swf_collect(&s, bytes_of(bytes, len - 1), &c), -EBADMSG);
    swf_fini(&s);
}

int main(void) {
    TEST(test_lines);
    TEST(test_scale);
    TEST(test_odd);
    return tap_finish();
}
