/* SPDX-License-Identifier: MIT */
/* storm run: runs a parallel program and waits for it, with its input and output here. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/automatic.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/follow.h"
#include "cli/mpir.h"

static int help(const struct option *table) {
    puts(
        "usage: storm run [OPTIONS] [--] PROGRAM [ARGUMENTS] [: [-n N] PROGRAM [ARGUMENTS] ...]\n"
        "       storm run [OPTIONS] --load FILE\n"
        "\n"
        "Runs a program on nodes of the cluster and waits. Its output comes here, what is typed goes\n"
        "to rank 0. Ctrl-C interrupts it, twice kills it. The exit status is the highest of all\n"
        "processes, 128 and the signal's number for one that was killed, 124 at the time limit, 125\n"
        "if storm could not, 126 or 127 if the program cannot be run or found.");
    options_print(table, stdout);
    return STATUS_OK;
}

/* A program is read and digested before it is sent; the manager can be met in that time. */
static void go_on_connecting(void *context) {
    struct follow *f = context;
    session_peek(f->contact.session);
}

static int run(struct follow *f, struct wish *w, struct order *o, char **argv) {
    int r = sending_check(&w->sending, "run");
    if (r == 0 && w->automatic)
        r = automatic_up(w->cluster);
    if (r == 0)
        r = contact_find(&f->contact.cluster, w->cluster);
    if (r == 0 && !w->dry_run)
        r = follow_connect(f, w);
    if (r == 0 && !w->dry_run) {
        w->sending.meanwhile = go_on_connecting;
        w->sending.context = f;
    }
    if (r == 0)
        r = order_make(o, w, WISH_RUN, &f->contact.cluster, argv);
    if (r != 0 || f->done)
        return r != 0 ? r : f->status;
    if (w->dry_run) {
        order_print(o, &f->contact.cluster);
        return STATUS_OK;
    }
    signals_begin(f); /* what we leave in the cluster's folder must be taken away */
    r = freight_open(&o->freight, &w->sending, &f->contact.loop, &f->contact.cluster, &o->submit);
    if (r != 0)
        return r;
    f->looked_ns = clock_ns();
    f->keep = w->detach;
    f->epilogue.program = argv[0];
    f->epilogue.folder = o->folder;
    f->debug.program = o->program;
    r = follow_begin(f, o);
    if (r != 0)
        return r;
    f->giver = o->freight.giver; /* it ends before the loop that it lives in */
    o->freight.giver = NULL;
    if (f->giver != NULL) { /* while the manager and the nodes see to the job */
        session_flush(f->contact.session);
        giver_ready(f->giver);
    }
    return follow_until_over(f);
}

/* Whether a node does not see the program is known only when it is to be started: nothing has been, then. */
static int attempt(struct wish *w, char **argv, uint64_t began, bool *ret_hidden) {
    struct follow *f = calloc(1, sizeof *f);
    struct order *o = calloc(1, sizeof *o);
    ASSERT(f != NULL && o != NULL);
    f->began_ns = began;
    int status = run(f, w, o, argv);
    *ret_hidden = follow_hidden(f) && !w->copy;
    if (*ret_hidden && w->verbose)
        complain("run", "%s: not every node sees this file: it is sent to them",
                 o->programs.count > 0 ? programs_of(&o->programs, f->last.rank)->path
                                       : o->program);
    order_fini(o);
    cluster_free(&f->contact.cluster);
    free(o);
    free(f);
    return status;
}

int run_main(int argc, char **argv) {
    struct wish w = {0};
    struct option table[WISH_OPTIONS_MAX];
    uint64_t began = clock_ns();
    struct option_reader reader = {0};
    char **program = argv + 1;
    wish_table(&w, WISH_RUN, table);
    int count = options_parse_program(table, argc, argv, &reader);
    if (count == OPTIONS_HELP)
        return help(table);
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count == 0 && w.load == NULL)
        return complain("run", "run what? for example: storm run -n 4 hostname");
    w.hold = MPIR_being_debugged != 0;
    bool hidden = false;
    int status = wish_programs(&w, "run", reader.plain, &count, &program);
    if (status == 0)
        status = attempt(&w, program, began, &hidden);
    if (hidden) {
        w.copy = true;
        status = attempt(&w, program, began, &hidden);
    }
    parts_fini(&w.parts);
    return status;
}
