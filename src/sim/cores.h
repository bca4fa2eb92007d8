/* SPDX-License-Identifier: MIT */
/* Processors that all nodes share: the nodes are processes of one machine.
 *
 * A process with something in its inbox waits in one queue, first come first served, for any of the
 * processors; Linux has a queue for each and weighs who ran how long, but processes that run for
 * microseconds and then sleep take turns much like this. A process that runs goes through turns as
 * a loop around epoll_wait does: it reads everything that has arrived by then, each link with one
 * system call, steps its machine for every input, sends what the machine had to say with one system
 * call a link, and looks again. It keeps its processor until there is nothing left to read. */
#pragma once

#include <stdint.h>

#include "base/list.h"

struct world;
struct node;

struct cores {
    uint64_t idle;     /* processors without a process */
    struct list ready; /* processes without a processor */
};

void cores_init(struct cores *c, uint64_t count);

/* Sees to it that the inbox will be looked at. */
void cores_rouse(struct world *w, struct node *n);

/* The time of a node's wake event has come. */
void cores_wake(struct world *w, struct node *n);

/* Sends what the node has to say, from the time on that it is busy until. */
void cores_flush(struct world *w, struct node *n);

/* The process is no more. */
void cores_quit(struct world *w, struct node *n);
