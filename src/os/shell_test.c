/* SPDX-License-Identifier: MIT */
/* A remote shell that does not go is not waited for for ever. */
#include "os/shell.h"

#include <string.h>
#include <sys/wait.h>

#include "tap.h"

static struct loop loop;
static int ends;

static void greeted(void *context, struct shell *s) {
    (void)context;
    (void)s;
}

static bool heard(void *context, struct shell *s, const struct frame *f) {
    (void)context;
    (void)s;
    (void)f;
    return true;
}

static void ended(void *context, struct shell *s) {
    (void)context;
    CHECK_EQ(s->why, HOP_REFUSED);
    CHECK(strcmp(s->words, "too late") == 0);
    ends++;
}

/* Nobody tells it that its process has ended, as if that could not be killed. */
static void test_one_that_does_not_go(void) {
    static const struct shell_events events = {.greeted = greeted, .heard = heard, .ended = ended};
    static const struct shell_helper helper = {.digest = "0"};
    int error;
    CHECK_EQ(loop_init(&loop), 0);
    struct shell *s = shell_new(&loop, &events, &helper, bytes_of("sh\0-c\0sleep 1000", 17),
                                bytes_from_str("host"), &error);
    if (!CHECK(s != NULL))
        return;
    pid_t pid = s->pid;
    shell_drop(s, HOP_REFUSED, "too late");
    shell_tick(s);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ends, 0);
        CHECK(shell_deadline(s) > loop.now);
        loop.now = shell_deadline(s);
        shell_tick(s);
    }
    CHECK_EQ(ends, 1);
    CHECK_EQ(shell_deadline(s), 0);
    shell_free(s);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    loop_fini(&loop);
}

int main(void) {
    TEST(test_one_that_does_not_go);
    return tap_finish();
}
