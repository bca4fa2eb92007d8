/* SPDX-License-Identifier: MIT */
/* Rations: how much memory a process may use, together with all that it starts.
 *
 * A ration is a control group for one process. Whichever hierarchy has the memory controller serves: that of
 * version 2, where it lies below the group of the process's run, or that of version 1, where it lies in a place of
 * its own. Nothing is made before a run asks for it: launches without limits cost what they did.
 *
 * The kernel counts whom it has ended for want of memory, and knows whether the limit was reached. Both together tell who
 * has used too much from those whom others have killed. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/cgroup.h"

/* Given as a place: there are to be none, whatever the machine has. */
#define RATIONS_NONE "none"

enum ration_means { RATION_NONE, RATION_UNIFIED, RATION_LEGACY };

struct ration {
    int folder;     /* -1: there is none */
    int door;       /* version 1: to be written to by whoever goes there; -1: it is born there */
    int alarm;      /* version 1: an eventfd that tells when the limit is reached; -1: none */
    uint64_t bytes; /* the limit */
    char name[16];
};

/* All rations of a node. */
struct rations {
    enum ration_means means;
    bool known;           /* what there is has been found out */
    char place[PATH_MAX]; /* version 1; "": there is none */
    int folder;           /* that place, once it was needed; -1 before */
    uint32_t count;
};

/* Where a cluster of this name may have its place in the memory controller's hierarchy of version 1; it is not made.
 * -ENOENT: there is no such hierarchy, or not for us. */
int ration_ground(const char *name, char out[PATH_MAX]);

/* Removes such a place, and all below it; those in it have been ended. 0, or -errno if it is still there. */
int ration_remove(const char *path);

/* The folder of this node's, in that place; NULL: there is none. What a former owner has left there is removed. */
void rations_init(struct rations *r, const char *place);
void rations_fini(struct rations *r);

/* What there is here; `pool` are the cgroups that runs are given, NULL if there are none. */
enum ration_means rations_means(struct rations *r, const struct cgroups *pool);

/* One for the process of that index; `run` is the group of its run. 0 or -errno. */
int ration_make(struct rations *r, struct ration *ret, struct cgroup *run, uint32_t index,
                uint64_t bytes);
#define RATION_EMPTY ((struct ration){.folder = -1, .door = -1, .alarm = -1})

/* Nobody is in it any more. */
void ration_end(struct rations *r, struct ration *a, const struct cgroup *run);

/* Has the kernel ended somebody in it because the limit was reached? */
bool ration_exceeded(const struct rations *r, const struct ration *a);
