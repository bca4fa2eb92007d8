/* SPDX-License-Identifier: MIT */
/* storm help: what storm is, which commands there are, how each is used. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"

static void print_overview(void) {
    puts(
        "usage: storm COMMAND [OPTIONS]\n"
        "\n"
        "STORM turns a pile of Linux machines into something that feels like one fast workstation.\n"
        "On this machine: storm up --local 4, storm run -n 4 PROGRAM, storm down.\n"
        "\n"
        "commands:");
    const struct command *c;
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++)
        printf("  %-10s %s\n", c->name, c->words);
    puts("\n`storm help COMMAND` or `storm COMMAND --help` explains a command.");
}

int help_main(int argc, char **argv) {
    static char option[] = "--help";
    const struct option none[] = {{0}};
    int count = options_parse(none, argc, argv);
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 1)
        return complain("help", "one command at a time; see: storm help");
    if (count <= 0) {
        print_overview();
        return STATUS_OK;
    }
    const struct command *c = command_find(argv[1]);
    if (c == NULL)
        return command_unknown(argv[1]);
    if (c->run == help_main) {
        print_overview();
        return STATUS_OK;
    }
    char *ask[] = {argv[1], option, NULL};
    return c->run(2, ask);
}
