/* SPDX-License-Identifier: MIT */
/* How a process finds its way: see guide.h. */
#include "os/guide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "os/keyring.h"
#include "os/seal.h"
#include "wire/message.h"

#define PAUSE_MIN_NS (20 * NS_PER_MS)
#define PAUSE_MAX_NS (1 * NS_PER_S)

enum { SOUGHT_MAX = 1024, LODGE_COOKIE = 1 };

struct guide {
    struct guide_config config;
    struct loop *loop;
    struct keyring *keys;
    uint64_t client;
    struct seals *seals;
    struct sealer sealer;
    struct links *links;
    uint32_t link; /* to the lodge, 0: none */
    bool opening;
    uint64_t come_at; /* to be tried again; 0: not waiting for that */
    uint64_t pause;
    struct address *known; /* by node; length 0: not known */
    uint32_t sought[SOUGHT_MAX];
    uint32_t sought_count;
};

/* ---- keys ---- */

static int take_key(struct guide *g, const struct keyfile *key) {
    const struct keyring_config config = {
        .file = key, .self = g->config.self, .seat_first = g->config.nodes, .seats = 1};
    int r = keyring_new(&config, &g->keys);
    if (r < 0)
        return r;
    g->client = key->kind == KEY_CLIENT ? key->number : 0;
    g->seals = keyring_seals(g->keys);
    if (g->seals == NULL)
        return -ENOMEM;
    g->sealer = seals_sealer(g->seals);
    return 0;
}

/* ---- the lodge ---- */

static void say(struct guide *g, uint16_t type, const union message *m) {
    uint8_t body[128];
    long len = message_encode(type, m, room_of(body, sizeof body));
    const struct effect_send send = {
        .links = &g->link, .link_count = 1, .type = type, .head = bytes_of(body, (size_t)len)};
    links_send(g->links, &send);
}

static void ask(struct guide *g, uint32_t peer) {
    const union message m = {.seek = {.peer = peer}};
    say(g, MESSAGE_SEEK, &m);
}

static void dial(struct guide *g) {
    const struct effect_open open = {
        .node = g->config.nodes, .purpose = PURPOSE_LODGE, .cookie = LODGE_COOKIE};
    g->come_at = 0;
    g->opening = true;
    links_open(g->links, &open);
}

static void forget_all(struct guide *g) {
    memset(g->known, 0, (size_t)g->config.nodes * sizeof *g->known);
}

/* The first that is said; what was sought meanwhile comes behind it. */
static void on_up(struct guide *g, uint32_t link) {
    const struct guide_config *c = &g->config;
    const union message m = {
        .come = {.port = c->port, .files_port = c->files_port, .host = bytes_from_str(c->host)}};
    g->link = link;
    g->opening = false;
    g->pause = 0;
    say(g, MESSAGE_COME, &m);
    for (uint32_t i = 0; i < g->sought_count; i++)
        ask(g, g->sought[i]);
}

/* Who waits for an answer is told that there is none: he will try again, or elsewhere. */
static void on_down(struct guide *g) {
    g->link = 0;
    g->opening = false;
    g->pause = g->pause == 0 ? PAUSE_MIN_NS : g->pause * 2;
    if (g->pause > PAUSE_MAX_NS)
        g->pause = PAUSE_MAX_NS;
    g->come_at = g->loop->now + g->pause;
    while (g->sought_count > 0)
        links_know(g->links, g->sought[--g->sought_count], NULL);
}

static bool parse(struct bytes text, struct address *ret) {
    char copy[ADDRESS_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return address_parse(ret, copy) == 0;
}

static bool was_sought(struct guide *g, uint32_t peer) {
    for (uint32_t i = 0; i < g->sought_count; i++) {
        if (g->sought[i] != peer)
            continue;
        g->sought[i] = g->sought[--g->sought_count];
        return true;
    }
    return false;
}

static void on_letter(struct guide *g, const struct message_letter *m) {
    struct address at = {0};
    uint32_t before = g->keys == NULL ? 0 : keyring_epoch(g->keys);
    bool good = m->known && (g->keys == NULL || keyring_read_letter(g->keys, m->letter) == 0);
    if (g->keys != NULL && keyring_epoch(g->keys) != before)
        forget_all(g);
    if (m->peer == NO_NODE) {
        if (good)
            links_listen(g->links);
        return;
    }
    if (!was_sought(g, m->peer))
        return;
    bool client = is_client_party(m->peer);
    good = good && (client || parse(g->config.files ? m->files : m->at, &at));
    if (good && m->peer < g->config.nodes)
        g->known[m->peer] = at;
    links_know(g->links, m->peer, good ? &at : NULL);
}

void guide_heard(struct guide *g, const struct input *in) {
    union message m;
    if (in->kind == INPUT_LINK_UP)
        on_up(g, in->link.link);
    else if (in->kind == INPUT_LINK_DOWN)
        on_down(g);
    else if (in->kind == INPUT_MESSAGE && in->message.type == MESSAGE_LETTER &&
             message_decode(MESSAGE_LETTER, in->message.body, NULL, &m) == 0)
        on_letter(g, &m.letter);
}

/* ---- for links ---- */

static bool seek(void *context, uint32_t peer, struct address *ret) {
    struct guide *g = context;
    bool node = peer < g->config.nodes;
    if (node && g->known[peer].len != 0) {
        *ret = g->known[peer];
        return true;
    }
    for (uint32_t i = 0; i < g->sought_count; i++)
        if (g->sought[i] == peer)
            return false; /* already asked for */
    if (g->sought_count == SOUGHT_MAX)
        return false; /* it will be too late, and then tried again */
    g->sought[g->sought_count++] = peer;
    if (g->link != 0)
        ask(g, peer);
    else
        loop_wake_at(g->loop, g->loop->now);
    return false;
}

static void missed(void *context, uint32_t peer) {
    struct guide *g = context;
    if (peer < g->config.nodes)
        g->known[peer].len = 0;
}

/* ---- beginning, every turn, end ---- */

int guide_new(const struct guide_config *c, struct guide **ret) {
    struct guide *g = calloc(1, sizeof *g);
    int r = g == NULL ? -ENOMEM : 0;
    if (r == 0) {
        g->config = *c;
        g->config.key = NULL;
        g->known = calloc(c->nodes > 0 ? c->nodes : 1, sizeof *g->known);
        r = g->known == NULL ? -ENOMEM : 0;
    }
    if (r == 0 && c->key != NULL)
        r = take_key(g, c->key);
    if (r < 0) {
        guide_free(g);
        return r;
    }
    *ret = g;
    return 0;
}

void guide_free(struct guide *g) {
    if (g == NULL)
        return;
    seals_free(g->seals);
    keyring_free(g->keys);
    free(g->known);
    free(g);
}

uint64_t guide_client(const struct guide *g) {
    return g->client;
}

bool guide_ready(const struct guide *g) {
    return g->keys == NULL || seals_ready();
}

void guide_lead(struct guide *g, struct links_config *links) {
    links->sealer = g->keys == NULL ? NULL : &g->sealer;
    links->closed = g->config.listens;
    links->seek = seek;
    links->missed = missed;
    links->guide = g;
}

void guide_begin(struct guide *g, struct loop *loop, struct links *links) {
    g->loop = loop;
    g->links = links;
    if (g->config.listens)
        dial(g);
}

void guide_settle(struct guide *g) {
    bool wanted = g->config.listens || g->sought_count > 0;
    if (g->link != 0 || g->opening || !wanted)
        return;
    if (g->come_at <= g->loop->now)
        dial(g);
    else
        loop_wake_at(g->loop, g->come_at);
}
