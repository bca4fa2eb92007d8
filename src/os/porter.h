/* SPDX-License-Identifier: MIT */
/* The world of a mover: its links, the buffers that pieces lie in, the files they come from and go to.
 *
 * Lives in a process of its own beside a node's manager (os/haulage.c), or inside a command that has files
 * to give or fetches some. Bytes of a piece are copied out of a socket into a slot, from there into the
 * file and into the sockets of those who take them: nowhere else. Or a fabric carries them from slot to
 * slot: os/carriage.h. */
#pragma once

#include "fm/mover.h"
#include "os/address.h"
#include "os/depot.h"
#include "os/diary.h"
#include "os/links.h"
#include "os/loop.h"
#include "os/survey.h"
#include "wire/message.h"

struct porter;
struct guide;

struct porter_config {
    struct loop *loop;
    uint32_t self;     /* NO_NODE: a command's */
    uint32_t universe; /* numbers of nodes and seats */
    uint32_t life;
    uint64_t key[2];
    const struct address *book;       /* where movers listen, by node */
    int listener;                     /* taken over; -1: nobody comes */
    int near_listener;                /* as links.h has it */
    const struct address *near;       /* the same */
    struct guide *guide;              /* of a cluster on many machines; NULL: the book tells all */
    const struct depot_config *depot; /* NULL: nothing is taken in */
    enum digest_kind digest;          /* of what is offered from there */
    const char *source;               /* IP address to be at in a fabric; NULL: any */
    const char *diary;                /* see os/diary.h; NULL: none is kept */
    /* A command's: what became of a transfer that it receives. Called from porter_settle. May be NULL. */
    void (*arrived)(void *context, const struct message_arrived *a);
    /* The node's manager has come or gone. May be NULL. */
    void (*host)(void *context, bool there);
    /* What a node's mover has counted, NULL if it does not say; see porter_count. May be NULL. */
    void (*counted)(void *context, uint32_t node, const struct message_counted *c);
    void *context;
};

/* NULL and -errno, with the reason. */
struct porter *porter_new(const struct porter_config *c, int *ret_error, char why[256]);
void porter_free(struct porter *p);

/* What was surveyed can be had, under the number that is returned; 0 if there is no room, or for another that grows. The survey must stay until
 * porter_free. */
uint64_t porter_offer(struct porter *p, struct survey *s);
/* As if the node's manager had said it: TRANSFER, ENOUGH. */
void porter_order(struct porter *p, uint16_t type, const union message *m);

/* At the end of every turn: works off what is to be done with files, sends what has gathered, sees to
 * timers. */
void porter_settle(struct porter *p);

/* A transfer from here, or to here, will ask for this fabric: opens it. 0, or -errno with the reason. */
int porter_prepare(struct porter *p, struct bytes fabric, char why[256]);
/* What went which way, here, of what is on offer under this number. */
void porter_counts(const struct porter *p, uint64_t offer, struct message_counted *ret);
/* Asks a node's mover the same; `counted` tells. */
void porter_count(struct porter *p, uint32_t node, uint64_t offer);

/* Does anybody take something from here? */
bool porter_giving(const struct porter *p);

/* For what a command notes of itself. */
struct diary *porter_diary(struct porter *p);

const struct mover *porter_mover(const struct porter *p);
