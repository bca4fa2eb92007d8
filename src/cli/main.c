/* SPDX-License-Identifier: MIT */
/* The storm command: one binary, a subcommand a task. */
#include "cli/command.h"

int main(int argc, char **argv) {
    return command_run(argc, argv);
}
