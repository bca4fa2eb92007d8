/* SPDX-License-Identifier: MIT */
/* The fabrics that a mover uses, by name: "ofi" (the best provider that reaches other machines) or "ofi:PROVIDER".
 *
 * One is opened when it is first asked for, and works some time after that. One that cannot be opened, or has failed,
 * stays so: whoever asks hears why, and uses streams. */
#pragma once

#include "os/ferry.h"
#include "wire/message.h"

enum { CARRIERS_MAX = 4 };

struct carrier {
    char name[FABRIC_NAME_MAX + 1]; /* "": the place is free */
    struct ferry *ferry;            /* NULL: it could not be opened */
    uint64_t since;                 /* when that was begun */
    bool failed;
    bool left; /* and nobody uses it any more */
    char why[FABRIC_WHY_BYTES];
    uint32_t strikes; /* links that it did not work for */
    uint32_t windows; /* that are open to others */
    struct carriers *all;
};

struct carriers {
    struct loop *loop;
    char source[64]; /* IP address to be at; "": as the provider has it */
    void (*ready)(void *context, struct carrier *c); /* it works now */
    void (*sent)(void *context, uint64_t cookie, int error, const char *why);
    void (*note)(void *context, uint32_t note);
    void *context;
    struct carrier list[CARRIERS_MAX];
};

/* A name that can be asked for. */
bool carrier_name_good(struct bytes name);

/* With this name; begins to open it if that was not done. NULL: there are too many. */
struct carrier *carriers_get(struct carriers *all, struct bytes name);
const struct carrier *carriers_find(const struct carriers *all, struct bytes name);
bool carriers_any(const struct carriers *all);
/* At the end of every turn: one that has not opened in time has failed. */
void carriers_settle(struct carriers *all);
void carriers_fini(struct carriers *all);

static inline bool carrier_works(const struct carrier *c) {
    return c != NULL && !c->failed && c->ferry != NULL && ferry_alive(c->ferry);
}

/* It neither works yet, nor has it failed. */
static inline bool carrier_opening(const struct carrier *c) {
    return c != NULL && !c->failed && c->ferry != NULL && !ferry_alive(c->ferry);
}

/* Until it works, or has failed. */
void carrier_wait(struct carrier *c);

/* It is not to be used any more. */
void carrier_fail(struct carrier *c, const char *why);
/* It has not worked for somebody: for the last time, perhaps. */
void carrier_strike(struct carrier *c, const char *why);
/* A put to somebody who is gone does not come back. */
void carrier_stuck(struct carrier *c, const char *why);
/* One more window is open, or one less. */
void carrier_expect(struct carrier *c, bool more);
