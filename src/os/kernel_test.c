/* SPDX-License-Identifier: MIT */
/* Real processes through the launcher's kernel side: starts, ends, streams, signals, and that nothing
 * is left; each with a cgroup where there is one, and without. */
#include "os/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

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
    char expected[512];
    order_shell(&o, "ls /proc/$$/fd | tr '\\n' ' '; cat /proc/self/status | grep -e 'Sig[BIC]'; "
                    "cut -d' ' -f4-6 /proc/$$/stat");
    signal(SIGUSR1, SIG_IGN);
    int inherited = open("/dev/null", O_RDONLY); /* nobody said that it is not for our children */
    stage_begin();
    run(&o);
    struct heard *h = &stage.groups[0].heard[0];
    signal(SIGUSR1, SIG_DFL);
    close(inherited);
    uint32_t pid = h->start.value;
    snprintf(expected, sizeof expected,
             "0 1 2 SigBlk:\t%016d\nSigIgn:\t%016d\n"
             "SigCgt:\t%016d\n%d %u %u\n",
             0, 0, 0, (int)getpid(), pid, pid);
    CHECK_STR(h->stream[0].text, expected);
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

static void type(uint32_t index, uint64_t offset, const void *bytes, size_t len, bool end) {
    struct effect e = {.kind = EFFECT_STREAM_FEED,
                       .stream = {.group = 0,
                                  .index = index,
                                  .offset = offset,
                                  .bytes = bytes_of(bytes, len),
                                  .end = end}};
    kernel_carry(stage.kernel, &e);
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

/* A process that ignores everything, one that left its session and its parent behind. */
static void test_kill(void) {
    struct order o;
    struct heard *h = stage.groups[0].heard;
    order_shell(&o, "trap '' TERM INT HUP; (setsid sh -c 'echo $$; exec sleep 1000' & ) ; "
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
        &o, "setsid sh -c 'echo $$; exec sleep 1000' & while ! test -e /proc/$!/fd; do :; done; "
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
    const char *script = "setsid sh -c 'echo $$; exec sleep 1000' & wait";
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

/* Processes that start another one and end, each in a session of its own: none lives long enough to be
 * looked at twice. They know how many there ever were, and stop by themselves if nobody stops them. */
enum { BOMB_CHAINS = 20, BOMB_MAX = 20000 };

static _Noreturn void bomb(const char *path) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    _Atomic uint32_t *born = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || born == MAP_FAILED)
        _exit(1);
    for (int i = 0; i < BOMB_CHAINS; i++)
        if (fork() == 0)
            while (atomic_fetch_add(born, 1) < BOMB_MAX) {
                setsid();
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
    order_program(&o, self, (const char *[]){"bomb", path, NULL});
    stage_begin();
    open_group(0, &o);
    CHECK(UNTIL(h->stream[0].next == 3));
    carry(EFFECT_GROUP_KILL, 0, 0);
    CHECK(UNTIL(over(0, 1)));
    uint32_t born = 0, later = 0;
    CHECK_EQ(pread(fd, &born, sizeof born, 0), sizeof born);
    CHECK(born > 0 && born < BOMB_MAX); /* it did not end by itself */
    close_group(0);
    stage_end(); /* no child is left */
    CHECK_EQ(pread(fd, &later, sizeof later, 0), sizeof later);
    CHECK_EQ(later, born);
    close(fd);
    folder_remove(folder);
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
    uint64_t at, now = s->next;
    int still = 0; /* turns in a row without anything: what was under way has come to rest */
    for (int i = 0; i < 10000 && still < 50; i++) {
        at = now;
        loop_turn(&stage.loop, 1);
        kernel_settle(stage.kernel);
        now = s->next;
        still = now == at ? still + 1 : 0;
    }
    CHECK_EQ(still, 50);
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
    order_shell(&o, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
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

/* A folder that is no cgroup: it works, more weakly, and says so. */
static void test_no_cgroup(void) {
    int r;
    CHECK_EQ(loop_init(&stage.loop), 0);
    struct kernel_config config = {
        .loop = &stage.loop, .feed = feed, .cgroup = "/tmp", .groups = 1};
    struct kernel *k = kernel_new(&config, &r);
    if (CHECK(k != NULL)) {
        CHECK_EQ(kernel_guarantee(k), GUARANTEE_SUBREAPER);
        CHECK(kernel_notice(k) != NULL && strstr(kernel_notice(k), "/tmp") != NULL);
    }
    kernel_free(k);
    loop_fini(&stage.loop);
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
    TEST(test_output);
    TEST(test_taken_late);
    TEST(test_empty_before_end);
    TEST(test_input);
    TEST(test_input_to_all);
    TEST(test_input_unread);
    TEST(test_signal);
    TEST(test_kill);
    TEST(test_left_behind);
    TEST(test_kill_one_of_two);
    TEST(test_fork_bomb);
    TEST(test_freeze);
    TEST(test_kill_unstarted);
    TEST(test_close_running);
    TEST(test_terminal);
    TEST(test_descriptors);
    TEST(test_many);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[0], "bomb") == 0)
        bomb(argv[1]);
    char own[PATH_MAX], folder[PATH_MAX];
    all();
    TEST(test_no_cgroup);
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
