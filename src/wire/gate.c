/* SPDX-License-Identifier: MIT */
/* The gate's checks, cheapest and most telling first: see gate.h. */
#include "wire/gate.h"

#include <stddef.h>

#include "wire/message.h"

void gate_init(struct gate *g, uint32_t node, uint32_t life, enum role role) {
    *g = (struct gate){.node = node, .life = life, .role = role, .next = {1, 1}};
}

static enum refusal check_form(const struct header *h) {
    if (h->magic != HEADER_MAGIC)
        return REFUSAL_MAGIC;
    if (h->version != HEADER_VERSION)
        return REFUSAL_VERSION;
    if (h->zero16 != 0 || h->zero32 != 0)
        return REFUSAL_MAGIC;
    if (message_rule(h->type) == NULL)
        return REFUSAL_TYPE;
    return REFUSAL_NONE;
}

enum refusal gate_check(struct gate *g, const struct header *h, uint32_t max_bytes) {
    enum refusal form = check_form(h);
    if (form != REFUSAL_NONE)
        return form;
    const struct message_rule *rule = message_rule(h->type);
    if (!(rule->from & 1U << g->role))
        return REFUSAL_ROLE;
    if (h->lane != rule->lane)
        return REFUSAL_LANE;
    if (h->length > rule->max_bytes || h->length > max_bytes)
        return REFUSAL_SIZE;
    if (h->node != g->node || h->life != g->life)
        return REFUSAL_SENDER;
    uint32_t *next = &g->next[h->lane];
    if (h->sequence != *next)
        return h->sequence - *next < UINT32_MAX / 2 ? REFUSAL_GAP : REFUSAL_DUPLICATE;
    *next += 1;
    return REFUSAL_NONE;
}

const char *refusal_name(enum refusal r) {
    static const char *const names[REFUSALS] = {
        [REFUSAL_NONE] = "none",           [REFUSAL_TRUNCATED] = "truncated",
        [REFUSAL_MAGIC] = "magic",         [REFUSAL_VERSION] = "version",
        [REFUSAL_TYPE] = "type",           [REFUSAL_ROLE] = "role",
        [REFUSAL_LANE] = "lane",           [REFUSAL_SIZE] = "size",
        [REFUSAL_SENDER] = "sender",       [REFUSAL_GAP] = "gap",
        [REFUSAL_DUPLICATE] = "duplicate", [REFUSAL_BODY] = "body",
        [REFUSAL_EPOCH] = "epoch",         [REFUSAL_LIFE] = "life",
        [REFUSAL_SEAL] = "seal",
    };
    return r < REFUSALS ? names[r] : "?";
}
