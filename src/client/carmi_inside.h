/* SPDX-License-Identifier: MIT */
/* What the files of CARMI's calls share. */
#pragma once

#include "client/carmi_steward.h"
#include "client/line.h"
#include "client/post.h"

enum { CARMI_HOSTS_MAX = 65536 };

struct carmi {
    struct steward steward;
    bool alive; /* there is a steward */
    struct line line;
    struct post post;
    carmi_process parent;
    int epoll, event;
    uint32_t quick;   /* messages that were taken without a look at the line */
    bool more;        /* there is more to say than the line takes */
    bool watched_out; /* and that is waited for */
    bool shown;       /* the program sees that there is a letter */
    int error;        /* the line is cut: -errno */
};

/* In the environment of a process: who has spawned it. */
#define CARMI_PARENT "STORM_CARMI_PARENT"

/* Says and hears what there is. */
void carmi_pump(struct carmi *c);
/* The request was made: its number. */
carmi_request carmi_begun(struct carmi *c, const struct call *call);
