/* SPDX-License-Identifier: MIT */
/* The program storm-pl as its manager meets it: over its socket, with real processes.
 *
 * The first argument is the program's path. What it says is gathered as text, a line a message. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "os/child.h"
#include "os/links.h"
#include "os/loop.h"
#include "os/process.h"
#include "sanitized.h"
#include "tap.h"
#include "wire/message.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { NODE = 3, PATIENCE_S = 30, HEARD = 8192 };

static const char *program; /* storm-pl */

struct manager {
    char folder[64];
    struct address address;
    pid_t launcher;
    struct loop loop;
    struct links *links;
    struct link_counts counts;
    uint32_t link; /* 0 while it is down */
    char heard[HEARD];
    char output[2][HEARD]; /* of each stream, by offset */
    struct ending end;
    bool ended;
};

__attribute__((format(printf, 2, 3))) static void note(struct manager *m, const char *format, ...) {
    size_t used = strlen(m->heard);
    va_list args;
    va_start(args, format);
    vsnprintf(m->heard + used, HEARD - used, format, args);
    va_end(args);
}

static void on_message(struct manager *m, const struct input_message *in) {
    union message message;
    if (!CHECK_EQ(message_decode(in->type, in->body, NULL, &message), 0))
        return;
    const struct message_output *o = &message.output;
    if (in->type == MESSAGE_OUTPUT && CHECK(o->offset + o->bytes.len < HEARD)) {
        memcpy(m->output[o->stream - 1] + o->offset, o->bytes.at, o->bytes.len);
    } else if (in->type == MESSAGE_ENDED) {
        m->ended = ending_load(&m->end, message.ended.ends, 0);
        note(m, "ended\n");
    } else if (in->type == MESSAGE_HOLD) {
        note(m, "hold %u %s\n", run_job(message.hold.run), message.hold.started ? "started" : "");
    } else if (in->type == MESSAGE_DRAINED && message.drained.offset != UINT64_MAX) {
        note(m, "drained %u\n", (unsigned)message.drained.offset);
    }
}

static void on_link(void *context, enum purpose purpose, const struct input *in) {
    struct manager *m = context;
    CHECK_EQ(purpose, PURPOSE_LAUNCHER);
    if (in->kind == INPUT_LINK_UP)
        m->link = in->link.link;
    else if (in->kind == INPUT_LINK_DOWN)
        m->link = 0;
    else if (in->kind == INPUT_MESSAGE)
        on_message(m, &in->message);
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    (void)context, (void)link, (void)put;
    return REFUSAL_ROLE;
}

static void turn(struct manager *m) {
    loop_turn(&m->loop, 5);
    links_settle(m->links);
}

#define UNTIL(m, condition)                                  \
    ({                                                       \
        uint64_t until = clock_ns() + PATIENCE_S * NS_PER_S; \
        while (!(condition) && clock_ns() < until)           \
            turn(m);                                         \
        (condition);                                         \
    })

/* Until the launcher listens nobody answers. */
static void connect_to(struct manager *m) {
    uint64_t until = clock_ns() + PATIENCE_S * NS_PER_S;
    while (m->link == 0 && clock_ns() < until) {
        struct effect_open open = {.node = NODE, .purpose = PURPOSE_LAUNCHER, .cookie = 1};
        links_open(m->links, &open);
        for (int i = 0; i < 10 && m->link == 0; i++)
            turn(m);
    }
    CHECK(m->link != 0);
}

static void begin_links(struct manager *m) {
    struct links_config links = {.loop = &m->loop,
                                 .self = NODE,
                                 .life = 1,
                                 .key = {1, 2},
                                 .launcher = &m->address,
                                 .listener = -1,
                                 .frame_bytes_max = MIB,
                                 .counts = &m->counts,
                                 .feed = on_link,
                                 .put = on_put,
                                 .context = m};
    m->links = links_new(&links);
    connect_to(m);
}

static void begin(struct manager *m) {
    char socket[96], text[112], node[16];
    memset(m, 0, sizeof *m);
    snprintf(m->folder, sizeof m->folder, "/tmp/storm-launcher-XXXXXX");
    CHECK(mkdtemp(m->folder) != NULL);
    snprintf(socket, sizeof socket, "%s/pl", m->folder);
    snprintf(text, sizeof text, "seqpacket:%s", socket);
    snprintf(node, sizeof node, "%d", NODE);
    CHECK_EQ(address_parse(&m->address, text), 0);
    CHECK_EQ(loop_init(&m->loop), 0);
    m->launcher = fork();
    if (m->launcher == 0) {
        unsetenv("MALLOC_PERTURB_"); /* it touches memory that is not used */
        const uint64_t key[2] = {1, 2};
        child_place(child_secret(key), 3, 0);
        execl(program, program, "--socket", socket, "--node", node, "--key-fd", "3", (char *)NULL);
        _exit(127);
    }
    begin_links(m);
}

static void finish(struct manager *m) {
    int status;
    char socket[96];
    kill(m->launcher, SIGTERM);
    CHECK_EQ(waitpid(m->launcher, &status, 0), m->launcher);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(UNTIL(m, m->link == 0));
    links_free(m->links);
    loop_fini(&m->loop);
    snprintf(socket, sizeof socket, "%s/pl", m->folder);
    unlink(socket);
    rmdir(m->folder);
}

static void say(struct manager *m, uint16_t type, const union message *message) {
    uint8_t body[4096];
    long len = message_encode(type, message, room_of(body, sizeof body));
    struct effect_send send = {
        .links = &m->link, .link_count = 1, .type = type, .head = bytes_of(body, (size_t)len)};
    CHECK(len >= 0);
    links_send(m->links, &send);
}

static void command(struct manager *m, uint32_t job, enum verb verb) {
    union message message = {.command = {.run = run_of(job, 0), .verb = (uint8_t)verb}};
    say(m, MESSAGE_COMMAND, &message);
}

/* One process: a shell's script, or another program without arguments. */
static void launch(struct manager *m, uint32_t job, const char *file, const char *script) {
    uint8_t spec_bytes[1024], setup_bytes[2048];
    char arguments[512];
    int len = snprintf(arguments, sizeof arguments, "sh%c-c%c%s", 0, 0, script) + 1;
    struct spec spec = {.stdin_mode = STDIN_RANK,
                        .umask = 022,
                        .program = bytes_from_str(file),
                        .arguments = bytes_of(arguments, (size_t)len)};
    long spec_len = spec_encode(&spec, room_of(spec_bytes, sizeof spec_bytes));
    struct setup setup = {.run = run_of(job, 0),
                          .count = 1,
                          .size = 1,
                          .window = 65536,
                          .spec = bytes_of(spec_bytes, (size_t)spec_len)};
    long setup_len = setup_encode(&setup, room_of(setup_bytes, sizeof setup_bytes));
    CHECK(spec_len > 0 && setup_len > 0);
    union message message = {
        .setup = {.run = setup.run, .setup = bytes_of(setup_bytes, (size_t)setup_len)}};
    say(m, MESSAGE_SETUP, &message);
    command(m, job, VERB_START);
}

static void type(struct manager *m, uint32_t job, uint64_t offset, const char *text) {
    union message message = {
        .typed = {
            .run = run_of(job, 0), .offset = offset, .end = true, .bytes = bytes_from_str(text)}};
    say(m, MESSAGE_TYPED, &message);
}

/* Output has a lane of its own: it may come before or after what is said at the same time. */
static bool heard_all(const struct manager *m) {
    return strlen(m->output[0]) + strlen(m->output[1]) >= m->end.output;
}

static void test_output_and_status(void) {
    struct manager m;
    begin(&m);
    launch(&m, 7, "/bin/sh", "echo out; echo oops >&2; exit 3");
    CHECK(UNTIL(&m, m.ended && heard_all(&m)));
    CHECK(m.end.cause == CAUSE_EXITED && m.end.value == 3 && m.end.bad == 1 && !m.end.ours);
    CHECK_EQ(m.end.output, 9);
    CHECK_STR(m.output[0], "out\n");
    CHECK_STR(m.output[1], "oops\n");
    m.ended = false;
    command(&m, 7, VERB_DROP);
    command(&m, 7, VERB_CHECK);
    CHECK(UNTIL(&m, m.ended));
    CHECK_EQ(m.end.cause, CAUSE_UNKNOWN);
    finish(&m);
}

static void test_a_program_that_is_not_there(void) {
    struct manager m;
    begin(&m);
    launch(&m, 7, "/nowhere/nothing", "");
    CHECK(UNTIL(&m, m.ended));
    CHECK(m.end.cause == CAUSE_FAILED && m.end.value == ENOENT && m.end.step == SPAWN_PROGRAM);
    finish(&m);
}

static void test_it_outlives_its_manager(void) {
    struct manager m;
    begin(&m);
    launch(&m, 7, "/bin/sh", "echo one; read x; echo two $x");
    CHECK(UNTIL(&m, m.output[0][3] == '\n'));
    links_free(m.links); /* the manager dies, a new one comes */
    m.link = 0;
    memset(m.output, 0, sizeof m.output);
    begin_links(&m);
    CHECK(UNTIL(&m, m.output[0][3] == '\n' && m.heard[0] != 0)); /* nobody had taken it */
    CHECK_STR(m.heard, "hold 7 started\n");
    type(&m, 7, 0, "words\n");
    CHECK(UNTIL(&m, m.ended && heard_all(&m)));
    CHECK_STR(m.output[0], "one\ntwo words\n");
    CHECK_STR(m.heard, "hold 7 started\ndrained 6\nended\n");
    CHECK(m.end.cause == CAUSE_EXITED && m.end.value == 0 && m.end.output == 14);
    finish(&m);
}

static void test_its_processes_end_before_it_does(void) {
    struct manager m;
    begin(&m);
    launch(&m, 7, "/bin/sh",
           "read p x </proc/self/stat; echo $p; trap '' TERM; while :; do sleep 1000; done");
    CHECK(UNTIL(&m, strchr(m.output[0], '\n') != NULL));
    pid_t pid = (pid_t)atoi(m.output[0]);
    CHECK(pid > 1 && kill(pid, 0) == 0);
    finish(&m);
    CHECK(kill(pid, 0) < 0 && errno == ESRCH);
}

/* It dies without warning: nothing of it goes on. */
static void test_its_processes_die_with_it(void) {
    struct manager m;
    begin(&m);
    launch(&m, 7, "/bin/sh", "read p x </proc/self/stat; echo $p; read x");
    CHECK(UNTIL(&m, strchr(m.output[0], '\n') != NULL));
    pid_t pid = (pid_t)atoi(m.output[0]);
    CHECK(pid > 1 && kill(pid, 0) == 0);
    kill(m.launcher, SIGKILL);
    CHECK(UNTIL(&m, m.link == 0));
    CHECK(UNTIL(&m, kill(pid, 0) < 0 && errno == ESRCH));
    waitpid(m.launcher, NULL, 0);
    links_free(m.links);
    loop_fini(&m.loop);
    unlink(m.address.local.sun_path);
    rmdir(m.folder);
}

/* There are two, so that the program's own pages are shared as they are on a machine of many nodes. */
static void test_it_is_small(void) {
    struct manager m, other;
    begin(&m);
    begin(&other);
    uint64_t bytes = process_private_bytes(m.launcher);
    printf("# %llu kB\n", (unsigned long long)(bytes / KIB));
    CHECK(bytes > 0 && (SANITIZED || bytes < 200 * KIB));
    finish(&m);
    finish(&other);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        SKIP("launcher", "no storm-pl");
        return tap_finish();
    }
    program = argv[1];
    TEST(test_output_and_status);
    TEST(test_a_program_that_is_not_there);
    TEST(test_it_outlives_its_manager);
    TEST(test_its_processes_end_before_it_does);
    TEST(test_its_processes_die_with_it);
    TEST(test_it_is_small);
    return tap_finish();
}
