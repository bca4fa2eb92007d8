/* SPDX-License-Identifier: MIT */
/* A workload file of our own: a line for each job, when it arrives and how it is submitted.
 *
 *     # time    options and command of storm submit
 *     0         -n 4 --time 1m ./solver first.dat
 *     1:30      --name "post processing" ./render
 *     +10       -N 2 ./solver second.dat          ten seconds behind the line above
 *
 * Times are those of storm submit --time. Quotes keep words together; a line that begins with # is a remark. Like a trace
 * (workload.h) it is read line by line; what a line asks for is judged by whoever submits it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

enum { JOBFILE_WHY_MAX = 120, JOBFILE_WORDS_MAX = 1024 };

struct jobfile_job {
    uint64_t line;
    uint64_t arrival_ns; /* since the beginning */
    size_t text;         /* where its words are */
    uint32_t words;
};

struct jobfile {
    struct jobfile_job *jobs;
    size_t count, cap;
    uint64_t lines;
    uint64_t last_ns; /* arrival of the last line */
    char *text;       /* words, each with a NUL */
    size_t text_len, text_cap;
};

void jobfile_init(struct jobfile *r);
void jobfile_fini(struct jobfile *r);

/* The next line, without its end. -EINVAL: it is malformed, and `why` says in words how; it is passed over. -ENOMEM. */
int jobfile_line(struct jobfile *r, struct bytes line, char why[JOBFILE_WHY_MAX]);

/* By arrival, and as they came. */
void jobfile_sort(struct jobfile *r);

/* The words of a job, NULL behind them; `out` has room for one more than its words. They are borrowed. */
void jobfile_words(const struct jobfile *r, size_t job, char **out);

/* A line that tells what kind of file it is in: 1: a trace in the Standard Workload Format, 0: one of ours; -EAGAIN: it does not
 * tell. In a trace the second word is a number, too. */
int jobfile_tells_trace(struct bytes line);
