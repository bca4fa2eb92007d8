/* SPDX-License-Identifier: MIT */
/* Links between machines: keys from a manager's keyring, TCP, and strangers who have none, old ones or those of others.
 *
 * Whatever a stranger does is counted, written to the log under its address, and costs him his connection; a link that was
 * there before goes on. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "os/keyring.h"
#include "os/links.h"
#include "os/seal.h"
#include "turns.h"
#include "wire/message.h"

enum { NODES = 3, SEAT = NODES, CLIENT = NODES + 1, SIDES = NODES + 2, IMPOSTOR = SIDES };

struct side {
    struct keyring *ring;
    struct seals *seals;
    struct sealer sealer;
    struct links *links;
    struct link_counts counts;
    int ups, downs, messages, puts;
    uint32_t link; /* the last that went up */
    size_t len;    /* of the last message */
    int warnings;
    char warning[512];
};

struct world {
    struct loop loop;
    struct address book[NODES + 1];
    struct keyfile master;
    struct keyring *manager;
    struct side sides[SIDES + 1];
    uint64_t hello_ns;
};

/* ---- sides ---- */

static void on_feed(void *context, enum purpose purpose, const struct input *in) {
    struct side *s = context;
    (void)purpose;
    if (in->kind == INPUT_MESSAGE) {
        s->messages++;
        s->len = in->message.body.len;
    } else if (in->kind == INPUT_LINK_UP) {
        s->ups++;
        s->link = in->link.link;
    } else {
        s->downs++;
    }
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    struct side *s = context;
    (void)link;
    (void)put;
    s->puts++;
    return REFUSAL_NONE;
}

static void on_warn(void *context, const char *text) {
    struct side *s = context;
    s->warnings++;
    snprintf(s->warning, sizeof s->warning, "%s", text);
}

/* A process that has these keys and says that it is `self`. */
static void side_begin(struct world *w, int which, const struct keyfile *file, uint32_t owner,
                       uint32_t self, int listener) {
    static const uint64_t key[2] = {1, 2};
    struct side *s = &w->sides[which];
    *s = (struct side){0};
    struct keyring_config keys = {.file = file, .self = owner, .seat_first = SEAT, .seats = 1};
    CHECK_EQ(keyring_new(&keys, &s->ring), 0);
    s->seals = keyring_seals(s->ring);
    s->sealer = seals_sealer(s->seals);
    struct links_config c = {.loop = &w->loop,
                             .self = self,
                             .life = 10,
                             .key = {key[0], key[1]},
                             .book = w->book,
                             .nodes = NODES + 1,
                             .accepts = 1U << PURPOSE_TREE | 1U << PURPOSE_SLOT,
                             .listener = listener,
                             .frame_bytes_max = 8 * MIB,
                             .hello_ns = w->hello_ns,
                             .sealer = &s->sealer,
                             .warn = on_warn,
                             .counts = &s->counts,
                             .feed = on_feed,
                             .put = on_put,
                             .context = s};
    if (self == SEAT)
        c.accepts |= 1U << PURPOSE_CLIENT;
    s->links = links_new(&c);
    CHECK(s->links != NULL);
}

static void side_end(struct side *s) {
    links_free(s->links);
    seals_free(s->seals);
    keyring_free(s->ring);
    *s = (struct side){0};
}

/* The manager writes to a node: it may open links to all others. */
static void write_to(struct world *w, int node, uint32_t epoch) {
    static const uint32_t all[NODES] = {0, 1, 2};
    uint8_t letter[1024];
    long len = keyring_write_letter(w->sides[SEAT].ring, (uint32_t)node, epoch, all, NODES,
                                    room_of(letter, sizeof letter));
    CHECK(len > 0);
    CHECK_EQ(keyring_read_letter(w->sides[node].ring, bytes_of(letter, (size_t)len)), 0);
}

static struct world *world_begin(uint64_t hello_ns) {
    struct world *w = calloc(1, sizeof *w);
    int listeners[NODES + 1];
    struct keyfile file;
    w->hello_ns = hello_ns;
    CHECK_EQ(loop_init(&w->loop), 0);
    for (int i = 0; i <= NODES; i++) {
        CHECK_EQ(address_parse(&w->book[i], i == 1 ? "tcp:[::1]:0" : "tcp:127.0.0.1:0"), 0);
        if ((listeners[i] = address_listen(&w->book[i])) < 0) { /* no IPv6 here */
            CHECK_EQ(address_parse(&w->book[i], "tcp:127.0.0.1:0"), 0);
            CHECK((listeners[i] = address_listen(&w->book[i])) >= 0);
        }
    }
    CHECK_EQ(keyring_make_master(&w->master), 0);
    side_begin(w, SEAT, &w->master, SEAT, SEAT, listeners[SEAT]);
    for (int i = 0; i < NODES; i++) {
        CHECK_EQ(keyring_issue_node(w->sides[SEAT].ring, (uint32_t)i, &file), 0);
        side_begin(w, i, &file, (uint32_t)i, (uint32_t)i, listeners[i]);
        write_to(w, i, 3);
    }
    CHECK_EQ(keyring_issue_client(w->sides[SEAT].ring, 1, &file), 0);
    side_begin(w, CLIENT, &file, NO_NODE, NO_NODE, -1);
    return w;
}

static void world_end(struct world *w) {
    for (int i = 0; i <= SIDES; i++)
        side_end(&w->sides[i]);
    loop_fini(&w->loop);
    free(w);
}

static void settle(struct world *w) {
    for (int i = 0; i <= SIDES; i++)
        if (w->sides[i].links != NULL)
            links_settle(w->sides[i].links);
}

#define UNTIL(w, condition) TURN_UNTIL(&(w)->loop, settle(w), condition)

static void open_link(struct side *s, uint32_t node, enum purpose purpose) {
    links_open(s->links, &(struct effect_open){.node = node, .purpose = purpose, .cookie = 4});
}

static void send_one(struct side *s, uint16_t type, size_t len) {
    static const uint8_t body[128 * KIB];
    links_send(s->links,
               &(struct effect_send){
                   .links = &s->link, .link_count = 1, .type = type, .head = bytes_of(body, len)});
}

/* A link, and a frame each way. */
static void link_up(struct world *w, int from, int to, enum purpose purpose) {
    struct side *a = &w->sides[from], *b = &w->sides[to];
    int ups[2] = {a->ups, b->ups};
    open_link(a, (uint32_t)to, purpose);
    CHECK(UNTIL(w, a->ups == ups[0] + 1 && b->ups == ups[1] + 1));
}

static void check_alive(struct world *w, struct side *child, struct side *parent) {
    int before[2] = {child->messages, parent->messages};
    send_one(child, MESSAGE_TOCK, 13);
    send_one(parent, MESSAGE_TICK, 200);
    CHECK(UNTIL(w, child->messages > before[0] && parent->messages > before[1]));
    CHECK_EQ(child->len, 200);
    CHECK_EQ(parent->len, 13);
}

/* ---- those who belong together ---- */

static void test_nodes_and_manager(void) {
    struct world *w = world_begin(0);
    link_up(w, 1, 0, PURPOSE_TREE);
    check_alive(w, &w->sides[1], &w->sides[0]);
    link_up(w, 0, SEAT, PURPOSE_TREE);
    check_alive(w, &w->sides[0], &w->sides[SEAT]);
    link_up(w, SEAT, 2, PURPOSE_TREE); /* and the other way round */
    link_up(w, CLIENT, SEAT, PURPOSE_CLIENT);
    send_one(&w->sides[CLIENT], MESSAGE_ASK, 12);
    CHECK(UNTIL(w, w->sides[SEAT].len == 12));
    for (int i = 0; i < SIDES; i++) {
        CHECK_EQ(w->sides[i].warnings, 0);
        for (int r = 0; r < REFUSALS; r++)
            CHECK_EQ(w->sides[i].counts.refused[r], 0);
    }
    world_end(w);
}

/* What was put before a close arrives, however much it is; then the end does, in order. */
static void test_two_lanes(void) {
    uint8_t *bytes = calloc(1, MIB);
    struct world *w = world_begin(0);
    struct side *a = &w->sides[1], *b = &w->sides[0];
    link_up(w, 1, 0, PURPOSE_SLOT);
    struct effect_put put = {.link = b->link, .len = MIB};
    for (int i = 0; i < 20; i++)
        links_put(b->links, &put, bytes_of(bytes, MIB));
    for (int i = 0; i < 300; i++)
        links_put(b->links, &put, bytes_of(bytes, (size_t)i));
    links_close(b->links, b->link, REFUSAL_NONE);
    CHECK(UNTIL(w, a->downs == 1));
    CHECK_EQ(a->puts, 320);
    CHECK_EQ(links_count(a->links) + links_count(b->links), 0);
    for (int r = 0; r < REFUSALS; r++)
        CHECK_EQ(a->counts.refused[r] + b->counts.refused[r], 0);
    world_end(w);
    free(bytes);
}

static void test_no_key_no_link(void) {
    struct world *w = world_begin(0);
    struct keyfile file;
    CHECK_EQ(keyring_issue_node(w->sides[SEAT].ring, 2, &file), 0);
    side_begin(w, IMPOSTOR, &file, 2, 2,
               -1); /* the right node, but the manager has not written to it yet */
    struct side *s = &w->sides[IMPOSTOR];
    open_link(s, 0, PURPOSE_TREE);
    CHECK_EQ(s->downs, 0);
    CHECK(UNTIL(w, s->downs == 1));
    open_link(s, SEAT, PURPOSE_TREE); /* whom it can always reach */
    CHECK(UNTIL(w, s->ups == 1));
    world_end(w);
}

/* ---- names ---- */

/* Somebody with the keys of `owner` says that it is `claimed`, to `to`. */
static void check_claim(uint32_t owner, uint32_t claimed, int to, enum purpose purpose,
                        const char *warning) {
    struct world *w = world_begin(0);
    struct side *s = &w->sides[IMPOSTOR], *victim = &w->sides[to];
    struct keyfile file;
    link_up(w, 1, 0, PURPOSE_TREE);
    if (owner == NO_NODE)
        CHECK_EQ(keyring_issue_client(w->sides[SEAT].ring, 1, &file), 0);
    else
        CHECK_EQ(keyring_issue_node(w->sides[SEAT].ring, owner, &file), 0);
    side_begin(w, IMPOSTOR, &file, owner, claimed, -1);
    if (owner != NO_NODE) {
        struct side mine = w->sides[owner];
        w->sides[owner].ring = s->ring; /* its letter comes to us */
        write_to(w, (int)owner, 3);
        w->sides[owner] = mine;
    }
    int ups = victim->ups;
    open_link(s, (uint32_t)to, purpose);
    CHECK(UNTIL(w, s->downs == 1));
    CHECK_EQ(s->ups, 0);
    CHECK_EQ(victim->ups, ups);
    CHECK(victim->counts.refused[REFUSAL_SENDER] >= 1);
    CHECK(victim->warnings >= 1);
    if (!CHECK(strstr(victim->warning, warning) != NULL))
        printf("# %s\n", victim->warning);
    check_alive(w, &w->sides[1], &w->sides[0]);
    world_end(w);
}

static void test_names_of_others(void) {
    check_claim(2, 1, 0, PURPOSE_TREE,
                "says it is node 1, with the key of node 2 to node 0 in epoch 3");
    check_claim(2, SEAT, 0, PURPOSE_TREE, "says it is node 3, with the key of node 2");
    check_claim(2, 1, SEAT, PURPOSE_TREE,
                "says it is node 1, with the key of node 2 to node 3 by key 1");
    check_claim(2, NO_NODE, SEAT, PURPOSE_CLIENT, "says it is a client, with the key of node 2");
    check_claim(NO_NODE, 2, SEAT, PURPOSE_TREE, "says it is node 2, with the key of client 1");
}

/* A client may be nothing but a client, even under its own name. */
static void test_client_in_the_tree(void) {
    check_claim(NO_NODE, NO_NODE, SEAT, PURPOSE_TREE, "with the key of client 1");
}

/* ---- keys ---- */

static void test_old_epoch(void) {
    struct world *w = world_begin(0);
    struct side *a = &w->sides[1], *b = &w->sides[0];
    link_up(w, 1, 0, PURPOSE_TREE);
    write_to(w, 0, 4);
    open_link(a, 0, PURPOSE_TREE);
    CHECK(UNTIL(w, a->downs == 1));
    CHECK_EQ(a->ups, 1);
    CHECK(b->counts.refused[REFUSAL_EPOCH] >= 1);
    CHECK(strstr(b->warning, "node 1 to node 0 in epoch 3: the key of a former epoch") != NULL);
    CHECK(strstr(b->warning, "refused tcp:127.0.0.1:") != NULL);
    check_alive(w, a, b); /* what is there stays */
    write_to(w, 1, 4);
    link_up(w, 1, 0, PURPOSE_TREE);
    world_end(w);
}

static void check_refused(struct world *w, const struct keyfile *file, const char *warning) {
    struct side *s = &w->sides[IMPOSTOR], *victim = &w->sides[SEAT];
    uint64_t before = victim->counts.refused[REFUSAL_SEAL];
    side_begin(w, IMPOSTOR, file, 2, 2, -1);
    open_link(s, SEAT, PURPOSE_TREE);
    CHECK(UNTIL(w, s->downs == 1 && victim->counts.refused[REFUSAL_SEAL] > before));
    CHECK_EQ(s->ups, 0);
    if (!CHECK(strstr(victim->warning, warning) != NULL))
        printf("# %s\n", victim->warning);
    CHECK(s->warnings >= 1);
    side_end(s);
}

static void test_wrong_keys(void) {
    struct world *w = world_begin(0);
    struct keyfile file;
    CHECK_EQ(keyring_issue_node(w->sides[SEAT].ring, 2, &file), 0);
    file.key[0] ^= 1;
    check_refused(w, &file, "node 2 to node 3 by key 1: binder does not verify");
    file.key[0] ^= 1;
    file.cluster[0] ^= 1;
    check_refused(w, &file, "no such can come to us");
    file.cluster[0] ^= 1;
    CHECK_EQ(keyring_expect_node(w->sides[SEAT].ring, 2, 2), 0);
    check_refused(w, &file, "no such can come to us");
    CHECK_EQ(w->sides[SEAT].ups, 0);
    world_end(w);
}

/* ---- no keys at all ---- */

static int raw_connect(struct world *w, int to) {
    int done, fd = address_connect(&w->book[to], &done);
    CHECK(fd >= 0);
    return fd;
}

static bool raw_closed(int fd) {
    uint8_t bytes[256];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return got == 0 || (errno != EAGAIN && errno != EINTR && errno != ENOTCONN);
}

/* A HELLO as it would be right, but in the clear; and what is none. */
static void test_in_the_clear(void) {
    struct world *w = world_begin(0);
    struct side *victim = &w->sides[0];
    for (int i = 0; i < 3; i++) {
        uint8_t bytes[HEADER_BYTES + 30] = {0};
        union message m = {.hello = {.key = {1, 2}, .to = 0, .token = 9}};
        struct header h = {.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .type = MESSAGE_HELLO,
                           .length = 30,
                           .sequence = 1,
                           .node = 1,
                           .life = 10};
        header_encode(&h, bytes);
        CHECK_EQ(message_encode(MESSAGE_HELLO, &m, room_of(bytes + HEADER_BYTES, 30)), 30);
        if (i == 1)
            memset(bytes, 0xff, sizeof bytes);
        int fd = raw_connect(w, 0);
        if (i < 2)
            CHECK(UNTIL(w, send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) == sizeof bytes));
        else
            shutdown(fd, SHUT_WR);
        CHECK(UNTIL(w, raw_closed(fd)));
        close(fd);
    }
    CHECK_EQ(victim->counts.refused[REFUSAL_SEAL], 2);
    CHECK_EQ(victim->counts.refused[REFUSAL_TRUNCATED], 1);
    CHECK_EQ(victim->warnings, 2); /* who only looks whether we are there is not worth a line */
    CHECK_EQ(victim->counts.accepted, 0);
    world_end(w);
}

/* Silent, or slow: the time for the handshake is that for HELLO. */
static void test_silence(void) {
    struct world *w = world_begin(100 * NS_PER_MS);
    struct side *victim = &w->sides[0];
    int silent = raw_connect(w, 0), slow = raw_connect(w, 0);
    CHECK(UNTIL(w, raw_closed(silent)));
    CHECK(UNTIL(w, send(slow, "\x16", 1, MSG_NOSIGNAL) < 0 || raw_closed(slow)));
    CHECK(victim->counts.strangers_dropped >= 1);
    close(silent);
    close(slow);
    world_end(w);
}

/* Many silent strangers do not keep a node out. */
static void test_flood(void) {
    enum { FLOOD = 600, MOST = 512 };
    static int fds[FLOOD];
    struct world *w = world_begin(600 * NS_PER_S);
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = raw_connect(w, 0);
        loop_turn(&w->loop, 0);
        settle(w);
    }
    CHECK(UNTIL(w, w->sides[0].counts.strangers_dropped == FLOOD - MOST));
    link_up(w, 1, 0, PURPOSE_TREE);
    check_alive(w, &w->sides[1], &w->sides[0]);
    for (int i = 0; i < FLOOD; i++)
        close(fds[i]);
    world_end(w);
}

/* A node whose connection is spoiled on its way, or cut: that link goes down, others stay. Nothing false is heard. */
static void test_stays_up_beside_trouble(void) {
    struct world *w = world_begin(0);
    link_up(w, 1, 0, PURPOSE_TREE);
    struct side keep[2] = {w->sides[1], w->sides[0]};
    link_up(w, 2, 0, PURPOSE_TREE);
    links_free(w->sides[2].links);
    w->sides[2].links = NULL;
    CHECK(UNTIL(w, w->sides[0].downs == 1));
    w->sides[1].link = keep[0].link;
    w->sides[0].link = keep[1].link;
    check_alive(w, &w->sides[1], &w->sides[0]);
    world_end(w);
}

int main(void) {
    TEST(test_nodes_and_manager);
    TEST(test_two_lanes);
    TEST(test_no_key_no_link);
    TEST(test_names_of_others);
    TEST(test_client_in_the_tree);
    TEST(test_old_epoch);
    TEST(test_wrong_keys);
    TEST(test_in_the_clear);
    TEST(test_silence);
    TEST(test_flood);
    TEST(test_stays_up_beside_trouble);
    return tap_finish();
}
