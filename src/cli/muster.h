/* SPDX-License-Identifier: MIT */
/* Something is done on hosts through a tree of remote shells, with an input for each of them alone.
 *
 * Files are sent, a line is run, each host's command reads its own input. What it says and how it ends is told host by host, as
 * it happens; nobody waits for the slowest. It lives in its owner's loop. */
#pragma once

#include "cli/reach.h"

struct muster;

struct muster_file {
    const char *from, *to;
};

struct muster_config {
    struct loop *loop;
    const struct reach *reach; /* stays */
    enum hop_shape shape;
    uint64_t connect_ns; /* then a host is given up; 0: as usual */
    uint64_t command_ns; /* 0: any time */
    const struct muster_file *files;
    uint32_t file_count;
    const char *line; /* stays */
    const char *own;  /* stays. A folder that must be ours alone, or nothing is run; NULL: none */
    void *context;
    /* The helper had to be sent to a host; `cookie` is the host's, as it was added. */
    void (*sent)(void *context, uint32_t cookie);
    /* A line of its output. */
    void (*said)(void *context, uint32_t cookie, const char *words);
    /* Once for each host: the status of its command, with the last line of its errors; or what has become of it, and why. */
    void (*over)(void *context, uint32_t cookie, int status, const char *words);
};

enum {
    MUSTER_NOT_REACHED = -1, /* nothing was done there */
    MUSTER_LATE = -2,        /* so too: it did not answer */
    MUSTER_LOST = -3,        /* something may have been done there */
    MUSTER_CANCELLED = -4,   /* by muster_stop */
    MUSTER_STRANGE = -5      /* nothing was run: the folder is another's, or is not there */
};

/* NULL and -errno, after a complaint if a file cannot be read. */
struct muster *muster_new(const struct muster_config *c, int *ret_error);
/* Ends what is still there; nobody is told. */
void muster_free(struct muster *m);

/* A host, before it begins. The input is taken over; NULL: none. 0 or -ENOMEM. */
int muster_add(struct muster *m, const char *name, uint32_t cookie, char *input);
int muster_begin(struct muster *m);

/* A child of ours has ended. */
void muster_reaped(struct muster *m, pid_t pid, int status);
/* At the end of every turn. */
void muster_settle(struct muster *m);
/* Everything is to end, soon. */
void muster_stop(struct muster *m);
/* All hosts were told, and no process of ours is left. */
bool muster_over(const struct muster *m);
