/* SPDX-License-Identifier: MIT */
/* What a node must not forget: how often it has started, the last epoch it has led, and the highest
 * value that its machine has persisted.
 *
 * The file `state` in the node's folder holds two copies, written in turn, each with a number and a
 * digest: a write that is torn by a crash leaves the other. It is created under another name, so
 * there is always a whole one or none, and locked while it is open. At start the store may block;
 * later a thread, there only while something is being written, waits for the disk. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "os/loop.h"

struct kept {
    uint32_t boots;
    uint32_t epoch;
    uint64_t value;
};

struct store {
    int fd;
    uint64_t number;  /* of the newest copy */
    struct kept kept; /* as it is on the disk, or being written */
    uint64_t wanted;  /* a higher value that waits for its turn */
    bool busy;
    int status;         /* of the last write: 0 or -errno */
    struct source done; /* readable when a write is over */
    struct loop *loop;
    void (*durable)(struct store *s, uint64_t value);
};

/* Opens or creates the state below `folder`. -EUCLEAN: there is one, but no copy of it is whole.
 * -ENOTSUP: a newer STORM has written it. -EBUSY: another process has it open; two would give out the same epoch. */
int store_open(struct store *s, const char *folder);
/* Waits for a write that is under way; nobody is told of it any more. */
void store_close(struct store *s);

/* A new life, as root of the next epoch if `root`; durable when this returns. */
int store_begin(struct store *s, bool root);

/* At least so many lives were before: whoever has lost what it knew must not be taken for a former self. */
int store_raise(struct store *s, uint32_t boots);

/* From now on values can be kept while the loop runs; `durable` is called when one is safe, and so
 * are all lower ones. A value that is not higher than what is kept is safe already. */
int store_attach(struct store *s, struct loop *loop, void (*durable)(struct store *, uint64_t));
void store_keep(struct store *s, uint64_t value);
