/* SPDX-License-Identifier: MIT */
/* Files that hosts of `storm exec` send: each host's into a folder of its name.
 *
 * Names come from elsewhere: nothing is written outside of that folder, no link is followed. A file has a temporary name until
 * all of it is here. */
#pragma once

#include <sys/types.h>

#include "cli/roll.h"
#include "spread/frame.h"
#include "spread/task.h"

struct harvest {
    const struct roll *roll;
    uint32_t count;
    char *folders[TASK_FILES_MAX]; /* of each --get */
    struct basket *baskets;        /* of each host: the file that comes */
    uint32_t failures;
    mode_t mask; /* of our own */
    bool quiet;
};

/* "PATH:DIR", one of them; the path is given back as what to ask for. 0, or the exit status after a complaint. */
int harvest_want(struct harvest *h, const char *words, struct bytes *ret_path);
/* 0 or -ENOMEM. */
int harvest_begin(struct harvest *h, const struct roll *roll);
void harvest_fini(struct harvest *h);

/* A frame FETCHED. */
void harvest_take(struct harvest *h, const struct frame *f);
