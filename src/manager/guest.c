/* SPDX-License-Identifier: MIT */
/* The policy that the manager begins with: see guest.h. */
#include "manager/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "os/plugin.h"
#include "sched/policies.h"

/* How often it was begun with a guest in a row, each time soon after the last: a letter each. */
static const char trials[] = "guest-trials";

enum { SOON_S = 60, TRIALS_MAX = 3 };

/* One more; true if there were too many. */
static bool tried_too_often(void) {
    struct stat st;
    bool soon = stat(trials, &st) == 0 && time(NULL) - st.st_mtime < SOON_S;
    if (soon && st.st_size >= TRIALS_MAX)
        return true;
    int fd = open(trials, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (soon ? 0 : O_TRUNC), 0600);
    if (fd < 0)
        return false;
    ssize_t wrote = write(fd, "+", 1); /* not on a full disk: then it is tried on */
    close(fd);
    (void)wrote;
    return false;
}

void guest_left(void) {
    unlink(trials);
}

static const struct storm_policy *load(const char *path, const struct storm_policy **ret_guest,
                                       char why[GUEST_WHY_MAX]) {
    char trouble[PLUGIN_WHY_MAX];
    if (tried_too_often())
        snprintf(why, GUEST_WHY_MAX,
                 "the manager has died %d times soon after it was begun with the policy of %.200s; "
                 "going on under fcfs",
                 TRIALS_MAX, path);
    else if (plugin_load(path, ret_guest, trouble) < 0)
        snprintf(why, GUEST_WHY_MAX, "%s; going on under fcfs", trouble);
    else
        return *ret_guest;
    return &policy_fcfs;
}

const struct storm_policy *guest_policy(const char *name, const struct storm_policy **ret_guest,
                                        char why[GUEST_WHY_MAX]) {
    *ret_guest = NULL;
    *why = '\0';
    if (*name == '\0')
        return &policy_fcfs;
    if (*name == '/')
        return load(name, ret_guest, why);
    const struct storm_policy *p = policies_find(name);
    if (p == NULL)
        snprintf(why, GUEST_WHY_MAX, "there is no policy \"%.60s\"; going on under fcfs", name);
    return p == NULL ? &policy_fcfs : p;
}

int guest_try(const char *path) {
    const struct storm_policy *p;
    char why[PLUGIN_WHY_MAX];
    if (plugin_load(path, &p, why) == 0)
        return 0;
    fprintf(stderr, "storm: policy: %s\n", why);
    return 1;
}
