/* SPDX-License-Identifier: MIT */
/* Jobs as commands name and show them: see jobs.h. */
#include "cli/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/complain.h"
#include "cli/options.h"
#include "cli/past.h"
#include "cli/use.h"
#include "cli/when.h"

enum { JOBS_MAX = 16000 };

/* ---- numbers ---- */

static bool is_among(const struct joblist *l, uint32_t count, uint32_t job) {
    for (uint32_t i = 0; i < count; i++)
        if (l->at[i] == job)
            return true;
    return false;
}

/* Whoever is named twice is meant once. */
static int add(struct joblist *l, const char *command, uint32_t first, uint32_t last) {
    uint32_t before = l->count;
    if (last - first >= JOBS_MAX - l->count)
        return complain(command, "that are too many jobs at once; at most %d", JOBS_MAX);
    for (uint32_t job = first;; job++) {
        if (l->count == l->cap) {
            l->cap = l->cap ? l->cap * 2 : 16;
            l->at = realloc(l->at, l->cap * sizeof *l->at);
            ASSERT(l->at != NULL);
        }
        if (!is_among(l, before, job))
            l->at[l->count++] = job;
        if (job == last)
            return 0;
    }
}

static int read_one(struct joblist *l, const char *command, const char *text) {
    char first[16];
    uint32_t from, to;
    const char *dash = strchr(text, '-');
    size_t len = dash != NULL ? (size_t)(dash - text) : strlen(text);
    snprintf(first, sizeof first, "%.*s", (int)(len < sizeof first ? len : sizeof first), text);
    int r = contact_job(command, len < sizeof first ? first : text, &from);
    to = from;
    if (r == 0 && dash != NULL)
        r = contact_job(command, dash + 1, &to);
    if (r == 0 && to < from)
        r = complain(command, "\"%s\" runs backwards", text);
    return r == 0 ? add(l, command, from, to) : r;
}

int joblist_read(struct joblist *l, const char *command, char **argv) {
    *l = (struct joblist){0};
    int r = 0;
    if (*argv == NULL)
        return complain(command, "which job? see: storm ps");
    for (; r == 0 && *argv != NULL; argv++)
        r = read_one(l, command, *argv);
    if (r != 0)
        joblist_fini(l);
    return r;
}

void joblist_fini(struct joblist *l) {
    free(l->at);
    *l = (struct joblist){0};
}

struct bytes joblist_bytes(const struct joblist *l) {
    uint8_t *at = malloc((size_t)l->count * 4);
    ASSERT(at != NULL);
    for (uint32_t i = 0; i < l->count; i++)
        store_le32(at + (size_t)i * 4, l->at[i]);
    return bytes_of(at, (size_t)l->count * 4);
}

/* ---- times ---- */

struct moment moment_of(uint64_t wall_ns) {
    struct moment m = {"-"};
    struct tm parts;
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    if (wall_ns != 0 && localtime_r(&seconds, &parts) != NULL)
        strftime(m.text, sizeof m.text, "%Y-%m-%d %H:%M:%S", &parts);
    return m;
}

static uint64_t wall_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

struct moment job_duration(const struct job_row *r) {
    struct moment m = {""};
    uint64_t end = r->ended_ns != 0 ? r->ended_ns : wall_now();
    if (r->started_ns != 0)
        units_format_duration(end > r->started_ns ? end - r->started_ns : 0, m.text, sizeof m.text);
    return m;
}

/* ---- rows ---- */

void job_json(struct json *j, const struct job_row *r) {
    static const char *const kinds[JOB_KINDS] = {
        [JOB_RUN] = "run", [JOB_BATCH] = "batch", [JOB_ALLOC] = "alloc", [JOB_STEP] = "step"};
    json_open(j, NULL, '{');
    json_number(j, "id", r->job);
    json_text(j, "name", r->name);
    json_word(j, "state", state_name((enum job_state)r->state));
    json_word(j, "kind", kinds[r->kind]);
    json_number(j, "procs", r->procs);
    json_number(j, "nodes", r->nodes);
    json_number(j, "ppn", r->ppn);
    json_text(j, "node_list", r->node_list);
    json_signed(j, "priority", r->priority);
    if (r->array != 0)
        json_number(j, "array_index", r->array);
    json_number(j, "parent", r->parent);
    json_number(j, "hosts", r->hosts);
    if (state_over((enum job_state)r->state))
        json_number(j, "exit_status", r->status);
    else
        json_null(j, "exit_status");
    json_time(j, "submit_time", r->submitted_ns);
    if (r->begin_ns != 0)
        json_time(j, "begin_time", r->begin_ns);
    json_time(j, "start_time", r->started_ns);
    json_time(j, "end_time", r->ended_ns);
    json_time(j, "expected_start", r->expected_ns);
    if (r->reservation.len > 0)
        json_text(j, "reservation", r->reservation);
    if (r->limit_ns != 0)
        json_time(j, "time_limit", r->limit_ns);
    char words[WHEN_WORDS_MAX];
    json_word(j, "why", when_words(r->why, when_now(), words));
    use_json(j, r);
    json_close(j, '}');
}

int job_fetch(struct contact *c, uint32_t job, enum subject subject, struct contact_rows *rows,
              struct job_row *ret) {
    struct message_ask ask = {.subject = (uint8_t)subject, .job = job, .most = 1};
    size_t at = 0;
    *rows = (struct contact_rows){0};
    int r = contact_ask(c, &ask, rows);
    if (r != 0)
        return r;
    bool known = job_row_next(bytes_of(rows->at, rows->len), &at, ret) == 1;
    if (known && (!state_over((enum job_state)ret->state) || ret->started_ns == 0))
        return 0;
    struct contact_rows past = {0};
    struct job_row row;
    if (past_job(c->cluster.name, job, &past, &row)) { /* the log knows where it ran, too */
        free(rows->at);
        *rows = past;
        *ret = row;
        return 0;
    }
    free(past.at);
    if (known)
        return 0;
    complain(NULL, "there is no job %" PRIu32 "; see: storm ps", job);
    return STATUS_STORM;
}
