/* SPDX-License-Identifier: MIT */
/* Logarithms to base two without floating point: the same on every machine. */
#pragma once

#include <stdint.h>

#define LOG2_ONE ((uint64_t)1 << 32)

/* In units of 1/LOG2_ONE, rounded down; exact for powers of two. The value is not 0. */
uint64_t log2_fixed(uint64_t value);
