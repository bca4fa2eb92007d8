/* SPDX-License-Identifier: MIT */
/* What jobs have used and how nodes are, for people and for programs. */
#pragma once

#include "cli/json.h"
#include "cli/table.h"
#include "wire/row.h"

enum { USE_TEXT_MAX = 256 };

/* "2.03 s of processors (2.01 s user, 12 ms system), ..."; names of nodes may be empty. */
void use_text(const struct usage *u, struct bytes peak_where, struct bytes node_where,
              char out[USE_TEXT_MAX]);

/* The object "usage", or null. */
void use_json(struct json *j, const struct job_row *r);

/* Titles of the cells that use_cells adds. */
#define USE_TITLES ">CPU", ">MEM", ">READ", ">WRITTEN"
void use_cells(struct table *t, const struct job_row *r);

/* How old what is known of a running job is: "3.1 s ago"; "" if it is over, or nothing is known. */
struct use_age {
    char text[48];
};
struct use_age use_age(const struct job_row *r);

/* Load and memory of a node. */
#define USE_NODE_TITLES ">LOAD", ">MEM", ">OF"
void use_node_cells(struct table *t, const struct node_row *r);
void use_node_json(struct json *j, const struct node_row *r);
