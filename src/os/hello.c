/* SPDX-License-Identifier: MIT */
/* Who may say HELLO, and as whom: see hello.h. */
#include "os/hello.h"

bool hello_fits(const struct links_config *c, const struct message_hello *m) {
    uint64_t wrong = (m->key[0] ^ c->key[0]) | (m->key[1] ^ c->key[1]);
    return wrong == 0 && m->to == c->self &&
           message_lane_used((enum purpose)m->purpose, (enum lane)m->lane);
}

/* What a party calls itself: clients have no number among nodes. */
static uint32_t called(uint32_t party) {
    return is_client_party(party) ? NO_NODE : party;
}

/* What who has this key may come for. To the manager as itself, to others by what the manager has given out for that. */
static bool purpose_fits(const struct identity *id, enum purpose purpose) {
    if (id->kind == IDENTITY_CLIENT)
        return purpose == PURPOSE_CLIENT || purpose == PURPOSE_LODGE;
    if (is_client_party(id->from) || is_client_party(id->to))
        return purpose == PURPOSE_FILES;
    return purpose != PURPOSE_CLIENT;
}

bool hello_named(const struct conn *c, const struct message_hello *m, const struct header *h) {
    if (c->seal == NULL)
        return true;
    const struct identity *id = c->sealer->who(c->seal);
    if (c->ours)
        return h->node == called(id->to);
    return purpose_fits(id, (enum purpose)m->purpose) && h->node == called(id->from);
}

bool links_in_book(const struct links_config *l, uint32_t node) {
    return node >= l->first && node - l->first < l->nodes;
}

/* Where links are sealed, who has no key is a process of this machine: one of this node, or a command. */
static bool is_our_own(const struct links_config *l, const struct conn *c,
                       const struct message_hello *m, const struct header *h) {
    bool part = m->purpose == PURPOSE_LAUNCHER || m->purpose == PURPOSE_MOVER;
    return c->seal != NULL || l->sealer == NULL || h->node == (part ? l->self : NO_NODE);
}

bool hello_welcome(const struct links_config *l, const struct conn *c,
                   const struct message_hello *m, const struct header *h) {
    if (!(l->accepts & 1U << m->purpose) || !is_our_own(l, c, m, h))
        return false;
    switch ((enum purpose)m->purpose) {
    case PURPOSE_TREE:
    case PURPOSE_SLOT:
        return links_in_book(l, h->node) && h->node != l->self;
    case PURPOSE_LAUNCHER:
        return h->node == l->self;
    case PURPOSE_CLIENT:
        return h->node == NO_NODE && address_peer_is_trusted(c->source.fd);
    case PURPOSE_MOVER:
        return h->node == l->self;
    case PURPOSE_FILES:
    case PURPOSE_LODGE:
        return h->node == NO_NODE ? address_peer_is_trusted(c->source.fd)
                                  : links_in_book(l, h->node);
    case PURPOSES:
        break;
    }
    return false;
}
