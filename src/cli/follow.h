/* SPDX-License-Identifier: MIT */
/* A job that somebody waits for at the terminal: its output, its input, its end, and what signals mean.
 *
 * Ctrl-C interrupts the job, twice kills it; the prompt is back a second later whatever the job does.
 * Ctrl-Z stops the job and the command; a hangup or a request to end is handed on to the job. */
#pragma once

#include <sys/types.h>

#include "cli/contact.h"
#include "cli/cores.h"
#include "cli/rawtty.h"
#include "cli/epilogue.h"
#include "cli/pids.h"
#include "cli/wish.h"
#include "client/output.h"
#include "client/typing.h"

/* What signals have been about so far. */
struct follow_signals {
    struct source source;
    uint64_t interrupted_at; /* the first Ctrl-C */
    bool told;               /* that there was one */
    uint64_t killed_at;      /* the second, or the grace is over */
    bool lapsed;             /* because the grace was over */
    uint64_t grace_until;    /* 0: there was no Ctrl-C */
    int ending;              /* the signal that asks us to end */
    uint64_t ending_at;
    bool stop; /* stop this command when the job has been told, or at this time */
    uint64_t stop_at;
};

/* For debuggers: see follow_debug.c. */
struct follow_debug {
    bool asked;          /* the user wants to be told when it is filled */
    const char *program; /* its file; NULL: not known */
    char file[4096];     /* room for that */
    uint64_t run;        /* that goes; 0: none has yet */
    uint32_t procs;
    struct pids pids;          /* of it, or of none: nobody has wanted to know */
    uint64_t ask_at, pause_ns; /* 0: not any more */
    uint32_t tries;
};

struct follow {
    struct contact contact;
    const struct wish *wish;
    const struct order *order; /* NULL: the job was there before */
    struct epilogue epilogue;
    struct giver *giver; /* NULL: it has no files to give */
    struct output *output;
    struct typing *typing;
    struct rawtty tty;
    struct follow_signals signals;
    struct follow_debug debug;
    struct cores cores;
    bool keep;    /* the job goes on when this command ends */
    uint32_t job; /* 0: no number yet */
    bool over, done;
    bool failed; /* its output could not be written */
    bool lost;   /* the manager is */
    int status;
    struct nodeset ran_on; /* all nodes until it is known */
    void *ran_on_storage;
    uint64_t ran_on_run;      /* which that was; 0: none */
    struct message_news last; /* without what it borrows */
    char nodes[256];          /* that have not confirmed its end yet */
    char text[300];
    uint64_t progress_at; /* when bytes have come last, after the end */
    uint64_t progress_bytes;
    uint64_t nudge_at, nudge_ns;
    uint64_t waits_at; /* when to say what it waits for; 0: not any more */
    uint64_t began_ns, looked_ns, born_ns, answered_ns, last_byte_ns;
    uint64_t since_ns[STATES]; /* of the submission, at the manager */
};

/* Connects; the manager can answer while we make ready. 0, or the exit status after a complaint. */
int follow_connect(struct follow *f, const struct wish *w);

/* Makes ready for output and input, and submits the order if there is one. */
int follow_begin(struct follow *f, const struct order *o);

/* Until the job is over and everything of it has come. Returns the exit status. */
int follow_until_over(struct follow *f);

/* What signals mean; follow_signals.c. */
void signals_begin(struct follow *f);
void signals_end(struct follow *f);
void signals_settle(struct follow *f);

/* Has it come to nothing, because a node does not see the program as we do? */
bool follow_hidden(const struct follow *f);

/* What the job has left that is wanted here; follow_fetch.c. */
void follow_fetch(struct follow *f);

/* What parallel debuggers look for; follow_debug.c. */
void debug_news(struct follow *f, const struct message_news *n);
void debug_pids(struct follow *f, const struct message_pids *m);
void debug_settle(struct follow *f);
void debug_end(struct follow *f);

/* -v: how long every stage took. */
void follow_times(const struct follow *f);
