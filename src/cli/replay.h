/* SPDX-License-Identifier: MIT */
/* storm replay: the jobs of a workload file, on a cluster, as they arrive.
 *
 * All are submitted at once, each not to begin before its arrival: the machine manager keeps the time, and goes on with
 * the workload when this command is gone. */
#pragma once

#include "cli/contact.h"
#include "cli/jobs.h"
#include "cli/options.h"
#include "sim/jobfile.h"
#include "sim/workload.h"

enum { REPLAY_PATH_MAX = 4096, REPLAY_PLACE_MAX = 256, REPLAY_POLICY_MAX = 64 };

struct lines;

struct replay {
    /* What was asked for. */
    const char *path, *cluster, *begin;
    bool strict, fit, dry_run, detach, json;
    uint64_t scale_x1000;
    uint64_t grace_ns;
    double busy;              /* per cent */
    struct number_range part; /* of the jobs, from 1 */
    /* The file: a trace, or lines of our own. */
    const struct lines *lines; /* while it is read */
    bool known, is_trace;
    struct workload trace;
    struct jobfile jobfile;
    char mime[REPLAY_PATH_MAX]; /* what plays the jobs of a trace */
    /* The jobs of it that are submitted: [first, end). */
    size_t first, end;
    bool *bad; /* will not do */
    size_t bad_count;
    /* What comes of it. */
    struct contact contact;
    uint64_t start_ns; /* of the calendar: when the first might arrive */
    struct joblist jobs;
    size_t *sources; /* of each of them: which job of the file it is */
    uint64_t refused, late;
    char policy[REPLAY_POLICY_MAX]; /* its name */
};

/* Where the job comes from, for people: "jobs.txt:12". */
const char *replay_place(const struct replay *r, size_t job, char out[REPLAY_PLACE_MAX]);

/* Since the beginning, in the cluster's time. */
uint64_t replay_arrival(const struct replay *r, size_t job);

/* replay_send.c: looks at every job, and tells of those that will not do. 0, or the exit status after a complaint. */
int replay_judge(struct replay *r);

/* Instead of submitting them. */
int replay_show(struct replay *r);

/* All that will do. */
int replay_send(struct replay *r);

/* replay_watch.c: until all are over; then what it was like. Returns the exit status. */
int replay_watch(struct replay *r);
