/* SPDX-License-Identifier: MIT */
/* A lodge and its guests, in one process: nodes that know nothing but where the manager is find each other, a command is found
 * by a node, and who goes, comes back or never was is told of. With keys, and without. Commands may come by a Unix socket. */
#include "os/lodge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "os/guide.h"
#include "os/seal.h"
#include "turns.h"
#include "wire/message.h"

enum { NODES = 4, SEAT = NODES, CLIENT, SIDES };

struct side {
    struct links *links;
    struct link_counts counts;
    struct guide *guide;
    struct lodge *lodge;
    struct keyring *ring; /* the manager's */
    struct seals *seals;
    struct sealer sealer;
    struct address book[NODES + 1];
    struct address here;
    int ups, downs;
    uint32_t peer; /* of the last that went up */
};

struct world {
    struct loop loop;
    struct keyfile master;
    struct address seat;
    struct address near; /* length 0: the manager has no such socket */
    struct side sides[SIDES];
    bool sealed;
};

/* ---- sides ---- */

static void on_feed(void *context, enum purpose purpose, const struct input *in) {
    struct side *s = context;
    if (purpose == PURPOSE_LODGE && s->lodge != NULL)
        lodge_heard(s->lodge, s->links, in);
    else if (purpose == PURPOSE_LODGE)
        guide_heard(s->guide, in);
    if (purpose == PURPOSE_LODGE)
        return;
    s->ups += in->kind == INPUT_LINK_UP;
    s->downs += in->kind == INPUT_LINK_DOWN;
    if (in->kind == INPUT_LINK_UP)
        s->peer = in->link.peer;
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    (void)context;
    (void)link;
    (void)put;
    return REFUSAL_NONE;
}

static void on_sent(void *context, uint64_t tag) {
    (void)context;
    (void)tag;
}

static struct links_config usual(struct world *w, struct side *s, uint32_t self) {
    return (struct links_config){.loop = &w->loop,
                                 .self = self,
                                 .life = 10,
                                 .key = {1, 2},
                                 .book = s->book,
                                 .nodes = NODES + 1,
                                 .accepts = 1U << PURPOSE_TREE | 1U << PURPOSE_FILES,
                                 .frame_bytes_max = MIB,
                                 .counts = &s->counts,
                                 .feed = on_feed,
                                 .put = on_put,
                                 .sent = on_sent,
                                 .context = s};
}

static int listen_somewhere(struct address *ret) {
    CHECK_EQ(address_parse(ret, "tcp:127.0.0.1:0"), 0);
    int fd = address_listen(ret);
    CHECK(fd >= 0);
    return fd;
}

static void manager_begin(struct world *w, int listener, uint32_t epoch) {
    struct side *s = &w->sides[SEAT];
    *s = (struct side){0};
    struct keyring_config keys = {.file = &w->master, .self = SEAT, .seat_first = SEAT, .seats = 1};
    CHECK_EQ(keyring_new(&keys, &s->ring), 0);
    s->seals = keyring_seals(s->ring);
    s->sealer = seals_sealer(s->seals);
    struct lodge_config lodge = {
        .keys = w->sealed ? s->ring : NULL, .nodes = NODES, .epoch = epoch, .near_client = 7};
    s->lodge = lodge_new(&lodge);
    struct links_config c = usual(w, s, SEAT);
    c.listener = listener;
    c.accepts |= 1U << PURPOSE_LODGE;
    c.sealer = w->sealed ? &s->sealer : NULL;
    c.near_listener = w->near.len > 0 ? address_listen(&w->near) : -1;
    CHECK(c.near_listener >= 0 || w->near.len == 0);
    s->links = links_new(&c);
    CHECK(s->links != NULL);
}

/* A node that tells where it is, or a command (NO_NODE), which listens too. */
static void guest_begin(struct world *w, int which, const struct keyfile *key, bool files) {
    struct side *s = &w->sides[which];
    *s = (struct side){0};
    uint32_t self = which == CLIENT ? NO_NODE : (uint32_t)which;
    int listener = listen_somewhere(&s->here);
    s->book[SEAT] = w->seat;
    struct guide_config guide = {.key = w->sealed ? key : NULL,
                                 .self = self,
                                 .nodes = NODES,
                                 .listens = true,
                                 .files = files,
                                 .port = which == CLIENT ? 0 : address_port(listener),
                                 .files_port = which == CLIENT ? 0 : address_port(listener)};
    CHECK_EQ(guide_new(&guide, &s->guide), 0);
    struct links_config c = usual(w, s, self);
    c.listener = listener;
    guide_lead(s->guide, &c);
    c.near = w->near.len > 0 ? &w->near : NULL;
    s->links = links_new(&c);
    CHECK(s->links != NULL);
    guide_begin(s->guide, &w->loop, s->links);
}

static void node_begin(struct world *w, int node) {
    struct keyfile key;
    CHECK_EQ(keyring_issue_node(w->sides[SEAT].ring, (uint32_t)node, &key), 0);
    guest_begin(w, node, &key, false);
}

static void client_begin(struct world *w) {
    struct keyfile key;
    CHECK_EQ(keyring_issue_client(w->sides[SEAT].ring, 7, &key), 0);
    guest_begin(w, CLIENT, &key, true);
}

static void side_end(struct side *s) {
    links_free(s->links);
    guide_free(s->guide);
    lodge_free(s->lodge);
    seals_free(s->seals);
    keyring_free(s->ring);
    *s = (struct side){0};
}

static struct world *world_begin(bool sealed) {
    struct world *w = calloc(1, sizeof *w);
    w->sealed = sealed;
    CHECK_EQ(loop_init(&w->loop), 0);
    CHECK_EQ(keyring_make_master(&w->master), 0);
    int listener = listen_somewhere(&w->seat);
    manager_begin(w, listener, 3);
    for (int i = 0; i < 3; i++) /* the last of them never comes */
        node_begin(w, i);
    return w;
}

static void world_end(struct world *w) {
    for (int i = 0; i < SIDES; i++)
        side_end(&w->sides[i]);
    loop_fini(&w->loop);
    free(w);
}

static void settle(struct world *w) {
    for (int i = 0; i < SIDES; i++) {
        struct side *s = &w->sides[i];
        if (s->guide != NULL)
            guide_settle(s->guide);
        if (s->links != NULL)
            links_settle(s->links);
    }
}

#define UNTIL(w, condition) TURN_UNTIL(&(w)->loop, settle(w), condition)

static void open_link(struct side *s, uint32_t node, enum purpose purpose, const char *address) {
    struct bytes at = address == NULL ? (struct bytes){0} : bytes_from_str(address);
    links_open(s->links,
               &(struct effect_open){.node = node, .purpose = purpose, .cookie = 4, .address = at});
}

static bool here(const struct world *w, uint32_t node) {
    struct address at;
    return lodge_find(w->sides[SEAT].lodge, node, &at);
}

static void await_all(struct world *w) {
    CHECK(UNTIL(w, here(w, 0) && here(w, 1) && here(w, 2)));
}

/* ---- tests ---- */

static void find_each_other(bool sealed) {
    struct world *w = world_begin(sealed);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    await_all(w);
    open_link(a, 1, PURPOSE_TREE, NULL);
    open_link(a, 1, PURPOSE_FILES, NULL); /* asked for once */
    open_link(b, 0, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, a->ups == 3 && b->ups == 3));
    open_link(a, SEAT, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, w->sides[SEAT].ups == 1));
    CHECK_EQ(w->sides[SEAT].peer, 0);
    open_link(a, 1, PURPOSE_TREE, NULL); /* known by now */
    CHECK(UNTIL(w, b->ups == 4));
    CHECK_EQ(a->downs + b->downs, 0);
    world_end(w);
}

static void test_nodes_find_each_other(void) {
    find_each_other(true);
    find_each_other(false);
}

static void test_who_is_not_here(void) {
    struct world *w = world_begin(true);
    struct side *a = &w->sides[0];
    await_all(w);
    open_link(a, 3, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, a->downs == 1));
    side_end(&w->sides[1]);
    CHECK(UNTIL(w, !here(w, 1)));
    open_link(a, 1, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, a->downs == 2));
    node_begin(w, 1); /* elsewhere */
    CHECK(UNTIL(w, here(w, 1)));
    open_link(a, 1, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, a->ups == 1));
    world_end(w);
}

/* What was true once may not be any more: after one failure it is asked for again. */
static void test_who_has_moved(void) {
    struct world *w = world_begin(true);
    struct side *a = &w->sides[0];
    await_all(w);
    open_link(a, 1, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, a->ups == 1));
    side_end(&w->sides[1]);
    node_begin(w, 1);
    CHECK(UNTIL(w, a->downs == 1 && here(w, 1)));
    for (int tries = 1; tries < 10 && a->ups == 1; tries++) {
        int downs = a->downs;
        open_link(a, 1, PURPOSE_TREE, NULL);
        CHECK(UNTIL(w, a->ups == 2 || a->downs > downs));
    }
    CHECK_EQ(a->ups, 2);
    CHECK(a->downs <= 2);
    world_end(w);
}

/* Nodes to a command, by what it says of itself; and the other way. No node is found as a client, no client comes as a node. */
static void test_commands(void) {
    char text[ADDRESS_TEXT_MAX + 8];
    struct world *w = world_begin(true);
    struct side *a = &w->sides[0], *c = &w->sides[CLIENT];
    client_begin(w);
    await_all(w);
    address_format(&c->here, text, ADDRESS_TEXT_MAX);
    snprintf(text + strlen(text), 8, "#7");
    open_link(a, NO_NODE, PURPOSE_FILES, text);
    CHECK(UNTIL(w, a->ups == 1 && c->ups == 1));
    CHECK_EQ(c->peer, 0);
    open_link(c, 2, PURPOSE_FILES, NULL);
    CHECK(UNTIL(w, c->ups == 2 && w->sides[2].ups == 1));
    CHECK_EQ(w->sides[2].peer, NO_NODE);
    open_link(c, 2, PURPOSE_TREE, NULL); /* it has the key, and may not */
    CHECK(UNTIL(w, c->downs == 1));
    text[strlen(text) - 1] = '8'; /* another client's key is not its own */
    open_link(a, NO_NODE, PURPOSE_FILES, text);
    CHECK(UNTIL(w, a->downs == 1));
    world_end(w);
}

/* A socket in a folder of its own; the world has none yet. */
static void find_near(char folder[32], struct address *ret) {
    char text[64];
    snprintf(folder, 32, "/tmp/lodge.XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof text, "unix:%s/seat", folder);
    CHECK_EQ(address_parse(ret, text), 0);
}

static void lose_near(const char *folder, const struct address *near) {
    unlink(near->local.sun_path);
    CHECK_EQ(rmdir(folder), 0);
}

/* The manager begins again, and listens nearby as well. */
static void open_near(struct world *w, const struct address *near) {
    side_end(&w->sides[SEAT]);
    struct address again = w->seat;
    int listener = address_listen(&again);
    CHECK(listener >= 0);
    w->near = *near;
    manager_begin(w, listener, 4);
    w->near.len = 0; /* nodes come from afar */
    await_all(w);
    w->near = *near;
}

static void meet(struct world *w) {
    char text[ADDRESS_TEXT_MAX + 8];
    struct side *a = &w->sides[0], *c = &w->sides[CLIENT];
    address_format(&c->here, text, ADDRESS_TEXT_MAX);
    snprintf(text + strlen(text), 8, "#7");
    open_link(a, NO_NODE, PURPOSE_FILES, text);
    open_link(c, 2, PURPOSE_FILES, NULL);
    CHECK(UNTIL(w, a->ups == 1 && c->ups == 2));
}

/* It has no other way to the manager, and meets nodes by keys as ever. */
static void test_commands_nearby(void) {
    char folder[32];
    struct address near, seat;
    struct world *w = world_begin(true);
    find_near(folder, &near);
    open_near(w, &near);
    seat = w->seat;
    w->seat.len = 0;
    client_begin(w);
    meet(w);
    w->seat = seat;
    CHECK_EQ(w->sides[SEAT].counts.refused[REFUSAL_SENDER], 0);
    world_end(w);
    lose_near(folder, &near);
}

/* Nobody listens at the socket: as on another machine that sees the same folder. */
static void test_commands_from_afar(void) {
    char folder[32];
    struct world *w = world_begin(true);
    find_near(folder, &w->near);
    await_all(w);
    client_begin(w);
    meet(w);
    lose_near(folder, &w->near);
    world_end(w);
}

/* Who says it is a node needs that node's key, wherever it comes from. */
static void test_no_nodes_nearby(void) {
    char folder[32];
    struct address near;
    struct world *w = world_begin(true);
    const struct link_counts *counts = &w->sides[SEAT].counts;
    find_near(folder, &near);
    open_near(w, &near);
    w->sealed = false;
    guest_begin(w, 3, NULL, false);
    w->sealed = true;
    CHECK(UNTIL(w, counts->refused[REFUSAL_SENDER] == 1));
    CHECK(UNTIL(w, counts->refused[REFUSAL_SEAL] >= 1)); /* then it tries the other way */
    CHECK(!here(w, 3));
    world_end(w);
    lose_near(folder, &near);
}

/* The manager dies and is there again, in its next epoch: guests come by themselves, and old keys open nothing. */
static void test_next_epoch(void) {
    struct world *w = world_begin(true);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    await_all(w);
    open_link(a, 1, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, b->ups == 1));
    side_end(&w->sides[SEAT]);
    struct address again = w->seat;
    int listener = address_listen(&again);
    CHECK(listener >= 0);
    manager_begin(w, listener, 4);
    await_all(w);
    open_link(a, 1, PURPOSE_FILES, NULL);
    for (int tries = 0; tries < 100 && b->ups == 1;
         tries++) { /* it may be the first to have heard */
        int downs = a->downs;
        CHECK(UNTIL(w, b->ups == 2 || a->downs > downs));
        if (b->ups == 1)
            open_link(a, 1, PURPOSE_FILES, NULL);
    }
    CHECK_EQ(b->ups, 2);
    CHECK_EQ(b->downs, 0); /* what was there before stays */
    world_end(w);
}

/* Nobody comes in before the letter: who knocks waits. */
static void test_closed_until_then(void) {
    struct world *w = world_begin(true);
    struct side *a = &w->sides[0];
    await_all(w);
    struct keyfile key;
    CHECK_EQ(keyring_issue_node(w->sides[SEAT].ring, 3, &key), 0);
    guest_begin(w, 3, &key, false);
    CHECK(UNTIL(w, here(w, 3))); /* its letter may be on its way */
    open_link(a, 3, PURPOSE_TREE, NULL);
    CHECK(UNTIL(w, a->ups == 1));
    CHECK_EQ(w->sides[3].counts.refused[REFUSAL_SEAL], 0);
    world_end(w);
}

int main(void) {
    TEST(test_nodes_find_each_other);
    TEST(test_who_is_not_here);
    TEST(test_who_has_moved);
    TEST(test_commands);
    TEST(test_commands_nearby);
    TEST(test_commands_from_afar);
    TEST(test_no_nodes_nearby);
    TEST(test_next_epoch);
    TEST(test_closed_until_then);
    return tap_finish();
}
