/* SPDX-License-Identifier: MIT */
/* For tests of sealed connections: one who has the key of all pairs of an imaginary cluster, and is any of its nodes. */
#pragma once

#include <errno.h>
#include <string.h>

#include "os/seal.h"

static inline int sealed_key(void *context, const struct identity *id, uint8_t ret[KEY_BYTES]) {
    (void)context;
    memset(ret, (int)(id->to + 1), KEY_BYTES);
    return id->serial == 1 ? 0 : -ENOKEY;
}

static inline int sealed_offer(void *context, uint32_t to, struct identity *ret_id,
                               uint8_t ret[KEY_BYTES]) {
    *ret_id = (struct identity){.kind = IDENTITY_EDGE, .serial = 1, .from = to + 1, .to = to};
    return sealed_key(context, ret_id, ret);
}

static inline struct seals *sealed_party(void) {
    struct seal_keys keys = {.offer = sealed_offer, .answer = sealed_key};
    return seals_new(&keys);
}
