/* SPDX-License-Identifier: MIT */
/* Places in buffers whose bytes are not there, but in a file that is sent from where it lies. */
#pragma once

#include "os/survey.h"

struct place_loan {
    uint32_t buffer;
    uint64_t offset;
    uint32_t bundle;
    uint32_t piece;        /* of what lies in the depot: */
    struct survey *survey; /* NULL, and no `loan` */
    struct survey_loan loan;
};

struct loans {
    struct place_loan *list;
    uint32_t count, cap;
};

void loans_fini(struct loans *l);
/* The file is the table's from now on. */
void loans_add(struct loans *l, const struct place_loan *p);
/* NULL: what is sent from there is there. */
const struct place_loan *loans_find(const struct loans *l, uint32_t buffer, uint64_t offset);
/* Other bytes come to that place. */
void loans_drop(struct loans *l, uint32_t buffer, uint64_t offset);
/* Nothing of that bundle is sent any more. */
void loans_drop_bundle(struct loans *l, uint32_t bundle);
