/* SPDX-License-Identifier: MIT */
/* Judges a cluster of jobs by what really happened: after every step, at quiet moments, and at the end.
 *
 * It knows what customers asked and were told (the book), what became of every process (the deeds of the
 * model kernels), and may look into managers and launchers; it knows nothing of how they work.
 *
 *   S1   no node has more processes than processors, no job more than it was given there
 *   S2   a job that is said to be over has no process, offspring included, and never gets one again
 *   S3   what was accepted is there, and has exactly one end; the end that a customer is told is that one
 *   S4   no two attempts of a job live at once, no process is started twice
 *   S8   a node's epoch does not go back
 *   S9   processors are held for those who have them, and for nobody else
 *   S10  tables, rings and links stay within their limits
 *   S11  the log says what the manager knows, and is ahead of everything that was told or begun
 *   after  what waits for the end of others does not run before
 *   status  how a job ended is what its processes did; all output was received, none twice
 *
 * After a step only what it can have changed is looked at. That is the same as to look at everything:
 *   - A machine changes by its own steps only. Its tables (S8, S9, S10) are reckoned anew after each of
 *     them, as a whole: places that were never taken are left out, and have nothing in them.
 *   - S1, S2 and S4 say what may not live. They can be broken by a process that begins, which the kernels
 *     count, and S2 by a job that is over now; not by an end. Whenever one of these happens, all
 *     that live are looked at.
 *   - That what lives is held (S9) can be broken by a process that begins and by a step of the manager. All
 *     that live are looked at then.
 *   - The log grows; nothing in it changes. A second manager reads what is new in it, event by event, and is
 *     at every moment what a new life would be. It is compared, all jobs, after every step of the first
 *     (S11, S3). What customers are told is in the book, in order, and compared when it is new.
 * As the argument may be wrong, everything is looked at from the ground now and then (audit_whole). */
#pragma once

#include "sim/book.h"
#include "sim/hall.h"
#include "sim/region.h"

/* How a job has ended, as was said first. */
struct audit_end {
    bool over;
    uint8_t state;
    uint32_t status;
};

struct audit_epoch {
    uint32_t highest;
    uint32_t last, boots; /* in that life */
};

/* A manager that only reads the log. */
struct shadow {
    struct region memory;
    struct mm *mm;
    uint32_t read; /* events */
    struct effects out;
};

struct audit {
    struct hall *hall;
    const struct book *book;
    struct verdict *verdict;
    uint32_t nodes, pes;
    bool faultless;  /* nothing was done to the cluster: then nothing may be lost */
    uint32_t shares; /* jobs that may share a processor, in turns */
    bool gone;       /* a launcher has died, or somebody was away for long: jobs may be lost */
    bool lossy;      /* a launcher has died, or a customer was away for long: output may be lost */
    uint64_t births, agains;    /* of the deeds, when we last looked */
    uint32_t told;              /* the same of the book */
    uint64_t steps;             /* of the manager */
    uint32_t links_max;         /* of anybody */
    struct audit_end *ends;     /* by job */
    struct audit_epoch *epochs; /* by node, the root's last */
    uint32_t *scratch;          /* by node */
    struct shadow shadow;
};

void audit_init(struct audit *a, struct hall *h, const struct book *b, struct verdict *v);
void audit_fini(struct audit *a);

/* After every step of anybody, processes included. */
void audit_step(struct audit *a, uint32_t who);

/* Everything from the ground, at any moment. True if nothing was under way to the disk, and so a new
 * manager was made that has read the log as it would after a crash, and was compared, too. */
bool audit_whole(struct audit *a);

/* Everything should be over. */
bool audit_done(const struct audit *a);
void audit_final(struct audit *a);
