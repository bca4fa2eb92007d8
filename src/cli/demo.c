/* SPDX-License-Identifier: MIT */
/* storm demo: what there is, shown and checked; demo_real.c and demo_sim.c tell the stories. */
#include "cli/demo.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"

enum { NODES_MIN = 20, NODES_MAX = 1024 };

static void print_help(const struct option *table) {
    puts(
        "usage: storm demo [OPTIONS]\n"
        "\n"
        "Brings up a cluster of node processes on this machine, uses the three primitives and shows\n"
        "how long they take, kills an inner node and then the manager, and checks that every\n"
        "promise holds. With --sim on 1,024 simulated nodes that run the same code. Exit status: 0\n"
        "if all checks passed, 1 if not.\n");
    options_print(table, stdout);
}

int demo_main(int argc, char **argv) {
    bool sim = false;
    uint64_t nodes = 64;
    const char *links = "tcp";
    const struct option table[] = {
        {"nodes", OPTION_NUMBER, &nodes, "N", "node processes (default 64)"},
        {"links", OPTION_TEXT, &links, "KIND", "tcp (default) or unix"},
        {"sim", OPTION_FLAG, &sim, NULL, "1,024 simulated nodes in place of processes"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("demo", "what is \"%s\" for? leave it out", argv[1]);
    if (nodes < NODES_MIN || nodes > NODES_MAX)
        return complain("demo", "--nodes %" PRIu64 ": give %d to %d", nodes, NODES_MIN, NODES_MAX);
    enum transport transport;
    if (!transport_parse(links, &transport))
        return complain("demo", "there are no links of kind \"%s\"; give tcp or unix", links);
    return sim ? demo_sim() : demo_real((uint32_t)nodes, transport);
}
