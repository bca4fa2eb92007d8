/* SPDX-License-Identifier: MIT */
/* Waits for jobs without their output: storm wait, storm submit --wait. */
#pragma once

#include "cli/contact.h"
#include "cli/jobs.h"

struct waiter {
    struct contact contact;
    struct joblist jobs;
    uint8_t *states; /* of each: enum waited */
    uint32_t left;   /* that are not over */
    uint32_t held;   /* that are, and whose output is being written */
    uint64_t held_until;
    uint32_t unwritten; /* whose output could not be written */
    bool verbose;       /* what each has used is told */
    bool done;
    int status; /* the highest so far */
};

/* Connects. 0, or the exit status after a complaint. */
int waiter_begin(struct waiter *w);

/* For these jobs, which are taken over; `array`: the first stands for all. */
int waiter_follow(struct waiter *w, struct joblist *jobs, bool array);

/* Until all are over, and their output is in its files. Returns the exit status; ends the connection. */
int waiter_until_over(struct waiter *w);
