/* SPDX-License-Identifier: MIT */
/* Programs that want to talk to the machine manager: bells, and the lines of those who have rung.
 *
 * Each group has a bell of which its processes inherit one end (wire/bell.h). So those that never talk cost one pair of sockets
 * for all of them. The line of whoever sends what is no frame is closed, and so is that of one too many. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "machine/machine.h"
#include "os/loop.h"
#include "wire/bell.h"

enum { BELL_NOBODY = INT32_MAX }; /* no group has this number */

struct callers;

struct bell {
    struct callers *all;
    struct source near;
    int far;        /* for processes; -1: there is none */
    uint32_t group; /* BELL_NOBODY: whoever rings is turned away */
};

struct callers {
    struct loop *loop;
    uint32_t cap;
    struct caller *table; /* made when the first one rings */
    struct list due;
    uint8_t *frame;
    struct bell *spare; /* made ahead */
};

void callers_init(struct callers *all, struct loop *loop, uint32_t cap);
void callers_fini(struct callers *all);

/* Makes one ahead. */
void bells_stock(struct callers *all);
/* For a group; NULL: there is none to be had. */
struct bell *bell_take(struct callers *all, uint32_t group);
/* Closes it, and the lines of all that have come by it. */
void bell_close(struct bell *b);
/* From now on nobody is let in, and those who are in are sent away. */
void bell_silence(struct bell *b);

void callers_carry(struct callers *all, enum effect_kind kind, const struct effect_petition *e);
/* Something to tell: its bytes are lent until the next. */
bool callers_next(struct callers *all, struct input_petition *ret);
