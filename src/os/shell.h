/* SPDX-License-Identifier: MIT */
/* A remote shell that runs a helper: from the connector's start to its end.
 *
 * First the helper's greeting is waited for; if the host needs the helper it is sent (see spread/greeting.h). Then frames
 * go both ways. What the connector complains of is kept, its last line: it says why, if it ends too early. */
#pragma once

#include "os/loop.h"
#include "os/spool.h"
#include "spread/frame.h"
#include "spread/greeting.h"
#include "spread/hop.h"

enum { SHELL_WORDS_MAX = 256 };

/* The helper that is sent. */
struct shell_helper {
    struct bytes program;
    char digest[65]; /* hexadecimal */
    char processor[GREETING_PROCESSOR_MAX];
};

struct shell;

struct shell_events {
    void *context;
    uint64_t files; /* that connectors may have open; 0: as many as we */
    /* The helper is there. */
    void (*greeted)(void *context, struct shell *s);
    /* False: it must not say that. */
    bool (*heard)(void *context, struct shell *s, const struct frame *f);
    /* It is over; the owner frees it, later. */
    void (*ended)(void *context, struct shell *s);
};

struct shell {
    const struct shell_events *events;
    const struct shell_helper *helper;
    struct loop *loop;
    uint32_t child; /* the owner's */
    struct list at; /* the owner's */
    pid_t pid;      /* 0: it has ended */
    bool reaped;    /* and is about to be 0 */
    struct source in, out, err;
    struct spool outgoing, incoming;
    enum { SHELL_GREETING, SHELL_SENDING, SHELL_TALKING, SHELL_OVER } state;
    bool writing;     /* `in` is waited for */
    bool hushed;      /* nothing is read for now */
    bool told;        /* the end */
    bool sent;        /* the helper had to be */
    uint64_t kill_at; /* it was asked to end, and is killed then; 0: no */
    bool forced;      /* it was killed: then is when nobody waits for it any longer */
    enum hop_why why; /* it has ended, or will */
    char words[SHELL_WORDS_MAX];
};

/* Starts the connector. NULL and -errno: it cannot be started. */
struct shell *shell_new(struct loop *loop, const struct shell_events *events,
                        const struct shell_helper *helper, struct bytes connector,
                        struct bytes host, int *ret_error);
void shell_free(struct shell *s);

/* A frame, once it was greeted. */
void shell_say(struct shell *s, const struct frame *f);
/* Bytes that are not yet on their way. */
static inline size_t shell_backlog(const struct shell *s) {
    return s->outgoing.to - s->outgoing.from;
}

/* At the end of every turn: what was said goes out. */
void shell_settle(struct shell *s);

/* Nothing is read, or again. */
void shell_hush(struct shell *s, bool hush);

/* It is to end now; `words` say why, NULL: it knows better itself. The connector is asked, as it may have become the helper,
 * which has a command to end; then killed. */
void shell_drop(struct shell *s, enum hop_why why, const char *words);
/* When shell_tick is to be called; 0: not at all. */
static inline uint64_t shell_deadline(const struct shell *s) {
    return s->kill_at;
}
void shell_tick(struct shell *s);

/* A child of ours has ended: was it this one's? */
bool shell_reaped(struct shell *s, pid_t pid, int status);
