/* SPDX-License-Identifier: MIT */
/* A command that gives files: a mover of its own that nodes come to for what was surveyed.
 *
 * It listens in the cluster's folder, or on TCP where the cluster's links are, for as long as the command runs. */
#pragma once

#include "client/cluster.h"
#include "os/loop.h"
#include "os/porter.h"

struct giver;

/* 0, or -errno with the reason. */
int giver_new(struct loop *loop, const struct cluster *cluster, struct giver **ret, char why[256]);
void giver_free(struct giver *g);

/* What was surveyed can be had; returns the number by which it is asked for, 0 if there is no room. The survey must
 * stay until giver_free. */
uint64_t giver_offer(struct giver *g, struct survey *s);

/* Where nodes find it: for COPY and SUBMIT. */
struct bytes giver_address(const struct giver *g);

/* After every turn of the loop. */
void giver_settle(struct giver *g);

/* How far an offer has got. False if nobody has asked for it. */
bool giver_look(const struct giver *g, uint64_t offer, struct mover_view *ret);
