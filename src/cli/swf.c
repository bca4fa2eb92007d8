/* SPDX-License-Identifier: MIT */
/* Jobs that have run, as the Standard Workload Format has them: see swf.h. */
#include "cli/swf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "os/release.h"

bool swf_scale(const char *text, uint64_t *ret_x1000) {
    char *end;
    double scale = strtod(text, &end);
    if (end == text || *end != '\0' || !(scale >= 0.001 && scale <= 1e6))
        return false;
    *ret_x1000 = (uint64_t)(scale * (double)SWF_SCALE_ONE + 0.5);
    return true;
}

/* ---- rows ---- */

/* Those that are wanted, as bits by number. */
struct wanted {
    uint8_t *bits; /* NULL: all */
    uint32_t last;
};

static int wanted_init(struct wanted *w, const struct joblist *only) {
    *w = (struct wanted){0};
    if (only == NULL)
        return 0;
    for (uint32_t i = 0; i < only->count; i++)
        w->last = only->at[i] > w->last ? only->at[i] : w->last;
    w->bits = calloc((size_t)w->last / 8 + 1, 1);
    if (w->bits == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < only->count; i++)
        w->bits[only->at[i] / 8] |= (uint8_t)(1u << only->at[i] % 8);
    return 0;
}

static bool is_wanted(const struct wanted *w, uint32_t job) {
    return w->bits == NULL || (job <= w->last && (w->bits[job / 8] >> job % 8 & 1) != 0);
}

static uint64_t arrival_of(const struct job_row *r) {
    return r->begin_ns > r->submitted_ns ? r->begin_ns : r->submitted_ns;
}

/* SWF knows 1: it ended well, 0: it failed, 5: it was taken away. */
static int status_of(const struct job_row *r) {
    return r->state == STATE_DONE ? 1 : r->state == STATE_KILLED ? 5 : 0;
}

static uint64_t kilobytes(uint64_t bytes) {
    return bytes / KIB + (bytes % KIB != 0);
}

static struct swf_job job_of(const struct job_row *r, const struct swf_config *c) {
    bool whole = (r->flags & JOB_EXCLUSIVE) != 0 && c->node_pes > 0;
    struct swf_job j = {.job = r->job,
                        .arrival_ns = arrival_of(r),
                        .start = r->started_ns, /* for now of the calendar */
                        .end = r->ended_ns,
                        .ran = r->started_ns != 0,
                        .interactive = r->kind != JOB_BATCH,
                        .pes = r->nodes * (whole ? c->node_pes : r->ppn),
                        .limit = r->limit_ns,
                        .status = status_of(r)};
    j.measured = j.ran && r->measured && j.pes > 0;
    if (j.measured) {
        j.cpu = (r->usage.user_ns + r->usage.system_ns) / j.pes; /* for now in nanoseconds */
        j.memory_kb = kilobytes(r->usage.peak_bytes) * r->procs / j.pes;
    }
    return j;
}

static int add(struct swf *s, size_t *cap, const struct job_row *r, const struct swf_config *c) {
    if (s->count == *cap) {
        *cap = *cap == 0 ? 256 : 2 * *cap;
        struct swf_job *jobs = reallocarray(s->jobs, *cap, sizeof *jobs);
        if (jobs == NULL)
            return -ENOMEM;
        s->jobs = jobs;
    }
    s->jobs[s->count++] = job_of(r, c);
    return 0;
}

/* Steps run on what their allocation has. */
static int take_rows(struct swf *s, struct bytes rows, const struct swf_config *c,
                     const struct wanted *w) {
    struct job_row row;
    size_t at = 0, cap = 0;
    int r = 0, more;
    while (r == 0 && (more = job_row_next(rows, &at, &row)) != 0) {
        if (more < 0)
            return more;
        if (row.kind == JOB_STEP || !is_wanted(w, row.job))
            continue;
        if (state_over((enum job_state)row.state))
            r = add(s, &cap, &row, c);
        else
            s->open++;
    }
    return r;
}

static int earlier(const void *a, const void *b) {
    const struct swf_job *x = a, *y = b;
    if (x->arrival_ns != y->arrival_ns)
        return x->arrival_ns < y->arrival_ns ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

/* ---- times ---- */

static uint64_t stretched(uint64_t ns, uint64_t scale_x1000) {
    return (uint64_t)((unsigned __int128)ns * scale_x1000 / SWF_SCALE_ONE);
}

static uint64_t since(const struct swf *s, uint64_t wall_ns, uint64_t scale_x1000) {
    uint64_t ns = wall_ns > s->origin_ns ? wall_ns - s->origin_ns : 0;
    return (stretched(ns, scale_x1000) + NS_PER_S / 2) / NS_PER_S;
}

/* A clock may have been set back: nothing takes less than no time. What ran takes a second. */
static void set_times(const struct swf *s, struct swf_job *j, uint64_t scale_x1000) {
    j->submit = since(s, j->arrival_ns, scale_x1000);
    j->end = since(s, j->end, scale_x1000);
    j->start = j->ran ? since(s, j->start, scale_x1000) : j->end;
    j->start = j->start < j->submit ? j->submit : j->start;
    j->end = j->end < j->start + j->ran ? j->start + j->ran : j->end;
    j->cpu = (stretched(j->cpu, scale_x1000) + NS_PER_S / 2) / NS_PER_S;
    j->limit = (stretched(j->limit, scale_x1000) + NS_PER_S - 1) / NS_PER_S;
}

int swf_collect(struct swf *s, struct bytes rows, const struct swf_config *c) {
    struct wanted w;
    *s = (struct swf){0};
    int r = wanted_init(&w, c->only);
    if (r == 0)
        r = take_rows(s, rows, c, &w);
    free(w.bits);
    if (r < 0 || s->count == 0)
        return r;
    qsort(s->jobs, s->count, sizeof s->jobs[0], earlier);
    s->origin_ns = s->jobs[0].arrival_ns;
    for (size_t i = 0; i < s->count; i++)
        set_times(s, &s->jobs[i], c->scale_x1000);
    return 0;
}

void swf_fini(struct swf *s) {
    free(s->jobs);
    *s = (struct swf){0};
}

/* ---- text ---- */

static void print_moment(const char *key, uint64_t ns, FILE *out) {
    char text[64];
    struct tm parts;
    time_t seconds = (time_t)(ns / NS_PER_S);
    if (gmtime_r(&seconds, &parts) != NULL && strftime(text, sizeof text, "%c UTC", &parts) > 0)
        fprintf(out, "; %s: %s\n", key, text);
}

static void print_head(const struct swf *s, const char *cluster, const struct swf_config *c,
                       FILE *out) {
    fprintf(out, "; Version: 2.2\n; Computer: STORM cluster %s\n", cluster);
    fprintf(out, "; Conversion: storm %s, storm ps --swf\n", release_version);
    fprintf(out, "; MaxJobs: %zu\n; MaxRecords: %zu\n", s->count, s->count);
    fprintf(out, "; UnixStartTime: %" PRIu64 "\n", s->origin_ns / NS_PER_S);
    if (s->count > 0)
        print_moment("StartTime", s->origin_ns, out);
    if (c->nodes > 0)
        fprintf(out, "; MaxNodes: %" PRIu32 "\n; MaxProcs: %" PRIu64 "\n", c->nodes,
                (uint64_t)c->nodes * c->node_pes);
    fputs("; MaxQueues: 2\n; Queue: 0 run and alloc\n; Queue: 1 submit\n", out);
    fputs("; Note: a job arrives when it was submitted, or when it might begin if that was later\n",
          out);
    fputs("; Note: used memory is that of the largest process, as if all were as large\n", out);
    if (c->scale_x1000 != SWF_SCALE_ONE)
        fprintf(out, "; Note: times are %g times as long as they were (--scale)\n",
                (double)c->scale_x1000 / (double)SWF_SCALE_ONE);
    if (s->open > 0)
        fprintf(out, "; Note: jobs that are not over are left out: %" PRIu64 "\n", s->open);
}

static void print_known(bool known, uint64_t value, FILE *out) {
    if (known)
        fprintf(out, " %" PRIu64, value);
    else
        fputs(" -1", out);
}

static void print_job(const struct swf_job *j, FILE *out) {
    fprintf(out, "%" PRIu32 " %" PRIu64 " %" PRIu64, j->job, j->submit, j->start - j->submit);
    if (j->ran)
        fprintf(out, " %" PRIu64 " %" PRIu32, j->end - j->start, j->pes);
    else
        fputs(" -1 -1", out);
    print_known(j->measured, j->cpu, out);
    print_known(j->memory_kb > 0, j->memory_kb, out);
    fprintf(out, " %" PRIu32, j->pes);
    print_known(j->limit > 0, j->limit, out);
    fprintf(out, " -1 %d 1 1 -1 %d -1 -1 -1\n", j->status, j->interactive ? 0 : 1);
}

void swf_print(const struct swf *s, const char *cluster, const struct swf_config *c, FILE *out) {
    print_head(s, cluster, c, out);
    for (size_t i = 0; i < s->count; i++)
        print_job(&s->jobs[i], out);
}
