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
#include "base/roster.h"
#include "os/address.h"

enum {
    CLUSTER_NAME_MAX = 48,
    CLUSTER_PREFIX_MAX = ROSTER_PREFIX_MAX,
    CLUSTER_WORD_MAX = 128,
    CLUSTER_HOOK_MAX = 480,
    CLUSTER_FOLDER_MAX = 480,
    CLUSTER_PATH_MAX = 1024,
    CLUSTER_NODE_NAME_MAX = ROSTER_NAME_MAX,
    CLUSTER_NODES_MAX = 65536
};

struct cluster {
    uint32_t format; /* of the file */
    char name[CLUSTER_NAME_MAX];
    uint32_t nodes; /* numbers that there are; hosts may not have all of them */
    uint32_t pes;   /* of each node of which nothing else is said */
    bool widths;    /* some have another number */
    bool alone;     /* no two jobs share a node */
    char
        prefix[CLUSTER_PREFIX_MAX]; /* names of nodes are this and the number, if it has no hosts */
    struct roster *hosts;           /* from the file `hosts`; NULL: nodes are virtual */
    char tree[CLUSTER_WORD_MAX];    /* "kary:8" */
    enum transport links;
    bool sealed; /* links are, but for Unix sockets */
    bool asks;   /* where nodes are is to be asked of the manager's lodge */
    uint64_t key[2];
    struct address manager;
    struct address
        near; /* the same, where it listens to commands of its own machine; not in the file. Length 0: nowhere else */
    uint32_t root; /* the manager's node */
    char version[CLUSTER_WORD_MAX];
    uint64_t started_ns; /* the calendar's */
    pid_t watcher;
    char guarantee[CLUSTER_WORD_MAX]; /* what holds the processes of a job together */
    uint64_t orphan_ns;               /* a client may be gone for so long; 0: as usual */
    uint64_t vacate_ns; /* hosts that are called back may stay for so long; 0: as usual */
    uint32_t hosts_each, hosts_all; /* that a job, that all jobs may have; 0: any number */
    uint64_t bytes_per_s;           /* of a node's link; 0: all nodes are on one machine */
    char fabric[CLUSTER_WORD_MAX];  /* by which files go, unless a command says so; "": auto */
    char hook[CLUSTER_HOOK_MAX];    /* program that is run when a node goes or comes; "": none */
    char
        policy[CLUSTER_HOOK_MAX]; /* scheduling: a name, or the path of a shared object; "": fcfs */
    uint32_t slots;               /* jobs that share a processor at most; 0: as usual */
    uint64_t quantum_ns;          /* of their turns; 0: as usual */
    uint16_t port_first, port_last;       /* that daemons on hosts listen at; 0: any */
    char node_folder[CLUSTER_FOLDER_MAX]; /* where nodes live on their hosts; "": as usual */
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

/* With its hosts, if it has any: cluster_free is needed. -ENOENT: there is none; -EBADMSG: it says something we do not
 * understand. */
int cluster_load(struct cluster *ret, const char *folder, struct cluster_trouble *trouble);
/* Who has which number now; what was known before stays if that cannot be read. */
int cluster_load_hosts(struct cluster *c, const char *folder, struct cluster_trouble *trouble);
void cluster_free(struct cluster *c);

/* It was brought up on another machine; here one is only logged in to it. */
static inline bool cluster_is_elsewhere(const struct cluster *c) {
    return c->watcher == 0;
}
/* That of this folder is such a one. */
bool cluster_folder_is_elsewhere(const char *folder);

/* A file of its folder, or of its administrator: see files_text. */
int cluster_text(const char *path, char **ret, struct cluster_trouble *trouble);

/* The text of the file: for tests, and for whoever has it from elsewhere. */
int cluster_parse(struct cluster *ret, const char *text, struct cluster_trouble *trouble);

/* Length of the whole text; it was cut if that is not below `cap`. */
size_t cluster_format(const struct cluster *c, char *out, size_t cap);

/* Who has which name; it borrows from the cluster. */
struct roster cluster_roster(const struct cluster *c);

/* Nodes that there are: numbers that are taken. */
uint32_t cluster_count(const struct cluster *c);
void cluster_all(const struct cluster *c, struct nodeset *set);

/* "n3", or the host's */
void cluster_node_name(const struct cluster *c, uint32_t node, char *out, size_t cap);
/* Folded; the length of the whole. */
size_t cluster_format_nodes(const struct cluster *c, const struct nodeset *set, char *out,
                            size_t cap);

/* The nodes of a folded list, into `set`, whose universe is the cluster's. -ENOENT: words is the
 * first name that no node has; else as hostlist_check, and words says what is wrong. */
int cluster_nodes(const struct cluster *c, const char *list, struct nodeset *set,
                  struct cluster_trouble *trouble);
