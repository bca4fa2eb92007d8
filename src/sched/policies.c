/* SPDX-License-Identifier: MIT */
/* The policies that are built in; see policies.h. */
#include "sched/policies.h"

#include <string.h>

static const struct storm_policy *const all[] = {
    &policy_fcfs, &policy_easy,          &policy_easy_sjbf, &policy_conservative,
    &policy_gang, &policy_gang_backfill, &policy_local,
};

const struct storm_policy *policies_at(uint32_t index) {
    return index < sizeof all / sizeof all[0] ? all[index] : NULL;
}

const struct storm_policy *policies_find(const char *name) {
    const struct storm_policy *p;
    for (uint32_t i = 0; (p = policies_at(i)) != NULL; i++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}
