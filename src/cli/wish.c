/* SPDX-License-Identifier: MIT */
/* The options of run, submit and alloc: see wish.h. */
#include "cli/wish.h"

#include <string.h>

#include "cli/complain.h"

struct row {
    int commands;
    struct option option;
};

enum {
    ALL = WISH_RUN | WISH_SUBMIT | WISH_ALLOC,
    JOBS = WISH_RUN | WISH_SUBMIT,
    RUN = WISH_RUN,
    SUBMIT = WISH_SUBMIT
};

void wish_table(struct wish *w, enum wish_command command, struct option table[WISH_OPTIONS_MAX]) {
    const struct row rows[] = {
        {ALL, {"procs,n", OPTION_TEXT, &w->procs, "N", "so many processes"}},
        {ALL, {"nodes,N", OPTION_TEXT, &w->nodes, "N", "on so many nodes"}},
        {ALL, {"size", OPTION_TEXT, &w->size, "N:PPN:P", "nodes, processes on each, in all"}},
        {JOBS, {"map", OPTION_TEXT, &w->map, "HOW", "ranks to nodes: block, cyclic, n0*2,n1"}},
        {ALL, {"on,w", OPTION_TEXT, &w->on, "NODES", "only on these: n[0-3]"}},
        {ALL, {"exclude,x", OPTION_TEXT, &w->exclude, "NODES", "on none of these"}},
        {ALL,
         {"need", OPTION_TEXT, &w->need, "EXPR", "nodes that have this: MEM>=512MB, NIC=FAST"}},
        {JOBS, {"class", OPTION_TEXTS, &w->classes, "C:EXPR:MIN:MAX", "hosts that come with it"}},
        {ALL, {"exclusive", OPTION_FLAG, &w->exclusive, NULL, "share no node with another job"}},
        {ALL, {"time,t", OPTION_DURATION, &w->time_ns, "LIMIT", "may run so long: 90, 1:30:00"}},
        {JOBS, {"mem", OPTION_TEXT, &w->memory, "SIZE", "each process may use so much: 64M, 1.5G"}},
        {JOBS,
         {"bind", OPTION_TEXT, &w->bind, "WHAT", "each process to a core, socket, numa; none"}},
        {RUN, {"label,l", OPTION_FLAG, &w->label, NULL, "each line behind its rank"}},
        {JOBS, {"stdin", OPTION_TEXT, &w->input, "RANK", "who reads: a rank, all or none"}},
        {JOBS, {"output,o", OPTION_TEXT, &w->output, "FILE", "%j job, %r rank, %n node"}},
        {JOBS, {"error,e", OPTION_TEXT, &w->error, "FILE", "errors; otherwise with the output"}},
        {JOBS, {"chdir,D", OPTION_TEXT, &w->chdir, "DIR", "run in this folder"}},
        {JOBS, {"env", OPTION_TEXTS, &w->env, "NAME=VALUE", "set in the environment"}},
        {JOBS, {"export", OPTION_TEXT, &w->exported, "NAMES", "from here: all, none or a list"}},
        {RUN, {"pty", OPTION_FLAG, &w->pty, NULL, "rank 0 gets a terminal"}},
        {RUN, {"debug", OPTION_TEXT, &w->debug, "COMMAND", "start processes by it: gdb, valgrind"}},
        {RUN, {"cores", OPTION_FLAG, &w->cores, NULL, "bring what crashed processes leave here"}},
        {RUN, {"ranks", OPTION_TEXT, &w->ranks, "LIST", "--debug: only these: 0,3-5"}},
        {ALL, {"priority", OPTION_SIGNED, &w->priority, "N", "higher goes first"}},
        {ALL, {"begin", OPTION_TEXT, &w->begin, "TIME", "not before: 14:05, tomorrow, +90m"}},
        {ALL,
         {"reservation", OPTION_TEXT, &w->reservation, "NAME", "in nodes kept by storm reserve"}},
        {ALL, {"after", OPTION_TEXTS, &w->after, "JOBS", "when these have ended: 12,13"}},
        {ALL, {"after-any", OPTION_TEXTS, &w->after, "JOBS", "the same"}},
        {ALL, {"after-ok", OPTION_TEXTS, &w->after_ok, "JOBS", "when these have ended well"}},
        {ALL, {"after-not-ok", OPTION_TEXTS, &w->after_not_ok, "JOBS", "when these have failed"}},
        {ALL, {"name", OPTION_TEXT, &w->name, "TEXT", "shown by storm ps"}},
        {JOBS, {"requeue", OPTION_FLAG, &w->requeue, NULL, "start again if a node is lost"}},
        {JOBS, {"kill-on-bad-exit", OPTION_FLAG, &w->bad_exit, NULL, "a nonzero status ends all"}},
        {RUN, {"detach", OPTION_FLAG, &w->detach, NULL, "goes on when this command is gone"}},
        {SUBMIT, {"copy", OPTION_FLAG, &w->copy, NULL, NULL}},
        {SUBMIT, {"with-libs", OPTION_FLAG, &w->libraries, NULL, NULL}},
        {SUBMIT, {"input", OPTION_TEXTS, &w->inputs, "FILE[:NAME]", NULL}},
        {SUBMIT, {"fetch", OPTION_TEXTS, &w->fetches, "GLOB[:DIR]", NULL}},
        {SUBMIT, {"array", OPTION_TEXT, &w->array, "A-B", "a job for each number"}},
        {SUBMIT, {"wait", OPTION_FLAG, &w->wait, NULL, "until it is over, with its status"}},
        {SUBMIT, {"verbose,v", OPTION_FLAG, &w->verbose, NULL, "--wait: say what it has used"}},
        {RUN, {"copy", OPTION_FLAG, &w->copy, NULL, "send the program to the nodes first"}},
        {RUN, {"no-copy", OPTION_FLAG, &w->no_copy, NULL, "nor if they do not see it"}},
        {RUN, {"with-libs", OPTION_FLAG, &w->libraries, NULL, "and its shared libraries"}},
        {RUN, {"input", OPTION_TEXTS, &w->inputs, "FILE[:NAME]", "put it in the job's folder"}},
        {RUN, {"fetch", OPTION_TEXTS, &w->fetches, "GLOB[:DIR]", "bring it from there at the end"}},
        {RUN,
         {"tree", OPTION_TEXT, &w->sending.tree, "SHAPE", "by which way: chain, k-ary:N, pair"}},
        {RUN, {"chunk", OPTION_TEXT, &w->sending.chunk, "SIZE", "in pieces of about this size"}},
        {RUN, {"slots", OPTION_NUMBER, &w->sending.slots, "N", "so many of them ahead"}},
        {RUN, {"fabric", OPTION_TEXT, &w->sending.fabric, "F", "auto, streams, ofi[:PROVIDER]"}},
        {JOBS, {"load", OPTION_TEXT, &w->load, "FILE", "programs: one a line, with their -n"}},
        {JOBS, {"dry-run", OPTION_FLAG, &w->dry_run, NULL, "say what would be asked for"}},
        {RUN,
         {"auto", OPTION_FLAG, &w->automatic, NULL, "bring a local cluster up if there is none"}},
        {RUN, {"verbose,v", OPTION_FLAG, &w->verbose, NULL, "times of every stage"}},
        {ALL, {"cluster", OPTION_TEXT, &w->cluster, "NAME", "which; otherwise STORM_CLUSTER"}},
    };
    unsigned count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].commands & (int)command)
            table[count++] = rows[i].option;
    table[count] = (struct option){0};
}

/* The only one of a file is as if it had been typed. */
static int adopt(struct wish *w, const char *command) {
    const struct part *part = &w->parts.at[0];
    char place[PART_PLACE_MAX];
    w->procs = part->procs;
    w->nodes = part->nodes;
    w->size = part->size;
    w->need = part->need;
    w->chdir = part->chdir != NULL ? part->chdir : w->chdir;
    for (uint32_t i = 0; i < part->env.count; i++) {
        if (w->env.count == NUMBERS_MAX)
            return complain(part_place(part, part->env.at[i], command, place), "too many --env");
        w->env.at[w->env.count++] = part->env.at[i];
    }
    return 0;
}

static int load(struct wish *w, const char *command, int *count, char ***argv) {
    if (*count > 0)
        return complain(command, "\"%s\": --load says what is run; leave one of both out",
                        (*argv)[0]);
    if (w->procs != NULL || w->nodes != NULL || w->size != NULL || w->need != NULL)
        return complain(command, "-n, -N, --size, --need: each line of the file says its own; "
                                 "leave them out");
    int r = parts_load(&w->parts, w->load);
    if (r != 0)
        return r;
    *argv = w->parts.at[0].argv;
    for (*count = 0; (*argv)[*count] != NULL;)
        ++*count;
    return w->parts.count == 1 ? adopt(w, command) : 0;
}

int wish_programs(struct wish *w, const char *command, bool plain, int *count, char ***argv) {
    struct part own = {.procs = w->procs, .nodes = w->nodes, .size = w->size, .need = w->need};
    int r = 0;
    if (w->load != NULL)
        r = load(w, command, count, argv);
    else if (!plain && *count > 0)
        r = parts_split(&w->parts, command, &own, *count, *argv);
    if (r == 0 && w->parts.count > 1) /* they are of the first part */
        w->nodes = w->size = w->need = NULL;
    return r;
}
