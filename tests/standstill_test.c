/* SPDX-License-Identifier: MIT */
/* Somebody does not die but stands still: the command that takes a job's output, or a node's manager.
 *
 * A command that is stopped while much is written holds back its own job only; when it goes on, nothing is
 * missing. A node whose manager stands still cannot confirm that a job has ended: Ctrl-C gives the prompt
 * back nevertheless, and says where the job is still ending; its processors are held until the node
 * confirms, or until its launcher, which nobody renews the lease of, has ended everything by itself.
 *
 * STORM_STANDSTILL: seconds for which the command stands still (1), and MiB for each second (100). */
#include "base/assert.h"
#include "stage.h"

enum { NODES = 8, PES = 9, PROCS = 64, SECONDS = 1, MIB_A_SECOND = 100 };

#define LIMIT_NS (60 * NS_PER_S)

static const char *storm_path;

/* ---- in the job ---- */

/* standstill_test --write LINES */
static int write_lines(char **argv) {
    stage_put_lines((uint32_t)atoi(getenv("STORM_RANK")), (uint32_t)atoi(argv[2]));
    return 0;
}

/* ---- reading labelled lines ---- */

struct reader {
    int fd;
    uint64_t bytes;
    uint32_t next[PROCS]; /* line of each rank */
    uint32_t wrong;
    char held[128]; /* the beginning of a line */
    size_t held_len;
};

static void read_line(struct reader *r, const char *line, size_t len) {
    char want[STAGE_LINE + 1];
    const char *colon = memchr(line, ':', len);
    uint32_t rank = (uint32_t)atoi(line);
    if (colon == NULL || rank >= PROCS || len - (size_t)(colon + 2 - line) != STAGE_LINE) {
        r->wrong++;
        return;
    }
    stage_line(want, rank, r->next[rank]++);
    r->wrong += memcmp(colon + 2, want, STAGE_LINE) != 0;
    r->bytes += STAGE_LINE;
}

static void read_text(struct reader *r, const char *text, size_t len) {
    for (const char *end = text + len; text < end;) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t part = (size_t)((stop == NULL ? end : stop + 1) - text);
        if (r->held_len + part >= sizeof r->held) {
            r->wrong++;
            r->held_len = 0;
        } else {
            memcpy(r->held + r->held_len, text, part);
            r->held_len += part;
            r->held[r->held_len] = '\0';
        }
        if (stop != NULL) {
            read_line(r, r->held, r->held_len);
            r->held_len = 0;
        }
        text += part;
    }
}

/* Until so many bytes have come, or the end, or that moment; false at the end. */
static bool read_until(struct reader *r, uint64_t bytes, uint64_t until_ns) {
    static char text[256 * 1024];
    while (r->bytes < bytes && clock_ns() < until_ns) {
        struct pollfd p = {.fd = r->fd, .events = POLLIN};
        if (poll(&p, 1, 100) <= 0)
            continue;
        ssize_t got = read(r->fd, text, sizeof text);
        if (got <= 0)
            return false;
        read_text(r, text, (size_t)got);
    }
    return true;
}

/* ---- the command stands still ---- */

/* Another job on the same nodes, with output of its own. */
static void check_neighbour(struct stage *s) {
    static char said[STAGE_TEXT];
    int status = stage_storm(s, said, "run", "-N", "8", "-n", "8", s->self, "--write", "20", NULL);
    CHECK_EQ(status, 0);
    CHECK_EQ(strlen(said), 8 * 20 * STAGE_LINE);
}

static pid_t begin_flood(struct stage *s, char *lines, int *ret_fd) {
    char path[STAGE_PATH + 16];
    snprintf(path, sizeof path, "%s/flood", s->home);
    if (mkfifo(path, 0600) < 0)
        return -errno;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stage_io io = {.out = path};
    *ret_fd = fd;
    return stage_begin(s, &io, "run", "--size", "8:8:64", "-l", s->self, "--write", lines, NULL);
}

static void flood(struct stage *s, uint64_t seconds) {
    struct reader r = {0};
    char lines[24];
    uint64_t total = seconds * MIB_A_SECOND * MIB / STAGE_LINE / PROCS;
    snprintf(lines, sizeof lines, "%" PRIu64, total);
    total *= (uint64_t)PROCS * STAGE_LINE;
    uint64_t start = clock_ns();
    pid_t client = begin_flood(s, lines, &r.fd);
    if (!CHECK(client > 0))
        return;
    CHECK(read_until(&r, total / 4, start + LIMIT_NS)); /* it is in full flow */
    kill(client, SIGSTOP);
    uint64_t before = clock_ns();
    check_neighbour(s);
    uint64_t calm = clock_ns() - before;
    while (clock_ns() < before + seconds * NS_PER_S)
        poll(NULL, 0, 50);
    kill(client, SIGCONT);
    uint64_t after = clock_ns();
    CHECK(!read_until(&r, UINT64_MAX, after + LIMIT_NS + seconds * NS_PER_S));
    CHECK_EQ(stage_wait(client, clock_ns() + LIMIT_NS), 0);
    CHECK_EQ(r.bytes, total);
    CHECK_EQ(r.wrong, 0);
    printf("## %" PRIu64 " MiB of 64 processes, the command stopped for %" PRIu64
           " s: complete; a neighbour took %.2f s meanwhile; the rest came in %.1f s\n",
           total / MIB, seconds, (double)calm / 1e9, (double)(clock_ns() - after) / 1e9);
    close(r.fd);
}

static void test_a_command_that_stands_still_loses_nothing(void) {
    struct stage s;
    stage_init(&s, storm_path);
    if (stage_up(&s, NODES, PES, "30s"))
        flood(&s, stage_number("STORM_STANDSTILL", SECONDS));
    stage_down(&s);
    stage_leave(&s, tap_current_fail);
}

/* ---- a node's manager stands still ---- */

static bool holds(struct stage *s, const char *words) {
    static char said[STAGE_TEXT];
    return stage_storm(s, said, "nodes", "--json", NULL) == 0 && strstr(said, words) != NULL;
}

/* Waits until all is as if nothing had been. */
static void check_calm(struct stage *s) {
    static char said[STAGE_TEXT];
    uint64_t end = clock_ns() + LIMIT_NS;
    bool calm = false;
    while (!calm && clock_ns() < end) {
        calm = stage_storm(s, said, "ps", "--json", NULL) == 0 && strncmp(said, "[]", 2) == 0 &&
               holds(s, "\"n1\",\"state\":\"up\",\"pes\":2,\"used\":0,") &&
               stage_count(s, stage_owns) == 0;
        if (!calm)
            poll(NULL, 0, 100);
    }
    if (CHECK(calm))
        return;
    stage_print("storm ps", said);
    stage_storm(s, said, "nodes", NULL);
    stage_print("storm nodes", said);
    stage_log(s);
}

/* A job on four nodes, of which n1's manager stands still, and Ctrl-C twice. */
static void interrupt_twice(struct stage *s, pid_t manager) {
    static char said[STAGE_TEXT];
    char path[STAGE_PATH + 16], words[64];
    snprintf(path, sizeof path, "%s/err", s->home);
    struct stage_io io = {.err = path};
    pid_t client = stage_begin(s, &io, "run", "-N", "4", "/bin/sleep", "600", NULL);
    for (int i = 0; i < 200 && stage_count(s, stage_owns) < 4; i++)
        poll(NULL, 0, 50);
    CHECK_EQ(stage_count(s, stage_owns), 4);
    kill(manager, SIGSTOP);
    kill(client, SIGINT);
    poll(NULL, 0, 300); /* as a person would */
    uint64_t start = clock_ns();
    kill(client, SIGINT);
    int status = stage_wait(client, clock_ns() + LIMIT_NS);
    uint64_t took = clock_ns() - start;
    CHECK_EQ(status, 125);
    CHECK(took < 3 * NS_PER_S); /* a second, on a machine that has nothing else to do */
    printf("## Ctrl-C twice while a node stands still: the prompt is back after %.2f s\n",
           (double)took / 1e9);
    stage_read(path, said, sizeof said);
    snprintf(words, sizeof words, "still ending on n1");
    if (!CHECK(strstr(said, words) != NULL))
        stage_print("it said", said);
    stage_storm(s, said, "ps", "--json", NULL);
    if (!CHECK(strstr(said, "\"state\":\"ending\"") != NULL))
        stage_print("storm ps", said);
    CHECK(holds(s, "\"used\":1,"));
}

static void test_a_node_that_goes_on_confirms(void) {
    struct stage s;
    stage_init(&s, storm_path);
    if (stage_up(&s, 4, 2, "30s")) {
        pid_t manager = stage_daemon(&s, "storm-n1");
        interrupt_twice(&s, manager);
        kill(manager, SIGCONT);
        check_calm(&s);
    }
    stage_down(&s);
    stage_leave(&s, tap_current_fail);
}

static void test_a_node_that_does_not_loses_its_lease(void) {
    struct stage s;
    stage_init(&s, storm_path);
    if (stage_up(&s, 4, 2, "30s")) {
        static char said[STAGE_TEXT];
        pid_t manager = stage_daemon(&s, "storm-n1");
        interrupt_twice(&s, manager);
        uint64_t end = clock_ns() + LIMIT_NS;
        bool over = false;
        while (!over && clock_ns() < end) {
            over = stage_storm(&s, said, "ps", "--json", NULL) == 0 && strncmp(said, "[]", 2) == 0;
            uint32_t left = stage_count(&s, stage_owns);
            CHECK(!over || left == 0); /* over means: nothing is left */
            poll(NULL, 0, 200);
        }
        CHECK(over);
        CHECK_EQ(stage_storm(&s, said, "run", "-N", "3", "/bin/true", NULL), 0);
        kill(manager, SIGCONT);
        check_calm(&s);
        CHECK_EQ(stage_storm(&s, said, "run", "-N", "4", "/bin/true", NULL), 0);
    }
    stage_down(&s);
    stage_leave(&s, tap_current_fail);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_lines(argv);
    if (argc != 2) {
        fprintf(stderr, "usage: standstill_test STORM\n");
        return 2;
    }
    storm_path = argv[1];
    TEST(test_a_command_that_stands_still_loses_nothing);
    TEST(test_a_node_that_goes_on_confirms);
    TEST(test_a_node_that_does_not_loses_its_lease);
    return tap_finish();
}
