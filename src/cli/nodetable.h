/* SPDX-License-Identifier: MIT */
/* Nodes as people see them: in a table with a row for those that are alike, or for each; or as JSON. */
#pragma once

#include <stdio.h>

#include "base/nodeset.h"
#include "client/nodespec.h"
#include "wire/row.h"

struct nodetable {
    const struct nodespec *spec;
    uint32_t count;
    struct nodeline *lines;
    char *names;   /* of lines */
    bool featured; /* attributes were told of some */
};

/* Those of the rows that are in `only`, all if that is empty; rows and specification are borrowed. -ENOMEM, -EBADMSG;
 * nodetable_fini is needed in any case. */
int nodetable_init(struct nodetable *t, const struct nodespec *spec, struct bytes rows,
                   const struct nodeset *only);
void nodetable_fini(struct nodetable *t);

/* Nodes that do the same and are told apart by no attribute are in one row. -ENOMEM; -EINVAL: a name
 * that is none. */
int nodetable_print_folded(const struct nodetable *t, FILE *to);
/* A row for each, then their attributes; those with the same on one line. As that. */
int nodetable_print_long(const struct nodetable *t, FILE *to);
/* An object for each. */
void nodetable_print_json(const struct nodetable *t, FILE *to);
