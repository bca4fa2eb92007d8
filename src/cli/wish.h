/* SPDX-License-Identifier: MIT */
/* What somebody wants to be run: the options of run, submit and alloc, and the request made of them. */
#pragma once

#include "cli/debugging.h"
#include "cli/freight.h"
#include "cli/options.h"
#include "cli/parts.h"
#include "cli/placing.h"
#include "cli/programs.h"
#include "cli/sections.h"
#include "cli/surroundings.h"
#include "client/cluster.h"
#include "sched/size.h"
#include "wire/message.h"
#include "wire/spec.h"

/* Options as they were given. */
struct wish {
    const char *cluster;
    const char *procs, *nodes, *size, *map;
    const char *on, *exclude, *need;
    bool exclusive;
    uint64_t time_ns;
    const char *memory, *bind;
    struct text_list classes; /* of hosts that come with it */
    bool label;
    const char *input, *output, *error;
    const char *chdir, *exported;
    struct text_list env;
    bool pty;
    int64_t priority;
    const char *begin, *reservation;
    struct text_list after, after_ok, after_not_ok; /* jobs that have to end first */
    const char *name;
    bool requeue, bad_exit, detach;
    bool dry_run, verbose;
    bool automatic;           /* bring a cluster up if there is none */
    bool copy;                /* send the program to the nodes first */
    bool no_copy;             /* nor if they do not see it */
    bool libraries;           /* and its shared libraries */
    struct text_list inputs;  /* for the job's folder */
    struct text_list fetches; /* from there, when it is over */
    struct sending sending;
    const char *array; /* submit */
    bool wait;
    const char *load;          /* a file of programs */
    struct parts parts;        /* if there are several; parts_fini is needed */
    const char *debug, *ranks; /* by a debugger, which of them */
    char debugged[24];         /* the only one, as `input` has it */
    bool cores;                /* of processes that crash */
    bool hold;                 /* they wait for a parallel debugger: cli/mpir.h */
};

enum wish_command { WISH_RUN = 1, WISH_SUBMIT = 2, WISH_ALLOC = 4 };
enum { WISH_OPTIONS_MAX = 64 };

/* The options that this command has. */
void wish_table(struct wish *w, enum wish_command command, struct option table[WISH_OPTIONS_MAX]);

/* Takes the words behind the options, `count` of them from *argv on, apart into programs, or reads them from a file. *argv is
 * the first program and its arguments then, and *count tells how many words that are. `plain`: "--" stood before them. 0,
 * or the exit status after a complaint. */
int wish_programs(struct wish *w, const char *command, bool plain, int *count, char ***argv);

/* A request in full, and all that it points to. */
struct order {
    struct message_submit submit;
    struct spec spec;
    struct size size;
    struct placing placing;
    bool types; /* standard input goes to the job */
    uint32_t types_to;
    char folder[4096];
    char program[4096];
    char array[24];
    char name[224];
    uint8_t after[AWAITS_MAX * AWAIT_BYTES];
    uint8_t limits[LIMITS_MAX * SPEC_LIMIT_BYTES];
    struct surroundings around;
    struct nodeset on, exclude;
    void *sets;
    char *arguments;
    uint8_t *encoded;
    uint8_t *classes;
    struct freight freight;
    struct programs programs; /* if there are several */
    struct sections sections; /* if they do not all share nodes */
    struct debugging debugging;
};

/* `argv` is the program and its arguments. 0, or the exit status after a complaint. */
int order_make(struct order *o, struct wish *w, enum wish_command command,
               const struct cluster *cluster, char **argv);
void order_fini(struct order *o);

/* --dry-run: what would be asked for. */
void order_print(const struct order *o, const struct cluster *cluster);
