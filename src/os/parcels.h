/* SPDX-License-Identifier: MIT */
/* Files that go down a tree of remote shells, before the command.
 *
 * A hop keeps what comes in the file itself, under a temporary name, and gives it from there to those below it, each as fast as
 * it takes it: so one that comes late begins at the beginning, and one that is slow holds nobody up. When all is there and
 * has the right digest the file gets its name. Where it cannot be written, memory takes its place, for those below. */
#pragma once

#include "os/digest.h"
#include "spread/frame.h"
#include "spread/task.h"

struct parcel {
    int fd; /* where its bytes are; -1: nowhere */
    uint64_t bytes, have;
    bool here; /* all of it, and it is as it should be */
    bool failed;
    uint8_t digest[32];
    struct sum *sum; /* of what came so far */
    char *path, *temporary;
    uint16_t mode;
};

struct parcels {
    uint32_t count;
    struct parcel at[TASK_FILES_MAX];
    char trouble[256]; /* the first one */
};

/* How far somebody below us is. */
struct parcels_mark {
    uint32_t file;
    uint64_t at;
};

/* Files that come. What goes wrong is in `trouble`. */
void parcels_expect(struct parcels *p, const struct task *t);
/* Files that we have, at the root: one after the other. 0 or -errno. */
int parcels_add(struct parcels *p, const char *path, struct task_file *ret);
void parcels_fini(struct parcels *p);

/* A frame PUT. False: it makes no sense. */
bool parcels_take(struct parcels *p, const struct frame *f);
/* All are here, or will never be: see `trouble`. */
bool parcels_settled(const struct parcels *p);

/* There is something for somebody below. */
bool parcels_have(const struct parcels *p, const struct parcels_mark *m);
/* The next frame for it; the body lies in `room`. False: nothing now. A file that cannot be read any more is in `trouble`, and its digest
 * will be wrong. */
bool parcels_next(struct parcels *p, struct parcels_mark *m, struct room room, struct frame *ret);
