/* SPDX-License-Identifier: MIT */
/* The command that a helper runs on its host: what it writes, what it reads, how it ends.
 *
 * It is over when it has ended and nobody has its output open any more, as with any remote shell. To end it early is to
 * end all that descends from it; for that, this process must be a subreaper. */
#pragma once

#include "os/loop.h"
#include "os/spool.h"

enum { TOOL_PIECE = 32 * 1024 }; /* of output, at most */

struct tool_events {
    void *context;
    void (*wrote)(void *context, int stream, struct bytes bytes);
    /* So many bytes of its input were taken, altogether. */
    void (*took)(void *context, uint64_t bytes);
    void (*over)(void *context);
    /* A child of ours that has nothing to do with it. */
    bool (*spares)(void *context, pid_t child);
};

struct tool {
    const struct tool_events *events;
    uint64_t files; /* that it may have open; 0: as many as we */
    struct loop *loop;
    pid_t pid;  /* 0: not begun, or ended */
    int status; /* as waitpid() has it */
    struct source in, out, err;
    struct spool typed;
    uint64_t taken;
    bool writing, hushed, typed_end;
    bool begun, over;
    bool forced;      /* it was killed */
    uint64_t kill_at; /* it was asked to end, and is killed then; 0: no */
};

void tool_init(struct tool *t, struct loop *loop, const struct tool_events *events);
void tool_fini(struct tool *t);

/* A line for the user's shell. `deaf`: it reads nothing. 0 or -errno. */
int tool_start(struct tool *t, const char *line, bool deaf);

/* More for it to read; nothing: that was the end. */
void tool_type(struct tool *t, struct bytes bytes);
void tool_hush(struct tool *t, bool hush);
void tool_signal(struct tool *t, int signal);
/* A request, then force. */
void tool_end(struct tool *t);
/* When tool_tick is to be called; 0: not at all. */
static inline uint64_t tool_deadline(const struct tool *t) {
    return t->kill_at;
}
void tool_tick(struct tool *t);

bool tool_reaped(struct tool *t, pid_t pid, int status);
