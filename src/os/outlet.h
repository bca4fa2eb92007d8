/* SPDX-License-Identifier: MIT */
/* One output stream of a process: a pipe or a terminal, and what was read from it but is not taken.
 *
 * Both ends of the pipe stay open here while the process runs. So its end makes no noise (whoever
 * starts the process learns of it anyway) and costs no call while somebody waits for it; when nobody
 * is left who could write, the owner *seals* the outlet, and what is in the pipe then is the rest.
 * The reading end is in the loop from the beginning, edge-triggered: a full window needs no change
 * there. A pipe is never used twice: somebody might have kept the other end. */
#pragma once

#include "base/list.h"
#include "machine/machine.h"
#include "os/loop.h"
#include "os/window.h"

enum { OUTLET_PIECE = 64 * 1024 }; /* the most that is told at once */

struct outlet {
    struct source near; /* to read from */
    int far;            /* to be given to the process; -1 if it is closed here */
    struct list link;   /* the owner's: among spare ones, or those that have something to read */
    void *owner;
    struct list *ready; /* where to link itself when something can be read; NULL: nowhere */
    struct window window;
    uint64_t told;
    bool terminal;
    bool readable; /* as far as we know */
    bool sealed;
    bool ended; /* everything was read */
    bool end_told;
};

/* With a pipe, or with ends that are there already. 0 or -errno. */
int outlet_open(struct outlet *o, struct loop *l);
int outlet_adopt(struct outlet *o, struct loop *l, int near, int far);
/* `copied`: a process that is just being started may still have copies of our descriptors. */
void outlet_close(struct outlet *o, struct loop *l, bool copied);

/* A pipe from stock gets an owner. */
void outlet_begin(struct outlet *o, void *owner, struct list *ready, size_t window);

/* The process alone has the writing end from now on; its end will be heard. */
void outlet_release(struct outlet *o);

/* Nobody is left who could write. `rest`: there may be something in the pipe. */
void outlet_seal(struct outlet *o, bool rest);

/* Reads as much as there is, or as there is room for. */
void outlet_fill(struct outlet *o);

static inline bool outlet_thirsty(const struct outlet *o) {
    return o->readable && !o->ended && window_free(&o->window) > 0;
}

/* The next piece that was not told yet; false if all was. */
bool outlet_next(struct outlet *o, struct input_stream *ret);

void outlet_taken(struct outlet *o, uint64_t offset);
void outlet_again(struct outlet *o, uint64_t offset);
