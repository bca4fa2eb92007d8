/* SPDX-License-Identifier: MIT */
/* storm work: command lines as work steps on elastic workers.
 *
 * The command is the master of a work distributor of its own (office.h) and has workers started as jobs (pilots.h). What
 * became of each line is in a book (workbook.h), in the folder of the distributor: CLUSTER/work/NAME. A line has ended when the
 * book says so; only then is its result acknowledged. So whatever is killed, the next life begins with the book: what it has
 * is not run again, all else is sent, and the distributor tells those that it knows from those that are new. */
#pragma once

#include "cli/workbook.h"
#include "cli/contact.h"
#include "cli/showing.h"
#include "cli/office.h"
#include "cli/options.h"
#include "cli/pilots.h"
#include "cli/supply.h"

struct work_wish {
    const char *cluster, *file, *log, *resume, *resume_failed;
    const char *need, *on, *exclude, *name;
    uint64_t workers, retries, limit_ns;
    bool unordered, ordered, halt, keep_going, progress, json, zero, dry_run, automatic;
};

struct work {
    const struct work_wish *wish;
    struct contact contact;
    struct supply supply;
    struct office office;
    struct workbook book;
    struct pilots pilots;
    struct showing showing;
    struct source input, signals;
    bool input_watched, input_over;
    char name[64];
    char folder[OFFICE_PATH_MAX];
    bool ours;  /* the folder is, until we end */
    bool found; /* it was there before */

    char *pending;   /* a line that there was no room for */
    uint64_t *again; /* numbers of lines that are to be sent again */
    uint64_t again_count, again_cap;
    uint64_t open;         /* lines that were sent and have not ended */
    uint64_t ended;        /* lines that have, in this life or before */
    uint64_t failed;       /* of them */
    uint64_t first_failed; /* the first line of those that have in this life; 0: none */
    uint32_t first_status;
    char first_command[80];
    uint64_t next;     /* the next to be shown, where order counts */
    uint64_t shown_at; /* how far it is */
    int signal;        /* that we end by */
    int status;        /* why we end before all is done, as exit status; 0: we do not */
};

/* work_lines.c: lines there and back. All return 0 or -errno, with the reason told. */
int work_feed(struct work *w);
int work_collect(struct work *w);
bool work_is_done(const struct work *w);
bool work_is_halted(const struct work *w);
/* What was shown leaves, then the book may say so. */
int work_write_down(struct work *w);
/* What has ended and waits for others is shown after all. */
void work_show_rest(struct work *w);
