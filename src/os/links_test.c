/* SPDX-License-Identifier: MIT */
/* Links: two nodes in one loop over Unix and TCP, and sockets in the test's own hands that say what
 * no node would.
 *
 * Whatever the hostile sockets do, it is counted under its reason and costs them their connection;
 * a link between the two nodes that was there before goes on. */
#include "os/links.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>

#include "turns.h"
#include "wire/message.h"

enum { NODES = 4, SIDES = 2, LOG_MAX = 2048, RAW = 2 /* a node that the test plays */ };
enum { HELLO_BYTES = 30 };

static const uint64_t key[2] = {0x1122334455667788, 0x99aabbccddeeff00};

struct heard {
    enum input_kind kind;
    enum purpose purpose;
    uint32_t link, peer;
    uint64_t cookie;
    enum role role;
    uint16_t type;
    size_t len;
};

struct side {
    struct world *world;
    struct links *links;
    struct link_counts counts;
    struct heard log[LOG_MAX];
    int count;
    int puts;
    uint32_t reopen; /* when a link could not be opened: as often as this says, again */
};

struct world {
    struct loop loop;
    char folder[PATH_MAX];
    struct address book[NODES];
    struct side sides[SIDES];
    int raw_listener; /* of node RAW */
    int raw_bulk;     /* second lane of its last link */
};

/* ---- the two nodes ---- */

static void on_feed(void *context, enum purpose purpose, const struct input *in) {
    struct side *s = context;
    struct heard h = {.kind = in->kind, .purpose = purpose};
    if (in->kind == INPUT_MESSAGE) {
        h.link = in->message.link;
        h.peer = in->message.peer;
        h.type = in->message.type;
        h.len = in->message.body.len;
    } else {
        h.link = in->link.link;
        h.peer = in->link.peer;
        h.cookie = in->link.cookie;
        h.role = in->link.role;
    }
    if (CHECK(s->count < LOG_MAX))
        s->log[s->count++] = h;
    if (in->kind == INPUT_LINK_DOWN && in->link.link == 0 && s->reopen > 0) {
        s->reopen--;
        struct effect_open open = {.node = in->link.peer, .cookie = in->link.cookie + 1};
        links_open(s->links, &open);
    }
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    struct side *s = context;
    (void)link;
    s->puts++;
    return put->note == 666 ? REFUSAL_BODY : REFUSAL_NONE;
}

static void make_address(struct world *w, uint32_t node, bool tcp) {
    char text[PATH_MAX + 32];
    snprintf(text, sizeof text, "unix:%s/n%u", w->folder, node);
    CHECK_EQ(address_parse(&w->book[node], tcp ? "tcp:127.0.0.1:0" : text), 0);
}

static void side_begin(struct world *w, uint32_t node, int listener, uint64_t hello_ns) {
    struct side *s = &w->sides[node];
    *s = (struct side){.world = w};
    struct links_config c = {.loop = &w->loop,
                             .self = node,
                             .life = 10 + node,
                             .key = {key[0], key[1]},
                             .book = w->book,
                             .nodes = NODES,
                             .accepts = 1U << PURPOSE_TREE | 1U << PURPOSE_SLOT,
                             .listener = listener,
                             .frame_bytes_max = 8 * MIB,
                             .hello_ns = hello_ns,
                             .counts = &s->counts,
                             .feed = on_feed,
                             .put = on_put,
                             .context = s};
    s->links = links_new(&c);
    CHECK(s->links != NULL);
}

static struct world *world_begin(bool tcp, uint64_t hello_ns) {
    struct world *w = calloc(1, sizeof *w);
    int listeners[NODES] = {-1, -1, -1, -1};
    folder_make(w->folder);
    CHECK_EQ(loop_init(&w->loop), 0);
    for (uint32_t i = 0; i < NODES; i++) {
        make_address(w, i, tcp);
        if (i <= RAW || tcp)
            CHECK((listeners[i] = address_listen(&w->book[i])) >= 0);
    }
    if (listeners[3] >= 0)
        close(listeners[3]); /* nobody is at 3 */
    w->raw_listener = listeners[RAW];
    w->raw_bulk = -1;
    for (uint32_t i = 0; i < SIDES; i++)
        side_begin(w, i, listeners[i], hello_ns);
    return w;
}

static void world_end(struct world *w) {
    for (uint32_t i = 0; i < SIDES; i++)
        links_free(w->sides[i].links);
    close(w->raw_listener);
    if (w->raw_bulk >= 0)
        close(w->raw_bulk);
    loop_fini(&w->loop);
    folder_remove(w->folder);
    free(w);
}

static void settle(struct world *w) {
    for (uint32_t i = 0; i < SIDES; i++)
        links_settle(w->sides[i].links);
}

#define UNTIL(w, condition) TURN_UNTIL(&(w)->loop, settle(w), condition)

static void turn(struct world *w) {
    loop_turn(&w->loop, 0);
    settle(w);
}

static void open_link(struct side *s, uint32_t node, enum purpose purpose, uint64_t cookie) {
    links_open(s->links, &(struct effect_open){.node = node, .purpose = purpose, .cookie = cookie});
}

static void send_one(struct side *s, uint32_t link, uint16_t type, size_t len) {
    static const uint8_t body[128 * KIB];
    links_send(s->links, &(struct effect_send){.links = &link,
                                               .link_count = 1,
                                               .type = type,
                                               .head = bytes_of(body, len / 2),
                                               .tail = bytes_of(body, len - len / 2)});
}

static int heard(const struct side *s, enum input_kind kind) {
    int count = 0;
    for (int i = 0; i < s->count; i++)
        count += s->log[i].kind == kind;
    return count;
}

static const struct heard *last(const struct side *s, enum input_kind kind) {
    for (int i = s->count; i-- > 0;)
        if (s->log[i].kind == kind)
            return &s->log[i];
    static const struct heard none;
    return &none;
}

/* A link from 0 to 1, up at both ends; their numbers of it. */
struct pair {
    uint32_t link[SIDES];
};

static struct pair link_pair(struct world *w, enum purpose purpose) {
    struct pair p = {0};
    struct side *a = &w->sides[0], *b = &w->sides[1];
    int ups[SIDES] = {heard(a, INPUT_LINK_UP), heard(b, INPUT_LINK_UP)};
    open_link(a, 1, purpose, 42);
    CHECK(UNTIL(w, heard(a, INPUT_LINK_UP) > ups[0] && heard(b, INPUT_LINK_UP) > ups[1]));
    p.link[0] = last(a, INPUT_LINK_UP)->link;
    p.link[1] = last(b, INPUT_LINK_UP)->link;
    return p;
}

/* A frame each way. */
static void check_alive(struct world *w, const struct pair *p) {
    struct side *a = &w->sides[0], *b = &w->sides[1];
    int before[SIDES] = {heard(a, INPUT_MESSAGE), heard(b, INPUT_MESSAGE)};
    send_one(a, p->link[0], MESSAGE_TOCK, 13);
    send_one(b, p->link[1], MESSAGE_TICK, 200);
    CHECK(UNTIL(w, heard(a, INPUT_MESSAGE) > before[0] && heard(b, INPUT_MESSAGE) > before[1]));
    CHECK_EQ(last(a, INPUT_MESSAGE)->len, 200);
    CHECK_EQ(last(b, INPUT_MESSAGE)->len, 13);
    CHECK_EQ(heard(a, INPUT_LINK_DOWN) + heard(b, INPUT_LINK_DOWN), 0);
}

/* ---- links between nodes ---- */

static void check_life_of_a_link(bool tcp) {
    struct world *w = world_begin(tcp, 0);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    struct pair p = link_pair(w, PURPOSE_TREE);
    const struct heard *up = last(a, INPUT_LINK_UP);
    CHECK(up->link != 0 && up->peer == 1 && up->cookie == 42 && up->role == ROLE_PARENT);
    up = last(b, INPUT_LINK_UP);
    CHECK(up->link != 0 && up->peer == 0 && up->cookie == 0 && up->role == ROLE_CHILD);
    check_alive(w, &p);
    for (int i = 0; i < 50; i++)
        send_one(a, p.link[0], MESSAGE_REQUEST, 100 * KIB);
    links_close(a->links, p.link[0], REFUSAL_NONE);
    send_one(a, p.link[0], MESSAGE_TOCK, 1); /* after the close: goes nowhere */
    CHECK(UNTIL(w, heard(b, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(heard(b, INPUT_MESSAGE), 51);
    const struct heard *down = last(b, INPUT_LINK_DOWN);
    CHECK(down->link == p.link[1] && down->peer == 0 && down->cookie == 0);
    CHECK(down->role == ROLE_CHILD);
    turn(w);
    CHECK_EQ(heard(a, INPUT_LINK_DOWN), 0); /* who has closed it hears nothing more */
    CHECK_EQ(links_count(a->links) + links_count(b->links), 0);
    CHECK_EQ(a->counts.opened, 1);
    CHECK_EQ(b->counts.accepted, 1);
    CHECK_EQ(b->counts.messages, 51);
    for (int r = 0; r < REFUSALS; r++)
        CHECK_EQ(a->counts.refused[r] + b->counts.refused[r], 0);
    world_end(w);
}

static void test_life_of_a_link(void) {
    check_life_of_a_link(false);
    check_life_of_a_link(true);
}

/* A machine that closes for a reason: what it sent before still arrives, as in the other world. */
static void test_closed_for_a_reason(void) {
    struct world *w = world_begin(true, 0);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    struct pair p = link_pair(w, PURPOSE_TREE);
    send_one(a, p.link[0], MESSAGE_TOCK, 13);
    links_close(a->links, p.link[0], REFUSAL_BODY);
    CHECK(UNTIL(w, heard(b, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(heard(b, INPUT_MESSAGE), 1);
    CHECK_EQ(a->counts.refused[REFUSAL_BODY], 1);
    world_end(w);
}

static void put_some(struct side *s, uint32_t link, int count, size_t len) {
    uint8_t *bytes = calloc(1, len);
    struct effect_put put = {.link = link, .len = (uint32_t)len};
    for (int i = 0; i < count; i++)
        links_put(s->links, &put, bytes_of(bytes, len));
    free(bytes);
}

/* The opener of a slot link is the sink. What the source has put before it closes arrives, though
 * the control lane's end is there long before the bulk lane's bytes are. */
static void check_two_lanes(bool tcp) {
    struct world *w = world_begin(tcp, 0);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    struct pair p = link_pair(w, PURPOSE_SLOT);
    CHECK_EQ(last(a, INPUT_LINK_UP)->role, ROLE_SOURCE);
    CHECK_EQ(last(b, INPUT_LINK_UP)->role, ROLE_SINK);
    send_one(a, p.link[0], MESSAGE_WANT, 41);
    put_some(b, p.link[1], 3, 1000);
    CHECK(UNTIL(w, heard(b, INPUT_MESSAGE) == 1 && a->puts == 3));
    put_some(b, p.link[1], 20, MIB);
    links_close(b->links, p.link[1], REFUSAL_NONE);
    CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(a->puts, 23);
    CHECK_EQ(last(a, INPUT_LINK_DOWN)->link, p.link[0]);
    send_one(a, p.link[0], MESSAGE_WANT, 41); /* crossed with the end: goes nowhere */
    turn(w);
    CHECK_EQ(heard(b, INPUT_LINK_DOWN), 0);
    CHECK_EQ(links_count(a->links) + links_count(b->links), 0);
    CHECK_EQ(a->counts.messages, 23);
    world_end(w);
}

static void test_two_lanes(void) {
    check_two_lanes(false);
    check_two_lanes(true);
}

static void test_a_put_that_is_refused(void) {
    struct world *w = world_begin(false, 0);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    struct pair p = link_pair(w, PURPOSE_SLOT);
    links_put(b->links, &(struct effect_put){.link = p.link[1], .note = 666}, bytes_of("x", 1));
    CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == 1 && heard(b, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(a->counts.refused[REFUSAL_BODY], 1);
    world_end(w);
}

static void test_numbers_are_not_reused_early(void) {
    enum { TIMES = 200 };
    struct world *w = world_begin(false, 0);
    uint32_t seen[TIMES];
    for (int i = 0; i < TIMES; i++) {
        struct pair p = link_pair(w, PURPOSE_TREE);
        seen[i] = p.link[0];
        for (int k = 0; k < i; k++)
            CHECK(seen[k] != seen[i]);
        links_close(w->sides[0].links, p.link[0], REFUSAL_NONE);
        CHECK(UNTIL(w, heard(&w->sides[1], INPUT_LINK_DOWN) == i + 1));
    }
    world_end(w);
}

/* ---- links that cannot be opened ---- */

static void check_nobody_there(bool tcp) {
    static const uint32_t nobody[] = {3, 99, UINT32_MAX};
    struct world *w = world_begin(tcp, 0);
    struct side *a = &w->sides[0];
    for (uint32_t i = 0; i < 3; i++) {
        open_link(a, nobody[i], i == 0 ? PURPOSE_SLOT : PURPOSE_TREE, 70 + i);
        CHECK_EQ(heard(a, INPUT_LINK_DOWN), (int)i); /* never from within */
        CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == (int)i + 1));
        const struct heard *down = last(a, INPUT_LINK_DOWN);
        CHECK(down->link == 0 && down->cookie == 70 + i && down->peer == nobody[i]);
    }
    CHECK_EQ(heard(a, INPUT_LINK_UP), 0);
    world_end(w);
}

static void test_nobody_there(void) {
    check_nobody_there(false);
    check_nobody_there(true);
}

/* Somebody is there, but too many wait at the door: the same as nobody, and no reason to wait. */
static void test_full_door(void) {
    enum { MANY = 8 };
    int fds[MANY], done, count = 0;
    struct world *w = world_begin(false, 0);
    struct side *a = &w->sides[0];
    CHECK_EQ(listen(w->raw_listener, 1), 0); /* from now on only so many */
    while (count < MANY && (fds[count] = address_connect(&w->book[RAW], &done)) >= 0)
        count++;
    CHECK(count < MANY && fds[count] == -EAGAIN);
    open_link(a, RAW, PURPOSE_SLOT, 9);
    turn(w);
    CHECK_EQ(heard(a, INPUT_LINK_DOWN), 1);
    CHECK_EQ(last(a, INPUT_LINK_DOWN)->link, 0);
    CHECK_EQ(last(a, INPUT_LINK_DOWN)->cookie, 9);
    while (count > 0)
        close(fds[--count]);
    world_end(w);
}

/* To try again at once, for ever, is foolish, but must not stop everything else. */
static void test_trying_again_at_once(void) {
    struct world *w = world_begin(false, 0);
    struct side *a = &w->sides[0];
    a->reopen = 1000;
    open_link(a, 99, PURPOSE_TREE, 1);
    for (int i = 1; i <= 10; i++) {
        links_settle(a->links);
        CHECK_EQ(heard(a, INPUT_LINK_DOWN), i);
    }
    CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == 1001));
    world_end(w);
}

/* ---- sockets in our own hands ---- */

static int raw_connect(const struct world *w, uint32_t node) {
    int done;
    int fd = address_connect(&w->book[node], &done);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    CHECK(fd >= 0 && poll(&p, 1, 60000) == 1);
    return fd;
}

static void raw_say(int fd, const uint8_t *at, size_t len) {
    CHECK_EQ(send(fd, at, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Whether the other end has closed it; what it says is read over. */
static bool raw_closed(int fd) {
    uint8_t bytes[4096];
    ssize_t got;
    while ((got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return got == 0 || errno != EAGAIN;
}

/* A HELLO of node RAW in its life 7, to node 1, for a link of that purpose; to be spoiled. */
struct greeting {
    struct header h;
    struct message_hello m;
};

static struct greeting greeting(enum purpose purpose, enum lane lane, uint64_t token) {
    return (struct greeting){.h = {.magic = HEADER_MAGIC,
                                   .version = HEADER_VERSION,
                                   .type = MESSAGE_HELLO,
                                   .sequence = 1,
                                   .node = RAW,
                                   .life = 7},
                             .m = {.key = {key[0], key[1]},
                                   .to = 1,
                                   .purpose = (uint8_t)purpose,
                                   .lane = (uint8_t)lane,
                                   .token = token}};
}

static void greet(int fd, struct greeting g) {
    uint8_t bytes[HEADER_BYTES + 64];
    union message m = {.hello = g.m};
    m.hello.purpose = m.hello.lane = 0; /* the encoder would not write what is not allowed */
    long len = message_encode(MESSAGE_HELLO, &m, room_of(bytes + HEADER_BYTES, 64));
    CHECK_EQ(len, HELLO_BYTES);
    bytes[HEADER_BYTES + 20] = g.m.purpose;
    bytes[HEADER_BYTES + 21] = g.m.lane;
    g.h.length = (uint32_t)len;
    header_encode(&g.h, bytes);
    raw_say(fd, bytes, HEADER_BYTES + (size_t)len);
}

/* A proper tree link of node RAW to node 1: its control lane. */
static int raw_link(struct world *w) {
    int ups = heard(&w->sides[1], INPUT_LINK_UP);
    int fd = raw_connect(w, 1);
    if (w->raw_bulk >= 0)
        close(w->raw_bulk);
    w->raw_bulk = raw_connect(w, 1);
    greet(fd, greeting(PURPOSE_TREE, LANE_CONTROL, 5));
    greet(w->raw_bulk, greeting(PURPOSE_TREE, LANE_BULK, 5));
    CHECK(UNTIL(w, heard(&w->sides[1], INPUT_LINK_UP) > ups));
    CHECK_EQ(last(&w->sides[1], INPUT_LINK_UP)->peer, RAW);
    return fd;
}

static struct header frame(uint16_t type, uint32_t sequence, uint32_t length) {
    return (struct header){.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .lane = message_rule(type)->lane,
                           .type = type,
                           .length = length,
                           .sequence = sequence,
                           .node = RAW,
                           .life = 7};
}

static void raw_frame(int fd, struct header h) {
    uint8_t bytes[HEADER_BYTES + 256] = {0};
    header_encode(&h, bytes);
    raw_say(fd, bytes, HEADER_BYTES + (h.length < 256 ? h.length : 256));
}

static uint64_t refused(const struct world *w, enum refusal why) {
    return w->sides[1].counts.refused[why];
}

/* One HELLO that must not be: closed, counted so, and no link came of it. */
static void check_bad_hello(struct world *w, struct greeting g, enum refusal why) {
    uint64_t before = refused(w, why);
    int fd = raw_connect(w, 1);
    greet(fd, g);
    CHECK(UNTIL(w, raw_closed(fd)));
    CHECK_EQ(refused(w, why), before + 1);
    close(fd);
}

static void test_bad_hellos(void) {
    struct world *w = world_begin(false, 0);
    struct pair p = link_pair(w, PURPOSE_TREE);
    struct greeting good = greeting(PURPOSE_TREE, LANE_CONTROL, 1);
    struct greeting g;
    for (int bit = 0; bit < 128; bit += 9) {
        g = good;
        g.m.key[bit / 64] ^= (uint64_t)1 << bit % 64;
        check_bad_hello(w, g, REFUSAL_SENDER);
    }
    static const uint32_t wrong_to[] = {0, RAW, NODES, UINT32_MAX};
    for (int i = 0; i < 4; i++) {
        g = good;
        g.m.to = wrong_to[i];
        check_bad_hello(w, g, REFUSAL_SENDER);
    }
    static const uint32_t wrong_from[] = {1, NODES, UINT32_MAX}; /* 1 is the receiver itself */
    for (int i = 0; i < 3; i++) {
        g = good;
        g.h.node = wrong_from[i];
        check_bad_hello(w, g, REFUSAL_SENDER);
    }
    for (int purpose = PURPOSE_LAUNCHER; purpose <= PURPOSE_CLIENT; purpose++) {
        g = greeting((enum purpose)purpose, LANE_CONTROL, 1); /* not accepted here */
        g.h.node = purpose == PURPOSE_LAUNCHER ? 1 : NO_NODE;
        check_bad_hello(w, g, REFUSAL_SENDER);
    }
    check_bad_hello(w, greeting(PURPOSES, LANE_CONTROL, 1), REFUSAL_BODY);
    check_bad_hello(w, greeting(PURPOSE_TREE, LANES, 1), REFUSAL_BODY);
    g = good;
    g.h.lane = LANE_BULK;
    check_bad_hello(w, g, REFUSAL_LANE);
    g = good;
    g.h.sequence = 2;
    check_bad_hello(w, g, REFUSAL_GAP);
    g = good;
    g.h.version++;
    check_bad_hello(w, g, REFUSAL_VERSION);
    g = good;
    g.h.magic ^= 1;
    check_bad_hello(w, g, REFUSAL_MAGIC);
    g = good;
    g.h.zero32 = 1;
    check_bad_hello(w, g, REFUSAL_MAGIC);
    CHECK_EQ(heard(&w->sides[1], INPUT_LINK_UP), 1);
    check_alive(w, &p);
    world_end(w);
}

/* Something else than HELLO first, or a HELLO that is too long or stops in the middle. */
static void test_not_even_hello(void) {
    struct world *w = world_begin(true, 0);
    struct pair p = link_pair(w, PURPOSE_TREE);
    static const struct {
        struct header h;
        enum refusal why;
    } bad[] = {
        {{.magic = HEADER_MAGIC, .version = HEADER_VERSION, .type = MESSAGE_TOCK, .sequence = 1},
         REFUSAL_ROLE},
        {{.magic = HEADER_MAGIC, .version = HEADER_VERSION, .type = 999, .sequence = 1},
         REFUSAL_TYPE},
        {{.magic = HEADER_MAGIC, .version = HEADER_VERSION, .type = 0, .sequence = 1},
         REFUSAL_TYPE},
        {{.magic = HEADER_MAGIC,
          .version = HEADER_VERSION,
          .type = MESSAGE_HELLO,
          .sequence = 1,
          .length = 65},
         REFUSAL_SIZE},
        {{.magic = HEADER_MAGIC,
          .version = HEADER_VERSION,
          .type = MESSAGE_HELLO,
          .sequence = 1,
          .length = UINT32_MAX},
         REFUSAL_SIZE},
        {{.magic = HEADER_MAGIC,
          .version = HEADER_VERSION,
          .type = MESSAGE_HELLO,
          .sequence = 1,
          .length = 3},
         REFUSAL_BODY},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int fd = raw_connect(w, 1);
        uint64_t before = refused(w, bad[i].why);
        raw_frame(fd, bad[i].h);
        CHECK(UNTIL(w, raw_closed(fd)));
        CHECK_EQ(refused(w, bad[i].why), before + 1);
        close(fd);
    }
    int fd = raw_connect(w, 1);
    struct header h = frame(MESSAGE_HELLO, 1, HELLO_BYTES);
    uint8_t bytes[HEADER_BYTES];
    header_encode(&h, bytes);
    raw_say(fd, bytes, 20);
    close(fd);
    CHECK(UNTIL(w, refused(w, REFUSAL_TRUNCATED) == 1));
    check_alive(w, &p);
    world_end(w);
}

/* One frame that must not be, on a proper link: that link goes down at once, no other. */
static void check_bad_frame(struct world *w, struct header h, enum refusal why) {
    struct side *b = &w->sides[1];
    uint64_t before = refused(w, why);
    int downs = heard(b, INPUT_LINK_DOWN), messages = heard(b, INPUT_MESSAGE);
    int fd = raw_link(w);
    raw_frame(fd, frame(MESSAGE_TOCK, 1, 13));
    raw_frame(fd, h);
    CHECK(UNTIL(w, raw_closed(fd)));
    CHECK_EQ(refused(w, why), before + 1);
    CHECK_EQ(heard(b, INPUT_LINK_DOWN), downs + 1);
    CHECK_EQ(last(b, INPUT_LINK_DOWN)->peer, RAW);
    CHECK_EQ(heard(b, INPUT_MESSAGE), messages + 1);
    close(fd);
}

static void test_bad_frames(void) {
    struct world *w = world_begin(true, 0);
    struct pair p = link_pair(w, PURPOSE_TREE);
    struct header h = frame(MESSAGE_TOCK, 2, 13);
    check_bad_frame(w, frame(MESSAGE_HELLO, 2, HELLO_BYTES), REFUSAL_ROLE); /* twice */
    check_bad_frame(w, frame(MESSAGE_HELLO, 1, HELLO_BYTES), REFUSAL_ROLE);
    check_bad_frame(w, frame(MESSAGE_TICK, 2, 13), REFUSAL_ROLE); /* a child is no parent */
    check_bad_frame(w, frame(MESSAGE_TOCK, 4, 13), REFUSAL_GAP);
    check_bad_frame(w, frame(MESSAGE_TOCK, 2, 65), REFUSAL_SIZE);
    check_bad_frame(w, frame(MESSAGE_REQUEST, 2, UINT32_MAX), REFUSAL_SIZE);
    check_bad_frame(w, frame(MESSAGE_PUT, 1, 100), REFUSAL_LANE);
    h.lane = LANE_BULK;
    check_bad_frame(w, h, REFUSAL_LANE);
    h = frame(MESSAGE_TOCK, 2, 13);
    h.node = 0;
    check_bad_frame(w, h, REFUSAL_SENDER);
    h = frame(MESSAGE_TOCK, 2, 13);
    h.life++;
    check_bad_frame(w, h, REFUSAL_SENDER);
    h = frame(MESSAGE_TOCK, 2, 13);
    h.version = 0;
    check_bad_frame(w, h, REFUSAL_VERSION);
    h = frame(MESSAGE_TOCK, 2, 13);
    h.zero16 = 8;
    check_bad_frame(w, h, REFUSAL_MAGIC);
    struct side *a = &w->sides[0];
    int before = heard(a, INPUT_MESSAGE);
    send_one(&w->sides[1], p.link[1], MESSAGE_TICK, 20);
    CHECK(UNTIL(w, heard(a, INPUT_MESSAGE) > before));
    CHECK_EQ(heard(a, INPUT_LINK_DOWN), 0);
    world_end(w);
}

static void test_duplicates_are_dropped(void) {
    struct world *w = world_begin(false, 0);
    struct side *b = &w->sides[1];
    int fd = raw_link(w);
    static const uint32_t sequence[] = {1, 2, 2, 1, 3, 3, 3, 4};
    for (size_t i = 0; i < 8; i++)
        raw_frame(fd, frame(MESSAGE_TOCK, sequence[i], 13));
    CHECK(UNTIL(w, heard(b, INPUT_MESSAGE) == 4));
    CHECK_EQ(refused(w, REFUSAL_DUPLICATE), 4);
    CHECK_EQ(heard(b, INPUT_LINK_DOWN), 0);
    CHECK(!raw_closed(fd));
    close(fd);
    shutdown(w->raw_bulk, SHUT_RDWR);
    CHECK(UNTIL(w, heard(b, INPUT_LINK_DOWN) == 1));
    world_end(w);
}

static void test_end_inside_a_frame(void) {
    struct world *w = world_begin(true, 0);
    struct side *b = &w->sides[1];
    for (int i = 0; i < 2; i++) {
        int fd = raw_link(w);
        uint8_t bytes[HEADER_BYTES + 13] = {0};
        struct header h = frame(MESSAGE_TOCK, 1, 13);
        header_encode(&h, bytes);
        raw_say(fd, bytes, i == 0 ? 7 : HEADER_BYTES + 12);
        close(fd);
        CHECK(UNTIL(w, heard(b, INPUT_LINK_DOWN) == i + 1));
        CHECK_EQ(refused(w, REFUSAL_TRUNCATED), (uint64_t)i + 1);
    }
    CHECK_EQ(heard(b, INPUT_MESSAGE), 0);
    world_end(w);
}

/* ---- two lanes in our own hands ---- */

static void raw_slot(struct world *w, int fds[LANES], uint64_t token) {
    int ups = heard(&w->sides[1], INPUT_LINK_UP);
    for (int lane = 0; lane < LANES; lane++) {
        fds[lane] = raw_connect(w, 1);
        greet(fds[lane], greeting(PURPOSE_SLOT, (enum lane)lane, token));
        for (int i = 0; i < 3; i++)
            turn(w);
        CHECK_EQ(heard(&w->sides[1], INPUT_LINK_UP), ups + (lane == LANE_BULK));
    }
    CHECK(UNTIL(w, heard(&w->sides[1], INPUT_LINK_UP) == ups + 1));
}

/* It is up with its last lane and down with its first that breaks, or a while after one is closed. */
static void test_lanes_live_and_die_together(void) {
    for (int lane = 0; lane < LANES; lane++) {
        struct world *w = world_begin(false, 0);
        struct side *b = &w->sides[1];
        int fds[LANES];
        raw_slot(w, fds, 9);
        if (lane == 0) { /* with the answer to its HELLO unread: broken */
            close(fds[lane]);
        } else {
            CHECK(!raw_closed(fds[lane]));
            shutdown(fds[lane], SHUT_WR);
        }
        CHECK(UNTIL(w, heard(b, INPUT_LINK_DOWN) == 1));
        CHECK(UNTIL(w, raw_closed(fds[!lane])));
        CHECK_EQ(links_count(b->links), 0);
        close(fds[!lane]);
        if (lane != 0)
            close(fds[lane]);
        world_end(w);
    }
}

/* The same lane twice, lanes of two links, and frames before all lanes have been greeted. */
static void test_half_links(void) {
    struct world *w = world_begin(false, 0);
    struct side *b = &w->sides[1];
    int first = raw_connect(w, 1), again = raw_connect(w, 1), other = raw_connect(w, 1);
    greet(first, greeting(PURPOSE_SLOT, LANE_CONTROL, 9));
    CHECK(UNTIL(w, b->counts.accepted == 1));
    greet(again, greeting(PURPOSE_SLOT, LANE_CONTROL, 9));
    CHECK(UNTIL(w, raw_closed(again)));
    CHECK_EQ(refused(w, REFUSAL_DUPLICATE), 1);
    greet(other, greeting(PURPOSE_SLOT, LANE_BULK, 10));
    CHECK(UNTIL(w, b->counts.accepted == 2));
    CHECK_EQ(heard(b, INPUT_LINK_UP), 0);
    raw_frame(first, frame(MESSAGE_WANT, 1, 30));
    CHECK(UNTIL(w, raw_closed(first)));
    CHECK_EQ(refused(w, REFUSAL_ROLE), 1);
    CHECK(!raw_closed(other));
    close(first);
    first = raw_connect(w, 1);
    greet(first, greeting(PURPOSE_SLOT, LANE_CONTROL, 10));
    CHECK(UNTIL(w, heard(b, INPUT_LINK_UP) == 1));
    close(first);
    close(again);
    close(other);
    world_end(w);
}

/* ---- answers ---- */

/* Node 0 opens a link to RAW; the lanes in the order in which the HELLOs say. */
static void raw_accept(struct world *w, enum purpose purpose, int fds[LANES]) {
    open_link(&w->sides[0], RAW, purpose, 42);
    for (int i = 0; i < LANES; i++) {
        int fd = -1;
        uint8_t bytes[HEADER_BYTES + HELLO_BYTES];
        CHECK(UNTIL(w, (fd = address_accept(w->raw_listener)) >= 0));
        CHECK(UNTIL(w, recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) == sizeof bytes));
        union message m;
        CHECK_EQ(
            message_decode(MESSAGE_HELLO, bytes_of(bytes + HEADER_BYTES, HELLO_BYTES), NULL, &m),
            0);
        CHECK(m.hello.to == RAW && m.hello.purpose == purpose && m.hello.token == 1);
        fds[m.hello.lane] = fd;
    }
}

static struct greeting answer(enum purpose purpose, enum lane lane) {
    struct greeting g = greeting(purpose, lane, 1);
    g.m.to = 0;
    return g;
}

static void test_wrong_answers(void) {
    for (int i = 0; i < 8; i++) {
        struct world *w = world_begin(false, 0);
        struct side *a = &w->sides[0];
        int fds[LANES];
        raw_accept(w, PURPOSE_TREE, fds);
        struct greeting g = answer(PURPOSE_TREE, LANE_CONTROL);
        g.m.token += i == 1;
        g.m.key[0] ^= i == 2;
        g.m.to += i == 3;
        g.h.node = i == 4 ? 3 : g.h.node;
        g.m.purpose = i == 5 ? PURPOSE_SLOT : g.m.purpose;
        g.h.magic ^= i == 6;
        if (i == 7)
            close(fds[0]);
        else
            greet(fds[0], g);
        if (i == 0) {
            CHECK(UNTIL(w, heard(a, INPUT_LINK_UP) == 1));
        } else {
            CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == 1));
            CHECK_EQ(last(a, INPUT_LINK_DOWN)->link, 0);
            CHECK_EQ(last(a, INPUT_LINK_DOWN)->cookie, 42);
            CHECK_EQ(heard(a, INPUT_LINK_UP), 0);
        }
        if (i != 7)
            close(fds[0]);
        close(fds[1]);
        world_end(w);
    }
}

/* The bulk lane is quicker: its answer, and what comes behind it, count. */
static void test_bulk_answers_first(void) {
    struct world *w = world_begin(false, 0);
    struct side *a = &w->sides[0];
    int fds[LANES];
    raw_accept(w, PURPOSE_SLOT, fds);
    greet(fds[LANE_BULK], answer(PURPOSE_SLOT, LANE_BULK));
    raw_frame(fds[LANE_BULK], frame(MESSAGE_PUT, 1, 50));
    CHECK(UNTIL(w, a->puts == 1));
    CHECK_EQ(heard(a, INPUT_LINK_UP), 1);
    greet(fds[LANE_CONTROL], answer(PURPOSE_SLOT, LANE_CONTROL));
    raw_frame(fds[LANE_BULK], frame(MESSAGE_PUT, 2, 50));
    CHECK(UNTIL(w, a->puts == 2));
    CHECK_EQ(heard(a, INPUT_LINK_UP), 1);
    CHECK_EQ(heard(a, INPUT_LINK_DOWN), 0);
    close(fds[0]);
    close(fds[1]);
    world_end(w);
}

/* One lane was answered by a former life of the peer, or says something before it has answered. */
static void test_lanes_that_disagree(void) {
    for (int i = 0; i < 2; i++) {
        struct world *w = world_begin(false, 0);
        struct side *a = &w->sides[0];
        int fds[LANES];
        raw_accept(w, PURPOSE_SLOT, fds);
        greet(fds[LANE_CONTROL], answer(PURPOSE_SLOT, LANE_CONTROL));
        CHECK(UNTIL(w, heard(a, INPUT_LINK_UP) == 1));
        struct greeting g = answer(PURPOSE_SLOT, LANE_BULK);
        g.h.life++;
        if (i == 0)
            greet(fds[LANE_BULK], g);
        else
            raw_frame(fds[LANE_BULK], frame(MESSAGE_PUT, 1, 50));
        CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == 1));
        CHECK_EQ(a->counts.refused[i == 0 ? REFUSAL_SENDER : REFUSAL_ROLE], 1);
        CHECK_EQ(a->puts, 0);
        close(fds[0]);
        close(fds[1]);
        world_end(w);
    }
}

/* ---- too late, too many ---- */

static void test_silence(void) {
    struct world *w = world_begin(false, 30 * NS_PER_MS);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    struct pair p = link_pair(w, PURPOSE_TREE);
    int silent = raw_connect(w, 1);
    CHECK(UNTIL(w, raw_closed(silent)));
    CHECK_EQ(b->counts.strangers_dropped, 1);
    int half = raw_connect(w, 1);
    greet(half, greeting(PURPOSE_SLOT, LANE_BULK, 3));
    CHECK(UNTIL(w, raw_closed(half)));
    CHECK_EQ(b->counts.strangers_dropped, 2);
    int slow = raw_connect(w, 1); /* a byte now and then is no better */
    CHECK(UNTIL(w, send(slow, "S", 1, MSG_NOSIGNAL) < 0 || raw_closed(slow)));
    open_link(a, RAW, PURPOSE_TREE, 77);
    CHECK(UNTIL(w, heard(a, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(last(a, INPUT_LINK_DOWN)->link, 0);
    CHECK_EQ(last(a, INPUT_LINK_DOWN)->cookie, 77);
    int before = heard(b, INPUT_MESSAGE);
    send_one(a, p.link[0], MESSAGE_TOCK, 13); /* those who have said HELLO may be silent */
    CHECK(UNTIL(w, heard(b, INPUT_MESSAGE) > before));
    close(silent);
    close(half);
    close(slow);
    world_end(w);
}

static uint32_t descriptors(void) {
    uint32_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Silent strangers, then members that greet one lane of two: neither keeps a real peer out. */
static void check_flood(bool greeted) {
    enum { FLOOD = 700, MOST = 512 };
    static int fds[FLOOD];
    struct world *w = world_begin(false, 600 * NS_PER_S);
    struct side *b = &w->sides[1];
    uint32_t before = descriptors();
    for (uint32_t i = 0; i < FLOOD; i++) {
        fds[i] = raw_connect(w, 1);
        if (greeted)
            greet(fds[i], greeting(PURPOSE_SLOT, LANE_CONTROL, 100 + i));
        turn(w);
    }
    CHECK(UNTIL(w, b->counts.strangers_dropped == FLOOD - MOST));
    CHECK(descriptors() <= before + FLOOD + MOST);
    CHECK(raw_closed(fds[0]) && !raw_closed(fds[FLOOD - 1])); /* the oldest made room */
    struct pair p = link_pair(w, PURPOSE_SLOT);
    CHECK(p.link[0] != 0);
    for (uint32_t i = 0; i < FLOOD; i++)
        close(fds[i]);
    CHECK(UNTIL(w, descriptors() == before + 4));
    world_end(w);
}

static void test_floods(void) {
    check_flood(false);
    check_flood(true);
}

static void limit_descriptors(rlim_t limit) {
    struct rlimit r;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = limit < r.rlim_max ? limit : r.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
}

/* No descriptors are left. Strangers make room for each other and for what we open ourselves; who has
 * none to drop waits, and goes on when there are some again. */
static void test_no_descriptors(void) {
    enum { FLOOD = 20, LEFT = 5 };
    int fds[FLOOD];
    struct world *w = world_begin(false, 0);
    struct side *a = &w->sides[0], *b = &w->sides[1];
    for (int i = 0; i < FLOOD; i++)
        fds[i] = raw_connect(w, 1);
    limit_descriptors((rlim_t)fds[FLOOD - 1] + 1 + LEFT);
    /* The kernel wants a descriptor before it looks whether anybody is there: one more. */
    CHECK(UNTIL(w, b->counts.strangers_dropped == FLOOD - LEFT + 1));
    int taken = dup(w->raw_listener);
    CHECK(taken >= 0);
    open_link(b, 0, PURPOSE_TREE, 5);
    CHECK_EQ(b->counts.strangers_dropped, FLOOD - LEFT + 3); /* a lane each */
    for (int i = 0; i < 5; i++)
        turn(w);
    CHECK_EQ(heard(b, INPUT_LINK_DOWN) + heard(a, INPUT_LINK_UP), 0); /* nobody can accept it yet */
    limit_descriptors(RLIM_INFINITY);
    CHECK(UNTIL(w, heard(b, INPUT_LINK_UP) == 1 && heard(a, INPUT_LINK_UP) == 1));
    close(taken);
    for (int i = 0; i < FLOOD; i++)
        close(fds[i]);
    world_end(w);
}

int main(void) {
    limit_descriptors(RLIM_INFINITY);
    TEST(test_life_of_a_link);
    TEST(test_closed_for_a_reason);
    TEST(test_two_lanes);
    TEST(test_a_put_that_is_refused);
    TEST(test_numbers_are_not_reused_early);
    TEST(test_nobody_there);
    TEST(test_full_door);
    TEST(test_trying_again_at_once);
    TEST(test_bad_hellos);
    TEST(test_not_even_hello);
    TEST(test_bad_frames);
    TEST(test_duplicates_are_dropped);
    TEST(test_end_inside_a_frame);
    TEST(test_lanes_live_and_die_together);
    TEST(test_half_links);
    TEST(test_wrong_answers);
    TEST(test_bulk_answers_first);
    TEST(test_lanes_that_disagree);
    TEST(test_silence);
    TEST(test_floods);
    TEST(test_no_descriptors);
    return tap_finish();
}
