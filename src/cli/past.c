/* SPDX-License-Identifier: MIT */
/* Jobs that are over: see past.h. */
#include "cli/past.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "os/companion.h"
#include "cli/complain.h"
#include "wire/row.h"

enum { TOTAL_BYTES = 4 };

/* ---- the log ---- */

static int take_output(int fd, struct contact_rows *ret) {
    size_t cap = 0;
    for (;;) {
        if (ret->len == cap) {
            cap = cap ? 2 * cap : 64 * KIB;
            ret->at = realloc(ret->at, cap);
            ASSERT(ret->at != NULL);
        }
        ssize_t n = read(fd, ret->at + ret->len, cap - ret->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        ret->len += (size_t)n;
    }
}

static int start(char *const argv[], int out, pid_t *ret_pid) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    int r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn(ret_pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

static int run(char *const argv[], struct contact_rows *ret) {
    int ends[2], status = 1;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int r = start(argv, ends[1], &pid);
    close(ends[1]);
    if (r == 0)
        r = take_output(ends[0], ret);
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return r < 0 ? r : status != 0 ? -EIO : 0;
}

static int read_log(const char *folder, uint32_t most, uint32_t only, struct contact_rows *ret) {
    char program[PATH_MAX], path[CLUSTER_PATH_MAX], number[16], job[16];
    char option[] = "--history";
    int r = companion_find("storm-mm", program, sizeof program);
    snprintf(path, sizeof path, "%s", folder);
    snprintf(number, sizeof number, "%" PRIu32, most);
    snprintf(job, sizeof job, "%" PRIu32, only);
    if (r == 0)
        r = run((char *const[]){program, option, path, number, job, NULL}, ret);
    if (r < 0 || ret->len < TOTAL_BYTES) {
        complain("ps", "the log of the cluster cannot be read: %s; see %s",
                 strerror(r < 0 ? -r : EIO), folder);
        return STATUS_STORM;
    }
    ret->total = load_le32(ret->at);
    ret->len -= TOTAL_BYTES;
    memmove(ret->at, ret->at + TOTAL_BYTES, ret->len);
    return 0;
}

/* ---- the manager ---- */

/* The first that the log does not know to be over; 0: all are. */
static uint32_t first_open(const struct contact_rows *rows) {
    struct job_row row;
    size_t at = 0;
    while (job_row_next(bytes_of(rows->at, rows->len), &at, &row) == 1)
        if (!state_over((enum job_state)row.state))
            return row.job;
    return 0;
}

static uint32_t behind_last(const struct contact_rows *rows) {
    struct job_row row;
    size_t at = 0;
    uint32_t next = 0;
    while (job_row_next(bytes_of(rows->at, rows->len), &at, &row) == 1)
        next = row.job + 1;
    return next;
}

static int ask_manager(const char *cluster, uint32_t from, struct contact_rows *live) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct message_ask ask = {.subject = SUBJECT_JOBS, .job = from};
    struct contact c;
    int r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    do {
        r = contact_ask(&c, &ask, live);
        ask.job = behind_last(live);
    } while (r == 0 && !live->last && ask.job != 0);
    contact_close(&c);
    return r;
}

static void append(struct contact_rows *to, size_t *cap, const struct job_row *row) {
    long len;
    while ((len = job_row_encode(row, room_of(to->at + to->len, *cap - to->len))) < 0) {
        *cap = *cap ? 2 * *cap : 64 * KIB;
        to->at = realloc(to->at, *cap);
        ASSERT(to->at != NULL);
    }
    to->len += (size_t)len;
}

/* Both are in the order of numbers. What the log has as over is so. */
static void merge(struct contact_rows *rows, const struct contact_rows *live) {
    struct contact_rows both = {.total = rows->total};
    struct job_row row, now = {0};
    size_t at = 0, live_at = 0, cap = 0;
    while (job_row_next(bytes_of(rows->at, rows->len), &at, &row) == 1) {
        while (now.job < row.job &&
               job_row_next(bytes_of(live->at, live->len), &live_at, &now) == 1)
            continue;
        bool newer = now.job == row.job && !state_over((enum job_state)row.state);
        append(&both, &cap, newer ? &now : &row);
    }
    free(rows->at);
    *rows = both;
}

int past_fetch(const char *cluster, uint32_t most, struct contact_rows *ret) {
    char folder[CLUSTER_PATH_MAX], log[CLUSTER_PATH_MAX + 16];
    struct contact_rows live = {0};
    struct cluster_trouble trouble;
    struct cluster c;
    if (cluster_folder(cluster_pick(cluster), folder, sizeof folder) < 0)
        return contact_find(&c, cluster); /* which complains */
    snprintf(log, sizeof log, "%s/state.db", folder);
    if (access(log, F_OK) < 0)
        return contact_find(&c, cluster);
    int r = read_log(folder, most, 0, ret);
    uint32_t from = r == 0 ? first_open(ret) : 0;
    bool runs = from != 0 && cluster_load(&c, folder, &trouble) == 0;
    if (runs)
        cluster_free(&c);
    if (runs && ask_manager(cluster, from, &live) == 0)
        merge(ret, &live);
    free(live.at);
    return r;
}

bool past_job(const char *cluster, uint32_t job, struct contact_rows *ret, struct job_row *row) {
    char folder[CLUSTER_PATH_MAX];
    size_t at = 0;
    return cluster_folder(cluster, folder, sizeof folder) == 0 &&
           read_log(folder, 0, job, ret) == 0 &&
           job_row_next(bytes_of(ret->at, ret->len), &at, row) == 1;
}
