/* SPDX-License-Identifier: MIT */
/* What is typed, on its way to the processes of a followed job.
 *
 * Bytes are read when there is room, sent, and kept until every process they are for has drained them:
 * a process that does not read stops us from reading. After a break, or when nothing moves for a while,
 * what is not drained is sent again. A terminal is not read while we are in its background. */
#pragma once

#include "client/session.h"

struct typing;

struct typing_config {
    struct loop *loop;
    struct session *session;
    int fd;
    uint32_t rank;  /* RANK_ALL: every process */
    uint32_t procs; /* of the job */
};

struct typing *typing_new(const struct typing_config *config);
void typing_free(struct typing *t);

/* The job runs under this number: from now on its input is read. */
void typing_begin(struct typing *t, uint64_t run);

void typing_drained(struct typing *t, const struct message_drained *m);

/* The link is up again: what is not drained may have been lost. */
void typing_again(struct typing *t);

/* The job is over. */
void typing_stop(struct typing *t);

/* Before every turn. */
void typing_settle(struct typing *t);

/* Whether anything can come from there: not from a closed descriptor or from /dev/null. */
bool typing_possible(int fd);
