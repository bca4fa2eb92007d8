/* SPDX-License-Identifier: MIT */
/* Which faults have hit which nodes in which phase.
 *
 * A campaign that never crashed an inner node while a new root gathered survivors has not tested
 * it, however many seeds it ran. So every hit is counted by (fault, role, phase), and an empty
 * field of the table fails the campaign. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "prim/prim.h"

enum fault_kind {
    FAULT_CRASH,
    FAULT_PAUSE,
    FAULT_RESET,
    FAULT_MUTE_IN, /* one direction of a link loses everything */
    FAULT_MUTE_OUT,
    FAULT_DUPLICATE,
    FAULT_SLOW,
    FAULT_KINDS
};

enum hit_role { HIT_ROOT, HIT_INNER, HIT_LEAF, HIT_ROLES };

struct coverage_cell {
    enum fault_kind kind;
    enum hit_role role;
    enum prim_phase phase;
};

struct coverage {
    uint32_t hits[FAULT_KINDS][HIT_ROLES][PHASES];
};

enum { COVERAGE_CELLS = FAULT_KINDS * HIT_ROLES * PHASES };

/* The cells in a fixed rotation: any few that follow each other differ in all three. */
struct coverage_cell coverage_cell(uint64_t number);

void coverage_add(struct coverage *c, const struct coverage_cell *cell);
void coverage_merge(struct coverage *into, const struct coverage *from);
uint32_t coverage_empty(const struct coverage *c);
uint64_t coverage_total(const struct coverage *c);
void coverage_print(const struct coverage *c, FILE *out);

const char *fault_name(enum fault_kind kind);
const char *hit_role_name(enum hit_role role);
