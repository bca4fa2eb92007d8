/* SPDX-License-Identifier: MIT */
/* Real processes through the launcher's kernel side: starts, ends, streams, signals, and that nothing
 * is left; each with a cgroup where there is one, and without. */
#include "os/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "os/cgroup.h"
#include "os/process.h"
#include "turns.h"
#include "wire/message.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { GROUPS = 4, PROCESSES = 8, KEPT = 16 * 1024, WINDOW = 64 * 1024 };

/* ---- what was heard ---- */

struct heard_stream {
    uint64_t next; /* offset expected */
    uint64_t hash;
    uint32_t pieces;
    bool ended;
    char text[KEPT];
    size_t len;
};

struct heard {
    struct input_child start, end;
    uint32_t starts, ends;
    struct heard_stream stream[2];
    uint64_t drained;
    uint32_t drains;
};

struct heard_group {
    struct heard heard[PROCESSES];
    uint32_t empties;
};

static struct {
    struct loop loop;
    struct kernel *kernel;
    const char *cgroup; /* for the next kernel */
    bool hold;          /* take nothing */
    bool kill_at_end;   /* as a launcher does when its own processes have ended */
    struct heard_group groups[GROUPS];
} stage;

static void carry(enum effect_kind kind, uint32_t group, uint32_t value) {
    struct effect e = {.kind = kind, .group = {.group = group, .value = value}};
    CHECK(kernel_wants(kind));
    kernel_carry(stage.kernel, &e);
}

static void take(uint32_t group, uint32_t index, uint8_t stream, uint64_t offset) {
    struct effect e = {
        .kind = EFFECT_STREAM_TAKEN,
        .stream = {.group = group, .index = index, .stream = stream, .offset = offset}};
    kernel_carry(stage.kernel, &e);
}

static void hear_stream(const struct input_stream *in) {
    struct heard_stream *s = &stage.groups[in->group].heard[in->index].stream[in->stream - 1];
    CHECK(in->stream == 1 || in->stream == 2);
    CHECK_EQ(in->offset, s->next);
    CHECK(!s->ended);
    CHECK(in->bytes.len <= 64 * 1024);
    CHECK(in->bytes.len > 0 || in->end);
    s->next += in->bytes.len;
    s->pieces++;
    s->ended = in->end;
    for (size_t i = 0; i < in->bytes.len; i++)
        s->hash = (s->hash ^ in->bytes.at[i]) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < in->bytes.len && s->len < KEPT - 1; i++)
        s->text[s->len++] = (char)in->bytes.at[i];
    if (!stage.hold)
        take(in->group, in->index, in->stream, s->next);
}

static void hear_child(const struct input_child *in) {
    struct heard *h = &stage.groups[in->group].heard[in->index];
    if (in->event == CHILD_STARTED || in->event == CHILD_FAILED) {
        h->start = *in;
        h->starts++;
        CHECK_EQ(h->ends, 0);
    } else {
        h->end = *in;
        h->ends++;
        CHECK_EQ(h->starts, 1);
        if (stage.kill_at_end)
            carry(EFFECT_GROUP_KILL, in->group, 0);
    }
}

static void feed(void *context, const struct input *in) {
    CHECK(context == &stage);
    CHECK_EQ(in->now, stage.loop.now);
    if (in->kind == INPUT_CHILD)
        hear_child(&in->child);
    else if (in->kind == INPUT_STREAM)
        hear_stream(&in->stream);
    else if (in->kind == INPUT_EMPTY)
        stage.groups[in->empty.group].empties++;
    else if (CHECK_EQ(in->kind, INPUT_DRAINED)) {
        struct heard *h = &stage.groups[in->drained.group].heard[in->drained.index];
        CHECK(in->drained.offset >= h->drained || in->drained.offset == UINT64_MAX);
        h->drained = in->drained.offset;
        h->drains++;
    }
}

/* ---- what is to be run ---- */

/* A spec and setup under construction. */
struct order {
    struct setup setup;
    struct spec spec;
    char arguments[4096];
    char environment[1024];
    uint8_t limits[4 * SPEC_LIMIT_BYTES];
};

static void add_string(struct bytes *list, char *room, const char *s) {
    memcpy(room + list->len, s, strlen(s) + 1);
    list->at = (const uint8_t *)room;
    list->len += strlen(s) + 1;
}

static void order_program(struct order *o, const char *program, const char *const *arguments) {
    *o = (struct order){
        .setup = {.run = run_of(7, 1), .count = 1, .size = 1, .window = WINDOW},
        .spec = {.umask = 022},
    };
    o->setup.node_name = bytes_from_str("n3");
    o->setup.node_list = bytes_from_str("n[3-4]");
    o->spec.folder = bytes_from_str("/");
    o->spec.program = bytes_from_str(program);
    add_string(&o->spec.environment, o->environment, "PATH=/usr/bin:/bin");
    for (; *arguments != NULL; arguments++)
        add_string(&o->spec.arguments, o->arguments, *arguments);
}

static void order_shell(struct order *o, const char *script) {
    order_program(o, "/bin/sh", (const char *[]){"sh", "-c", script, NULL});
}

static void order_count(struct order *o, uint32_t count) {
    o->setup.count = o->setup.size = count;
}

static void order_limit(struct order *o, uint8_t resource, uint64_t soft, uint64_t hard) {
    struct rlimit_spec l = {.resource = resource, .soft = soft, .hard = hard};
    spec_limit_store(o->limits + o->spec.limits.len, &l);
    o->spec.limits = bytes_of(o->limits, o->spec.limits.len + SPEC_LIMIT_BYTES);
}

/* ---- the stage ---- */

static void stage_begin(void) {
    int r;
    stage.hold = stage.kill_at_end = false;
    memset(stage.groups, 0, sizeof stage.groups);
    CHECK_EQ(loop_init(&stage.loop), 0);
    struct kernel_config config = {.loop = &stage.loop,
                                   .feed = feed,
                                   .context = &stage,
                                   .cgroup = stage.cgroup,
                                   .groups = GROUPS};
    stage.kernel = kernel_new(&config, &r);
    CHECK_EQ(r, 0);
    enum guarantee g = stage.cgroup != NULL ? GUARANTEE_CGROUP : GUARANTEE_SUBREAPER;
    CHECK_EQ(kernel_guarantee(stage.kernel), g);
    CHECK(kernel_notice(stage.kernel) == NULL);
}

static void stage_end(void) {
    kernel_free(stage.kernel);
    loop_fini(&stage.loop);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, dead or alive */
}

static void open_group(uint32_t group, struct order *o) {
    static uint8_t spec[8192], setup[16384];
    long n = spec_encode(&o->spec, room_of(spec, sizeof spec));
    CHECK(n > 0);
    o->setup.spec = bytes_of(spec, (size_t)n);
    n = setup_encode(&o->setup, room_of(setup, sizeof setup));
    CHECK(n > 0);
    memset(&stage.groups[group], 0, sizeof stage.groups[group]);
    struct effect e = {.kind = EFFECT_GROUP_OPEN,
                       .group = {.group = group, .setup = bytes_of(setup, (size_t)n)}};
    kernel_carry(stage.kernel, &e);
    memset(setup, 0xee, sizeof setup); /* it was copied */
    carry(EFFECT_GROUP_START, group, 0);
    kernel_settle(stage.kernel);
}

#define UNTIL(condition) TURN_UNTIL(&stage.loop, kernel_settle(stage.kernel), condition)

static void close_group(uint32_t group) {
    carry(EFFECT_GROUP_CLOSE, group, 0);
    kernel_settle(stage.kernel);
}

/* All streams of the group have ended, and it is empty. */
static bool over(uint32_t group, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!stage.groups[group].heard[i].stream[0].ended ||
            !stage.groups[group].heard[i].stream[1].ended)
            return false;
    return stage.groups[group].empties > 0;
}

/* Runs it as group 0 to its end, closes it; what the first process did. */
static const struct heard *run(struct order *o) {
    open_group(0, o);
    CHECK(UNTIL(over(0, o->setup.count)));
    CHECK_EQ(stage.groups[0].empties, 1);
    close_group(0);
    return &stage.groups[0].heard[0];
}

static void check_ended(const struct heard *h, enum child_event event, uint32_t value) {
    CHECK_EQ(h->starts, 1);
    CHECK_EQ(h->start.event, CHILD_STARTED);
    CHECK_EQ(h->ends, 1);
    CHECK_EQ(h->end.event, event);
    CHECK_EQ(h->end.value, value);
}

static void check_failed(const struct heard *h, enum spawn_step step, int error) {
    CHECK_EQ(h->starts, 1);
    CHECK_EQ(h->start.event, CHILD_FAILED);
    CHECK_EQ(h->start.step, step);
    CHECK_EQ(h->start.value, error);
    CHECK_EQ(h->ends, 0);
}

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

/* Only 0, 1 and 2; a session of its own; no signal ignored or blocked. */
static void test_clean(void) {
    struct order o;
    stage_begin();
    order_shell(&o,
                "ls /proc/$$/fd | tr '\\n' ' '; grep -e Sig[BIC] /proc/self/status | tr -d '\\n'; "
                "read -r p c s pp g sid rest < /proc/$$/stat; test $sid = $$ && echo leads");
    signal(SIGUSR1, SIG_IGN);
    stage_end();
    stage_begin();
    const struct heard *h = run(&o);
    signal(SIGUSR1, SIG_DFL);
    CHECK_STR(h->stream[0].text,
              "0 1 2 SigBlk:\t0000000000000000SigIgn:\t0000000000000000SigCgt:\t0000000000000000"
              "leads\n");
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

/* ---- all of it, both ways ---- */

static void all(void) {
    TEST(test_statuses);
    TEST(test_failures);
    TEST(test_garbage);
    TEST(test_environment);
    TEST(test_folder_umask_limits);
    TEST(test_clean);
    TEST(test_path_and_scripts);
}

int main(void) {
    char own[PATH_MAX], folder[PATH_MAX];
    all();
    if (cgroup_own(own, sizeof own) < 0) {
        SKIP("with cgroups", "no cgroup version 2 is mounted");
        return tap_finish();
    }
    snprintf(folder, sizeof folder, "%.3000s/storm-test-%d", own, (int)getpid());
    if (mkdir(folder, 0755) < 0) {
        SKIP("with cgroups", "the cgroup of this process cannot be divided");
        return tap_finish();
    }
    stage.cgroup = folder;
    all();
    rmdir(folder);
    return tap_finish();
}
