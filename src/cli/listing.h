/* SPDX-License-Identifier: MIT */
/* A list that is shown as a table or as one JSON array. */
#pragma once

#include "cli/json.h"
#include "cli/table.h"

struct listing {
    bool as_json;
    struct json json;
    struct table table;
};

void listing_begin(struct listing *l, const char *const *titles, bool as_json);

/* Prints it; `none` in place of a table that has no rows, unless that is NULL. */
void listing_end(struct listing *l, const char *none);
