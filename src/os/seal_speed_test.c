/* SPDX-License-Identifier: MIT */
/* What a seal costs: bytes a second of a plain connection and of a sealed one over loopback, in turn, in one run; handshakes a
 * second. Both ends are in one process, so that encrypting, decrypting and the kernel share one processor: the worst case, that
 * of nodes whose processors are all busy.
 *
 * Figures are told; what is checked is only that all arrives, and that a sealed connection is not out of proportion. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/address.h"
#include "os/conn.h"
#include "sealed.h"
#include "turns.h"

enum { FRAME = 512 * 1024, WINDOW = 4, ROUNDS = 5, HANDSHAKES = 300 };

#define TOTAL (64 * MIB)

struct rig {
    struct loop loop;
    struct conns conns;
    struct address at;
    int listener;
    struct sealer sealer;
    struct conn *giver, *taker;
    uint64_t got, returned, given;
    uint32_t connected;
    uint8_t *from, *to;
};

static struct rig *rig_of(const struct conn *c) {
    return CONTAINER_OF(c->all, struct rig, conns);
}

static enum refusal on_judge(struct conn *c, const struct header *h) {
    (void)c;
    return h->magic == HEADER_MAGIC ? REFUSAL_NONE : REFUSAL_MAGIC;
}

static void on_frame(struct conn *c, const struct header *h, struct bytes body) {
    (void)h;
    rig_of(c)->got += body.len;
}

static uint8_t *on_place(struct conn *c, const struct header *h, const uint8_t *head, size_t len) {
    (void)h;
    (void)head;
    return len <= FRAME ? rig_of(c)->to : NULL;
}

static void on_placed(struct conn *c, const struct header *h, const uint8_t *head, size_t len) {
    (void)head;
    (void)len;
    rig_of(c)->got += h->length;
}

static void on_returned(struct conn *c, const struct loan *loan) {
    rig_of(c)->returned += CONN_HEAD + loan->bytes.len;
}

static void on_connected(struct conn *c) {
    rig_of(c)->connected++;
}

static void on_ended(struct conn *c, enum refusal why) {
    CHECK_EQ(why, REFUSAL_NONE);
    conn_close(c);
}

#define UNTIL(r, condition) TURN_UNTIL(&(r)->loop, conns_settle(&(r)->conns), condition)

static void rig_begin(struct rig *r) {
    *r = (struct rig){.from = malloc(FRAME), .to = malloc(FRAME)};
    memset(r->from, 'x', FRAME);
    CHECK_EQ(loop_init(&r->loop), 0);
    CHECK_EQ(conns_init(&r->conns, &r->loop), 0);
    r->conns.judge = on_judge;
    r->conns.frame = on_frame;
    r->conns.ended = on_ended;
    r->conns.place = on_place;
    r->conns.placed = on_placed;
    r->conns.returned = on_returned;
    r->conns.connected = on_connected;
    CHECK_EQ(address_parse(&r->at, "tcp:127.0.0.1:0"), 0);
    CHECK((r->listener = address_listen(&r->at)) >= 0);
    r->sealer = seals_sealer(sealed_party());
}

static void rig_end(struct rig *r) {
    conns_fini(&r->conns);
    loop_fini(&r->loop);
    close(r->listener);
    seals_free(r->sealer.seals);
    free(r->from);
    free(r->to);
}

static void connect_both(struct rig *r, bool sealed) {
    const struct sealer *s = &r->sealer;
    int done, other = -EAGAIN, fd = address_connect(&r->at, &done);
    CHECK(fd >= 0);
    uint32_t before = r->connected;
    r->giver = sealed ? conn_new_sealed(&r->conns, fd, true, s, s->connect(s->seals, fd, 7))
                      : conn_new(&r->conns, fd, true);
    CHECK(UNTIL(r, (other = address_accept(r->listener)) >= 0));
    r->taker = sealed ? conn_new_sealed(&r->conns, other, false, s, s->accept(s->seals, other))
                      : conn_new(&r->conns, other, false);
    r->taker->bulky = true;
    CHECK(UNTIL(r, r->connected == before + 1 && !r->taker->connecting));
}

static void close_both(struct rig *r) {
    conn_abort(r->giver);
    conn_abort(r->taker);
    conns_settle(&r->conns);
}

/* Bytes a second. */
static double carry(struct rig *r, bool sealed) {
    uint8_t head[CONN_HEAD] = {0};
    struct header h = {
        .magic = HEADER_MAGIC, .version = HEADER_VERSION, .type = 1, .length = CONN_HEAD + FRAME};
    connect_both(r, sealed);
    r->got = r->given = r->returned = 0;
    uint64_t begin = clock_ns(), end = begin + PATIENCE_NS;
    while (r->got < TOTAL && clock_ns() < end) {
        while (r->given < TOTAL && r->given - r->returned < (uint64_t)WINDOW * FRAME) {
            conn_lend(r->giver, &h, bytes_of(head, sizeof head), bytes_of(r->from, FRAME), 0, -1,
                      0);
            r->given += h.length;
        }
        loop_turn(&r->loop, 1);
        conns_settle(&r->conns);
    }
    uint64_t took = clock_ns() - begin;
    CHECK(r->got >= TOTAL);
    close_both(r);
    return (double)r->got * 1e9 / (double)took;
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

static void test_bytes(void) {
    double rate[2][ROUNDS];
    struct rig r;
    rig_begin(&r);
    for (int i = 0; i < ROUNDS; i++)
        for (int sealed = 0; sealed < 2; sealed++)
            rate[sealed][i] = carry(&r, sealed);
    double plain = median(rate[0]), sealed = median(rate[1]);
    printf("# plain %.0f MB/s, sealed %.0f MB/s, ratio %.2f (median of %d)\n", plain / 1e6,
           sealed / 1e6, plain / sealed, ROUNDS);
    CHECK(plain / sealed < 40);
    rig_end(&r);
}

static void test_handshakes(void) {
    uint64_t took[2];
    struct rig r;
    rig_begin(&r);
    for (int sealed = 0; sealed < 2; sealed++) {
        uint64_t begin = clock_ns();
        for (int i = 0; i < HANDSHAKES; i++) {
            connect_both(&r, sealed);
            close_both(&r);
        }
        took[sealed] = clock_ns() - begin;
    }
    printf("# a connection: plain %.0f us, sealed %.0f us both ends together: %.0f handshakes/s\n",
           (double)took[0] / 1e3 / HANDSHAKES, (double)took[1] / 1e3 / HANDSHAKES,
           HANDSHAKES * 1e9 / (double)took[1]);
    rig_end(&r);
}

int main(void) {
    TEST(test_bytes);
    TEST(test_handshakes);
    return tap_finish();
}
