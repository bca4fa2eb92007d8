/* SPDX-License-Identifier: MIT */
/* Tests of messages between processes: two ends in one process, and a book that says where they are. */
#include "client/post.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/address.h"
#include "tap.h"

enum { TAG = 9, ROUNDS = 4000 };

struct end {
    struct steward steward;
    struct post post;
    uint32_t node;
};

struct bench {
    struct end a, b;
};

static void open_end(struct end *e, uint32_t job, uint32_t node) {
    CHECK_EQ(steward_init(&e->steward, job, job), 0);
    CHECK_EQ(post_open(&e->post, &e->steward, job), 0);
    e->node = node;
}

static void begin(struct bench *b, uint32_t other_node) {
    memset(b, 0, sizeof *b);
    open_end(&b->a, 1, 0);
    open_end(&b->b, 2, other_node);
}

static void close_end(struct end *e) {
    post_close(&e->post);
    steward_fini(&e->steward);
}

static void finish(struct bench *b) {
    close_end(&b->a);
    if (b->b.post.open)
        close_end(&b->b);
}

static size_t add(const struct end *e, uint8_t *rows, size_t at, size_t room) {
    struct peer_row row = {.place = e->steward.own,
                           .job = e->steward.own,
                           .node = e->node,
                           .reach = e->post.reach,
                           .class_name = bytes_from_str("some")};
    long len = peer_row_encode(&row, room_of(rows + at, room - at));
    CHECK(len > 0);
    return at + (size_t)len;
}

/* The manager's answer, to one that has asked. */
static void tell(struct bench *b, struct end *e) {
    uint8_t rows[1024];
    size_t len = add(&b->a, rows, 0, sizeof rows);
    if (b->b.post.open)
        len = add(&b->b, rows, len, sizeof rows);
    struct message_rows r = {.last = true, .rows = bytes_of(rows, len)};
    while (e->steward.books_asked != e->steward.books)
        book_rows(&e->steward, &r);
}

static void pump(struct bench *b) {
    tell(b, &b->a);
    post_pump(&b->a.post);
    post_idle(&b->a.post);
    if (!b->b.post.open)
        return;
    tell(b, &b->b);
    post_pump(&b->b.post);
    post_idle(&b->b.post);
}

/* The next letter that an end has; false: none comes. */
static bool hears(struct bench *b, struct end *e, struct carmi_message *ret) {
    for (int i = 0; i < 1000; i++) {
        if (steward_letter(&e->steward, 0, ret)) {
            if (ret->kind == CARMI_DATA)
                post_read(&e->post, ret->bytes);
            return true;
        }
        pump(b);
        if (i > 100)
            poll(NULL, 0, 5); /* what has ended is looked for again after a while */
    }
    return false;
}

static int send_to(struct end *e, carmi_process to, const void *data, size_t bytes) {
    struct call *c = call_add(&e->steward, CALL_SEND, TAG);
    int r = post_send(&e->post, c, to, bytes_of(data, bytes));
    if (r < 0)
        call_end(c);
    return r;
}

static void there_and_back(uint32_t other_node) {
    static struct bench b;
    struct carmi_message m;
    begin(&b, other_node);
    CHECK_EQ(send_to(&b.a, 2, "hello", 5), 0);
    CHECK(hears(&b, &b.b, &m) && m.kind == CARMI_DATA && m.process == 1 && m.tag == TAG);
    CHECK(m.bytes == 5 && memcmp(m.data, "hello", 5) == 0 && m.request == 0);
    CHECK(hears(&b, &b.a, &m) && m.kind == CARMI_SENT && m.success && m.process == 2);
    const struct link *l = CONTAINER_OF(list_first(&b.a.post.links), struct link, at);
    CHECK(l->near == (other_node == 0) && l->ringed == l->near);
    CHECK_EQ(send_to(&b.b, 1, "", 0), 0); /* by the same connection */
    CHECK(hears(&b, &b.a, &m) && m.kind == CARMI_DATA && m.process == 2 && m.bytes == 0);
    CHECK(list_first(&b.a.post.links) == list_last(&b.a.post.links));
    finish(&b);
}

static void test_on_one_node(void) {
    there_and_back(0);
}

static void test_on_two_nodes(void) {
    there_and_back(1);
}

static size_t size_of(uint32_t i) {
    return 4 + (i % 97 == 0 ? i * 61 % 150000 : i * 31 % 300);
}

/* Both call each other at once, and send more than rings and sockets hold. */
static void crossing(uint32_t other_node) {
    static struct bench b;
    static uint8_t data[200000];
    uint32_t sent[2] = {0, 0}, got[2] = {0, 0};
    bool good = true;
    struct carmi_message m;
    begin(&b, other_node);
    struct end *const ends[] = {&b.a, &b.b};
    for (int idle = 0; idle < 1000 && (got[0] < ROUNDS || got[1] < ROUNDS); idle++) {
        for (int e = 0; e < 2; e++) {
            for (int burst = 0; burst < 50 && sent[e] < ROUNDS; burst++) {
                store_le32(data, sent[e]);
                if (send_to(ends[e], (carmi_process)(2 - e), data, size_of(sent[e])) == 0)
                    sent[e]++;
            }
        }
        pump(&b);
        for (int e = 0; e < 2; e++)
            while (steward_letter(&ends[e]->steward, 0, &m)) {
                if (m.kind != CARMI_DATA)
                    continue;
                post_read(&ends[e]->post, m.bytes);
                good = good && m.bytes == size_of(got[e]) && load_le32(m.data) == got[e];
                got[e]++;
                idle = 0;
            }
    }
    CHECK(good && got[0] == ROUNDS && got[1] == ROUNDS);
    CHECK_EQ(b.a.post.inbox, 0);
    finish(&b);
}

static void test_both_at_once(void) {
    crossing(0);
}

static void test_both_at_once_on_two_nodes(void) {
    crossing(1);
}

static void test_one_that_does_not_read(void) {
    static struct bench b;
    static uint8_t data[1 << 20];
    begin(&b, 0);
    int r = 0, sent = 0;
    while (r == 0 && sent < 1000) {
        r = send_to(&b.a, 2, data, sizeof data);
        sent += r == 0;
        pump(&b); /* it takes as much as it may have unread */
    }
    CHECK_EQ(r, -EAGAIN);
    CHECK(sent >= 31 && sent < 70);
    CHECK(b.b.post.inbox <= POST_INBOX_MAX + sizeof data + POST_OVERHEAD);
    struct carmi_message m;
    int got = 0;
    while (got < sent && hears(&b, &b.b, &m))
        got++;
    CHECK_EQ(got, sent);
    CHECK_EQ(send_to(&b.a, 2, data, sizeof data), 0);
    finish(&b);
}

static void test_one_that_has_ended(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b, 0);
    send_to(&b.a, 2, "x", 1);
    CHECK(hears(&b, &b.b, &m));
    CHECK(hears(&b, &b.a, &m) && m.success);
    send_to(&b.b, 1, "last", 4); /* is heard all the same */
    send_to(&b.a, 2, "w", 1);
    post_pump(&b.b.post);
    CHECK(steward_letter(&b.b.steward, 0, &m) && m.bytes == 1);
    close_end(&b.b); /* and has not said that it has come, until now */
    send_to(&b.a, 2, "y", 1);
    CHECK(hears(&b, &b.a, &m) && m.kind == CARMI_DATA && m.bytes == 4);
    CHECK(hears(&b, &b.a, &m) && m.kind == CARMI_SENT && m.success);
    CHECK(hears(&b, &b.a, &m) && m.kind == CARMI_SENT && !m.success && m.error == ESRCH);
    send_to(&b.a, 2, "z", 1);
    b.a.steward.ear->job(b.a.steward.ear_context, 2, 0); /* the job is over */
    CHECK(hears(&b, &b.a, &m) && m.kind == CARMI_SENT && m.error == ESRCH);
    finish(&b);
}

static void test_a_broadcast_keeps_its_place(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b, 0);
    struct call *c = call_add(&b.a.steward, CALL_BROADCAST, TAG);
    CHECK_EQ(post_broadcast(&b.a.post, c, "some", bytes_of("1", 1)), 0);
    CHECK_EQ(send_to(&b.a, 2, "2", 1), 0);
    c = call_add(&b.a.steward, CALL_BROADCAST, TAG);
    CHECK_EQ(post_broadcast(&b.a.post, c, "none", bytes_of("3", 1)), 0);
    CHECK(hears(&b, &b.b, &m) && memcmp(m.data, "1", 1) == 0);
    CHECK(hears(&b, &b.b, &m) && memcmp(m.data, "2", 1) == 0);
    size_t counts = 0;
    for (int i = 0; i < 3 && hears(&b, &b.a, &m); i++)
        counts += m.kind == CARMI_SENT && m.success ? 1 + m.count : 0;
    CHECK_EQ(counts, 5);
    finish(&b);
}

/* A rank that is not there is not looked for any more when nothing is for it. */
static void test_what_was_cancelled_is_not_looked_for(void) {
    static struct bench b;
    begin(&b, 0);
    b.a.steward.head = 1;
    struct call *c = call_add(&b.a.steward, CALL_SEND, TAG);
    CHECK_EQ(post_send(&b.a.post, c, (carmi_process)5 << 32 | 1, bytes_of("x", 1)), 0);
    pump(&b);
    uint32_t asked = b.a.steward.books_asked;
    CHECK_EQ(asked, 1);
    post_cancel(&b.a.post, c->id);
    call_end(c);
    for (int i = 0; i < 3; i++) { /* its time comes */
        post_timer(&b.a.post);
        tell(&b, &b.a);
    }
    CHECK(b.a.steward.books_asked <= asked + 1);
    finish(&b);
}

/* Whatever a stranger says it is not let in, and nothing of it is kept. */
static bool is_let_in(struct bench *b, const void *said, size_t len) {
    struct address at;
    int done;
    char got;
    post_address(true, &b->b.post.reach, &at);
    int fd = address_connect(&at, &done);
    CHECK(fd >= 0);
    CHECK_EQ(send(fd, said, len, MSG_NOSIGNAL), (ssize_t)len);
    for (int i = 0; i < 3; i++)
        pump(b);
    ssize_t n = recv(fd, &got, 1, MSG_DONTWAIT);
    close(fd);
    pump(b);
    CHECK(list_empty(&b->b.post.links));
    return n > 0;
}

static void test_strangers(void) {
    static struct bench b;
    uint8_t frame[PEER_HEAD_BYTES + PEER_HELLO_BYTES];
    struct peer_head head = {.kind = PEER_HELLO, .len = PEER_HELLO_BYTES};
    begin(&b, 0);
    struct peer_hello hello = {
        .from = 7, .to = 2, .token = {b.b.post.reach.token[0], b.b.post.reach.token[1]}};
    peer_head_write(&head, frame);
    peer_hello_write(&hello, frame + PEER_HEAD_BYTES);
    CHECK(is_let_in(&b, frame, sizeof frame));
    hello.token[1] ^= 1;
    peer_hello_write(&hello, frame + PEER_HEAD_BYTES);
    CHECK(!is_let_in(&b, frame, sizeof frame));
    CHECK(!is_let_in(&b, "GET / HTTP/1.1\r\n\r\n", 18));
    head = (struct peer_head){.kind = PEER_DATA, .len = 4};
    peer_head_write(&head, frame);
    CHECK(!is_let_in(&b, frame, sizeof frame));
    CHECK(list_empty(&b.b.steward.letters));
    finish(&b);
}

/* Sends one byte and, with it, both. */
static void send_two(int to, const int *both) {
    union {
        char room[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {.iov_base = (char[]){0}, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(2 * sizeof(int));
    memcpy(CMSG_DATA(c), both, 2 * sizeof(int));
    CHECK_EQ(sendmsg(to, &message, MSG_NOSIGNAL), 1);
}

/* Descriptors of a stranger: a pipe ends when nobody has its other end any more. */
static void test_no_descriptors_are_kept(void) {
    static struct bench b;
    struct address at;
    int done, ends[2];
    begin(&b, 0);
    CHECK_EQ(pipe(ends), 0);
    post_address(true, &b.b.post.reach, &at);
    int fd = address_connect(&at, &done);
    CHECK(fd >= 0);
    send_two(fd, (const int[]){ends[1], ends[1]});
    close(ends[1]);
    for (int i = 0; i < 3; i++)
        pump(&b);
    close(fd);
    pump(&b);
    CHECK(list_empty(&b.b.post.links));
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    CHECK(poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0);
    close(ends[0]);
    finish(&b);
}

int main(void) {
    TEST(test_on_one_node);
    TEST(test_on_two_nodes);
    TEST(test_both_at_once);
    TEST(test_both_at_once_on_two_nodes);
    TEST(test_one_that_does_not_read);
    TEST(test_one_that_has_ended);
    TEST(test_a_broadcast_keeps_its_place);
    TEST(test_what_was_cancelled_is_not_looked_for);
    TEST(test_strangers);
    TEST(test_no_descriptors_are_kept);
    return tap_finish();
}
