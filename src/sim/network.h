/* SPDX-License-Identifier: MIT */
/* Networks with a name: link models that come close to real ones.
 *
 * The numbers are round on purpose. They stand for a kind of network, not for a product: what
 * matters is how latency, bandwidth and the processor's work for a message compare. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/world.h"

struct network {
    const char *name;
    const char *words; /* what it stands for */
    struct link_model link;
};

/* The networks there are; NULL beyond the last. The first one is the default. */
const struct network *network_at(uint32_t index);

/* NULL if none has that name. */
const struct network *network_find(const char *name);

/* Opening a link takes a handshake: follows from the latency. */
uint64_t network_connect_ns(uint64_t latency_ns);
