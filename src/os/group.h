/* SPDX-License-Identifier: MIT */
/* A group of processes as the kernel side of a launcher keeps it; for kernel.c and group.c alone. */
#pragma once

#include <sys/resource.h>

#include "base/list.h"
#include "os/callers.h"
#include "os/cgroup.h"
#include "os/home.h"
#include "os/inlet.h"
#include "os/kernel.h"
#include "os/outlet.h"
#include "os/pen.h"
#include "os/ration.h"
#include "os/spawn.h"
#include "os/sweep.h"
#include "os/topology.h"

struct process {
    struct group *group;
    uint32_t index;
    pid_t pid; /* 0: never started */
    bool live;
    struct ration ration;
    struct source famine; /* its alarm */
    uint32_t famished;    /* it has rung: looks until that is believed to be over */
    struct list due;      /* among those that have something to tell */
    bool start_due, end_due;
    struct input_child start, end;
    struct outlet *out[2];
    struct inlet in;
};

struct group {
    struct kernel *kernel;
    uint32_t id;
    struct list link;  /* among all groups */
    struct list watch; /* among those that are to become empty */
    struct list due;   /* among those that have something to tell, or to be freed */
    struct recipe *recipe;
    int error; /* why nothing of it can be started, -errno, and at which step */
    enum spawn_step step;
    struct cgroup *cgroup; /* at most one of these; without any its processes are looked for */
    struct pen *pen;
    struct bell *bell;  /* of its processes; NULL: there is none */
    uint64_t began_ns;  /* in real time */
    uint32_t live;      /* of its own processes */
    struct usage usage; /* of those that have ended, and what they have waited for */
    bool measure_due;   /* what it has used until now is to be told */
    bool bound;         /* each of its processes to a processor */
    bool loose;         /* its memory is not limited as was asked for */
    bool started, killed, frozen, closed;
    bool empty, empty_told;
    uint64_t leave_at;    /* its processes may go anywhere; 0: they may already */
    struct sweep stopped; /* before it was frozen, by others: they stay so */
    struct sweep known;   /* all that were found when something was last done to them */
    uint64_t sweep_at; /* killed without a cgroup: when to look for more, and how long after that */
    uint64_t sweep_pause;
    uint32_t count;
    struct process processes[];
};

struct kernel {
    struct kernel_config config;
    struct loop *loop;
    struct spawner spawner;
    struct cgroups cgroups;
    bool pooled; /* cgroups are there */
    struct rations rations;
    bool famine; /* somebody is famished */
    struct topology topology;
    struct cpuset may; /* processors that are for processes */
    bool spared;       /* there are others too */
    struct home home;
    struct pens pens;
    struct callers callers;
    char notice[320];
    int null;               /* /dev/null */
    struct source children; /* a signalfd: some child has ended */
    sigset_t mask_before;
    bool children_ready;
    bool childless; /* there was no child at all when we last looked */
    bool look;      /* groups that are to become empty may have done so */
    bool measuring; /* some are to be measured */
    struct group **groups;
    struct list all;   /* groups, closed ones that are not empty too */
    struct list watch; /* groups */
    struct list due;   /* processes */
    struct list due_groups;
    struct list doomed;   /* groups to be freed once nobody can refer to them */
    struct list readable; /* outlets */
    struct list starved;  /* outlets for which there was no memory */
    struct list spare;    /* outlets */
    uint32_t spares;
    struct list retired; /* outlets without a pipe */
    struct sweep sweep;  /* scratch */
};

/* ---- group.c: what a group is made of ---- */

struct group *group_new(struct kernel *k, uint32_t id, struct bytes setup);
void group_leave(struct group *g);
void group_free(struct group *g);
void group_start(struct group *g);
void group_due(struct process *p);

/* Makes pipes ahead. */
void kernel_stock(struct kernel *k);

/* ---- meter.c: what a group has used ---- */

/* A process of it has ended. */
void meter_ended(struct group *g, const struct rusage *r);
/* All of it until now; nothing of it runs any more if it is empty. */
struct usage meter_read(struct group *g);

/* ---- stall.c: where processes sit ---- */

/* Finds the processors that are for processes. */
void stall_open(struct kernel *k);
/* Does it say where its processes are to be? */
bool stall_binds(const struct group *g);
/* The processors of a process; false: it is not bound. */
bool stall_seat(const struct process *p, struct cpuset *ret);
/* Says in the errors of the group's first process what its user is to know of that. */
void stall_tell(struct group *g);

/* ---- herd.c: what is done to all processes of a group ---- */

void herd_signal(struct group *g, int number);
/* To one of its own processes, if it is still there. */
void herd_poke(struct group *g, uint32_t index, int number);
void herd_freeze(struct group *g, bool stop);
void herd_kill(struct group *g);
/* They may go anywhere: see home.h. */
void herd_leave(struct group *g);
/* None of it is left: its own have ended, and so has all that came from them. */
bool herd_gone(struct group *g);
