/* SPDX-License-Identifier: MIT */
/* Forecasts for real processes: see forecast.h. */
#include "cli/forecast.h"

#include <stdlib.h>

struct forecast *forecast_new(enum crew_links links) {
    (void)links;
    return NULL;
}

void forecast_free(struct forecast *f) {
    free(f);
}

uint64_t forecast_latency(const struct forecast *f, const struct tree *tree,
                          const struct driver_task *task) {
    (void)f;
    (void)tree;
    (void)task;
    return 0;
}
