/* SPDX-License-Identifier: MIT */
/* Pieces that go from a socket straight into their file. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "os/porter_inside.h"
#include "yard.h"

enum { ABOUT = 64 * 1024, BYTES = 3000000, BUFFER = 7, LINK = 3, SLOTS = 4, SLOT = 256 * 1024 };

struct rig {
    struct yard yard;
    struct parcel *parcel;
    struct depot_bundle *in;
    struct opened bundle;
    struct loop loop;
    struct porter p;
    int giver, taker;
    uint32_t first; /* piece of the file that is large enough */
};

static void nothing(void *context, uint64_t tag) {
    (void)context;
    (void)tag;
}

static void told(void *self, const struct input *in, struct effects *out) {
    (void)self;
    (void)in;
    (void)out;
}

static void prepare_depot(struct rig *r) {
    uint8_t *noise = parcel_noise(BYTES, 11);
    yard_init(&r->yard, 10 * MIB);
    r->parcel = parcel_new(DIGEST_XXH3, ABOUT);
    parcel_file(r->parcel, "file", 0600, bytes_of(noise, BYTES));
    parcel_wrap(r->parcel, GOAL_PATH, "/", false);
    free(noise);
    r->in = yard_open(&r->yard, r->parcel);
    bool *have = yard_bools(r->parcel);
    yard_pages(&r->yard, r->in, r->parcel, have);
    yard_fill(&r->yard, r->in, r->parcel, have, 0, yard_manifest_pieces(r->parcel));
    free(have);
    r->first = yard_manifest_pieces(r->parcel);
    while (parcel_piece(r->parcel, r->first).len < 40 * KIB)
        r->first++;
}

static void begin(struct rig *r) {
    int pair[2], room = 1 << 20;
    *r = (struct rig){0};
    prepare_depot(r);
    CHECK_EQ(loop_init(&r->loop), 0);
    r->bundle = (struct opened){.open = true, .in = r->in, .near = true};
    r->p = (struct porter){.limits = {.hauls = 1}, .bundles = &r->bundle, .pipe = {-1, -1}};
    r->p.config.loop = &r->loop;
    writer_init(&r->p.writer, &r->loop, porter_written);
    r->p.carriage =
        carriage_new(&(struct carriage_config){.loop = &r->loop, .source = "", .sent = nothing});
    struct buffer *b = buffers_open(&r->p.buffers, BUFFER, (uint64_t)SLOTS * SLOT);
    b->link = LINK;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    r->giver = pair[0];
    r->taker = pair[1];
}

static void end(struct rig *r) {
    porter_draws_fini(&r->p);
    writer_fini(&r->p.writer);
    free(r->p.deeds);
    carriage_free(r->p.carriage);
    loans_fini(&r->p.loans);
    buffers_fini(&r->p.buffers);
    close(r->giver);
    close(r->taker);
    loop_fini(&r->loop);
    depot_close(r->in, false);
    parcel_free(r->parcel);
    yard_fini(&r->yard);
}

static struct message_put put_of(const struct rig *r, uint32_t piece, uint32_t slot) {
    return (struct message_put){.buffer = BUFFER,
                                .offset = (uint64_t)slot * SLOT,
                                .note = piece,
                                .body = {NULL, parcel_piece(r->parcel, piece).len}};
}

/* The first bytes of a piece came with its head, these follow. */
static ssize_t come(struct rig *r, const struct message_put *m, struct bytes bytes, size_t done) {
    if (bytes.len > 0)
        CHECK_EQ(send(r->giver, bytes.at, bytes.len, 0), (ssize_t)bytes.len);
    return porter_draw(&r->p, LINK, r->taker, m, done);
}

static int judged(struct rig *r, uint32_t piece, uint32_t slot) {
    struct effect_piece e = {.piece = piece,
                             .buffer = BUFFER,
                             .offset = (uint64_t)slot * SLOT,
                             .len = (uint32_t)parcel_piece(r->parcel, piece).len};
    int status = -1;
    uint8_t digest[DIGEST_BYTES_MAX];
    if (!porter_drawn(&r->p, &e, &status, digest))
        return -ENOENT;
    return status < 0 ? status : depot_settle(r->in, piece, digest, r->yard.why);
}

static struct bytes rest_of(const struct rig *r, uint32_t piece, size_t done) {
    struct bytes b = parcel_piece(r->parcel, piece);
    return bytes_of(b.at + done, b.len - done);
}

static void head_came(struct rig *r, uint32_t piece, uint32_t slot, size_t done) {
    memcpy(buffers_find(&r->p.buffers, BUFFER)->at + (size_t)slot * SLOT,
           parcel_piece(r->parcel, piece).at, done);
}

/* Bit by bit, the beginning by way of the slot. */
static void test_comes(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 1);
    head_came(&r, piece, 1, 1000);
    CHECK_EQ(come(&r, &m, bytes_of(NULL, 0), 1000), -EAGAIN);
    CHECK_EQ(come(&r, &m, bytes_of(parcel_piece(r.parcel, piece).at + 1000, 5000), 1000), 5000);
    CHECK_EQ(depot_load(r.in, piece, room_of(NULL, 0), r.yard.why), -ENOENT); /* not judged */
    struct bytes rest = rest_of(&r, piece, 6000);
    CHECK_EQ(come(&r, &m, rest, 6000), (ssize_t)rest.len);
    CHECK_EQ(judged(&r, piece, 0), -ENOENT); /* that slot has nothing */
    CHECK_EQ(judged(&r, piece, 1), 0);
    for (uint32_t i = yard_manifest_pieces(r.parcel); i < r.parcel->pieces; i++)
        CHECK_EQ(depot_store(r.in, i, parcel_piece(r.parcel, i), r.yard.why), 0);
    yard_commit(&r.yard, r.in);
    CHECK(yard_has(&r.yard, "root/file", bytes_of(r.parcel->contents, BYTES)));
    end(&r);
}

/* What does not fit counts for nothing, and may come again. */
static void test_wrong(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    uint8_t *bad = parcel_noise(m.body.len, 99);
    CHECK_EQ(come(&r, &m, bytes_of(bad, m.body.len), 0), (ssize_t)m.body.len);
    CHECK_EQ(judged(&r, piece, 0), -EBADMSG);
    CHECK_EQ(come(&r, &m, rest_of(&r, piece, 0), 0), (ssize_t)m.body.len);
    CHECK_EQ(judged(&r, piece, 0), 0);
    free(bad);
    end(&r);
}

/* What was judged is never written over, nor is a piece that comes twice at once. */
static void test_only_once(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0), again = put_of(&r, piece, 1);
    struct message_put odd = m, far = m;
    odd.body.len--;
    far.note = UINT64_C(1) << 32 | piece;
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &odd, 0), -EOPNOTSUPP);
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &far, 0), -EOPNOTSUPP);
    CHECK_EQ(porter_draw(&r.p, LINK + 1, r.taker, &m, 0), -EOPNOTSUPP); /* not its buffer */
    CHECK_EQ(come(&r, &m, bytes_of(parcel_piece(r.parcel, piece).at, 9000), 0), 9000);
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &again, 0), -EOPNOTSUPP);
    struct bytes rest = rest_of(&r, piece, 9000);
    CHECK_EQ(come(&r, &m, rest, 9000), (ssize_t)rest.len);
    CHECK_EQ(judged(&r, piece, 0), 0);
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &again, 0), -EOPNOTSUPP);
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &m, 0), -EOPNOTSUPP);
    end(&r);
}

/* Two that come in turns: what the one has in the pipe is not the other's. */
static void test_in_turns(void) {
    struct rig r;
    begin(&r);
    uint32_t pieces[2] = {r.first, r.first + 1};
    struct message_put m[2] = {put_of(&r, pieces[0], 0), put_of(&r, pieces[1], 1)};
    size_t done[2] = {0, 0};
    for (int i = 0; done[0] < m[0].body.len || done[1] < m[1].body.len; i = !i) {
        struct bytes some = rest_of(&r, pieces[i], done[i]);
        some.len = some.len < 7000 ? some.len : 7000;
        if (some.len > 0)
            CHECK_EQ(come(&r, &m[i], some, done[i]), (ssize_t)some.len);
        done[i] += some.len;
    }
    CHECK_EQ(judged(&r, pieces[0], 0), 0);
    CHECK_EQ(judged(&r, pieces[1], 1), 0);
    end(&r);
}

/* What waits of a piece that is here meanwhile is not written when another wants the pipe. */
static void test_in_turns_here_meanwhile(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0), next = put_of(&r, piece + 1, 1);
    uint8_t *bad = parcel_noise(m.body.len, 99);
    CHECK_EQ(come(&r, &m, bytes_of(bad, 9000), 0), 9000);
    CHECK_EQ(depot_store(r.in, piece, parcel_piece(r.parcel, piece), r.yard.why), 0);
    CHECK_EQ(come(&r, &next, rest_of(&r, piece + 1, 0), 0), (ssize_t)next.body.len);
    CHECK_EQ(judged(&r, piece + 1, 1), 0);
    CHECK_EQ(come(&r, &m, bytes_of(NULL, 0), 9000), -EOPNOTSUPP);
    CHECK_EQ(judged(&r, piece, 0), 0);
    free(bad);
    end(&r);
}

/* So many small parts that the pipe has no place for them all. */
static void test_full_pipe(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    const uint8_t *at = parcel_piece(r.parcel, piece).at;
    size_t sent = 0, done = 0, turns = 0;
    while (done < m.body.len && turns++ < 100000) {
        while (sent < m.body.len && send(r.giver, at + sent, 1, MSG_DONTWAIT) == 1)
            sent++;
        ssize_t got = porter_draw(&r.p, LINK, r.taker, &m, done);
        CHECK(got > 0 || got == -EAGAIN);
        done += got > 0 ? (size_t)got : 0;
    }
    CHECK_EQ(done, m.body.len);
    CHECK_EQ(judged(&r, piece, 0), 0);
    end(&r);
}

/* The same where the giver has gone: that is seen. */
static void test_full_pipe_and_the_end(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    const uint8_t *at = parcel_piece(r.parcel, piece).at;
    CHECK_EQ(come(&r, &m, bytes_of(at, 1), 0), 1);
    CHECK(fcntl(r.p.pipe[1], F_SETPIPE_SZ, 4096) == 4096); /* which has it now */
    CHECK_EQ(come(&r, &m, bytes_of(NULL, 0), 1), -EAGAIN);
    CHECK_EQ(come(&r, &m, bytes_of(at + 1, 1), 1), 1);
    shutdown(r.giver, SHUT_WR);
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &m, 2), 0);
    end(&r);
}

/* A link that ends amid a piece, another that brings it from its beginning. */
static void test_other_link(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0), elsewhere = put_of(&r, piece, 2);
    CHECK_EQ(come(&r, &m, bytes_of(parcel_piece(r.parcel, piece).at, 9000), 0), 9000);
    buffers_find(&r.p.buffers, BUFFER)->link = LINK + 1;
    struct bytes all = rest_of(&r, piece, 0);
    CHECK_EQ(send(r.giver, all.at, all.len, 0), (ssize_t)all.len);
    CHECK_EQ(porter_draw(&r.p, LINK + 1, r.taker, &elsewhere, 0), (ssize_t)all.len);
    CHECK_EQ(judged(&r, piece, 0), -ENOENT);
    CHECK_EQ(judged(&r, piece, 2), 0);
    end(&r);
}

/* The same, and it comes to the same slot, whole: what is in the file is of the link before. */
static void test_other_link_not_drawn(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    CHECK_EQ(come(&r, &m, bytes_of(parcel_piece(r.parcel, piece).at, 9000), 0), 9000);
    buffers_find(&r.p.buffers, BUFFER)->link = LINK + 1;
    CHECK_EQ(judged(&r, piece, 0), -ENOENT); /* so the slot counts */
    end(&r);
}

/* A piece that is judged while another is bringing it again: nothing of that is written any more. */
static void test_here_meanwhile(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    uint8_t *bad = parcel_noise(m.body.len, 99);
    CHECK_EQ(come(&r, &m, bytes_of(bad, 9000), 0), 9000);
    CHECK_EQ(depot_store(r.in, piece, parcel_piece(r.parcel, piece), r.yard.why), 0);
    CHECK_EQ(come(&r, &m, bytes_of(bad, 9000), 9000), -EOPNOTSUPP);
    CHECK_EQ(judged(&r, piece, 0),
             0); /* it is as it was, and to be had from the file: not the slot */
    free(bad);
    end(&r);
}

/* A file system that does not take it: what is in the pipe goes by way of the slot, and other pieces do from the beginning. */
static void test_no_splice(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0), next = put_of(&r, piece + 1, 1);
    CHECK_EQ(come(&r, &m, bytes_of(parcel_piece(r.parcel, piece).at, 9000), 0), 9000);
    r.p.no_splice = true;
    CHECK_EQ(come(&r, &m, bytes_of(NULL, 0), 9000), -EAGAIN); /* which is no refusal */
    struct bytes rest = rest_of(&r, piece, 9000);
    CHECK_EQ(come(&r, &m, rest, 9000), (ssize_t)rest.len);
    CHECK_EQ(judged(&r, piece, 0), 0);
    CHECK_EQ(porter_draw(&r.p, LINK, r.taker, &next, 0), -EOPNOTSUPP);
    end(&r);
}

/* What a link has left behind does not keep the file open: it could not be run. */
static void test_forgotten_at_the_commit(void) {
    struct rig r;
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    struct effect commit = {.kind = EFFECT_BUNDLE_COMMIT};
    r.p.machine.step = told;
    CHECK_EQ(come(&r, &m, bytes_of(parcel_piece(r.parcel, piece).at, 9000), 0), 9000);
    for (uint32_t i = yard_manifest_pieces(r.parcel); i < r.parcel->pieces; i++)
        CHECK_EQ(depot_store(r.in, i, parcel_piece(r.parcel, i), r.yard.why), 0);
    uint32_t before = yard_open_files();
    porter_do_later(&r.p, &commit);
    porter_work_off(&r.p);
    CHECK(yard_has(&r.yard, "root/file", bytes_of(r.parcel->contents, BYTES)));
    CHECK(yard_open_files() < before);
    CHECK_EQ(judged(&r, piece, 0), -ENOENT);
    end(&r);
}

/* A file that takes no more: the rest is read and thrown away, and the reason told. */
static void test_no_room(void) {
    struct rig r;
    struct rlimit before, small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    begin(&r);
    uint32_t piece = r.first;
    struct message_put m = put_of(&r, piece, 0);
    struct message_put next = put_of(&r, piece + 1, 1);
    struct bytes all = rest_of(&r, piece, 0);
    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    CHECK_EQ(come(&r, &m, bytes_of(all.at, 30000), 0), 30000);
    CHECK_EQ(come(&r, &next, rest_of(&r, piece + 1, 0), 0), (ssize_t)next.body.len);
    CHECK_EQ(judged(&r, piece + 1, 1), -EFBIG);
    CHECK_EQ(come(&r, &m, bytes_of(NULL, 0), 30000), -EOPNOTSUPP); /* to the slot */
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_EQ(judged(&r, piece, 0), -EFBIG);
    CHECK_EQ(come(&r, &m, all, 0), (ssize_t)all.len); /* nothing was left in between */
    CHECK_EQ(judged(&r, piece, 0), 0);
    end(&r);
}

int main(void) {
    TEST(test_comes);
    TEST(test_wrong);
    TEST(test_only_once);
    TEST(test_in_turns);
    TEST(test_in_turns_here_meanwhile);
    TEST(test_full_pipe);
    TEST(test_full_pipe_and_the_end);
    TEST(test_other_link);
    TEST(test_other_link_not_drawn);
    TEST(test_here_meanwhile);
    TEST(test_no_splice);
    TEST(test_forgotten_at_the_commit);
    TEST(test_no_room);
    return tap_finish();
}
