/* SPDX-License-Identifier: MIT */
/* The file `muster` in a cluster's folder: what became of bringing up each host.
 *
 *     seen TIME
 *     NUMBER STATE NAME [WORDS]
 *
 * The tender writes it, as a whole, whenever something has changed; commands that wait for it read it. The
 * first line says of which file `hosts` it speaks, by the time of that file: what was before is old news to whoever has changed
 * it since. */
#pragma once

#include "base/roster.h"
#include "client/cluster.h"

enum turnout_state {
    TURNOUT_NONE, /* not in the file */
    TURNOUT_TRYING,
    TURNOUT_UP,
    TURNOUT_FAILED, /* words say why; it is tried again, unless it was to end */
    TURNOUT_ENDED,
    TURNOUT_STATES
};

enum { TURNOUT_WORDS_MAX = 200 };

struct turnout_host {
    enum turnout_state state;
    char name[ROSTER_NAME_MAX];
    char words[TURNOUT_WORDS_MAX];
};

struct turnout {
    uint32_t capacity;
    uint64_t seen;           /* the time of the file `hosts` that the tender knows */
    struct turnout_host *at; /* by number */
};

int turnout_init(struct turnout *t, uint32_t capacity);
void turnout_free(struct turnout *t);

/* The time of the file `hosts` as it is now; 0: there is none. */
uint64_t turnout_version(const char *folder);

/* Of a cluster's folder. A file that is not there says nothing. 0 or -errno. */
int turnout_read(struct turnout *t, const char *folder);
int turnout_write(const struct turnout *t, const char *folder);
