/* SPDX-License-Identifier: MIT */
/* What a host must know to be a node of a cluster: the text that `storm berth` reads there.
 *
 * It has parts, each behind a line that names it: what the cluster is like, as in the cluster's file; what is of this host
 * alone; who has which number; the node's key. It comes by the remote shell's own way and is never in arguments. */
#pragma once

#include "base/bytes.h"
#include "client/cluster.h"

enum { BERTHING_PATH_MAX = CLUSTER_FOLDER_MAX + 16 };

struct berthing {
    struct cluster cluster; /* the node's folder is in its `node_folder` */
    uint32_t self;
    char called[ROSTER_NAME_MAX]; /* as the user calls this host */
    char listen[64];              /* an interface; "-": the one by which it reaches the manager */
    char confine[16];
    uint32_t system_cores; /* of the host, that processes of jobs are kept off */
    uint32_t boots;        /* it has started so often, if it does not know better */
    bool stay;             /* in the foreground, until it is told to end */
    bool anew;          /* what is there as it should be does not get through: it is ended first */
    bool end;           /* nothing is begun: what is there is to end */
    bool helped;        /* the helper of remote shells is there because of us */
    struct bytes hosts; /* as in the file; borrowed from the text */
    struct bytes key;   /* the text of a key file; may be empty */
};

/* The text, to be freed; NULL: no memory. */
char *berthing_text(const struct berthing *b);
/* Frees such a text, or one that was read: there is a key in it. NULL is fine. */
void berthing_wipe(char *text);
/* -EBADMSG, and words. */
int berthing_parse(struct berthing *ret, const char *text, struct cluster_trouble *t);

/* Do two texts make the same of a host? How often it has started, and who else is there, does not count. */
bool berthing_same(const char *a, const char *b);

/* Where the node lives. */
void berthing_folder(const struct berthing *b, char out[BERTHING_PATH_MAX]);
