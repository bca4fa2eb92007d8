/* SPDX-License-Identifier: MIT */
/* Whether the state of a cluster can be read: see state.h.
 *
 * A manager that cannot read its state would be started again and again, and the command that brings it up would wait in vain. */
#include "cli/state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/complain.h"
#include "client/cluster.h"
#include "os/errand.h"

int state_check(const char *name, const char *folder, const char *manager_program) {
    char path[CLUSTER_PATH_MAX + 16], words[512];
    const char *argv[] = {manager_program, "--check", folder, NULL};
    struct errand e = {.argv = argv, .output = words, .output_cap = sizeof words};
    snprintf(path, sizeof path, "%s/state.db", folder);
    if (access(path, F_OK) < 0)
        return 0; /* it has no past */
    int r = errand_run(&e);
    if (r == 0 && e.status == 0)
        return 0;
    words[r == 0 ? strcspn(words, "\n") : 0] = '\0';
    complain(name, "%s",
             r < 0 ? strerror(-r)
             : words[0] != '\0'
                 ? words
                 : "its state cannot be read; another cluster can be brought up: --cluster NAME");
    return STATUS_STORM;
}
