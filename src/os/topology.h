/* SPDX-License-Identifier: MIT */
/* What processes can be bound to on this node: its cores, sockets and NUMA nodes, as sets of processors.
 *
 * hwloc knows them. It is a large library, and a launcher is to be small: so a program of its own, storm-topo, tells
 * them as text, once, when somebody first asks. Where there is none, what the kernel tells has to do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "os/home.h"

struct cpuset {
    unsigned long bits[HOME_WORDS];
};

enum topology_level { TOPOLOGY_CORE, TOPOLOGY_SOCKET, TOPOLOGY_NUMA, TOPOLOGY_LEVELS };

struct topology {
    int error; /* why nothing is known */
    bool asked;
    uint32_t count[TOPOLOGY_LEVELS];
    struct cpuset *sets[TOPOLOGY_LEVELS];
};

/* Has it told by storm-topo, or else by the kernel, unless that has been done. 0 or -errno. */
int topology_ask(struct topology *t);

/* As the kernel tells it, in files such as /sys/devices/system/cpu/cpu0/topology/thread_siblings_list; `system` is the folder. */
int topology_read(struct topology *t, const char *system);

/* Lines such as "core 0,4", "socket 0-7", "numa 0-3". 0, -EINVAL or -ENOMEM. */
int topology_parse(struct topology *t, const char *text);
void topology_fini(struct topology *t);

/* Of the places of this level that have a processor which may be used, the index-th in turn: those of its processors, and its
 * number. How many such places there are; 0: none. */
uint32_t topology_place(const struct topology *t, enum topology_level level,
                        const struct cpuset *may, uint32_t index, struct cpuset *ret,
                        uint32_t *ret_number);

/* Takes the processors of the first cores out of a set, unless nothing would be left. */
void topology_spare(const struct topology *t, uint32_t cores, struct cpuset *set);

void cpuset_add(struct cpuset *s, uint32_t number);
bool cpuset_has(const struct cpuset *s, uint32_t number);
bool cpuset_empty(const struct cpuset *s);
/* "0-3,8" */
void cpuset_format(const struct cpuset *s, char *out, size_t cap);
