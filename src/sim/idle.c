/* SPDX-License-Identifier: MIT */
/* A daemon that does nothing: see idle.h. */
#include "sim/idle.h"

static void step(void *self, const struct input *in, struct effects *out) {
    (void)self;
    (void)in;
    (void)out;
}

struct machine idle_machine(void) {
    return (struct machine){.step = step};
}

bool idle_is(const struct machine *m) {
    return m->step == step;
}
