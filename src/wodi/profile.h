/* SPDX-License-Identifier: MIT */
/* What a master says of itself at the beginning: the paper's arguments of wodi_init.
 *
 * It travels as the body of WORD_MASTER, and is kept in the journal as that of WORD_LOG_MASTER. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

enum { PROFILE_CLASSES_MAX = 8 };

struct profile {
    uint8_t classes;
    bool fewest; /* instead of the needs: as few as make cycles as short as they can be */
    uint32_t needs[PROFILE_CLASSES_MAX]; /* workers that are desired in each */
    uint64_t speeds
        [PROFILE_CLASSES_MAX]; /* in units of 1/SPEED_ONE, if the master says how fast each is */
    struct bytes bench;        /* a step that measures a worker; empty: none */
    struct bytes init;         /* for every new worker */
};

size_t profile_write(const struct profile *p, struct room out);
bool profile_read(struct profile *p, struct bytes in);
