/* SPDX-License-Identifier: MIT */
/* Tests of errands: status, output of any length, environment, signals. */
#include "os/errand.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "tap.h"

static int shell(const char *script, char *output, size_t cap) {
    const char *argv[] = {"sh", "-c", script, NULL};
    struct errand e = {.argv = argv, .output = output, .output_cap = cap, .silent = true};
    CHECK_EQ(errand_run(&e), 0);
    CHECK(e.ns > 0);
    return e.status;
}

static void test_status(void) {
    CHECK_EQ(shell("exit 0", NULL, 0), 0);
    CHECK_EQ(shell("exit 7", NULL, 0), 7);
    CHECK_EQ(shell("kill -9 $$", NULL, 0), 137);
    const char *argv[] = {"/no/such/command", NULL};
    struct errand e = {.argv = argv};
    CHECK_EQ(errand_run(&e), -ENOENT);
}

static void test_output(void) {
    char text[8];
    CHECK_EQ(shell("echo abc; echo d >&2", text, sizeof text), 0);
    CHECK_STR(text, "abc\n");
    CHECK_EQ(shell("true", text, sizeof text), 0);
    CHECK_STR(text, "");
    /* Far more than a pipe holds. */
    CHECK_EQ(shell("i=0; while [ $i -lt 30000 ]; do echo 0123456789; i=$((i+1)); done", text,
                   sizeof text),
             0);
    CHECK_STR(text, "0123456");
}

static void test_stdin_is_empty(void) {
    char text[32];
    CHECK_EQ(shell("cat; echo end", text, sizeof text), 0);
    CHECK_STR(text, "end\n");
}

static void test_environment(void) {
    char text[64];
    setenv("ERRANDS", "stays", 1);
    setenv("ERRAND_ONE", "old", 1);
    setenv("ERRAND_TWO", "old", 1);
    const char *argv[] = {"sh", "-c", "echo ${ERRAND_ONE-none} ${ERRAND_TWO-none} $ERRANDS", NULL};
    const char **env = errand_environment("ERRAND_", "ERRAND_ONE=new");
    struct errand e = {.argv = argv, .environment = env, .output = text, .output_cap = sizeof text};
    CHECK_EQ(errand_run(&e), 0);
    CHECK_STR(text, "new none stays\n");
    free(env);
}

/* What we block is not blocked there. */
static void test_signals(void) {
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &old);
    CHECK_EQ(shell("kill -TERM $$; exit 3", NULL, 0), 128 + SIGTERM);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

int main(void) {
    TEST(test_status);
    TEST(test_output);
    TEST(test_stdin_is_empty);
    TEST(test_environment);
    TEST(test_signals);
    return tap_finish();
}
