/* SPDX-License-Identifier: MIT */
/* Steps of a compiled need: shared by reading (need_read.c) and running it (need.c). */
#pragma once

#include "sched/need.h"

/* Below NEED_TERMS_MAX: a term. */
enum need_step { NEED_AND = NEED_TERMS_MAX, NEED_OR, NEED_NOT };
