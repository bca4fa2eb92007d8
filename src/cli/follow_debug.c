/* SPDX-License-Identifier: MIT */
/* What debuggers find in a command that waits for a job: see mpir.h.
 *
 * To ask all nodes of a job is dear, so that is done only if somebody wants to know: a debugger that has started us, `attach
 * --debug`, or a debugger that attaches later and says so in MPIR_being_debugged. That one is not looked for by the clock:
 * whoever is stopped and goes on is woken by it, and comes by here. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/follow.h"
#include "cli/mpir.h"

#define PAUSE_NS     (5 * NS_PER_MS)
#define PAUSE_MAX_NS (2 * NS_PER_S)
enum { TRIES = 12 };

static bool is_held(const struct follow *f) {
    return f->order != NULL && f->order->spec.hold;
}

static bool is_wanted(const struct follow *f) {
    return is_held(f) || f->debug.asked || MPIR_being_debugged != 0;
}

/* Nobody may find a table whose names are gone. */
static void clear_table(void) {
    MPIR_debug_state = MPIR_NULL;
    MPIR_proctable_size = 0;
    free(MPIR_proctable);
    MPIR_proctable = NULL;
}

static void begin(struct follow *f) {
    struct follow_debug *d = &f->debug;
    pids_begin(&d->pids, d->run, d->procs);
    d->pause_ns = PAUSE_NS;
    d->ask_at = f->contact.loop.now;
    d->tries = TRIES;
}

/* A job that has started again has other processes. */
void debug_news(struct follow *f, const struct message_news *n) {
    struct follow_debug *d = &f->debug;
    if (n->state != STATE_RUNNING || n->run == d->run)
        return;
    clear_table();
    pids_fini(&d->pids);
    d->run = n->run;
    d->procs = n->procs;
    d->ask_at = 0;
    if (is_wanted(f))
        begin(f);
}

/* Whoever is held cannot end by itself, so all will be known; of others some may have ended with their nodes before we
 * asked. */
void debug_settle(struct follow *f) {
    struct follow_debug *d = &f->debug;
    if (d->run == 0 || f->over || f->done)
        return;
    if (d->pids.run == 0 && is_wanted(f))
        begin(f);
    if (d->ask_at == 0)
        return;
    if (d->ask_at > f->contact.loop.now) {
        loop_wake_at(&f->contact.loop, d->ask_at);
        return;
    }
    if (!is_held(f) && d->tries-- == 0) {
        d->ask_at = 0;
        return;
    }
    session_do(f->contact.session, f->job, VERB_PIDS, 0, NULL, NULL);
    d->ask_at = f->contact.loop.now + d->pause_ns;
    d->pause_ns = d->pause_ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : d->pause_ns * 2;
    loop_wake_at(&f->contact.loop, d->ask_at);
}

/* One that has ended keeps its place, which is its rank, without a number. */
static void fill_table(const struct follow *f) {
    const struct pids *p = &f->debug.pids;
    const char *program = f->debug.program != NULL ? f->debug.program : "";
    MPIR_PROCDESC *table = calloc(p->procs, sizeof *table);
    ASSERT(table != NULL);
    for (uint32_t rank = 0; rank < p->procs; rank++)
        table[rank] = (MPIR_PROCDESC){.host_name = (char *)p->rows[rank].host,
                                      .executable_name = (char *)program,
                                      .pid = (int)p->rows[rank].pid};
    free(MPIR_proctable);
    MPIR_proctable = table;
    MPIR_proctable_size = (int)p->procs;
    MPIR_debug_state = MPIR_DEBUG_SPAWNED;
}

void debug_pids(struct follow *f, const struct message_pids *m) {
    struct follow_debug *d = &f->debug;
    if (!pids_take(&d->pids, m))
        return;
    d->ask_at = 0;
    fill_table(f);
    if (d->asked)
        complain(NULL, "job %" PRIu32 ": a debugger finds its processes in process %d", f->job,
                 (int)getpid());
    MPIR_Breakpoint();
    if (is_held(f))
        session_do(f->contact.session, f->job, VERB_SIGNAL, SIGCONT, NULL, NULL);
}

/* Whoever debugs it may want to look before all is gone. */
static void tell_failure(const struct follow *f) {
    char words[64];
    if (MPIR_being_debugged == 0 || MPIR_debug_state != MPIR_DEBUG_SPAWNED || f->status == 0)
        return;
    snprintf(words, sizeof words, "job %" PRIu32 " ended with status %d", f->job, f->status);
    MPIR_debug_abort_string = words;
    MPIR_debug_state = MPIR_DEBUG_ABORTING;
    MPIR_Breakpoint();
    MPIR_debug_abort_string = NULL;
}

void debug_end(struct follow *f) {
    tell_failure(f);
    clear_table();
    pids_fini(&f->debug.pids);
}
