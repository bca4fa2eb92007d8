/* SPDX-License-Identifier: MIT */
/* The standard input of a process: what is typed goes into its pipe or terminal as it has room.
 *
 * What does not fit waits here, up to the window; more than that is not accepted, and whoever sent it
 * finds out because it is never drained. */
#pragma once

#include "base/bytes.h"
#include "os/loop.h"
#include "os/window.h"

#define INLET_DEAF UINT64_MAX

struct inlet {
    struct source near; /* to write to; -1 once closed */
    struct loop *loop;
    int far;                        /* to be given to the process; -1 afterwards */
    void (*moved)(struct inlet *i); /* something is due to be told */
    bool watched;                   /* it is in the loop */
    bool terminal;
    bool deaf; /* nobody reads it, or nobody ever did */
    bool end;  /* nothing comes after what waits */
    bool due;  /* the owner is to be told how far it is */
    uint8_t last;
    struct window window; /* what waits: from = what was written, to = what was accepted */
};

/* An inlet that takes nothing. */
void inlet_none(struct inlet *i);
int inlet_open(struct inlet *i, struct loop *l, size_t window);
/* With a descriptor of a terminal. */
void inlet_adopt(struct inlet *i, struct loop *l, int fd, size_t window);
void inlet_close(struct inlet *i);

/* The process alone has the reading end from now on; that it is gone will be noticed. */
void inlet_release(struct inlet *i);

/* What was accepted before is passed over; what would leave a gap is not accepted. */
void inlet_feed(struct inlet *i, uint64_t offset, struct bytes bytes, bool end);

/* How far it is, if that has not been told yet. */
bool inlet_next(struct inlet *i, uint64_t *ret_offset);
