/* SPDX-License-Identifier: MIT */
/* Tests of programs that are run for notes. */
#include "os/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static struct bytes text(const char *s) {
    return bytes_of(s, strlen(s));
}

static char folder[] = "/tmp/storm-hook-XXXXXX";

/* A program that tells through a pipe what it was called with. */
static void write_script(const char *path, const char *pipe_path) {
    FILE *f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\nread line && echo input\necho \"$#:$1:$2\" >%s\n", pipe_path);
    fclose(f);
    chmod(path, 0700);
}

static void test_called(void) {
    char script[64], fifo[64], got[128] = "";
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    snprintf(script, sizeof script, "%s/hook", folder);
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    write_script(script, fifo);
    CHECK_EQ(mkfifo(fifo, 0600), 0);
    hook_prepare();
    CHECK_EQ(hook_call(script, text("node n[3,5] down")), 1);
    int fd = open(fifo, O_RDONLY | O_CLOEXEC); /* waits for the program */
    ssize_t n = 0, len = 0;
    while ((n = read(fd, got + len, sizeof got - 1 - (size_t)len)) > 0)
        len += n;
    close(fd);
    CHECK_STR(got, "2:n[3,5]:down\n");
    CHECK(wait(NULL) < 0 && errno == ECHILD); /* its end is nobody's affair */
    unlink(script);
    unlink(fifo);
    CHECK_EQ(rmdir(folder), 0);
}

static void test_not_called(void) {
    CHECK_EQ(hook_call("/bin/false", text("epoch 3 begins")), 0);
    CHECK_EQ(hook_call("/bin/false", text("node ")), 0);
    CHECK_EQ(hook_call("/bin/false", text("")), 0);
    CHECK_EQ(hook_call("/nowhere/hook", text("node n1 up")), -ENOENT);
}

int main(void) {
    TEST(test_called);
    TEST(test_not_called);
    return tap_finish();
}
