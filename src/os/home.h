/* SPDX-License-Identifier: MIT */
/* A processor to live on, for nodes that have one and of which there are many on this machine.
 *
 * When a process is started, and again when it executes something, Linux looks for the processor that has
 * least to do. In a launch on many nodes, with hundreds of processes that want to run for a moment, it moves
 * most of them, and that costs more than it gains. So in a crowd a node that has one processor gets one:
 * its manager and its launcher stay there, and its processes begin there.
 *
 * What runs for longer is better placed by the system, which sees the whole machine: after a while a node's
 * processes may go anywhere (home_leave). */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Room for 8192 processors: the library's sets are too small for some machines. */
enum { HOME_WORDS = 8192 / (8 * sizeof(unsigned long)) };

struct home {
    bool settled;
    size_t bytes; /* of a set, as this kernel has them */
    unsigned long here[HOME_WORDS];
    unsigned long everywhere[HOME_WORDS]; /* we could go before */
};

/* Are there so many nodes on this machine that they are in each other's way? */
bool home_crowded(uint32_t nodes);

/* 1 + the processor of one of so many nodes that have `pes` processors each; 0: it lives anywhere. */
uint32_t home_of(uint32_t node, uint32_t nodes, uint32_t pes);

/* Where nodes do not share processors: 1 + the first of this one's, the others follow; 0: they do, or there is no telling. */
uint32_t home_first(uint32_t node, uint32_t nodes, uint32_t pes);

/* A process of a gang that has as many as its node has processors: the index-th stays on the index-th of them. Left to itself
 * the system may have two on one, and see no reason to move them in the short time that they run. */
void home_bind(pid_t process, uint32_t first, uint32_t index);

/* Goes to the index-th of this node's processors: first as above. It may be moved again, but what wakes by its own timer mostly stays. */
void home_go(uint32_t first, uint32_t index);

/* A thread that was just started begins on another processor than ours, if we may use several; then it may go anywhere. Left to itself the
 * system may have both on one for some milliseconds, if the other was busy just before. */
void home_apart(pthread_t thread);

/* Stays there from now on, and all that it starts; 0: nothing changes. */
void home_settle(struct home *h, uint32_t home);

/* Whoever still stays there because of us may go anywhere. True if it did. */
bool home_leave(const struct home *h, pid_t thread);
