/* SPDX-License-Identifier: MIT */
/* Inputs as bytes: the log that replays a machine exactly.
 *
 * A record is a length, the layer the input was fed to, its kind, its time and its fields, so
 * records can follow each other in a log. The world logs what it feeds to a stack (boot, messages,
 * links, timers, durable, puts); the inputs that stay inside a stack follow from those, but can be
 * encoded as well. Decoding is total: see wire/codec.h. Decoded views borrow from the bytes. */
#pragma once

#include "base/nodeset.h"
#include "machine/stack.h"

/* Where the node set of a decoded input lives. */
struct record_scratch {
    struct nodeset set;
};

/* `storage` holds nodeset_bytes(universe), aligned to 8. */
void record_scratch_init(struct record_scratch *s, uint32_t universe, void *storage);

/* Length written, or -ENOBUFS. */
long record_encode(struct room out, enum layer layer, const struct input *in);

/* 0, or -EBADMSG. `ret_used` is the length of the record, which may be followed by others. */
int record_decode(struct bytes in, struct record_scratch *scratch, enum layer *ret_layer,
                  struct input *ret, size_t *ret_used);
