/* SPDX-License-Identifier: MIT */
/* Tests of what a helper is told to do: round trips, and what it does not believe. */
#include "spread/task.h"

#include <errno.h>

#include "base/units.h"
#include "tap.h"

static uint8_t wire[64 * 1024];

static struct task some_task(void) {
    struct task t = {.hop = {.hosts = 100,
                             .children = 64,
                             .fanout = 3,
                             .at_once = 32,
                             .shape = HOP_KARY,
                             .connect_ns = 10 * NS_PER_S,
                             .late_ns = 2 * NS_PER_S,
                             .silent_ns = 20 * NS_PER_S},
                     .self = 99,
                     .command_ns = 1,
                     .beat_ns = 5 * NS_PER_S,
                     .input = true,
                     .input_host = 98,
                     .name = bytes_from_str("h99"),
                     .connector = bytes_of("ssh\0-x\0\0%h", 11),
                     .command = bytes_from_str("echo a; exit 3"),
                     .own = bytes_from_str("/tmp/ours"),
                     .put_count = 2,
                     .get_count = 1};
    t.put[0] = (struct task_file){.path = bytes_from_str("/a"), .bytes = 1ull << 40, .mode = 0755};
    t.put[1] = (struct task_file){.path = bytes_from_str("b c"), .mode = 0600};
    t.get[0] = bytes_from_str("/var/log/x");
    return t;
}

static int again(const struct task *t, struct task *ret) {
    long n = task_write(t, room_of(wire, sizeof wire));
    CHECK(n > 0);
    return task_read(bytes_of(wire, (size_t)n), ret);
}

static void test_round_trip(void) {
    struct task t = some_task(), back;
    CHECK_EQ(again(&t, &back), 0);
    CHECK_EQ(back.hop.hosts, 100);
    CHECK_EQ(back.hop.children, 64);
    CHECK_EQ(back.hop.fanout, 3);
    CHECK_EQ(back.hop.at_once, 32);
    CHECK_EQ(back.hop.shape, HOP_KARY);
    CHECK_EQ(back.hop.connect_ns, t.hop.connect_ns);
    CHECK_EQ(back.hop.late_ns, t.hop.late_ns);
    CHECK_EQ(back.hop.silent_ns, t.hop.silent_ns);
    CHECK(!back.hop.root);
    CHECK_EQ(back.self, 99);
    CHECK_EQ(back.command_ns, 1);
    CHECK_EQ(back.beat_ns, t.beat_ns);
    CHECK(back.input);
    CHECK_EQ(back.input_host, 98);
    CHECK(bytes_equal(back.name, t.name));
    CHECK(bytes_equal(back.connector, t.connector));
    CHECK(bytes_equal(back.command, t.command));
    CHECK(bytes_equal(back.own, t.own));
    CHECK_EQ(back.put_count, 2);
    CHECK(bytes_equal(back.put[0].path, t.put[0].path));
    CHECK_EQ(back.put[0].bytes, 1ull << 40);
    CHECK_EQ(back.put[0].mode, 0755);
    CHECK(bytes_equal(back.put[1].path, t.put[1].path));
    CHECK_EQ(back.get_count, 1);
    CHECK(bytes_equal(back.get[0], t.get[0]));
}

static void test_most_files(void) {
    struct task t = some_task(), back;
    t.put_count = t.get_count = TASK_FILES_MAX;
    for (int i = 0; i < TASK_FILES_MAX; i++)
        t.put[i].path = t.get[i] = bytes_from_str("f");
    CHECK_EQ(again(&t, &back), 0);
    CHECK_EQ(back.put_count, TASK_FILES_MAX);
    CHECK(bytes_equal(back.get[TASK_FILES_MAX - 1], bytes_from_str("f")));
    t.get_count++;
    CHECK(task_write(&t, room_of(wire, sizeof wire)) < 0);
}

/* Every shorter one lacks something, a longer one has too much. */
static void test_cut(void) {
    struct task t = some_task(), back;
    long n = task_write(&t, room_of(wire, sizeof wire));
    for (long i = 0; i < n; i++) {
        CHECK_EQ(task_read(bytes_of(wire, (size_t)i), &back), -EPROTO);
        CHECK_EQ(task_write(&t, room_of(wire, (size_t)i)), -ENOSPC);
    }
    CHECK_EQ(task_write(&t, room_of(wire, (size_t)n)), n);
    CHECK_EQ(task_read(bytes_of(wire, (size_t)n), &back), 0);
    wire[n] = 0;
    CHECK_EQ(task_read(bytes_of(wire, (size_t)n + 1), &back), -EPROTO);
}

/* Tables are made as large as these numbers say, and indexed with them. */
static void test_unsound(void) {
    struct task t, back;
#define UNSOUND(field, value)                \
    do {                                     \
        t = some_task();                     \
        t.field = value;                     \
        CHECK_EQ(again(&t, &back), -EPROTO); \
    } while (0)
    UNSOUND(hop.hosts, 0);
    UNSOUND(hop.hosts, TASK_HOSTS_MAX + 1);
    UNSOUND(hop.hosts, 99);
    UNSOUND(self, 100);
    UNSOUND(hop.children, 0);
    UNSOUND(hop.children, 101);
    UNSOUND(hop.at_once, 0);
    UNSOUND(hop.fanout, 0);
    UNSOUND(connector, bytes_of(NULL, 0));
    UNSOUND(connector, bytes_of("", 1));
    UNSOUND(connector, bytes_of("ssh", 3));
    UNSOUND(connector, bytes_of("\0ssh", 5));
#undef UNSOUND
    t = some_task();
    t.hop.shape = HOP_ADAPTIVE;
    t.hop.fanout = 0;
    CHECK_EQ(again(&t, &back), 0);
    wire[16] = HOP_SHAPES; /* behind four numbers */
    CHECK_EQ(task_read(bytes_of(wire, sizeof wire), &back), -EPROTO);
}

static void test_hosts(void) {
    char longest[256];
    memset(longest, 'n', sizeof longest);
    const struct task_host hosts[] = {{7, 0, bytes_from_str("h7")},
                                      {UINT32_MAX, UINT16_MAX, bytes_from_str("user@[::1]%eth0")},
                                      {0, 3, bytes_of(longest, 255)}};
    size_t len = 0;
    for (int i = 0; i < 3; i++) {
        long n = task_host_write(&hosts[i], room_of(wire + len, sizeof wire - len));
        CHECK(n > 0);
        len += (size_t)n;
    }
    struct bytes in = bytes_of(wire, len);
    struct task_host back;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(task_host_read(&in, &back), 1);
        CHECK_EQ(back.host, hosts[i].host);
        CHECK_EQ(back.crate, hosts[i].crate);
        CHECK(bytes_equal(back.name, hosts[i].name));
    }
    CHECK_EQ(task_host_read(&in, &back), 0);
}

static void test_hosts_cut(void) {
    const struct task_host h = {1, 2, bytes_from_str("name")};
    struct task_host back;
    long n = task_host_write(&h, room_of(wire, sizeof wire));
    for (long i = 1; i < n; i++) {
        struct bytes in = bytes_of(wire, (size_t)i);
        CHECK_EQ(task_host_read(&in, &back), -EPROTO);
        CHECK_EQ(task_host_write(&h, room_of(wire, (size_t)i)), -ENOSPC);
    }
}

/* A name becomes a word of a command line: it must not be an option there, nor several words. */
static void test_names(void) {
    const char *const wrong[] = {"", "-oProxyCommand=x", "a b", "a\n", "a\x7f", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct task_host h = {.name = bytes_from_str(wrong[i])}, back;
        long n = task_host_write(&h, room_of(wire, sizeof wire));
        struct bytes in = bytes_of(wire, (size_t)n);
        CHECK_EQ(task_host_read(&in, &back), -EPROTO);
        CHECK_EQ(in.len, n);
    }
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_most_files);
    TEST(test_cut);
    TEST(test_unsound);
    TEST(test_hosts);
    TEST(test_hosts_cut);
    TEST(test_names);
    return tap_finish();
}
