/* SPDX-License-Identifier: MIT */
/* The table of networks: see network.h. */
#include "sim/network.h"

#include <string.h>

#include "base/units.h"

#define MB_PER_S ((uint64_t)1000 * 1000)
#define US       NS_PER_US

/* A disk that syncs, in all of them. */
#define DURABLE_NS (50 * US)

static const struct network networks[] = {
    {"ten-gigabit",
     "10 Gbit/s Ethernet, TCP through the kernel",
     {.latency_ns = 20 * US,
      .bytes_per_s = 1250 * MB_PER_S,
      .cpu_receive_ns = 5 * US,
      .cpu_send_ns = 5 * US,
      .connect_ns = 60 * US,
      .durable_ns = DURABLE_NS}},
    {"gigabit",
     "1 Gbit/s Ethernet, TCP through the kernel",
     {.latency_ns = 30 * US,
      .bytes_per_s = 125 * MB_PER_S,
      .cpu_receive_ns = 5 * US,
      .cpu_send_ns = 5 * US,
      .connect_ns = 90 * US,
      .durable_ns = DURABLE_NS}},
    {"infiniband",
     "100 Gbit/s InfiniBand, messages from user space",
     {.latency_ns = 1500,
      .bytes_per_s = 12000 * MB_PER_S,
      .cpu_receive_ns = 500,
      .cpu_send_ns = 500,
      .connect_ns = 4500,
      .durable_ns = DURABLE_NS}},
    {"qsnet-like",
     "the links of the STORM paper's machine, but no hardware multicast or conditional",
     {.latency_ns = 2 * US,
      .bytes_per_s = 300 * MB_PER_S,
      .cpu_receive_ns = 500,
      .cpu_send_ns = 500,
      .connect_ns = 6 * US,
      .durable_ns = DURABLE_NS}},
};

const struct network *network_at(uint32_t index) {
    return index < sizeof networks / sizeof *networks ? &networks[index] : NULL;
}

const struct network *network_find(const char *name) {
    const struct network *n;
    for (uint32_t i = 0; (n = network_at(i)) != NULL; i++)
        if (strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

uint64_t network_connect_ns(uint64_t latency_ns) {
    return 3 * latency_ns; /* as long as TCP's: there, back, and the first byte */
}
