/* SPDX-License-Identifier: MIT */
/* storm sim: what a schedule is like. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/sort.h"
#include "cli/json.h"
#include "cli/sim.h"

const unsigned sim_percentiles[SIM_PERCENTILES] = {50, 90, 95, 99};

enum { SHORT_S = 10, SLOWDOWN_SCALE = 1000000 }; /* slowdowns are sorted as whole millionths */

/* Nearest rank. */
static void spread(struct sim_spread *s, uint64_t *values, size_t count, double unit) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)values[i];
    sort_u64(values, count);
    s->mean = count ? sum / (double)count / unit : 0;
    s->most = count ? (double)values[count - 1] / unit : 0;
    for (int i = 0; i < SIM_PERCENTILES; i++) {
        size_t rank = (count * sim_percentiles[i] + 99) / 100;
        s->at[i] = count ? (double)values[rank > 0 ? rank - 1 : 0] / unit : 0;
    }
}

struct sums {
    double work, bounded, plain;
    uint64_t first, last;
};

/* The sums of one job, and its values into the arrays. */
static void add(const struct workload_job *j, const struct batch_times *t, struct sums *sum,
                struct sim_stats *s, uint64_t *wait, uint64_t *response, uint64_t *slowdown) {
    uint64_t submit = j->submit * BATCH_TICKS;
    double ran = (double)(j->run * BATCH_TICKS), all = (double)(t->end - submit);
    double bound = ran > (double)(SHORT_S * BATCH_TICKS) ? ran : (double)(SHORT_S * BATCH_TICKS);
    double bounded = all / bound > 1 ? all / bound : 1, plain = ran > 0 ? all / ran : 1;
    *wait = t->start - submit;
    *response = t->end - submit;
    *slowdown = (uint64_t)(bounded * SLOWDOWN_SCALE);
    sum->bounded += bounded;
    sum->plain += plain;
    sum->work += (double)j->pes * (double)j->run;
    sum->first = submit < sum->first ? submit : sum->first;
    sum->last = t->end > sum->last ? t->end : sum->last;
    if (plain > s->plain_slowdown_most)
        s->plain_slowdown_most = plain;
}

int sim_reckon(const struct workload *w, const struct batch_result *r, uint32_t pes,
               struct sim_stats *ret) {
    size_t n = w->count;
    uint64_t *values = malloc(3 * n * sizeof *values);
    struct sums sum = {.first = UINT64_MAX};
    *ret = (struct sim_stats){0};
    if (values == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        add(&w->jobs[i], &r->times[i], &sum, ret, values + i, values + n + i, values + 2 * n + i);
    spread(&ret->wait, values, n, BATCH_TICKS);
    spread(&ret->response, values + n, n, BATCH_TICKS);
    spread(&ret->slowdown, values + 2 * n, n, SLOWDOWN_SCALE);
    ret->slowdown.mean = sum.bounded / (double)n;
    ret->plain_slowdown = sum.plain / (double)n;
    ret->makespan = (double)(sum.last - sum.first) / (double)BATCH_TICKS;
    ret->utilisation = ret->makespan > 0 ? sum.work / ((double)pes * ret->makespan) : 0;
    free(values);
    return 0;
}

/* ---- on the terminal ---- */

void sim_print_head(FILE *out) {
    fprintf(out, "%-14s%39s%39s%39s\n", "", "wait, s", "response, s", "bounded slowdown");
    fprintf(out, "%-14s", "policy");
    for (int i = 0; i < 3; i++)
        fprintf(out, "%12s%9s%9s%9s", "mean", "p50", "p90", "p99");
    fprintf(out, "%7s %12s\n", "used", "makespan, s");
}

static void print_spread(const struct sim_spread *s, int mean_digits, int digits, FILE *out) {
    fprintf(out, "%12.*f", mean_digits, s->mean);
    for (int i = 0; i < SIM_PERCENTILES; i++)
        if (sim_percentiles[i] != 95)
            fprintf(out, " %8.*f", s->at[i] < 1000 ? digits : 0, s->at[i]);
}

void sim_print_row(const char *policy, const struct sim_stats *s, FILE *out) {
    fprintf(out, "%-14s", policy);
    print_spread(&s->wait, 3, 0, out);
    print_spread(&s->response, 3, 0, out);
    print_spread(&s->slowdown, 4, 1, out);
    fprintf(out, "%6.1f%% %12.0f\n", 100 * s->utilisation, s->makespan);
}

/* ---- as JSON ---- */

static void json_spread(struct json *j, const char *key, const struct sim_spread *s) {
    char name[8];
    json_open(j, key, '{');
    json_decimal(j, "mean", s->mean, 6);
    json_decimal(j, "max", s->most, 6);
    for (int i = 0; i < SIM_PERCENTILES; i++) {
        snprintf(name, sizeof name, "p%u", sim_percentiles[i]);
        json_decimal(j, name, s->at[i], 6);
    }
    json_close(j, '}');
}

/* The keys of Batsim's summary first, then ours. */
void sim_print_json(const struct sim_request *q, const struct workload *w,
                    const struct batch_result *r, const struct sim_stats *s, double seconds,
                    FILE *out) {
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_word(&j, "policy", q->batch.policy->name);
    json_number(&j, "jobs", w->count);
    json_decimal(&j, "mean_wait_s", s->wait.mean, 6);
    json_decimal(&j, "mean_bounded_slowdown", s->slowdown.mean, 6);
    json_decimal(&j, "utilisation", s->utilisation, 6);
    json_decimal(&j, "makespan_s", s->makespan, 6);
    json_number(&j, "nb_jobs", w->count); /* as Batsim has it */
    json_number(&j, "nb_jobs_finished", w->count);
    json_number(&j, "nb_jobs_success", w->count - w->cut);
    json_number(&j, "nb_jobs_killed", w->cut);
    json_decimal(&j, "success_rate", (double)(w->count - w->cut) / (double)w->count, 6);
    json_decimal(&j, "makespan", s->makespan, 6);
    json_decimal(&j, "mean_waiting_time", s->wait.mean, 6);
    json_decimal(&j, "max_waiting_time", s->wait.most, 6);
    json_decimal(&j, "mean_turnaround_time", s->response.mean, 6);
    json_decimal(&j, "max_turnaround_time", s->response.most, 6);
    json_decimal(&j, "mean_slowdown", s->plain_slowdown, 6);
    json_decimal(&j, "max_slowdown", s->plain_slowdown_most, 6);
    json_number(&j, "nb_computing_machines", q->batch.pes);
    json_decimal(&j, "simulation_time", seconds, 6);
    json_word(&j, "workload", q->name);
    json_spread(&j, "wait", &s->wait);
    json_spread(&j, "response", &s->response);
    json_spread(&j, "bounded_slowdown", &s->slowdown);
    json_number(&j, "never_ran", w->never_ran);
    json_number(&j, "malformed_lines", w->malformed);
    json_number(&j, "max_queued", r->queue_most);
    json_number(&j, "max_running", r->running_most);
    json_number(&j, "decisions", r->decisions);
    json_close(&j, '}');
    fputc('\n', out);
}
