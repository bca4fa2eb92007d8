/* SPDX-License-Identifier: MIT */
/* Jobs that are over, as the cluster's log has them: storm-mm reads it, whether a cluster runs or not. */
#pragma once

#include "cli/contact.h"

/* Rows of the last `most` jobs (0: all), newest last; what still goes on is asked of the manager if there
 * is one. 0, or the exit status after a complaint. */
int past_fetch(const char *cluster, uint32_t most, struct contact_rows *ret);
