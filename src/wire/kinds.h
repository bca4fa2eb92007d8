/* SPDX-License-Identifier: MIT */
/* Kinds of jobs, and what may be said of one in a flag. */
#pragma once

#include <stdint.h>

#include "sched/map.h"

enum job_kind {
    JOB_RUN,   /* a client waits for it and has its output */
    JOB_BATCH, /* output to files */
    JOB_ALLOC, /* holds nodes, runs nothing */
    JOB_STEP,  /* a run inside an allocation, on its nodes */
    JOB_KINDS
};

enum job_flag {
    JOB_DETACHED = 1,    /* goes on without its client */
    JOB_REQUEUE = 2,     /* starts again when a node is lost */
    JOB_BAD_EXIT = 4,    /* a nonzero status ends the whole job */
    JOB_EXCLUSIVE = 8,   /* shares no node */
    JOB_SCRIPT = 16,     /* one process on the first node, whatever the size */
    JOB_FOLDER = 32,     /* has a folder of its own on each node */
    JOB_FETCH = 64,      /* and files from it are wanted when it is over */
    JOB_LOOK = 128,      /* nodes look whether they have all it needs before any begins */
    JOB_CYCLIC = 256,    /* its processes are dealt out to nodes one by one */
    JOB_LISTED = 512,    /* which is where is in its spec */
    JOB_NEEDS = 1024,    /* not every node will do: `need` says which */
    JOB_SEVERAL = 2048,  /* programs; its files are a list of bundles: wire/crates.h */
    JOB_SECTIONS = 4096, /* of nodes, each with a size of its own: `sections` */
    JOB_FAMILY = 8192,   /* it belongs to another: `parent` */
    JOB_LENT = 16384,    /* whoever waits for its processors can have them back */
    JOB_CLASSES = 32768, /* hosts come with it: `classes` */
    JOB_FLAGS_END = 65536
};

static inline enum map_kind job_map(uint32_t flags) {
    return (flags & JOB_LISTED) != 0   ? MAP_LIST
           : (flags & JOB_CYCLIC) != 0 ? MAP_CYCLIC
                                       : MAP_BLOCK;
}

/* When a job may start that is to wait for the end of another. */
enum await_kind {
    AWAIT_ANY, /* however it ends */
    AWAIT_OK,
    AWAIT_NOT_OK,
    AWAIT_KINDS
};

enum { AWAIT_BYTES = 5, AWAITS_MAX = 64 }; /* each: the kind, the job's number */

enum { NEED_TEXT_MAX = 1023 }; /* bytes of what somebody needs of nodes */
