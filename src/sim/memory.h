/* SPDX-License-Identifier: MIT */
/* Global memory of very many nodes: variables, events and the symmetric heap.
 *
 * Variables and events are plain arrays. The heap is kept in pages that nodes share as long as they
 * hold the same: a transfer to all nodes writes each page once, whatever their number, so a cluster
 * of a hundred thousand nodes can receive a large file. A page that nobody has written does not
 * exist and reads as zeros. */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"
#include "machine/limits.h"
#include "machine/primitive.h"

struct memory;

/* NULL if there is no room. */
struct memory *memory_new(const struct limits *limits);
void memory_free(struct memory *m);

struct globals memory_globals(const struct memory *m, uint32_t node);
uint64_t *memory_variables(struct memory *m, uint32_t node);
uint64_t *memory_events(struct memory *m, uint32_t node);

/* Everything of the node becomes zero: a new life. */
void memory_clear(struct memory *m, uint32_t node);

/* Stores the same bytes into the heaps of all nodes of the set. */
void memory_write(struct memory *m, const struct nodeset *set, uint32_t offset, struct bytes from);
void memory_read(const struct memory *m, uint32_t node, uint32_t offset, struct room to);

/* How many pages there are. */
uint64_t memory_pages(const struct memory *m);
