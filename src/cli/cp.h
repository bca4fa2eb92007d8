/* SPDX-License-Identifier: MIT */
/* What the files of storm cp share. */
#pragma once

#include "cli/contact.h"
#include "cli/freight.h"
#include "cli/tally.h"

/* Options as they were given. */
struct cp_request {
    const char *cluster;
    struct sending sending;
    bool verbose, quiet, json;
};

struct cp {
    struct contact contact;
    struct cp_request *request;
    struct giver *giver;
    struct survey *survey; /* of files of ours; NULL: they are a node's */
    uint64_t offer;
    struct nodeset set;  /* where it goes to */
    struct nodeset from; /* where it comes from */
    void *storage;
    bool into;      /* the destination is a folder to put things in */
    uint64_t bytes; /* in all, and in how many pieces */
    uint32_t pieces;
    uint64_t began_ns, shown_ns;
    struct tally tally;
    struct source signals;
    bool over;
    int status;
};

/* What is to be sent, to whom, is known: it goes. Returns the exit status. */
int cp_send(struct cp *c, uint32_t source, struct bundle *b, const char *to, bool replace);
/* Settles by which fabric it goes, and opens that if we take part. 0, or the exit status. */
int cp_prepare(struct cp *c);
/* Ctrl-C ends what we do in order. */
void cp_catch_signals(struct cp *c);

/* cp_counts.c */
/* Asks all movers what went which way, for the tally. */
void cp_count(struct cp *c);

/* cp_fetch.c: files of nodes */
/* To nodes, from one. */
int cp_between(struct cp *c, const char *path, const char *to, bool replace);
/* To a folder here: from one node as it is, from several into a folder for each. */
int cp_fetch(struct cp *c, const char *path, const char *to);
