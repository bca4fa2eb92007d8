/* SPDX-License-Identifier: MIT */
/* Connections: frames however the bytes arrive, what waits for slow readers, and how it all ends.
 *
 * One end is a connection in a loop, the other a bare socket in the test's hands. */
#include "os/conn.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/random.h"
#include "os/address.h"
#include "turns.h"

#define BIG (4 * MIB)

struct rig {
    struct loop loop;
    struct conns conns;
    struct conn *conn;
    int peer;
    /* heard */
    int judged, frames, connected, ended;
    enum refusal why;
    bool broken;
    uint64_t bytes;
    struct header last;
    uint8_t *last_body;
    /* what to do */
    enum refusal refuse[4]; /* by frame */
    int close_at;           /* frame, from 1 */
};

static struct rig *rig_of(const struct conn *c) {
    return CONTAINER_OF(c->all, struct rig, conns);
}

static enum refusal on_judge(struct conn *c, const struct header *h) {
    struct rig *r = rig_of(c);
    CHECK_EQ(h->magic, HEADER_MAGIC);
    return r->judged < 4 ? r->refuse[r->judged++] : REFUSAL_NONE;
}

static void on_frame(struct conn *c, const struct header *h, struct bytes body) {
    struct rig *r = rig_of(c);
    CHECK_EQ(h->length, body.len);
    r->last = *h;
    r->bytes += body.len;
    if (r->last_body != NULL)
        memcpy(r->last_body, body.at, body.len);
    if (++r->frames == r->close_at) {
        r->conn = NULL;
        conn_close(c);
    }
}

static void on_connected(struct conn *c) {
    rig_of(c)->connected++;
}

static void on_ended(struct conn *c, enum refusal why) {
    struct rig *r = rig_of(c);
    r->ended++;
    r->why = why;
    r->broken = c->broken;
    r->conn = NULL;
    conn_close(c);
}

static void rig_loop(struct rig *r) {
    *r = (struct rig){.peer = -1};
    CHECK_EQ(loop_init(&r->loop), 0);
    CHECK_EQ(conns_init(&r->conns, &r->loop), 0);
    r->conns.judge = on_judge;
    r->conns.frame = on_frame;
    r->conns.connected = on_connected;
    r->conns.ended = on_ended;
}

static void rig_begin_of(struct rig *r, int type) {
    int pair[2];
    rig_loop(r);
    CHECK_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    r->peer = pair[0];
    r->conn = conn_new(&r->conns, pair[1], false);
    CHECK(r->conn != NULL);
}

static void rig_begin(struct rig *r) {
    rig_begin_of(r, SOCK_STREAM);
}

static void rig_end(struct rig *r) {
    if (r->conn != NULL)
        conn_abort(r->conn);
    if (r->peer >= 0)
        close(r->peer);
    conns_fini(&r->conns);
    loop_fini(&r->loop);
}

#define UNTIL(r, condition) TURN_UNTIL(&(r)->loop, conns_settle(&(r)->conns), condition)

/* A turn in which nothing need happen. */
static void turn(struct rig *r) {
    loop_turn(&r->loop, 0);
    conns_settle(&r->conns);
}

static struct header header(size_t length) {
    return (struct header){
        .magic = HEADER_MAGIC, .version = HEADER_VERSION, .type = 1, .length = (uint32_t)length};
}

static size_t encode(uint8_t *out, const char *body) {
    struct header h = header(strlen(body));
    header_encode(&h, out);
    memcpy(out + HEADER_BYTES, body, strlen(body));
    return HEADER_BYTES + strlen(body);
}

static void say(const struct rig *r, const uint8_t *at, size_t len) {
    CHECK_EQ(send(r->peer, at, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* ---- in ---- */

enum { THREE = 3 * HEADER_BYTES + 5 + 11 };

static void encode_three(uint8_t out[THREE]) {
    size_t len = encode(out, "first");
    len += encode(out + len, ""); /* a body may be empty */
    len += encode(out + len, "hello there");
    CHECK_EQ(len, THREE);
}

static void test_split_anywhere(void) {
    uint8_t bytes[THREE], body[16];
    encode_three(bytes);
    for (size_t first = 0; first <= THREE; first++) {
        struct rig r;
        rig_begin(&r);
        r.last_body = body;
        if (first > 0)
            say(&r, bytes, first);
        turn(&r);
        turn(&r);
        CHECK_EQ(r.frames, (first >= 37) + (first >= 69) + (first == THREE));
        if (first < THREE)
            say(&r, bytes + first, THREE - first);
        CHECK(UNTIL(&r, r.frames == 3));
        CHECK_EQ(r.bytes, 16);
        CHECK_EQ(memcmp(body, "hello there", 11), 0);
        CHECK_EQ(r.ended, 0);
        rig_end(&r);
    }
}

static void test_byte_by_byte(void) {
    uint8_t bytes[THREE];
    struct rig r;
    encode_three(bytes);
    rig_begin(&r);
    for (size_t i = 0; i < THREE; i++) {
        say(&r, bytes + i, 1);
        turn(&r);
    }
    CHECK_EQ(r.frames, 3);
    CHECK_EQ(r.conns.bytes_in, THREE);
    CHECK(r.conn->in == NULL); /* nothing is kept between frames */
    rig_end(&r);
}

static void test_many_in_one_read(void) {
    enum { MANY = 1000 };
    static uint8_t bytes[MANY * (HEADER_BYTES + 4)];
    struct rig r;
    size_t len = 0;
    for (int i = 0; i < MANY; i++)
        len += encode(bytes + len, "four");
    rig_begin(&r);
    say(&r, bytes, len);
    turn(&r);
    CHECK_EQ(r.frames, MANY);
    rig_end(&r);
}

static void test_large_frame(void) {
    uint8_t *out = malloc(HEADER_BYTES + BIG), *body = malloc(BIG);
    struct header h = header(BIG);
    struct random random;
    struct rig r;
    random_init(&random, 1);
    header_encode(&h, out);
    random_bytes(&random, out + HEADER_BYTES, BIG);
    rig_begin(&r);
    r.last_body = body;
    for (size_t at = 0; at < HEADER_BYTES + BIG;) {
        ssize_t sent = send(r.peer, out + at, HEADER_BYTES + BIG - at, MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : 0;
        turn(&r);
    }
    CHECK(UNTIL(&r, r.frames == 1));
    CHECK_EQ(memcmp(out + HEADER_BYTES, body, BIG), 0);
    CHECK_EQ(r.judged, 1);
    CHECK(r.conn->in == NULL);
    free(out);
    free(body);
    rig_end(&r);
}

/* Where packets begin and end means nothing, wherever it is. */
static void test_packets_split_anywhere(void) {
    uint8_t three[THREE];
    encode_three(three);
    for (size_t first = 1; first < THREE; first++)
        for (size_t second = first; second <= THREE; second += 7) {
            struct rig r;
            rig_begin_of(&r, SOCK_SEQPACKET);
            say(&r, three, first);
            if (second > first)
                say(&r, three + first, second - first);
            if (second < THREE)
                say(&r, three + second, THREE - second);
            CHECK(UNTIL(&r, r.frames == 3));
            CHECK_EQ(r.bytes, 16);
            CHECK(r.conn->in == NULL);
            rig_end(&r);
        }
}

/* Nobody sends such a packet; whoever does it all the same has lost part of it. */
static void test_packet_that_is_too_large(void) {
    static uint8_t bytes[300 * KIB];
    struct rig r;
    int room = MIB;
    rig_begin_of(&r, SOCK_SEQPACKET);
    CHECK_EQ(setsockopt(r.peer, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    struct header h = header(sizeof bytes - HEADER_BYTES);
    header_encode(&h, bytes);
    if (send(r.peer, bytes, sizeof bytes, MSG_NOSIGNAL) == (ssize_t)sizeof bytes) {
        CHECK(UNTIL(&r, r.ended == 1));
        CHECK_EQ(r.why, REFUSAL_SIZE);
    }
    CHECK_EQ(r.frames, 0);
    rig_end(&r);
}

/* However little memory the system gives to a socket, a large frame gets through, in smaller packets. */
static void test_packets_as_large_as_there_is_room(void) {
    static uint8_t body[70000];
    struct rig r;
    int room = 8 * KIB;
    size_t got = 0, largest = 0;
    rig_begin_of(&r, SOCK_SEQPACKET);
    CHECK_EQ(setsockopt(r.conn->source.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    struct header h = header(sizeof body);
    conn_send(r.conn, &h, bytes_of(body, sizeof body), (struct bytes){0});
    for (int i = 0; i < 1000 && got < HEADER_BYTES + sizeof body; i++) {
        static uint8_t in[100 * KIB];
        turn(&r);
        for (ssize_t n; (n = recv(r.peer, in, sizeof in, MSG_DONTWAIT)) > 0; got += (size_t)n)
            largest = (size_t)n > largest ? (size_t)n : largest;
    }
    CHECK_EQ(got, HEADER_BYTES + sizeof body);
    CHECK(largest > 0 && largest < sizeof body);
    CHECK_EQ(r.ended, 0);
    rig_end(&r);
}

/* Refused by its header: over before the body is there, and nothing after it is looked at. */
static void test_refused(void) {
    uint8_t bytes[THREE];
    encode_three(bytes);
    for (int whole = 0; whole < 2; whole++) {
        struct rig r;
        rig_begin(&r);
        r.refuse[1] = REFUSAL_TYPE;
        say(&r, bytes, whole ? THREE : 37 + HEADER_BYTES);
        CHECK(UNTIL(&r, r.ended == 1));
        CHECK_EQ(r.why, REFUSAL_TYPE);
        CHECK_EQ(r.frames, 1);
        CHECK_EQ(r.judged, 2);
        rig_end(&r);
    }
}

static void test_duplicate_is_passed_over(void) {
    uint8_t bytes[THREE], body[16];
    encode_three(bytes);
    for (size_t first = 1; first < THREE; first++) {
        struct rig r;
        rig_begin(&r);
        r.last_body = body;
        r.refuse[0] = REFUSAL_DUPLICATE;
        say(&r, bytes, first);
        turn(&r);
        say(&r, bytes + first, THREE - first);
        CHECK(UNTIL(&r, r.frames == 2));
        CHECK_EQ(r.bytes, 11);
        CHECK_EQ(r.ended, 0);
        rig_end(&r);
    }
}

/* The owner closes it while it is handed a frame: not one more comes, nor the end. */
static void test_closed_from_within(void) {
    uint8_t bytes[THREE];
    encode_three(bytes);
    for (int split = 0; split < 2; split++) {
        struct rig r;
        rig_begin(&r);
        r.close_at = 1;
        if (split) {
            say(&r, bytes, 10);
            turn(&r);
        }
        say(&r, bytes + 10 * split, THREE - 10 * (size_t)split);
        CHECK(UNTIL(&r, r.frames == 1));
        turn(&r);
        close(r.peer);
        r.peer = -1;
        CHECK(UNTIL(&r, list_empty(&r.conns.linger)));
        CHECK_EQ(r.frames, 1);
        CHECK_EQ(r.ended, 0);
        rig_end(&r);
    }
}

/* ---- out ---- */

/* Reads what is there, at most so much; checks that it goes on where it was; -1 at the end. */
static int take(const struct rig *r, uint64_t *at, size_t most) {
    static uint8_t bytes[1 << 16];
    ssize_t got = recv(r->peer, bytes, most < sizeof bytes ? most : sizeof bytes, MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && errno == EAGAIN ? 0 : -1;
    int wrong = 0;
    for (ssize_t i = 0; i < got; i++, *at += 1) {
        uint64_t in_frame = *at % (HEADER_BYTES + MIB);
        if (in_frame >= HEADER_BYTES)
            wrong += bytes[i] != (uint8_t)(*at / (HEADER_BYTES + MIB) + in_frame * 7);
    }
    CHECK_EQ(wrong, 0);
    return (int)got;
}

static void send_big(struct conn *c, uint8_t frame) {
    uint8_t *body = malloc(MIB);
    struct header h = header(MIB);
    for (uint64_t i = 0; i < MIB; i++)
        body[i] = (uint8_t)(frame + (i + HEADER_BYTES) * 7);
    conn_send(c, &h, bytes_of(body, 1000), bytes_of(body + 1000, MIB - 1000));
    free(body);
}

/* The reader takes little at a time while more and more is sent: nothing is lost or mixed up. */
static void test_slow_reader(void) {
    enum { FRAMES = 12 };
    struct rig r;
    uint64_t at = 0;
    rig_begin(&r);
    for (uint8_t i = 0; i < FRAMES; i++) {
        send_big(r.conn, i);
        turn(&r);
        for (int k = 0; k < 20; k++) {
            take(&r, &at, 1000 + 977 * i);
            turn(&r);
        }
    }
    CHECK(r.conns.backlog_max > 5 * MIB);
    CHECK(UNTIL(&r, take(&r, &at, SIZE_MAX) >= 0 && at == FRAMES * (HEADER_BYTES + MIB)));
    CHECK_EQ(r.conns.bytes_out, at);
    CHECK(UNTIL(&r, r.conn->out == NULL)); /* the room is given back */
    CHECK_EQ(r.ended, 0);
    rig_end(&r);
}

/* Most of what waited has gone: what is left moves up, and the room does not grow. */
static void test_backlog_moves_up(void) {
    struct rig r;
    uint64_t at = 0;
    uint8_t frame = 0;
    rig_begin(&r);
    while (frame < 7)
        send_big(r.conn, frame++);
    size_t cap = r.conn->out_cap;
    for (int i = 0; i < 10; i++) {
        CHECK(UNTIL(&r, take(&r, &at, SIZE_MAX) >= 0 && at >= (frame - 1) * (HEADER_BYTES + MIB)));
        for (int k = 0; k < 6; k++)
            send_big(r.conn, frame++);
    }
    CHECK_EQ(r.conn->out_cap, cap);
    CHECK(UNTIL(&r, take(&r, &at, SIZE_MAX) >= 0 && at == frame * (HEADER_BYTES + MIB)));
    rig_end(&r);
}

/* What was sent before the close arrives, however slowly it is taken, and then the end. */
static void test_close_delivers_everything(void) {
    enum { FRAMES = 6 };
    struct rig r;
    uint64_t at = 0;
    rig_begin(&r);
    for (uint8_t i = 0; i < FRAMES; i++)
        send_big(r.conn, i);
    struct conn *c = r.conn;
    r.conn = NULL;
    conn_close(c);
    turn(&r);
    uint64_t since = c->since;
    uint64_t seen = 0;
    CHECK(UNTIL(&r, take(&r, &at, 50000) >= 0 && (seen += c->since > since) > 0));
    CHECK(seen > 0); /* it goes on being waited for as long as it reads */
    CHECK(UNTIL(&r, take(&r, &at, 50000) < 0));
    CHECK_EQ(at, FRAMES * (HEADER_BYTES + MIB));
    CHECK(!list_empty(&r.conns.linger)); /* until the peer has closed it too */
    close(r.peer);
    r.peer = -1;
    CHECK(UNTIL(&r, list_empty(&r.conns.linger)));
    CHECK_EQ(r.ended, 0);
    rig_end(&r);
}

/* The peer neither reads nor closes: it is not waited for for ever. What it says is forgotten. */
static void test_lingering_has_an_end(void) {
    for (int owed = 0; owed < 2; owed++) {
        struct rig r;
        uint64_t at = 0;
        rig_begin(&r);
        r.conns.linger_ns = 20 * NS_PER_MS;
        for (int i = 0; owed && i < 3; i++)
            send_big(r.conn, 0);
        struct conn *c = r.conn;
        r.conn = NULL;
        conn_close(c);
        say(&r, (const uint8_t *)"it goes on and on", 17);
        CHECK(!list_empty(&r.conns.linger));
        CHECK(UNTIL(&r, list_empty(&r.conns.linger)));
        CHECK_EQ(r.frames + r.judged + r.ended, 0);
        while (take(&r, &at, SIZE_MAX) > 0)
            ;
        CHECK(at < 3 * MIB);
        rig_end(&r);
    }
}

/* Without end, on the other hand, nothing waits: who does not read at all is given up. */
static void test_backlog_has_a_limit(void) {
    struct rig r;
    rig_begin(&r);
    r.conn->backlog_bytes_max = 3 * MIB;
    for (int i = 0; i < 2; i++)
        send_big(r.conn, 0);
    turn(&r);
    turn(&r);
    CHECK_EQ(r.ended, 0);
    for (int i = 0; i < 2; i++)
        send_big(r.conn, 0);
    CHECK(r.conns.backlog_max <= 3 * MIB);
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK_EQ(r.why, REFUSAL_NONE);
    rig_end(&r);
}

/* ---- ends ---- */

/* Sends so many bytes of a frame and is gone. */
static void check_gone(size_t bytes, enum refusal why) {
    uint8_t frame[THREE];
    struct rig r;
    encode_three(frame);
    rig_begin(&r);
    if (bytes > 0)
        say(&r, frame, bytes);
    close(r.peer);
    r.peer = -1;
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK_EQ(r.why, why);
    CHECK_EQ(r.frames, (bytes >= 37) + (bytes >= 69) + (bytes == THREE));
    CHECK(!r.broken);
    turn(&r);
    CHECK_EQ(r.ended, 1);
    rig_end(&r);
}

/* Inside a frame that is an offence, between frames it is not. */
static void test_peer_is_gone(void) {
    for (size_t bytes = 0; bytes <= THREE; bytes++) {
        bool between = bytes == 0 || bytes == 37 || bytes == 69 || bytes == THREE;
        check_gone(bytes, between ? REFUSAL_NONE : REFUSAL_TRUNCATED);
    }
}

/* It had not read what we sent: the kernel tells of that as an error. */
static void test_peer_is_gone_without_reading(void) {
    struct rig r;
    rig_begin(&r);
    struct header h = header(0);
    conn_send(r.conn, &h, (struct bytes){0}, (struct bytes){0});
    turn(&r);
    close(r.peer);
    r.peer = -1;
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK(r.broken);
    CHECK_EQ(r.why, REFUSAL_NONE);
    rig_end(&r);
}

/* The socket takes nothing any more though it can still be read from: to go on would leave a hole. */
static void test_sending_fails(void) {
    uint8_t frame[THREE];
    struct rig r;
    encode_three(frame);
    rig_begin(&r);
    say(&r, frame, 37);
    shutdown(r.conn->source.fd, SHUT_WR);
    struct header h = header(0);
    conn_send(r.conn, &h, (struct bytes){0}, (struct bytes){0});
    conns_settle(&r.conns);
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK_EQ(r.frames, 1); /* what the peer has still said */
    rig_end(&r);
}

static void test_connecting(void) {
    struct rig r;
    struct address a;
    int done;
    rig_loop(&r);
    CHECK_EQ(address_parse(&a, "tcp:127.0.0.1:0"), 0);
    int listener = address_listen(&a);
    CHECK(listener >= 0);
    int fd = address_connect(&a, &done);
    CHECK(fd >= 0 && !done);
    r.conn = conn_new(&r.conns, fd, true);
    CHECK(UNTIL(&r, r.connected == 1));
    struct header h = header(0);
    conn_send(r.conn, &h, (struct bytes){0}, (struct bytes){0});
    CHECK(UNTIL(&r, (r.peer = address_accept(listener)) >= 0));
    uint64_t at = 0;
    CHECK(UNTIL(&r, take(&r, &at, SIZE_MAX) >= 0 && at == HEADER_BYTES));
    conn_abort(r.conn);
    close(listener);
    fd = address_connect(&a, &done); /* nobody is there any more */
    r.conn = fd >= 0 ? conn_new(&r.conns, fd, !done) : NULL;
    CHECK(fd < 0 || UNTIL(&r, r.ended == 1));
    CHECK_EQ(r.connected, 1);
    rig_end(&r);
}

static void test_connected_to_itself(void) {
    struct rig r;
    struct address a;
    rig_loop(&r);
    CHECK_EQ(address_parse(&a, "tcp:127.0.0.1:0"), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof a.in;
    CHECK_EQ(bind(fd, &a.any, len), 0);
    CHECK_EQ(getsockname(fd, &a.any, &len), 0);
    CHECK(connect(fd, &a.any, len) == 0 || errno == EINPROGRESS);
    r.conn = conn_new(&r.conns, fd, true);
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK_EQ(r.connected, 0);
    rig_end(&r);
}

int main(void) {
    TEST(test_split_anywhere);
    TEST(test_byte_by_byte);
    TEST(test_many_in_one_read);
    TEST(test_large_frame);
    TEST(test_packets_split_anywhere);
    TEST(test_packets_as_large_as_there_is_room);
    TEST(test_packet_that_is_too_large);
    TEST(test_refused);
    TEST(test_duplicate_is_passed_over);
    TEST(test_closed_from_within);
    TEST(test_slow_reader);
    TEST(test_backlog_moves_up);
    TEST(test_close_delivers_everything);
    TEST(test_lingering_has_an_end);
    TEST(test_backlog_has_a_limit);
    TEST(test_peer_is_gone);
    TEST(test_peer_is_gone_without_reading);
    TEST(test_sending_fails);
    TEST(test_connecting);
    TEST(test_connected_to_itself);
    return tap_finish();
}
