/* SPDX-License-Identifier: MIT */
/* Bulk over connections: bytes sent from where they lie, and read to where they are wanted.
 *
 * Two connections in one loop; what one lends the other places, between frames of the ordinary kind. All of it once more
 * with connections that are sealed, where files are of no use. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "os/conn.h"
#include "sealed.h"
#include "turns.h"

enum { LOANS = 40, PIECE = 200 * 1024, TYPE_SMALL = 1, TYPE_BULK };

struct rig {
    struct loop loop;
    struct conns conns;
    struct conn *giver, *taker;
    uint8_t *from, *to; /* LOANS pieces each */
    int file;           /* with the same as `from`; every other piece is sent from there */
    uint32_t returned, placed, small, ended;
    uint64_t returned_tags;
    bool nowhere; /* there is no place: it comes as any other frame */
    bool unread;  /* pieces are only in the file */
    bool draws;   /* the owner takes every other piece out of the socket himself */
    uint32_t drawn;
    uint32_t whole;
    enum refusal why;
    struct sealer sealer;
    bool connected;
};

static bool sealed; /* the connections of the tests that follow */

static struct rig *rig_of(const struct conn *c) {
    return CONTAINER_OF(c->all, struct rig, conns);
}

static enum refusal on_judge(struct conn *c, const struct header *h) {
    (void)c;
    return h->magic == HEADER_MAGIC ? REFUSAL_NONE : REFUSAL_MAGIC;
}

static void on_frame(struct conn *c, const struct header *h, struct bytes body) {
    struct rig *r = rig_of(c);
    if (h->type == TYPE_SMALL) {
        CHECK_EQ(body.len, r->small % 7);
        r->small++;
        return;
    }
    r->whole++;
    uint32_t piece = load_le32(body.at);
    memcpy(r->to + (size_t)piece * PIECE, body.at + CONN_HEAD, body.len - CONN_HEAD);
}

static uint8_t *on_place(struct conn *c, const struct header *h, const uint8_t *head, size_t len) {
    struct rig *r = rig_of(c);
    CHECK_EQ(h->length, CONN_HEAD + len);
    return r->nowhere || h->type != TYPE_BULK ? NULL : r->to + (size_t)load_le32(head) * PIECE;
}

static void on_placed(struct conn *c, const struct header *h, const uint8_t *head, size_t len) {
    struct rig *r = rig_of(c);
    CHECK_EQ(h->type, TYPE_BULK);
    CHECK_EQ(load_le32(head), r->placed + r->whole); /* in order */
    CHECK(len <= PIECE);
    r->placed++;
}

static ssize_t on_draw(struct conn *c, const uint8_t *head, size_t len, size_t done) {
    struct rig *r = rig_of(c);
    uint32_t piece = load_le32(head);
    if (!r->draws || piece % 2 == 0)
        return -EOPNOTSUPP;
    size_t part = len - done < 50000 ? len - done : 50000;
    ssize_t got = recv(c->source.fd, r->to + (size_t)piece * PIECE + done, part, 0);
    r->drawn += got > 0;
    return got < 0 ? -errno : got;
}

static void on_returned(struct conn *c, const struct loan *loan) {
    struct rig *r = rig_of(c);
    r->returned++;
    r->returned_tags += loan->tag;
}

static void on_ended(struct conn *c, enum refusal why) {
    struct rig *r = rig_of(c);
    r->ended++;
    r->why = why;
    if (c == r->giver)
        r->giver = NULL;
    else
        r->taker = NULL;
    conn_close(c);
}

static void on_connected(struct conn *c) {
    rig_of(c)->connected = true;
}

#define UNTIL(r, condition) TURN_UNTIL(&(r)->loop, conns_settle(&(r)->conns), condition)

static void connect_pair(struct rig *r) {
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    if (!sealed) {
        r->giver = conn_new(&r->conns, pair[0], false);
        r->taker = conn_new(&r->conns, pair[1], false);
        return;
    }
    r->sealer = seals_sealer(sealed_party());
    const struct sealer *s = &r->sealer;
    r->giver = conn_new_sealed(&r->conns, pair[0], true, s, s->connect(s->seals, pair[0], 7));
    r->taker = conn_new_sealed(&r->conns, pair[1], false, s, s->accept(s->seals, pair[1]));
    CHECK(UNTIL(r, r->connected && !r->taker->connecting));
}

static void begin(struct rig *r) {
    struct random random;
    *r = (struct rig){.from = malloc((size_t)LOANS * PIECE), .to = calloc(LOANS, PIECE)};
    random_init(&random, 5);
    random_bytes(&random, r->from, (size_t)LOANS * PIECE);
    r->file = memfd_create("from", MFD_CLOEXEC);
    CHECK_EQ(write(r->file, r->from, (size_t)LOANS * PIECE), LOANS * PIECE);
    CHECK_EQ(loop_init(&r->loop), 0);
    CHECK_EQ(conns_init(&r->conns, &r->loop), 0);
    r->conns.judge = on_judge;
    r->conns.frame = on_frame;
    r->conns.ended = on_ended;
    r->conns.place = on_place;
    r->conns.placed = on_placed;
    r->conns.draw = on_draw;
    r->conns.returned = on_returned;
    r->conns.connected = on_connected;
    connect_pair(r);
    r->taker->bulky = true;
}

static void end(struct rig *r) {
    if (r->giver != NULL)
        conn_abort(r->giver);
    if (r->taker != NULL)
        conn_abort(r->taker);
    conns_fini(&r->conns);
    loop_fini(&r->loop);
    seals_free(r->sealer.seals);
    close(r->file);
    free(r->from);
    free(r->to);
}

static int file_of(const struct rig *r, uint32_t piece) {
    return piece % 2 == 0 && !r->unread ? -1 : fcntl(r->file, F_DUPFD_CLOEXEC, 0);
}

static void lend(struct rig *r, uint32_t piece, size_t len) {
    uint8_t head[CONN_HEAD] = {0};
    store_le32(head, piece);
    struct header h = {.magic = HEADER_MAGIC,
                       .version = HEADER_VERSION,
                       .type = TYPE_BULK,
                       .length = (uint32_t)(CONN_HEAD + len)};
    const uint8_t *at = r->unread ? NULL : r->from + (size_t)piece * PIECE;
    conn_lend(r->giver, &h, bytes_of(head, sizeof head), bytes_of(at, len), piece,
              file_of(r, piece), (uint64_t)piece * PIECE);
}

static void say_small(struct rig *r, uint32_t number) {
    static const uint8_t body[8];
    struct header h = {
        .magic = HEADER_MAGIC, .version = HEADER_VERSION, .type = TYPE_SMALL, .length = number % 7};
    conn_send(r->giver, &h, bytes_of(body, number % 7), (struct bytes){0});
}

/* Pieces of all lengths, the shortest too, with small frames in between. */
static size_t length_of(uint32_t piece) {
    static const size_t lengths[] = {PIECE, 1, 4096, 4096 - HEADER_BYTES - CONN_HEAD, 4095, 60000};
    return lengths[piece % 6];
}

static void check_bytes(const struct rig *r) {
    for (uint32_t i = 0; i < LOANS; i++)
        CHECK(memcmp(r->from + (size_t)i * PIECE, r->to + (size_t)i * PIECE, length_of(i)) == 0);
}

static void give_all(struct rig *r) {
    for (uint32_t i = 0; i < LOANS; i++) {
        for (uint32_t k = 0; k < i % 4; k++)
            say_small(r, r->small + k);
        lend(r, i, length_of(i));
        CHECK(UNTIL(r, r->placed + r->whole == i + 1));
    }
}

static void test_lent_and_placed(void) {
    struct rig r;
    begin(&r);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, length_of(i));
    CHECK(UNTIL(&r, r.placed + r.whole == LOANS));
    CHECK_EQ(r.returned, LOANS);
    CHECK_EQ(r.returned_tags, LOANS * (LOANS - 1) / 2);
    CHECK(r.placed >= LOANS / 3); /* the long ones */
    check_bytes(&r);
    CHECK_EQ(r.ended, 0);
    end(&r);
}

static void test_between_small_frames(void) {
    struct rig r;
    begin(&r);
    uint32_t said = 0;
    for (uint32_t i = 0; i < LOANS; i++) {
        for (uint32_t k = 0; k < i % 4; k++)
            say_small(&r, said++);
        lend(&r, i, length_of(i));
    }
    CHECK(UNTIL(&r, r.placed + r.whole == LOANS && r.small == said));
    check_bytes(&r);
    end(&r);
}

/* What the owner takes himself is not read, and nothing else is taken by it; of a sealed connection he takes nothing. */
static void test_drawn(void) {
    struct rig r;
    begin(&r);
    r.draws = true;
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, PIECE - i);
    CHECK(UNTIL(&r, r.placed == LOANS));
    CHECK(sealed ? r.drawn == 0 : r.drawn > LOANS);
    for (uint32_t i = 0; i < LOANS; i++)
        CHECK(memcmp(r.from + (size_t)i * PIECE, r.to + (size_t)i * PIECE, PIECE - i) == 0);
    end(&r);
}

/* Where there is no place a frame is handed on whole, however long. */
static void test_no_place(void) {
    struct rig r;
    begin(&r);
    r.nowhere = true;
    give_all(&r);
    CHECK_EQ(r.placed, 0);
    CHECK_EQ(r.whole, LOANS);
    check_bytes(&r);
    end(&r);
}

/* Somebody cuts the file off: the rest comes from memory, also of a piece that was begun. */
static void test_file_too_short(void) {
    struct rig r;
    begin(&r);
    CHECK_EQ(ftruncate(r.file, 7 * PIECE + PIECE / 2), 0);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, length_of(i));
    CHECK(UNTIL(&r, r.placed + r.whole == LOANS));
    CHECK_EQ(r.returned, LOANS);
    check_bytes(&r);
    end(&r);
}

/* What is only in a file comes from there; if it is not there any more the connection ends, and with a seal it does so at once. */
static void test_only_in_a_file(void) {
    struct rig r;
    uint32_t there = sealed ? 0 : 8;
    begin(&r);
    r.unread = true;
    CHECK_EQ(ftruncate(r.file, 8 * PIECE), 0);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, PIECE);
    CHECK(UNTIL(&r, r.returned == LOANS && r.ended > 0));
    CHECK_EQ(r.returned_tags, LOANS * (LOANS - 1) / 2);
    CHECK(r.placed <= there);
    CHECK(memcmp(r.from, r.to, (size_t)r.placed * PIECE) == 0);
    end(&r);
}

/* Nor does anything stay open. */
static void test_files_are_closed(void) {
    struct rig r;
    int before = dup(0), after;
    close(before);
    begin(&r);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, PIECE);
    CHECK(UNTIL(&r, r.placed == 2));
    conn_abort(r.giver);
    r.giver = NULL;
    end(&r);
    after = dup(0);
    close(after);
    CHECK_EQ(after, before);
}

/* The taker goes in the middle: everything that was lent comes back, once. */
static void test_taker_goes(void) {
    struct rig r;
    begin(&r);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, PIECE);
    CHECK(UNTIL(&r, r.placed == 2));
    conn_abort(r.taker);
    r.taker = NULL;
    CHECK(UNTIL(&r, r.returned == LOANS));
    CHECK_EQ(r.returned_tags, LOANS * (LOANS - 1) / 2);
    end(&r);
}

/* What was lent before a gentle close still arrives, and comes back. */
static void test_giver_closes(void) {
    struct rig r;
    begin(&r);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, PIECE);
    conn_close(r.giver);
    r.giver = NULL;
    CHECK(UNTIL(&r, r.placed == LOANS && r.returned == LOANS));
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK_EQ(r.why, REFUSAL_NONE);
    end(&r);
}

/* The giver dies in the middle of a piece. */
static void test_giver_dies(void) {
    struct rig r;
    begin(&r);
    for (uint32_t i = 0; i < LOANS; i++)
        lend(&r, i, PIECE);
    CHECK(UNTIL(&r, r.placed == 1));
    conn_abort(r.giver);
    r.giver = NULL;
    CHECK_EQ(r.returned, LOANS);
    CHECK(UNTIL(&r, r.ended == 1));
    CHECK(r.placed < LOANS);
    end(&r);
}

static void test_all(void) {
    TEST(test_lent_and_placed);
    TEST(test_between_small_frames);
    TEST(test_drawn);
    TEST(test_no_place);
    TEST(test_file_too_short);
    TEST(test_only_in_a_file);
    TEST(test_files_are_closed);
    TEST(test_taker_goes);
    TEST(test_giver_closes);
    TEST(test_giver_dies);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN); /* sendfile knows no other way */
    test_all();
    sealed = true;
    test_all();
    return tap_finish();
}
