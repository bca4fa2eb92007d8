/* SPDX-License-Identifier: MIT */
/* --cores: what crashed processes have left, as it has come here. */
#pragma once

#include <stdint.h>

/* Says which ranks of the job have left a core, and where it is: those in this folder have names core.JOB.RANK.NODE. */
void cores_tell(uint32_t job);
