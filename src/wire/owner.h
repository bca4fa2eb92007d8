/* SPDX-License-Identifier: MIT */
/* What tells that the owner of a machine works there: as the node file says it, and as a node is told.
 *
 *     keyboard                    somebody has typed at a terminal of the machine
 *     load  load>0.8              more than so many processors (0.5) are used by others than jobs
 *     /var/run/desk               the file was read or changed, or one in that folder
 *     keyboard:5m+load+/tmp/desk  several; any of them will do
 *
 * He counts as active until so long after (5m; a minute if nothing is said). */
#pragma once

#include "base/bytes.h"
#include "base/mistake.h"

enum {
    OWNER_TEXT_MAX = 160, /* with the NUL */
    OWNER_SIGNS_MAX = 8
};

enum owner_kind { OWNER_KEYBOARD, OWNER_LOAD, OWNER_PATH };

struct owner_sign {
    enum owner_kind kind;
    uint32_t load_x100; /* LOAD: processors, in hundredths */
    struct bytes path;  /* PATH: borrowed from the text */
    uint64_t quiet_ns;
};

struct owner_watch {
    uint32_t count;
    struct owner_sign signs[OWNER_SIGNS_MAX];
};

/* -EINVAL: `m` says where what is wrong. */
int owner_read(struct bytes text, struct owner_watch *ret, struct mistake *m);

/* Texts are told apart by this; 0: an empty one. */
uint32_t owner_mark(struct bytes text);
