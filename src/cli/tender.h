/* SPDX-License-Identifier: MIT */
/* The tender: looks after the hosts of a cluster, from where it was brought up.
 *
 * It brings up every host that the file `hosts` names, through one tree of remote shells; again whichever the manager says is
 * down, after a pause that grows; and ends those that are not named any more. When the file `ending` appears it ends all. What
 * became of each host stands in the file `muster`; where something may be left of us, in the file `berths`. */
#pragma once

#include <stdbool.h>

#include "client/cluster.h"
#include "cli/reach.h"

/* Files in the cluster's folder. */
#define TENDER_ENDING "ending"
#define TENDER_ENDED  "ended" /* then: no host is left to end */
#define TENDER_BERTHS "berths"
#define TENDER_WORDS  "tending" /* how hosts are reached, for whoever must end them without us */

struct tender_config {
    const char *folder; /* of the cluster, at the desk */
    struct reach reach;
    enum hop_shape shape;
    uint64_t connect_ns; /* then a host is given up; 0: as usual */
    char confine[16], listen[64];
    uint32_t system_cores;
    bool stay; /* remote shells kill what they leave behind */
};

/* In a process of its own, until all is ended; its working directory is the folder. The exit status. */
int tender_run(const struct tender_config *c);

/* Ends all hosts that there may still be something on, without a manager or a tender. 0, or how many could not be ended; each of them
 * was named. */
int tender_end(const struct tender_config *c, const struct cluster *cluster);

/* The settings in a file of the folder: for whoever must end hosts when there is no tender, nor a cluster's file, any more. Of the
 * cluster only that is kept. 0 or -errno. */
int tender_save(const struct tender_config *c, const struct cluster *cluster);
int tender_load(struct tender_config *ret, const char *folder, struct cluster *ret_cluster);
