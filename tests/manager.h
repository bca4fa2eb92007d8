/* SPDX-License-Identifier: MIT */
/*
 * A manager for tests of clients: real links, and nothing behind them but what the test says.
 *
 * It shares the loop of the client, so a test is one thread that takes turns. What arrives is decoded and
 * handed to the test's `heard`; the test answers with manager_say. It can die and come back at the same
 * address.
 */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "client/cluster.h"
#include "client/session.h"
#include "os/links.h"
#include "tap.h"

enum { MANAGER_NODES = 8 };

struct manager {
    struct loop *loop;
    struct cluster cluster;
    char folder[32];
    struct links *links; /* NULL: dead */
    struct link_counts counts;
    uint32_t link; /* the client's, 0: none */
    uint32_t lives;
    struct nodeset sets[2];
    uint64_t storage[2][16];
    void (*heard)(struct manager *m, uint16_t type, const union message *c);
    void *context;
};

static inline void manager_feed(void *context, enum purpose purpose, const struct input *in) {
    struct manager *m = context;
    union message c;
    CHECK_EQ(purpose, PURPOSE_CLIENT);
    if (in->kind == INPUT_LINK_UP)
        m->link = in->link.link;
    if (in->kind == INPUT_LINK_DOWN)
        m->link = 0;
    if (in->kind != INPUT_MESSAGE)
        return;
    if (CHECK_EQ(message_decode(in->message.type, in->message.body, m->sets, &c), 0))
        m->heard(m, in->message.type, &c);
}

static inline void manager_live(struct manager *m) {
    int fd = address_listen(&m->cluster.manager);
    m->lives++;
    struct links_config config = {.loop = m->loop,
                                  .self = m->cluster.root,
                                  .life = m->lives,
                                  .key = {m->cluster.key[0], m->cluster.key[1]},
                                  .accepts = 1U << PURPOSE_CLIENT,
                                  .listener = fd,
                                  .frame_bytes_max = 1 << 20,
                                  .counts = &m->counts,
                                  .feed = manager_feed,
                                  .context = m};
    CHECK(fd >= 0);
    m->links = links_new(&config);
    CHECK(m->links != NULL);
}

static inline void manager_die(struct manager *m) {
    links_free(m->links);
    m->links = NULL;
    m->link = 0;
}

static inline void manager_init(struct manager *m, struct loop *loop) {
    char path[64];
    *m = (struct manager){.loop = loop, .folder = "/tmp/storm-manager-XXXXXX"};
    CHECK(mkdtemp(m->folder) != NULL);
    snprintf(path, sizeof path, "unix:%s/m", m->folder);
    m->cluster = (struct cluster){
        .name = "test", .nodes = MANAGER_NODES, .pes = 1, .prefix = "n", .key = {7, 11}};
    CHECK_EQ(address_parse(&m->cluster.manager, path), 0);
    for (int i = 0; i < 2; i++)
        nodeset_init(&m->sets[i], MANAGER_NODES, m->storage[i]);
}

static inline void manager_fini(struct manager *m) {
    char path[64];
    if (m->links != NULL)
        manager_die(m);
    snprintf(path, sizeof path, "%s/m", m->folder);
    unlink(path);
    rmdir(m->folder);
}

static inline void manager_say(struct manager *m, uint16_t type, const union message *c) {
    static uint8_t body[256 * 1024];
    long len = message_encode(type, c, room_of(body, sizeof body));
    CHECK(len >= 0);
    struct effect_send send = {.links = &m->link,
                               .link_count = 1,
                               .type = type,
                               .head = bytes_of(body, len < 0 ? 0 : (size_t)len)};
    if (m->link != 0)
        links_send(m->links, &send);
}

static inline void manager_answer(struct manager *m, const uint64_t request[2], uint32_t job) {
    union message a = {
        .answer = {
            .request = {request[0], request[1]}, .code = ANSWER_DONE, .job = job, .count = 1}};
    manager_say(m, MESSAGE_ANSWER, &a);
}

static inline void manager_turn(struct manager *m, struct session *s) {
    if (m->links != NULL)
        links_settle(m->links);
    session_turn(s);
}
