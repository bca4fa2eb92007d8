/* SPDX-License-Identifier: MIT */
/* Finds the name that somebody who mistyped probably meant. Capital letters are as good as small ones. */
#pragma once

#include <stdint.h>

/* Letters to insert, remove, change or swap with their neighbour to make one of the other. */
uint32_t nearest_distance(const char *a, const char *b);

/* The nearest of `count` names, the first one if several are; NULL if none is near. */
const char *nearest_name(const char *typed, const char *const *names, uint32_t count);
