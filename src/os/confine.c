/* SPDX-License-Identifier: MIT */
/* What keeps the processes of a run together: see confine.h. */
#include "os/confine.h"

#include <string.h>

static const char *const names[] = {[CONFINE_AUTO] = "auto",
                                    [CONFINE_CGROUP] = "cgroup",
                                    [CONFINE_NAMESPACE] = "namespace",
                                    [CONFINE_NONE] = "none"};

const char *confine_name(enum confine c) {
    return names[c];
}

bool confine_parse(const char *name, enum confine *ret) {
    for (enum confine c = CONFINE_AUTO; c <= CONFINE_NONE; c++)
        if (strcmp(name, names[c]) == 0) {
            *ret = c;
            return true;
        }
    return false;
}

bool confine_met(enum confine c, enum guarantee g) {
    return c == CONFINE_AUTO || strcmp(confine_name(c), guarantee_name(g)) == 0;
}

const char *guarantee_name(enum guarantee g) {
    return names[g == GUARANTEE_CGROUP      ? CONFINE_CGROUP
                 : g == GUARANTEE_NAMESPACE ? CONFINE_NAMESPACE
                                            : CONFINE_NONE];
}

const char *guarantee_text(enum guarantee g) {
    switch (g) {
    case GUARANTEE_CGROUP:
        return "every run in a cgroup of its own: nothing it starts can outlive it";
    case GUARANTEE_NAMESPACE:
        return "every run in a pid namespace of its own: nothing it starts can outlive it";
    case GUARANTEE_SUBREAPER:
        break;
    }
    return "neither cgroups nor pid namespaces: what a run starts is found by descent, so a program "
           "that hides from that may outlive it";
}
