/* SPDX-License-Identifier: MIT */
/* Jobs as commands name and show them. */
#pragma once

#include "cli/contact.h"
#include "cli/json.h"
#include "wire/row.h"

/* Numbers that were typed: "7", "7-9"; each once. */
struct joblist {
    uint32_t count, cap;
    uint32_t *at;
};

/* 0, or the exit status after a complaint. */
int joblist_read(struct joblist *l, const char *command, char **argv);
void joblist_fini(struct joblist *l);

/* As the manager wants them; to be freed. */
struct bytes joblist_bytes(const struct joblist *l);

void job_json(struct json *j, const struct job_row *r);

/* "2026-01-02 03:04:05", or "-" */
struct moment {
    char text[32];
};

struct moment moment_of(uint64_t wall_ns);

/* How long it has been running or ran; "" if it has not. */
struct moment job_duration(const struct job_row *r);

/* The row of one job, whose bytes are `rows`; 0, or the exit status after a complaint. */
int job_fetch(struct contact *c, uint32_t job, enum subject subject, struct contact_rows *rows,
              struct job_row *ret);
