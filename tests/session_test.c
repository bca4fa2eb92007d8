/* SPDX-License-Identifier: MIT */
/* Clients and a manager that dies, forgets and is slow: requests, output and input survive it. */
#include "client/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/units.h"
#include "client/output.h"
#include "client/typing.h"
#include "manager.h"
#include "tap.h"

enum { TURNS_MAX = 20000, JOB = 7 };

struct scene {
    struct loop loop;
    struct manager manager;
    struct session *session;
    struct output *output;
    struct typing *typing;
    /* what the manager has heard */
    uint32_t submits, follows, others;
    uint64_t request[2];
    bool answers;
    uint64_t taken[4][2];
    uint64_t takes;
    uint8_t *typed; /* as the processes would have it */
    uint64_t typed_len, drained, furthest;
    bool typed_end;
    uint32_t ranks;
    bool drains;
    /* what the client has heard */
    uint32_t job, ups, answered;
    bool lost;
    enum session_loss loss;
    int trouble;
};

/* ---- the manager's side ---- */

static void heard_typed(struct scene *c, const struct message_typed *t) {
    uint64_t end = t->offset + t->bytes.len;
    if (t->offset > c->typed_len)
        return; /* too early: it will come again */
    if (end > c->furthest)
        c->furthest = end;
    CHECK(c->furthest - c->drained <= 256 * 1024);
    if (end > c->typed_len) {
        c->typed = realloc(c->typed, end);
        memcpy(c->typed + t->offset, t->bytes.at, t->bytes.len);
        c->typed_len = end;
    }
    c->typed_end = c->typed_end || (t->end && end == c->typed_len);
    if (!c->drains)
        return;
    c->drained = c->typed_len;
    for (uint32_t i = 0; i < c->ranks; i++) {
        union message d = {.drained = {.run = t->run, .rank = i, .offset = c->drained}};
        manager_say(&c->manager, MESSAGE_DRAINED, &d);
    }
}

static void heard(struct manager *m, uint16_t type, const union message *c) {
    struct scene *s = m->context;
    if (type == MESSAGE_SUBMIT) {
        s->submits++;
        CHECK(s->request[1] == 0 ||
              (s->request[0] == c->submit.request[0] && s->request[1] == c->submit.request[1]));
        memcpy(s->request, c->submit.request, sizeof s->request);
        if (s->answers)
            manager_answer(m, c->submit.request, JOB);
    } else if (type == MESSAGE_ACT && c->act.verb == VERB_FOLLOW) {
        s->follows++;
        CHECK_EQ(load_le32(c->act.jobs.at), JOB);
        CHECK_EQ(c->act.value, 1);
        manager_answer(m, c->act.request, JOB);
    } else if (type == MESSAGE_TAKEN) {
        s->takes++;
        s->taken[c->taken.rank][c->taken.stream - 1] = c->taken.offset;
    } else if (type == MESSAGE_TYPED) {
        heard_typed(s, &c->typed);
    } else {
        s->others++;
    }
}

static void say_output(struct scene *c, uint32_t rank, uint8_t stream, uint64_t offset,
                       struct bytes bytes, bool end) {
    union message m = {.output = {.run = run_of(JOB, 1),
                                  .rank = rank,
                                  .stream = stream,
                                  .offset = offset,
                                  .bytes = bytes,
                                  .end = end}};
    manager_say(&c->manager, MESSAGE_OUTPUT, &m);
}

static void say_text(struct scene *c, uint32_t rank, uint64_t offset, const char *text, bool end) {
    say_output(c, rank, 1, offset, bytes_from_str(text), end);
}

/* ---- the client's side ---- */

static void on_answer(void *context, const struct message_answer *a) {
    struct scene *c = context;
    c->answered++;
    c->job = a->job;
}

static void on_up(void *context) {
    struct scene *c = context;
    c->ups++;
    if (c->typing != NULL)
        typing_again(c->typing);
}

static void on_lost(void *context, enum session_loss why) {
    struct scene *c = context;
    c->lost = true;
    c->loss = why;
}

static void on_output(void *context, const struct message_output *m) {
    struct scene *c = context;
    output_take(c->output, m);
}

static void on_drained(void *context, const struct message_drained *m) {
    struct scene *c = context;
    typing_drained(c->typing, m);
}

static void on_trouble(void *context, const char *what, int error) {
    struct scene *c = context;
    (void)what;
    c->trouble = error;
}

static struct scene *scene_with(uint64_t patience, pid_t watcher, bool alive) {
    struct scene *c = calloc(1, sizeof *c);
    CHECK(c != NULL && loop_init(&c->loop) == 0);
    c->answers = true;
    c->ranks = 1;
    manager_init(&c->manager, &c->loop);
    c->manager.heard = heard;
    c->manager.context = c;
    struct session_config config = {.loop = &c->loop,
                                    .cluster = &c->manager.cluster,
                                    .patience_ns = patience,
                                    .context = c,
                                    .up = on_up,
                                    .output = on_output,
                                    .drained = on_drained,
                                    .lost = on_lost};
    c->manager.cluster.watcher = watcher;
    if (alive)
        manager_live(&c->manager);
    c->session = session_new(&config);
    CHECK(c->session != NULL);
    return c;
}

static struct scene *scene_new(void) {
    return scene_with(60 * NS_PER_S, 0, true);
}

static void scene_free(struct scene *c) {
    output_free(c->output);
    typing_free(c->typing);
    session_free(c->session);
    manager_fini(&c->manager);
    loop_fini(&c->loop);
    free(c->typed);
    free(c);
}

static void turn(struct scene *c) {
    if (c->output != NULL)
        output_settle(c->output);
    if (c->typing != NULL)
        typing_settle(c->typing);
    manager_turn(&c->manager, c->session);
}

/* Turns until it holds; a test that waits for what never comes fails. */
#define UNTIL(c, condition)                                      \
    do {                                                         \
        int left = TURNS_MAX;                                    \
        while (!(condition) && left-- > 0 && !(c)->lost) {       \
            loop_wake_at(&(c)->loop, (c)->loop.now + NS_PER_MS); \
            turn(c);                                             \
        }                                                        \
        CHECK(condition);                                        \
    } while (0)

static void submit(struct scene *c) {
    struct message_submit m = {.nodes = 1, .ppn = 1, .procs = 1, .spec = bytes_from_str("spec")};
    CHECK_EQ(session_submit(c->session, &m, on_answer, c), 0);
}

/* ---- requests ---- */

static void test_submit(void) {
    struct scene *c = scene_new();
    submit(c); /* before it is connected */
    UNTIL(c, c->answered == 1);
    CHECK_EQ(c->job, JOB);
    CHECK_EQ(c->submits, 1);
    CHECK_EQ(c->manager.counts.accepted, 1);
    scene_free(c);
}

static void test_answer_lost(void) {
    struct scene *c = scene_new();
    c->answers = false;
    submit(c);
    UNTIL(c, c->submits == 1);
    manager_die(&c->manager);
    UNTIL(c, !session_is_up(c->session));
    c->answers = true;
    manager_live(&c->manager);
    UNTIL(c, c->answered == 1); /* heard() checks that the number is the same */
    CHECK_EQ(c->submits, 2);
    CHECK_EQ(c->ups, 2);
    scene_free(c);
}

static void test_follow_again(void) {
    struct scene *c = scene_new();
    submit(c);
    UNTIL(c, c->answered == 1);
    CHECK_EQ(session_follow(c->session, JOB, 1, true, NULL, NULL), 0);
    for (int i = 0; i < 2; i++) {
        manager_die(&c->manager);
        UNTIL(c, !session_is_up(c->session));
        manager_live(&c->manager);
        UNTIL(c, c->follows == (uint32_t)i + 1);
    }
    CHECK_EQ(c->submits, 1); /* what was answered is not said again */
    session_unfollow(c->session, JOB);
    UNTIL(c, c->others == 1);
    scene_free(c);
}

static void test_nobody(void) {
    struct scene *c = scene_with(50 * NS_PER_MS, 0, false);
    submit(c);
    while (!c->lost)
        turn(c);
    CHECK_EQ(c->loss, SESSION_NOBODY);
    scene_free(c);
}

struct silent {
    struct source listener;
    int fds[8], count;
};

static void on_connection(struct source *source, uint32_t events) {
    struct silent *q = CONTAINER_OF(source, struct silent, listener);
    (void)events;
    while (q->count < 8 && (q->fds[q->count] = address_accept(source->fd)) >= 0)
        q->count++;
}

/* Somebody listens and does not answer, as for a manager that is being started: it is tried again. */
static void test_no_answer(void) {
    struct scene *c = scene_with(60 * NS_PER_S, 0, false);
    struct silent q = {0};
    int fd = address_listen(&c->manager.cluster.manager);
    CHECK_EQ(loop_adopt(&c->loop, &q.listener, fd, on_connection, EPOLLIN), 0);
    while (q.count <= 2 && !c->lost) /* a link has two connections */
        session_turn(c->session);
    CHECK(!c->lost);
    while (q.count > 0)
        close(q.fds[--q.count]);
    loop_close(&c->loop, &q.listener);
    scene_free(c);
}

/* Who watched over the manager is gone: nobody will come, however patient we are. */
static void test_hopeless(void) {
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    struct scene *c = scene_with(3600 * NS_PER_S, child, false);
    for (int left = 10; !c->lost && left > 0; left--)
        turn(c);
    CHECK(c->lost);
    CHECK_EQ(c->loss, SESSION_NOBODY);
    scene_free(c);
}

/* ---- output ---- */

static void begin_output_as(struct scene *c, int fd, bool label, bool late) {
    struct output_config config = {.loop = &c->loop,
                                   .session = c->session,
                                   .cluster = &c->manager.cluster,
                                   .fd = {fd, fd},
                                   .label = label,
                                   .late = late,
                                   .context = c,
                                   .trouble = on_trouble};
    c->output = output_new(&config);
    CHECK(c->output != NULL);
    output_job(c->output, JOB);
    UNTIL(c, session_is_up(c->session) && c->manager.link != 0);
}

static void begin_output(struct scene *c, int fd, bool label) {
    begin_output_as(c, fd, label, false);
}

static size_t read_now(int fd, char *out, size_t cap) {
    size_t len = 0;
    for (ssize_t n; len + 1 < cap && (n = read(fd, out + len, cap - 1 - len)) > 0;)
        len += (size_t)n;
    out[len] = '\0';
    return len;
}

static void test_output_order(void) {
    char text[256];
    int pipe_fds[2];
    struct scene *c = scene_new();
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    begin_output(c, pipe_fds[1], false);
    say_text(c, 0, 3, "de", false); /* too early: dropped */
    say_text(c, 0, 0, "abc", false);
    say_text(c, 1, 0, "X", false);
    UNTIL(c, c->taken[0][0] == 3 && c->taken[1][0] == 1);
    say_text(c, 0, 0, "abcde", false); /* half of it is known */
    UNTIL(c, c->taken[0][0] == 5);
    uint64_t takes = c->takes;
    say_text(c, 0, 0, "abc", false); /* its acknowledgement was lost */
    UNTIL(c, c->takes == takes + 1);
    CHECK_EQ(c->taken[0][0], 5);
    CHECK_EQ(output_received(c->output), 6);
    read_now(pipe_fds[0], text, sizeof text);
    CHECK_STR(text, "abcXde");
    scene_free(c);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void test_labels(void) {
    char text[256];
    int pipe_fds[2];
    struct scene *c = scene_new();
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    begin_output(c, pipe_fds[1], true);
    say_text(c, 0, 0, "one\ntw", false);
    say_text(c, 1, 0, "other", false);
    say_text(c, 0, 6, "o\n", false);
    say_text(c, 1, 5, "", true);
    say_text(c, 2, 0, "last", false);
    UNTIL(c, output_received(c->output) == 17 && c->taken[2][0] == 4);
    output_finish(c->output);
    read_now(pipe_fds[0], text, sizeof text);
    CHECK_STR(text, "0: one\n0: two\n1: other\n2: last\n");
    scene_free(c);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* Others have taken three bytes before; what is new is here before what was left. */
static void test_late(void) {
    char text[256];
    int pipe_fds[2];
    struct scene *c = scene_new();
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    begin_output_as(c, pipe_fds[1], false, true);
    output_gather(c->output);
    say_text(c, 0, 5, "fg", false);
    say_text(c, 0, 3, "de", false);
    UNTIL(c, c->follows == 1); /* it has looked, and asks for all of it again */
    CHECK_EQ(c->takes, 0);
    say_text(c, 0, 5, "fg", false);
    say_text(c, 0, 3, "defg", false);
    UNTIL(c, c->taken[0][0] == 7);
    CHECK_EQ(output_received(c->output), 7);
    read_now(pipe_fds[0], text, sizeof text);
    CHECK_STR(text, "defg");
    scene_free(c);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

/* A reader who does not read: nothing is acknowledged until he does, then everything arrives. */
static void test_slow_reader(void) {
    enum { PARTS = 16, PART = 64 * 1024 };
    static uint8_t part[PART], got[PARTS * PART + 1];
    int pipe_fds[2];
    struct scene *c = scene_new();
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    begin_output(c, pipe_fds[1], false);
    for (int i = 0; i < PARTS; i++) {
        memset(part, 'a' + i, PART);
        say_output(c, 0, 1, (uint64_t)i * PART, bytes_of(part, PART), i + 1 == PARTS);
    }
    UNTIL(c, output_received(c->output) == PARTS * PART);
    CHECK(output_waiting(c->output));
    CHECK(c->taken[0][0] <= 2 * PART);                      /* what the pipe itself holds */
    CHECK((fcntl(pipe_fds[1], F_GETFL) & O_NONBLOCK) == 0); /* others write there too */
    size_t len = 0;
    for (int left = TURNS_MAX; len < PARTS * PART && left > 0; left--) {
        len += read_now(pipe_fds[0], (char *)got + len, sizeof got - len);
        loop_wake_at(&c->loop, c->loop.now + NS_PER_MS);
        turn(c);
    }
    CHECK_EQ(len, PARTS * PART);
    for (size_t i = 0; i < len; i += PART / 2)
        CHECK_EQ(got[i], 'a' + i / PART);
    UNTIL(c, c->taken[0][0] == PARTS * PART);
    scene_free(c);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void test_reader_gone(void) {
    int pipe_fds[2];
    struct scene *c = scene_new();
    CHECK_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
    begin_output(c, pipe_fds[1], false);
    close(pipe_fds[0]);
    say_text(c, 0, 0, "nobody reads this", false);
    UNTIL(c, c->trouble != 0);
    CHECK(c->trouble == -EPIPE || c->trouble == -ENXIO);
    UNTIL(c, c->taken[0][0] == 17); /* what goes nowhere does not hold the job up */
    scene_free(c);
    close(pipe_fds[1]);
}

/* ---- input ---- */

static void begin_typing(struct scene *c, int fd, uint32_t rank) {
    struct typing_config config = {
        .loop = &c->loop, .session = c->session, .fd = fd, .rank = rank, .procs = c->ranks};
    c->typing = typing_new(&config);
    CHECK(c->typing != NULL);
    UNTIL(c, session_is_up(c->session) && c->manager.link != 0);
    typing_begin(c->typing, run_of(JOB, 1));
}

static int file_of(size_t len) {
    char path[] = "/tmp/storm-typing-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    CHECK(fd >= 0);
    unlink(path);
    for (size_t i = 0; i < len; i += 4096) {
        uint8_t block[4096];
        memset(block, (int)(i / 4096 % 251), sizeof block);
        CHECK_EQ(write(fd, block, sizeof block), (ssize_t)sizeof block);
    }
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static void check_typed(const struct scene *c, size_t len) {
    CHECK_EQ(c->typed_len, len);
    CHECK(c->typed_end);
    for (size_t i = 0; i < len && i < c->typed_len; i += 4096)
        if (!CHECK_EQ(c->typed[i], i / 4096 % 251))
            return;
}

/* heard_typed() checks that no more is on its way than the window allows. */
static void test_typing(void) {
    enum { LEN = 4 << 20 };
    struct scene *c = scene_new();
    int fd = file_of(LEN);
    c->drains = true;
    begin_typing(c, fd, 0);
    UNTIL(c, c->typed_end);
    check_typed(c, LEN);
    scene_free(c);
    close(fd);
}

/* The manager dies with what was typed; all ranks must have it before it is forgotten. */
static void test_typing_again(void) {
    enum { LEN = 1 << 20 };
    struct scene *c = scene_new();
    int fd = file_of(LEN);
    c->ranks = 3;
    begin_typing(c, fd, RANK_ALL);
    UNTIL(c, c->typed_len == 256 * 1024); /* and no further: nobody drains */
    manager_die(&c->manager);
    UNTIL(c, !session_is_up(c->session));
    c->typed_len = 0; /* as if it had never come */
    c->furthest = 0;
    c->drains = true;
    manager_live(&c->manager);
    UNTIL(c, c->typed_end);
    check_typed(c, LEN);
    scene_free(c);
    close(fd);
}

static void test_reads_no_more(void) {
    struct scene *c = scene_new();
    int fd = file_of(1 << 20);
    begin_typing(c, fd, 0);
    UNTIL(c, c->typed_len == 256 * 1024);
    union message d = {.drained = {.run = run_of(JOB, 1), .rank = 0, .offset = UINT64_MAX}};
    manager_say(&c->manager, MESSAGE_DRAINED, &d);
    submit(c);
    UNTIL(c, c->answered == 1);
    for (int i = 0; i < 20; i++) {
        loop_wake_at(&c->loop, c->loop.now + NS_PER_MS);
        turn(c);
    }
    CHECK_EQ(c->typed_len, 256 * 1024);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 256 * 1024);
    scene_free(c);
    close(fd);
}

static void test_possible(void) {
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(!typing_possible(null));
    CHECK(!typing_possible(-1));
    int fd = file_of(0);
    CHECK(typing_possible(fd));
    close(null);
    close(fd);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    TEST(test_submit);
    TEST(test_answer_lost);
    TEST(test_follow_again);
    TEST(test_nobody);
    TEST(test_no_answer);
    TEST(test_hopeless);
    TEST(test_output_order);
    TEST(test_labels);
    TEST(test_late);
    TEST(test_slow_reader);
    TEST(test_reader_gone);
    TEST(test_typing);
    TEST(test_typing_again);
    TEST(test_reads_no_more);
    TEST(test_possible);
    return tap_finish();
}
