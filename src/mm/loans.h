/* SPDX-License-Identifier: MIT */
/* Processors that are lent, and called back: what loans.c does. Part of mm/inside.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct mm;

/* True if who waits for a loan may go elsewhere now. */
bool loans_settle(struct mm *m);
/* Where nothing that is lent comes may have changed. True if it has. */
bool loans_bar(struct mm *m);
uint64_t loans_due(const struct mm *m); /* STORM_NEVER: not */
