/* SPDX-License-Identifier: MIT */
/* What processes read and write through the launcher's kernel side: windows, ends, terminals. */
#include <signal.h>

#include "processes.h"

/* ---- streams ---- */

/* Bytes that differ everywhere, as awk and we can both make them: only their sum of hashes counts. */
static uint64_t hash_file(const char *path) {
    uint64_t hash = 0;
    uint8_t buffer[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < n; i++)
            hash = (hash ^ buffer[i]) * UINT64_C(0x100000001b3);
    close(fd);
    return hash;
}

enum { LARGE = 3 * 1024 * 1024 + 12345 };

static void write_large(const char *path) {
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    uint64_t word = 1;
    for (size_t done = 0; done < LARGE;) {
        uint8_t buffer[1000];
        for (size_t i = 0; i < sizeof buffer; i++) {
            word = word * UINT64_C(6364136223846793005) + 1442695040888963407;
            buffer[i] = (uint8_t)(word >> 56);
        }
        size_t n = LARGE - done < sizeof buffer ? LARGE - done : sizeof buffer;
        CHECK_EQ(write(fd, buffer, n), n);
        done += n;
    }
    close(fd);
}

/* Far more than the window, on both streams of several processes at once, binary. */
static void test_output(void) {
    struct order o;
    char folder[PATH_MAX], path[PATH_MAX], script[PATH_MAX];
    folder_make(folder);
    write_large(folder_file(folder, "large", path));
    uint64_t hash = hash_file(path);
    snprintf(script, sizeof script, "cat large & cat large >&2; wait; printf x >&2");
    order_shell(&o, script);
    order_count(&o, 3);
    o.spec.folder = bytes_from_str(folder);
    stage_begin();
    run(&o);
    for (uint32_t i = 0; i < 3; i++) {
        struct heard *h = &stage.groups[0].heard[i];
        check_ended(h, CHILD_EXITED, 0);
        CHECK_EQ(h->stream[0].next, LARGE);
        CHECK_EQ(h->stream[0].hash, hash);
        CHECK_EQ(h->stream[1].next, LARGE + 1);
        CHECK_EQ(h->stream[1].hash, (hash ^ 'x') * UINT64_C(0x100000001b3));
    }
    stage_end();
    folder_remove(folder);
}

static void again(uint64_t offset) {
    struct effect e = {.kind = EFFECT_STREAM_AGAIN,
                       .stream = {.group = 0, .index = 0, .stream = 1, .offset = offset}};
    kernel_carry(stage.kernel, &e);
    struct heard_stream *s = &stage.groups[0].heard[0].stream[0];
    *s = (struct heard_stream){.next = offset};
}

/* A client that takes nothing holds the process back; what it asks for again, it gets again. */
static void test_taken_late(void) {
    struct order o;
    struct heard_stream *s = &stage.groups[0].heard[0].stream[0];
    order_shell(&o, "head -c 200000 /dev/zero; echo end");
    stage_begin();
    stage.hold = true;
    open_group(0, &o);
    CHECK(UNTIL(s->next == WINDOW));
    for (int i = 0; i < 20; i++) {
        loop_turn(&stage.loop, 1);
        kernel_settle(stage.kernel);
    }
    CHECK_EQ(s->next, WINDOW); /* no more than the window */
    CHECK(!s->ended);
    CHECK_EQ(stage.groups[0].heard[0].ends, 0);
    take(0, 0, 1, 1000);
    CHECK(UNTIL(s->next == WINDOW + 1000));
    again(0); /* what was taken is gone */
    s->next = 1000;
    kernel_settle(stage.kernel);
    CHECK_EQ(s->next, WINDOW + 1000);
    again(60000);
    kernel_settle(stage.kernel);
    CHECK_EQ(s->next, WINDOW + 1000);
    while (!s->ended && CHECK(UNTIL(s->next < 200004 || s->ended))) {
        take(0, 0, 1, s->next < 200000 ? s->next : 200000);
        kernel_settle(stage.kernel);
        loop_turn(&stage.loop, 1);
    }
    CHECK_EQ(s->next, 200004);
    CHECK(UNTIL(over(0, 1)));
    again(200000); /* the end is told again too */
    kernel_settle(stage.kernel);
    CHECK_STR(s->text, "end\n");
    CHECK(s->ended);
    close_group(0);
    stage_end();
}

/* All has ended but the client is slow: EMPTY comes, the end of the stream when it is taken. */
static void test_empty_before_end(void) {
    struct order o;
    struct heard_stream *s = &stage.groups[0].heard[0].stream[0];
    order_shell(&o, "head -c 100000 /dev/zero");
    stage_begin();
    stage.hold = true;
    open_group(0, &o);
    CHECK(UNTIL(stage.groups[0].empties == 1));
    check_ended(&stage.groups[0].heard[0], CHILD_EXITED, 0);
    CHECK_EQ(s->next, WINDOW);
    CHECK(!s->ended);
    CHECK(stage.groups[0].heard[0].stream[1].ended);
    stage.hold = false;
    take(0, 0, 1, WINDOW);
    CHECK(UNTIL(s->ended));
    CHECK_EQ(s->next, 100000);
    close_group(0);
    stage_end();
}

/* ---- standard input ---- */

static void test_two_streams_as_one(void) {
    struct order o;
    order_shell(&o, "for i in 1 2 3; do echo o$i; echo e$i >&2; done");
    o.spec.merged = true;
    stage_begin();
    const struct heard *h = run(&o);
    CHECK_STR(h->stream[0].text, "o1\ne1\no2\ne2\no3\ne3\n");
    CHECK_STR(h->stream[1].text, "");
    stage_end();
}

static void test_input(void) {
    struct order o;
    static uint8_t bytes[LARGE];
    const struct heard *h = &stage.groups[0].heard[1];
    uint64_t hash = 0;
    for (size_t i = 0; i < LARGE; i++) {
        bytes[i] = (uint8_t)(i * 2654435761U >> 13);
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    order_shell(&o, "exec cat");
    order_count(&o, 2);
    o.spec.stdin_mode = STDIN_RANK;
    o.spec.stdin_rank = 1;
    stage_begin();
    open_group(0, &o);
    type(1, 5, "gap", 3, false); /* what came before is missing */
    type(0, 0, "nobody", 6, true);
    kernel_settle(stage.kernel);
    CHECK_EQ(h->drained, 0);
    CHECK_EQ(stage.groups[0].heard[0].drained, UINT64_MAX); /* it has no standard input */
    uint64_t at = 0;
    for (uint32_t turn = 0; at < LARGE && turn < 1000000; turn++) {
        uint64_t len = LARGE - at < 50000 ? LARGE - at : 50000;
        type(1, at, bytes + at, len, at + len == LARGE);
        if (at > 100)
            type(1, at - 100, bytes + at - 100, 90, false); /* told before */
        kernel_settle(stage.kernel);
        at = h->drained;
        loop_turn(&stage.loop, 1);
        kernel_settle(stage.kernel);
    }
    CHECK(UNTIL(over(0, 2)));
    check_ended(h, CHILD_EXITED, 0);
    CHECK_EQ(h->stream[0].next, LARGE);
    CHECK_EQ(h->stream[0].hash, hash);
    CHECK_EQ(h->drained, LARGE);
    close_group(0);
    stage_end();
}

static void test_input_to_all(void) {
    struct order o;
    order_shell(&o, "read line; echo got $line; cat");
    order_count(&o, 4);
    o.spec.stdin_mode = STDIN_ALL;
    stage_begin();
    open_group(0, &o);
    type(UINT32_MAX, 0, "one\ntwo\n", 8, true);
    CHECK(UNTIL(over(0, 4)));
    for (uint32_t i = 0; i < 4; i++)
        CHECK_STR(stage.groups[0].heard[i].stream[0].text, "got one\ntwo\n");
    close_group(0);
    stage_end();
}

static void test_input_unread(void) {
    struct order o;
    static uint8_t bytes[WINDOW];
    struct heard *h = &stage.groups[0].heard[0];
    order_shell(&o, "exec <&-; echo closed; read x");
    o.spec.stdin_mode = STDIN_ALL;
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(h->stream[0].next > 0));
    type(0, 0, bytes, sizeof bytes, false);
    CHECK(UNTIL(h->drained == UINT64_MAX));
    CHECK_EQ(h->drains, 1);
    CHECK(UNTIL(over(0, 1)));
    close_group(0);
    /* The same when it goes while bytes wait for room. */
    order_shell(&o, "read x; exit 5");
    o.spec.stdin_mode = STDIN_ALL;
    open_group(0, &o);
    memset(bytes, 'a', sizeof bytes);
    type(0, 0, bytes, sizeof bytes, false);
    type(0, sizeof bytes, bytes, sizeof bytes, false);
    CHECK(UNTIL(h->drained == 2 * sizeof bytes));
    type(0, 2 * sizeof bytes, "\n", 1, false);
    type(0, 2 * sizeof bytes + 1, bytes, sizeof bytes - 1, false);
    CHECK(UNTIL(over(0, 1)));
    check_ended(h, CHILD_EXITED, 5);
    type(0, 3 * sizeof bytes, "x", 1, false);
    CHECK(UNTIL(h->drained == UINT64_MAX));
    close_group(0);
    stage_end();
}

/* ---- terminals ---- */

static void test_terminal(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(&o,
                "test -t 0 && test -t 1 && test -t 2 && stty size && read x && echo \"<$x>\" && "
                "stty size < /dev/tty && cat > /dev/null; echo $?");
    o.spec.terminal = true;
    o.spec.columns = 101;
    o.spec.rows = 33;
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(strstr(h->stream[0].text, "33 101\r\n") != NULL));
    struct effect e = {.kind = EFFECT_GROUP_SIZE, .group = {.value = 55, .rows = 22}};
    kernel_carry(stage.kernel, &e);
    type(0, 0, "hallo\n", 6, false);
    CHECK(UNTIL(strstr(h->stream[0].text, "<hallo>\r\n22 55\r\n") != NULL));
    type(0, 6, "half a line", 11, true); /* the end comes after a line that was begun */
    CHECK(UNTIL(over(0, 1)));
    check_ended(h, CHILD_EXITED, 0);
    CHECK(strstr(h->stream[0].text, "half a line0\r\n") != NULL);
    CHECK_EQ(h->stream[1].next, 0);
    CHECK_EQ(h->drained, 17);
    close_group(0);
    /* Ctrl-C from the terminal reaches it. */
    order_program(&o, "sleep", (const char *[]){"sleep", "1000", NULL});
    o.spec.terminal = true;
    open_group(0, &o);
    type(0, 0, "\003", 1, false);
    CHECK(UNTIL(over(0, 1)));
    check_ended(h, CHILD_KILLED, SIGINT);
    close_group(0);
    stage_end();
}

static void all(void) {
    TEST(test_output);
    TEST(test_taken_late);
    TEST(test_empty_before_end);
    TEST(test_two_streams_as_one);
    TEST(test_input);
    TEST(test_input_to_all);
    TEST(test_input_unread);
    TEST(test_terminal);
}

int main(void) {
    return every_way(all);
}
