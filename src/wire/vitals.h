/* SPDX-License-Identifier: MIT */
/* How a node is: the record that it publishes for gathers (rm/gather.h), small as thousands of them come to the root.
 *
 * How much it has to do, its memory, whether its owner works there, and what the runs that are on it have used until now, as many as there is
 * room for. Numbers are as long as they need to be: an idle node says about nine bytes, one with an owner five more, each run of an ordinary size adds about
 * twenty. Times are whole milliseconds in it, bytes whole KiB. */
#pragma once

#include "base/units.h"
#include "machine/machine.h"
#include "wire/codec.h"

/* Nodes look at themselves, and the root asks them, so often. */
#define VITALS_PERIOD_NS (5 * NS_PER_S)

/* Of the gather. */
enum { CHANNEL_VITALS };

/* What its record begins with. */
struct vitals {
    struct input_gauged gauge; /* but for what an owner is judged by */
    uint32_t watch;            /* mark (owner.h) of what tells of its owner; 0: it knows of none */
    bool active;               /* he works there */
};

struct vitals_run {
    uint64_t run;
    struct usage usage; /* of this node */
};

/* Length written, or -ENOBUFS. */
long vitals_begin(const struct vitals *v, struct room out);
/* One more run; -ENOBUFS: there is no room for it. */
long vitals_add(const struct vitals_run *r, struct room out);

/* 0, or -EBADMSG; then *at is where the runs begin. */
int vitals_read(struct bytes record, struct vitals *ret, size_t *at);
/* The run at *at, which moves on, as of that node; 1, 0 at the end, or -EBADMSG. */
int vitals_next(struct bytes record, size_t *at, uint32_t node, struct vitals_run *ret);
