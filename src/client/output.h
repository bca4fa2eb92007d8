/* SPDX-License-Identifier: MIT */
/* What the processes of a followed job have written, on its way to the screen or to files.
 *
 * Each process has two streams whose bytes are numbered; here they are taken in order. What comes twice
 * is dropped but acknowledged again, what comes early is dropped and will come again, so nothing is kept
 * but what a pipe has not taken yet. Bytes are acknowledged only when they are out: a reader that
 * is slow slows the job, not our memory. */
#pragma once

#include "client/session.h"
#include "client/sink.h"

struct output;

struct output_config {
    struct loop *loop;
    struct session *session;
    const struct cluster *cluster;
    int fd[2];           /* for streams 1 and 2, unless they go to files */
    const char *file[2]; /* patterns; NULL: to the descriptor */
    struct bytes places; /* of a job whose map is a list: copied */
    const char *tally;   /* where to note how far files are written (tally.h); NULL: nowhere */
    bool label;          /* whole lines, each behind its rank */
    bool late; /* others have taken some of it before: begin with the oldest that is left */
    void *context;
    /* Once for each sink that has failed: its name, and -errno. */
    void (*trouble)(void *context, const char *what, int error);
};

struct output *output_new(const struct output_config *config);
void output_free(struct output *o);

/* Files whose names are known already: 0, or -errno after telling the trouble. */
int output_open(struct output *o);

/* The job, and (when they are known) the nodes of a run and how many processes they share. */
void output_job(struct output *o, uint32_t job);
void output_nodes(struct output *o, const struct message_news *n);

/* Late: what nobody has taken begins to come now. */
void output_gather(struct output *o);

/* This attempt is the newest there is. */
void output_run(struct output *o, uint64_t run);

void output_take(struct output *o, const struct message_output *m);

/* Writes and acknowledges. At the end of every turn. */
void output_settle(struct output *o);

/* The job is over: lines that have no end are written too, everything is acknowledged. */
void output_finish(struct output *o);

/* Words of ours, to where this rank's errors go. */
void output_say(struct output *o, uint32_t rank, struct bytes words);

uint64_t output_received(const struct output *o); /* bytes of this run */
bool output_waiting(const struct output *o);      /* some of them are not out yet */
