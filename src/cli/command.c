/* SPDX-License-Identifier: MIT */
/* The table of subcommands, and which of them is meant: see command.h. */
#include "cli/command.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/complain.h"

static const struct command commands[] = {
    {"add", "more hosts for a cluster that runs", add_main},
    {"alloc", "hold nodes while a command runs", alloc_main},
    {"attach", "the output of a job that runs", attach_main},
    {"bench", "measure this installation, or simulated clusters", bench_main},
    {"campaign", "search for faults: many simulated clusters under many faults", campaign_main},
    {"cp", "copy files and folders to nodes", cp_main},
    {"demo", "a cluster of processes on this machine: primitives, failures, healing", demo_main},
    {"doctor", "what this machine lacks, and how to get it", doctor_main},
    {"down", "end a cluster", down_main},
    {"drain", "give nodes no more jobs", drain_main},
    {"exec", "run a command on hosts that have nothing but a remote shell", exec_main},
    {"grow", "hosts for a job that runs", grow_main},
    {"help", "explain a command", help_main},
    {"kill", "end jobs, or send them a signal", kill_main},
    {"login", "use a cluster whose manager is on another machine", login_main},
    {"model", "how long a launch takes on a network that is not here, by formula", model_main},
    {"nodes", "show nodes", nodes_main},
    {"policy", "who starts when: show or change the scheduling policy", policy_main},
    {"ps", "show the jobs that wait and run", ps_main},
    {"reload", "say anew what nodes are like", reload_main},
    {"remove", "take hosts out of a cluster that runs", remove_main},
    {"replay", "run the jobs of a workload file as they arrive", replay_main},
    {"reserve", "keep nodes for some jobs, or for nobody, for a while", reserve_main},
    {"resume", "let suspended jobs go on", resume_main},
    {"run", "run a parallel program and wait for it", run_main},
    {"show", "one job in full", show_main},
    {"sim", "a trace of jobs under scheduling policies, in virtual time", sim_main},
    {"submit", "queue a program or a script", submit_main},
    {"suspend", "stop jobs where they are", suspend_main},
    {"undrain", "give nodes jobs again", undrain_main},
    {"up", "bring a cluster up, on this machine or on hosts", up_main},
    {"version", "show the version", version_main},
    {"wait", "wait until jobs are over", wait_main},
    {"why", "why a job waits", show_main},
    {"work", "run many command lines, wherever there is a processor free", work_main},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct command *command_at(unsigned index) {
    return index < COMMANDS ? &commands[index] : NULL;
}

/* No list has these. On hosts, for ourselves: nobody types it. And Cplant's names, which are also names of this program
 * itself. */
static const struct command unlisted[] = {
    {"berth", "make this machine a node", berth_main},
    {"pingd", "what the nodes do, or a job: as on Cplant", pingd_main},
    {"yod", "run a parallel program: as on Cplant", yod_main},
};

enum { UNLISTED = sizeof unlisted / sizeof *unlisted };

static const struct command *find_unlisted(const char *name) {
    for (unsigned i = 0; i < UNLISTED; i++)
        if (strcmp(unlisted[i].name, name) == 0)
            return &unlisted[i];
    return NULL;
}

const struct command *command_find(const char *name) {
    for (unsigned i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return find_unlisted(name);
}

int command_unknown(const char *typed) {
    const char *names[COMMANDS];
    for (uint32_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = nearest_name(typed, names, COMMANDS);
    if (near != NULL)
        return complain(typed, "there is no such command; did you mean: storm %s?", near);
    return complain(typed, "there is no such command; see: storm help");
}

/* Sockets must not get the numbers of standard streams that somebody has closed. */
static void hold_standard_streams(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            abort();
}

int command_run(int argc, char **argv) {
    hold_standard_streams();
    static char help[] = "help";
    static char version[] = "version";
    static char *nothing[] = {help, NULL};
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const struct command *alias =
        argc > 0 ? find_unlisted(slash != NULL ? slash + 1 : argv[0]) : NULL;
    if (alias != NULL)
        return alias->run(argc, argv);
    if (argc < 2)
        return help_main(1, nothing);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        argv[1] = help;
    if (strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    if (argv[1][0] == '-')
        return complain(argv[1], "options follow a command; see: storm help");
    const struct command *c = command_find(argv[1]);
    return c != NULL ? c->run(argc - 1, argv + 1) : command_unknown(argv[1]);
}
