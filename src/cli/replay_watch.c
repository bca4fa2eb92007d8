/* SPDX-License-Identifier: MIT */
/* storm replay: until its jobs are over, and what it was like: in the words of storm sim. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/complain.h"
#include "cli/past.h"
#include "cli/replay.h"
#include "cli/sim.h"
#include "cli/swf.h"
#include "cli/terminal.h"
#include "wire/row.h"

enum { BAR = 30, TRIES = 100 };

static void pause_for(uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nanosleep(&t, NULL);
}

/* ---- progress ---- */

static void show_progress(struct replay *r) {
    struct message_ask ask = {.subject = SUBJECT_CLUSTER};
    struct contact_rows rows = {0};
    struct cluster_row c;
    size_t at = 0;
    char words[160], bar[BAR + 1];
    if (terminal_is(stderr) && contact_ask(&r->contact, &ask, &rows) == 0 &&
        cluster_row_next(bytes_of(rows.at, rows.len), &at, &c) == 1) {
        uint64_t all = r->jobs.count, left = (uint64_t)c.queued + c.running;
        uint64_t over = left < all ? all - left : 0; /* others may have jobs, too */
        memset(bar, '.', BAR);
        memset(bar, '#', over * BAR / all);
        bar[BAR] = '\0';
        snprintf(words, sizeof words,
                 "[%s] %" PRIu64 " of %" PRIu64 " over, %" PRIu32 " run, %" PRIu32
                 " wait or are to come",
                 bar, over, all, c.running, c.queued);
        terminal_progress(words);
    }
    free(rows.at);
}

/* Whether a job of ours with this number or a higher one is not over; *from moves to it. */
static int any_left(struct replay *r, uint32_t *place, bool *ret) {
    const struct joblist *l = &r->jobs;
    *ret = false;
    while (*place < l->count) {
        struct message_ask ask = {.subject = SUBJECT_JOBS, .job = l->at[*place], .most = 1};
        struct contact_rows rows = {0};
        struct job_row row;
        size_t at = 0;
        int status = contact_ask(&r->contact, &ask, &rows);
        bool some = status == 0 && job_row_next(bytes_of(rows.at, rows.len), &at, &row) == 1;
        free(rows.at);
        if (status != 0)
            return status;
        if (!some)
            *place = l->count;
        while (some && *place < l->count && l->at[*place] < row.job)
            ++*place;
        if (some && *place < l->count && l->at[*place] == row.job) {
            *ret = true;
            return 0;
        }
    }
    return 0;
}

static int wait_for_all(struct replay *r) {
    uint32_t place = 0;
    bool left = true;
    int status = 0;
    for (uint64_t wait_ns = NS_PER_S / 20; left && status == 0;) {
        status = any_left(r, &place, &left);
        if (status != 0 || !left)
            break;
        show_progress(r);
        pause_for(wait_ns);
        wait_ns = wait_ns < NS_PER_S / 2 ? wait_ns * 2 : wait_ns;
    }
    terminal_progress(NULL);
    return status;
}

/* ---- summary ---- */

/* Of the policy that is chosen. */
static void find_policy(struct replay *r) {
    struct message_ask ask = {.subject = SUBJECT_POLICIES};
    struct contact_rows rows = {0};
    struct policy_row row;
    size_t at = 0;
    snprintf(r->policy, sizeof r->policy, "cluster");
    if (contact_ask(&r->contact, &ask, &rows) == 0)
        while (policy_row_next(bytes_of(rows.at, rows.len), &at, &row) == 1)
            if (row.chosen)
                snprintf(r->policy, sizeof r->policy, "%.*s", (int)row.name.len,
                         (const char *)row.name.at);
    free(rows.at);
}

/* Over is what the log has as over, which may be a moment later. */
static int collect(struct replay *r, const struct swf_config *c, struct swf *s) {
    int status = 0, e = 0;
    for (int i = 0; i < TRIES; i++) {
        struct contact_rows rows = {0};
        status = past_fetch(r->cluster, 0, &rows);
        e = status == 0 ? swf_collect(s, bytes_of(rows.at, rows.len), c) : 0;
        free(rows.at);
        if (status != 0 || e < 0 || (s->open == 0 && s->count >= r->jobs.count))
            break;
        if (i + 1 < TRIES)
            swf_fini(s);
        pause_for(NS_PER_S / 20);
    }
    if (e < 0) {
        complain("replay", "%s", strerror(-e));
        status = STATUS_STORM;
    }
    return status;
}

/* How long a job ran; one of a trace only so long as it was to, as what is more is that others shared its processors. */
static uint64_t run_of_job(const struct replay *r, const struct swf_job *j) {
    uint64_t ran = j->end - j->start;
    for (uint32_t i = 0; r->is_trace && i < r->jobs.count; i++) {
        uint32_t at =
            (uint32_t)((j->job - r->jobs.at[0] + i) % r->jobs.count); /* mostly the first */
        uint64_t work = r->trace.jobs[r->sources[at]].run;
        if (r->jobs.at[at] == j->job)
            return work < ran ? work : ran;
    }
    return ran;
}

/* What was, as if it had been simulated. */
static int reckon(const struct replay *p, const struct swf *s, uint32_t pes, struct workload *w,
                  struct sim_stats *ret) {
    struct batch_result result = {.times = calloc(s->count + 1, sizeof *result.times)};
    int r = result.times == NULL ? -ENOMEM : 0;
    for (size_t i = 0; i < s->count && r == 0; i++) {
        const struct swf_job *j = &s->jobs[i];
        struct workload_job job = {.id = j->job,
                                   .submit = j->submit,
                                   .run = run_of_job(p, j),
                                   .estimate = j->limit,
                                   .pes = j->pes};
        result.times[i] =
            (struct batch_times){.start = j->start * BATCH_TICKS, .end = j->end * BATCH_TICKS};
        r = workload_add(w, &job);
    }
    if (r == 0)
        r = sim_reckon(w, &result, pes, ret);
    free(result.times);
    return r;
}

static void print(const struct replay *r, const struct swf *s, uint32_t pes,
                  const struct workload *w, const struct sim_stats *stats) {
    const struct storm_policy policy = {.name = r->policy};
    struct sim_request q = {.name = r->path, .batch = {.pes = pes, .policy = &policy}};
    struct batch_result none = {0};
    if (r->json) {
        double seconds =
            s->count > 0 ? (double)stats->makespan * (double)SWF_SCALE_ONE / (double)r->scale_x1000
                         : 0;
        sim_print_json(&q, w, &none, stats, seconds, stdout);
        return;
    }
    if (r->scale_x1000 != SWF_SCALE_ONE)
        printf("times are those of the file, %g times as long as they were here\n",
               (double)r->scale_x1000 / (double)SWF_SCALE_ONE);
    sim_print_head(stdout);
    sim_print_row(policy.name, stats, stdout);
}

static int summarize(struct replay *r) {
    const struct cluster *c = &r->contact.cluster;
    uint32_t nodes = cluster_count(c), pes = nodes * c->pes;
    struct swf_config config = {
        .only = &r->jobs, .nodes = nodes, .node_pes = c->pes, .scale_x1000 = r->scale_x1000};
    struct sim_stats stats;
    struct workload w;
    struct swf s;
    uint64_t unwell = 0;
    int status = collect(r, &config, &s);
    if (status != 0)
        return status;
    workload_init(&w);
    if (s.count > 0 && reckon(r, &s, pes, &w, &stats) == 0)
        print(r, &s, pes, &w, &stats);
    for (size_t i = 0; i < s.count; i++)
        unwell += s.jobs[i].status != 1;
    if (unwell > 0)
        complain("replay", "%" PRIu64 " jobs did not end well; see: storm ps -a", unwell);
    workload_fini(&w);
    swf_fini(&s);
    return unwell + r->refused + r->bad_count > 0 ? STATUS_FAILED : STATUS_OK;
}

int replay_watch(struct replay *r) {
    int status = wait_for_all(r);
    if (status == 0)
        find_policy(r);
    contact_close(&r->contact);
    return status == 0 ? summarize(r) : status;
}
