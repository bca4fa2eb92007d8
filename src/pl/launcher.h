/* SPDX-License-Identifier: MIT */
/* The program launcher: what becomes of a run's processes on one node.
 *
 * It makes a run ready (SETUP), starts it when told to, passes on what its processes write and read, and
 * says ENDED when nothing of it is left; that it keeps and says again until DROP. Processes, groups
 * and the bytes of streams belong to the world; here is only what is known of them. The launcher outlives
 * its manager: a new one is told of everything that is here (HOLD, ENDED, output that nobody has
 * taken). If no manager renews the lease in time, every run is killed: others may think this node dead
 * and give its work away.
 *
 * What the world promises beyond machine.h: of each process that was started, or could not be, one CHILD
 * tells the end; EMPTY comes by itself, after the last CHILD, and after what was left in the
 * pipes as far as the windows had room. What had none is told when there is, and then the end. A program that wants to
 * talk (PETITION) has a place from OPENED until CLOSED, or until it is closed from here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "machine/machine.h"

enum { HOST_NAME_BYTES = 255 };

struct pl_config {
    uint32_t groups;
    uint32_t processes;     /* in all groups */
    uint32_t petitioners;   /* programs that talk to the manager at once; 0: none may */
    uint32_t setup_bytes;   /* of all set-ups, kept for a manager that comes anew */
    uint64_t resend_ns;     /* output that was not taken for so long is told again, then after */
    uint64_t resend_max_ns; /* twice that, and so on; never less often than this */
    uint64_t lease_ns;      /* until the manager has said its own; 0: for ever */
    uint32_t means;         /* enum gang_means (wire/message.h) */
    bool prompt;            /* EFFECT_PROMPT has an effect */
    struct bytes host;      /* what this machine calls itself; HOST_NAME_BYTES at most */
};

struct pl;

size_t pl_bytes(const struct pl_config *c);
struct pl *pl_new(const struct pl_config *c, struct arena *a);
struct machine pl_machine(struct pl *p);

/* What one step needs at most: for the world's effects. */
uint32_t pl_effects_max(const struct pl_config *c);
size_t pl_effect_bytes_max(const struct pl_config *c);

uint32_t pl_runs(const struct pl *p); /* that are here, ended ones too */

uint32_t pl_groups(const struct pl *p); /* that the world keeps for them */

/* What checkers may know of a run; false: it is not here. */
struct pl_look {
    uint64_t slots; /* as bits; 0: all */
    bool started, suspended, killing;
};
bool pl_look(const struct pl *p, uint64_t run, struct pl_look *ret);

/* S10: do the tables add up, within their limits? NULL, or what is wrong. For checkers. */
const char *pl_wrong(const struct pl *p);
