/* SPDX-License-Identifier: MIT */
/* Cgroups for runs, made ahead: to make and remove one costs as much as starting a process.
 *
 * A run's processes are born in one and cannot leave it, so it tells when none is left, and ends all
 * of them at once. One that is empty again, and has none below it, serves the next run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/usage.h"
#include "os/loop.h"

struct cgroup {
    struct list link;     /* among spare ones */
    int folder;           /* to be born in */
    int freezer;          /* its file of that name, once it was needed; -1 before */
    int stat;             /* what its processes have spent; -1: nobody counts that */
    int peak;             /* how much memory they had at most; -1: the same */
    uint64_t spent[2];    /* of processors, as `stat` had it last: user, system */
    uint64_t before[2];   /* by runs that it has served before */
    struct source events; /* has something urgent when processes have come or gone */
    void *owner;          /* whoever watches them */
    bool watched;
    bool frozen;
    bool divided; /* its processes are in groups below it: see ration.h */
    bool killed;  /* some kernels end what is born in such a one later */
    char name[16];
};

/* The pool: spare cgroups in a folder that is ours alone. */
struct cgroups {
    char *path;
    int folder; /* -1: there is none */
    bool made;  /* the folder was made by us */
    uint32_t count;
    struct list spare;
};

/* The folder of the cgroup (version 2) that this process is in, as far as it is mounted. 0 or -errno. */
int cgroup_own(char *path, size_t size);

/* Takes the folder, which may be missing yet, and ends what a former owner has left in it. */
int cgroups_init(struct cgroups *p, const char *path);
void cgroups_fini(struct cgroups *p);

/* NULL if none can be made. */
struct cgroup *cgroups_take(struct cgroups *p);
/* No process is in it any more. */
void cgroups_give(struct cgroups *p, struct cgroup *c, struct loop *l);
/* Makes spare ones until there are enough. */
void cgroups_stock(struct cgroups *p);

bool cgroup_empty(const struct cgroup *c);
int cgroup_kill(struct cgroup *c);
int cgroup_freeze(struct cgroup *c, bool stop);
int cgroup_signal(const struct cgroup *c, int number);
/* The same for those in any folder of processes. */
int cgroup_signal_in(int folder, int number);
/* What was spent in it since it was taken, waited for or not; what is not counted stays as it is in `ret`. */
void cgroup_usage(struct cgroup *c, struct usage *ret);
/* For every thread in it; how many were dealt with, or -errno. */
int cgroup_each(const struct cgroup *c, bool (*deal)(const void *context, pid_t thread),
                const void *context);
