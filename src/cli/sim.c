/* SPDX-License-Identifier: MIT */
/* storm sim: a trace of jobs under scheduling policies, in virtual time. */
#include "cli/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/nodeset.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "os/companion.h"
#include "sched/policies.h"
#include "sim/lublin.h"

enum { POLICIES_MAX = 16, MPL_USUAL = 4, NAME_MAX_BYTES = 64 };

struct typed {
    struct text_list reserve;
    const char *policy, *load, *out;
    uint64_t pes, mpl, quantum_ns, switch_cost_ns, lublin, seed;
    bool strict, json;
};

struct chosen {
    const struct storm_policy *at[POLICIES_MAX];
    uint32_t count;
};

/* ---- what is wanted ---- */

static int unknown_policy(const char *name) {
    const char *names[POLICIES_MAX];
    char list[200] = "";
    uint32_t n = 0;
    for (const struct storm_policy *p; (p = policies_at(n)) != NULL; n++) {
        names[n] = p->name;
        size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, "%s%s", n > 0 ? ", " : "", p->name);
    }
    const char *near = nearest_name(name, names, n);
    if (near != NULL)
        return complain("sim", "there is no policy \"%s\"; did you mean %s?", name, near);
    return complain("sim",
                    "there is no policy \"%s\"; there are: %s; or give the path of a shared "
                    "object",
                    name, list);
}

/* Names with commas between them; "all": those built in; one with a slash is the guest. */
static int choose(const char *text, const struct storm_policy *guest, struct chosen *ret) {
    char name[256];
    *ret = (struct chosen){0};
    if (strcmp(text, "all") == 0) {
        while ((ret->at[ret->count] = policies_at(ret->count)) != NULL)
            ret->count++;
        return STATUS_OK;
    }
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name - 1), at);
        const struct storm_policy *p = strchr(name, '/') ? guest : policies_find(name);
        if (p == NULL && strchr(name, '/'))
            return complain(
                "sim", "%s: a policy from a file needs the program storm-sim beside storm", name);
        if (p == NULL)
            return unknown_policy(name);
        if (ret->count == POLICIES_MAX)
            return complain("sim", "--policy: at most %d at once", POLICIES_MAX);
        ret->at[ret->count++] = p;
        at += len;
        if (*at == '\0')
            return STATUS_OK;
    }
}

/* "0.9" in thousandths. */
static bool parse_load(const char *text, uint32_t *ret) {
    char *end;
    double load = strtod(text, &end);
    if (end == text || *end != '\0' || !(load >= 0.001 && load <= 1000))
        return false;
    *ret = (uint32_t)(load * 1000 + 0.5);
    return true;
}

/* "0-31@86400+3600": which processors, from when, for how long; in seconds. */
static bool parse_window(const char *at, struct batch_window *ret) {
    uint64_t number[4];
    const char marks[4] = {'-', '@', '+', '\0'};
    for (int i = 0; i < 4; i++) {
        int n = text_scan_u64(at, &number[i]);
        if (n <= 0 || at[n] != marks[i] || number[i] > UINT32_MAX)
            return false;
        at += n + 1;
    }
    *ret = (struct batch_window){(uint32_t)number[0], (uint32_t)number[1], number[2],
                                 number[2] + number[3]};
    return true;
}

static int parse_windows(const struct text_list *typed, struct batch_window *ret) {
    for (uint32_t i = 0; i < typed->count; i++)
        if (!parse_window(typed->at[i], &ret[i]))
            return complain("sim", "--reserve: \"%s\" will not do; for example 0-31@86400+3600",
                            typed->at[i]);
    return STATUS_OK;
}

static int check(const struct typed *t, const struct sim_request *q) {
    if ((q->trace == NULL) == (t->lublin == 0))
        return complain("sim",
                        "name a trace in the Standard Workload Format, or give --lublin JOBS");
    if (t->lublin > 0 && t->pes == 0)
        return complain("sim", "--lublin: give the processors of the machine: --procs N");
    if (t->lublin > UINT32_MAX / 4)
        return complain("sim", "--lublin: at most %u jobs", UINT32_MAX / 4);
    if (t->lublin == 0 && (t->load != NULL || t->seed != UINT64_MAX))
        return complain("sim", "--load and --seed are for --lublin");
    if (t->pes > NODESET_UNIVERSE_MAX / 64)
        return complain("sim", "--procs: at most %u", NODESET_UNIVERSE_MAX / 64);
    if (t->mpl < 1 || t->mpl > STORM_SLOTS_MAX)
        return complain("sim", "--mpl: 1 to %d", STORM_SLOTS_MAX);
    if (t->quantum_ns == 0 || t->switch_cost_ns >= t->quantum_ns)
        return complain("sim", "--switch-cost: less than --quantum, which is more than nothing");
    return STATUS_OK;
}

/* The file's name without folders and endings. */
static void name_of(const char *path, char *name) {
    const char *slash = strrchr(path, '/');
    snprintf(name, NAME_MAX_BYTES, "%s", slash ? slash + 1 : path);
    static const char *const endings[] = {".gz", ".swf"};
    for (int i = 0; i < 2; i++) {
        size_t len = strlen(name), end = strlen(endings[i]);
        if (len > end && strcmp(name + len - end, endings[i]) == 0)
            name[len - end] = '\0';
    }
}

/* ---- the jobs ---- */

static int draw(const struct sim_request *q, struct workload *w) {
    struct lublin_config c = {
        .jobs = q->lublin, .pes = q->batch.pes, .seed = q->seed, .load_permille = q->load_permille};
    if (lublin_draw(&c, w) == 0)
        return STATUS_OK;
    complain("sim", "%s", strerror(ENOMEM));
    return STATUS_STORM;
}

static int get_jobs(struct sim_request *q, struct workload *w) {
    int status = q->trace ? sim_read(q, w) : draw(q, w);
    if (status != STATUS_OK)
        return status;
    if (w->count > UINT32_MAX / 4)
        return complain(q->trace, "more jobs than can be");
    if (q->batch.pes == 0)
        q->batch.pes = w->pes;
    if (q->batch.pes == 0)
        return complain(q->trace,
                        "its header does not say how many processors there are; give --procs N");
    if (q->batch.pes > NODESET_UNIVERSE_MAX / 64)
        return complain(q->trace, "more processors than can be; give --procs N");
    size_t large = workload_fit(w, q->batch.pes);
    if (large > 0)
        complain("sim", "%zu jobs want more than %" PRIu32 " processors: they get all", large,
                 q->batch.pes);
    return STATUS_OK;
}

static void introduce(const struct sim_request *q, const struct workload *w, FILE *out) {
    fprintf(out, "%s: %zu jobs on %" PRIu32 " processors", q->name, w->count, q->batch.pes);
    if (w->never_ran > 0)
        fprintf(out, "; %" PRIu64 " never ran, and take a second", w->never_ran);
    if (w->cut > 0)
        fprintf(out, "; %" PRIu64 " ran longer than they had asked for, and are cut", w->cut);
    if (w->malformed > 0)
        fprintf(out, "; %" PRIu64 " malformed lines passed over", w->malformed);
    fputs("\n\n", out);
}

/* ---- a policy ---- */

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int show(const struct sim_request *q, const struct workload *w, const struct batch_result *r,
                double elapsed) {
    struct sim_stats s;
    if (sim_reckon(w, r, q->batch.pes, &s) < 0)
        return complain("sim", "%s", strerror(ENOMEM)), STATUS_STORM;
    if (r->fault[0] != '\0')
        complain("sim", "%s", r->fault);
    if (q->json)
        sim_print_json(q, w, r, &s, elapsed, stdout);
    else
        sim_print_row(q->batch.policy->name, &s, stdout);
    fflush(stdout);
    int status = q->out ? sim_write(q, w, r, &s, elapsed) : STATUS_OK;
    return status == STATUS_OK && r->fault[0] != '\0' ? STATUS_FAILED : status;
}

static int try_policy(const struct sim_request *q, const struct workload *w) {
    struct batch_result r;
    double begin = seconds_now();
    int error = batch_run(w, &q->batch, &r);
    if (error == -ENOMEM)
        return complain("sim", "%s", strerror(ENOMEM)), STATUS_STORM;
    if (error < 0)
        return complain("sim", "--reserve: %s",
                        error == -EEXIST ? "some processors are reserved twice at a time"
                                         : "there are not such processors, or no time in it");
    int status = show(q, w, &r, seconds_now() - begin);
    free(r.times);
    return status;
}

static int go(struct sim_request *q, const struct chosen *policies) {
    struct workload w;
    workload_init(&w);
    int status = get_jobs(q, &w);
    if (status == STATUS_OK && !q->json) {
        introduce(q, &w, stdout);
        sim_print_head(stdout);
    }
    for (uint32_t i = 0; i < policies->count && status == STATUS_OK; i++) {
        q->batch.policy = policies->at[i];
        status = try_policy(q, &w);
    }
    workload_fini(&w);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain("sim", "the output could not be written: %s", strerror(errno)),
               STATUS_STORM;
    return status;
}

static void print_help(const struct option *table) {
    puts(
        "usage: storm sim TRACE [OPTIONS]\n"
        "       storm sim --lublin JOBS --procs N [OPTIONS]\n"
        "\n"
        "Runs a trace of jobs under scheduling policies, in virtual time.\n"
        "TRACE is in the Standard Workload Format, plain or compressed by gzip; - is\n"
        "standard input. Shown are wait, response and bounded slowdown, processors used, makespan.\n"
        "\n"
        "policies:");
    const struct storm_policy *p;
    for (uint32_t i = 0; (p = policies_at(i)) != NULL; i++)
        printf("  %-14s %s\n", p->name, p->words);
    options_print(table, stdout);
}

int sim_main_with(int argc, char **argv, const struct storm_policy *guest) {
    struct typed t = {
        .policy = "easy", .mpl = MPL_USUAL, .quantum_ns = 50 * NS_PER_MS, .seed = UINT64_MAX};
    const struct option table[] = {
        {"policy", OPTION_TEXT, &t.policy, "NAMES",
         "one, or some with commas between, or all (default easy); a path: a shared object"},
        {"procs", OPTION_NUMBER, &t.pes, "N", "processors (default: what the trace says)"},
        {"pes", OPTION_NUMBER, &t.pes, "N", NULL}, /* as storm up calls them */
        {"strict", OPTION_FLAG, &t.strict, NULL, "refuse a trace with malformed lines"},
        {"mpl", OPTION_NUMBER, &t.mpl, "N", "slots, where time is sliced (default 4)"},
        {"quantum", OPTION_DURATION, &t.quantum_ns, "TIME", "of a slice (default 50ms)"},
        {"switch-cost", OPTION_DURATION, &t.switch_cost_ns, "TIME",
         "lost in each slice (default none)"},
        {"reserve", OPTION_TEXTS, &t.reserve, "A-B@FROM+FOR",
         "keep these processors free then; in seconds"},
        {"lublin", OPTION_NUMBER, &t.lublin, "JOBS", "draw them from the Lublin-Feitelson model"},
        {"seed", OPTION_NUMBER, &t.seed, "N", "--lublin: of the draws (default 1)"},
        {"load", OPTION_TEXT, &t.load, "X", "--lublin: stretch arrivals to this load, such as 0.9"},
        {"out", OPTION_TEXT, &t.out, "DIR", "write jobs.csv, schedule.json and schedule.svg there"},
        {"json", OPTION_FLAG, &t.json, NULL, "a JSON object for each policy, on a line"},
        {0}};
    char name[NAME_MAX_BYTES] = "lublin";
    struct chosen policies = {0};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 1)
        return complain("sim", "one trace at a time; see: storm help sim");
    struct sim_request q = {.trace = count == 1 ? argv[1] : NULL,
                            .name = name,
                            .strict = t.strict,
                            .json = t.json,
                            .lublin = t.lublin,
                            .seed = t.seed == UINT64_MAX ? 1 : t.seed,
                            .out = t.out,
                            .batch = {.pes = (uint32_t)t.pes,
                                      .slots = (uint32_t)t.mpl,
                                      .quantum_ns = t.quantum_ns,
                                      .switch_cost_ns = t.switch_cost_ns}};
    int status = check(&t, &q);
    struct batch_window windows[NUMBERS_MAX];
    if (status == STATUS_OK)
        status = parse_windows(&t.reserve, windows);
    q.batch.windows = windows;
    q.batch.window_count = t.reserve.count;
    if (status == STATUS_OK && t.load != NULL && !parse_load(t.load, &q.load_permille))
        status = complain("sim", "--load: \"%s\" will not do; for example --load 0.9", t.load);
    if (status == STATUS_OK)
        status = choose(t.policy, guest, &policies);
    if (status == STATUS_OK && t.out != NULL && policies.count > 1)
        status = complain("sim", "--out: of one policy at a time");
    if (q.trace != NULL)
        name_of(q.trace, name);
    return status == STATUS_OK ? go(&q, &policies) : status;
}

bool sim_policy_file(int argc, char **argv, char path[SIM_PATH_MAX]) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *at = NULL;
        if (strncmp(argv[i], "--policy=", 9) == 0)
            at = argv[i] + 9;
        else if (strcmp(argv[i], "--policy") == 0 && i + 1 < argc)
            at = argv[i + 1];
        for (size_t len; at != NULL && *at != '\0'; at += len + (at[len] == ',')) {
            len = strcspn(at, ",");
            if (memchr(at, '/', len) == NULL || len >= SIM_PATH_MAX)
                continue;
            snprintf(path, SIM_PATH_MAX, "%.*s", (int)len, at);
            return true;
        }
    }
    return false;
}

/* This command is static and cannot load a policy: a program beside it does. */
int sim_main(int argc, char **argv) {
    char path[SIM_PATH_MAX], program[SIM_PATH_MAX];
    if (sim_policy_file(argc, argv, path) &&
        companion_find("storm-sim", program, sizeof program) == 0) {
        execv(program, argv);
        return complain(program, "%s", strerror(errno));
    }
    return sim_main_with(argc, argv, NULL);
}
