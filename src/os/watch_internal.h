/* SPDX-License-Identifier: MIT */
/* What the files of the watcher share. */
#pragma once

#include "os/grounds.h"
#include "os/watch.h"

enum ward_kind { WARD_MANAGER, WARD_LAUNCHER, WARD_NODE, WARD_SCRIBE, WARD_TENDER, WARD_KINDS };

/* Sockets of a node that listen for all its lives; -1: each life makes its own. */
struct doors {
    int node, mover;
};

/* A process that the watcher looks after. */
struct ward {
    enum ward_kind kind;
    uint32_t node;
    pid_t pid; /* 0: none runs */
    uint64_t born;
    uint64_t pause_ns; /* after the last death */
    uint64_t start_at; /* when to start it again, 0 if not */
};

struct watch {
    const struct watch_config *config;
    struct ward *wards; /* the manager, launcher and daemon of each node, the scribe, the tender */
    uint32_t count;
    struct address *book;
    struct doors *doors; /* of our nodes */
    enum guarantee guarantee;
    bool grouped;
    struct grounds group;
    char rations[PATH_MAX]; /* place for limits on memory, see ration.h; "": none */
    uint8_t report[512];    /* what the machine is like, for its nodes */
    size_t report_len;
    int manager_listener;
    int signals;
    bool ending;
};

/* "n3's launcher" */
const char *ward_name(const struct ward *w, char out[32]);

/* One line in the log, with the time. */
__attribute__((format(printf, 1, 2))) void watch_log(const char *format, ...);

/* Starts a process for the ward; 0 or -errno. */
int watch_start(struct watch *w, struct ward *ward);

/* Listens where the manager will, for all its lives: whoever connects while there is none waits. So with nodes, where they
 * have an address of their own. */
int watch_listen(struct watch *w);
