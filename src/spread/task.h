/* SPDX-License-Identifier: MIT */
/* What a helper is to do: the bodies of the frames TASK and HOSTS. */
#pragma once

#include "base/bytes.h"
#include "spread/hop.h"

enum { TASK_FILES_MAX = 32, TASK_HOSTS_MAX = 1 << 20 };

/* In a file's mode: its folder must be nobody else's, and is made if it is not there. */
enum { TASK_FILE_OWN = 0x8000 };

/* A file that comes before the command. */
struct task_file {
    struct bytes path;
    uint64_t bytes;
    uint16_t mode;
};

struct task {
    struct hop_config hop; /* without `root` */
    uint32_t self;         /* the host that this is */
    uint64_t command_ns;   /* the command may take so long; 0: any time */
    uint64_t beat_ns;
    bool input;             /* something will come for the standard input */
    uint32_t input_host;    /* of the command on this host; UINT32_MAX: of all */
    struct bytes name;      /* of the host, as it was called */
    struct bytes connector; /* words, each ends in a zero: see greeting.h */
    struct bytes command;   /* a line for the shell; empty: none is to be run */
    struct bytes
        own; /* a folder that must be ours alone, or the command is not begun; empty: none */
    uint32_t put_count, get_count;
    struct task_file put[TASK_FILES_MAX];
    struct bytes get[TASK_FILES_MAX]; /* paths */
};

/* How many bytes were written; -ENOSPC. */
long task_write(const struct task *t, struct room out);
/* Views borrow from `in`. -EPROTO. */
int task_read(struct bytes in, struct task *ret);

/* A host in a frame HOSTS. */
struct task_host {
    uint32_t host;
    uint16_t crate;
    struct bytes name; /* at most 255 */
};

/* Appends it; how many bytes that took, -ENOSPC. */
long task_host_write(const struct task_host *h, struct room out);
/* The first of them, which is taken off `in`. 1; 0: there is none; -EPROTO. */
int task_host_read(struct bytes *in, struct task_host *ret);
