/* SPDX-License-Identifier: MIT */
/* How daemons say something: over a link of theirs, by mail along the tree, or to all nodes of a set at
 * once by XFER-AND-SIGNAL.
 *
 * A message is encoded into the effects' own store; `tail` is appended as it is, for messages that end
 * in bytes which lie elsewhere already. */
#pragma once

#include "wire/message.h"

void say_link(struct effects *out, uint32_t link, uint16_t type, const union message *m,
              struct bytes tail);

/* Downwards, to whoever of the set can be reached. */
void say_down(struct effects *out, const struct nodeset *set, uint16_t type, const union message *m,
              struct bytes tail);

/* Upwards: to the next daemon on the way, or to the root. */
void say_parent(struct effects *out, uint16_t type, const union message *m);
void say_root(struct effects *out, uint16_t type, const union message *m, struct bytes tail);

/* The body of a transfer is the type of a message, two bytes, and the message. */
enum { SAY_TYPE_BYTES = 2 };

struct say_all {
    const struct nodeset *set;
    uint64_t tag;
    uint64_t timeout_ns;
    uint32_t event;
    bool hint;
    bool ask;
};

/* False if it is larger than a transfer may be; then nothing was said. */
bool say_all(struct effects *out, const struct say_all *how, uint32_t body_bytes, uint16_t type,
             const union message *m, struct bytes tail);

/* A strobe: the newest of a channel wins. Its body is as a transfer's. */
void say_strobe(struct effects *out, const struct nodeset *set, uint32_t channel, uint16_t type,
                const union message *m);

/* What a transfer's body says: 0 and the type, or -EBADMSG. */
int say_heard(struct bytes body, struct nodeset *sets, uint16_t *ret_type, union message *ret);
