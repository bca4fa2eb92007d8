/* SPDX-License-Identifier: MIT */
/* storm bench throughput: how many small jobs a second, and what a long queue costs.
 *
 * An array of jobs that do nothing is submitted and waited for, on a cluster of its own each
 * time; the rate at its beginning and at its end comes from the times that the machine manager has
 * noted. The floor is as many processes started and reaped by a bare program, at most one a node at once.
 *
 * For the queue there are two clusters side by side, one with a long queue, one without, asked
 * in turn. On both a job holds half of every node, and jobs that need whole nodes wait behind
 * it; what is launched needs one processor and has a higher priority. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/bench.h"
#include "os/companion.h"
#include "cli/complain.h"
#include "cli/ends.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "cli/tempcluster.h"
#include "cli/terminal.h"
#include "os/floor.h"

enum { NODES_MAX = 4096, RUNS_MAX = 100, JOBS_MAX = 1000000, WARM_RUNS = 2, ASK_RUNS = 15 };
enum { ROW_BYTES = 1024, PART = 1000 };

struct throughput_settings {
    uint64_t nodes, jobs, queued, runs;
    const char *command;
    bool json;
    char self[PATH_MAX], nop[PATH_MAX];
};

/* ---- many jobs ---- */

struct array_result {
    uint64_t *wall_ns, *floor_ns;     /* by run */
    uint64_t first_x1000, last_x1000; /* jobs a second, of the last run; 0: not known */
};

static int take_floor(const struct throughput_settings *s, uint64_t *ret_ns) {
    struct floor_config c = {
        .program = s->nop, .processes = (uint32_t)s->jobs, .at_once = (uint32_t)s->nodes};
    int r = floor_run(&c, ret_ns);
    if (r < 0)
        complain("bench", "%" PRIu64 " bare processes: %s", s->jobs, strerror(-r));
    return r;
}

/* How fast it was at first and at last, if the manager tells of all jobs. */
static int take_ends(const struct throughput_settings *s, const struct tempcluster *t,
                     struct array_result *a) {
    const char *args[] = {"ps", "-a", "--json", NULL};
    size_t cap = (s->jobs + 16) * ROW_BYTES, part = s->jobs < 2 * PART ? s->jobs / 2 : PART;
    char *text = malloc(cap);
    uint64_t *ends = calloc(s->jobs, sizeof *ends);
    uint64_t ns;
    int r = text == NULL || ends == NULL ? -ENOMEM : 0;
    if (r == 0)
        r = tempcluster_run(t, args, text, cap, &ns);
    a->first_x1000 = a->last_x1000 = 0;
    if (r == 0 && ends_scan(text, ends, s->jobs) >= s->jobs) {
        sort_u64(ends, s->jobs);
        a->first_x1000 = ends_rate_x1000(ends, part);
        a->last_x1000 = ends_rate_x1000(ends + s->jobs - part, part);
    } else if (r == 0) {
        fputs("storm ps -a --json does not tell when every job has ended\n", stderr);
    }
    free(text);
    free(ends);
    return r;
}

static int run_array(const struct throughput_settings *s, struct array_result *a, uint64_t run) {
    char range[32];
    const char *args[] = {"submit", "--array", range, "--wait", "-o", "/dev/null", s->nop, NULL};
    struct tempcluster t;
    snprintf(range, sizeof range, "1-%" PRIu64, s->jobs);
    int r = take_floor(s, &a->floor_ns[run]);
    if (r < 0)
        return r;
    r = tempcluster_up(&t, s->command, (uint32_t)s->nodes, NULL);
    if (r < 0)
        return r;
    r = tempcluster_run(&t, args, NULL, 0, &a->wall_ns[run]);
    if (r == 0)
        r = take_ends(s, &t, a);
    tempcluster_down(&t);
    return r;
}

static void print_x1000(uint64_t v) {
    printf("%" PRIu64 ".%" PRIu64, v / 1000, v / 100 % 10);
}

static void json_rate(const char *key, uint64_t x1000) {
    if (x1000 == 0)
        printf(",\"%s\":null", key);
    else
        printf(",\"%s\":%" PRIu64 ".%03" PRIu64, key, x1000 / 1000, x1000 % 1000);
}

/* Jobs a second, times 1000. */
static uint64_t rate_x1000(uint64_t jobs, uint64_t ns) {
    return jobs * NS_PER_S / (ns / 1000 + 1);
}

static void print_array(const struct throughput_settings *s, const struct array_result *a) {
    struct stats wall = stats_of(a->wall_ns, (uint32_t)s->runs);
    struct stats floor = stats_of(a->floor_ns, (uint32_t)s->runs);
    uint64_t x100 = wall.median * 100 / floor.median;
    if (s->json) {
        printf("{\"bench\":\"throughput\",\"case\":\"array\",\"nodes\":%" PRIu64
               ",\"jobs\":%" PRIu64 ",\"runs\":%" PRIu64,
               s->nodes, s->jobs, s->runs);
        json_rate("rate_per_s", rate_x1000(s->jobs, wall.median));
        json_rate("first_rate_per_s", a->first_x1000);
        json_rate("last_rate_per_s", a->last_x1000);
        report_json_ms("median_ms", wall.median, stdout);
        report_json_ms("ci95_ms", wall.ci95, stdout);
        report_json_ms("floor_ms", floor.median, stdout);
        printf(",\"ratio\":%" PRIu64 ".%02" PRIu64 "}\n", x100 / 100, x100 % 100);
        return;
    }
    printf("%" PRIu64 " jobs that do nothing on %" PRIu64 " nodes: ", s->jobs, s->nodes);
    print_x1000(rate_x1000(s->jobs, wall.median));
    printf(" jobs/s; %" PRIu64 ".%02" PRIu64 " times as long as the bare processes (", x100 / 100,
           x100 % 100);
    print_x1000(rate_x1000(s->jobs, floor.median));
    puts("/s)");
    if (a->first_x1000 > 0 && a->last_x1000 > 0) {
        fputs("the first jobs: ", stdout);
        print_x1000(a->first_x1000);
        fputs("/s, the last: ", stdout);
        print_x1000(a->last_x1000);
        puts("/s");
    }
}

static int measure_array(const struct throughput_settings *s) {
    struct array_result a = {.wall_ns = calloc(s->runs, sizeof(uint64_t)),
                             .floor_ns = calloc(s->runs, sizeof(uint64_t))};
    int r = a.wall_ns == NULL || a.floor_ns == NULL ? -ENOMEM : 0;
    terminal_progress("submitting many jobs ...");
    for (uint64_t i = 0; i < s->runs && r == 0; i++)
        r = run_array(s, &a, i);
    terminal_progress(NULL);
    if (r == 0) {
        sort_u64(a.wall_ns, s->runs);
        sort_u64(a.floor_ns, s->runs);
        print_array(s, &a);
        fflush(stdout);
    }
    free(a.wall_ns);
    free(a.floor_ns);
    return r;
}

/* ---- a long queue ---- */

enum side { EMPTY, FULL, SIDES };
enum question { ASK_SUBMIT, ASK_LAUNCH, ASK_PS, QUESTIONS };

static const char *const question_names[QUESTIONS] = {"submit", "launch", "ps"};

struct queue {
    struct tempcluster clusters[SIDES];
    char whole[48];      /* a size that needs all processors of all nodes */
    char some[24];       /* one on each */
    char job[SIDES][24]; /* that waits */
    uint64_t ns[QUESTIONS][SIDES][ASK_RUNS];
};

/* The number that `submit` has printed, wherever in its words. */
static int read_job(const char *text, char *ret, size_t cap) {
    const char *at = text + strcspn(text, "0123456789");
    size_t len = strspn(at, "0123456789");
    if (len == 0 || len >= cap)
        return complain("bench", "storm submit does not print a job's number"), -EPROTO;
    snprintf(ret, cap, "%.*s", (int)len, at);
    return 0;
}

static int fill_side(const struct throughput_settings *s, struct queue *q, enum side side) {
    char range[32], text[256];
    const char *hold[] = {"submit", "--size", q->some, "-o", "/dev/null", "sleep", "86400", NULL};
    const char *wait[] = {"submit", "--size", q->whole, "-o", "/dev/null", s->nop, NULL};
    const char *many[] = {"submit", "--size",    q->whole, "--array", range,
                          "-o",     "/dev/null", s->nop,   NULL};
    uint64_t ns;
    snprintf(range, sizeof range, "1-%" PRIu64, s->queued);
    int r = tempcluster_run(&q->clusters[side], hold, NULL, 0, &ns);
    if (r == 0 && side == FULL)
        r = tempcluster_run(&q->clusters[side], many, NULL, 0, &ns);
    if (r == 0)
        r = tempcluster_run(&q->clusters[side], wait, text, sizeof text, &ns);
    return r < 0 ? r : read_job(text, q->job[side], sizeof q->job[side]);
}

static int ask(const struct throughput_settings *s, struct queue *q, enum question what,
               enum side side, uint64_t *ret_ns) {
    const char *submit[] = {"submit", "--size", q->whole, "-o", "/dev/null", s->nop, NULL};
    const char *launch[] = {"run", "--priority", "1", "-N", "1", s->nop, NULL};
    const char *ps[] = {"ps", q->job[side], NULL};
    const char *const *const commands[QUESTIONS] = {submit, launch, ps};
    return tempcluster_run(&q->clusters[side], commands[what], NULL, 0, ret_ns);
}

static int ask_all(const struct throughput_settings *s, struct queue *q) {
    int r = 0;
    for (int run = -WARM_RUNS; run < ASK_RUNS; run++)
        for (int what = 0; what < QUESTIONS; what++)
            for (int side = 0; side < SIDES && r == 0; side++) {
                uint64_t ns;
                r = ask(s, q, (enum question)what, (enum side)side, &ns);
                if (r == 0 && run >= 0)
                    q->ns[what][side][run] = ns;
            }
    return r;
}

static void print_queue(const struct throughput_settings *s, struct queue *q) {
    if (!s->json)
        printf("\nwith %" PRIu64 " jobs in the queue, medians of %d runs:\n%10s %12s %12s %8s\n",
               s->queued, ASK_RUNS, "", "long queue", "none", "ratio");
    for (int what = 0; what < QUESTIONS; what++) {
        struct stats st[SIDES];
        char median[SIDES][UNITS_TEXT_MAX];
        for (int side = 0; side < SIDES; side++) {
            sort_u64(q->ns[what][side], ASK_RUNS);
            st[side] = stats_of(q->ns[what][side], ASK_RUNS);
            units_format_duration(st[side].median, median[side], sizeof median[side]);
        }
        uint64_t x100 = st[FULL].median * 100 / st[EMPTY].median;
        if (!s->json) {
            printf("%10s %12s %12s %5" PRIu64 ".%02" PRIu64 "\n", question_names[what],
                   median[FULL], median[EMPTY], x100 / 100, x100 % 100);
            continue;
        }
        printf("{\"bench\":\"throughput\",\"case\":\"queued-%s\",\"nodes\":%" PRIu64
               ",\"queued\":%" PRIu64 ",\"runs\":%d",
               question_names[what], s->nodes, s->queued, ASK_RUNS);
        report_json_ms("median_ms", st[FULL].median, stdout);
        report_json_ms("ci95_ms", st[FULL].ci95, stdout);
        report_json_ms("empty_ms", st[EMPTY].median, stdout);
        printf(",\"ratio\":%" PRIu64 ".%02" PRIu64 "}\n", x100 / 100, x100 % 100);
    }
}

static int measure_queue(const struct throughput_settings *s) {
    const char *more[] = {"--pes", "2", NULL};
    struct queue *q = calloc(1, sizeof *q);
    int up = 0, r = q == NULL ? -ENOMEM : 0;
    if (r < 0)
        return r;
    snprintf(q->whole, sizeof q->whole, "%" PRIu64 ":2:%" PRIu64, s->nodes, 2 * s->nodes);
    snprintf(q->some, sizeof q->some, "%" PRIu64 ":1", s->nodes);
    terminal_progress("filling a queue ...");
    for (; up < SIDES && r == 0; up += r == 0)
        r = tempcluster_up(&q->clusters[up], s->command, (uint32_t)s->nodes, more);
    for (int side = 0; side < SIDES && r == 0; side++)
        r = fill_side(s, q, (enum side)side);
    if (r == 0)
        r = ask_all(s, q);
    terminal_progress(NULL);
    while (up > 0)
        tempcluster_down(&q->clusters[--up]);
    if (r == 0)
        print_queue(s, q);
    free(q);
    return r;
}

/* ---- the command line ---- */

static int check(const struct throughput_settings *s) {
    if (s->nodes < 1 || s->nodes > NODES_MAX)
        return complain("bench", "--nodes %" PRIu64 ": give 1 to %d", s->nodes, NODES_MAX);
    if (s->jobs < 2 || s->jobs > JOBS_MAX)
        return complain("bench", "--jobs %" PRIu64 ": give 2 to %d", s->jobs, JOBS_MAX);
    if (s->queued > JOBS_MAX)
        return complain("bench", "--queued %" PRIu64 ": give at most %d", s->queued, JOBS_MAX);
    if (s->runs < 1 || s->runs > RUNS_MAX)
        return complain("bench", "--runs %" PRIu64 ": give 1 to %d", s->runs, RUNS_MAX);
    return STATUS_OK;
}

int bench_throughput(int argc, char **argv) {
    struct throughput_settings s = {.nodes = 64, .jobs = 10000, .runs = 3, .command = s.self};
    const struct option table[] = {
        {"nodes", OPTION_NUMBER, &s.nodes, "N", "of the cluster (default 64)"},
        {"jobs", OPTION_NUMBER, &s.jobs, "J", "in the array (default 10000)"},
        {"queued", OPTION_NUMBER, &s.queued, "Q",
         "also: submit, launch and ps with so many jobs queued"},
        {"runs", OPTION_NUMBER, &s.runs, "R", "of the array (default 3)"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"command", OPTION_TEXT, &s.command, "PATH", "another storm command (default: this one)"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts("usage: storm bench throughput [OPTIONS]\n"
             "\n"
             "How many jobs that do nothing go through `storm submit --array` in a second, on a\n"
             "temporary cluster on this machine, and what commands take while many jobs wait.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("bench", "what is \"%s\" for? see: storm bench throughput --help", argv[1]);
    int status = check(&s);
    if (status != STATUS_OK)
        return status;
    if (companion_self(s.self, sizeof s.self) < 0 ||
        companion_find("storm-nop", s.nop, sizeof s.nop) < 0) {
        complain("bench", "storm-nop is missing; install storm again");
        return STATUS_FAILED;
    }
    int r = measure_array(&s);
    if (r == 0 && s.queued > 0)
        r = measure_queue(&s);
    return r < 0 ? STATUS_FAILED : STATUS_OK;
}
