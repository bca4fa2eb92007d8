/* SPDX-License-Identifier: MIT */
/* What the files of the auditor share. */
#pragma once

#include "sim/audit.h"

/* The manager, if it is there and knows what it will know. */
const struct mm *audit_manager(const struct audit *a);

/* ---- audit.c: the living ---- */

/* S1, S2, S4 of everybody who lives. */
void audit_living(struct audit *a);
/* S9: the manager holds for them where they are. */
void audit_held(struct audit *a);
/* This job is over, for ever, in this way. `who` says so. */
void audit_over(struct audit *a, uint32_t job, enum job_state state, uint32_t status,
                const char *who);

/* ---- audit_gang.c: who runs at once ---- */

/* In which slot the job is, as the manager has it; that of its allocation for a step. */
uint32_t audit_row(const struct mm *m, uint32_t job);
/* After a step of the manager: which policy there is. */
void audit_policy(struct audit *a);
/* After a step of a launcher. */
void audit_still(struct audit *a, uint32_t node);

/* ---- audit_books.c: those who keep books: S8, S9, S10 ---- */

void audit_root(struct audit *a, bool all);
void audit_node(struct audit *a, uint32_t node);
void audit_launcher(struct audit *a, uint32_t node);

/* ---- audit_log.c: what is durable: S3, S11 ---- */

void shadow_init(struct audit *a);
void shadow_fini(struct audit *a);
/* What the manager knows and what its log says. */
void audit_jobs(struct audit *a);
/* What customers were told since. */
void audit_told(struct audit *a);
