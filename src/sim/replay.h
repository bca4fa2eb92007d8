/* SPDX-License-Identifier: MIT */
/* What a variable can have been on a node at a given place in the order.
 *
 * A variable that only ordered operations write has, in each life, a sequence of values; a value
 * may have been current after order k if its write can come no later than k and the next write can
 * come after k. A counter, which its node stores into at any time, may have been anything it was
 * seen to be in a window of steps. Questions are of the form: is there such a value for which the
 * relation is (or is not) true? */
#pragma once

#include "sim/evidence.h"

struct replay_question {
    uint32_t life;
    uint32_t variable;
    uint64_t order; /* after this one and before the next */
    uint64_t from_step, to_step;
    enum relation relation;
    uint64_t value;
    bool want;
};

/* Can the relation be as wanted? */
bool replay_can(const struct evidence *e, const struct replay_question *q);
