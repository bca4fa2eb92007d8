/* SPDX-License-Identifier: MIT */
/* Real processes through the launcher's kernel side: starts, ends, signals, and that nothing is left;
 * each with a cgroup, in a pid namespace, and without either. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "os/child.h"
#include "os/process.h"
#include "processes.h"

/* ---- ends ---- */

static void test_statuses(void) {
    struct order o;
    stage_begin();
    order_program(&o, "/bin/true", (const char *[]){"true", NULL});
    check_ended(run(&o), CHILD_EXITED, 0);
    order_shell(&o, "exit 77");
    check_ended(run(&o), CHILD_EXITED, 77);
    order_shell(&o, "kill -SEGV $$");
    check_ended(run(&o), CHILD_KILLED, SIGSEGV);
    order_shell(&o, "kill -PIPE $$"); /* not ignored, not blocked */
    check_ended(run(&o), CHILD_KILLED, SIGPIPE);
    order_shell(&o, "exit $STORM_RANK");
    order_count(&o, PROCESSES);
    run(&o);
    for (uint32_t i = 0; i < PROCESSES; i++)
        check_ended(&stage.groups[0].heard[i], CHILD_EXITED, i);
    stage_end();
}

static void test_failures(void) {
    struct order o;
    char folder[PATH_MAX], path[PATH_MAX];
    const char *const args[] = {"x", NULL};
    folder_make(folder);
    stage_begin();
    order_program(&o, "/no/such/program", args);
    order_count(&o, 2);
    run(&o);
    check_failed(&stage.groups[0].heard[0], SPAWN_PROGRAM, ENOENT);
    check_failed(&stage.groups[0].heard[1], SPAWN_PROGRAM, ENOENT);
    order_program(&o, "no-such-program-anywhere", args);
    check_failed(run(&o), SPAWN_PROGRAM, ENOENT);
    order_program(&o, "/etc", args);
    check_failed(run(&o), SPAWN_PROGRAM, EACCES);
    int fd = open(folder_file(folder, "plain", path), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    close(fd);
    order_program(&o, path, args);
    check_failed(run(&o), SPAWN_PROGRAM, EACCES);
    fd = open(folder_file(folder, "bad", path), O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    CHECK(dprintf(fd, "#!/no/such/interpreter\n") > 0);
    close(fd);
    order_program(&o, path, args);
    check_failed(run(&o), SPAWN_PROGRAM, ENOENT);
    order_shell(&o, "exit 0");
    o.spec.folder = bytes_from_str("/no/such/folder");
    check_failed(run(&o), SPAWN_FOLDER, ENOENT);
    order_shell(&o, "exit 0");
    order_limit(&o, RLIMIT_NOFILE, 20, 10); /* soft above hard */
    check_failed(run(&o), SPAWN_LIMITS, EINVAL);
    order_shell(&o, "exit 3"); /* and what works still does */
    check_ended(run(&o), CHILD_EXITED, 3);
    stage_end();
    folder_remove(folder);
}

/* A launcher must survive whatever a spec holds. */
static void test_garbage(void) {
    static const uint8_t garbage[] = {1, 2, 3, 4, 5};
    stage_begin();
    struct effect e = {.kind = EFFECT_GROUP_OPEN,
                       .group = {.group = 1, .setup = bytes_of(garbage, sizeof garbage)}};
    kernel_carry(stage.kernel, &e);
    carry(EFFECT_GROUP_START, 1, 0);
    CHECK(UNTIL(stage.groups[1].empties == 1));
    check_failed(&stage.groups[1].heard[0], SPAWN_PROGRAM, EBADMSG);
    close_group(1);
    stage_end();
}

/* ---- what a process finds ---- */

static void test_environment(void) {
    struct order o;
    stage_begin();
    order_shell(&o, "env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort");
    order_count(&o, 2);
    o.setup.first = 4;
    o.setup.size = 6;
    o.setup.node = 2;
    o.setup.array = 9;
    add_string(&o.spec.environment, o.environment, "STORM_RANK=liar");
    add_string(&o.spec.environment, o.environment, "STORM_OTHER=kept");
    run(&o);
    CHECK_STR(stage.groups[0].heard[1].stream[0].text,
              "PATH=/usr/bin:/bin\nSTORM_ARRAY_INDEX=9\nSTORM_JOB_ID=7\nSTORM_LOCAL_RANK=1\n"
              "STORM_LOCAL_SIZE=2\nSTORM_NODE=n3\nSTORM_NODES=n[3-4]\nSTORM_NODE_ID=2\n"
              "STORM_OTHER=kept\nSTORM_RANK=5\nSTORM_SIZE=6\n");
    CHECK(strstr(stage.groups[0].heard[0].stream[0].text, "STORM_RANK=4\n") != NULL);
    stage_end();
}

/* Ranks 2 to 6 of a job of three programs: the first has 3, the second 2, the third, which is nowhere, the rest. */
static void test_several_programs(void) {
    struct order o;
    uint8_t more[512];
    stage_begin();
    order_shell(&o, "echo $0 $STORM_RANK $STORM_PROGRAM $STORM_PROGRAM_RANK/$STORM_PROGRAM_SIZE "
                    "$STORM_LOCAL_RANK/$STORM_LOCAL_SIZE $A `pwd`");
    o.setup.first = 2;
    o.setup.count = 5;
    o.setup.size = 8;
    add_string(&o.spec.environment, o.environment, "A=1");
    add_string(&o.spec.environment, o.environment, "STORM_PROGRAM_SIZE=liar");
    struct spec_program p = {.ranks = 2,
                             .program = bytes_from_str("sh"),
                             .folder = bytes_from_str("/usr"),
                             .environment = bytes_of("A=2", 4)};
    static char own[1024];
    struct bytes arguments = {0};
    add_string(&arguments, own, "other");
    memcpy(own + arguments.len, o.arguments + 3, o.spec.arguments.len - 3);
    p.arguments = bytes_of(own, arguments.len + o.spec.arguments.len - 3);
    long len = spec_program_store(&p, room_of(more, sizeof more));
    CHECK(len > 0);
    p.program = bytes_from_str("/nowhere/at-all");
    p.ranks = 3;
    long rest = spec_program_store(&p, room_of(more + len, sizeof more - (size_t)len));
    CHECK(rest > 0);
    o.spec.ranks = 3;
    o.spec.programs = bytes_of(more, (size_t)(len + rest));
    run(&o);
    const struct heard *h = stage.groups[0].heard;
    CHECK_STR(h[0].stream[0].text, "sh 2 0 2/3 0/5 1 /\n");
    CHECK_STR(h[1].stream[0].text, "other 3 1 0/2 1/5 2 /usr\n");
    CHECK_STR(h[2].stream[0].text, "other 4 1 1/2 2/5 2 /usr\n");
    check_failed(&h[3], SPAWN_PROGRAM, ENOENT);
    check_failed(&h[4], SPAWN_PROGRAM, ENOENT);
    o.spec.programs.len = (size_t)len; /* the last ranks have none */
    open_group(0, &o);
    check_failed(&h[0], SPAWN_PROGRAM, EBADMSG);
    close_group(0);
    stage_end();
}

static void test_folder_umask_limits(void) {
    struct order o;
    stage_begin();
    order_shell(&o, "pwd; umask; ulimit -n; ulimit -Hn; ulimit -c");
    o.spec.folder = bytes_from_str("/usr");
    o.spec.umask = 0137;
    order_limit(&o, RLIMIT_NOFILE, 77, 99);
    order_limit(&o, RLIMIT_CORE, 0, 0);
    CHECK_STR(run(&o)->stream[0].text, "/usr\n0137\n77\n99\n0\n");
    stage_end();
}

enum { HIDDEN_SIGNAL = 32 }; /* the library would not let us */

static void ignore_hidden(void) {
    void (*ignored[16])(int) = {SIG_IGN}; /* the kernel's sigaction: the handler comes first */
    CHECK_EQ(syscall(SYS_rt_sigaction, HIDDEN_SIGNAL, ignored, NULL, 8), 0);
    CHECK(child_ignores(HIDDEN_SIGNAL));
}

/* Only 0, 1 and 2; a process group of its own, and a session where there is no cgroup; no signal ignored or blocked. */
static void test_clean(void) {
    struct order o;
    char expected[512];
    order_shell(&o, "cat /proc/self/status | grep -e 'Sig[BIC]'; "
                    "read line </proc/self/stat; set -- $line; echo $4 $5 $6");
    signal(SIGUSR1, SIG_IGN);
    ignore_hidden();
    int inherited = open("/dev/null", O_RDONLY); /* nobody said that it is not for our children */
    stage_begin();
    run(&o);
    struct heard *h = &stage.groups[0].heard[0];
    signal(SIGUSR1, SIG_DFL);
    child_default(HIDDEN_SIGNAL);
    uint32_t pid = h->start.value;
    snprintf(expected, sizeof expected,
             "SigBlk:\t%016d\nSigIgn:\t%016d\n"
             "SigCgt:\t%016d\n%d %u %u\n",
             0, 0, 0, (int)getpid(), pid, stage.cgroup == NULL ? pid : (uint32_t)getsid(0));
    CHECK_STR(h->stream[0].text, expected);
    order_program(&o, "ls", (const char *[]){"ls", "/proc/self/fd", NULL});
    CHECK_STR(run(&o)->stream[0].text, "0\n1\n2\n3\n"); /* the last is the folder itself */
    close(inherited);
    stage_end();
}

static void test_path_and_scripts(void) {
    struct order o;
    char folder[PATH_MAX], path[PATH_MAX];
    folder_make(folder);
    stage_begin();
    int fd = open(folder_file(folder, "greet", path), O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    CHECK(dprintf(fd, "echo hello $1\n") > 0); /* no interpreter line */
    close(fd);
    order_program(&o, "greet", (const char *[]){"greet", "world", NULL});
    order_count(&o, 2);
    snprintf(path, sizeof path, "PATH=/no/such:%.900s:/bin", folder);
    o.spec.environment = bytes_of(NULL, 0);
    add_string(&o.spec.environment, o.environment, path);
    run(&o);
    CHECK_STR(stage.groups[0].heard[0].stream[0].text, "hello world\n");
    CHECK_STR(stage.groups[0].heard[1].stream[0].text, "hello world\n");
    o.spec.folder = bytes_from_str(folder); /* an empty place in the path is that folder */
    o.spec.environment = bytes_of(NULL, 0);
    add_string(&o.spec.environment, o.environment, "PATH=/no/such:");
    run(&o);
    CHECK_STR(stage.groups[0].heard[0].stream[0].text, "hello world\n");
    stage_end();
    folder_remove(folder);
}

/* ---- what is used ---- */

static uint64_t spent(const struct usage *u) {
    return u->user_ns + u->system_ns;
}

/* What one has used is not of the next, though it may have the same place. */
static void test_usage(void) {
    static const char count[] = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    struct order o;
    stage_begin();
    order_shell(&o, count);
    order_count(&o, 2);
    run(&o);
    struct usage first = stage.groups[0].usage;
    CHECK(spent(&first) > 10 * NS_PER_MS);
    CHECK(first.peak_bytes > 256 * KIB && first.peak_bytes < GIB);
    CHECK_EQ(first.peak_node, 0);
    order_shell(&o, "exit 0");
    run(&o);
    CHECK(spent(&stage.groups[0].usage) < spent(&first) / 2);
    stage_end();
}

static void test_usage_until_now(void) {
    struct order o;
    stage_begin();
    order_shell(&o, "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo x; sleep 1000");
    open_group(0, &o);
    CHECK(UNTIL(stage.groups[0].heard[0].stream[0].len > 0));
    carry(EFFECT_GROUP_MEASURE, 0, 0);
    CHECK(UNTIL(stage.groups[0].measures == 1));
    CHECK(spent(&stage.groups[0].usage) >= 10 * NS_PER_MS);
    CHECK(stage.groups[0].usage.peak_bytes > 256 * KIB);
    carry(EFFECT_GROUP_KILL, 0, 0);
    carry(EFFECT_GROUP_MEASURE, 0, 0);
    CHECK(UNTIL(stage.groups[0].empties == 1));
    CHECK(spent(&stage.groups[0].usage) >= 10 * NS_PER_MS);
    close_group(0);
    stage_end();
}

/* ---- all processes of a group ---- */

/* It runs no more; perhaps nobody has waited for it yet. */
static bool gone(long pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    const char *end = f != NULL && fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    if (f != NULL)
        fclose(f);
    return end == NULL || end[2] == 'Z' || end[2] == 'X';
}

/* The first number of what the process has written. */
static long said(uint32_t group, uint32_t index) {
    return strtol(stage.groups[group].heard[index].stream[0].text, NULL, 10);
}

static void test_signal(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(&o,
                "trap 'echo caught; exit 9' USR1; "
                "(trap 'echo inner; exit' USR1; sleep 3 & echo ready; wait; wait) & wait; wait");
    order_count(&o, 2);
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(strstr(h[0].stream[0].text, "ready") && strstr(h[1].stream[0].text, "ready")));
    carry(EFFECT_GROUP_SIGNAL, 0, SIGUSR1);
    CHECK(UNTIL(over(0, 2)));
    for (uint32_t i = 0; i < 2; i++) {
        check_ended(&h[i], CHILD_EXITED, 9);
        CHECK(strstr(h[i].stream[0].text, "caught") != NULL);
        CHECK(strstr(h[i].stream[0].text, "inner") != NULL);
    }
    close_group(0);
    stage_end();
}

/* One of them, itself: neither its neighbour nor what it has started. */
static void test_poke(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(&o, "trap 'echo caught; exit 9' USR1; trap 'echo second; exit 8' USR2; "
                    "(trap 'echo inner' USR1; echo ready; while :; do sleep 0.01; done) & "
                    "wait; wait");
    order_count(&o, 2);
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(strstr(h[0].stream[0].text, "ready") && strstr(h[1].stream[0].text, "ready")));
    kernel_carry(stage.kernel, &(struct effect){.kind = EFFECT_GROUP_SIGNAL,
                                                .group = {.value = SIGUSR1, .one = 2}});
    CHECK(UNTIL(strstr(h[1].stream[0].text, "caught") != NULL));
    kernel_carry(stage.kernel, &(struct effect){.kind = EFFECT_GROUP_SIGNAL,
                                                .group = {.value = SIGUSR2, .one = 1}});
    CHECK(UNTIL(h[0].ends > 0 && h[1].ends > 0));
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 2)));
    check_ended(&h[0], CHILD_EXITED, 8);
    check_ended(&h[1], CHILD_EXITED, 9);
    CHECK(strstr(h[1].stream[0].text, "inner") == NULL);
    close_group(0);
    stage_end();
}

/* How the system says it stands; 0: it is gone. */
static char state_of(uint32_t pid) {
    char path[32], line[256] = "";
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *f = fopen(path, "re");
    if (f != NULL && fgets(line, sizeof line, f) == NULL)
        line[0] = '\0';
    if (f != NULL)
        fclose(f);
    const char *end = strrchr(line, ')');
    return end == NULL ? '\0' : end[2];
}

/* Stopped before it has done anything, until somebody lets it go. */
static void test_hold(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(&o, "echo begun");
    order_count(&o, 2);
    o.spec.hold = true;
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(h[0].starts > 0 && h[1].starts > 0));
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(UNTIL(state_of(h[i].start.value) == 'T'));
        CHECK_EQ(h[i].stream[0].next, 0);
    }
    carry(EFFECT_GROUP_SIGNAL, 0, SIGCONT);
    CHECK(UNTIL(over(0, 2)));
    for (uint32_t i = 0; i < 2; i++) {
        check_ended(&h[i], CHILD_EXITED, 0);
        CHECK_STR(h[i].stream[0].text, "begun\n");
    }
    close_group(0);
    order_shell(&o, "echo begun");
    o.spec.hold = true;
    open_group(0, &o);
    CHECK(UNTIL(h->starts > 0));
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 1)));
    check_ended(h, CHILD_KILLED, SIGKILL);
    close_group(0);
    stage_end();
}

/* What starts some of them gets the program and its arguments. */
static void test_debugger(void) {
    static const char debugger[] = "/usr/bin/env\0A=b";
    struct order o;
    struct heard *h = stage.groups[0].heard;
    uint8_t ranks[RANKS_BYTES_MAX];
    order_program(&o, "sh", (const char *[]){"me", "-c", "echo \"$A $0 $1\"", "x", "y", NULL});
    order_count(&o, 3);
    o.spec.debugger = bytes_of(debugger, sizeof debugger);
    CHECK_EQ(ranks_parse("0,2", ranks, &o.spec.debugged), 0);
    o.spec.hold = true; /* a debugger is not held */
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(h[0].ends > 0 && h[2].ends > 0));
    CHECK_EQ(h[1].ends, 0);
    carry(EFFECT_GROUP_SIGNAL, 0, SIGCONT);
    CHECK(UNTIL(over(0, 3)));
    CHECK_STR(h[0].stream[0].text, "b x y\n");
    CHECK_STR(h[1].stream[0].text, " x y\n");
    CHECK_STR(h[2].stream[0].text, "b x y\n");
    close_group(0);
    stage_end();
}

/* A process that ignores everything, one that left its session and its parent behind. */
static void test_kill(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(
        &o,
        "trap '' TERM INT HUP; (setsid sh -c 'read p x </proc/self/stat; echo $p; exec sleep 1000' & ) ; "
        "while :; do sleep 1000; done");
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(h->stream[0].next > 0));
    long daemon = said(0, 0);
    CHECK(daemon > 0 && !gone(daemon));
    carry(EFFECT_GROUP_SIGNAL, 0, SIGINT);
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 1)));
    check_ended(h, CHILD_KILLED, SIGKILL);
    CHECK(gone(daemon));
    CHECK_EQ(stage.groups[0].empties, 1);
    close_group(0);
    stage_end();
}

/* Its own process ends, what it left runs on: no EMPTY before somebody has killed that. */
static void test_left_behind(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(
        &o,
        "setsid sh -c 'read p x </proc/self/stat; echo $p; exec sleep 1000' & while ! kill -0 $!; do :; done; "
        "sleep 0.05; exit 4");
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(h->ends == 1));
    check_ended(h, CHILD_EXITED, 4);
    CHECK(UNTIL(h->stream[0].next > 0));
    long daemon = said(0, 0);
    CHECK(daemon > 0 && !gone(daemon));
    CHECK_EQ(stage.groups[0].empties, 0);
    CHECK(!h->stream[0].ended);
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 1)));
    CHECK(gone(daemon));
    close_group(0);
    /* As launchers do it: when the last one ends. And one that ends by itself needs no kill. */
    stage.kill_at_end = true;
    run(&o);
    CHECK(gone(said(0, 0)));
    stage.kill_at_end = false;
    order_shell(&o, "(sleep 0.1; echo late) & exit 0");
    open_group(0, &o);
    CHECK(UNTIL(over(0, 1)));
    CHECK_STR(h->stream[0].text, "late\n");
    close_group(0);
    stage_end();
}

/* Two groups with daemons: one is killed, the other must not notice. */
static void test_kill_one_of_two(void) {
    struct order o;
    const char *script =
        "setsid sh -c 'read p x </proc/self/stat; echo $p; exec sleep 1000' & wait";
    order_shell(&o, script);
    stage_begin();
    open_group(0, &o);
    o.setup.run = run_of(8, 1);
    open_group(1, &o);
    CHECK(UNTIL(said(0, 0) > 0 && said(1, 0) > 0));
    carry(EFFECT_GROUP_SIGNAL, 0, SIGTERM); /* the daemon of sleep and its parent alike */
    CHECK(UNTIL(over(0, 1)));
    CHECK(gone(said(0, 0)));
    CHECK(!gone(said(1, 0)));
    CHECK_EQ(stage.groups[1].heard[0].ends, 0);
    CHECK_EQ(stage.groups[1].empties, 0);
    close_group(0);
    carry(EFFECT_GROUP_KILL, 1, 0);
    CHECK(UNTIL(over(1, 1)));
    CHECK(gone(said(1, 0)));
    close_group(1);
    stage_end();
}

/* Processes that start another one and end, each in a session of its own. They know how many there ever
 * were, and stop by themselves if nobody stops them. In a cgroup or namespace nothing helps them; without, those
 * that fork as fast as they can may run away from whoever looks for them, so these wait for a moment. */
enum { BOMB_CHAINS = 20, BOMB_MAX = 20000 };

static _Noreturn void bomb(const char *path, bool fast) {
    struct timespec moment = {.tv_nsec = fast ? 0 : 5 * 1000 * 1000};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    _Atomic uint32_t *born = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || born == MAP_FAILED)
        _exit(1);
    for (int i = 0; i < BOMB_CHAINS; i++)
        if (fork() == 0)
            while (atomic_fetch_add(born, 1) < BOMB_MAX) {
                setsid();
                nanosleep(&moment, NULL);
                if (fork() != 0)
                    _exit(0);
            }
    if (write(1, "lit", 3) != 3)
        _exit(1);
    for (;;)
        pause();
}

static void test_fork_bomb(void) {
    struct order o;
    char folder[PATH_MAX], path[PATH_MAX], self[PATH_MAX] = "";
    struct heard *h = stage.groups[0].heard;
    folder_make(folder);
    int fd = open(folder_file(folder, "count", path), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    CHECK_EQ(ftruncate(fd, 4), 0);
    CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    order_program(
        &o, self,
        (const char *[]){"bomb", path, stage.confine == CONFINE_NONE ? "slow" : "fast", NULL});
    stage_begin();
    open_group(0, &o);
    uint32_t born = 0, later = 0;
    CHECK(UNTIL(h->stream[0].next == 3));
    CHECK(UNTIL(pread(fd, &born, sizeof born, 0) == sizeof born && born > 100));
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 1)));
    CHECK_EQ(pread(fd, &born, sizeof born, 0), sizeof born);
    CHECK(born < BOMB_MAX); /* it did not end by itself */
    close_group(0);
    stage_end(); /* no child is left */
    CHECK_EQ(pread(fd, &later, sizeof later, 0), sizeof later);
    CHECK_EQ(later, born);
    close(fd);
    folder_remove(folder);
}

/* Nothing more of it comes, for so many turns in a row: what was under way has come to rest. */
static uint64_t await_rest(const struct heard_stream *s) {
    int still = 0;
    uint64_t now = s->next;
    for (int i = 0; i < 10000 && still < 50; i++) {
        uint64_t at = now;
        loop_turn(&stage.loop, 1);
        kernel_settle(stage.kernel);
        now = s->next;
        still = now == at ? still + 1 : 0;
    }
    CHECK_EQ(still, 50);
    return now;
}

/* Whoever is told to go on while he is held does so when he is let go. */
static void test_poke_of_a_held_one(void) {
    struct order o;
    struct heard_stream *s = &stage.groups[0].heard[0].stream[0];
    order_shell(&o, "i=0; while :; do i=$((i + 1)); test $((i % 2000)) = 0 && echo x; done");
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(s->next > 10));
    carry(EFFECT_GROUP_FREEZE, 0, 1);
    uint64_t now = await_rest(s);
    kernel_carry(stage.kernel, &(struct effect){.kind = EFFECT_GROUP_SIGNAL,
                                                .group = {.value = SIGCONT, .one = 1}});
    CHECK_EQ(await_rest(s), now);
    carry(EFFECT_GROUP_FREEZE, 0, 0);
    CHECK(UNTIL(s->next > now + 10));
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 1)));
    close_group(0);
    stage_end();
}

/* What counts stops counting, and goes on where it was. */
static void test_freeze(void) {
    struct order o;
    struct heard_stream *s = &stage.groups[0].heard[0].stream[0];
    order_shell(&o, "sh -c 'setsid sh -c \"while :; do echo x; sleep 0.001; done\"' & wait");
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(s->next > 10));
    carry(EFFECT_GROUP_FREEZE, 0, 1);
    uint64_t now = await_rest(s);
    CHECK_EQ(stage.groups[0].heard[0].ends, 0);
    carry(EFFECT_GROUP_FREEZE, 0, 0);
    CHECK(UNTIL(s->next > now + 10));
    carry(EFFECT_GROUP_FREEZE, 0, 1);
    carry(EFFECT_GROUP_KILL, 0, 0); /* works while frozen */
    CHECK(UNTIL(over(0, 1)));
    close_group(0);
    order_shell(&o, "exit 2"); /* what was frozen is as good as new */
    check_ended(run(&o), CHILD_EXITED, 2);
    stage_end();
}

static void test_kill_unstarted(void) {
    static const uint8_t none[1];
    stage_begin();
    struct effect e = {.kind = EFFECT_GROUP_OPEN,
                       .group = {.group = 2, .setup = bytes_of(none, sizeof none)}};
    kernel_carry(stage.kernel, &e);
    carry(EFFECT_GROUP_KILL, 2, 0);
    CHECK(UNTIL(stage.groups[2].empties == 1));
    CHECK_EQ(stage.groups[2].heard[0].starts, 0);
    close_group(2);
    stage_end();
}

/* Closed while it runs: all of it ends, nothing more is told, the number is free. */
static void test_close_running(void) {
    struct order o;
    order_shell(&o, "setsid sh -c 'read p x </proc/self/stat; echo $p; exec sleep 1000' & wait");
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(said(0, 0) > 0));
    long daemon = said(0, 0);
    close_group(0);
    order_shell(&o, "exit 6");
    check_ended(run(&o), CHILD_EXITED, 6);
    CHECK(UNTIL(gone(daemon)));
    stage_end();
}

/* ---- nothing is left ---- */

static void test_descriptors(void) {
    struct order o;
    stage_begin();
    order_shell(&o, "echo out; echo err >&2; cat");
    o.spec.stdin_mode = STDIN_ALL;
    order_count(&o, 3);
    uint32_t before = 0;
    for (int i = 0; i < 50; i++) {
        o.spec.terminal = i % 2 == 0;
        open_group(0, &o);
        type(UINT32_MAX, 0, "abc", 3, true);
        CHECK(UNTIL(over(0, 3)));
        close_group(0);
        if (i == 0)
            before = process_descriptors(getpid());
    }
    CHECK(before > 0);
    CHECK_EQ(process_descriptors(getpid()), before);
    stage_end();
}

/* More processes than the limit on descriptors allows at first; they get the limit as it was. */
static void test_many(void) {
    struct order o;
    struct rlimit before;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit small = {.rlim_cur = 40, .rlim_max = before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    order_shell(&o, "ulimit -n");
    order_count(&o, PROCESSES);
    stage_begin();
    open_group(0, &o);
    open_group(1, &o);
    CHECK(UNTIL(over(0, PROCESSES) && over(1, PROCESSES)));
    for (uint32_t i = 0; i < PROCESSES; i++)
        CHECK_STR(stage.groups[1].heard[i].stream[0].text, "40\n");
    close_group(0);
    close_group(1);
    stage_end();
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Where the newest way to start processes is forbidden, the old one must do the same. */
static void test_without_clone3(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = 4, .filter = code};
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0)
            _exit(77);
        test_statuses();
        test_failures();
        test_kill();
        _exit(tap_current_fail);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

/* What comes of a folder that is no cgroup. */
static void try_no_cgroup(enum confine confine, enum guarantee g, const char *word) {
    int r;
    CHECK_EQ(loop_init(&stage.loop), 0);
    struct kernel_config config = {
        .loop = &stage.loop, .feed = feed, .cgroup = "/tmp", .confine = confine, .groups = 1};
    struct kernel *k = kernel_new(&config, &r);
    if (CHECK(k != NULL)) {
        CHECK_EQ(kernel_guarantee(k), g);
        CHECK(kernel_notice(k) != NULL && strstr(kernel_notice(k), "/tmp") != NULL);
        CHECK(kernel_notice(k) != NULL && strstr(kernel_notice(k), word) != NULL);
    }
    kernel_free(k);
    loop_fini(&stage.loop);
}

/* It works, more weakly, and says so; how weakly depends on what is asked for and to be had. */
static void test_no_cgroup(void) {
    struct pens_trouble t;
    bool pens = pens_try(&t) == 0;
    try_no_cgroup(CONFINE_CGROUP, GUARANTEE_SUBREAPER, "cannot be used");
    try_no_cgroup(CONFINE_AUTO, pens ? GUARANTEE_NAMESPACE : GUARANTEE_SUBREAPER, "/tmp");
}

/* In a process of which nothing is expected if it cannot. */
static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t len = (ssize_t)strlen(text);
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        _exit(77);
    close(fd);
}

/* In a user namespace of its own, where no others are allowed. */
static void forbid(const char *kind) {
    char uid[32], gid[32], path[64];
    snprintf(uid, sizeof uid, "%u %u 1", geteuid(), geteuid());
    snprintf(gid, sizeof gid, "%u %u 1", getegid(), getegid());
    snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kind);
    if (unshare(CLONE_NEWUSER) < 0)
        _exit(77);
    put("/proc/self/setgroups", "deny");
    put("/proc/self/uid_map", uid);
    put("/proc/self/gid_map", gid);
    put(path, "0");
}

/* No namespaces for us: descent, and a reason that names what is missing. */
static void try_without(const char *kind, const char *words) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        forbid(kind);
        try_no_cgroup(CONFINE_AUTO, GUARANTEE_SUBREAPER, words);
        _exit(tap_current_fail);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

static void test_no_namespaces(void) {
    if (geteuid() != 0) /* root does not need them */
        try_without("user", "user namespaces cannot be made");
    try_without("pid", "pid namespaces cannot be made");
}

static void all(void) {
    TEST(test_statuses);
    TEST(test_failures);
    TEST(test_garbage);
    TEST(test_environment);
    TEST(test_several_programs);
    TEST(test_folder_umask_limits);
    TEST(test_clean);
    TEST(test_path_and_scripts);
    TEST(test_usage);
    TEST(test_usage_until_now);
    TEST(test_signal);
    TEST(test_poke);
    TEST(test_hold);
    TEST(test_debugger);
    TEST(test_kill);
    TEST(test_left_behind);
    TEST(test_kill_one_of_two);
    TEST(test_fork_bomb);
    TEST(test_freeze);
    TEST(test_poke_of_a_held_one);
    TEST(test_kill_unstarted);
    TEST(test_close_running);
    TEST(test_descriptors);
    TEST(test_many);
    TEST(test_without_clone3);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[0], "bomb") == 0)
        bomb(argv[1], strcmp(argv[2], "fast") == 0);
    TEST(test_no_cgroup);
    TEST(test_no_namespaces);
    return every_way(all);
}
