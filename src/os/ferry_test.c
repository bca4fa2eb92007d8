/* SPDX-License-Identifier: MIT */
/* Puts from one storm-fab into the memory of another, as movers would have them made: what arrives, what is never
 * touched again, and what is heard when one of them dies or is none. */
#include "os/ferry.h"

#include <signal.h>
#include <sys/mman.h>

#include "os/carriers.h"
#include "os/companion.h"
#include "turns.h"

enum { TRIES = 20 };
enum { SLOT = 64 * 1024, SLOTS = 8, BYTES = SLOTS * SLOT, MANY = FERRY_PUTS_MAX + 100 };

static struct loop loop;
static char program[PATH_MAX];
static const char *provider;

struct end {
    struct ferry *ferry;
    int memory;
    uint8_t *at;
    uint32_t ready, sent, failed, notes, last_note, lost;
    uint64_t last_cookie;
};

static void on_sent(void *context, uint64_t cookie, int error, const char *why) {
    struct end *e = context;
    e->sent++;
    e->failed += error != 0;
    e->last_cookie = cookie;
    CHECK(error == 0 || why[0] != '\0');
}

static void on_note(void *context, uint32_t note) {
    struct end *e = context;
    e->notes++;
    e->last_note = note;
}

static void on_lost(void *context, const char *why) {
    struct end *e = context;
    e->lost++;
    CHECK(why[0] != '\0');
}

static void on_ready(void *context) {
    struct end *e = context;
    e->ready++;
}

static int start_soon(struct end *e, const char *which, const char *by,
                      char why[FABRIC_WHY_BYTES]) {
    struct ferry_config c = {.loop = &loop,
                             .program = which,
                             .provider = by,
                             .source = "127.0.0.1",
                             .ready = on_ready,
                             .sent = on_sent,
                             .note = on_note,
                             .lost = on_lost,
                             .context = e};
    *e = (struct end){.memory = memfd_create("slots", MFD_CLOEXEC)};
    CHECK_EQ(ftruncate(e->memory, BYTES), 0);
    e->at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, e->memory, 0);
    return ferry_new(&c, &e->ferry, why);
}

static int start(struct end *e, const char *which, const char *by, char why[FABRIC_WHY_BYTES]) {
    int r = start_soon(e, which, by, why);
    return r < 0 ? r : ferry_wait(e->ferry, why);
}

static void finish(struct end *e) {
    ferry_free(e->ferry);
    munmap(e->at, BYTES);
    close(e->memory);
}

static bool start_two(struct end *a, struct end *b) {
    char why[FABRIC_WHY_BYTES];
    bool good = CHECK_EQ(start(a, program, provider, why), 0);
    return CHECK_EQ(start(b, program, provider, why), 0) && good;
}

/* From one to the other: the peer, the region that is sent from, what was granted. */
struct way {
    int peer, from, into;
    struct fabric_far far;
};

static struct way connect_them(struct end *a, struct end *b) {
    uint8_t grant[FABRIC_GRANT_BYTES];
    struct way w = {.peer = ferry_peer(a->ferry, ferry_address(b->ferry)),
                    .from = ferry_region(a->ferry, a->memory, BYTES, NULL),
                    .into = ferry_region(b->ferry, b->memory, BYTES, grant)};
    CHECK(w.peer >= 0 && w.from >= 0 && w.into >= 0);
    CHECK_EQ(fabric_far(bytes_of(grant, sizeof grant), &w.far), 0);
    CHECK_EQ(w.far.bytes, BYTES);
    ferry_expect(b->ferry, true);
    return w;
}

static void put(struct end *a, const struct way *w, uint32_t slot, uint64_t len, uint32_t note) {
    struct ferry_put p = {.peer = (uint32_t)w->peer,
                          .region = (uint32_t)w->from,
                          .offset = (uint64_t)slot * SLOT,
                          .len = len,
                          .into = w->far,
                          .into_offset = (uint64_t)slot * SLOT,
                          .note = note,
                          .cookie = 1000 + note};
    ferry_put(a->ferry, &p);
}

static void test_bytes_and_notes(void) {
    struct end a, b;
    if (!start_two(&a, &b))
        return;
    struct way w = connect_them(&a, &b);
    memset(a.at, 7, BYTES);
    put(&a, &w, 3, SLOT - 1, 0xabcdef01);
    CHECK(TURN_UNTIL(&loop, (void)0, a.sent == 1 && b.notes == 1));
    CHECK_EQ(a.failed, 0);
    CHECK_EQ(a.last_cookie, 1000 + (uint64_t)0xabcdef01);
    CHECK_EQ(b.last_note, 0xabcdef01);
    for (uint32_t i = 0; i < BYTES; i++)
        if (b.at[i] != (i / SLOT == 3 && i % SLOT < SLOT - 1 ? 7 : 0))
            CHECK_EQ(i, UINT32_MAX);
    finish(&a);
    finish(&b);
}

/* Whoever has other things to do meanwhile hears of it. */
static void test_it_is_ready_some_day(void) {
    char why[FABRIC_WHY_BYTES];
    struct end a, b;
    CHECK_EQ(start_soon(&a, program, provider, why), 0);
    CHECK(!ferry_alive(a.ferry));
    CHECK(ferry_region(a.ferry, a.memory, BYTES, NULL) < 0);
    CHECK(TURN_UNTIL(&loop, (void)0, a.ready == 1));
    CHECK(ferry_alive(a.ferry));
    CHECK_EQ(ferry_wait(a.ferry, why), 0);
    CHECK_EQ(start_soon(&b, program, "nosuch", why), 0);
    CHECK(TURN_UNTIL(&loop, (void)0, b.lost == 1));
    CHECK_EQ(b.ready, 0);
    finish(&a);
    finish(&b);
}

/* More than storm-fab takes at once: they wait here. */
static void test_many(void) {
    struct end a, b;
    if (!start_two(&a, &b))
        return;
    struct way w = connect_them(&a, &b);
    for (uint32_t i = 0; i < MANY; i++)
        put(&a, &w, i % SLOTS, 1 + i, i);
    CHECK(TURN_UNTIL(&loop, (void)0, a.sent == MANY && b.notes == MANY));
    CHECK_EQ(a.failed, 0);
    finish(&a);
    finish(&b);
}

static bool all_are(const uint8_t *slot, uint8_t byte) {
    for (uint32_t i = 0; i < SLOT; i++)
        if (slot[i] != byte)
            return false;
    return true;
}

/* Whoever still knows the grant gets at nothing. */
static void test_what_was_taken_back(void) {
    struct end a, b;
    if (!start_two(&a, &b))
        return;
    struct way w = connect_them(&a, &b);
    ferry_region_free(b.ferry, (uint32_t)w.into);
    memset(a.at, 9, BYTES);
    put(&a, &w, 0, SLOT, 1);
    /* It may end the connection, and with it what is put next, even if that was said to be sent. On shared memory
     * nobody ever says what became of it. */
    for (int i = 0; i < TRIES && b.last_note != 2; i++) {
        struct way again = connect_them(&a, &b);
        put(&a, &again, 1, SLOT, 2);
        uint64_t soon = clock_ns() + 200 * NS_PER_MS;
        TURN_UNTIL(&loop, (void)0, b.last_note == 2 || clock_ns() > soon);
    }
    CHECK(TURN_UNTIL(&loop, (void)0, b.last_note == 2));
    CHECK(all_are(b.at, 0));
    CHECK(all_are(b.at + SLOT, 9));
    finish(&a);
    finish(&b);
}

/* The first that was started dies: that of `a`. */
static void test_its_death(void) {
    struct end a, b;
    if (!start_two(&a, &b))
        return;
    struct way w = connect_them(&a, &b);
    kill(earlier_of_two(), SIGKILL);
    CHECK(TURN_UNTIL(&loop, (void)0, a.lost == 1));
    CHECK(!ferry_alive(a.ferry) && ferry_alive(b.ferry));
    CHECK_EQ(b.lost, 0);
    CHECK(ferry_region(a.ferry, a.memory, BYTES, NULL) < 0);
    CHECK(ferry_peer(a.ferry, ferry_address(b.ferry)) < 0);
    ferry_peer_free(a.ferry, (uint32_t)w.peer);
    ferry_region_free(a.ferry, (uint32_t)w.from);
    ferry_expect(a.ferry, true);
    finish(&a);
    finish(&b);
}

/* Its puts end, and nothing that was asked goes unanswered. */
static void test_puts_of_the_dead(void) {
    struct end a, b;
    if (!start_two(&a, &b))
        return;
    struct way w = connect_them(&a, &b);
    pid_t helper = earlier_of_two();
    kill(helper, SIGSTOP);
    for (uint32_t i = 0; i < MANY; i++)
        put(&a, &w, i % SLOTS, SLOT, i);
    kill(helper, SIGKILL);
    CHECK(TURN_UNTIL(&loop, (void)0, a.lost == 1));
    CHECK_EQ(a.sent, MANY);
    CHECK_EQ(a.failed, MANY);
    finish(&a);
    finish(&b);
}

static void test_no_such_thing(void) {
    char why[FABRIC_WHY_BYTES] = "";
    struct end a;
    CHECK(start(&a, program, "nosuch", why) < 0);
    CHECK(strstr(why, "nosuch") != NULL);
    finish(&a);
    static const char *const programs[] = {"/bin/false", "/bin/true", "/nowhere/storm-fab"};
    for (int i = 0; i < 3; i++) {
        CHECK(start(&a, programs[i], NULL, why) < 0);
        CHECK(strstr(why, programs[i]) != NULL);
        finish(&a);
    }
}

static void test_names(void) {
    static const char *const good[] = {"ofi", "ofi:tcp", "ofi:verbs;ofi_rxm"};
    static const char *const bad[] = {"",        "o", "ofi:", "ofi-tcp", "OFI", "ofi:tcp eth0",
                                      "ofi:\x7f"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(carrier_name_good(bytes_from_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!carrier_name_good(bytes_from_str(bad[i])));
    char longest[FABRIC_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "ofi:", 4);
    CHECK(carrier_name_good(bytes_of(longest, FABRIC_NAME_MAX)));
    CHECK(!carrier_name_good(bytes_of(longest, FABRIC_NAME_MAX + 1)));
}

int main(void) {
    static const char *const providers[] = {"tcp", "shm"};
    TEST(test_names);
    if (companion_find("storm-fab", program, sizeof program) < 0) {
        SKIP("ferry", "built without libfabric");
        return tap_finish();
    }
    CHECK_EQ(loop_init(&loop), 0);
    for (int i = 0; i < 2; i++) {
        provider = providers[i];
        TEST(test_bytes_and_notes);
        TEST(test_it_is_ready_some_day);
        TEST(test_many);
        TEST(test_what_was_taken_back);
        TEST(test_its_death);
        TEST(test_puts_of_the_dead);
    }
    TEST(test_no_such_thing);
    loop_fini(&loop);
    return tap_finish();
}
