/* SPDX-License-Identifier: MIT */
/* Policies that do what none may, each in its own way (WRONG); for tests of what becomes of them. */
#include <stdlib.h>

#include "storm/policy.h"

enum { BUSY = 1, DOWN, TWICE, CRASH, MUTE };

/* On the first node, whoever is there. */
static void on_first(struct storm_host *h, const struct storm_job *j) {
    uint32_t node = 0;
    storm_start_on(h, j, 0, &node, 1);
}

static void decide(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *j = storm_queued(h, NULL);
    if (j == NULL)
        return;
    if (WRONG == CRASH)
        abort();
    on_first(h, j); /* BUSY: its second job; DOWN: that node is not to be used */
    if (WRONG == TWICE)
        on_first(h, j);
}

const struct storm_policy storm_policy = {
    .version = STORM_POLICY_VERSION,
    .name = "wrong",
    .words = WRONG == MUTE ? NULL : "breaks the rules",
    .decide = decide,
};
