/* SPDX-License-Identifier: MIT */
/* Tests of what hosts say and how it is shown: lines, what is gathered, JSON, fates and the status. */
#include "cli/voices.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

/* Everything that is written goes to two pipes, which hold what these tests write. */
struct stage {
    struct roll roll;
    struct loop loop;
    struct voices voices;
    int before[2], pipes[2][2];
    char out[4096], err[4096];
    int status;
};

static void open_stage(struct stage *s, const char *hosts, enum voices_manner manner) {
    *s = (struct stage){.status = -1};
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        s->before[i] = dup(i + 1);
        CHECK_EQ(pipe2(s->pipes[i], O_CLOEXEC | O_NONBLOCK), 0);
        dup2(s->pipes[i][1], i + 1);
    }
    CHECK_EQ(roll_read(&s->roll, "exec", hosts, NULL), 0);
    CHECK_EQ(loop_init(&s->loop), 0);
    CHECK_EQ(voices_init(&s->voices, &s->roll, &s->loop, manner), 0);
}

static void close_stage(struct stage *s) {
    char *texts[] = {s->out, s->err};
    voices_finish(&s->voices);
    voices_settle(&s->voices);
    s->status = voices_status(&s->voices);
    voices_fini(&s->voices);
    loop_fini(&s->loop);
    roll_free(&s->roll);
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        dup2(s->before[i], i + 1);
        close(s->before[i]);
        close(s->pipes[i][1]);
        ssize_t n = read(s->pipes[i][0], texts[i], sizeof s->out - 1);
        texts[i][n > 0 ? n : 0] = '\0';
        close(s->pipes[i][0]);
    }
}

static void take(struct stage *s, enum frame_kind kind, uint32_t host, int flag, uint32_t number,
                 const char *body) {
    voices_take(&s->voices, &(struct frame){.kind = kind,
                                            .host = host,
                                            .flag = (uint8_t)flag,
                                            .number = number,
                                            .body = bytes_from_str(body)});
}

static void says(struct stage *s, uint32_t host, int stream, const char *words) {
    take(s, FRAME_OUTPUT, host, stream, 0, words);
}

static void ends(struct stage *s, uint32_t host, enum frame_end how, uint32_t number) {
    take(s, FRAME_OVER, host, how, number, "");
}

static void begin(struct stage *s) {
    for (uint32_t i = 0; i < s->roll.count; i++)
        take(s, FRAME_READY, i, 0, 0, "");
}

/* ---- As it comes ------------------------------------------------------------------------------- */

static void test_lines(void) {
    struct stage s;
    open_stage(&s, "a,b", VOICES_LINES);
    begin(&s);
    says(&s, 0, 1, "one\ntw");
    says(&s, 1, 1, "other\n");
    says(&s, 0, 2, "bad\n");
    says(&s, 0, 1, "o\n\nend");
    ends(&s, 0, FRAME_EXITED, 0);
    ends(&s, 1, FRAME_EXITED, 0);
    close_stage(&s);
    CHECK_STR(s.out, "a: one\nb: other\na: two\na: \na: end\n");
    CHECK_STR(s.err, "a: bad\n");
    CHECK_EQ(s.status, 0);
}

static void test_plain(void) {
    struct stage s;
    open_stage(&s, "a,b", VOICES_PLAIN);
    begin(&s);
    says(&s, 0, 1, "one ");
    says(&s, 1, 2, "bad");
    says(&s, 1, 1, "other");
    ends(&s, 0, FRAME_EXITED, 0);
    ends(&s, 1, FRAME_EXITED, 0);
    close_stage(&s);
    CHECK_STR(s.out, "one other");
    CHECK_STR(s.err, "bad");
}

static void test_long_line(void) {
    static char line[64 * 1024 + 1];
    struct stage s;
    memset(line, 'x', 64 * 1024);
    open_stage(&s, "a", VOICES_LINES);
    fcntl(s.pipes[0][1], F_SETPIPE_SZ, 1 << 20);
    begin(&s);
    says(&s, 0, 1, line);
    voices_settle(&s.voices);
    CHECK_EQ(sink_waiting(&s.voices.out), 0); /* it was not kept for its end */
    ends(&s, 0, FRAME_EXITED, 0);
    close_stage(&s);
    CHECK(strncmp(s.out, "a: xxx", 6) == 0);
}

/* ---- At the end -------------------------------------------------------------------------------- */

static void test_gather(void) {
    struct stage s;
    open_stage(&s, "h[0-3],quiet", VOICES_GATHER);
    begin(&s);
    says(&s, 2, 1, "same\n");
    says(&s, 0, 1, "same");
    says(&s, 1, 1, "other");
    says(&s, 3, 2, "sa");
    says(&s, 3, 1, "me\n");
    says(&s, 0, 2, "\n");
    for (uint32_t i = 0; i < 5; i++)
        ends(&s, i, FRAME_EXITED, 0);
    close_stage(&s);
    CHECK_STR(s.out, "---------------\nh[0,2-3] (3)\n---------------\nsame\n"
                     "---------------\nh1\n---------------\nother\n");
    CHECK_STR(s.err, "");
}

static void test_json(void) {
    struct stage s;
    open_stage(&s, "a,b,c", VOICES_JSON);
    take(&s, FRAME_READY, 0, 0, 0, "");
    says(&s, 0, 1, "o\"ut");
    says(&s, 0, 2, "err\n");
    ends(&s, 0, FRAME_EXITED, 3);
    take(&s, FRAME_RETURN, 1, HOP_LATE, 0, "no answer");
    take(&s, FRAME_READY, 2, 0, 0, "");
    ends(&s, 2, FRAME_KILLED, 9);
    close_stage(&s);
    CHECK_STR(
        s.out,
        "{\"hosts\":["
        "{\"host\":\"a\",\"state\":\"exited\",\"status\":3,\"output\":\"o\\\"ut\",\"error\":\"err\\n\"},"
        "{\"host\":\"b\",\"state\":\"not reached\",\"status\":125,\"output\":\"\",\"error\":\"\","
        "\"reason\":\"no answer\"},"
        "{\"host\":\"c\",\"state\":\"killed\",\"status\":137,\"output\":\"\",\"error\":\"\"}],"
        "\"status\":125}\n");
    CHECK_STR(s.err, "");
}

/* ---- Fates ------------------------------------------------------------------------------------- */

static void test_failures(void) {
    struct stage s;
    open_stage(&s, "h[0-6]", VOICES_LINES);
    begin(&s);
    ends(&s, 0, FRAME_EXITED, 2);
    ends(&s, 3, FRAME_EXITED, 2);
    ends(&s, 1, FRAME_KILLED, 11);
    ends(&s, 2, FRAME_TIMED, 0);
    take(&s, FRAME_OVER, 4, FRAME_FAILED, 0, "no shell");
    take(&s, FRAME_LOST, 5, 0, 0, "it broke");
    take(&s, FRAME_RETURN, 6, HOP_REFUSED, 0, "no key");
    close_stage(&s);
    CHECK_STR(s.err, "storm: h4: not run: no shell\n"
                     "storm: h5: lost: it broke\n"
                     "storm: h6: not reached: no key\n"
                     "storm: h[0,3]: exit 2\n"
                     "storm: h1: the command was killed by signal 11 (Segmentation fault)\n"
                     "storm: h2: the command took too long and was ended\n");
    CHECK_EQ(s.status, 125);
}

static void test_quiet(void) {
    struct stage s;
    open_stage(&s, "a,b", VOICES_LINES);
    s.voices.quiet = true;
    begin(&s);
    ends(&s, 0, FRAME_EXITED, 2);
    take(&s, FRAME_LOST, 1, 0, 0, "it broke");
    close_stage(&s);
    CHECK_STR(s.err, "");
    CHECK_EQ(s.status, 125);
}

/* A host has one fate; what comes later counts no more. */
static void test_once(void) {
    struct stage s;
    uint32_t n = 9;
    open_stage(&s, "h[0-2]", VOICES_LINES);
    begin(&s);
    CHECK_EQ(s.voices.reached, 3);
    ends(&s, 0, FRAME_EXITED, 0);
    take(&s, FRAME_LOST, 0, 0, 0, "it broke");
    CHECK_EQ(s.voices.reached, 2);
    CHECK_EQ(s.voices.over, 1);
    CHECK_EQ(s.voices.failed, 0);
    char *at_work = voices_at_work(&s.voices, &n);
    CHECK_STR(at_work, "h[1-2]");
    CHECK_EQ(n, 2);
    free(at_work);
    ends(&s, 1, FRAME_EXITED, 0);
    ends(&s, 2, FRAME_EXITED, 0);
    close_stage(&s);
    CHECK_STR(s.err, "");
    CHECK_EQ(s.status, 0);
}

static int status_of(enum frame_end how, uint32_t number, enum frame_end other, uint32_t others) {
    struct stage s;
    open_stage(&s, "a,b", VOICES_LINES);
    s.voices.quiet = true;
    begin(&s);
    ends(&s, 0, how, number);
    ends(&s, 1, other, others);
    close_stage(&s);
    return s.status;
}

static void test_status(void) {
    CHECK_EQ(status_of(FRAME_EXITED, 0, FRAME_EXITED, 0), 0);
    CHECK_EQ(status_of(FRAME_EXITED, 3, FRAME_EXITED, 2), 3);
    CHECK_EQ(status_of(FRAME_EXITED, 3, FRAME_KILLED, 9), 137);
    CHECK_EQ(status_of(FRAME_TIMED, 0, FRAME_EXITED, 200), 124);
    CHECK_EQ(status_of(FRAME_FAILED, 0, FRAME_EXITED, 1), 126);
}

/* One of which nothing was heard any more was not reached. */
static void test_nothing_heard(void) {
    struct stage s;
    open_stage(&s, "a,b", VOICES_LINES);
    take(&s, FRAME_READY, 0, 0, 0, "");
    ends(&s, 0, FRAME_EXITED, 0);
    close_stage(&s);
    CHECK_EQ(s.status, 125);
}

/* What strangers say: numbers that no process ends with, words that would mean something to a terminal. */
static void test_strangers(void) {
    struct stage s;
    open_stage(&s, "h[0-1]", VOICES_LINES);
    begin(&s);
    ends(&s, 0, FRAME_EXITED, 256 + 3);
    take(&s, FRAME_LOST, 1, 0, 0, "gone\n\x1b[2Jstorm: h0: fine");
    close_stage(&s);
    CHECK(strstr(s.err, "h0: exit 3\n") != NULL);
    CHECK(strstr(s.err, "gone??[2Jstorm: h0: fine\n") != NULL);
}

/* Of what is shown at the end only so much is kept, and that is told, once. */
static void test_more_than_is_kept(void) {
    enum { PIECE = 60 * 1024, PIECES = 65 * 1024 * 1024 / PIECE };
    struct stage s;
    char *piece = malloc(PIECE + 1);
    memset(piece, 'x', PIECE);
    piece[PIECE] = '\0';
    open_stage(&s, "h0", VOICES_GATHER);
    begin(&s);
    for (int i = 0; i < PIECES; i++)
        says(&s, 0, 1, piece);
    ends(&s, 0, FRAME_EXITED, 0);
    CHECK_EQ(voices_error(&s.voices), -ENOSPC);
    close_stage(&s);
    const char *first = strstr(s.err, "more than can be kept");
    CHECK(first != NULL && strstr(first + 1, "more than can be kept") == NULL);
    free(piece);
}

int main(void) {
    setenv("NO_COLOR", "1", 1);
    TEST(test_lines);
    TEST(test_plain);
    TEST(test_long_line);
    TEST(test_gather);
    TEST(test_json);
    TEST(test_failures);
    TEST(test_quiet);
    TEST(test_once);
    TEST(test_status);
    TEST(test_nothing_heard);
    TEST(test_strangers);
    TEST(test_more_than_is_kept);
    return tap_finish();
}
