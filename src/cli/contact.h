/* SPDX-License-Identifier: MIT */
/* How a command reaches its cluster, and how it asks one thing and waits for the answer. */
#pragma once

#include "base/units.h"
#include "client/session.h"

/* For a manager to come back: commands that wait for jobs, and those that only ask. */
#define PATIENCE_WAITING (60 * NS_PER_S)
#define PATIENCE_ASKING  (2 * NS_PER_S)

struct contact {
    struct loop loop;
    struct cluster cluster;
    struct session *session;
    bool lost;  /* and that was told */
    bool found; /* by contact_open: contact_close frees the cluster */
};

/* Finds the cluster of that name (NULL: the usual); cluster_free is needed if that was good. 0, or the exit status after a complaint. */
int contact_find(struct cluster *ret, const char *name);

/* Connects; `callbacks` says what to do with what comes, its `lost` is ours. 0, or the exit status. */
int contact_open(struct contact *c, const char *name, const struct session_config *callbacks);
/* The same, when the cluster is known already. */
int contact_begin(struct contact *c, const struct session_config *callbacks);
void contact_close(struct contact *c);
/* Nodes that we hear of may be hosts that have come since: then their names are looked up again. */
void contact_meet(struct contact *c, const struct nodeset *nodes);

/* Says why there was no answer. Returns the exit status. */
int contact_lost(const struct contact *c, enum session_loss why);
/* The same of a manager that speaks another version of the protocol; `what` is to be done about it. */
int contact_other(const char *name, const struct session_other *other, const char *what);

/* Says that a request was not granted; `what` it was about. Returns the exit status. */
int contact_refused(const char *what, const struct message_answer *a);

/* An answer that has come. */
struct contact_answer {
    bool here;
    uint8_t code;
    uint32_t job, count;
    char text[512];
};

/* Waits for the answer. 0, or the exit status. */
int contact_act(struct contact *c, const struct message_act *m, struct contact_answer *ret);

/* The same of a submission. */
int contact_submit(struct contact *c, const struct message_submit *m, struct contact_answer *ret);

int contact_reserve(struct contact *c, const struct message_reserve *m, struct contact_answer *ret);

/* Rows that have come; to be freed. */
struct contact_rows {
    bool here;
    bool last;    /* there are no more */
    bool refused; /* what was asked makes no sense, and that was said */
    int error;
    uint8_t *at;
    size_t len;
    uint32_t total;
};

/* Adds the rows of the answer. 0, or the exit status. */
int contact_ask(struct contact *c, const struct message_ask *m, struct contact_rows *ret);

/* Copies an answer out of the message. */
void contact_answered(void *answer, const struct message_answer *a);

/* The numbers of jobs among arguments. 0, or the exit status after a complaint. */
int contact_job(const char *command, const char *text, uint32_t *ret);
