/* SPDX-License-Identifier: MIT */
/* What nodes are like, as the manager tells it: words NAME=VALUE (traits_format), and which of them tell nodes apart. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "sched/traits.h"

struct feature {
    struct bytes name, value; /* without quotes */
    struct bytes word;        /* as it was told */
};

/* The word at *at, which moves on; false behind the last. */
bool feature_next(struct bytes told, size_t *at, struct feature *ret);

/* Attributes by which some nodes differ, without those that any two machines differ in or that have columns of their own. */
struct features {
    uint32_t count;
    uint32_t nodes; /* that are up */
    struct {
        struct bytes name, value; /* of the first that has it */
        uint32_t have;            /* of those that are up */
        bool differs;
    } at[TRAITS_MAX];
};

/* One more node; what was told is borrowed. One that is down may not have told all yet: that does not count. */
void features_add(struct features *f, struct bytes told, bool up);
/* All were added. */
void features_settle(struct features *f);
/* Some nodes are told apart. */
bool features_any(const struct features *f);
/* The words of these attributes, with blanks between them; `out` has room for all that was told. The length. */
size_t features_write(const struct features *f, struct bytes told, char *out);
