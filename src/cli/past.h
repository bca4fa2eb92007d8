/* SPDX-License-Identifier: MIT */
/* Jobs that are over, as the cluster's log has them: storm-mm reads it, whether a cluster runs or not. */
#pragma once

#include "cli/contact.h"
#include "wire/row.h"

/* Rows of the last `most` jobs (0: all), newest last; what still goes on is asked of the manager if there
 * is one. 0, or the exit status after a complaint. */
int past_fetch(const char *cluster, uint32_t most, struct contact_rows *ret);

/* One of them; its bytes are those of `ret`. False if there never was such a job. */
bool past_job(const char *cluster, uint32_t job, struct contact_rows *ret, struct job_row *row);
