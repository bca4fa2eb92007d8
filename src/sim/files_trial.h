/* SPDX-License-Identifier: MIT */
/* One run of a campaign of files: one seed, movers with their depots, from power-on to the verdict.
 *
 * Rounds: transfers and faults; then no more of either, everything is powered on, and all who receive must
 * have said how it went within a bound; then the transfers are said to be over, and nothing of them may be
 * left. The last round has no faults: in it nothing moves but what is missing. Judged is promise S6: what is there
 * under its name is whole and right; whoever has it not says why, and only for reasons that are
 * its own or the source's. What happens to others costs time, nothing else. */
#pragma once

#include "sim/trial.h"

/* `asked` are bundles at nodes, `done` those that came. `trace`: where to print what happened, or NULL. */
void files_trial_run(uint64_t seed, struct trial_result *ret, FILE *trace);
