/* SPDX-License-Identifier: MIT */
/* A drawer: bytes that a process leaves for whoever comes after it, see EFFECT_STOW.
 *
 * A file in the node's folder that is mapped, so putting something in costs no call, and what is there outlives
 * the process, whatever ends it. It does not outlive the machine: nothing waits for the disk. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct drawer {
    char path[PATH_MAX];
    uint8_t *at; /* mapped; NULL: not yet */
};

/* Nothing is made before something is put in, or it is said that something will be. */
void drawer_init(struct drawer *d, const char *folder);
void drawer_make(struct drawer *d);
void drawer_fini(struct drawer *d);

/* What is in it; empty if there is nothing, or if whoever put it in has not finished. */
struct bytes drawer_look(struct drawer *d);

/* In place of what was there; at most STOW_BYTES_MAX. */
void drawer_put(struct drawer *d, struct bytes bytes);
