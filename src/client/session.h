/* SPDX-License-Identifier: MIT */
/* A command's talk with the machine manager: one link, kept up over the manager's deaths.
 *
 * A request has a number drawn by us and is kept until it is answered; when the manager was gone and is
 * back, what is not answered is said again under the same number, and every followed job is followed
 * anew. Whatever arrives is handed on by callbacks, from within session_turn; what they are given is
 * borrowed. Streams are not kept here: whoever has them is told by `up` to say what is missing. */
#pragma once

#include "client/cluster.h"
#include "os/loop.h"
#include "wire/message.h"

struct session;

/* Why a session is over before we were done. */
enum session_loss {
    SESSION_NOBODY,   /* there is nobody to talk to */
    SESSION_SILENT,   /* somebody is there and does not answer */
    SESSION_STRANGER, /* somebody is there, and our key is none that it knows */
    SESSION_OTHER,    /* somebody is there and speaks another version of the protocol */
};

/* Who that is. */
struct session_other {
    uint32_t protocol;
    uint32_t release; /* as os/release.h has it */
};

struct session_config {
    struct loop *loop;
    const struct cluster *cluster;
    uint64_t patience_ns; /* without a manager */
    void *context;        /* of the calls below, each of which may be NULL */
    void (*up)(void *context);
    void (*news)(void *context, const struct message_news *m);
    void (*output)(void *context, const struct message_output *m);
    void (*drained)(void *context, const struct message_drained *m);
    void (*pids)(void *context, const struct message_pids *m);
    void (*lost)(void *context, enum session_loss why); /* once, at the end of our patience */
};

typedef void session_answered(void *context, const struct message_answer *a);

/* A copy: what the manager says of it, at first and when it is over; or (`m` is NULL) that it refuses. */
typedef void session_copied(void *context, const struct message_copied *m,
                            const struct message_answer *refusal);

/* What a node says to an offer that it was asked for. */
typedef void session_offered(void *context, const struct message_offered *m);

typedef void session_rows(void *context, const struct message_rows *r);

/* NULL with errno set. Begins to connect. */
struct session *session_new(const struct session_config *config);
void session_free(struct session *s);

/* One turn of the loop, then everything that was said in it goes out. */
void session_turn(struct session *s);
/* The same without waiting for anything. */
void session_peek(struct session *s);

/* Tells the manager what was said since the last turn, before a command ends. */
void session_flush(struct session *s);

/* Requests; the number of the message is filled in, and its node sets if they are NULL. 0, -E2BIG if it
 * is larger than the protocol allows, -ENOMEM. */
int session_submit(struct session *s, const struct message_submit *m, session_answered *then,
                   void *context);
int session_act(struct session *s, const struct message_act *m, session_answered *then,
                void *context);
int session_reserve(struct session *s, const struct message_reserve *m, session_answered *then,
                    void *context);
int session_ask(struct session *s, const struct message_ask *m, session_rows *then, void *context);

int session_copy(struct session *s, const struct message_copy *m, session_copied *then,
                 void *context);

/* Every node of the set says something, if it can; who does not is not waited for here. */
int session_offer(struct session *s, const struct message_offer *m, session_offered *then,
                  void *context);

/* What was asked for with this context is not listened to any more. */
void session_offer_end(struct session *s, const void *context);

/* The same about one job. */
int session_do(struct session *s, uint32_t job, enum verb verb, uint32_t value,
               session_answered *then, void *context);

/* News of this job from now on, over all lives of the manager; `value` as VERB_FOLLOW has it. `then`
 * hears the answer of every life. `known`: this life does so already, it need not be told. */
int session_follow(struct session *s, uint32_t job, uint32_t value, bool known,
                   session_answered *then, void *context);
void session_unfollow(struct session *s, uint32_t job);

/* Parts of streams: said once, lost if nobody is there. */
void session_taken(struct session *s, const struct message_taken *m);
void session_typed(struct session *s, const struct message_typed *m);

/* False: nobody of another version was met. */
bool session_other(const struct session *s, struct session_other *ret);

bool session_is_up(const struct session *s);
uint64_t session_up_ns(const struct session *s); /* when it came up first, 0: it has not */
