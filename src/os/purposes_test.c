/* SPDX-License-Identifier: MIT */
/* Links of a node with processes that are no other node: its launcher, and clients.
 *
 * A manager, a launcher of the same number and clients without one live in one loop. Who is not
 * what its link's purpose wants is refused; who does not read is left alone. */
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

#include "os/links.h"
#include "turns.h"
#include "wire/message.h"

enum { SEAT = 3, CLIENTS = 3, LOG_MAX = 256 };

/* The manager's process, its launcher's, then clients'. */
enum { MANAGER, LAUNCHER, CLIENT, PROCESSES = CLIENT + CLIENTS };

static const uint64_t key[2] = {0x1122334455667788, 0x99aabbccddeeff00};

struct heard {
    enum input_kind kind;
    enum purpose purpose;
    uint32_t link, peer;
    uint64_t cookie;
    enum role role;
    uint16_t type;
    size_t len;
    uint32_t sum; /* of the body's bytes */
};

struct process {
    struct links *links;
    struct link_counts counts;
    struct heard log[LOG_MAX];
    int count;
};

struct world {
    struct loop loop;
    char folder[PATH_MAX];
    struct address book[SEAT + 1];
    struct address launcher;
    struct process processes[PROCESSES];
};

static uint32_t sum_of(struct bytes b) {
    uint32_t sum = 0;
    for (size_t i = 0; i < b.len; i++)
        sum = sum * 31 + b.at[i];
    return sum;
}

static void on_feed(void *context, enum purpose purpose, const struct input *in) {
    struct process *p = context;
    struct heard h = {.kind = in->kind, .purpose = purpose};
    if (in->kind == INPUT_MESSAGE) {
        h.link = in->message.link;
        h.peer = in->message.peer;
        h.type = in->message.type;
        h.len = in->message.body.len;
        h.sum = sum_of(in->message.body);
    } else {
        h.link = in->link.link;
        h.peer = in->link.peer;
        h.cookie = in->link.cookie;
        h.role = in->link.role;
    }
    if (CHECK(p->count < LOG_MAX))
        p->log[p->count++] = h;
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    (void)context;
    (void)link;
    (void)put;
    return REFUSAL_BODY;
}

static struct links_config common(struct world *w, struct process *p) {
    return (struct links_config){.loop = &w->loop,
                                 .life = 7,
                                 .key = {key[0], key[1]},
                                 .listener = -1,
                                 .frame_bytes_max = 8 * MIB,
                                 .counts = &p->counts,
                                 .feed = on_feed,
                                 .put = on_put,
                                 .context = p};
}

static int listen_at(struct address *a, const char *form, const char *folder, const char *name) {
    char text[PATH_MAX + 64];
    snprintf(text, sizeof text, "%s:%s/%s", form, folder, name);
    CHECK_EQ(address_parse(a, text), 0);
    int fd = address_listen(a);
    CHECK(fd >= 0);
    return fd;
}

static void begin_client(struct world *w, int i, const struct address *manager) {
    struct process *p = &w->processes[i];
    struct links_config c = common(w, p);
    c.self = NO_NODE;
    c.book = manager;
    c.first = SEAT;
    c.nodes = 1;
    p->links = links_new(&c);
    CHECK(p->links != NULL);
}

static struct world *world_begin(const char *form, uint64_t client_bytes_max) {
    struct world *w = calloc(1, sizeof *w);
    struct process *m = &w->processes[MANAGER], *l = &w->processes[LAUNCHER];
    folder_make(w->folder);
    CHECK_EQ(loop_init(&w->loop), 0);
    struct links_config c = common(w, m);
    c.self = SEAT;
    c.book = w->book;
    c.nodes = SEAT + 1;
    c.launcher = &w->launcher;
    c.accepts = 1U << PURPOSE_CLIENT;
    c.listener = listen_at(&w->book[SEAT], "unix", w->folder, "manager");
    c.client_bytes_max = client_bytes_max;
    m->links = links_new(&c);
    c = common(w, l);
    c.self = SEAT;
    c.accepts = 1U << PURPOSE_LAUNCHER;
    c.listener = listen_at(&w->launcher, form, w->folder, "launcher");
    l->links = links_new(&c);
    CHECK(m->links != NULL && l->links != NULL);
    for (int i = CLIENT; i < PROCESSES; i++)
        begin_client(w, i, &w->book[SEAT]);
    return w;
}

static void world_end(struct world *w) {
    for (int i = 0; i < PROCESSES; i++)
        links_free(w->processes[i].links);
    loop_fini(&w->loop);
    folder_remove(w->folder);
    free(w);
}

static void settle(struct world *w) {
    for (int i = 0; i < PROCESSES; i++)
        links_settle(w->processes[i].links);
}

#define UNTIL(w, condition) TURN_UNTIL(&(w)->loop, settle(w), condition)

static int heard(const struct process *p, enum input_kind kind) {
    int count = 0;
    for (int i = 0; i < p->count; i++)
        count += p->log[i].kind == kind;
    return count;
}

static const struct heard *last(const struct process *p, enum input_kind kind) {
    static const struct heard none;
    for (int i = p->count; i-- > 0;)
        if (p->log[i].kind == kind)
            return &p->log[i];
    return &none;
}

static void open_link(struct process *p, uint32_t node, enum purpose purpose, uint64_t cookie) {
    links_open(p->links, &(struct effect_open){.node = node, .purpose = purpose, .cookie = cookie});
}

static void send_bytes(struct process *p, uint32_t link, uint16_t type, struct bytes body) {
    links_send(p->links,
               &(struct effect_send){.links = &link, .link_count = 1, .type = type, .tail = body});
}

static void send_one(struct process *p, uint32_t link, uint16_t type, size_t len) {
    static const uint8_t zero[512 * KIB];
    send_bytes(p, link, type, bytes_of(zero, len));
}

/* A link of the manager with its launcher or of a client with the manager; both ends' numbers. */
struct pair {
    struct process *opener, *other;
    uint32_t link, other_link;
};

static struct pair link_up(struct world *w, int opener, int other, enum purpose purpose) {
    struct pair p = {.opener = &w->processes[opener], .other = &w->processes[other]};
    int ups = heard(p.opener, INPUT_LINK_UP), other_ups = heard(p.other, INPUT_LINK_UP);
    open_link(p.opener, SEAT, purpose, 42);
    CHECK(UNTIL(w,
                heard(p.opener, INPUT_LINK_UP) > ups && heard(p.other, INPUT_LINK_UP) > other_ups));
    p.link = last(p.opener, INPUT_LINK_UP)->link;
    p.other_link = last(p.other, INPUT_LINK_UP)->link;
    return p;
}

/* ---- who is who ---- */

static void check_launcher(const char *form) {
    struct world *w = world_begin(form, 0);
    struct pair p = link_up(w, MANAGER, LAUNCHER, PURPOSE_LAUNCHER);
    const struct heard *up = last(p.opener, INPUT_LINK_UP);
    CHECK(up->peer == SEAT && up->role == ROLE_LAUNCHER && up->purpose == PURPOSE_LAUNCHER);
    CHECK_EQ(up->cookie, 42);
    up = last(p.other, INPUT_LINK_UP);
    CHECK(up->peer == SEAT && up->role == ROLE_KEEPER && up->purpose == PURPOSE_LAUNCHER);
    send_one(p.opener, p.link, MESSAGE_COMMAND, 20);
    send_one(p.other, p.other_link, MESSAGE_ENDED, 30);
    CHECK(UNTIL(w, heard(p.opener, INPUT_MESSAGE) == 1 && heard(p.other, INPUT_MESSAGE) == 1));
    CHECK_EQ(last(p.opener, INPUT_MESSAGE)->purpose, PURPOSE_LAUNCHER);
    send_one(p.opener, p.link, MESSAGE_ENDED, 30); /* a manager is no launcher */
    CHECK(UNTIL(w, heard(p.opener, INPUT_LINK_DOWN) == 1 && heard(p.other, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(p.other->counts.refused[REFUSAL_ROLE], 1);
    world_end(w);
}

static void test_launcher(void) {
    check_launcher("seqpacket");
    check_launcher("unix");
}

static void test_client(void) {
    struct world *w = world_begin("unix", 0);
    struct pair a = link_up(w, CLIENT, MANAGER, PURPOSE_CLIENT);
    struct pair b = link_up(w, CLIENT + 1, MANAGER, PURPOSE_CLIENT);
    CHECK(a.other_link != b.other_link);
    const struct heard *up = last(a.opener, INPUT_LINK_UP);
    CHECK(up->peer == SEAT && up->role == ROLE_MANAGER && up->purpose == PURPOSE_CLIENT);
    up = last(a.other, INPUT_LINK_UP);
    CHECK(up->peer == NO_NODE && up->role == ROLE_CLIENT && up->purpose == PURPOSE_CLIENT);
    send_one(a.opener, a.link, MESSAGE_ASK, 40);
    CHECK(UNTIL(w, heard(a.other, INPUT_MESSAGE) == 1));
    const struct heard *ask = last(a.other, INPUT_MESSAGE);
    CHECK(ask->peer == NO_NODE && ask->link == a.other_link && ask->purpose == PURPOSE_CLIENT);
    send_one(b.other, b.other_link, MESSAGE_OUTPUT, 100);
    CHECK(UNTIL(w, heard(b.opener, INPUT_MESSAGE) == 1));
    CHECK_EQ(heard(a.opener, INPUT_MESSAGE), 0);
    send_one(a.opener, a.link, MESSAGE_TOCK, 13); /* a client is no child */
    CHECK(UNTIL(w, heard(a.other, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(last(a.other, INPUT_LINK_DOWN)->link, a.other_link);
    CHECK_EQ(a.other->counts.refused[REFUSAL_ROLE], 1);
    send_one(b.opener, b.link, MESSAGE_ASK, 40);
    CHECK(UNTIL(w, heard(b.other, INPUT_MESSAGE) == 2));
    world_end(w);
}

/* The lanes of clients that come at the same time are not mixed up, though all have one number, life
 * and count of links. */
static void test_clients_at_once(void) {
    struct world *w = world_begin("unix", 0);
    for (int i = 0; i < CLIENTS; i++)
        open_link(&w->processes[CLIENT + i], SEAT, PURPOSE_CLIENT, 1);
    CHECK(UNTIL(w, heard(&w->processes[MANAGER], INPUT_LINK_UP) == CLIENTS));
    CHECK_EQ(w->processes[MANAGER].counts.refused[REFUSAL_DUPLICATE], 0);
    for (int i = 0; i < CLIENTS; i++) {
        struct process *p = &w->processes[CLIENT + i];
        CHECK(UNTIL(w, heard(p, INPUT_LINK_UP) == 1));
        send_one(p, last(p, INPUT_LINK_UP)->link, MESSAGE_ASK, 10 + (size_t)i);
        CHECK(UNTIL(w, heard(&w->processes[MANAGER], INPUT_MESSAGE) == i + 1));
        uint32_t link = last(&w->processes[MANAGER], INPUT_MESSAGE)->link;
        send_one(&w->processes[MANAGER], link, MESSAGE_OUTPUT, 100 + (size_t)i);
        CHECK(UNTIL(w, heard(p, INPUT_MESSAGE) == 1));
        CHECK_EQ(last(p, INPUT_MESSAGE)->len, 100 + i);
    }
    world_end(w);
}

/* ---- who may not ---- */

/* A process says HELLO to the manager or the launcher, and is not let in. */
static void check_refused(struct world *w, const struct address *to, uint32_t self,
                          enum purpose purpose) {
    struct process *p = calloc(1, sizeof *p);
    struct address book[SEAT + 1];
    for (int i = 0; i <= SEAT; i++)
        book[i] = *to;
    struct links_config c = common(w, p);
    c.self = self;
    c.book = book;
    c.nodes = SEAT + 1;
    p->links = links_new(&c);
    CHECK(p->links != NULL);
    open_link(p, SEAT, purpose, 5);
    CHECK(
        TURN_UNTIL(&w->loop, (settle(w), links_settle(p->links)), heard(p, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(heard(p, INPUT_LINK_UP), 0);
    links_free(p->links);
    free(p);
}

static void test_numbers_that_do_not_fit(void) {
    struct world *w = world_begin("unix", 0);
    const struct link_counts *m = &w->processes[MANAGER].counts;
    const struct link_counts *l = &w->processes[LAUNCHER].counts;
    check_refused(w, &w->book[SEAT], 0, PURPOSE_CLIENT);     /* a node is no client */
    check_refused(w, &w->book[SEAT], 0, PURPOSE_TREE);       /* not accepted */
    check_refused(w, &w->book[SEAT], NO_NODE, PURPOSE_TREE); /* nor from whom is no node */
    CHECK(m->refused[REFUSAL_SENDER] >= 3);
    check_refused(w, &w->launcher, NO_NODE, PURPOSE_CLIENT); /* a launcher has no clients */
    CHECK(l->refused[REFUSAL_SENDER] >= 1);
    CHECK_EQ(m->accepted + l->accepted, 0);
    struct pair p = link_up(w, MANAGER, LAUNCHER, PURPOSE_LAUNCHER);
    CHECK(p.link != 0);
    world_end(w);
}

/* Only a node's own launcher can be asked for, and only if there is one. */
static void test_launchers_that_are_not_there(void) {
    struct world *w = world_begin("unix", 0);
    struct process *m = &w->processes[MANAGER], *l = &w->processes[LAUNCHER];
    open_link(m, 0, PURPOSE_LAUNCHER, 8);
    CHECK(UNTIL(w, heard(m, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(last(m, INPUT_LINK_DOWN)->cookie, 8);
    CHECK_EQ(last(m, INPUT_LINK_DOWN)->purpose, PURPOSE_LAUNCHER);
    open_link(l, SEAT, PURPOSE_LAUNCHER, 9);
    CHECK(UNTIL(w, heard(l, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(l->counts.accepted, 0);
    world_end(w);
}

/* The key alone is not enough for another user of this machine. */
static void test_another_user(void) {
    enum { NOBODY = 65534 };
    struct world *w = world_begin("unix", 0);
    CHECK_EQ(chmod(w->folder, 0755), 0);
    CHECK_EQ(chmod(w->book[SEAT].local.sun_path, 0777), 0);
    struct process *c = &w->processes[CLIENT], *m = &w->processes[MANAGER];
    CHECK_EQ(seteuid(NOBODY), 0);
    open_link(c, SEAT, PURPOSE_CLIENT, 5);
    CHECK_EQ(seteuid(0), 0);
    CHECK(UNTIL(w, heard(c, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(last(c, INPUT_LINK_DOWN)->cookie, 5);
    CHECK(m->counts.refused[REFUSAL_SENDER] >= 1);
    CHECK_EQ(heard(m, INPUT_LINK_UP), 0);
    CHECK_EQ(seteuid(NOBODY), 0); /* now it is the manager's user */
    open_link(c, SEAT, PURPOSE_CLIENT, 6);
    CHECK(UNTIL(w, heard(m, INPUT_LINK_UP) == 1));
    CHECK_EQ(seteuid(0), 0);
    open_link(c, SEAT, PURPOSE_CLIENT, 7);
    CHECK(UNTIL(w, heard(m, INPUT_LINK_UP) == 2));
    world_end(w);
}

/* ---- much ---- */

/* Frames of all sizes around those of packets, both ways: each arrives whole. */
static void check_large_frames(const char *form) {
    static const size_t sizes[] = {0,     1,      65535,  65536,  65537, 65504,
                                   65505, 100000, 131072, 500000, 7,     512 * KIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static uint8_t bytes[512 * KIB + SIZES];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 2654435761U >> 13);
    struct world *w = world_begin(form, 0);
    struct pair p = link_up(w, MANAGER, LAUNCHER, PURPOSE_LAUNCHER);
    int first = p.other->count;
    for (int i = 0; i < SIZES; i++)
        send_bytes(p.opener, p.link, MESSAGE_SETUP, bytes_of(bytes + i, sizes[i] - (i != 0)));
    for (int i = 0; i < 40; i++)
        send_bytes(p.other, p.other_link, MESSAGE_OUTPUT, bytes_of(bytes + i, 128 * KIB - 50));
    CHECK(UNTIL(w, heard(p.other, INPUT_MESSAGE) == SIZES && heard(p.opener, INPUT_MESSAGE) == 40));
    for (int i = 0; i < SIZES; i++) {
        CHECK_EQ(p.other->log[first + i].len, sizes[i] - (i != 0));
        CHECK_EQ(p.other->log[first + i].sum, sum_of(bytes_of(bytes + i, sizes[i] - (i != 0))));
    }
    CHECK_EQ(last(p.opener, INPUT_MESSAGE)->sum, sum_of(bytes_of(bytes + 39, 128 * KIB - 50)));
    for (int i = 0; i < 40; i++)
        send_bytes(p.other, p.other_link, MESSAGE_OUTPUT, bytes_of(bytes + i, 128 * KIB - 50));
    links_close(p.other->links, p.other_link, REFUSAL_NONE); /* what was sent before arrives */
    CHECK(UNTIL(w, heard(p.opener, INPUT_LINK_DOWN) == 1));
    CHECK_EQ(heard(p.opener, INPUT_MESSAGE), 80);
    CHECK_EQ(p.opener->counts.refused[REFUSAL_TRUNCATED], 0);
    world_end(w);
}

static void test_large_frames(void) {
    check_large_frames("seqpacket");
    check_large_frames("unix");
}

/* A client in the test's hands, so that it can stop reading: both lanes, greeted. */
static void raw_client(struct world *w, int fds[LANES]) {
    int done;
    for (int lane = 0; lane < LANES; lane++) {
        uint8_t bytes[HEADER_BYTES + 64];
        union message m = {.hello = {.key = {key[0], key[1]},
                                     .to = SEAT,
                                     .purpose = PURPOSE_CLIENT,
                                     .lane = (uint8_t)lane,
                                     .token = 1234567}};
        long len = message_encode(MESSAGE_HELLO, &m, room_of(bytes + HEADER_BYTES, 64));
        struct header h = {.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .type = MESSAGE_HELLO,
                           .length = (uint32_t)len,
                           .sequence = 1,
                           .node = NO_NODE,
                           .life = 99};
        header_encode(&h, bytes);
        fds[lane] = address_connect(&w->book[SEAT], &done);
        CHECK(fds[lane] >= 0);
        CHECK_EQ(send(fds[lane], bytes, HEADER_BYTES + (size_t)len, MSG_NOSIGNAL),
                 HEADER_BYTES + len);
    }
    int ups = heard(&w->processes[MANAGER], INPUT_LINK_UP);
    CHECK(UNTIL(w, heard(&w->processes[MANAGER], INPUT_LINK_UP) > ups));
}

/* Answers to others while so much waits for one that does not read; in its end, if there is one. */
static void check_slow_client(uint64_t limit, int count, bool given_up) {
    struct world *w = world_begin("unix", limit);
    struct process *m = &w->processes[MANAGER];
    struct pair other = link_up(w, CLIENT, MANAGER, PURPOSE_CLIENT);
    struct pair launcher = link_up(w, MANAGER, LAUNCHER, PURPOSE_LAUNCHER);
    int fds[LANES];
    raw_client(w, fds);
    uint32_t slow = last(m, INPUT_LINK_UP)->link;
    for (int i = 0; i < count; i++) {
        int before = heard(other.opener, INPUT_MESSAGE), l = heard(launcher.other, INPUT_MESSAGE);
        for (int k = 0; k < 16; k++)
            send_one(m, slow, MESSAGE_OUTPUT, 100 * KIB);
        send_one(m, other.other_link, MESSAGE_NEWS, 50);
        send_one(m, launcher.link, MESSAGE_COMMAND, 20);
        CHECK(UNTIL(w, heard(other.opener, INPUT_MESSAGE) == before + 1 &&
                           heard(launcher.other, INPUT_MESSAGE) == l + 1));
    }
    if (given_up) {
        CHECK(UNTIL(w, heard(m, INPUT_LINK_DOWN) == 1));
        CHECK_EQ(last(m, INPUT_LINK_DOWN)->link, slow);
    }
    CHECK_EQ(heard(m, INPUT_LINK_DOWN), given_up);
    CHECK_EQ(heard(other.opener, INPUT_LINK_DOWN) + heard(launcher.other, INPUT_LINK_DOWN), 0);
    close(fds[0]);
    close(fds[1]);
    CHECK(UNTIL(w, heard(m, INPUT_LINK_DOWN) == 1));
    world_end(w);
}

static void test_slow_clients(void) {
    check_slow_client(0, 10, false);      /* 16 MiB wait */
    check_slow_client(8 * MIB, 10, true); /* but no more than the limit */
}

int main(void) {
    TEST(test_launcher);
    TEST(test_client);
    TEST(test_clients_at_once);
    TEST(test_numbers_that_do_not_fit);
    TEST(test_launchers_that_are_not_there);
    if (geteuid() == 0)
        TEST(test_another_user);
    else
        SKIP("test_another_user", "needs root");
    TEST(test_large_frames);
    TEST(test_slow_clients);
    return tap_finish();
}
