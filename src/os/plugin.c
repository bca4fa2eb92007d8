/* SPDX-License-Identifier: MIT */
/* Policies from shared objects; see plugin.h. */
#include "os/plugin.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "sched/court.h"
#include "sched/policies.h"

enum { NAME_MAX_LEN = 40 };

/* It is written to terminals, to the log, and typed. */
static bool name_fits(const char *name) {
    size_t len = strnlen(name, NAME_MAX_LEN + 1);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL)
            return false;
    return len > 0 && len <= NAME_MAX_LEN;
}

static int judge(const struct storm_policy *p, const char *path, char *why) {
    if (p->version != STORM_POLICY_VERSION) {
        snprintf(why, PLUGIN_WHY_MAX,
                 "%s: is of version %u of the interface, this storm has %d; build it anew", path,
                 p->version, STORM_POLICY_VERSION);
        return -EPROTO;
    }
    const char *lacks = p->name == NULL || !name_fits(p->name)
                            ? "has no name of letters, digits and - _ ."
                        : p->words == NULL               ? "does not say what it does: `words`"
                        : policies_find(p->name) != NULL ? "has the name of one that is built in"
                        : p->decide == NULL              ? "has no function `decide`"
                        : p->own > COURT_OWN_MAX ? "wants too many bytes of its own for each job"
                                                 : NULL;
    if (lacks == NULL)
        return 0;
    snprintf(why, PLUGIN_WHY_MAX, "%s: its policy %s; see docs/policies.md", path, lacks);
    return -EINVAL;
}

int plugin_load(const char *path, const struct storm_policy **ret, char why[PLUGIN_WHY_MAX]) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        snprintf(why, PLUGIN_WHY_MAX, "%s", dlerror());
        return -ENOENT;
    }
    const struct storm_policy *p = dlsym(object, STORM_POLICY_SYMBOL);
    int r = -EINVAL;
    if (p == NULL)
        snprintf(why, PLUGIN_WHY_MAX, "%s: has no symbol %s; see docs/policies.md", path,
                 STORM_POLICY_SYMBOL);
    else
        r = judge(p, path, why);
    if (r < 0)
        dlclose(object);
    else
        *ret = p;
    return r;
}
