/* SPDX-License-Identifier: MIT */
/* How many hosts of a class to ask for and to give back, and what becomes of one whose worker has ended.
 *
 * The paper, section 3.1: as many as are of use, and no more. To grow is decided at once. To shrink takes patience: only what
 * was too much all the time for rest_ns is given back, so a cycle that has nearly ended, or a short one between long ones, costs no
 * host. The same holds for hosts that were asked for and have not come.
 *
 * A worker that ends is started again on its host. One that ends early, without a result from any of its class meanwhile, would
 * probably do so again: a host where that has happened a few times is given back, and if it happens here and there the program is at fault. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { HIRE_EARLY_HOST = 3, HIRE_EARLY_CLASS = 6 };
#define HIRE_REST_NS  ((uint64_t)5000000000)
#define HIRE_EARLY_NS ((uint64_t)10000000000)

struct hire {
    uint32_t least, most;
    uint64_t rest_ns;
    /* The owner's: */
    uint32_t here;   /* hosts that can be used; one that is suspended cannot */
    uint32_t coming; /* that were asked for */
    /* Its own: */
    bool surplus;     /* there are more than are wanted, */
    uint64_t since;   /* since then; */
    uint32_t highest; /* meanwhile so many were wanted */
    uint64_t results; /* of the class, when a worker ended last */
    uint32_t early;   /* in a row */
};

/* What is to be done, in this order. */
struct hire_advice {
    bool cancel; /* what is coming */
    uint32_t back;
    uint32_t ask;
    uint64_t again; /* when to look again, though nothing happens; 0: not at all */
};

struct hire_advice hire_look(struct hire *h, uint32_t wanted, uint64_t now);

enum hire_verdict {
    HIRE_AGAIN, /* start it again */
    HIRE_BACK,  /* give its host back */
    HIRE_HOPELESS
};
/* A worker has ended that has lived so long. `results`: of its class, ever. `host_early`: how often in a row on its host; 0 at first. */
enum hire_verdict hire_ended(struct hire *h, uint32_t *host_early, uint64_t lived_ns,
                             uint64_t results);
