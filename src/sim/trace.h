/* SPDX-License-Identifier: MIT */
/* What a trace hash is made of: every step's input and every effect, as numbers and bytes.
 *
 * Pointers and padding never enter, so two runs of the same steps hash alike on any machine. */
#pragma once

#include "base/hash.h"
#include "machine/stack.h"

void trace_input(struct hash *h, uint32_t node, enum layer layer, const struct input *in);
void trace_effects(struct hash *h, const struct effects *e);
