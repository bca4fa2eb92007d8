/* SPDX-License-Identifier: MIT */
/* What a process of a job finds around it as if the submitter had started it: environment, limits, mask. */
#pragma once

#include "base/bytes.h"
#include "cli/options.h"
#include "wire/spec.h"

/* Strings NAME=VALUE, each name once. */
struct surroundings {
    const char **at;
    uint32_t count, cap;
    char *bytes; /* as a spec has them */
};

/* `exported`: "all", "none", or a list of names; NULL is all. 0 or -errno. */
int surroundings_make(struct surroundings *s, const char *exported, const struct text_list *more);
int surroundings_set(struct surroundings *s, const char *setting);
void surroundings_unset(struct surroundings *s, const char *name);
const char *surroundings_get(const struct surroundings *s, const char *name);
int surroundings_strings(struct surroundings *s, struct bytes *ret);
void surroundings_fini(struct surroundings *s);

enum { LIMITS_MAX = 16 };

/* This process's resource limits, as a spec has them. */
struct bytes surroundings_limits(uint8_t out[LIMITS_MAX * SPEC_LIMIT_BYTES]);

uint32_t surroundings_umask(void);
