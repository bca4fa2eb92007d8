/* SPDX-License-Identifier: MIT */
/* Whether an owner works at a machine: terminals and files that the test has made, and this machine's processors. */
#include "os/presence.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "tap.h"

static char base[] = "/tmp/storm-presence.XXXXXX";
static char path[128];

static const char *in(const char *name) {
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

/* A file that was read and changed at these times. */
static void make(const char *name, time_t read, time_t changed) {
    const struct timespec times[] = {{.tv_sec = read}, {.tv_sec = changed}};
    int fd = open(in(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && futimens(fd, times) == 0);
    close(fd);
}

static void test_terminals(void) {
    CHECK_EQ(presence_typed(in("none")), 0);
    CHECK_EQ(mkdir(in("pts"), 0700), 0);
    make("pts/0", 1000, 9000); /* what is written there was typed by nobody */
    make("tty2", 500, 500);
    make("tty", 7000, 7000);
    make("ttyS0", 7000, 7000);
    make("null", 8000, 8000);
    CHECK_EQ(presence_typed(base), 1000 * NS_PER_S);
    make("pts/1", 2000, 0);
    CHECK_EQ(presence_typed(base), 2000 * NS_PER_S);
    make("tty1", 3000, 0);
    CHECK_EQ(presence_typed(base), 3000 * NS_PER_S);
}

static void test_files(void) {
    CHECK_EQ(presence_used(in("desk")), 0);
    make("desk", 10, 20);
    CHECK_EQ(presence_used(in("desk")), 20 * NS_PER_S);
    make("desk", 30, 20);
    CHECK_EQ(presence_used(in("desk")), 30 * NS_PER_S);
    CHECK_EQ(mkdir(in("room"), 0700), 0);
    make("room/a", 40, 50);
    make("room/b", 60, 50);
    const struct timespec times[] = {{.tv_sec = 900}, {.tv_sec = 55}};
    CHECK_EQ(utimensat(AT_FDCWD, in("room"), times, 0), 0);
    CHECK_EQ(presence_used(in("room")), 60 * NS_PER_S);
    make("room/b", 50, 50);
    CHECK_EQ(presence_used(in("room")), 55 * NS_PER_S); /* something was put there, or taken away */
}

static bool is_active(const char *watch) {
    struct input_gauged g = {.owner = true, .busy_ns = 7};
    presence_look(bytes_from_str(watch), &g);
    CHECK_EQ(g.busy_ns, 0);
    return g.owner;
}

static void test_watching(void) {
    char watch[256];
    time_t now = time(NULL);
    make("desk", 0, now - 1000);
    CHECK(!is_active(""));
    CHECK(!is_active(in("desk")));
    snprintf(watch, sizeof watch, "%s/desk:1h", base);
    CHECK(is_active(watch));
    snprintf(watch, sizeof watch, "/none/such+%s/desk:20s", base);
    CHECK(!is_active(watch));
    make("desk", 0, now + 1000);
    CHECK(is_active(watch));
    CHECK(!is_active("nonsense"));
}

static void test_processors(void) {
    struct input_gauged g;
    uint64_t tick = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    CHECK_EQ(presence_busy("cpu  10 20 30 4000 500 6 7 800 0 0\ncpu0 1 2 3 4\n"), 73 * tick);
    CHECK_EQ(presence_busy("cpu0 10 20"), 0);
    CHECK_EQ(presence_busy(""), 0);
    presence_look(bytes_from_str("load"), &g);
    CHECK(g.busy_ns > 0 && !g.owner);
}

int main(void) {
    CHECK(mkdtemp(base) != NULL);
    TEST(test_terminals);
    TEST(test_files);
    TEST(test_watching);
    TEST(test_processors);
    snprintf(path, sizeof path, "rm -r %s", base);
    CHECK_EQ(system(path), 0);
    return tap_finish();
}
