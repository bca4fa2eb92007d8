/* SPDX-License-Identifier: MIT */
/* Names of output files: %j is the job, %r the rank, %n the node's name, %% a percent sign. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern_values {
    uint32_t job, rank;
    const char *node;
};

/* Whether the name depends on this letter. */
bool pattern_has(const char *pattern, char letter);

/* NULL, or the place of a percent sign that means nothing. */
const char *pattern_wrong(const char *pattern);

/* -ENAMETOOLONG, or -EINVAL if it is wrong. */
int pattern_expand(const char *pattern, const struct pattern_values *v, char *out, size_t cap);
