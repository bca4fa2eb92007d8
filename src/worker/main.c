/* SPDX-License-Identifier: MIT */
/* storm-worker: one of the workers of storm work. A job of one process.
 *
 * It joins the server that STORM_WODI names and runs the command lines that it is given, one at a time, until there are no
 * more. When the server is gone the command that runs is ended, as its result is nobody's: another worker has it, or nobody
 * wants it any more. Then the server is waited for, a little, and that was it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "client/wodi_link.h"
#include "storm/wodi.h"
#include "wodi/history.h"
#include "worker/runner.h"

enum { PATIENCE_S = 10 };

extern char **environ;

struct worker {
    struct wodi_link link;
    struct wodi_bytes out;
    struct runner runner;
    const char *node;
    char *setting;      /* as it came */
    char **environment; /* strings of it, and two of ours */
    char step[32];
    char trouble[256]; /* why commands cannot be run; "": they can */
    char *line;
    size_t line_cap;
    uint8_t *result;
};

/* ---- the connection ---- */

static int greet(struct worker *w) {
    int status = wodi_link_connect(&w->link);
    w->out.from = w->out.len = 0;
    struct word hello = {.kind = (uint8_t)WORD_WORKER,
                         .token = {w->link.token[0], w->link.token[1]},
                         .ns = SPEED_ONE};
    if (status == 0 && !wodi_bytes_say(&w->out, &hello))
        status = -ENOMEM;
    return status;
}

/* While a command runs: what comes is heard later, that the server is gone is heard now. */
static bool look(void *context) {
    struct worker *w = context;
    return wodi_link_exchange(&w->link, &w->out, false);
}

/* ---- what every command finds ---- */

static size_t count_strings(struct bytes b) {
    size_t count = 0;
    for (size_t i = 0; i < b.len; i++)
        count += b.at[i] == 0;
    return count;
}

/* What commands hear from us; and what a job's processes hear from their launcher: storm work may be one of those, its commands are
 * not. */
static bool is_ours(const char *string) {
    static const char *const names[] = {
        "STEP=",    "NODE=",    "JOB_ID=",       "JOB_DIR=",      "RANK=",        "SIZE=",
        "NODE_ID=", "NODES=",   "LOCAL_RANK=",   "LOCAL_SIZE=",   "ARRAY_INDEX=", "PETITION=",
        "ADDRESS=", "PROGRAM=", "PROGRAM_RANK=", "PROGRAM_SIZE=", "CARMI_PARENT="};
    if (strncmp(string, "STORM_", 6) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(string + 6, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int make_environment(struct worker *w, struct bytes strings) {
    static char node[300];
    char **list = calloc(count_strings(strings) + 3, sizeof *list);
    size_t count = 0;
    if (!list)
        return -ENOMEM;
    for (size_t at = 0; at < strings.len; at += strlen((const char *)strings.at + at) + 1)
        if (!is_ours((const char *)strings.at + at))
            list[count++] = (char *)strings.at + at;
    snprintf(node, sizeof node, "STORM_NODE=%s", w->node);
    list[count++] = node;
    list[count] = w->step;
    free(w->environment);
    w->environment = environ = list;
    return 0;
}

/* The server may tell it again, after a new connection. */
static int settle(struct worker *w, struct bytes told) {
    struct chore_setting s;
    char *copy = malloc(told.len + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, told.at, told.len);
    if (!chore_setting_read(&s, bytes_of(copy, told.len))) {
        free(copy);
        return -EPROTO;
    }
    w->runner.limit_ns = s.limit_ns;
    w->trouble[0] = 0;
    if (chdir((const char *)s.folder.at) < 0)
        snprintf(w->trouble, sizeof w->trouble,
                 "storm: %.150s: %s; name a folder that nodes have\n", (const char *)s.folder.at,
                 strerror(errno));
    int status = make_environment(w, s.environment);
    free(w->setting);
    w->setting = copy;
    return status;
}

/* ---- steps ---- */

static int copy_line(struct worker *w, struct bytes line) {
    if (w->line_cap <= line.len) {
        free(w->line);
        w->line_cap = 2 * line.len + 256;
        w->line = malloc(w->line_cap);
        if (!w->line)
            return -ENOMEM;
    }
    memcpy(w->line, line.at, line.len);
    w->line[line.len] = 0;
    return 0;
}

/* A command that could not be begun has a result as well, the shell's. */
static void cannot(struct worker *w, int error, struct chore_result *r) {
    enum { CANNOT = 126 };
    if (!w->trouble[0])
        snprintf(w->trouble, sizeof w->trouble, "storm: %.150s: %s\n", w->line, strerror(-error));
    r->end = (uint8_t)CHORE_EXITED;
    r->value = CANNOT;
    r->err = bytes_from_str(w->trouble);
}

static int perform(struct worker *w, const struct word *step) {
    struct chore_result r = {0};
    uint32_t id = step->id;
    bool useless = w->trouble[0] != 0;
    snprintf(w->step, sizeof w->step, "STORM_STEP=%llu",
             (unsigned long long)(step->step & CHORE_LINE_MASK));
    int status = copy_line(w, step->body);
    if (status < 0)
        return status;
    w->runner.watched = w->link.fd;
    status = useless ? -ENOENT : runner_run(&w->runner, w->line, &r);
    if (w->link.fd < 0)
        return 0; /* nobody waits for it */
    if (status < 0)
        cannot(w, status, &r);
    r.node = bytes_from_str(w->node);
    struct word word = {
        .kind = (uint8_t)WORD_RESULT, .id = id, .status = chore_status(&r), .ns = r.ns};
    size_t len = chore_result_write(&r, room_of(w->result, WODI_BYTES_MAX));
    word.body = bytes_of(w->result, len);
    if (!useless)
        w->trouble[0] = 0;
    if (!wodi_bytes_say(&w->out, &word))
        return -ENOMEM;
    wodi_link_send(&w->link, &w->out);
    return 0;
}

static int hear(struct worker *w, const struct word *word) {
    static const struct word pong = {.kind = (uint8_t)WORD_PONG};
    switch ((enum word_kind)word->kind) {
    case WORD_REFUSED:
        return word->status == ETIMEDOUT ? (wodi_link_drop(&w->link), 0) : -(int)word->status;
    case WORD_PING:
        return wodi_bytes_say(&w->out, &pong) ? 0 : -ENOMEM;
    case WORD_INIT:
        return settle(w, word->body);
    case WORD_STEP:
        return perform(w, word);
    case WORD_OVER:
        return 1;
    default:
        return 0;
    }
}

/* 1: there is no more to do, 0: the server has gone and does not come back; or -errno. */
static int work(struct worker *w) {
    struct word word;
    for (int status;;) {
        if (w->link.fd < 0 && greet(w) < 0)
            return 0;
        int here = wodi_link_next(&w->link, &word);
        if (here < 0)
            return -EPROTO;
        if (here == 0)
            wodi_link_exchange(&w->link, &w->out, true);
        else if ((status = hear(w, &word)) != 0)
            return status;
    }
}

int main(void) {
    static struct worker w;
    const char *node = getenv("STORM_NODE");
    char name[CHORE_NODE_MAX + 1];
    snprintf(name, sizeof name, "%s", node ? node : "");
    w.node = name;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing > STDIN_FILENO)
        dup2(nothing, STDIN_FILENO); /* commands read nothing */
    w.runner.look = look;
    w.runner.context = &w;
    w.runner.most = WODI_BYTES_MAX - CHORE_HEAD_MAX;
    w.result = malloc(WODI_BYTES_MAX);
    int status = w.result ? wodi_link_init(&w.link, NULL, PATIENCE_S) : -ENOMEM;
    if (status == 0)
        status = work(&w);
    if (status < 0)
        fprintf(stderr, "storm-worker: %s\n", strerror(-status));
    wodi_link_fini(&w.link);
    runner_fini(&w.runner);
    free(w.out.at);
    free(w.line);
    free(w.result);
    free(w.setting);
    free(w.environment);
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
