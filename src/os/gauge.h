/* SPDX-License-Identifier: MIT */
/* What this machine takes for the things that a loop around epoll_wait does.
 *
 * System calls are timed one by one, with nobody waiting; switches between processes by what a
 * ping-pong takes on top of them; and since all of that is far cheaper when the same two processes
 * do it over and over, fan-outs to more processes say what it costs in earnest. Everything is
 * measured several times, in turn, and the middle value counts: the machine may be busy with other
 * things. sim/predictor.h makes a link model of it. */
#pragma once

#include <stdint.h>

#include "os/fanout.h"

/* Processes of the fan-outs: on one processor; on all of them, few and many. */
enum { GAUGE_FAN_ONE = 16, GAUGE_FEW = 4, GAUGE_MANY = 64 };

struct gauge {
    enum transport transport;
    uint32_t cpus;          /* that this process may use */
    uint64_t send_ns;       /* 64 bytes out */
    uint64_t receive_ns;    /* and in */
    uint64_t poll_ns;       /* epoll_wait that finds something */
    uint64_t empty_ns;      /* and one that finds nothing, and does not wait */
    uint64_t hop_ns;        /* half a ping-pong between processes on one processor */
    uint64_t cross_ns;      /* on two; 0 if there is one only */
    uint64_t fan_one_ns;    /* a fan-out to GAUGE_FAN_ONE processes, all on one processor */
    uint64_t fan_one_4k_ns; /* the same of 4,096 bytes to each */
    uint64_t fan_few_ns;    /* to GAUGE_FEW, on all processors that there are */
    uint64_t fan_many_ns;   /* to GAUGE_MANY */
};

/* Takes about a second. Nothing may have pinned or limited this process meanwhile. Returns what
 * fanout_run() does. */
int gauge_take(enum transport transport, struct gauge *ret);
