/* SPDX-License-Identifier: MIT */
/* What the files of the launcher share: runs, their processes and streams.
 *
 * A run's number in the table is its group's. Processes and set-ups of all runs lie without gaps, one
 * run after the other; what is behind a forgotten run moves up. So any mix of large and small runs fits as
 * long as the sum does, and the memory in use is always the lowest. */
#pragma once

#include "pl/launcher.h"
#include "wire/message.h"
#include "wire/setup.h"

enum { STREAMS = 2 };

struct stream {
    uint64_t read;     /* bytes that the process has written and the world has read */
    uint64_t taken;    /* of them, by the client */
    uint64_t again_at; /* when to tell again what is not taken; 0 if all is */
    uint64_t pause_ns; /* until then */
    bool ended;        /* nothing comes after what was read */
    bool rest;         /* something may be in the pipe of a process that is gone */
};

struct process {
    struct stream streams[STREAMS]; /* 1 and 2 */
    uint64_t drained;               /* of its input; UINT64_MAX: it reads no more */
    uint32_t rank;
    uint32_t pid;   /* 0: not started yet, or it could not be */
    uint32_t value; /* as in CHILD */
    uint8_t event;  /* CHILD_STARTED until it is over */
    uint8_t step;
    bool typed; /* somebody has something for its input: it is told what was drained */
    bool ours;  /* ended by us */
};

enum run_state { RUN_FREE, RUN_READY, RUN_STARTED, RUN_ENDED };

struct run {
    uint64_t run;
    enum run_state state;
    uint32_t process; /* the first of it */
    uint32_t count;
    uint32_t left; /* that have not ended */
    uint32_t setup;
    uint32_t setup_bytes;
    uint64_t slots;     /* of the matrix, as bits; 0: all */
    uint64_t version;   /* of the matrix that says so */
    bool due;           /* ready, and to be started when it is its turn */
    bool still;         /* the group is frozen */
    bool suspended;     /* by its user */
    bool ending;        /* SIGTERM was sent on our behalf */
    bool killing;       /* and this: nothing of it may be left */
    bool failed;        /* a process could not be started */
    bool lost;          /* killed because nobody renewed */
    bool loose;         /* its memory is not limited as was asked for */
    bool dropped;       /* nobody wants to know any more */
    bool sweep;         /* all have ended; their offspring is to follow */
    bool empty;         /* nothing of it runs any more */
    bool closed;        /* the world has let go of it: all that it has written is taken */
    struct usage usage; /* once it is empty */
    uint32_t rests;     /* streams of which more may come nevertheless */
    struct ending end;  /* or, until then, the worst that has ended: end.more */
};

/* See gang.c. */
struct gang {
    bool heard;      /* of a turn at all */
    uint64_t number; /* of the newest strobe */
    uint8_t slot;    /* that it names */
    uint8_t now;     /* whose runs run here */
    bool over;       /* since then something of it has ended here */
    uint64_t life;   /* of the manager who has said of slots what is known last */
    bool prompt;
    uint64_t cycle;           /* slots that take turns by themselves; 0: only strobes change it */
    uint64_t quantum;         /* of a turn */
    uint64_t next_at;         /* when the next of them has its turn */
    struct message_turn tell; /* to be answered */
    uint64_t heard_at;
    uint32_t missed;
};

enum talk {
    TALK_NONE, /* the place is free */
    TALK_OPEN,
    TALK_ANEW, /* it is to begin anew, and has not yet */
    TALK_STUCK /* it takes nothing; it will begin anew */
};

/* Frames of one program on their way up. */
enum { PETITION_WINDOW = 16 };

/* See petitions.c. */
struct petitioner {
    enum talk state;
    bool reading; /* a frame was asked for */
    uint64_t run;
    uint32_t rank;
    uint32_t number;      /* of the conversation; 0: there is none */
    uint32_t said, acked; /* frames upwards, and those that the manager has heard of */
    uint32_t heard, told; /* downwards, and those that it knows of */
    uint32_t sizes[PETITION_WINDOW];
    uint32_t under_way; /* bytes upwards */
    uint64_t check_at;  /* 0: not */
    uint64_t pause_ns;
};

struct pl {
    struct pl_config config;
    struct gang gang;
    uint32_t link; /* to the manager, 0 if there is none */
    uint64_t lease_ns;
    uint64_t lease_at;  /* 0: no end */
    uint64_t resend_at; /* the timer, 0 if it is not set */
    struct run *runs;
    struct process *processes;
    uint8_t *setups;
    uint32_t run_end; /* all that are in use lie before this */
    uint32_t run_count;
    uint32_t process_count;
    uint32_t setup_count;
    struct petitioner *petitioners;
    uint32_t petitioner_end; /* all that are in use lie before this */
    uint32_t conversations;  /* that have begun */
    uint64_t petition_at;    /* the timer, 0 if it is not set */
};

enum pl_timer {
    TIMER_SWEEP = 1,
    TIMER_RESEND,
    TIMER_LEASE,
    TIMER_TURNED,
    TIMER_SLICE,
    TIMER_PETITION
};

static inline uint32_t run_group(const struct pl *p, const struct run *r) {
    return (uint32_t)(r - p->runs);
}

static inline struct process *run_process(const struct pl *p, const struct run *r, uint32_t index) {
    return &p->processes[r->process + index];
}

#define RUNS_EACH(r, p)                                                \
    for (struct run *r = (p)->runs; r < (p)->runs + (p)->run_end; r++) \
        if (r->state != RUN_FREE)

/* runs.c */

struct run *runs_find(struct pl *p, uint64_t run);

/* The run of a group that the world tells of; NULL if it is forgotten. */
struct run *runs_of_group(struct pl *p, uint32_t group);

/* A new one, ready; NULL if there is no room. */
struct run *runs_add(struct pl *p, const struct setup *s, struct bytes setup);
void runs_remove(struct pl *p, struct run *r);

/* Notes how a process ended. */
void run_child(struct pl *p, struct run *r, const struct input_child *c);

/* Has it ended worse than all before, by itself, while others go on? Then r->end tells of it. */
bool run_worse(struct pl *p, struct run *r, uint32_t index);
/* Its memory is not limited as was asked for, and that has not been told: true, and r->end tells it. */
bool run_loose(struct pl *p, struct run *r);

/* It is over: sums up how. */
void run_close(struct pl *p, struct run *r);

/* gang.c */

/* Lets go and holds what is to be, starts what is due: after whatever may have changed that. */
void gang_settle(struct pl *p, struct effects *out);
/* All processes of this run have ended. */
void gang_left(struct pl *p, const struct run *r, struct effects *out);
/* It was sent at `from`, by our clock, as far as we know. */
void gang_turn(struct pl *p, const struct message_turn *m, uint64_t from, uint64_t now,
               struct effects *out);
void gang_strobe(struct pl *p, const struct input_strobe *in, uint64_t now, struct effects *out);
void gang_slots(struct pl *p, const struct message_slots *m, struct effects *out);
/* The next slot of the cycle is due. */
void gang_slice(struct pl *p, uint64_t now, struct effects *out);
/* The turn that was to be told of is there. */
void gang_told(struct pl *p, uint64_t now, struct effects *out);

/* streams.c */

/* Tells the world's news to the manager. */
void streams_written(struct pl *p, struct run *r, const struct input *in, struct effects *out);
void streams_drained(struct pl *p, struct run *r, uint32_t index, uint64_t offset,
                     struct effects *out);

/* Passes on what the manager says. */
void streams_taken(struct pl *p, struct run *r, const struct message_taken *m, uint64_t now,
                   struct effects *out);
void streams_typed(struct pl *p, struct run *r, const struct message_typed *m, struct effects *out);

/* All that is not taken, and how far input has come. */
void streams_again(struct pl *p, struct run *r, uint64_t now, struct effects *out);

/* Is everything that it has written, or may have, with the client? */
bool streams_done(struct pl *p, const struct run *r);

/* Nobody is left who could write: counts the streams whose end is still to be told. */
void streams_sealed(struct pl *p, struct run *r);

/* The timer is due. */
void streams_timer(struct pl *p, uint64_t now, struct effects *out);

/* petitions.c */

void petitions_input(struct pl *p, const struct input *in, struct effects *out);
void petitions_reply(struct pl *p, const struct message_reply *m, uint64_t now,
                     struct effects *out);
/* What was under way may be lost. */
void petitions_all_anew(struct pl *p, struct effects *out);
/* None of its processes is left. */
void petitions_run_over(struct pl *p, const struct run *r, struct effects *out);
void petitions_timer(struct pl *p, uint64_t now, struct effects *out);

/* Encodes and sends to the manager, if there is one. */
void pl_send(struct pl *p, uint16_t type, const union message *m, struct bytes tail,
             struct effects *out);
