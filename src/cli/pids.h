/* SPDX-License-Identifier: MIT */
/* Where the processes of a run are, and how their systems number them: gathered from what its nodes say. */
#pragma once

#include "wire/message.h"

/* One process; texts belong to the list. */
struct pids_row {
    uint32_t pid;            /* 0: it does not run */
    const char *node, *host; /* NULL: not heard of */
};

struct pids {
    uint64_t run; /* 0: of none */
    uint32_t procs;
    uint32_t known;        /* those that have ended among them */
    struct pids_row *rows; /* by rank */
    char **texts;
    uint32_t text_count, text_cap;
};

void pids_begin(struct pids *p, uint64_t run, uint32_t procs);
void pids_fini(struct pids *p);

/* How many of them run. */
uint32_t pids_running(const struct pids *p);

/* What a node has said; true: now all are known. Of other runs it says nothing. */
bool pids_take(struct pids *p, const struct message_pids *m);

static inline bool pids_complete(const struct pids *p) {
    return p->run != 0 && p->known == p->procs;
}
