/* SPDX-License-Identifier: MIT */
/* What the processes of a group have in common, made ready to be executed: file, arguments,
 * environment, folder, limits. Of a job of several programs there is one for each program that runs here.
 *
 * Made from a setup before anything is started, so that starting is only that. What cannot work (the
 * program is nowhere in the path) is known here already but told when they are to start. */
#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include "machine/machine.h"
#include "wire/setup.h"
#include "wire/spec.h"

/* What a child has without being told. */
struct inherited {
    const char *each;    /* a launcher for each process; NULL: none */
    const char *at;      /* IP address that others reach it by; NULL: all are on this machine */
    const char *objects; /* folder of files that were sent to the node, absolute; NULL: none */
    const char *root;    /* folder that paths on the node are taken under, absolute; NULL: none */
    mode_t umask;
    struct rlimit limits[RLIM_NLIMITS];
    uint32_t gpus; /* of the machine */
    int bell; /* the number of the descriptor through which it can talk (callers.h); 0: it cannot */
};

struct recipe_limit {
    int resource;
    struct rlimit limit;
};

struct recipe {
    struct setup setup;   /* views into a copy of the bytes */
    struct spec spec;     /* its program is the one of this recipe */
    struct recipe *next;  /* of the next program here; it borrows from the first */
    uint32_t end;         /* behind the last process here that it is for */
    uint32_t ranks;       /* of its program; 0: there is no other in the job */
    uint32_t index;       /* of its program */
    uint32_t first;       /* rank of its program */
    int bell;             /* see struct inherited */
    const char *at;       /* the same */
    struct bytes changed; /* of the environment, for its program */
    char *folder;         /* NULL: stay */
    char *gpus;           /* CUDA_VISIBLE_DEVICES=...; NULL: the job does not ask for any */
    uint32_t gpu_count;
    char *own;            /* STORM_JOB_DIR=...; NULL: the job has no folder */
    char *program;        /* NULL: see error */
    int error;            /* why nothing can be started, -errno */
    enum spawn_step step; /* and where it would fail */
    char **vector;        /* a place for a shell, then the arguments */
    char **environment;
    char *rank, *local, *turn; /* the digits in the environment */
    struct recipe_limit *limits;
    uint32_t limit_count;
    const char *each;
    void *dressed;    /* arguments of one that brings its libraries; NULL: it does not */
    char **debugging; /* the debugger's arguments, the program's among them; NULL: there is none */
    bool debugs;      /* the process whose turn it is starts so */
    bool umask;
    bool shell; /* the program is a script that says not for whom */
    char bytes[];
};

/* NULL and -EBADMSG or -ENOMEM. */
struct recipe *recipe_new(struct bytes setup, const struct inherited *have, int *ret_error);
void recipe_free(struct recipe *r);

/* The one that is for the process with this index. */
static inline struct recipe *recipe_for(struct recipe *r, uint32_t index) {
    while (r->next != NULL && index >= r->end)
        r = r->next;
    return r;
}

/* Makes it the recipe of the process with this index. */
void recipe_turn(struct recipe *r, uint32_t index);

/* What a process of it allocates is limited to so many bytes. */
void recipe_bound(struct recipe *r, const struct inherited *have, uint64_t bytes);

/* The job's folder; NULL: it has none. */
const char *recipe_own(const struct recipe *r);

/* Does this process of the group get the standard input? */
bool recipe_listens(const struct recipe *r, uint32_t index);
bool recipe_terminal(const struct recipe *r, uint32_t index);

/* Is the process whose turn it is to be stopped before its first instruction? A debugger has its own ways. */
bool recipe_holds(const struct recipe *r);

/* What to hand to execve. */
const char *recipe_file(const struct recipe *r);
char *const *recipe_arguments(const struct recipe *r);
