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

/* The least and the most of some nodes. */
struct use_span {
    uint64_t least, most;
};

/* Load and memory of nodes; of those that have not told yet nothing is known. */
struct use_nodes {
    uint32_t told;
    struct use_span load_x100, used, memory;
};

void use_nodes_add(struct use_nodes *u, const struct node_row *r);

/* Titles of the cells that use_nodes_cells adds: "0.10-0.42", "1.2-3.4 GiB", "24 GiB". */
#define USE_NODE_TITLES ">LOAD", ">MEM", ">OF"
void use_nodes_cells(struct table *t, const struct use_nodes *u);
void use_node_json(struct json *j, const struct node_row *r);
