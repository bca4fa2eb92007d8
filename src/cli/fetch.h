/* SPDX-License-Identifier: MIT */
/* Files of nodes, brought here: for storm cp, and for what a job has left in its folder. */
#pragma once

#include "cli/contact.h"
#include "cli/freight.h"
#include "client/giver.h"

/* For a node to look its files over, which takes a while if they are large. */
#define FETCH_PATIENCE_NS (120 * NS_PER_S)

struct fetch_order {
    const char *who; /* begins what is said of it */
    struct contact *contact;
    const struct nodeset *from;
    const char *path; /* on the nodes; its last part may be a pattern */
    const char *to;   /* here, absolute: a folder, or with `replace` the name itself */
    bool apart;       /* a folder for each node in it */
    bool replace;
    bool lenient;                   /* nodes that have nothing there are none to complain of */
    bool quiet;                     /* no progress is shown */
    const struct sending *sending;  /* how; NULL: as usual */
    bool (*stopped)(void *context); /* asked in every turn: enough? */
    void *context;
};

/* Nodes whose files are here, who had none (lenient), of which something could not be had. */
struct fetch_outcome {
    uint32_t good, none, bad;
};

/* Until all are here, cannot be had, or it is stopped. 0, or the exit status if nothing could begin; all that went wrong
 * was said. */
int fetch_files(const struct fetch_order *o, struct fetch_outcome *ret);

/* Asks nodes for what they have there. 0 or -errno. */
int fetch_ask(struct session *s, const struct nodeset *from, const char *path, uint32_t chunk_bytes,
              session_offered *then, void *context);

/* A path of ours, which need not be there, as an absolute one that leads over no link. 0 or -errno. */
int fetch_path(const char *path, char *out, size_t cap);
