/* SPDX-License-Identifier: MIT */
/* Puts between processes, by every provider that this machine has: what arrives is what was sent, a
 * tree hands on from the very memory it receives into, the death of a peer is an error and not the end.
 *
 * Everything runs in processes that are forked for it, as a provider's state does not outlive a fork. They
 * form a tree of socket pairs: addresses, grants and acknowledgements go there. */
#include "os/fabric.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/units.h"
#include "turns.h"

#ifndef STORM_FABRIC
#define STORM_FABRIC 0
#endif

#if STORM_FABRIC
static const struct fabric_calls *const calls = &fabric_ofi;
#else
static const struct fabric_calls *const calls = NULL;
#endif

enum { SLOTS = 8, SLOT_BYTES = 1024 * 1024, CHILDREN = 3, MEMBERS = 4 };

/* What all processes of the running test agree on. */
static struct fabric_config common;
static uint32_t piece_count;
static uint32_t fixed_len; /* of all pieces; 0: of many lengths */

/* ---- pieces: their lengths and bytes follow from their number ---- */

static uint64_t mixed(uint64_t value) {
    struct hash h;
    hash_init(&h, 0x5e11);
    hash_bytes(&h, &value, sizeof value);
    return hash_done(&h);
}

static uint32_t piece_len(uint32_t piece) {
    static const uint32_t edges[] = {1,    2,     3,     4,     7,      8,          63,
                                     64,   65,    255,   256,   1000,   4095,       4096,
                                     4097, 16384, 65535, 65536, 262145, SLOT_BYTES, SLOT_BYTES - 1};
    enum { EDGES = sizeof edges / sizeof edges[0] };
    if (fixed_len != 0)
        return fixed_len;
    return piece < EDGES ? edges[piece] : 1 + (uint32_t)(mixed(piece) % SLOT_BYTES);
}

static uint64_t pieces_bytes(void) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < piece_count; i++)
        sum += piece_len(i);
    return sum;
}

static void piece_fill(uint8_t *to, uint32_t piece) {
    uint64_t word = mixed(~(uint64_t)piece);
    for (uint32_t i = 0, len = piece_len(piece); i < len; i++) {
        if (i % 8 == 0)
            word = word * 6364136223846793005U + 1442695040888963407U;
        to[i] = (uint8_t)(word >> 8 * (7 - i % 8));
    }
}

/* ---- one end: a fabric in a process ---- */

struct child {
    struct source line;
    struct end *end;
    struct fabric_peer *peer;
    struct fabric_far into;
    uint8_t text[2 + FABRIC_ADDRESS_BYTES_MAX + FABRIC_GRANT_BYTES]; /* how it introduced itself */
};

struct end {
    struct loop loop;
    struct fabric *f;
    uint8_t *memory, *wanted; /* SLOTS of them; what a piece should be */
    struct fabric_region *region;
    int parent; /* -1: the source */
    struct child children[CHILDREN];
    uint32_t child_count;
    uint32_t waits[SLOTS]; /* for so many: left, acknowledged */
    bool check;            /* compare what comes */
    bool careless;         /* slots do not wait, nothing is acknowledged */
    uint32_t sent, failed, arrived, acked;
    int error;
    char why[FABRIC_WHY_BYTES];
};

static void slot_less(struct end *e, uint32_t piece) {
    if (e->careless)
        return;
    CHECK(e->waits[piece % SLOTS] > 0);
    if (--e->waits[piece % SLOTS] == 0 && e->parent >= 0)
        CHECK_EQ(send(e->parent, &piece, sizeof piece, MSG_NOSIGNAL), sizeof piece);
}

static void on_sent(void *context, uint64_t cookie, int error, const char *why) {
    struct end *e = context;
    e->sent++;
    if (error == 0) {
        slot_less(e, (uint32_t)cookie);
        return;
    }
    e->failed++;
    e->error = error;
    snprintf(e->why, sizeof e->why, "%s", why);
}

static int put_piece(struct end *e, struct child *to, uint32_t piece) {
    struct fabric_put put = {.peer = to->peer,
                             .region = e->region,
                             .from = e->memory + (size_t)(piece % SLOTS) * SLOT_BYTES,
                             .len = piece_len(piece),
                             .into = to->into,
                             .offset = (uint64_t)(piece % SLOTS) * SLOT_BYTES,
                             .note = piece,
                             .cookie = piece};
    return calls->put(e->f, &put);
}

static void put_to_all(struct end *e, uint32_t piece) {
    e->waits[piece % SLOTS] = 2 * e->child_count;
    for (uint32_t i = 0; i < e->child_count; i++)
        CHECK_EQ(put_piece(e, &e->children[i], piece), 0);
}

static uint64_t on_arrived(void *context, uint32_t note) {
    struct end *e = context;
    const uint8_t *at = e->memory + (size_t)(note % SLOTS) * SLOT_BYTES;
    if (!CHECK(note < piece_count))
        return 0;
    e->arrived++;
    if (e->check) {
        piece_fill(e->wanted, note);
        CHECK(memcmp(at, e->wanted, piece_len(note)) == 0);
    }
    if (e->child_count > 0)
        put_to_all(e, note);
    else if (!e->careless)
        CHECK_EQ(send(e->parent, &note, sizeof note, MSG_NOSIGNAL), sizeof note);
    return piece_len(note);
}

static void line_ready(struct source *s, uint32_t events) {
    (void)events;
    struct child *c = CONTAINER_OF(s, struct child, line);
    uint32_t piece;
    ssize_t n;
    while ((n = recv(s->fd, &piece, sizeof piece, MSG_DONTWAIT)) == sizeof piece) {
        c->end->acked++;
        slot_less(c->end, piece);
    }
    if (n == 0) {
        loop_remove(&c->end->loop, s);
        close(s->fd);
        s->fd = -1;
    }
}

static void end_join(struct end *e) {
    char why[FABRIC_WHY_BYTES];
    struct fabric_config config = common;
    config.loop = &e->loop;
    config.sent = on_sent;
    config.arrived = on_arrived;
    config.context = e;
    if (calls->create(&config, &e->f, why) < 0) {
        printf("# %s\n", why);
        fflush(stdout);
        _exit(2);
    }
    struct room memory = room_of(e->memory, (size_t)SLOTS * SLOT_BYTES);
    CHECK_EQ(calls->region(e->f, memory, &e->region), 0);
}

static void end_begin(struct end *e) {
    size_t bytes = (size_t)(SLOTS + 1) * SLOT_BYTES;
    *e = (struct end){.parent = -1, .check = true};
    CHECK_EQ(loop_init(&e->loop), 0);
    e->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    e->wanted = e->memory + (size_t)SLOTS * SLOT_BYTES;
    end_join(e);
}

static void end_finish(struct end *e) {
    for (uint32_t i = 0; i < e->child_count; i++)
        if (e->children[i].line.fd >= 0)
            close(e->children[i].line.fd);
    calls->free(e->f);
    loop_fini(&e->loop);
    munmap(e->memory, (size_t)(SLOTS + 1) * SLOT_BYTES);
    if (e->parent >= 0)
        close(e->parent);
}

/* A message: the length of the address, the address, the grant. */
static void introduce(struct end *e, int parent) {
    uint8_t text[2 + FABRIC_ADDRESS_BYTES_MAX + FABRIC_GRANT_BYTES];
    struct bytes address = calls->address(e->f), grant = calls->grant(e->region);
    store_le16(text, (uint16_t)address.len);
    memcpy(text + 2, address.at, address.len);
    memcpy(text + 2 + address.len, grant.at, grant.len);
    e->parent = parent;
    CHECK(send(parent, text, 2 + address.len + grant.len, MSG_NOSIGNAL) > 0);
    calls->expect(e->f, true);
}

static void adopt(struct end *e, int line) {
    struct child *c = &e->children[e->child_count++];
    *c = (struct child){.line = {.fd = line, .ready = line_ready}, .end = e};
    ssize_t n = recv(line, c->text, sizeof c->text, 0);
    if (!CHECK(n > 2 + FABRIC_GRANT_BYTES))
        _exit(1);
    size_t len = load_le16(c->text);
    CHECK_EQ(calls->peer(e->f, bytes_of(c->text + 2, len), &c->peer), 0);
    CHECK_EQ(fabric_far(bytes_of(c->text + 2 + len, (size_t)n - 2 - len), &c->into), 0);
    CHECK_EQ(loop_add(&e->loop, &c->line, EPOLLIN), 0);
}

/* ---- processes ---- */

struct member {
    void (*live)(const int *up,
                 const int (*down)[2]); /* the end of its line to its parent; its children's */
    uint32_t parent;                    /* below its own number */
};

static pid_t member_start(const struct member *all, uint32_t self, int (*lines)[2],
                          uint32_t count) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    alarm(60); /* rather than hang */
    int down[MEMBERS][2];
    for (uint32_t i = 0; i < MEMBERS; i++) {
        down[i][0] = i > 0 && i < count && all[i].parent == self ? lines[i][0] : -1;
        for (int j = 0; i > 0 && i < count && j < 2; j++)
            if ((j == 0 && all[i].parent != self) || (j == 1 && i != self))
                close(lines[i][j]);
    }
    all[self].live(self > 0 ? &lines[self][1] : NULL, down);
    fflush(stdout);
    _exit(tap_current_fail);
}

/* All of them, to their ends; the last ends well unless a check has failed. */
static void members_run(const struct member *all, uint32_t count) {
    char left[64];
    int lines[MEMBERS][2];
    pid_t pids[MEMBERS];
    for (uint32_t i = 1; i < count; i++)
        CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lines[i]), 0);
    for (uint32_t i = 0; i < count; i++)
        pids[i] = member_start(all, i, lines, count);
    for (uint32_t i = 1; i < count; i++) {
        close(lines[i][0]);
        close(lines[i][1]);
    }
    for (uint32_t i = 0; i < count; i++) {
        int status = -1;
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(status, 0);
        snprintf(left, sizeof left, "/%d:%d:0", (int)pids[i], (int)getuid());
        shm_unlink(left); /* of the provider shm, by one that died */
    }
}

static void adopt_all(struct end *e, const int (*down)[2]) {
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (down[i][0] >= 0)
            adopt(e, down[i][0]);
}

static bool at_rest(const struct end *e) {
    for (uint32_t i = 0; i < SLOTS; i++)
        if (e->waits[i] > 0)
            return false;
    return true;
}

/* ---- what they do ---- */

static void wait_for_slot(struct end *e, uint32_t piece) {
    CHECK(TURN_UNTIL(&e->loop, (void)0, e->waits[piece % SLOTS] == 0));
    if (e->check)
        piece_fill(e->memory + (size_t)(piece % SLOTS) * SLOT_BYTES, piece);
}

static void source_lives(const int *up, const int (*down)[2]) {
    (void)up;
    struct end e;
    end_begin(&e);
    adopt_all(&e, down);
    for (uint32_t i = 0; i < piece_count; i++) {
        wait_for_slot(&e, i);
        put_to_all(&e, i);
    }
    CHECK(TURN_UNTIL(&e.loop, (void)0, at_rest(&e)));
    const struct fabric_counts *counts = calls->counts(e.f);
    CHECK_EQ(counts->puts, (uint64_t)piece_count * e.child_count);
    CHECK_EQ(counts->bytes_put, pieces_bytes() * e.child_count);
    CHECK_EQ(counts->bytes_arrived, 0);
    CHECK_EQ(counts->errors, 0);
    CHECK_EQ(counts->lost, 0);
    CHECK_EQ(e.failed, 0);
    if (common.part_bytes_max == 0)
        CHECK_EQ(counts->writes, counts->puts);
    else
        CHECK(counts->writes > counts->puts);
    CHECK_EQ(calls->region_free(e.region), 0);
    end_finish(&e);
}

/* With children: hands on. Without: checks. */
static void receiver_lives(const int *up, const int (*down)[2]) {
    struct end e;
    end_begin(&e);
    adopt_all(&e, down);
    introduce(&e, *up);
    CHECK(TURN_UNTIL(&e.loop, (void)0, e.arrived == piece_count && at_rest(&e)));
    const struct fabric_counts *counts = calls->counts(e.f);
    CHECK_EQ(counts->notes, piece_count);
    CHECK_EQ(counts->bytes_arrived, pieces_bytes());
    CHECK_EQ(counts->bytes_put, pieces_bytes() * e.child_count);
    CHECK_EQ(counts->errors, 0);
    calls->expect(e.f, false);
    end_finish(&e);
}

static void test_sizes(void) {
    piece_count = 100;
    members_run((struct member[]){{source_lives, 0}, {receiver_lives, 0}}, 2);
}

static void test_parts(void) {
    common.part_bytes_max = 60000;
    test_sizes();
    common.part_bytes_max = 0;
}

static void test_notes_by_message(void) {
    common.notes_by_message = true;
    test_sizes();
    common.notes_by_message = false;
}

/* The inner node's memory is where it is written to and what it writes from. */
static void test_tree(void) {
    piece_count = 100;
    members_run(
        (struct member[]){
            {source_lives, 0}, {receiver_lives, 0}, {receiver_lives, 1}, {receiver_lives, 1}},
        4);
}

/* ---- more than fits ---- */

static void eager_lives(const int *up, const int (*down)[2]) {
    (void)up;
    struct end e;
    uint32_t refused = 0;
    end_begin(&e);
    adopt_all(&e, down);
    for (uint32_t i = 0; i < piece_count; i++) {
        wait_for_slot(&e, i);
        e.waits[i % SLOTS] = 2;
        int r;
        while ((r = put_piece(&e, &e.children[0], i)) == -EAGAIN) {
            uint32_t sent = e.sent;
            refused++;
            CHECK(TURN_UNTIL(&e.loop, (void)0, e.sent > sent));
        }
        CHECK_EQ(r, 0);
        CHECK_EQ(refused > 0, i >= common.puts_max);
    }
    CHECK(TURN_UNTIL(&e.loop, (void)0, at_rest(&e)));
    end_finish(&e);
}

static void test_back_pressure(void) {
    piece_count = 60;
    common.puts_max = SLOTS / 2;
    members_run((struct member[]){{eager_lives, 0}, {receiver_lives, 0}}, 2);
    common.puts_max = 0;
}

/* ---- nothing to do ---- */

static uint64_t cpu_ns(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * NS_PER_S +
           ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * NS_PER_US;
}

#define REST_NS (300 * NS_PER_MS)

static void turn_for(struct end *e, uint64_t ns) {
    uint64_t end = clock_ns() + ns;
    for (uint64_t now; (now = clock_ns()) < end;)
        loop_turn(&e->loop, (int)((end - now) / NS_PER_MS) + 1);
}

static void rest(struct end *e, uint64_t looks_max) {
    const struct fabric_counts *counts = calls->counts(e->f);
    uint64_t cpu, looks, patience = clock_ns() + PATIENCE_NS / 2;
    do { /* what is still to be tidied up */
        looks = counts->looks;
        turn_for(e, REST_NS / 10);
    } while (counts->looks - looks > looks_max && clock_ns() < patience);
    cpu = cpu_ns();
    looks = counts->looks;
    turn_for(e, REST_NS);
    cpu = cpu_ns() - cpu;
    if (!CHECK(counts->looks - looks <= looks_max) || !CHECK(cpu < REST_NS / 4))
        printf("# %llu looks, %llu us\n", (unsigned long long)(counts->looks - looks),
               (unsigned long long)(cpu / NS_PER_US));
}

static void idle_source_lives(const int *up, const int (*down)[2]) {
    (void)up;
    struct end e;
    end_begin(&e);
    adopt_all(&e, down);
    for (uint32_t i = 0; i < piece_count; i++) {
        wait_for_slot(&e, i);
        put_to_all(&e, i);
    }
    CHECK(TURN_UNTIL(&e.loop, (void)0, at_rest(&e)));
    rest(&e, 5);
    CHECK(TURN_UNTIL(&e.loop, (void)0, e.children[0].line.fd < 0)); /* nobody disturbs it */
    end_finish(&e);
}

static void idle_receiver_lives(const int *up, const int (*down)[2]) {
    (void)down;
    struct end e;
    end_begin(&e);
    introduce(&e, *up);
    CHECK(TURN_UNTIL(&e.loop, (void)0, e.arrived == piece_count));
    rest(&e, 2 * REST_NS / NS_PER_MS);
    calls->expect(e.f, false);
    rest(&e, 5);
    end_finish(&e);
}

static void test_idle(void) {
    piece_count = 10;
    members_run((struct member[]){{idle_source_lives, 0}, {idle_receiver_lives, 0}}, 2);
}

/* ---- peers that go ---- */

enum { GONE_AFTER = 10, UNDER_WAY = 4 };
static enum { DIES_BEFORE, DIES_AMIDST, STANDS_STILL } fate;

static void mortal_lives(const int *up, const int (*down)[2]) {
    (void)down;
    struct end e;
    end_begin(&e);
    e.careless = true;
    e.check = false;
    introduce(&e, *up);
    if (fate == DIES_BEFORE)
        _exit(0);
    CHECK(TURN_UNTIL(&e.loop, (void)0, e.arrived >= GONE_AFTER));
    for (uint64_t end = clock_ns() + 2 * NS_PER_S; fate == STANDS_STILL && clock_ns() < end;)
        usleep(10000);
    _exit(tap_current_fail);
}

static void put_more(struct end *e, uint32_t *given) {
    while (e->failed == 0 && *given - e->sent < UNDER_WAY)
        CHECK_EQ(put_piece(e, &e->children[0], (*given)++ % piece_count), 0);
}

/* Puts that a provider does not give back may hold up all others, see fabric.h. */
static void begin_anew(struct end *e) {
    struct child *c = &e->children[1];
    calls->free(e->f);
    end_join(e);
    CHECK_EQ(calls->peer(e->f, bytes_of(c->text + 2, load_le16(c->text)), &c->peer), 0);
}

/* The first child is lost, the second gets everything all the same. */
static void bereaved_lives(const int *up, const int (*down)[2]) {
    (void)up;
    struct end e;
    uint32_t given = 0;
    end_begin(&e);
    adopt_all(&e, down);
    e.careless = true;
    uint64_t begun = clock_ns();
    CHECK(TURN_UNTIL(&e.loop, put_more(&e, &given), e.failed > 0));
    CHECK(clock_ns() - begun < 10 * NS_PER_S);
    CHECK(e.error < 0 && e.why[0] != '\0');
    if (fate == STANDS_STILL)
        CHECK_EQ(e.error, -ETIMEDOUT);
    if (e.error == -ETIMEDOUT)
        CHECK_EQ(put_piece(&e, &e.children[0], 0), -EPIPE);
    printf("# %s\n", e.why);
    calls->peer_free(e.children[0].peer);
    if (calls->counts(e.f)->lost > 0)
        begin_anew(&e);
    uint32_t heard = e.sent;
    e.careless = false;
    for (uint32_t i = 0; i < piece_count; i++) {
        wait_for_slot(&e, i);
        e.waits[i % SLOTS] = 2;
        CHECK_EQ(put_piece(&e, &e.children[1], i), 0);
    }
    CHECK(TURN_UNTIL(&e.loop, (void)0, at_rest(&e)));
    CHECK_EQ(e.sent, heard + piece_count); /* of the other nothing more is heard */
    end_finish(&e);
}

static void test_fate(void) {
    piece_count = 50;
    common.stall_ns = NS_PER_S;
    members_run((struct member[]){{bereaved_lives, 0}, {mortal_lives, 0}, {receiver_lives, 0}}, 3);
    common.stall_ns = 0;
}

static void test_peer_was_never_there(void) {
    fate = DIES_BEFORE;
    test_fate();
}

static void test_peer_dies(void) {
    fate = DIES_AMIDST;
    test_fate();
}

static void test_peer_stands_still(void) {
    fate = STANDS_STILL;
    test_fate();
}

/* ---- what is refused ---- */

static void test_bad_addresses(struct end *e) {
    struct fabric_peer *peer = NULL;
    struct bytes own = calls->address(e->f);
    uint8_t text[FABRIC_ADDRESS_BYTES_MAX + 1] = {0};
    CHECK_EQ(calls->peer(e->f, bytes_of(text, 0), &peer), -EBADMSG);
    CHECK_EQ(calls->peer(e->f, bytes_of(text, 1), &peer), -EBADMSG);
    CHECK_EQ(calls->peer(e->f, bytes_of(text, sizeof text), &peer), -EBADMSG);
    memcpy(text, own.at, own.len);
    for (size_t len = 1; len <= (size_t)1 + text[0]; len++)
        CHECK_EQ(calls->peer(e->f, bytes_of(text, len), &peer), -EBADMSG);
    CHECK_EQ(calls->peer(e->f, bytes_of(text, own.len - 1), &peer), -EBADMSG);
    text[1] ^= 1;
    CHECK_EQ(calls->peer(e->f, bytes_of(text, own.len), &peer), -EPROTONOSUPPORT);
    CHECK(peer == NULL);
}

static void refusing_lives(const int *up, const int (*down)[2]) {
    (void)up;
    (void)down;
    struct end e;
    struct fabric_far far;
    struct fabric_peer *self = NULL;
    end_begin(&e);
    test_bad_addresses(&e);
    struct bytes grant = calls->grant(e.region);
    CHECK_EQ(fabric_far(bytes_of(grant.at, grant.len - 1), &far), -EBADMSG);
    CHECK_EQ(fabric_far(grant, &far), 0);
    CHECK_EQ(far.bytes, SLOTS * SLOT_BYTES);
    CHECK_EQ(calls->peer(e.f, calls->address(e.f), &self), 0);
    struct fabric_put put = {.peer = self,
                             .region = e.region,
                             .from = e.memory,
                             .len = 100,
                             .into = far,
                             .offset = far.bytes - 99};
    CHECK_EQ(calls->put(e.f, &put), -ERANGE);
    put.offset = UINT64_MAX;
    CHECK_EQ(calls->put(e.f, &put), -ERANGE);
    put.offset = 0;
    CHECK_EQ(calls->put(e.f, &put), 0);
    CHECK_EQ(calls->region_free(e.region), -EBUSY);
    calls->peer_free(self); /* before anything was posted */
    CHECK_EQ(calls->region_free(e.region), 0);
    end_finish(&e);
}

static void test_refusals(void) {
    members_run((struct member[]){{refusing_lives, 0}}, 1);
}

static void stranger_lives(const int *up, const int (*down)[2]) {
    (void)up;
    (void)down;
    struct loop loop;
    struct fabric *f = NULL;
    char why[FABRIC_WHY_BYTES] = "";
    CHECK_EQ(loop_init(&loop), 0);
    struct fabric_config config = {.loop = &loop, .provider = "nonesuch"};
    CHECK_EQ(calls->create(&config, &f, why), -ENODEV);
    CHECK(strstr(why, "nonesuch") != NULL);
    config = (struct fabric_config){.loop = &loop, .source = "192.0.2.77"};
    CHECK_EQ(calls->create(&config, &f, why), -ENODEV);
    CHECK(f == NULL);
    loop_fini(&loop);
}

static void test_no_such_provider(void) {
    members_run((struct member[]){{stranger_lives, 0}}, 1);
}

/* ---- how fast ---- */

enum { FAST_PIECES = 512 };

static void print_rate(const char *what, uint64_t begun) {
    double s = (double)(clock_ns() - begun) / (double)NS_PER_S;
    printf("# %s: %.1f GB/s in pieces of 1 MiB\n", what,
           (double)piece_count * SLOT_BYTES / s / 1e9);
    fflush(stdout);
}

static void fast_source_lives(const int *up, const int (*down)[2]) {
    (void)up;
    struct end e;
    end_begin(&e);
    adopt_all(&e, down);
    e.check = false;
    uint64_t begun = clock_ns();
    for (uint32_t i = 0; i < piece_count; i++) {
        wait_for_slot(&e, i);
        put_to_all(&e, i);
    }
    CHECK(TURN_UNTIL(&e.loop, (void)0, at_rest(&e)));
    print_rate(calls->provider(e.f), begun);
    end_finish(&e);
}

static void fast_receiver_lives(const int *up, const int (*down)[2]) {
    (void)down;
    struct end e;
    end_begin(&e);
    e.check = false;
    introduce(&e, *up);
    CHECK(TURN_UNTIL(&e.loop, (void)0, e.arrived == piece_count));
    end_finish(&e);
}

static void test_throughput(void) {
    piece_count = FAST_PIECES;
    fixed_len = SLOT_BYTES;
    members_run((struct member[]){{fast_source_lives, 0}, {fast_receiver_lives, 0}}, 2);
    fixed_len = 0;
}

/* Beside it: the same bytes through a Unix socket, from and into as much memory. */
static void pass_all(int line, bool out) {
    uint8_t *memory = mmap(NULL, (size_t)SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    for (uint64_t done = 0; done < (uint64_t)piece_count * SLOT_BYTES;) {
        uint8_t *at = memory + done % ((uint64_t)SLOTS * SLOT_BYTES);
        size_t most = SLOT_BYTES - (size_t)(done % SLOT_BYTES);
        ssize_t n = out ? write(line, at, most) : read(line, at, most);
        if (!CHECK(n > 0))
            return;
        done += (uint64_t)n;
    }
    munmap(memory, (size_t)SLOTS * SLOT_BYTES);
}

static void test_throughput_of_socket(void) {
    int line[2];
    piece_count = FAST_PIECES;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, line), 0);
    fflush(stdout);
    pid_t pid = fork();
    close(line[pid == 0 ? 1 : 0]);
    if (pid == 0) {
        pass_all(line[0], true);
        _exit(tap_current_fail);
    }
    uint64_t begun = clock_ns();
    pass_all(line[1], false);
    print_rate("Unix socket", begun);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    close(line[1]);
}

/* ---- all of it ---- */

static void probe_lives(const int *up, const int (*down)[2]) {
    (void)up;
    (void)down;
    struct end e;
    end_begin(&e);
    end_finish(&e);
}

static bool is_here(void) {
    int status = -1;
    pid_t pid = member_start((struct member[]){{probe_lives, 0}}, 0, NULL, 1);
    waitpid(pid, &status, 0);
    return status == 0;
}

static const struct {
    const char *name;
    void (*test)(void);
    bool long_one; /* the same code whatever the provider, nearly: with two of them is enough */
} tests[] = {
    {"sizes", test_sizes, false},
    {"parts", test_parts, true},
    {"notes by message", test_notes_by_message, true},
    {"tree", test_tree, false},
    {"back-pressure", test_back_pressure, true},
    {"idle", test_idle, false},
    {"peer was never there", test_peer_was_never_there, true},
    {"peer dies", test_peer_dies, false},
    {"peer stands still", test_peer_stands_still, true},
    {"refusals", test_refusals, false},
    {"throughput", test_throughput, false},
};

static void test_provider(const char *provider, bool long_ones) {
    char name[128];
    common = (struct fabric_config){.provider = provider, .source = "127.0.0.1"};
    bool here = is_here();
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        snprintf(name, sizeof name, "%s: %s", provider, tests[i].name);
        if (tests[i].long_one && !long_ones)
            continue;
        if (here)
            tap_run(name, tests[i].test);
        else
            tap_skip(name, "no such provider here");
    }
}

int main(int argc, char **argv) {
    static const char *const providers[] = {"tcp;ofi_rxm", "shm", "net", "sockets"};
    if (calls == NULL) {
        SKIP("fabric", "built without libfabric");
        return tap_finish();
    }
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++)
        if (argc < 2 || strcmp(argv[1], providers[i]) == 0)
            test_provider(providers[i], argc >= 2 || i < 2);
    TEST(test_no_such_provider);
    TEST(test_throughput_of_socket);
    return tap_finish();
}
