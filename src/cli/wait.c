/* SPDX-License-Identifier: MIT */
/* storm wait: until jobs are over; with their status. */
#include <stdio.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "cli/waiter.h"

int wait_main(int argc, char **argv) {
    const char *cluster = NULL;
    struct waiter w = {0};
    struct joblist jobs;
    const struct option table[] = {
        {"verbose,v", OPTION_FLAG, &w.verbose, NULL, "say what each has used"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm wait JOB...\n\n"
            "Waits until all these jobs are over. The exit status is the highest of theirs, as that of\n"
            "storm run would have been.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    int r = joblist_read(&jobs, "wait", argv + 1);
    if (r == 0)
        r = contact_find(&w.contact.cluster, cluster);
    if (r == 0)
        r = waiter_begin(&w);
    if (r == 0)
        r = waiter_follow(&w, &jobs, false);
    if (r == 0)
        r = waiter_until_over(&w);
    cluster_free(&w.contact.cluster);
    return r;
}
