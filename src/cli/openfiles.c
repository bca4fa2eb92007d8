/* SPDX-License-Identifier: MIT */
/* Files that are open here: see openfiles.h. */
#include "cli/openfiles.h"

#include <inttypes.h>
#include <sys/resource.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "os/child.h"

enum { PIPES_EACH = 3, OTHERS = 48 };

/* Hosts that are certainly reached from here. */
static uint64_t children(const struct hop_config *tree) {
    if (tree->shape == HOP_FLAT)
        return tree->hosts;
    return tree->fanout < tree->hosts ? tree->fanout : tree->hosts;
}

int openfiles_raise(const char *command, const struct hop_config *tree, uint64_t *ret_before) {
    struct rlimit limit;
    uint64_t need = children(tree) * PIPES_EACH + OTHERS;
    *ret_before = child_raise_limits();
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
        return 0;
    complain(command,
             "to reach %" PRIu64 " hosts from here takes %" PRIu64 " open files, and %" PRIu64
             " are allowed; raise that (ulimit -Hn), or take another shape",
             children(tree), need, (uint64_t)limit.rlim_cur);
    return STATUS_STORM;
}
