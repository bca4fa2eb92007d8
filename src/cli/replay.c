/* SPDX-License-Identifier: MIT */
/* storm replay: the jobs of a workload file, on a cluster, as they arrive: see replay.h. */
#include "cli/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/lines.h"
#include "cli/swf.h"
#include "cli/when.h"
#include "os/companion.h"

_Static_assert((int)LINES_WHY_MAX == (int)WORKLOAD_WHY_MAX &&
                   (int)LINES_WHY_MAX == (int)JOBFILE_WHY_MAX,
               "one reason fits into the other");

/* So much ahead the first job arrives, and so much more for each: to submit them takes time. */
#define AHEAD_NS     (NS_PER_S / 2)
#define AHEAD_JOB_NS (200 * NS_PER_US)

/* ---- the file ---- */

static int take(void *context, struct bytes line, char why[LINES_WHY_MAX]) {
    struct replay *r = context;
    if (!r->known) {
        int tells = jobfile_tells_trace(line);
        r->known = tells >= 0;
        r->is_trace = tells > 0;
    }
    if (r->known && r->is_trace)
        return workload_line(&r->trace, line, why);
    r->jobfile.lines = r->lines->count - 1; /* also those that it has not seen */
    return jobfile_line(&r->jobfile, line, why);
}

static size_t job_count(const struct replay *r) {
    return r->is_trace ? r->trace.count : r->jobfile.count;
}

static int read_file(struct replay *r) {
    struct lines lines = {
        .path = r->path, .command = "replay", .strict = r->strict, .take = take, .context = r};
    r->lines = &lines;
    int status = lines_read(&lines);
    r->lines = NULL;
    if (status != 0)
        return status;
    jobfile_sort(&r->jobfile);
    if (workload_sort(&r->trace) < 0)
        return complain("replay", "%s", strerror(ENOMEM)), STATUS_STORM;
    size_t count = job_count(r);
    if (count == 0)
        return complain(r->path, "there is no job in it; it should have lines such as: 10 -n 4 "
                                 "./solver, or be in the Standard Workload Format");
    r->first = r->part.first > 0 ? (size_t)r->part.first - 1 : 0;
    r->end = r->part.last > 0 && r->part.last < count ? (size_t)r->part.last : count;
    if (r->first >= r->end)
        return complain(r->path, "there are only %zu jobs in it", count);
    r->bad = calloc(count, sizeof *r->bad);
    return r->bad != NULL ? 0 : (complain("replay", "%s", strerror(ENOMEM)), STATUS_STORM);
}

/* ---- sizes of a trace ---- */

/* As much of this cluster as it was of the other machine. */
static int in_proportion(struct replay *r, uint64_t pes) {
    if (r->trace.pes == 0)
        return complain(r->path, "--fit: its header does not say how many processors there were");
    for (size_t i = 0; i < r->trace.count; i++) {
        struct workload_job *j = &r->trace.jobs[i];
        uint64_t share = (j->pes * pes + r->trace.pes / 2) / r->trace.pes;
        j->pes = (uint32_t)(share > 0 ? share : 1);
    }
    return 0;
}

static int fit(struct replay *r) {
    const struct cluster *c = &r->contact.cluster;
    uint64_t pes = (uint64_t)cluster_count(c) * c->pes;
    if (!r->is_trace)
        return r->fit ? complain("replay", "--fit is for traces") : 0;
    int status = r->fit ? in_proportion(r, pes) : 0;
    if (status != 0)
        return status;
    size_t large = workload_fit(&r->trace, (uint32_t)pes);
    if (large == 0)
        return 0;
    if (r->strict)
        return complain(r->path,
                        "%zu jobs want more than the %" PRIu64 " processors of cluster `%s`; make "
                        "them smaller with --fit",
                        large, pes, c->name);
    complain(r->path,
             "%zu jobs want more than %" PRIu64 " processors: they get all; --fit makes all "
             "jobs smaller",
             large, pes);
    return 0;
}

/* ---- all of it ---- */

static uint64_t to_cluster_time(const struct replay *r, uint64_t ns) {
    return (uint64_t)((unsigned __int128)ns * SWF_SCALE_ONE / r->scale_x1000);
}

/* A trace begins with its first job, whatever its time is. */
uint64_t replay_arrival(const struct replay *r, size_t job) {
    if (!r->is_trace)
        return to_cluster_time(r, r->jobfile.jobs[job].arrival_ns);
    uint64_t since = r->trace.jobs[job].submit - r->trace.jobs[r->first].submit;
    return since > UINT64_MAX / NS_PER_S ? UINT64_MAX / 2 : to_cluster_time(r, since * NS_PER_S);
}

const char *replay_place(const struct replay *r, size_t job, char out[REPLAY_PLACE_MAX]) {
    const char *slash = strrchr(r->path, '/');
    const char *name = slash != NULL ? slash + 1 : r->path;
    if (r->is_trace)
        snprintf(out, REPLAY_PLACE_MAX, "%.200s: job %" PRIu64, name, r->trace.jobs[job].id);
    else
        snprintf(out, REPLAY_PLACE_MAX, "%.200s:%" PRIu64, name, r->jobfile.jobs[job].line);
    return out;
}

static int set_start(struct replay *r) {
    if (r->begin != NULL)
        return when_begin(r->begin, &r->start_ns);
    r->start_ns = when_now() + AHEAD_NS + (r->end - r->first) * AHEAD_JOB_NS;
    return 0;
}

static void say_sent(const struct replay *r) {
    const struct joblist *l = &r->jobs;
    char late[80] = "";
    if (r->late > 0)
        snprintf(late, sizeof late, "; %" PRIu64 " were submitted later than they arrive", r->late);
    if (r->json || l->count == 0)
        return;
    if (l->count == 1)
        printf("one job, number %" PRIu32 "%s\n", l->at[0], late);
    else
        printf("%" PRIu32 " jobs, numbers %" PRIu32 "-%" PRIu32 "%s\n", l->count, l->at[0],
               l->at[l->count - 1], late);
    fflush(stdout);
}

static int go(struct replay *r) {
    int status = contact_find(&r->contact.cluster, r->cluster);
    if (status == 0 && r->is_trace && companion_find("storm-mime", r->mime, sizeof r->mime) < 0) {
        complain("replay", "storm-mime is missing; install storm again");
        status = STATUS_FAILED;
    }
    if (status == 0)
        status = fit(r);
    if (status == 0)
        status = replay_judge(r);
    if (status == 0)
        status = set_start(r);
    if (status == 0 && r->dry_run)
        return replay_show(r);
    if (status == 0)
        status = replay_send(r);
    if (status != 0)
        return status;
    say_sent(r);
    if (!r->detach)
        return replay_watch(r);
    return r->refused + r->bad_count > 0 ? STATUS_FAILED : STATUS_OK;
}

static int play(struct replay *r) {
    workload_init(&r->trace);
    jobfile_init(&r->jobfile);
    int status = read_file(r);
    if (status == 0)
        status = go(r);
    cluster_free(&r->contact.cluster);
    workload_fini(&r->trace);
    jobfile_fini(&r->jobfile);
    joblist_fini(&r->jobs);
    free(r->sources);
    free(r->bad);
    return status;
}

static void help(const struct option *table) {
    puts(
        "usage: storm replay FILE [OPTIONS]\n"
        "\n"
        "Runs the jobs of a workload file as they arrive, waits for them, and shows what it was like.\n"
        "A line of FILE is a time and what storm submit would be told:\n"
        "\n"
        "    1:30 -n 4 --time 10m ./solver data\n"
        "\n"
        "or FILE is a trace in the Standard Workload Format: a program that computes and sleeps plays\n"
        "its jobs. Either may be compressed by gzip; - is standard input.");
    options_print(table, stdout);
}

/* "5", "2.5%" */
static bool parse_percent(const char *text, double *ret) {
    char *end;
    *ret = strtod(text, &end);
    return end != text && (*end == '\0' || strcmp(end, "%") == 0) && *ret >= 0 && *ret <= 100;
}

int replay_main(int argc, char **argv) {
    struct replay r = {.scale_x1000 = SWF_SCALE_ONE, .grace_ns = NS_PER_S, .busy = 1};
    const char *scale = NULL, *busy = NULL;
    const struct option table[] = {
        {"scale", OPTION_TEXT, &scale, "X", "X times faster: an hour of a trace in 3600/X seconds"},
        {"jobs", OPTION_RANGE, &r.part, "N|A..B", "only the first N, or those from A to B"},
        {"begin", OPTION_TEXT, &r.begin, "TIME", "of the workload (default: at once)"},
        {"fit", OPTION_FLAG, &r.fit, NULL, "a trace: sizes in proportion to this cluster's"},
        {"busy", OPTION_TEXT, &busy, "PERCENT", "a trace: its jobs compute so much (default 1)"},
        {"grace", OPTION_DURATION, &r.grace_ns, "TIME", "a trace: added to limits (default 1s)"},
        {"strict", OPTION_FLAG, &r.strict, NULL, "refuse a file if a line of it will not do"},
        {"dry-run", OPTION_FLAG, &r.dry_run, NULL, "show what would be submitted"},
        {"detach", OPTION_FLAG, &r.detach, NULL, "do not wait: the manager goes on alone"},
        {"json", OPTION_FLAG, &r.json, NULL, "the summary as a JSON object, as storm sim's"},
        {"cluster", OPTION_TEXT, &r.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP)
        return help(table), STATUS_OK;
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count != 1)
        return complain("replay", "one workload file, please; see: storm help replay");
    if (scale != NULL && !swf_scale(scale, &r.scale_x1000))
        return complain("replay", "--scale: \"%s\" will not do; for example --scale 60", scale);
    if (busy != NULL && !parse_percent(busy, &r.busy))
        return complain("replay", "--busy: \"%s\" will not do; for example --busy 50", busy);
    r.path = argv[1];
    return play(&r);
}
