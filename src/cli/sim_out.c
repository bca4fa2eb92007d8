/* SPDX-License-Identifier: MIT */
/* storm sim --out: the schedule in files that others read: jobs.csv in Batsim's columns, schedule.json, a picture.
 *
 * The schedule is made once more, the same way: when a job ends its processors are known, and nothing has to be
 * kept of it. So a row is written when a job ends. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/complain.h"
#include "cli/sim.h"
#include "cli/sim_plot.h"

struct writer {
    const struct sim_request *q;
    const struct workload *w;
    const struct batch_result *first; /* the times, known already */
    FILE *jobs;
    struct sim_plot *plot;
    bool short_of_memory;
    struct {
        struct noderange *runs;
        uint32_t count;
    } * held; /* by job: its processors, while it runs */
};

static void started(void *context, size_t job, uint64_t tick, const struct nodeset *pes) {
    struct writer *o = context;
    struct noderange run;
    uint32_t count = nodeset_range_count(pes), i = 0;
    (void)tick;
    o->held[job].runs = malloc(count * sizeof run);
    if (o->held[job].runs == NULL) {
        o->short_of_memory = true;
        return;
    }
    for (uint32_t from = 0; i < count && nodeset_next_range(pes, from, &run); from = run.last + 1)
        o->held[job].runs[i++] = run;
    o->held[job].count = count;
}

static void seconds(FILE *out, uint64_t ticks) {
    fprintf(out, ",%" PRIu64, ticks / BATCH_TICKS);
    if (ticks % BATCH_TICKS != 0)
        fprintf(out, ".%06" PRIu64, ticks % BATCH_TICKS);
}

/* What has a comma or a quote in it is quoted. */
static void csv_text(FILE *out, const char *text) {
    if (strpbrk(text, ",\"\n") == NULL) {
        fprintf(out, ",%s", text);
        return;
    }
    fputs(",\"", out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"%c" : "%c", *text);
    fputc('"', out);
}

static void row(struct writer *o, size_t job, uint64_t end) {
    const struct workload_job *j = &o->w->jobs[job];
    uint64_t start = o->first->times[job].start, submit = j->submit * BATCH_TICKS;
    FILE *out = o->jobs;
    fprintf(out, "%" PRIu64, j->id);
    csv_text(out, o->q->name);
    fprintf(out, ",%" PRIu64, j->run); /* profile: it runs so long */
    seconds(out, submit);
    fprintf(out, ",%" PRIu32 ",%" PRIu64, j->pes, j->estimate);
    fprintf(out, j->cut ? ",0,COMPLETED_WALLTIME_REACHED" : ",1,COMPLETED_SUCCESSFULLY");
    seconds(out, start);
    seconds(out, end - start);
    seconds(out, end);
    seconds(out, start - submit);
    seconds(out, end - submit);
    fprintf(out, ",%.6f,", end > start ? (double)(end - submit) / (double)(end - start) : 1);
    for (uint32_t i = 0; i < o->held[job].count; i++) {
        struct noderange run = o->held[job].runs[i];
        fprintf(out, run.first == run.last ? "%s%" PRIu32 : "%s%" PRIu32 "-%" PRIu32, i ? " " : "",
                run.first, run.last);
    }
    fputs(",-1,\n", out);
}

static void ended(void *context, size_t job, uint64_t end) {
    struct writer *o = context;
    const struct workload_job *j = &o->w->jobs[job];
    uint64_t start = o->first->times[job].start;
    row(o, job, end);
    for (uint32_t i = 0; i < o->held[job].count; i++)
        sim_plot_run(o->plot, j->id, start, end, o->held[job].runs[i].first,
                     o->held[job].runs[i].last);
    /* Of a job that shares its processors the share that it needs. */
    sim_plot_used(o->plot, start, end,
                  (double)j->pes * (double)(j->run * BATCH_TICKS) / (double)(end - start));
    sim_plot_waited(o->plot, j->submit * BATCH_TICKS, start);
    free(o->held[job].runs);
    o->held[job].runs = NULL;
    o->held[job].count = 0;
}

static FILE *open_in(const char *dir, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    if (f == NULL)
        complain(path, "%s", strerror(errno));
    return f;
}

static int close_in(FILE *f, const char *dir, const char *name) {
    bool bad = fflush(f) != 0 || ferror(f);
    int error = errno;
    if (fclose(f) != 0 || bad)
        return complain(dir, "%s could not be written: %s", name, strerror(error)), STATUS_STORM;
    return STATUS_OK;
}

static int make_folder(const char *dir) {
    struct stat st;
    if (mkdir(dir, 0777) == 0 || (errno == EEXIST && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)))
        return STATUS_OK;
    return complain(dir, "%s; name a folder that can be made", strerror(errno));
}

static int write_jobs(struct writer *o) {
    struct batch_config c = o->q->batch;
    struct batch_result again;
    o->jobs = open_in(o->q->out, "jobs.csv");
    if (o->jobs == NULL)
        return STATUS_USAGE;
    fputs(
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,"
        "success,final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,"
        "stretch,allocated_resources,consumed_energy,metadata\n",
        o->jobs);
    c.context = o;
    c.started = started;
    c.ended = ended;
    int r = batch_run(o->w, &c, &again);
    if (r == 0)
        free(again.times);
    int status = close_in(o->jobs, o->q->out, "jobs.csv");
    if (r < 0 || o->short_of_memory)
        return complain("sim", "%s", strerror(ENOMEM)), STATUS_STORM;
    return status;
}

static int write_plot(const struct writer *o, const struct sim_stats *s) {
    char words[200];
    FILE *f = open_in(o->q->out, "schedule.svg");
    if (f == NULL)
        return STATUS_USAGE;
    snprintf(words, sizeof words,
             "%s: %zu jobs on %" PRIu32 " processors; mean wait %.0f s, bounded slowdown %.2f, "
             "used %.1f %%",
             o->q->batch.policy->name, o->w->count, o->q->batch.pes, s->wait.mean, s->slowdown.mean,
             100 * s->utilisation);
    sim_plot_write(o->plot, o->q->name, words, f);
    return close_in(f, o->q->out, "schedule.svg");
}

static void bounds(const struct writer *o, uint64_t *begin, uint64_t *end) {
    *begin = o->w->jobs[0].submit * BATCH_TICKS;
    *end = *begin;
    for (size_t i = 0; i < o->w->count; i++)
        *end = o->first->times[i].end > *end ? o->first->times[i].end : *end;
}

int sim_write(const struct sim_request *q, const struct workload *w, const struct batch_result *r,
              const struct sim_stats *s, double elapsed) {
    struct writer o = {.q = q, .w = w, .first = r};
    uint64_t begin, end;
    int status = make_folder(q->out);
    if (status != STATUS_OK)
        return status;
    o.plot = malloc(sizeof *o.plot);
    o.held = calloc(w->count, sizeof o.held[0]);
    if (o.plot == NULL || o.held == NULL) {
        complain("sim", "%s", strerror(ENOMEM));
        status = STATUS_STORM;
    } else {
        bounds(&o, &begin, &end);
        sim_plot_init(o.plot, begin, end, q->batch.pes);
        status = write_jobs(&o);
        if (status == STATUS_OK)
            status = write_plot(&o, s);
    }
    for (size_t i = 0; o.held != NULL && i < w->count; i++)
        free(o.held[i].runs);
    free(o.held);
    free(o.plot);
    FILE *f = status == STATUS_OK ? open_in(q->out, "schedule.json") : NULL;
    if (f == NULL)
        return status == STATUS_OK ? STATUS_USAGE : status;
    sim_print_json(q, w, r, s, elapsed, f);
    return close_in(f, q->out, "schedule.json");
}
