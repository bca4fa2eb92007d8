/* SPDX-License-Identifier: MIT */
/* Which faults have hit which nodes in which phase: see coverage.h. */
#include "sim/coverage.h"

#include <inttypes.h>

/* A stride without a common divisor with the number of cells visits them all. */
enum { STRIDE = 55 };
_Static_assert(COVERAGE_CELLS % 2 == 0 && STRIDE % 2 == 1 && COVERAGE_CELLS % 5 != 0 &&
                   COVERAGE_CELLS % 11 != 0,
               "the stride shares no divisor with the number of cells");

struct coverage_cell coverage_cell(uint64_t number) {
    uint32_t at = (uint32_t)(number % COVERAGE_CELLS * STRIDE % COVERAGE_CELLS);
    return (struct coverage_cell){.phase = (enum prim_phase)(at % PHASES),
                                  .role = (enum hit_role)(at / PHASES % HIT_ROLES),
                                  .kind = (enum fault_kind)(at / PHASES / HIT_ROLES)};
}

void coverage_add(struct coverage *c, const struct coverage_cell *cell) {
    c->hits[cell->kind][cell->role][cell->phase]++;
}

void coverage_merge(struct coverage *into, const struct coverage *from) {
    for (uint32_t k = 0; k < FAULT_KINDS; k++)
        for (uint32_t r = 0; r < HIT_ROLES; r++)
            for (uint32_t p = 0; p < PHASES; p++)
                into->hits[k][r][p] += from->hits[k][r][p];
}

uint64_t coverage_total(const struct coverage *c) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < FAULT_KINDS; k++)
        for (uint32_t r = 0; r < HIT_ROLES; r++)
            for (uint32_t p = 0; p < PHASES; p++)
                total += c->hits[k][r][p];
    return total;
}

uint32_t coverage_empty(const struct coverage *c) {
    uint32_t empty = 0;
    for (uint32_t k = 0; k < FAULT_KINDS; k++)
        for (uint32_t r = 0; r < HIT_ROLES; r++)
            for (uint32_t p = 0; p < PHASES; p++)
                empty += c->hits[k][r][p] == 0;
    return empty;
}

const char *fault_name(enum fault_kind kind) {
    static const char *const names[FAULT_KINDS] = {
        [FAULT_CRASH] = "crash",     [FAULT_PAUSE] = "pause",       [FAULT_RESET] = "reset",
        [FAULT_MUTE_IN] = "mute-in", [FAULT_MUTE_OUT] = "mute-out", [FAULT_DUPLICATE] = "duplicate",
        [FAULT_SLOW] = "slow",
    };
    return kind < FAULT_KINDS ? names[kind] : "?";
}

const char *hit_role_name(enum hit_role role) {
    static const char *const names[HIT_ROLES] = {
        [HIT_ROOT] = "root", [HIT_INNER] = "inner", [HIT_LEAF] = "leaf"};
    return role < HIT_ROLES ? names[role] : "?";
}

void coverage_print(const struct coverage *c, FILE *out) {
    fprintf(out, "%-10s %-6s", "fault", "role");
    for (uint32_t p = 0; p < PHASES; p++)
        fprintf(out, " %10s", phase_name((enum prim_phase)p));
    fputc('\n', out);
    for (uint32_t k = 0; k < FAULT_KINDS; k++)
        for (uint32_t r = 0; r < HIT_ROLES; r++) {
            fprintf(out, "%-10s %-6s", fault_name((enum fault_kind)k),
                    hit_role_name((enum hit_role)r));
            for (uint32_t p = 0; p < PHASES; p++)
                fprintf(out, " %10" PRIu32, c->hits[k][r][p]);
            fputc('\n', out);
        }
}
