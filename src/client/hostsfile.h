/* SPDX-License-Identifier: MIT */
/* The file `hosts` in a cluster's folder: which host has which number.
 *
 *     # a comment
 *     0 h0
 *     1 h1 switch=s1
 *     7 gate.example.org
 *
 * It is the truth about who belongs to the cluster; a cluster of virtual nodes has none. Whoever changes it writes a new
 * one and renames it, so that readers see all or nothing of a change, and the manager hears of it. */
#pragma once

#include "base/roster.h"
#include "client/cluster.h"
#include "client/nodespec.h"

struct host {
    char name[ROSTER_NAME_MAX];        /* "": the number is vacant */
    char on_switch[NODESPEC_WORD_MAX]; /* "": not known */
};

struct hosts {
    uint32_t capacity; /* numbers are below this */
    uint32_t count;    /* of taken ones */
    struct host *at;   /* by number */
};

/* None at first. -ENOMEM. hosts_free is needed in any case. */
int hosts_init(struct hosts *h, uint32_t capacity);
void hosts_free(struct hosts *h);

/* `on_switch` may be NULL. -ERANGE: there is no such number; -EBUSY: another has it; -EINVAL: that is no name. Whether
 * another number has the name is judged when they are read or written. */
int hosts_add(struct hosts *h, uint32_t number, const char *name, const char *on_switch);
void hosts_remove(struct hosts *h, uint32_t number);
/* The number of this name; false: there is none. */
bool hosts_find(const struct hosts *h, const char *name, uint32_t *ret);
/* The lowest vacant number, hosts.capacity if there is none. */
uint32_t hosts_vacant(const struct hosts *h);
/* So for a host of this name: its own among `former` if that is vacant, never that of another of those. They are as many. */
uint32_t hosts_room(const struct hosts *h, const struct hosts *former, const char *name);

/* -EBADMSG: `trouble` says in which line what is wrong. hosts_free is needed in any case. */
int hosts_parse(struct hosts *ret, uint32_t capacity, const char *text,
                struct cluster_trouble *trouble);
/* Of a file; -ENOENT if there is none. */
int hosts_read(struct hosts *ret, uint32_t capacity, const char *path,
               struct cluster_trouble *trouble);
/* All or nothing, readable by its owner only. -EEXIST: two numbers have the same name. */
int hosts_write(const struct hosts *h, const char *path);

/* Where a cluster that lives in this folder has it. -ENAMETOOLONG. */
int hosts_path(const char *folder, char *out, size_t cap);

/* As a machine hears it: who is taken, and their names one behind the other (struct input_roster). */
struct hosts_told {
    struct nodeset taken; /* universe: the capacity */
    struct bytes names;
    void *memory; /* of both; to be freed */
};
int hosts_tell(const struct hosts *h, struct hosts_told *ret);

/* What they say of switches, where the node file says nothing. -ENOMEM. */
int hosts_switches(const struct hosts *h, struct nodespec *spec);
/* All that is said of the nodes of a cluster, there and in the files that its folder keeps: as nodespec_load. */
int hosts_nodespec(const struct cluster *c, const char *folder, struct nodespec *ret,
                   char why[NODESPEC_WHY_MAX]);

/* A roster of them, to be freed as one piece. NULL, with -errno and the number that is to blame. */
struct roster *hosts_roster(const struct hosts *h, const char *prefix, int *ret_error,
                            uint32_t *ret_bad);
