/* SPDX-License-Identifier: MIT */
/* Stand-in for the journal: a log in memory that survives nothing. To be replaced by os/journal. */
#pragma once

#include "os/life.h"

const struct life_log *standin_log(void);
