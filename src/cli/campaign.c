/* SPDX-License-Identifier: MIT */
/* storm campaign: many simulated clusters under many faults, each judged by the checker. */
#include "sim/campaign.h"

#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "sched/policies.h"

enum { QUICK_SEEDS = 20, USUAL_SEEDS = 200, PROCESSES_MAX = 64 };

struct settings {
    struct number_range seeds;
    uint64_t seed;
    uint64_t processes;
    bool quick, trace, cover, verbose, jobs, files;
    const char *policy;
    uint64_t slots, quantum_ns;
};

static void print_help(const struct option *table) {
    puts(
        "usage: storm campaign [--jobs|--files] [--seeds N|A..B] [--quick] [--processes N] [--verbose] [--cover]\n"
        "       storm campaign --jobs --policy NAME|any [--mpl N] [--quantum T] ...\n"
        "       storm campaign [--jobs|--files] --seed S [--trace]\n"
        "\n"
        "Each seed is one simulated cluster: its size, tree, network, requests and faults are drawn\n"
        "from it. Nodes crash, pause, slow down; links break, go silent, repeat and garble; the\n"
        "root dies. A checker that knows nothing of the protocol then judges whether the primitives\n"
        "kept their promises. The same seed always gives the same run: a seed that failed can be\n"
        "looked at again, with its whole history. With --jobs, managers, launchers, their\n"
        "processes and customers are simulated as well: jobs are submitted, killed, followed, and\n"
        "an auditor who knows what really became of every process judges. With --files, file movers\n"
        "and their disks: bundles spread to many nodes while movers die, disks fill up and pieces\n"
        "are spoiled; what is there must be whole, and whoever lacks it must have said why.\n"
        "\n"
        "--policy is for --jobs: one of those that storm policy lists, or \"any\", which draws one\n"
        "for each seed and changes it on the way. Where slots take turns, the auditor sees to it\n"
        "that never two of them run on a node at once, and that everybody has turns.\n"
        "\n"
        "Exit status: 0 if all seeds passed, 1 if not.");
    options_print(table, stdout);
}

static int run(const struct settings *s) {
    enum campaign_kind kind = s->jobs    ? CAMPAIGN_JOBS
                              : s->files ? CAMPAIGN_FILES
                                         : CAMPAIGN_PRIMITIVES;
    bool any = s->policy != NULL && strcmp(s->policy, "any") == 0;
    struct campaign_config config = {
        .seed_first = s->seeds.first,
        .seed_count = s->seeds.last - s->seeds.first + 1,
        .processes = (uint32_t)s->processes,
        .kind = kind,
        .terms = {.policy = s->policy == NULL || any ? NULL : policies_find(s->policy),
                  .any = any,
                  .slots = (uint32_t)s->slots,
                  .quantum_ns = s->quantum_ns},
        .verbose = s->verbose,
        .cover = s->cover};
    if (s->seed != UINT64_MAX)
        return campaign_seed(&config, s->seed, s->trace, stdout) == 0 ? STATUS_OK : STATUS_FAILED;
    return campaign_run(&config, stdout) == 0 ? STATUS_OK : STATUS_FAILED;
}

int campaign_main(int argc, char **argv) {
    struct settings s = {.seed = UINT64_MAX};
    const struct option table[] = {
        {"seeds", OPTION_RANGE, &s.seeds, "N|A..B", "which seeds; N is the first N (default 200)"},
        {"quick", OPTION_FLAG, &s.quick, NULL, "only 20 seeds"},
        {"seed", OPTION_NUMBER, &s.seed, "S", "one seed only"},
        {"trace", OPTION_FLAG, &s.trace, NULL, "with --seed: print its whole history"},
        {"processes", OPTION_NUMBER, &s.processes, "N", "at once (default: one a processor)"},
        {"jobs", OPTION_FLAG, &s.jobs, NULL, "whole clusters that run jobs"},
        {"policy", OPTION_TEXT, &s.policy, "NAME", "with --jobs: who starts when (default fcfs)"},
        {"mpl", OPTION_NUMBER, &s.slots, "N", "so many share a processor (default: drawn)"},
        {"quantum", OPTION_DURATION, &s.quantum_ns, "T", "of their turns (default: drawn)"},
        {"files", OPTION_FLAG, &s.files, NULL, "movers of files"},
        {"verbose", OPTION_FLAG, &s.verbose, NULL, "a line for every seed"},
        {"cover", OPTION_FLAG, &s.cover, NULL, "fail if a fault and phase never met"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("campaign", "what is \"%s\" for? see: storm help campaign", argv[1]);
    if (s.trace && s.seed == UINT64_MAX)
        return complain("campaign", "--trace is for one seed; add --seed S");
    if (s.seed != UINT64_MAX && s.seeds.last != 0)
        return complain("campaign", "--seed and --seeds do not go together; leave one out");
    if (s.jobs && s.files)
        return complain("campaign", "--jobs and --files do not go together; leave one out");
    if (!s.jobs && (s.policy != NULL || s.slots != 0 || s.quantum_ns != 0))
        return complain("campaign", "--policy, --mpl and --quantum are for --jobs; add it");
    if (s.policy != NULL && strcmp(s.policy, "any") != 0 && policies_find(s.policy) == NULL)
        return complain("campaign", "there is no policy \"%s\"; storm policy lists them", s.policy);
    if (s.slots > STORM_SLOTS_MAX)
        return complain("campaign", "--mpl: at most %d; give fewer", STORM_SLOTS_MAX);
    if (s.processes > PROCESSES_MAX)
        return complain("campaign", "--processes: at most %d; give fewer", PROCESSES_MAX);
    if (s.seeds.last == 0)
        s.seeds = (struct number_range){.first = 1, .last = s.quick ? QUICK_SEEDS : USUAL_SEEDS};
    return run(&s);
}
