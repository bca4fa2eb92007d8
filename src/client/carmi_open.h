/* SPDX-License-Identifier: MIT */
/* CARMI for a process that asks for hosts on behalf of its program. */
#pragma once

#include <stdbool.h>

#include "storm/carmi.h"

/* As carmi_init. One that is not reached sends no messages to other processes and receives none: its number is its program's. */
int carmi_open(struct carmi **ret, bool reached);
