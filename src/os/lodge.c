/* SPDX-License-Identifier: MIT */
/* The manager's lodge: see lodge.h. */
#include "os/lodge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "wire/message.h"

enum { LETTER_MAX = 512 };

/* A node that is here. */
struct guest {
    uint32_t link; /* 0: it is not */
    struct address at, files;
};

struct lodge {
    struct lodge_config config;
    struct guest guests[];
};

struct lodge *lodge_new(const struct lodge_config *c) {
    struct lodge *l = calloc(1, sizeof *l + (size_t)c->nodes * sizeof *l->guests);
    if (l != NULL)
        l->config = *c;
    return l;
}

void lodge_free(struct lodge *l) {
    free(l);
}

bool lodge_find(const struct lodge *l, uint32_t node, struct address *ret) {
    if (node >= l->config.nodes || l->guests[node].link == 0)
        return false;
    *ret = l->guests[node].at;
    return true;
}

/* ---- letters ---- */

static void send_letter(struct links *links, uint32_t link, const struct message_letter *letter) {
    uint8_t body[LETTER_MAX + 2 * ADDRESS_TEXT_MAX + 64];
    const union message m = {.letter = *letter};
    long len = message_encode(MESSAGE_LETTER, &m, room_of(body, sizeof body));
    const struct effect_send send = {.links = &link,
                                     .link_count = 1,
                                     .type = MESSAGE_LETTER,
                                     .head = bytes_of(body, len > 0 ? (size_t)len : 0)};
    links_send(links, &send);
}

/* Who is at the other end, among those who can be met. NO_NODE: a client, where links are open. A command without a
 * key has come by a Unix socket: it is the cluster's user, and has the key of this machine's client. */
static uint32_t party_of(const struct lodge *l, const struct links *links,
                         const struct input_message *in) {
    const struct identity *id = links_who(links, in->link);
    if (id != NULL && id->kind == IDENTITY_CLIENT)
        return client_party(id->serial);
    return in->peer == NO_NODE && l->config.keys != NULL ? client_party(l->config.near_client)
                                                         : in->peer;
}

/* `wanted` of them, 0 or 1. */
static bool write_keys(const struct lodge *l, uint32_t party, const uint32_t *peer, uint32_t wanted,
                       struct room room, struct message_letter *m) {
    if (l->config.keys == NULL)
        return true;
    long len = keyring_write_letter(l->config.keys, party, l->config.epoch, peer, wanted, room);
    m->letter = bytes_of(room.at, len > 0 ? (size_t)len : 0);
    return len > 0;
}

/* ---- what guests say ---- */

/* An address with that port: what it says, or where it comes from. */
static bool place(const struct message_come *m, const struct address *from, uint16_t port,
                  struct address *ret) {
    char text[INET6_ADDRSTRLEN];
    *ret = *from;
    if (m->host.len >= sizeof text)
        return false;
    memcpy(text, m->host.at, m->host.len);
    text[m->host.len] = '\0';
    if (m->host.len > 0 && inet_pton(AF_INET, text, &ret->in.sin_addr) == 1)
        ret->in.sin_family = AF_INET;
    else if (m->host.len > 0 && inet_pton(AF_INET6, text, &ret->in6.sin6_addr) == 1)
        ret->in6.sin6_family = AF_INET6;
    else if (m->host.len > 0)
        return false;
    ret->len = ret->any.sa_family == AF_INET ? sizeof ret->in : sizeof ret->in6;
    if (ret->any.sa_family == AF_INET)
        ret->in.sin_port = htons(port);
    else if (ret->any.sa_family == AF_INET6)
        ret->in6.sin6_port = htons(port);
    return ret->any.sa_family == AF_INET || ret->any.sa_family == AF_INET6;
}

static void take_in(struct lodge *l, const struct links *links, const struct input_message *in,
                    const struct message_come *m) {
    struct address from;
    struct guest g = {.link = in->link};
    if (m->port == 0 || in->peer >= l->config.nodes ||
        !links_peer_address(links, in->link, &from) || !place(m, &from, m->port, &g.at) ||
        !place(m, &from, m->files_port, &g.files))
        return;
    l->guests[in->peer] = g;
}

static void on_come(struct lodge *l, struct links *links, const struct input_message *in,
                    const struct message_come *come) {
    uint8_t letter[LETTER_MAX];
    struct message_letter m = {.peer = NO_NODE};
    take_in(l, links, in, come);
    m.known = write_keys(l, party_of(l, links, in), NULL, 0, room_of(letter, sizeof letter), &m);
    send_letter(links, in->link, &m);
}

/* Of a client only the key is told: who wants to it has been told where it is. */
static void on_seek(const struct lodge *l, struct links *links, const struct input_message *in,
                    uint32_t peer) {
    uint8_t letter[LETTER_MAX];
    char at[ADDRESS_TEXT_MAX] = "", files[ADDRESS_TEXT_MAX] = "";
    struct message_letter m = {.peer = peer};
    uint32_t party = party_of(l, links, in);
    bool node = peer < l->config.nodes && l->guests[peer].link != 0;
    bool client = is_client_party(peer) && !is_client_party(party);
    if (node) {
        address_format(&l->guests[peer].at, at, sizeof at);
        address_format(&l->guests[peer].files, files, sizeof files);
    }
    if ((node || client) && peer != party)
        m.known = write_keys(l, party, &peer, 1, room_of(letter, sizeof letter), &m);
    m.at = bytes_from_str(at);
    m.files = bytes_from_str(files);
    send_letter(links, in->link, &m);
}

static void on_message(struct lodge *l, struct links *links, const struct input_message *in) {
    union message m;
    if (message_decode(in->type, in->body, NULL, &m) < 0)
        links_close(links, in->link, REFUSAL_BODY);
    else if (in->type == MESSAGE_COME)
        on_come(l, links, in, &m.come);
    else if (in->type == MESSAGE_SEEK)
        on_seek(l, links, in, m.seek.peer);
}

static void on_gone(struct lodge *l, const struct input_link *in) {
    if (in->peer < l->config.nodes && l->guests[in->peer].link == in->link)
        l->guests[in->peer].link = 0;
}

void lodge_heard(struct lodge *l, struct links *links, const struct input *in) {
    if (in->kind == INPUT_MESSAGE)
        on_message(l, links, &in->message);
    else if (in->kind == INPUT_LINK_DOWN)
        on_gone(l, &in->link);
}
