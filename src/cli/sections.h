/* SPDX-License-Identifier: MIT */
/* Which programs of a job share nodes: its sections.
 *
 * Programs that say only how many processes they have, and need the same, share nodes with their neighbours; one that says how
 * many nodes it wants has them for itself. If all share, the job has no sections. */
#pragma once

#include "cli/parts.h"
#include "client/cluster.h"
#include "sched/map.h"
#include "sched/size.h"
#include "wire/sections.h"

struct sections {
    uint32_t count; /* 0: all share one size */
    struct section at[MAP_SECTIONS_MAX];
    uint8_t *encoded; /* for SUBMIT */
    size_t len;
    uint8_t *mapped; /* for struct map, as far as it is known */
    size_t mapped_len;
};

/* The size of each part, into `sizes` (if it says only processes: these), of the whole job, and what all need together if
 * there are no sections. 0, or the exit status after a complaint. sections_fini is needed in any case. */
int sections_read(struct sections *s, const struct parts *parts, const struct cluster *c,
                  const char *command, struct size *sizes, struct size *ret_all,
                  const char **ret_need);
void sections_fini(struct sections *s);
