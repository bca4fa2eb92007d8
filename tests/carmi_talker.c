/* SPDX-License-Identifier: MIT */
/* A program whose processes send messages to each other, for tests/e2e/messages.py: the scene that it is named. What it finds it prints, a
 * line each: what, and yes or no. "child" is what a scene talks to: it does as the tags say. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/carmi_inside.h"
#include "os/address.h"

enum { ECHO = 1, ORDER, ORDERED, WHO, DEAF, LEAVE, QUIT, OURS };
enum { ROUNDS = 1000, MESSAGES = 10000, PATIENCE_MS = 60000, LARGE = 16 << 20 };

static struct carmi *c;
static struct carmi_message m;
static uint8_t block[LARGE + 1];

static bool check(const char *what, bool holds) {
    printf("%s: %s\n", what, holds ? "yes" : "no");
    fflush(stdout);
    return holds;
}

/* The next data, other messages are passed over; or the next message of a request, others are kept. */
static bool hears(enum carmi_kind kind, carmi_request request) {
    if (kind != CARMI_DATA)
        return carmi_wait(c, request, &m, PATIENCE_MS) == 1 && m.kind == kind;
    while (carmi_receive(c, &m, PATIENCE_MS) == 1)
        if (m.kind == kind)
            return true;
    return false;
}

/* Where there is no room for it: when there is. */
static carmi_request sends(carmi_process to, int tag, const void *data, size_t bytes) {
    for (;;) {
        carmi_request r = carmi_send(c, to, tag, data, bytes);
        if (r != -EAGAIN)
            return r;
        if (carmi_receive(c, &m, PATIENCE_MS) != 1)
            return -ETIMEDOUT;
    }
}

static bool is_sent(carmi_request r, int error) {
    return r > 0 && carmi_wait(c, r, &m, PATIENCE_MS) == 1 && m.kind == CARMI_SENT && m.last &&
           m.error == error && m.success == (error == 0);
}

/* ---- what is sent in order ---- */

static size_t size_of(uint32_t number) {
    uint32_t drawn = number * 2654435761U;
    return number % 500 == 0 ? 200000 + drawn % 100000 : 4 + drawn % (number % 7 == 0 ? 9000 : 200);
}

static uint8_t byte_of(uint32_t number, size_t at) {
    return (uint8_t)(number * 31 + at * 7);
}

static void fill(uint32_t number, uint8_t *to, size_t len) {
    for (size_t i = 4; i < len; i++)
        to[i] = byte_of(number, i);
    store_le32(to, number);
}

static bool is_next(uint32_t number) {
    const uint8_t *at = m.data;
    if (m.bytes != size_of(number) || load_le32(at) != number)
        return false;
    for (size_t i = 4; i < m.bytes; i++)
        if (at[i] != byte_of(number, i))
            return false;
    return true;
}

/* ---- the child ---- */

static _Noreturn int child(void) {
    uint32_t next = 0;
    uint64_t ids[2] = {carmi_self(c), carmi_parent(c)};
    while (carmi_receive(c, &m, -1) == 1) {
        carmi_process from = m.process;
        if (m.kind != CARMI_DATA)
            continue;
        if (m.tag == ECHO)
            sends(from, ECHO, m.data, m.bytes);
        if (m.tag == ORDER && is_next(next) && ++next == MESSAGES) {
            sends(from, ORDERED, &next, sizeof next);
            next = 0;
        }
        if (m.tag == WHO)
            carmi_send(c, from, WHO, ids, sizeof ids);
        if (m.tag == DEAF)
            for (;;)
                pause();
        if (m.tag == LEAVE)
            break;
        if (m.tag == QUIT)
            _exit(5);
    }
    carmi_exit(c);
    exit(0);
}

/* ---- with one child ---- */

static void pings(carmi_process to) {
    bool good = true;
    for (uint32_t i = 0; good && i < ROUNDS; i++) {
        fill(i, block, 100);
        good = carmi_send(c, to, ECHO, block, 100) > 0 && hears(CARMI_DATA, 0) && m.tag == ECHO &&
               m.process == to && m.request == 0 && m.bytes == 100 &&
               memcmp(m.data, block, 100) == 0;
    }
    check("a thousand there and back", good);
    check("an empty one", carmi_send(c, to, ECHO, NULL, 0) > 0 && hears(CARMI_DATA, 0) &&
                              m.bytes == 0 && m.tag == ECHO);
}

/* By the descriptor alone: between two looks at it one message is taken, or all there are, or something is sent. */
static void by_poll(carmi_process to) {
    uint32_t sent = 0, heard = 0;
    struct pollfd fd = {.fd = carmi_fd(c), .events = POLLIN};
    while (heard < ROUNDS) {
        if (sent < ROUNDS && sent - heard < 1 + heard % 5 && carmi_send(c, to, ECHO, "word", 4) > 0)
            sent++;
        if (sent - heard < 1 + heard % 5 && sent < ROUNDS)
            continue;
        if (poll(&fd, 1, PATIENCE_MS) <= 0)
            break;
        while (carmi_next(c, &m) == 1) {
            heard += m.kind == CARMI_DATA;
            if (heard % 3 == 0)
                break;
        }
    }
    check("a thousand more, by poll", heard == ROUNDS && sent == ROUNDS);
}

static void in_order(carmi_process to) {
    bool good = true;
    for (uint32_t i = 0; good && i < MESSAGES; i++) {
        fill(i, block, size_of(i));
        good = sends(to, ORDER, block, size_of(i)) > 0;
    }
    check("ten thousand are sent", good);
    check("and come in order", hears(CARMI_DATA, 0) && m.tag == ORDERED && m.process == to);
}

static void large(carmi_process to) {
    for (size_t i = 0; i < LARGE; i++)
        block[i] = byte_of(3, i);
    check("the largest is sent",
          is_sent(carmi_send(c, to, ECHO, block, LARGE), 0) && m.process == to && m.count == 1);
    check("and comes back",
          hears(CARMI_DATA, 0) && m.bytes == LARGE && memcmp(m.data, block, LARGE) == 0);
    check("none is larger", carmi_send(c, to, ECHO, block, LARGE + 1) == -EMSGSIZE);
}

/* How the library talks to it. */
static bool is_near(carmi_process to) {
    LIST_EACH (l, &c->post.links) {
        const struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->peer != NULL && link->peer->id == to && link->up)
            return link->near;
    }
    return false;
}

/* ---- ranks of one program ---- */

static int play_ranks(bool near) {
    carmi_process self = carmi_self(c), other = self | (carmi_process)1 << 32;
    if (self >> 32 != 0)
        child();
    check("nobody has spawned it", carmi_parent(c) == 0);
    check("the other is sent to", is_sent(carmi_send(c, other, WHO, "", 0), 0));
    check("it knows who it is", hears(CARMI_DATA, 0) && m.tag == WHO && m.bytes == 16 &&
                                    load_le64(m.data) == other && m.process == other);
    bool found[2] = {false, false};
    hears(CARMI_PEERS, carmi_peers(c, OURS));
    for (size_t i = 0; i < m.process_count; i++) {
        found[0] = found[0] || m.processes[i].id == self;
        found[1] = found[1] || m.processes[i].id == other;
    }
    check("both are listed", m.process_count == 2 && found[0] && found[1]);
    check("to itself", carmi_send(c, self, OURS, "word", 4) > 0 && hears(CARMI_DATA, 0) &&
                           m.process == self && m.tag == OURS && memcmp(m.data, "word", 4) == 0);
    check(near ? "on the same node" : "on another machine", is_near(other) == near);
    pings(other);
    by_poll(other);
    in_order(other);
    large(other);
    check("it is asked to leave",
          is_sent(carmi_send(c, other, LEAVE, "", 0), 0) || m.error == ESRCH);
    check("and is gone", is_sent(carmi_send(c, other, ECHO, "", 0), ESRCH));
    check("there is no such rank",
          is_sent(carmi_send(c, self | (carmi_process)9 << 32, ECHO, "", 0), ESRCH));
    check("there is no such process", is_sent(carmi_send(c, 70000, ECHO, "", 0), ESRCH));
    return 0;
}

static int ranks(void) {
    return play_ranks(true);
}

static int apart(void) {
    return play_ranks(false);
}

/* ---- processes on hosts ---- */

static char *self_name;

static carmi_host grow(const char *name, unsigned processors, const char *need) {
    carmi_define_class(
        c, &(struct carmi_class){.name = name, .expression = need, .processors = processors}, OURS);
    return hears(CARMI_HOSTS_ADDED, carmi_addhosts(c, name, 1, 1, OURS)) && m.host_count == 1
               ? m.hosts[0]
               : 0;
}

static carmi_process spawn(carmi_host host, carmi_request *ret_request) {
    char *argv[] = {self_name, "child", NULL};
    *ret_request = carmi_host_spawn(c, self_name, argv, host, OURS);
    return hears(CARMI_SPAWNED, *ret_request) && m.success ? m.process : 0;
}

static int family(void) {
    carmi_request life;
    carmi_host host = grow("any", 1, "");
    carmi_process to = spawn(host, &life);
    check("a process is started", host != 0 && to != 0);
    check("it is sent to at once", is_sent(carmi_send(c, to, WHO, "", 0), 0));
    check("it knows its parent", hears(CARMI_DATA, 0) && m.tag == WHO && m.bytes == 16 &&
                                     load_le64(m.data) == to &&
                                     load_le64((const uint8_t *)m.data + 8) == carmi_self(c));
    check("on another node", !is_near(to));
    pings(to);
    by_poll(to);
    in_order(to);
    large(to);
    carmi_send(c, to, QUIT, "", 0);
    check("it ends", hears(CARMI_EXITED, life) && m.status == 5);
    check("then it cannot be sent to", is_sent(carmi_send(c, to, ECHO, "", 0), ESRCH));
    life = carmi_host_spawn(c, "true", NULL, host, OURS);
    check("another says nothing", hears(CARMI_SPAWNED, life));
    check("it is waited for until it ends", is_sent(carmi_send(c, m.process, ECHO, "", 0), ESRCH));
    return 0;
}

enum { CLASS = 8 };

static bool word_from_each(const carmi_process *to, size_t count) {
    size_t heard = 0;
    for (size_t i = 0; i < count && hears(CARMI_DATA, 0); i++)
        for (size_t k = 0; k < count; k++)
            heard += m.process == to[k] && m.tag == ECHO && m.bytes == 4;
    return heard == count;
}

static int classes(void) {
    carmi_request life, late;
    carmi_process to[CLASS + 1];
    carmi_host host = grow("many", CLASS + 1, ""), other = grow("other", 1, "");
    for (size_t i = 0; i < CLASS; i++)
        to[i] = spawn(host, &life);
    carmi_process apart = spawn(other, &life);
    for (size_t i = 0; i < CLASS; i++)
        is_sent(carmi_send(c, to[i], ECHO, "here", 4), 0); /* it has called carmi_init */
    check("eight are there", word_from_each(to, CLASS));
    check("a class is told", is_sent(carmi_broadcast(c, "many", ECHO, "word", 4), 0) &&
                                 m.count == CLASS && m.process == 0);
    check("each of it hears it", word_from_each(to, CLASS));
    is_sent(carmi_send(c, apart, ECHO, "here", 4), 0);
    check("one of another class does not",
          hears(CARMI_DATA, 0) && m.process == apart && memcmp(m.data, "here", 4) == 0);
    carmi_broadcast(c, "many", ECHO, "once", 4);
    to[CLASS] = spawn(host, &late);
    is_sent(carmi_send(c, to[CLASS], ECHO, "late", 4), 0);
    size_t once = 0, of_late = 0;
    for (size_t i = 0; i < CLASS + 1 && hears(CARMI_DATA, 0); i++) {
        once += memcmp(m.data, "once", 4) == 0;
        of_late += m.process == to[CLASS] && memcmp(m.data, "late", 4) == 0;
    }
    check("who comes later does not hear it", once == CLASS && of_late == 1);
    check("an order is kept behind a broadcast",
          carmi_broadcast(c, "other", ECHO, "1st ", 4) > 0 &&
              carmi_send(c, apart, ECHO, "2nd ", 4) > 0 && hears(CARMI_DATA, 0) &&
              memcmp(m.data, "1st ", 4) == 0 && hears(CARMI_DATA, 0) &&
              memcmp(m.data, "2nd ", 4) == 0);
    carmi_send(c, to[CLASS], QUIT, "", 0);
    hears(CARMI_EXITED, late);
    check("all are told",
          is_sent(carmi_broadcast(c, NULL, ECHO, "word", 4), 0) && m.count == CLASS + 1);
    check("nobody is of that class",
          is_sent(carmi_broadcast(c, "none", ECHO, "word", 4), 0) && m.count == 0);
    return 0;
}

/* The line that the test answers with. */
static void wait_for_line(const char *what) {
    char line[64];
    printf("%s\n", what);
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL)
        exit(1);
}

static int survives(void) {
    carmi_request life;
    carmi_host host = grow("any", 2, "");
    carmi_process to = spawn(host, &life);
    is_sent(carmi_send(c, to, ECHO, "word", 4), 0);
    hears(CARMI_DATA, 0);
    carmi_request ready =
        carmi_host_spawn(c, self_name, (char *[]){self_name, "child", NULL}, host, OURS);
    hears(CARMI_SPAWNED, ready);
    carmi_process second = m.process;
    wait_for_line("kill");
    check("what was connected goes on",
          carmi_send(c, to, ECHO, "word", 4) > 0 && hears(CARMI_DATA, 0) && m.process == to);
    check("what was not is found", carmi_send(c, second, ECHO, "word", 4) > 0 &&
                                       hears(CARMI_DATA, 0) && m.process == second);
    check("and all by a broadcast",
          is_sent(carmi_broadcast(c, "any", ECHO, "word", 4), 0) && m.count == 2);
    return 0;
}

static int deaf(void) {
    carmi_request life, other_life;
    carmi_host host = grow("any", 2, "");
    carmi_process silent = spawn(host, &life), other = spawn(host, &other_life);
    check("one is there",
          is_sent(carmi_send(c, other, ECHO, "word", 4), 0) && hears(CARMI_DATA, 0));
    carmi_send(c, silent, DEAF, "", 0);
    carmi_request r = 0, last = 0;
    uint32_t sent = 0;
    while (r >= 0 && sent < 2000) {
        r = carmi_send(c, silent, OURS, block, 100000);
        last = r > 0 ? r : last;
        sent += r > 0;
    }
    check("there is an end of it", r == -EAGAIN && sent >= 200 && sent < 400);
    check("another is not stalled", is_sent(carmi_send(c, other, ECHO, "word", 4), 0) &&
                                        hears(CARMI_DATA, 0) && m.process == other);
    check("nor in a broadcast", is_sent(carmi_broadcast(c, NULL, ECHO, block, 100000), EAGAIN) &&
                                    m.count == 1 && hears(CARMI_DATA, 0) && m.process == other);
    check("what was not begun is cancelled",
          hears(CARMI_CANCELLED, carmi_cancel_request(c, last, OURS)) && m.success &&
              carmi_wait(c, last, &m, 0) == -ESRCH);
    check("then there is room", carmi_send(c, silent, OURS, block, 100000) > 0);
    return 0;
}

/* ---- strangers ---- */

static bool is_let_in(const struct acquaintance *e, bool near, uint64_t token) {
    struct address at;
    int done;
    uint8_t frame[PEER_HEAD_BYTES + PEER_HELLO_BYTES], answer[PEER_HEAD_BYTES];
    struct peer_head head = {.kind = PEER_HELLO, .len = PEER_HELLO_BYTES};
    struct peer_hello hello = {.from = 1 << 30, .to = e->id, .token = {token, e->reach.token[1]}};
    peer_head_write(&head, frame);
    peer_hello_write(&hello, frame + PEER_HEAD_BYTES);
    post_address(near, &e->reach, &at);
    int fd = address_connect(&at, &done);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    poll(&ready, 1, PATIENCE_MS);
    bool said = send(fd, frame, sizeof frame, MSG_NOSIGNAL) == (ssize_t)sizeof frame;
    ready.events = POLLIN;
    poll(&ready, 1, PATIENCE_MS);
    ssize_t n = recv(fd, answer, sizeof answer, 0);
    close(fd);
    return said && n == (ssize_t)sizeof answer && peer_head_read(&head, answer) &&
           head.kind == PEER_WELCOME;
}

static int strangers(void) {
    carmi_process other = carmi_self(c) | (carmi_process)1 << 32;
    if (carmi_self(c) >> 32 != 0)
        child();
    is_sent(carmi_send(c, other, ECHO, "word", 4), 0);
    hears(CARMI_DATA, 0);
    hears(CARMI_PEERS, carmi_peers(c, OURS));
    LIST_EACH (l, &c->steward.book) {
        const struct acquaintance *e = CONTAINER_OF(l, struct acquaintance, at);
        if (e->id != other)
            continue;
        check("by its token one is let in",
              is_let_in(e, true, e->reach.token[0]) && is_let_in(e, false, e->reach.token[0]));
        check("by another not", !is_let_in(e, true, e->reach.token[0] ^ 1) &&
                                    !is_let_in(e, false, e->reach.token[0] ^ 1));
    }
    pings(other);
    carmi_send(c, other, LEAVE, "", 0);
    return 0;
}

/* ---- one wait for all ---- */

static int one_wait(void) {
    carmi_request life;
    carmi_host host = grow("any", 1, ""), other = grow("other", 1, "");
    carmi_process to = spawn(host, &life);
    carmi_request suspended = carmi_suspend_notify(c, 1, &other, OURS);
    bool heard = false, noticed = false;
    printf("suspend %" PRIu64 "\n", other);
    carmi_send(c, to, ECHO, "word", 4);
    fflush(stdout);
    for (int rounds = 0; rounds < 1000 && !(heard && noticed); rounds++) {
        struct pollfd fd = {.fd = carmi_fd(c), .events = POLLIN};
        if (poll(&fd, 1, PATIENCE_MS) <= 0)
            break;
        while (carmi_next(c, &m) == 1) {
            heard = heard || (m.kind == CARMI_DATA && m.process == to);
            noticed = noticed || (m.kind == CARMI_HOSTS_SUSPENDED && m.request == suspended);
        }
    }
    check("data and a notice, by one descriptor", heard && noticed);
    return 0;
}

/* ---- how fast ---- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void measure(carmi_process to, const char *where) {
    enum { TURNS = 20000, BLOCKS = 500, MIB = 1 << 20 };
    is_sent(carmi_send(c, to, ECHO, "", 0), 0);
    hears(CARMI_DATA, 0);
    double from = now();
    for (int i = 0; i < TURNS && carmi_send(c, to, ECHO, block, 100) > 0; i++)
        hears(CARMI_DATA, 0);
    double turn = (now() - from) / TURNS;
    from = now();
    for (int i = 0; i < BLOCKS; i++)
        sends(to, OURS, block, MIB);
    carmi_send(c, to, ECHO, "", 0);
    hears(CARMI_DATA, 0);
    double rate = BLOCKS * (double)MIB / (now() - from);
    printf("%s: 100 bytes there and back %.1f us, 1 MiB %.2f GB/s\n", where, turn * 1e6,
           rate / 1e9);
    fflush(stdout);
}

static int speed(void) {
    carmi_request life;
    if (carmi_self(c) >> 32 != 0)
        child();
    measure(carmi_self(c) | (carmi_process)1 << 32, "same node");
    measure(spawn(grow("any", 1, ""), &life), "other node");
    carmi_send(c, carmi_self(c) | (carmi_process)1 << 32, LEAVE, "", 0);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*play)(void);
    } scenes[] = {{"child", child},         {"ranks", ranks},       {"family", family},
                  {"classes", classes},     {"survives", survives}, {"deaf", deaf},
                  {"strangers", strangers}, {"one_wait", one_wait}, {"speed", speed},
                  {"apart", apart}};
    int r = argc < 2 ? -EINVAL : carmi_init(&c);
    self_name = argv[0];
    for (size_t i = 0; r == 0 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0) {
            int status = scenes[i].play();
            check("the end", true);
            return status;
        }
    return 1;
}
