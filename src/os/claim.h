/* SPDX-License-Identifier: MIT */
/* The claim on a cluster's folder: whoever holds it runs the cluster.
 *
 * It is a lock on the file `lock`, which its holder's children share and the kernel releases when the
 * last of them is gone: a claim that is free proves that nobody is left. Looking takes nothing, so
 * a look never makes somebody else's attempt fail. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct claim_holder {
    pid_t sweeper; /* outlives everything else; 0 if it has not said yet */
    pid_t watcher;
};

/* The claim's descriptor, close-on-exec; -EBUSY: somebody has it. */
int claim_take(const char *folder);
/* Says who holds it. */
int claim_tell(int claim, const struct claim_holder *holder);
/* 1: it is held, 0: it is free; or -errno. */
int claim_look(const char *folder, struct claim_holder *ret);
/* By its holder, last of all: the file goes. The claim is held until the descriptor is closed. */
void claim_remove(const char *folder);
