/* SPDX-License-Identifier: MIT */
/* Tests of a command that a helper runs: what it says and reads, how it ends, and that nothing is left of it. */
#include "os/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"
#include "tap.h"

#define PATIENCE_NS (60 * NS_PER_S) /* until it counts as stuck */

struct stage {
    struct loop loop;
    struct tool tool;
    struct tool_events events;
    struct source signals;
    struct spool said[2];
    uint64_t took;
    pid_t spared;
    int overs;
};

static void on_wrote(void *context, int stream, struct bytes bytes) {
    struct stage *s = context;
    CHECK(bytes.len > 0 && bytes.len <= TOOL_PIECE);
    spool_add(&s->said[stream - 1], bytes);
}

static void on_took(void *context, uint64_t bytes) {
    struct stage *s = context;
    CHECK(bytes >= s->took);
    s->took = bytes;
}

static void on_over(void *context) {
    struct stage *s = context;
    s->overs++;
}

static bool on_spares(void *context, pid_t child) {
    struct stage *s = context;
    return child == s->spared;
}

static void on_signal(struct source *source, uint32_t events) {
    struct stage *s = CONTAINER_OF(source, struct stage, signals);
    struct signalfd_siginfo info;
    int status;
    (void)events;
    while (read(source->fd, &info, sizeof info) == sizeof info)
        continue;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        tool_reaped(&s->tool, pid, status);
}

static void open_stage(struct stage *s) {
    sigset_t set;
    *s = (struct stage){.overs = 0};
    s->events = (struct tool_events){
        .context = s, .wrote = on_wrote, .took = on_took, .over = on_over, .spares = on_spares};
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK_EQ(loop_init(&s->loop), 0);
    s->signals =
        (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_signal};
    CHECK_EQ(loop_add(&s->loop, &s->signals, EPOLLIN), 0);
    tool_init(&s->tool, &s->loop, &s->events);
}

static void close_stage(struct stage *s) {
    tool_fini(&s->tool);
    loop_remove(&s->loop, &s->signals);
    close(s->signals.fd);
    loop_fini(&s->loop);
    spool_fini(&s->said[0]);
    spool_fini(&s->said[1]);
}

/* Until it holds; false if it never does. */
static bool until(struct stage *s, bool (*holds)(const struct stage *s)) {
    uint64_t end = clock_ns() + PATIENCE_NS;
    while (!holds(s)) {
        tool_tick(&s->tool);
        loop_wake_at(&s->loop, s->loop.now + 20 * NS_PER_MS);
        loop_turn(&s->loop, -1);
        if (s->loop.now > end)
            return false;
    }
    return true;
}

static bool is_over(const struct stage *s) {
    return s->overs > 0;
}

static bool has_said(const struct stage *s) {
    return spool_bytes(&s->said[0]).len > 0;
}

static bool said(const struct stage *s, int stream, const char *words) {
    struct bytes b = spool_bytes(&s->said[stream - 1]);
    bool same = bytes_equal(b, bytes_from_str(words));
    if (!same)
        printf("# it said: %.*s\n", (int)b.len, (const char *)b.at);
    return same;
}

/* Runs it to its end; the status as waitpid() has it. */
static int run(struct stage *s, const char *line) {
    open_stage(s);
    CHECK_EQ(tool_start(&s->tool, line, true), 0);
    CHECK(until(s, is_over));
    CHECK_EQ(s->overs, 1);
    return s->tool.status;
}

/* ---- Output and status ------------------------------------------------------------------------- */

static void test_output(void) {
    struct stage s;
    int status = run(&s, "echo a; echo b >&2; printf c; exit 3");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    CHECK(said(&s, 1, "a\nc"));
    CHECK(said(&s, 2, "b\n"));
    close_stage(&s);
}

static void test_signal(void) {
    struct stage s;
    int status = run(&s, "kill -USR1 $$");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    close_stage(&s);
}

static void test_large_output(void) {
    enum { LEN = 5 * 1000 * 1000 };
    struct stage s;
    run(&s, "yes 0123456 | head -c 5000000");
    struct bytes b = spool_bytes(&s.said[0]);
    CHECK_EQ(b.len, LEN);
    bool right = true;
    for (size_t i = 0; i < b.len && right; i++)
        right = b.at[i] == "0123456\n"[i % 8];
    CHECK(right);
    close_stage(&s);
}

/* Whoever is not listened to waits. */
static void test_hush(void) {
    struct stage s;
    open_stage(&s);
    CHECK_EQ(tool_start(&s.tool, "yes | head -c 1000000", true), 0);
    CHECK(until(&s, has_said));
    tool_hush(&s.tool, true);
    size_t before = spool_bytes(&s.said[0]).len;
    for (int i = 0; i < 20; i++)
        loop_turn(&s.loop, 5);
    CHECK_EQ(spool_bytes(&s.said[0]).len, before);
    CHECK(!is_over(&s));
    tool_hush(&s.tool, false);
    CHECK(until(&s, is_over));
    CHECK_EQ(spool_bytes(&s.said[0]).len, 1000000);
    close_stage(&s);
}

/* It is not over as long as somebody may still say something. */
static void test_waits_for_output(void) {
    struct stage s;
    int status = run(&s, "(sleep 0.3; echo late) & exit 4");
    CHECK_EQ(WEXITSTATUS(status), 4);
    CHECK(said(&s, 1, "late\n"));
    close_stage(&s);
}

static void test_no_shell(void) {
    struct stage s;
    open_stage(&s);
    setenv("SHELL", "/no/such/shell", 1);
    CHECK_EQ(tool_start(&s.tool, "exit 0; exit", true), -ENOENT);
    setenv("SHELL", "relative", 1);
    CHECK_EQ(tool_start(&s.tool, "true", true), 0);
    unsetenv("SHELL");
    CHECK(until(&s, is_over));
    CHECK_EQ(s.tool.status, 0);
    close_stage(&s);
}

/* ---- Input ------------------------------------------------------------------------------------- */

static void test_input(void) {
    struct stage s;
    open_stage(&s);
    CHECK_EQ(tool_start(&s.tool, "cat", false), 0);
    tool_type(&s.tool, bytes_from_str("one "));
    tool_type(&s.tool, bytes_from_str("two"));
    CHECK(until(&s, has_said));
    CHECK_EQ(s.took, 7);
    CHECK(!is_over(&s));
    tool_type(&s.tool, bytes_of(NULL, 0));
    CHECK_EQ(s.took, UINT64_MAX);
    CHECK(until(&s, is_over));
    CHECK(said(&s, 1, "one two"));
    close_stage(&s);
}

static bool took_all(const struct stage *s) {
    return s->took == UINT64_MAX;
}

/* It reads when it likes: so much is taken as is in its pipe, the rest waits here. */
static void test_slow_reader(void) {
    enum { LEN = 1 << 20 };
    struct stage s;
    static char piece[LEN];
    memset(piece, 'x', LEN);
    open_stage(&s);
    CHECK_EQ(tool_start(&s.tool, "read go; echo went; wc -c", false), 0);
    tool_type(&s.tool, bytes_of(piece, LEN));
    for (int i = 0; i < 20; i++)
        loop_turn(&s.loop, 5);
    CHECK(s.took < LEN); /* a line without an end; read takes it byte by byte */
    tool_type(&s.tool, bytes_from_str("\n"));
    tool_type(&s.tool, bytes_of(piece, LEN));
    tool_type(&s.tool, bytes_of(NULL, 0));
    CHECK(until(&s, took_all));
    CHECK(until(&s, is_over));
    CHECK(said(&s, 1, "went\n1048576\n"));
    close_stage(&s);
}

/* One that reads nothing, and one that closes it and goes on. */
static void test_not_read(void) {
    static char piece[1 << 20];
    const char *const lines[] = {"echo done", "exec <&-; sleep 0.3; echo done"};
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 2; i++) {
        struct stage s;
        open_stage(&s);
        CHECK_EQ(tool_start(&s.tool, lines[i], false), 0);
        tool_type(&s.tool, bytes_of(piece, sizeof piece));
        CHECK(until(&s, took_all));
        tool_type(&s.tool, bytes_of(piece, sizeof piece)); /* to nobody */
        CHECK_EQ(s.tool.typed.to, 0);
        CHECK(until(&s, is_over));
        CHECK_EQ(s.tool.status, 0);
        CHECK(said(&s, 1, "done\n"));
        close_stage(&s);
    }
}

/* ---- Ending it --------------------------------------------------------------------------------- */

/* The process whose number is the last line that was said. */
static pid_t named(const struct stage *s) {
    struct bytes b = spool_bytes(&s->said[0]);
    char text[64] = "";
    memcpy(text, b.at, b.len < sizeof text ? b.len : sizeof text - 1);
    return (pid_t)atoi(text);
}

/* It is gone: we are its parent by now, or were. */
static bool vanishes(struct stage *s, pid_t pid) {
    for (int i = 0; i < 3000 && kill(pid, 0) == 0; i++)
        loop_turn(&s->loop, 10);
    return kill(pid, 0) < 0 && errno == ESRCH;
}

static void test_end(void) {
    struct stage s;
    open_stage(&s);
    CHECK_EQ(tool_start(&s.tool,
                        "trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.1; done",
                        true),
             0);
    CHECK(until(&s, has_said));
    tool_end(&s.tool);
    CHECK(until(&s, is_over));
    CHECK(said(&s, 1, "up\nasked\n"));
    CHECK(WIFEXITED(s.tool.status) && WEXITSTATUS(s.tool.status) == 5);
    CHECK_EQ(tool_deadline(&s.tool), 0);
    close_stage(&s);
}

/* One that is stopped, and one that does not listen. */
static void test_end_by_force(void) {
    struct stage s;
    open_stage(&s);
    CHECK_EQ(tool_start(&s.tool, "echo up; kill -STOP $$; sleep 1000", true), 0);
    CHECK(until(&s, has_said));
    tool_end(&s.tool);
    CHECK(until(&s, is_over));
    CHECK(WIFSIGNALED(s.tool.status) && WTERMSIG(s.tool.status) == SIGTERM);
    close_stage(&s);

    open_stage(&s);
    CHECK_EQ(tool_start(&s.tool, "trap '' TERM; echo up; sleep 1000; sleep 1000", true), 0);
    CHECK(until(&s, has_said));
    tool_end(&s.tool);
    CHECK(until(&s, is_over));
    CHECK(WIFSIGNALED(s.tool.status) && WTERMSIG(s.tool.status) == SIGKILL);
    close_stage(&s);
}

/* A child in a session of its own; that it has our pipes open, or not, makes no difference. */
static void test_end_of_runaways(void) {
    const char *const lines[] = {
        "setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000",
        "setsid sh -c 'echo $$; exec sleep 1000 >/dev/null 2>&1' & sleep 1000",
        "setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1000 >/dev/null 2>&1' & exit 0",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct stage s;
        open_stage(&s);
        CHECK_EQ(tool_start(&s.tool, lines[i], true), 0);
        CHECK(until(&s, has_said));
        pid_t pid = named(&s);
        bool over = is_over(&s); /* then it is a daemon's, and was meant to stay */
        tool_end(&s.tool);
        CHECK(until(&s, is_over));
        if (over)
            kill(pid, SIGKILL);
        CHECK(vanishes(&s, pid));
        close_stage(&s);
    }
}

/* What a command leaves behind when it ends by itself stays, as with any remote shell. */
static void test_what_it_leaves(void) {
    struct stage s;
    run(&s, "setsid sleep 1000 >/dev/null 2>&1 & echo $!");
    pid_t pid = named(&s);
    CHECK_EQ(kill(pid, 0), 0);
    tool_end(&s.tool);
    CHECK_EQ(kill(pid, 0), 0);
    kill(pid, SIGKILL);
    CHECK(vanishes(&s, pid));
    close_stage(&s);
}

/* Children of ours that are no business of the command's. */
static void test_spares(void) {
    struct stage s;
    open_stage(&s);
    pid_t other = fork();
    if (other == 0) {
        pause();
        _exit(0);
    }
    s.spared = other;
    CHECK_EQ(tool_start(&s.tool, "trap '' TERM; echo up; sleep 1000; sleep 1000", true), 0);
    CHECK(until(&s, has_said));
    tool_end(&s.tool);
    CHECK(until(&s, is_over));
    CHECK_EQ(kill(other, SIGKILL), 0);
    int status = 0;
    CHECK_EQ(waitpid(other, &status, 0), other);
    CHECK(WIFSIGNALED(status));
    close_stage(&s);
}

int main(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    unsetenv("SHELL");
    TEST(test_output);
    TEST(test_signal);
    TEST(test_large_output);
    TEST(test_hush);
    TEST(test_waits_for_output);
    TEST(test_no_shell);
    TEST(test_input);
    TEST(test_slow_reader);
    TEST(test_not_read);
    TEST(test_end);
    TEST(test_end_by_force);
    TEST(test_end_of_runaways);
    TEST(test_what_it_leaves);
    TEST(test_spares);
    return tap_finish();
}
