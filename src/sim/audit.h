/* SPDX-License-Identifier: MIT */
/* Judges a cluster of jobs by what really happened: after every step, at quiet moments, and at the end.
 *
 * It knows what customers asked and were told (the book), what became of every process (the deeds of the
 * model kernels), and may look into the manager; it knows nothing of how managers work.
 *
 *   S1   no node has more processes than processors
 *   S2   a job that is said to be over has no process, and never gets one again
 *   S3   what was accepted has exactly one end
 *   S4   no two attempts of a job live at once, no process is started twice
 *   S8   a node's epoch does not go back
 *   S9   processors are held for those who have them, and for nobody else
 *   S10  tables stay within their limits
 *   S11  a new manager that reads the log knows the same as the one that wrote it
 *   status  how a job ended is what its processes did; all output was received, none twice */
#pragma once

#include "sim/book.h"
#include "sim/hall.h"

struct audit {
    struct hall *hall;
    const struct book *book;
    struct verdict *verdict;
    uint32_t nodes, pes;
    bool faultless; /* nothing was done to the cluster: then nothing may be lost */
    bool lossy;     /* a launcher has died, or a customer was away for long: output may be lost */
    uint64_t changes;
    uint64_t settled; /* as the manager counted when we last looked */
    uint64_t steps;   /* of the manager */
    uint32_t over_cap;
    uint8_t *over; /* by job */
    uint32_t *epochs, *boots;
};

void audit_init(struct audit *a, struct hall *h, const struct book *b, struct verdict *v);
void audit_fini(struct audit *a);

/* After every step of anybody. */
void audit_step(struct audit *a, uint32_t node);

/* When nothing is under way to the disk: true if that is so, and S11 was judged. */
bool audit_log(struct audit *a);

/* Everything should be over. */
bool audit_done(const struct audit *a);
void audit_final(struct audit *a);
