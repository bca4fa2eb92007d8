/* SPDX-License-Identifier: MIT */
/* Where a cluster lives, and what one must know to reach it.
 *
 * A cluster has a folder, STORM_HOME/NAME (~/.storm/local), and in it a text file `cluster` of lines
 * "key value". Whoever brings the cluster up writes the file; commands read it. It holds the key of
 * the links, so only its owner may read it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/nodeset.h"
#include "os/address.h"

enum {
    CLUSTER_NAME_MAX = 48,
    CLUSTER_PREFIX_MAX = 16,
    CLUSTER_WORD_MAX = 128,
    CLUSTER_HOOK_MAX = 480,
    CLUSTER_PATH_MAX = 1024,
    CLUSTER_NODE_NAME_MAX = CLUSTER_PREFIX_MAX + 11,
    CLUSTER_NODES_MAX = 65536
};

struct cluster {
    char name[CLUSTER_NAME_MAX];
    uint32_t nodes;
    uint32_t pes;                    /* of each node */
    char prefix[CLUSTER_PREFIX_MAX]; /* names of nodes are this and the number */
    char tree[CLUSTER_WORD_MAX];     /* "kary:8" */
    enum transport links;
    uint64_t key[2];
    struct address manager;
    uint32_t root; /* the manager's node */
    char version[CLUSTER_WORD_MAX];
    uint64_t started_ns; /* the calendar's */
    pid_t watcher;
    char guarantee[CLUSTER_WORD_MAX]; /* what holds the processes of a job together */
    uint64_t orphan_ns;               /* a client may be gone for so long; 0: as usual */
    uint64_t bytes_per_s;             /* of a node's link; 0: all nodes are on one machine */
    char fabric[CLUSTER_WORD_MAX];    /* by which files go, unless a command says so; "": auto */
    char hook[CLUSTER_HOOK_MAX];      /* program that is run when a node goes or comes; "": none */
    char
        policy[CLUSTER_HOOK_MAX]; /* scheduling: a name, or the path of a shared object; "": fcfs */
    uint32_t slots;               /* jobs that share a processor at most; 0: as usual */
    uint64_t quantum_ns;          /* of their turns; 0: as usual */
};

/* What is the matter with a file, for people: "line 3: ..."; "" if errno says it all. */
struct cluster_trouble {
    char words[160];
};

/* The name that is meant: `asked` if not NULL, else STORM_CLUSTER, else `local`. */
const char *cluster_pick(const char *asked);

/* STORM_HOME, absolute. -ENOENT: no STORM_HOME and no home; -ENAMETOOLONG. */
int cluster_home(char *out, size_t cap);

/* STORM_HOME/NAME. Also -EINVAL: that cannot be a cluster's name. */
int cluster_folder(const char *name, char *out, size_t cap);

/* Writes the file of the folder, all or nothing, readable by its owner only. */
int cluster_save(const struct cluster *c, const char *folder);

/* -ENOENT: there is none; -EBADMSG: it says something we do not understand. */
int cluster_load(struct cluster *ret, const char *folder, struct cluster_trouble *trouble);

/* The text of the file: for tests, and for whoever has it from elsewhere. */
int cluster_parse(struct cluster *ret, const char *text, struct cluster_trouble *trouble);

/* Length of the whole text; it was cut if that is not below `cap`. */
size_t cluster_format(const struct cluster *c, char *out, size_t cap);

/* "n3" */
void cluster_node_name(const struct cluster *c, uint32_t node, char *out, size_t cap);

/* The nodes of a folded list, into `set`, whose universe is the cluster's. -ENOENT: words is the
 * first name that no node has; else as hostlist_check, and words says what is wrong. */
int cluster_nodes(const struct cluster *c, const char *list, struct nodeset *set,
                  struct cluster_trouble *trouble);
