/* SPDX-License-Identifier: MIT */
/* Sessions: two ends in one process, over a pair of sockets; strangers of all kinds; bytes of one session in another. */
#include "os/seal.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "base/units.h"
#include "machine/primitive.h"
#include "tap.h"

enum { NOW = 5 /* the epoch */, RECORD_MAX = 8192 };

/* One side of the world: what keys it has. */
struct party {
    struct identity id;
    uint8_t key[KEY_BYTES];
    int offered, asked;
};

struct pair {
    struct party parties[2];
    struct seals *seals[2];
    struct seal *ends[2]; /* 0 connects, 1 accepts */
    int fds[2];
};

static int on_offer(void *context, uint32_t to, struct identity *ret_id, uint8_t ret[KEY_BYTES]) {
    struct party *p = context;
    p->offered++;
    if (to != p->id.to)
        return -ENOKEY;
    *ret_id = p->id;
    memcpy(ret, p->key, KEY_BYTES);
    return 0;
}

static int on_answer(void *context, const struct identity *id, uint8_t ret[KEY_BYTES]) {
    struct party *p = context;
    p->asked++;
    if (id->serial < NOW)
        return -ESTALE;
    if (!identity_equal(id, &p->id))
        return -ENOKEY;
    memcpy(ret, p->key, KEY_BYTES);
    return 0;
}

static void pair_begin(struct pair *p, int buffer) {
    *p = (struct pair){0};
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, p->fds), 0);
    for (int i = 0; i < 2; i++) {
        struct party *party = &p->parties[i];
        party->id = (struct identity){.kind = IDENTITY_EDGE, .serial = NOW, .from = 7, .to = 3};
        memset(party->key, 0x5a, KEY_BYTES);
        struct seal_keys keys = {.offer = on_offer, .answer = on_answer, .context = party};
        p->seals[i] = seals_new(&keys);
        CHECK(p->seals[i] != NULL);
        if (buffer > 0)
            setsockopt(p->fds[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    }
}

static void pair_seal(struct pair *p) {
    p->ends[0] = seal_connect(p->seals[0], p->fds[0], p->parties[0].id.to);
    p->ends[1] = seal_accept(p->seals[1], p->fds[1]);
    CHECK(p->ends[0] != NULL && p->ends[1] != NULL);
}

static void pair_end(struct pair *p) {
    for (int i = 0; i < 2; i++) {
        seal_free(p->ends[i]);
        seals_free(p->seals[i]);
        if (p->fds[i] >= 0)
            close(p->fds[i]);
    }
}

static int shake(struct seal *s) {
    seal_heard(s);
    return seal_shake(s);
}

/* Both sides until neither goes on. */
static void shake_both(struct pair *p, int status[2]) {
    for (int i = 0; i < 6; i++)
        for (int side = 0; side < 2; side++)
            status[side] = shake(p->ends[side]);
}

static void pair_open(struct pair *p, int buffer) {
    int status[2];
    pair_begin(p, buffer);
    pair_seal(p);
    shake_both(p, status);
    for (int i = 0; i < 2; i++)
        if (status[i] < 0)
            printf("# %s\n", seal_reason(p->ends[i]));
    CHECK_EQ(status[0], SEAL_DONE);
    CHECK_EQ(status[1], SEAL_DONE);
}

static ssize_t hear(struct seal *s, void *at, size_t len) {
    seal_heard(s);
    return seal_read(s, at, len);
}

/* ---- what both have keys for ---- */

static void test_who_is_there(void) {
    struct pair p;
    pair_open(&p, 0);
    for (int i = 0; i < 2; i++)
        CHECK(identity_equal(seal_who(p.ends[i]), &p.parties[0].id));
    CHECK_EQ(p.parties[0].offered, 1);
    CHECK_EQ(p.parties[1].asked, 1);
    char c;
    CHECK_EQ(hear(p.ends[0], &c, 1), -EAGAIN); /* no tickets, nothing but what is said */
    CHECK_EQ(recv(p.fds[0], &c, 1, MSG_DONTWAIT), -1);
    pair_end(&p);
}

/* `len` bytes from one end to the other, in whatever portions the socket takes them. */
static void pass(struct pair *p, int from, size_t len, const uint8_t *bytes, uint8_t *got) {
    size_t out = 0, in = 0;
    for (uint64_t rounds = 0; in < len && rounds < 1000000; rounds++) {
        ssize_t r = out < len ? seal_write(p->ends[from], bytes + out, len - out) : 0;
        if (!CHECK(r >= 0 || r == -EAGAIN))
            return;
        out += r > 0 ? (size_t)r : 0;
        seal_heard(p->ends[!from]);
        while (in < len && (r = seal_read(p->ends[!from], got + in, len - in)) > 0)
            in += (size_t)r;
    }
    CHECK_EQ(in, len);
    CHECK_EQ(memcmp(bytes, got, len), 0);
}

static void check_sizes(int buffer, uint64_t rekey_bytes) {
    static const size_t sizes[] = {1, 2, 31, 1000, 16383, 16384, 16385, 100000, 1 << 20, 5000001};
    uint8_t *bytes = malloc(5000001), *got = malloc(5000001);
    struct random random;
    struct pair p;
    pair_open(&p, buffer);
    random_init(&random, 3);
    random_bytes(&random, bytes, 5000001);
    if (rekey_bytes > 0)
        for (int i = 0; i < 2; i++)
            seals_set_rekey_bytes(p.seals[i], rekey_bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int from = 0; from < 2; from++)
            pass(&p, from, sizes[i], bytes, got);
    pair_end(&p);
    free(bytes);
    free(got);
}

static void test_sizes(void) {
    check_sizes(0, 0);
}

/* The socket takes little: nearly every write is cut somewhere in a record. */
static void test_backpressure(void) {
    check_sizes(4096, 0);
}

static void test_keys_change(void) {
    check_sizes(0, 50000);
    check_sizes(4096, 50000);
}

/* Both directions are full at once. */
static void test_both_ways_at_once(void) {
    enum { TOTAL = 3000000 };
    uint8_t *bytes = malloc(TOTAL), *got = malloc(65536);
    size_t out[2] = {0}, in[2] = {0};
    struct pair p;
    pair_open(&p, 8192);
    memset(bytes, 7, TOTAL);
    for (int rounds = 0; (in[0] < TOTAL || in[1] < TOTAL) && rounds < 1000000; rounds++)
        for (int i = 0; i < 2; i++) {
            ssize_t r = out[i] < TOTAL ? seal_write(p.ends[i], bytes + out[i], TOTAL - out[i]) : 0;
            out[i] += r > 0 ? (size_t)r : 0;
            seal_heard(p.ends[i]);
            while ((r = seal_read(p.ends[i], got, 65536)) > 0)
                in[i] += (size_t)r;
            CHECK_EQ(r, -EAGAIN);
        }
    CHECK_EQ(in[0], TOTAL);
    CHECK_EQ(in[1], TOTAL);
    pair_end(&p);
    free(bytes);
    free(got);
}

/* Who waits for the socket misses nothing: after EAGAIN nothing is left inside. Reading stops half way, too. */
static void test_nothing_stays_inside(void) {
    uint8_t out[40000] = {1}, in[100];
    struct pair p;
    pair_open(&p, 0);
    for (int i = 0; i < 200; i++)
        CHECK_EQ(seal_write(p.ends[0], out, 150), 150);
    CHECK_EQ(seal_write(p.ends[0], out, sizeof out), (ssize_t)sizeof out);
    size_t total = 0;
    for (int turns = 0; turns < 10; turns++) {
        ssize_t r;
        seal_heard(p.ends[1]);
        while ((r = seal_read(p.ends[1], in, sizeof in)) > 0)
            total += (size_t)r;
        CHECK_EQ(r, -EAGAIN);
        char c;
        if (recv(p.fds[1], &c, 1, MSG_PEEK) < 0)
            break;
    }
    CHECK_EQ(total, 200 * 150 + sizeof out);
    pair_end(&p);
}

/* ---- how it ends ---- */

static void test_the_end_is_said(void) {
    char in[16];
    struct pair p;
    pair_open(&p, 0);
    CHECK_EQ(seal_write(p.ends[0], "last words", 10), 10);
    CHECK_EQ(seal_finish(p.ends[0]), 0);
    shutdown(p.fds[0], SHUT_WR);
    seal_heard(p.ends[1]);
    CHECK_EQ(seal_read(p.ends[1], in, sizeof in), 10);
    CHECK_EQ(seal_read(p.ends[1], in, sizeof in), 0);
    CHECK_EQ(hear(p.ends[1], in, sizeof in), 0);
    CHECK_EQ(seal_write(p.ends[1], "answer", 6), 6); /* the other direction goes on */
    CHECK_EQ(hear(p.ends[0], in, sizeof in), 6);
    pair_end(&p);
}

/* Somebody in between, or a peer that dies: the end of the socket is not the end of what was to be said. */
static void test_cut_off(void) {
    char in[16];
    struct pair p;
    pair_open(&p, 0);
    CHECK_EQ(seal_write(p.ends[0], "some", 4), 4);
    close(p.fds[0]);
    p.fds[0] = -1;
    CHECK_EQ(hear(p.ends[1], in, sizeof in), 4);
    CHECK_EQ(hear(p.ends[1], in, sizeof in), -ECONNRESET);
    CHECK_EQ(hear(p.ends[1], in, sizeof in), -ECONNRESET);
    CHECK(seal_write(p.ends[1], "x", 1) < 0); /* and no SIGPIPE */
    CHECK(strlen(seal_reason(p.ends[1])) > 0);
    pair_end(&p);
}

static void test_spoiled_on_the_way(void) {
    uint8_t bytes[256], in[64];
    struct pair p;
    pair_open(&p, 0);
    CHECK_EQ(seal_write(p.ends[0], "forty two", 9), 9);
    ssize_t len = recv(p.fds[1], bytes, sizeof bytes, 0);
    CHECK(len > 9);
    bytes[len - 1] ^= 1;
    CHECK_EQ(send(p.fds[0], bytes, (size_t)len, 0), len);
    CHECK_EQ(hear(p.ends[1], in, sizeof in), -EBADMSG);
    CHECK_EQ(hear(p.ends[1], in, sizeof in), -EBADMSG);
    pair_end(&p);
}

static void test_gone_in_the_middle(void) {
    for (int side = 0; side < 2; side++) {
        struct pair p;
        pair_begin(&p, 0);
        pair_seal(&p);
        CHECK_EQ(seal_shake(p.ends[0]), SEAL_HEAR);
        if (side == 1)
            CHECK_EQ(shake(p.ends[1]), SEAL_HEAR); /* has answered, waits for the last word */
        close(p.fds[!side]);
        p.fds[!side] = -1;
        int r = SEAL_HEAR;
        for (int i = 0; i < 4 && r >= 0; i++)
            r = shake(p.ends[side]);
        CHECK(r == -ECONNRESET || r == -EPIPE);
        pair_end(&p);
    }
}

/* ---- who does not get in ---- */

static void check_refused(struct pair *p, int status, const char *reason) {
    int got[2];
    pair_seal(p);
    shake_both(p, got);
    CHECK_EQ(got[1], status);
    CHECK(got[0] < 0);
    if (!CHECK(strstr(seal_reason(p->ends[1]), reason) != NULL))
        printf("# %s\n", seal_reason(p->ends[1]));
    CHECK(strlen(seal_reason(p->ends[0])) > 0);
    pair_end(p);
}

static void test_wrong_key(void) {
    struct pair p;
    pair_begin(&p, 0);
    p.parties[0].key[31] ^= 1;
    check_refused(&p, -EPROTO, "node 7 to node 3 in epoch 5: binder does not verify");
}

static void test_unknown_identity(void) {
    struct pair p;
    pair_begin(&p, 0);
    p.parties[0].id.from = 8; /* with the key of another */
    check_refused(&p, -ENOKEY, "node 8 to node 3 in epoch 5");
}

static void test_old_epoch(void) {
    struct pair p;
    pair_begin(&p, 0);
    p.parties[0].id.serial = NOW - 1;
    check_refused(&p, -ESTALE, "former epoch");
}

static void test_no_key_no_session(void) {
    struct pair p;
    pair_begin(&p, 0);
    CHECK(seal_connect(p.seals[0], p.fds[0], 99) == NULL);
    pair_end(&p);
}

/* What a stranger says, to a server; the status when all is said. */
static int say(const void *bytes, size_t len, bool closed, char reason[SEAL_REASON_MAX]) {
    struct pair p;
    pair_begin(&p, 0);
    p.ends[1] = seal_accept(p.seals[1], p.fds[1]);
    if (len > 0)
        CHECK_EQ(send(p.fds[0], bytes, len, MSG_NOSIGNAL), (ssize_t)len);
    if (closed)
        shutdown(p.fds[0], SHUT_WR);
    int r = SEAL_HEAR;
    for (int i = 0; i < 8 && r >= 0; i++)
        r = shake(p.ends[1]);
    snprintf(reason, SEAL_REASON_MAX, "%s", seal_reason(p.ends[1]));
    CHECK(r != SEAL_DONE);
    pair_end(&p);
    return r;
}

static void test_no_tls_at_all(void) {
    char reason[SEAL_REASON_MAX];
    uint8_t bytes[SEAL_HANDSHAKE_BYTES_MAX + 1000];
    struct random random;
    random_init(&random, 11);
    CHECK_EQ(say("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27, false, reason), -EPROTO);
    CHECK_EQ(say("SSH-2.0-OpenSSH_9.2\r\n", 21, false, reason), -EPROTO);
    CHECK_EQ(say("", 0, true, reason), -ECONNRESET);
    for (int i = 0; i < 50; i++) {
        random_bytes(&random, bytes, sizeof bytes);
        CHECK_EQ(say(bytes, sizeof bytes, false, reason), -EPROTO);
    }
}

/* A hello that never ends: pieces of it are well formed. */
static void test_a_handshake_without_end(void) {
    char reason[SEAL_REASON_MAX];
    uint8_t bytes[2 * SEAL_HANDSHAKE_BYTES_MAX] = {22, 3, 1, 0x40, 0, 1, 0, 0x7f, 0xff, 3, 3};
    CHECK_EQ(say(bytes, sizeof bytes, false, reason), -EPROTO);
    CHECK_STR(reason, "a handshake that does not end");
    CHECK_EQ(say(bytes, SEAL_HANDSHAKE_BYTES_MAX - 1, false, reason),
             SEAL_HEAR); /* his time will be over */
}

/* ---- bytes that were recorded ---- */

struct recording {
    uint8_t bytes[RECORD_MAX];
    size_t len, hello; /* in all; of the first flight */
};

/* What the client of a good session has said. */
static void record(struct recording *r) {
    struct pair p;
    int other[2], status = SEAL_HEAR;
    uint8_t bytes[4096];
    pair_begin(&p, 0);
    pair_seal(&p);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, other), 0);
    seal_free(p.ends[1]);
    p.ends[1] = seal_accept(p.seals[1], other[1]); /* and we are in between */
    r->len = r->hello = 0;
    bool said = false;
    for (int i = 0; i < 8; i++) {
        if (status != SEAL_DONE)
            status = shake(p.ends[0]);
        if (status == SEAL_DONE && !said)
            said = CHECK_EQ(seal_write(p.ends[0], "order", 5), 5);
        ssize_t got = recv(p.fds[1], r->bytes + r->len, RECORD_MAX - r->len, 0);
        if (got > 0) {
            CHECK_EQ(send(other[0], r->bytes + r->len, (size_t)got, 0), got);
            r->len += (size_t)got;
            r->hello = r->hello == 0 ? r->len : r->hello;
        }
        shake(p.ends[1]);
        got = recv(other[0], bytes, sizeof bytes, 0);
        if (got > 0)
            CHECK_EQ(send(p.fds[1], bytes, (size_t)got, 0), got);
    }
    CHECK(said && hear(p.ends[1], bytes, sizeof bytes) == 5);
    CHECK(r->hello > 100 && r->hello < r->len && r->len < SEAL_HANDSHAKE_BYTES_MAX);
    close(other[0]);
    close(other[1]);
    pair_end(&p);
}

static void test_said_again(void) {
    char reason[SEAL_REASON_MAX];
    struct recording r;
    record(&r);
    CHECK_EQ(say(r.bytes, r.len, false, reason), -EPROTO); /* another session, other keys */
    CHECK(strstr(reason, "node 7 to node 3") != NULL);
    CHECK_EQ(say(r.bytes, r.hello, false, reason),
             SEAL_HEAR); /* gets an answer, and cannot go on */
    CHECK_EQ(say(r.bytes, r.hello, true, reason), -ECONNRESET);
}

static void test_truncated(void) {
    char reason[SEAL_REASON_MAX];
    struct recording r;
    record(&r);
    for (size_t len = 0; len < r.len; len += len < 20 ? 1 : 13) {
        int status = say(r.bytes, len, true, reason);
        CHECK(status == -ECONNRESET || (len >= r.hello && status == -EPROTO));
    }
}

/* Recorded bytes, changed a little: none gets in, and nothing breaks. */
static void test_mutations(void) {
    enum { ROUNDS = 6000 };
    char reason[SEAL_REASON_MAX];
    struct recording r;
    struct random random;
    random_init(&random, 17);
    record(&r);
    for (int i = 0; i < ROUNDS; i++) {
        uint8_t bytes[RECORD_MAX];
        size_t len = random_below(&random, 4) == 0 ? 1 + random_below(&random, r.len) : r.len;
        memcpy(bytes, r.bytes, r.len);
        uint64_t changes = 1 + random_below(&random, 4);
        for (uint64_t n = 0; n < changes; n++) {
            uint64_t at = random_below(&random, r.hello);
            bytes[at] = random_below(&random, 2)
                            ? (uint8_t)random_below(&random, 256)
                            : (uint8_t)(bytes[at] ^ 1U << random_below(&random, 8));
        }
        CHECK(say(bytes, len, true, reason) < 0);
    }
}

/* ---- a peer that offers other means ---- */

static void self_signed(SSL_CTX *c) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    CHECK(X509_sign(x, key, EVP_sha256()) > 0);
    CHECK(SSL_CTX_use_certificate(c, x) > 0 && SSL_CTX_use_PrivateKey(c, key) > 0);
    X509_free(x);
    EVP_PKEY_free(key);
}

/* A server without our key, but with a certificate: there is nothing that we would believe it for. */
static void test_a_certificate_is_no_key(void) {
    struct pair p;
    pair_begin(&p, 0);
    SSL_CTX *c = SSL_CTX_new(TLS_server_method());
    self_signed(c);
    SSL *server = SSL_new(c);
    SSL_set_fd(server, p.fds[1]);
    p.ends[0] = seal_connect(p.seals[0], p.fds[0], 3);
    int r = SEAL_HEAR;
    for (int i = 0; i < 8 && r >= 0; i++) {
        r = shake(p.ends[0]);
        SSL_accept(server);
    }
    CHECK_EQ(r, -EPROTO);
    CHECK(r != SEAL_DONE);
    SSL_free(server);
    SSL_CTX_free(c);
    pair_end(&p);
}

/* A client without our key, of this version or an older one. */
static void test_other_clients(void) {
    for (int old = 0; old < 2; old++) {
        struct pair p;
        pair_begin(&p, 0);
        SSL_CTX *c = SSL_CTX_new(TLS_client_method());
        if (old)
            SSL_CTX_set_max_proto_version(c, TLS1_2_VERSION);
        SSL *client = SSL_new(c);
        SSL_set_fd(client, p.fds[0]);
        p.ends[1] = seal_accept(p.seals[1], p.fds[1]);
        int r = SEAL_HEAR;
        for (int i = 0; i < 8 && r >= 0; i++) {
            SSL_connect(client);
            r = shake(p.ends[1]);
        }
        CHECK_EQ(r, -EPROTO);
        CHECK_EQ(p.parties[1].asked, 0);
        SSL_free(client);
        SSL_CTX_free(c);
        pair_end(&p);
    }
}

int main(void) {
    TEST(test_who_is_there);
    TEST(test_sizes);
    TEST(test_backpressure);
    TEST(test_keys_change);
    TEST(test_both_ways_at_once);
    TEST(test_nothing_stays_inside);
    TEST(test_the_end_is_said);
    TEST(test_cut_off);
    TEST(test_spoiled_on_the_way);
    TEST(test_gone_in_the_middle);
    TEST(test_wrong_key);
    TEST(test_unknown_identity);
    TEST(test_old_epoch);
    TEST(test_no_key_no_session);
    TEST(test_no_tls_at_all);
    TEST(test_a_handshake_without_end);
    TEST(test_said_again);
    TEST(test_truncated);
    TEST(test_mutations);
    TEST(test_a_certificate_is_no_key);
    TEST(test_other_clients);
    return tap_finish();
}
