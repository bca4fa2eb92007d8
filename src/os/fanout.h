/* SPDX-License-Identifier: MIT */
/* The bare fan-out: what sockets and the scheduler take, with nothing of ours on top.
 *
 * One process sends a small message to each of N others and waits until all have answered; every
 * one of them is a loop around epoll_wait. No tree, no frames, no protocol: the floor that a
 * measured operation of the primitives is compared with, and the gauge for the simulator's model
 * of this machine. */
#pragma once

#include <stdint.h>

#include "os/address.h"

enum { FANOUT_NODES_MAX = 4096, FANOUT_BYTES_MAX = 65536 };

struct fanout_config {
    enum transport transport; /* TCP is over the loopback interface */
    uint32_t nodes;
    uint32_t rounds;        /* that are counted; a few more go before */
    uint32_t message_bytes; /* 0: 64 */
    uint32_t answer_bytes;  /* 0: 8 */
    /* Processors, from 1 on: of the one who asks, of those who answer. 0: where the kernel likes. */
    uint32_t asker_cpu, answerer_cpu;
};

struct fanout_result {
    uint64_t median_ns;
    uint64_t min_ns;
};

/* The processes that it starts are gone when it returns, and die with the caller in any case.
 * -EINVAL, -ETIMEDOUT if an answer stays away, or what the kernel says. */
int fanout_run(const struct fanout_config *config, struct fanout_result *ret);

/* A connected pair of stream sockets of that kind, both close-on-exec, without delays. */
int fanout_pair(enum transport transport, int ret[2]);
