/* SPDX-License-Identifier: MIT */
/* Events of the log: what record.c writes, and takes up again. Part of mm/inside.h. */
#pragma once

#include "mm/chronicle.h"
#include "wire/classes.h"
#include "wire/codec.h"

struct job;
struct mm;
struct running;

enum event {
    EVENT_SUBMIT,
    EVENT_START,
    EVENT_END,
    EVENT_DRAIN,
    EVENT_HOLD,
    EVENT_AGAIN,
    EVENT_ENDING,  /* somebody has asked for the end of what runs */
    EVENT_AWAIT,   /* what became of what a submission waits for */
    EVENT_POLICY,  /* another scheduling policy */
    EVENT_RESERVE, /* nodes are reserved, or no more */
    EVENT_CLASS,   /* a program has defined a class, or removed one */
    EVENTS
};

/* Key of what is not about a job. */
#define NODES_KEY   HISTORY_KEY_END
#define POLICY_KEY  (HISTORY_KEY_END + 1)
#define RESERVE_KEY (HISTORY_KEY_END + 2)

enum held { HELD_NOT, HELD_BY_USER, HELD_CALLED, HELD_BY_BOTH };

struct record_head {
    uint8_t event;
    uint32_t job;
    uint32_t
        count; /* SUBMIT: of jobs; START, END, AGAIN, ENDING: the attempt; DRAIN: so or not; HOLD: enum held;
                     * AWAIT: the job that it was about; POLICY: slots */
    uint64_t at; /* of the calendar */
};

void record_walk_head(struct codec *c, struct record_head *h);
/* How a job ended. */
void record_walk_end(struct codec *c, struct job *j);
uint64_t record_submit(struct mm *m, const struct job *first, uint32_t count, struct bytes body);
uint64_t record_start(struct mm *m, const struct job *j, const struct running *r);
uint64_t record_hold(struct mm *m, const struct job *j, const struct running *r);
uint64_t record_again(struct mm *m, const struct job *j);
uint64_t record_ending(struct mm *m, const struct job *j, const struct running *r);
uint64_t record_end(struct mm *m, const struct job *j);
uint64_t record_await(struct mm *m, const struct job *first, uint32_t on, bool good);
uint64_t record_drain(struct mm *m, const struct nodeset *set, bool drained, struct bytes reason);
uint64_t record_reserve(struct mm *m, const struct message_reserve *w);

/* Of a class that a program defines. */
struct class_change {
    uint64_t request[2];
    bool removed;
    struct host_class what;
};
uint64_t record_class(struct mm *m, const struct job *head, const struct class_change *w);
uint64_t record_policy(struct mm *m, const char *name, uint32_t slots, uint64_t quantum_ns);
void record_replay(struct mm *m, const struct input_replay *in);
/* The SUBMIT in the event that opened a job's key. */
int record_spec(struct mm *m, struct bytes event, struct message_submit *ret);
