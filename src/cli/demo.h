/* SPDX-License-Identifier: MIT */
/* What `storm demo` shows. Both return an exit status. */
#pragma once

#include <stdint.h>

#include "os/crew.h"

int demo_real(uint32_t nodes, enum transport links);
int demo_sim(void);
