/* SPDX-License-Identifier: MIT */
/* storm version: which release this is, and what it speaks. */
#include <stdbool.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "os/release.h"
#include "wire/header.h"

int version_main(int argc, char **argv) {
    bool json = false;
    const struct option table[] = {{"json", OPTION_FLAG, &json, NULL, "as one JSON object"}, {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm version [--json]\n\nShows the version of storm and of its wire protocol.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("version", "what is \"%s\" for? leave it out", argv[1]);
    if (json)
        printf("{\"version\":\"%s\",\"protocol\":%d,\"planted_bug\":%d}\n", release_version,
               HEADER_VERSION, STORM_PLANTED_BUG);
    else
        printf("storm %s (wire protocol %d)\n", release_version, HEADER_VERSION);
    if (!json && STORM_PLANTED_BUG != 0)
        printf("built with planted bug %d: for testing the tests, and nothing else\n",
               STORM_PLANTED_BUG);
    return STATUS_OK;
}
