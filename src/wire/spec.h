/* SPDX-License-Identifier: MIT */
/* What is to be run, as the submitter would run it: program, arguments, environment, folder, limits.
 *
 * Made by the client, read by whoever starts processes; those in between pass the bytes on. A list of
 * strings is their bytes, each ending in NUL. */
#pragma once

#include "wire/codec.h"

/* A folder of the job's own on each node. */
enum own_folder {
    OWN_NONE,
    OWN_MADE,   /* made by whoever needs it first */
    OWN_FILLED, /* files were sent there: it is there, or they are lost */
    OWN_FOLDERS
};

enum stdin_mode { STDIN_NONE, STDIN_RANK, STDIN_ALL, STDIN_MODES };

/* One resource limit: u8 resource (as Linux numbers them), u64 soft, u64 hard. */
enum { SPEC_LIMIT_BYTES = 17 };

/* What each process is bound to, in turn. */
enum bind_to { BIND_NONE, BIND_CORE, BIND_SOCKET, BIND_NUMA, BINDS };

struct spec {
    uint8_t stdin_mode;
    uint32_t stdin_rank;
    bool terminal; /* one process gets a terminal */
    bool merged; /* what is written to both streams goes to one place: it is one stream, in order */
    uint32_t columns, rows;
    uint32_t umask;
    struct bytes limits;
    struct bytes folder;  /* to run in; absolute */
    struct bytes program; /* the file; absolute, or looked for in PATH of the environment */
    struct bytes
        image; /* where it is among the files that were sent to the node; empty: not sent */
    /* Libraries that were sent with it, as os/outfits.h has it; empty: the node's own are used. */
    struct bytes outfit;
    struct bytes stubborn; /* wire/outfit.h */
    bool argv0;
    struct bytes arguments;   /* strings, the program's name first */
    struct bytes environment; /* strings NAME=VALUE */
    /* Of a job whose output goes to files; may hold %j %r %n. Empty: to the client. */
    struct bytes output;
    struct bytes error; /* empty: where output goes */
    uint8_t own;        /* enum own_folder */
    bool inside;        /* the processes run there, and not in `folder` */
    /* The program's file as the submitter sees it: nodes that see another do not run it. Without an inode: any will do that is there. */
    bool seen;
    uint64_t device, inode, bytes, mtime_ns;
    /* What follows came later: specs of before end here. */
    /* The place of each rank, as sched/map.h has it; empty: that follows from the kind of map. */
    struct bytes places;
    uint8_t bind;    /* enum bind_to */
    bool bind_told;  /* where each is bound is told, in its errors */
    uint64_t memory; /* bytes that each process may use, with all that it starts; 0: any */
    /* Debugging: a block of its own. */
    struct bytes debugger;  /* strings before the program's file; empty: no process has one */
    struct bytes debugged;  /* the ranks that start so: wire/ranks.h */
    uint32_t terminal_rank; /* who gets the terminal, if there is one */
    bool hold;              /* they are stopped before their first instruction */
    bool cores;             /* what a process leaves when it crashes goes to the job's folder */
    bool gpus;              /* those of a node are shared out among its processes */
    /* Of a job of several programs: the first is the one above and has the first `ranks` ranks, the others follow, as
     * spec_program_store writes them. All 0 and empty: there is only the one. */
    uint32_t ranks;
    struct bytes first_folder,
        first_environment; /* of the first, as struct spec_program has them */
    struct bytes programs;
};

/* One of the programs of a job, with ranks in a row: those of the first come first. Nothing here says where they run. */
struct spec_program {
    uint32_t index;       /* from 0; not written */
    uint32_t first;       /* of its ranks; not written */
    size_t end;           /* where the next one lies in `programs`; not written */
    uint32_t ranks;       /* how many; 0: all, of a job that has no other */
    struct bytes program; /* this and what follows as in struct spec */
    struct bytes image, outfit, stubborn;
    bool argv0;
    struct bytes arguments;
    struct bytes folder;      /* empty: as the job's */
    struct bytes environment; /* what is otherwise than in the job's */
    bool seen;
    uint64_t device, inode, bytes, mtime_ns;
};

/* Length written, or -ENOBUFS. */
long spec_encode(const struct spec *s, struct room out);

/* 0, or -EBADMSG: not well formed, a list that does not end in NUL, no argument, a program without ranks. Views borrow. */
int spec_decode(struct bytes in, struct spec *ret);

/* How many programs it has. */
uint32_t spec_programs(const struct spec *s);

/* The first, and the one behind it; false: there is none. */
void spec_program_first(const struct spec *s, struct spec_program *ret);
bool spec_program_next(const struct spec *s, struct spec_program *p);

/* The one that this rank runs; false: none does. */
bool spec_program_of(const struct spec *s, uint32_t rank, struct spec_program *ret);

/* The spec has the files of this program, and how they looked where it was submitted. */
void spec_take_files(struct spec *s, const struct spec_program *p);

/* All ranks that its programs have; 0: as many as there are, as there is only one. */
uint64_t spec_ranks(const struct spec *s);

/* One of those behind the first, to be put behind what `programs` has. Length written, or -ENOBUFS. */
long spec_program_store(const struct spec_program *p, struct room out);

/* Strings in a list. */
uint32_t strings_count(struct bytes list);

/* The string at *at, which moves on; NULL at the end. */
const char *strings_next(struct bytes list, size_t *at);

struct rlimit_spec {
    uint8_t resource;
    uint64_t soft, hard;
};

void spec_limit_store(uint8_t out[SPEC_LIMIT_BYTES], const struct rlimit_spec *l);
bool spec_limit_load(struct rlimit_spec *ret, struct bytes limits, uint32_t index);
