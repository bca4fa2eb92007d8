/* SPDX-License-Identifier: MIT */
/* Garbage thrown at every listening socket of a cluster that is at work.
 *
 * 16 real nodes and their root carry out operations without a pause while this process connects to
 * all of them and says what it likes: random bytes, genuine streams with flipped bits, cut short or
 * repeated, lengths without measure, the right key and then nonsense, or nothing at all. Every
 * operation is done, nobody dies, everything is counted, and nothing is left behind.
 *
 * With the right key one is a member for now, so that part plays node 16, which nobody else is: its
 * nonsense may cost its own links.
 *
 * STORM_GARBAGE_SECONDS (4): how long, both kinds of sockets together. */
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/random.h"
#include "ensemble.h"
#include "wire/message.h"

enum { NODES = 16, HOSTILE = NODES, PROCESSES = NODES + 2, STREAM_MAX = 4096, KEPT = 300 };

#define GROWTH_BYTES_MAX (1 * MIB)

struct thrower {
    struct ensemble t;
    struct random random;
    int kept[KEPT]; /* connections left open */
    uint32_t next_kept;
    uint64_t token; /* of the link that is being thrown */
    uint64_t thrown, connected, bytes;
};

/* ---- what is thrown ---- */

struct stream {
    uint8_t bytes[STREAM_MAX];
    size_t len;
};

static void add_frame(struct stream *s, uint16_t type, uint32_t sequence, const union message *m) {
    uint8_t body[1024];
    long len = message_encode(type, m, room_of(body, sizeof body));
    ASSERT(len >= 0 && s->len + HEADER_BYTES + (size_t)len <= STREAM_MAX);
    struct header h = {.magic = HEADER_MAGIC,
                       .version = HEADER_VERSION,
                       .lane = message_rule(type)->lane,
                       .type = type,
                       .length = (uint32_t)len,
                       .sequence = sequence,
                       .epoch = 1,
                       .node = HOSTILE,
                       .life = 1};
    header_encode(&h, s->bytes + s->len);
    memcpy(s->bytes + s->len + HEADER_BYTES, body, (size_t)len);
    s->len += HEADER_BYTES + (size_t)len;
}

static void add_hello(struct stream *s, struct thrower *g, uint32_t to, enum purpose purpose,
                      enum lane lane) {
    const uint64_t *key = crew_key(g->t.crew);
    union message m = {.hello = {.key = {key[0], key[1]},
                                 .to = to,
                                 .purpose = (uint8_t)purpose,
                                 .lane = (uint8_t)lane,
                                 .token = g->token}};
    add_frame(s, MESSAGE_HELLO, 1, &m);
}

/* As node 16 would say it when it joins and works: every byte of it is right. */
static void add_recording(struct stream *s, struct thrower *g, uint32_t to) {
    uint64_t words[2][64];
    struct nodeset own, none;
    nodeset_init(&own, g->t.universe, words[0]);
    nodeset_init(&none, g->t.universe, words[1]);
    nodeset_add(&own, HOSTILE);
    add_hello(s, g, to, PURPOSE_TREE, LANE_CONTROL);
    struct op_id id = {.node = HOSTILE, .number = 1, .incarnation = (uint64_t)1 << 32};
    union message attach = {.attach = {.node = HOSTILE,
                                       .incarnation = id.incarnation,
                                       .attempt = 1,
                                       .below = &own,
                                       .members = &none}};
    union message tock = {.tock = {.tick = 1, .nodes = 1, .complete = true}};
    union message ack = {.ack = {.what = ACK_VIEW, .number = 2, .set = &own}};
    union message request = {.request = {.id = id,
                                         .epoch = 1,
                                         .timeout_ns = NS_PER_S,
                                         .set = &own,
                                         .operation = {.kind = OPERATION_XFER,
                                                       .event = 2,
                                                       .variable = NO_VARIABLE,
                                                       .write_variable = NO_VARIABLE,
                                                       .body = bytes_of("words", 5)}}};
    union message received = {.received = {.id = id}};
    add_frame(s, MESSAGE_ATTACH, 1, &attach);
    add_frame(s, MESSAGE_TOCK, 2, &tock);
    add_frame(s, MESSAGE_ACK, 3, &ack);
    add_frame(s, MESSAGE_REQUEST, 4, &request);
    add_frame(s, MESSAGE_RECEIVED, 5, &received);
    add_frame(s, MESSAGE_TOCK, 6, &tock);
}

/* Not in the node's number: with the right key that would be another member, not garbage. */
static void flip_bits(struct stream *s, struct random *r, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        size_t at = (size_t)random_below(r, s->len);
        if (at < 20 || at >= 24)
            s->bytes[at] ^= (uint8_t)(1U << random_below(r, 8));
    }
}

static void add_random(struct stream *s, struct random *r) {
    size_t len = (size_t)random_between(r, 1, STREAM_MAX - s->len);
    random_bytes(r, s->bytes + s->len, len);
    s->len += len;
}

/* Frames with a proper head that a child, or a sink, may send, and anything for a body. */
static void add_nonsense(struct stream *s, struct random *r, bool slot) {
    for (uint32_t sequence = 1; sequence <= 8; sequence++) {
        uint16_t type = (uint16_t)random_between(r, MESSAGE_ATTACH, MESSAGE_DONATION);
        uint32_t length = (uint32_t)random_below(r, 100);
        struct header h = {.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .type = slot ? MESSAGE_WANT : type,
                           .length = length > 64 && slot ? 64 : length,
                           .sequence = sequence,
                           .epoch = 1,
                           .node = HOSTILE,
                           .life = 1};
        header_encode(&h, s->bytes + s->len);
        random_bytes(r, s->bytes + s->len + HEADER_BYTES, h.length);
        s->len += HEADER_BYTES + h.length;
    }
}

enum attack {
    ATTACK_RANDOM,     /* bytes */
    ATTACK_HELLO,      /* with flipped bits */
    ATTACK_FLIPPED,    /* a recording with flipped bits */
    ATTACK_CUT,        /* in the middle */
    ATTACK_REPEATED,   /* the same again behind it */
    ATTACK_LENGTH,     /* without measure, in some frame */
    ATTACK_VERSION,    /* of the future */
    ATTACK_MEMBER,     /* the right key, then random bytes */
    ATTACK_NONSENSE,   /* the right key, then frames with anything in them */
    ATTACK_SLOT,       /* the same on both lanes of a bulk link */
    ATTACK_RECORDING,  /* every byte is right */
    ATTACK_SILENT,     /* and stays */
    ATTACK_HALF_HELLO, /* and stays */
    ATTACK_CONNECT,    /* and goes, many times */
    ATTACKS
};

static void compose(struct stream *s, struct thrower *g, enum attack attack, uint32_t node) {
    struct random *r = &g->random;
    s->len = 0;
    if (attack == ATTACK_RANDOM) {
        add_random(s, r);
    } else if (attack == ATTACK_HELLO || attack == ATTACK_HALF_HELLO) {
        add_hello(s, g, node, PURPOSE_TREE, LANE_CONTROL);
        if (attack == ATTACK_HELLO)
            flip_bits(s, r, random_between(r, 1, 8));
        else
            s->len = (size_t)random_between(r, 1, s->len - 1);
    } else if (attack == ATTACK_MEMBER || attack == ATTACK_NONSENSE) {
        add_hello(s, g, node, PURPOSE_TREE, LANE_CONTROL);
        if (attack == ATTACK_MEMBER)
            add_random(s, r);
        else
            add_nonsense(s, r, false);
    } else if (attack < ATTACK_SILENT) {
        add_recording(s, g, node);
    }
    if (attack == ATTACK_FLIPPED)
        flip_bits(s, r, random_between(r, 1, 20));
    if (attack == ATTACK_CUT)
        s->len = (size_t)random_between(r, 1, s->len - 1);
    if (attack == ATTACK_REPEATED && 2 * s->len <= STREAM_MAX) {
        memcpy(s->bytes + s->len, s->bytes, s->len);
        s->len *= 2;
    }
    /* the head of HELLO, or of the frame behind it */
    size_t head = random_chance(r, 1, 2) ? 0 : HEADER_BYTES + 30;
    if (attack == ATTACK_LENGTH)
        store_le32(s->bytes + head + 8,
                   (uint32_t)random_u64(r) | (random_chance(r, 1, 2) ? 0x80000000U : 0));
    if (attack == ATTACK_VERSION)
        s->bytes[head + 2] = (uint8_t)random_between(r, 2, 255);
}

/* ---- throwing ---- */

static int reach(struct thrower *g, uint32_t node) {
    int done;
    int fd = address_connect(crew_address(g->t.crew, node), &done);
    g->connected += fd >= 0;
    return fd;
}

/* What does not fit into the socket at once, or is not wanted any more, stays behind. */
static void say(struct thrower *g, int fd, const uint8_t *at, size_t len) {
    ssize_t sent = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    g->bytes += sent > 0 ? (uint64_t)sent : 0;
}

/* Politely, or so that the other side finds an error. */
static void leave(struct thrower *g, int fd) {
    struct linger abrupt = {.l_onoff = 1};
    if (random_chance(&g->random, 1, 3))
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
    close(fd);
}

static void keep_open(struct thrower *g, int fd) {
    int *place = &g->kept[g->next_kept++ % KEPT];
    if (*place >= 0)
        leave(g, *place);
    *place = fd;
}

/* A link is up when all its lanes are: without this one nobody would listen to the other. */
static void throw_bulk_lane(struct thrower *g, uint32_t node) {
    int fd = reach(g, node);
    if (fd < 0)
        return;
    struct stream s = {.len = 0};
    add_hello(&s, g, node, PURPOSE_TREE, LANE_BULK);
    say(g, fd, s.bytes, s.len);
    keep_open(g, fd);
}

static void throw_slot(struct thrower *g, uint32_t node) {
    struct stream s;
    for (int lane = 0; lane < LANES; lane++) {
        int fd = reach(g, node);
        if (fd < 0)
            return;
        s.len = 0;
        add_hello(&s, g, node, PURPOSE_SLOT, (enum lane)lane);
        if (lane == LANE_CONTROL)
            add_nonsense(&s, &g->random, true);
        say(g, fd, s.bytes, s.len);
        keep_open(g, fd);
    }
}

static void throw_one(struct thrower *g) {
    struct random *r = &g->random;
    enum attack attack = (enum attack)random_below(r, ATTACKS);
    uint32_t node = (uint32_t)random_below(r, NODES + 1);
    if (node == HOSTILE)
        node = g->t.root;
    g->thrown++;
    g->token = random_u64(r);
    if (attack == ATTACK_SLOT) {
        throw_slot(g, node);
        return;
    }
    if (attack == ATTACK_CONNECT) {
        for (int i = 0, fd; i < 20 && (fd = reach(g, node)) >= 0; i++)
            leave(g, fd);
        return;
    }
    if (attack >= ATTACK_FLIPPED && attack <= ATTACK_RECORDING)
        throw_bulk_lane(g, node);
    int fd = reach(g, node);
    if (fd < 0)
        return;
    struct stream s;
    compose(&s, g, attack, node);
    size_t first = s.len > 0 ? (size_t)random_below(r, s.len + 1) : 0;
    if (first > 0)
        say(g, fd, s.bytes, first); /* in two parts, for what it is worth */
    if (first < s.len)
        say(g, fd, s.bytes + first, s.len - first);
    if (attack == ATTACK_SILENT || attack == ATTACK_HALF_HELLO || random_chance(r, 1, 2))
        keep_open(g, fd);
    else
        leave(g, fd);
}

/* ---- what came of it ---- */

struct footprint {
    uint32_t descriptors[PROCESSES];
    uint64_t bytes[PROCESSES];
};

static bool runs(const struct thrower *g, uint32_t node) {
    return node != HOSTILE && crew_pid(g->t.crew, node) != 0;
}

static void measure(const struct thrower *g, struct footprint *f) {
    *f = (struct footprint){0};
    for (uint32_t n = 0; n < PROCESSES; n++)
        if (runs(g, n)) {
            f->descriptors[n] = process_descriptors(crew_pid(g->t.crew, n));
            f->bytes[n] = process_private_bytes(crew_pid(g->t.crew, n));
        }
}

static bool same_descriptors(const struct thrower *g, const struct footprint *before) {
    struct footprint now;
    measure(g, &now);
    return memcmp(now.descriptors, before->descriptors, sizeof now.descriptors) == 0;
}

static void check_memory(const struct thrower *g, const struct footprint *before) {
    struct footprint now;
    uint64_t growth = 0;
    measure(g, &now);
    for (uint32_t n = 0; n < PROCESSES; n++)
        if (now.bytes[n] > before->bytes[n] + growth)
            growth = now.bytes[n] - before->bytes[n];
    if (!SANITIZED) /* which keep for a while what was freed */
        CHECK(growth <= GROWTH_BYTES_MAX);
    printf("## memory of a node grew by at most %llu KiB\n", (unsigned long long)(growth / KIB));
}

static void add_up(const struct thrower *g, struct link_counts *ret) {
    *ret = (struct link_counts){0};
    for (uint32_t n = 0; n < PROCESSES; n++) {
        const struct link_counts *c = &crew_counts(g->t.crew, n)->links;
        for (int r = 0; r < REFUSALS; r++)
            ret->refused[r] += c->refused[r];
        ret->strangers_dropped += c->strangers_dropped;
        ret->accepted += c->accepted;
    }
}

static void check_counts(const struct thrower *g) {
    static const enum refusal expected[] = {
        REFUSAL_TRUNCATED, REFUSAL_MAGIC, REFUSAL_VERSION, REFUSAL_TYPE, REFUSAL_ROLE,
        REFUSAL_LANE,      REFUSAL_SIZE,  REFUSAL_SENDER,  REFUSAL_GAP,  REFUSAL_BODY};
    struct link_counts sum;
    add_up(g, &sum);
    printf("## %llu throws, %llu connections, %llu KiB; refused:", (unsigned long long)g->thrown,
           (unsigned long long)g->connected, (unsigned long long)(g->bytes / KIB));
    for (int r = 1; r < REFUSALS; r++)
        printf(" %s %llu", refusal_name((enum refusal)r), (unsigned long long)sum.refused[r]);
    printf(", strangers %llu\n", (unsigned long long)sum.strangers_dropped);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!CHECK(sum.refused[expected[i]] > 0))
            printf("#   %s\n", refusal_name(expected[i]));
    for (uint32_t n = 0; n < PROCESSES; n++) { /* everyone had its share */
        uint64_t all = 0;
        for (int r = 1; r < REFUSALS; r++)
            all += crew_counts(g->t.crew, n)->links.refused[r];
        CHECK(n == HOSTILE || all > 0);
    }
}

static void check_all_well(struct thrower *g) {
    CHECK(ensemble_finish_asking(&g->t));
    for (int o = 0; o < OUTCOMES; o++)
        if (o != OUTCOME_DONE && !CHECK_EQ(g->t.stage->outcomes[o], 0))
            printf("#   %s\n", outcome_name((enum outcome)o));
    for (uint32_t n = 0; n < PROCESSES; n++)
        CHECK_EQ(crew_lives(g->t.crew, n), n == HOSTILE ? 0 : 1);
    for (uint32_t n = 0; n < PROCESSES; n++)
        CHECK(n == HOSTILE || runs(g, n));
    printf("## %llu operations, all done\n", (unsigned long long)ensemble_done(&g->t));
}

/* ---- the test ---- */

static uint64_t garbage_ns(void) {
    const char *text = getenv("STORM_GARBAGE_SECONDS");
    uint64_t ns = 4 * NS_PER_S;
    if (text != NULL && !CHECK_EQ(units_parse_duration(text, &ns), 0))
        ns = 0;
    return ns;
}

static void check_garbage(enum transport links) {
    struct thrower g = {0};
    struct footprint before;
    random_init(&g.random, 7 + links);
    for (int i = 0; i < KEPT; i++)
        g.kept[i] = -1;
    ensemble_init(&g.t, links, NODES, 1);
    if (!ensemble_start(&g.t) || !CHECK(ensemble_ask_some(&g.t, 200))) {
        ensemble_end(&g.t);
        return;
    }
    measure(&g, &before);
    atomic_store(&g.t.stage->asking, true);
    uint64_t end = clock_ns() + garbage_ns() / 2;
    while (clock_ns() < end) {
        for (int i = 0; i < 20; i++)
            throw_one(&g);
        crew_wait(g.t.crew, 0);
    }
    uint64_t while_thrown = ensemble_done(&g.t);
    CHECK(while_thrown > 200);
    check_all_well(&g);
    check_counts(&g);
    for (int i = 0; i < KEPT; i++)
        if (g.kept[i] >= 0)
            close(g.kept[i]);
    CHECK(ENSEMBLE_UNTIL(&g.t, same_descriptors(&g, &before)));
    check_memory(&g, &before);
    CHECK(ensemble_ask_some(&g.t, 50));
    check_all_well(&g);
    ensemble_end(&g.t);
}

static void test_garbage_on_unix_sockets(void) {
    check_garbage(TRANSPORT_UNIX);
}

static void test_garbage_on_tcp(void) {
    check_garbage(TRANSPORT_TCP);
}

int main(void) {
    TEST(test_garbage_on_unix_sockets);
    TEST(test_garbage_on_tcp);
    return tap_finish();
}
