/* SPDX-License-Identifier: MIT */
/* A client of the simulated cluster: it has jobs run, follows them, takes their output, types for
 * them, and sometimes changes its mind.
 *
 * It asks again with the same request when it was not answered, and reconnects when it was cut off. When
 * it dies its next life knows nothing. What it asked and was told goes into the book; bytes of output that
 * are not the expected ones are a violation at once. */
#pragma once

#include "base/random.h"
#include "machine/machine.h"
#include "sim/book.h"

enum { ERRANDS_MAX = 4, STREAMS_MAX = 512 };

struct customer_config {
    uint32_t number;
    struct book *book;
    uint32_t nodes, pes;
    uint32_t universe;
    uint64_t seed;      /* of this life */
    uint32_t errands;   /* at a time */
    uint64_t pause_ns;  /* at most, between two of them */
    const bool *closed; /* no more orders */
    /* Makes the next order; false: none. NULL: only what customer_order() brings. */
    bool (*draw)(void *context, uint32_t number, struct random *r, struct order *ret);
    void *context;
};

struct customer;

struct customer *customer_new(const struct customer_config *c);
void customer_free(struct customer *c);
struct machine customer_machine(struct customer *c);

/* For tests: to be asked for at the next moment that it looks (a quarter of a second); its number. */
int32_t customer_order(struct customer *c, const struct order *o);

/* For tests: does this with the order's jobs, or with nodes (DRAIN, UNDRAIN), when it looks. */
void customer_act(struct customer *c, int32_t order, enum verb verb, uint32_t value);
/* A signal to these ranks, a text that is borrowed. */
void customer_signal(struct customer *c, int32_t order, uint32_t signal, const char *ranks);
void customer_drain(struct customer *c, uint32_t node, bool drained);
/* Reserves nodes in the name of that number, for then; or takes it back if `to_ns` is 0. */
void customer_reserve(struct customer *c, uint32_t number, uint32_t first, uint32_t last,
                      uint64_t from_ns, uint64_t to_ns);
/* And another policy, by its name, which is borrowed. */
void customer_policy(struct customer *c, const char *name, uint32_t slots, uint32_t quantum_us);

/* Has it heard the last of everything? */
bool customer_idle(const struct customer *c);
