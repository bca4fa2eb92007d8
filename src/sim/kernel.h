/* SPDX-License-Identifier: MIT */
/* A model of the part of Linux that a launcher uses, in virtual time.
 *
 * It carries out the same effects as os/kernel.h and tells of the same things, but its processes are
 * actors that do as their arguments say (sim/act.h). What it does must be what Linux does:
 * tests/actors_test.c plays the same scripts on both. Groups hold everything that descends from their
 * processes, as cgroups do: killing is thorough, and what is frozen can be killed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/machine.h"

struct sim_kernel;

/* What each process here uses, whatever it does: whoever knows the ranks of a job knows what it has used. */
struct usage sim_usage(uint32_t rank);

/* How it went with a process that a launcher started: what really happened, whoever is told. */
struct sim_deed {
    uint64_t run;
    uint32_t rank;
    uint32_t size; /* of the run */
    enum child_event event;
    uint32_t value;
    bool crash;     /* KILLED: with its launcher */
    uint64_t wrote; /* if it has ended: bytes, to both streams */
};

/* A process has begun or ended, offspring too. What lives when its group is closed is never told to have
 * ended: nobody would have ended it. */
struct sim_life {
    uint32_t node;
    uint64_t run;
    bool own; /* a process that the launcher started */
    bool begins;
};

struct sim_kernel_config {
    uint32_t node;   /* for whoever watches */
    uint32_t groups; /* their numbers are below this */
    uint64_t seed;
    uint64_t spawn_ns;      /* at most, until a process that was started does its first deed */
    uint32_t fail_permille; /* of starts fail for lack of memory */
    uint32_t talk_permille; /* of groups have a process that talks to the manager: caller.h */
    void (*watch)(void *context, const struct sim_deed *deed); /* may be NULL */
    void (*lives)(void *context, const struct sim_life *life); /* the same */
    void (*woke)(void *context, uint32_t node); /* a group was started or let go; the same */
    void *context;
};

struct sim_kernel *sim_kernel_new(const struct sim_kernel_config *c);
void sim_kernel_free(struct sim_kernel *k);

bool sim_kernel_wants(enum effect_kind kind);
void sim_kernel_carry(struct sim_kernel *k, const struct effect *e, uint64_t now);

/* When something will have happened, UINT64_MAX if nothing ever will; not before the latest time
 * that the model was told. */
uint64_t sim_kernel_next(const struct sim_kernel *k);

/* Only the time passes. When a process will do something by itself (UINT64_MAX: never); and whether there
 * is something to tell now. For a launcher that is not always there to listen. */
void sim_kernel_run(struct sim_kernel *k, uint64_t now);
uint64_t sim_kernel_wakes(const struct sim_kernel *k);
bool sim_kernel_due(const struct sim_kernel *k);

/* Somebody else kills one of the processes, the pick'th modulo their number; false if there is none. */
bool sim_kernel_kill(struct sim_kernel *k, uint32_t pick, uint32_t signal, uint64_t now);

/* What has happened by now and was not told yet, one by one; false if that was all. Bytes are lent until
 * the next call of anything here. */
bool sim_kernel_tell(struct sim_kernel *k, uint64_t now, struct input *ret);

/* The launcher has died: so have all processes, and nobody will be told. Ready for the next. */
void sim_kernel_crash(struct sim_kernel *k);

/* Processes of a run that are alive, offspring too; of all runs. */
uint32_t sim_kernel_alive(const struct sim_kernel *k, uint64_t run);
uint32_t sim_kernel_alive_all(const struct sim_kernel *k);

/* Answers that processes which talk to the manager have got, of groups that are open. */
uint64_t sim_kernel_answers(const struct sim_kernel *k);

/* Groups that are open. */
uint32_t sim_kernel_open(const struct sim_kernel *k);

/* The next group at or above *at that is open, and how many of its processes live (without their
 * offspring, and with it); false if there is none. */
struct sim_census {
    uint64_t run;
    uint32_t own, all;
    bool frozen;
    uint64_t frozen_at;
};
bool sim_kernel_census(const struct sim_kernel *k, uint32_t *at, struct sim_census *ret);
