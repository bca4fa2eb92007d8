/* SPDX-License-Identifier: MIT */
/* A command that gives files, or fetches some: a mover of its own that nodes come to for what was surveyed, and that
 * takes in what nodes have offered.
 *
 * It listens in the cluster's folder, or on TCP where the cluster's links are, for as long as the command runs. */
#pragma once

#include "client/cluster.h"
#include "os/loop.h"
#include "os/porter.h"

struct giver;

/* For a command that fetches. */
struct giver_fetches {
    /* What became of one that was fetched: 0, or -errno. Called from giver_settle. */
    void (*arrived)(void *context, const struct message_arrived *a);
    void *context;
};

/* 0, or -errno with the reason. `fetches` may be NULL. */
int giver_new(struct loop *loop, const struct cluster *cluster, const struct giver_fetches *fetches,
              struct giver **ret, char why[256]);
void giver_free(struct giver *g);

/* Makes ready to be come to, when there is time for it: otherwise it is done while the first who comes waits. */
void giver_ready(const struct giver *g);

/* What was surveyed can be had; returns the number by which it is asked for, 0 if there is no room. The survey must
 * stay until giver_free. */
uint64_t giver_offer(struct giver *g, struct survey *s);

/* Fetches what a node has offered to this path of ours, absolute: under that name, or into that folder. Returns the number
 * that `arrived` tells. */
uint64_t giver_fetch(struct giver *g, const struct message_offered *o, const char *to,
                     bool replace);

/* It was told, and is not needed any more. Not from within `arrived`. */
void giver_fetched(struct giver *g, uint64_t number);

/* What is given or fetched goes by this fabric ("ofi:tcp"): opens it. 0, or -errno with the reason. */
int giver_prepare(struct giver *g, const char *fabric, char why[256]);

typedef void giver_counted(void *context, uint32_t node, const struct message_counted *m);
/* What went which way of an offer: here, and at these nodes, which may not answer (then NULL is told, or nothing). */
void giver_counts(const struct giver *g, uint64_t offer, struct message_counted *ret);
void giver_count(struct giver *g, const struct nodeset *set, uint64_t offer, giver_counted *counted,
                 void *context);

/* Where nodes find it: for COPY and SUBMIT. */
struct bytes giver_address(const struct giver *g);

/* For what the command notes of itself: kept if there is a file for it in the cluster's folder. */
struct diary *giver_diary(struct giver *g);

/* After every turn of the loop. */
void giver_settle(struct giver *g);

/* How far an offer has got. False if nobody has asked for it. */
bool giver_look(const struct giver *g, uint64_t offer, struct mover_view *ret);
