/* SPDX-License-Identifier: MIT */
/* A theatre: a world in which a script can be played.
 *
 * This table is all that differs between the simulator and real processes. Neither the script nor
 * the director that plays it knows which one it is in; both must give the same history. */
#pragma once

#include "conformance/stage.h"

struct theatre {
    const char *name;
    /* Nobody is on yet. The seed is for worlds that have one. */
    void *(*open)(const struct script *script, uint64_t seed);
    void (*close)(void *t); /* frees the stage too */
    struct stage *(*stage)(void *t);

    void (*boot)(void *t, uint32_t node); /* a fresh life; the root's seat acts as root */
    void (*kill)(void *t, uint32_t node);
    void (*stop)(void *t, uint32_t node);
    void (*resume)(void *t, uint32_t node);
    void (*poke)(void *t, uint32_t node); /* its daemon takes what is posted, soon */

    /* Lets things happen until the condition holds; false if that takes more than so long. */
    bool (*wait)(void *t, bool (*condition)(void *context), void *context, uint64_t ns);
    const uint8_t *(*heap)(void *t, uint32_t node);
};
