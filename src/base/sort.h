/* SPDX-License-Identifier: MIT */
/*
 * Sorting of plain numbers, for medians.
 *
 * Equal numbers cannot be told apart, so the result is the same with any C library.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Ascending, in place. */
void sort_u64(uint64_t *at, size_t count);
