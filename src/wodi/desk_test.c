/* SPDX-License-Identifier: MIT */
/* The desk by hand: who is told what, who is given what, what is kept; a million steps. The paper's workload is in sim/fieldwork_test.c. */
#include "wodi/desk.h"

#include <sys/mman.h>

#include "tap.h"
#include "wodi/history.h"

enum { LINKS = 24, MASTER = 0, OTHER_MASTER = 1, FIRST = 2 }; /* links from FIRST on are workers */
#define MS ((uint64_t)1000000)

/* A desk, its deeds, and what the last ones said to each link. */
struct rig {
    struct desk_limits limits;
    struct desk *desk;
    struct deeds deeds;
    uint64_t now, records;
    uint32_t counts[LINKS][WORD_KINDS];
    struct word last[LINKS]; /* its views are stale */
    uint32_t ids[LINKS][64]; /* steps that a worker has, in order */
    uint64_t numbers[LINKS][64];
    uint32_t id_count[LINKS];
    uint64_t delivered; /* highest seq */
    bool closed[LINKS];
    uint64_t steps; /* announced with a cycle */
};

static uint8_t deeds_room_at[6 * DEED_MAX];

static void rig_init(struct rig *r) {
    *r = (struct rig){0};
    desk_usual(&r->limits);
    r->limits.links = LINKS;
    r->limits.masters = 2;
    r->limits.workers = LINKS - FIRST;
    r->limits.steps = 1000;
    r->limits.history = 1000;
    r->limits.bytes = 4 * WORD_BODY_MAX;
    r->deeds = (struct deeds){.at = deeds_room_at, .cap = sizeof deeds_room_at};
}

static void rig_start(struct rig *r) {
    void *mem = mmap(NULL, desk_bytes(&r->limits), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    r->desk = desk_init(mem, &r->limits);
}

static void rig_fini(struct rig *r) {
    munmap(r->desk, desk_bytes(&r->limits));
}

static void note(struct rig *r, uint32_t link, const struct word *w) {
    r->counts[link][w->kind]++;
    r->last[link] = *w;
    if (w->kind == WORD_DELIVER)
        r->delivered = w->seq;
    if (w->kind == WORD_STEP) {
        r->numbers[link][r->id_count[link]] = w->step;
        r->ids[link][r->id_count[link]++] = w->id;
    }
}

static void settle(struct rig *r) {
    for (bool more = true; more;) {
        more = desk_pump(r->desk, r->now, &r->deeds);
        struct deed deed;
        for (size_t at = 0; deeds_next(&r->deeds, &at, &deed);) {
            struct word w;
            if (deed.kind == DEED_LOG) {
                r->records++;
                more = true;
            } else if (deed.kind == DEED_CLOSE) {
                r->closed[deed.link] = true;
            } else if (word_next(deed.bytes, &w) > 0) {
                note(r, deed.link, &w);
            }
        }
        r->deeds.len = 0;
        desk_durable(r->desk, r->records);
    }
}

static void say(struct rig *r, uint32_t link, struct word w) {
    desk_heard(r->desk, link, &w, r->now, &r->deeds);
    settle(r);
}

static void join(struct rig *r, uint32_t link, uint64_t speed) {
    desk_up(r->desk, link, true, r->now);
    r->id_count[link] = 0;
    say(r, link, (struct word){.kind = (uint8_t)WORD_WORKER, .ns = speed});
}

static struct bytes profile_of(struct room room, enum speed_source source, const char *init) {
    struct profile p = {.classes = 1,
                        .needs = {4},
                        .fewest = true,
                        .bench = bytes_from_str(source == SPEED_BY_BENCHMARK ? "bench" : ""),
                        .init = bytes_from_str(init)};
    return bytes_of(room.at, profile_write(&p, room));
}

static void enter_with(struct rig *r, uint32_t link, const char *name, enum speed_source source,
                       const char *init) {
    uint8_t room[64];
    struct bytes body = profile_of(room_of(room, sizeof room), source, init);
    desk_up(r->desk, link, true, r->now);
    say(r, link,
        (struct word){.kind = (uint8_t)WORD_MASTER,
                      .flag = (uint8_t)source,
                      .name = bytes_from_str(name),
                      .body = body});
}

static void enter(struct rig *r, uint32_t link, const char *name, enum speed_source source) {
    enter_with(r, link, name, source, "init");
}

static void begin(struct rig *r, uint64_t cycle) {
    say(r, MASTER,
        (struct word){.kind = (uint8_t)WORD_BEGIN,
                      .cycle = cycle,
                      .count = r->steps,
                      .body = bytes_from_str("start")});
}

static void work(struct rig *r, uint32_t link, uint64_t cycle, uint64_t step) {
    say(r, link,
        (struct word){
            .kind = (uint8_t)WORD_WORK, .cycle = cycle, .step = step, .body = bytes_from_str("w")});
}

/* The worker answers the first step that it has. */
static uint64_t finish(struct rig *r, uint32_t link, uint64_t ns) {
    uint32_t id = r->ids[link][0];
    uint64_t number = r->numbers[link][0];
    r->id_count[link]--;
    memmove(r->ids[link], r->ids[link] + 1, sizeof r->ids[link] - sizeof id);
    memmove(r->numbers[link], r->numbers[link] + 1, sizeof r->numbers[link] - sizeof number);
    desk_drained(r->desk, link);
    say(r, link,
        (struct word){
            .kind = (uint8_t)WORD_RESULT, .id = id, .ns = ns, .body = bytes_from_str("r")});
    return number;
}

static void ack(struct rig *r, uint64_t seq) {
    say(r, MASTER, (struct word){.kind = (uint8_t)WORD_ACK, .seq = seq});
}

static void end(struct rig *r, uint64_t cycle) {
    say(r, MASTER,
        (struct word){.kind = (uint8_t)WORD_END,
                      .cycle = cycle,
                      .seq = r->delivered,
                      .body = bytes_from_str("end")});
}

/* ---- what workers are told ---- */

static void test_buffers(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    join(&r, FIRST, 0);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    CHECK_EQ(r.counts[FIRST][WORD_INIT], 1);
    begin(&r, 1);
    CHECK_EQ(r.counts[FIRST][WORD_START], 1);
    join(&r, FIRST + 1, 0); /* late */
    CHECK_EQ(r.counts[FIRST + 1][WORD_INIT], 1);
    CHECK_EQ(r.counts[FIRST + 1][WORD_START], 1);
    end(&r, 1);
    CHECK_EQ(r.last[MASTER].kind, WORD_ANSWER);
    CHECK_EQ(r.last[MASTER].status, 0);
    CHECK_EQ(r.counts[FIRST][WORD_FINISH] + r.counts[FIRST + 1][WORD_FINISH], 2);
    join(&r, FIRST + 2, 0); /* between cycles */
    CHECK_EQ(r.counts[FIRST + 2][WORD_INIT], 1);
    CHECK_EQ(r.counts[FIRST + 2][WORD_START] + r.counts[FIRST + 2][WORD_FINISH], 0);
    begin(&r, 1);
    CHECK_EQ(r.last[MASTER].status, 1); /* that is over */
    begin(&r, 2);
    CHECK_EQ(r.counts[FIRST + 2][WORD_START], 1);
    say(&r, MASTER, (struct word){.kind = (uint8_t)WORD_COMPLETE});
    CHECK_EQ(r.counts[FIRST][WORD_OVER], 1);
    CHECK_EQ(desk_kept_bytes(r.desk), 0);
    rig_fini(&r);
}

static void test_too_much(void) {
    struct desk_limits l;
    desk_usual(&l);
    CHECK(desk_fits(&l));
    l.bytes = UINT64_C(16384) << 20;
    l.masters = 60;
    CHECK(desk_fits(&l));
    l.masters = 64;
    CHECK(!desk_fits(&l));
}

static void test_token(void) {
    struct rig r;
    rig_init(&r);
    r.limits.token[1] = 77;
    rig_start(&r);
    join(&r, FIRST, 0);
    CHECK_EQ(r.last[FIRST].kind, WORD_REFUSED);
    CHECK(r.closed[FIRST]);
    CHECK_EQ(desk_workers(r.desk), 0);
    rig_fini(&r);
}

/* ---- who gets what ---- */

static void test_longest_to_fastest(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_ATTRIBUTE);
    history_read(desk_history(r.desk, 0),
                 bytes_from_str("1 1000000000\n2 9000000000\n3 5000000000\n"));
    begin(&r, 1);
    for (uint64_t step = 1; step <= 3; step++)
        work(&r, MASTER, 1, step);
    join(&r, FIRST, SPEED_ONE);
    CHECK_EQ(r.numbers[FIRST][0], 2);
    CHECK_EQ(finish(&r, FIRST, 1000 * MS), 2);
    CHECK_EQ(r.numbers[FIRST][0], 3);
    finish(&r, FIRST, 1000 * MS);
    finish(&r, FIRST, 1000 * MS);
    join(&r, FIRST + 1, 3 * SPEED_ONE);
    join(&r, FIRST + 2, 2 * SPEED_ONE);
    work(&r, MASTER, 1, 9);
    CHECK_EQ(r.id_count[FIRST + 1], 1); /* the fastest */
    work(&r, MASTER, 1, 10);
    CHECK_EQ(r.id_count[FIRST + 2], 1);
    rig_fini(&r);
}

static void test_benchmark(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_BENCHMARK);
    for (uint32_t i = 0; i < 3; i++) {
        join(&r, FIRST + i, SPEED_ONE);
        CHECK(r.last[FIRST + i].kind == WORD_STEP && r.last[FIRST + i].flag == STEP_BENCH);
        finish(&r, FIRST + i, i == 1 ? 10 * MS : 20 * MS);
    }
    work(&r, MASTER, 0, 1);
    CHECK_EQ(r.id_count[FIRST + 1], 1); /* half the time: twice the speed */
    rig_fini(&r);
}

static void test_lost_worker(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    work(&r, MASTER, 0, 5);
    CHECK_EQ(r.id_count[FIRST], 1);
    desk_down(r.desk, FIRST, r.now);
    join(&r, FIRST + 1, 0);
    CHECK_EQ(r.numbers[FIRST + 1][0], 5);
    finish(&r, FIRST + 1, 1);
    CHECK_EQ(r.delivered, 1);
    /* One that is idle and says nothing is lost too. */
    r.now += r.limits.ping_ns;
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    CHECK_EQ(r.last[FIRST + 1].kind, WORD_PING);
    r.now += r.limits.silent_ns;
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    CHECK(r.closed[FIRST + 1]);
    CHECK_EQ(desk_workers(r.desk), 0);
    rig_fini(&r);
}

static void test_straggler(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    for (uint64_t step = 1; step <= 20; step++) {
        work(&r, MASTER, 0, step);
        r.now += 100 * MS;
        finish(&r, FIRST, 100 * MS);
    }
    join(&r, FIRST + 1, 0);
    work(&r, MASTER, 0, 50);
    uint32_t slow = r.id_count[FIRST] ? FIRST : FIRST + 1,
             quick = slow == FIRST ? FIRST + 1 : FIRST;
    r.now += 150 * MS;
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    CHECK_EQ(r.id_count[quick], 0); /* a little late is not late */
    r.now += 2000 * MS;
    for (int i = 0; i < 3; i++) {
        desk_time(r.desk, r.now, &r.deeds);
        settle(&r);
    }
    CHECK_EQ(r.id_count[quick], 1); /* one copy */
    join(&r, FIRST + 2, 0);
    r.now += 100 * MS;
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    CHECK_EQ(r.id_count[FIRST + 2], 0); /* and no more while that is in time */
    uint64_t before = r.delivered;
    finish(&r, quick, 100 * MS);
    CHECK_EQ(r.delivered, before + 1);
    finish(&r, slow, 2200 * MS);
    CHECK_EQ(r.delivered, before + 1); /* once */
    CHECK(!r.closed[slow]);
    work(&r, MASTER, 0, 51);
    work(&r, MASTER, 0, 52);
    CHECK_EQ(r.id_count[slow] + r.id_count[quick] + r.id_count[FIRST + 2], 2); /* and it works on */
    rig_fini(&r);
}

static void wait_ms(struct rig *r, uint64_t ms) {
    r->now += ms * MS;
    desk_time(r->desk, r->now, &r->deeds);
    settle(r);
}

/* A worker that stands still with the first step of all: what others take tells that it is late. */
static void test_late_from_the_start(void) {
    struct rig r;
    rig_init(&r);
    r.limits.ahead_ns = 0;
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    work(&r, MASTER, 0, 1);
    CHECK_EQ(r.id_count[FIRST], 1);
    join(&r, FIRST + 1, 0);
    for (uint64_t step = 2; step <= 4; step++) {
        work(&r, MASTER, 0, step);
        finish(&r, FIRST + 1, 100 * MS);
    }
    wait_ms(&r, 900);
    CHECK_EQ(r.id_count[FIRST + 1], 0); /* three say little */
    wait_ms(&r, 1000);
    CHECK_EQ(r.numbers[FIRST + 1][0], 1);
    finish(&r, FIRST + 1, 100 * MS);
    CHECK_EQ(r.delivered, 4);
    rig_fini(&r);
}

/* The same, and nothing is known of any step. */
static void test_late_and_nothing_known(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    work(&r, MASTER, 0, 1);
    wait_ms(&r, 59000);
    join(&r, FIRST + 1, 0);
    wait_ms(&r, 10);
    CHECK_EQ(r.id_count[FIRST + 1], 0);
    wait_ms(&r, 2000);
    CHECK_EQ(r.id_count[FIRST + 1], 1);
    wait_ms(&r, 119000);
    join(&r, FIRST + 2, 0);
    wait_ms(&r, 10);
    CHECK_EQ(r.id_count[FIRST + 2], 0); /* a copy has twice the time */
    wait_ms(&r, 2000);
    CHECK_EQ(r.id_count[FIRST + 2], 1);
    rig_fini(&r);
}

/* ---- hosts ---- */

static void join_from(struct rig *r, uint32_t link, const char *host) {
    desk_up(r->desk, link, false, r->now);
    r->id_count[link] = 0;
    say(r, link, (struct word){.kind = (uint8_t)WORD_WORKER, .name = bytes_from_str(host)});
}

/* What a host that stands still has is done elsewhere, though nothing is known of how long steps take. */
static void test_host_rests(void) {
    struct rig r;
    rig_init(&r);
    r.limits.ahead_ns = 0;
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join_from(&r, FIRST, "17");
    work(&r, MASTER, 0, 1);
    CHECK_EQ(r.id_count[FIRST], 1);
    join_from(&r, FIRST + 1, "18");
    desk_host_rests(r.desk, 17, true);
    r.now += MS;
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    CHECK_EQ(r.id_count[FIRST + 1], 1);
    finish(&r, FIRST + 1, MS);
    CHECK_EQ(r.delivered, 1);
    work(&r, MASTER, 0, 2);
    work(&r, MASTER, 0, 3);
    CHECK_EQ(r.id_count[FIRST], 1);
    CHECK_EQ(r.id_count[FIRST + 1], 1);
    r.now += 100 * r.limits.silent_ns; /* one that stands still may be silent */
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    CHECK(!r.closed[FIRST]);
    desk_host_rests(r.desk, 17, false);
    finish(&r, FIRST, MS);
    CHECK_EQ(r.delivered, 1); /* that was known */
    CHECK_EQ(r.id_count[FIRST], 1);
    CHECK_EQ(desk_results(r.desk, 0), 2);
    rig_fini(&r);
}

static void test_host_gone(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join_from(&r, FIRST, "17");
    work(&r, MASTER, 0, 1);
    join_from(&r, FIRST + 1, "x17"); /* that is no host */
    CHECK(desk_host_busy(r.desk, 17) && !desk_host_busy(r.desk, 18));
    desk_host_gone(r.desk, 17, &r.deeds);
    settle(&r);
    CHECK(r.closed[FIRST] && !r.closed[FIRST + 1]);
    CHECK_EQ(r.id_count[FIRST + 1], 1);
    CHECK_EQ(desk_workers(r.desk), 1);
    rig_fini(&r);
}

/* As many as the master wants, or are enough, but not more than the cycle has steps. */
static void test_wanted(void) {
    struct rig r;
    uint64_t scratch[2000];
    rig_init(&r);
    rig_start(&r);
    CHECK_EQ(desk_wanted(r.desk, 0, 0, scratch), 0);
    uint8_t room[64];
    struct profile p = {.classes = 1, .fewest = true, .needs = {UINT32_MAX}};
    size_t len = profile_write(&p, room_of(room, sizeof room));
    desk_up(r.desk, MASTER, true, r.now);
    say(&r, MASTER,
        (struct word){.kind = (uint8_t)WORD_MASTER,
                      .name = bytes_from_str("m"),
                      .body = bytes_of(room, len)});
    CHECK_EQ(desk_wanted(r.desk, 0, 0, scratch), 0); /* it has no work */
    work(&r, MASTER, 0, 100);
    CHECK_EQ(desk_wanted(r.desk, 0, 0, scratch), 1);
    join(&r, FIRST, 0);
    finish(&r, FIRST, MS);
    ack(&r, 1);
    r.steps = 6;
    begin(&r, 1);
    CHECK_EQ(desk_wanted(r.desk, 0, 0, scratch), 1); /* by what is known: one step */
    static const uint64_t lengths[] = {10, 2, 2, 2, 2, 2};
    for (uint64_t step = 1; step <= 6; step++)
        history_add(desk_history(r.desk, 0), step, 100 * MS * lengths[step - 1]);
    CHECK_EQ(desk_wanted(r.desk, 0, 0, scratch), 3); /* two would be late by that one step */
    for (uint64_t step = 1; step <= 6; step++)
        history_add(desk_history(r.desk, 0), step + 10, 1000 * MS);
    CHECK_EQ(desk_wanted(r.desk, 0, 0, scratch), 6);
    CHECK_EQ(desk_wanted(r.desk, 0, 1, scratch), 0);
    rig_fini(&r);
}

/* ---- nobody stalls others; nothing grows ---- */

static void test_slow_master(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "never takes anything", SPEED_BY_CLASS);
    enter(&r, OTHER_MASTER, "other", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    static uint8_t large[WORD_BODY_MAX];
    for (uint64_t step = 1; step <= 20; step++)
        work(&r, MASTER, 0, step);
    while (r.id_count[FIRST])
        finish(&r, FIRST, 1);
    /* Its results fill its half of its share; the rest of its steps wait. */
    for (uint64_t step = 21; step <= 60; step++)
        work(&r, MASTER, 0, step);
    for (int i = 0; i < 100 && r.id_count[FIRST]; i++) {
        struct word w = {.kind = (uint8_t)WORD_RESULT,
                         .id = r.ids[FIRST][0],
                         .ns = 1,
                         .body = bytes_of(large, sizeof large)};
        r.id_count[FIRST]--;
        memmove(r.ids[FIRST], r.ids[FIRST] + 1, sizeof r.ids[FIRST] - 4);
        desk_drained(r.desk, FIRST);
        say(&r, FIRST, w);
    }
    struct desk_master m;
    CHECK(desk_master(r.desk, 0, &m) && m.steps >= 38);
    CHECK_EQ(r.id_count[FIRST], 0);
    CHECK(desk_kept_bytes(r.desk) <= r.limits.bytes);
    work(&r, OTHER_MASTER, 0, 1);
    CHECK_EQ(r.id_count[FIRST], 1);
    finish(&r, FIRST, 1);
    CHECK_EQ(r.last[OTHER_MASTER].kind, WORD_DELIVER);
    rig_fini(&r);
}

static void test_slow_worker(void) {
    struct rig r;
    rig_init(&r);
    r.limits.worker_unsent = 64;
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    join(&r, FIRST + 1, 0);
    begin(&r, 1);
    for (uint64_t step = 1; step <= 10; step++) { /* the first takes nothing */
        work(&r, MASTER, 1, step);
        while (r.id_count[FIRST + 1])
            finish(&r, FIRST + 1, 1000);
    }
    uint32_t stuck = r.id_count[FIRST];
    CHECK(stuck > 0 && stuck < 10);
    CHECK_EQ(r.delivered, 10 - stuck);
    while (r.id_count[FIRST])
        finish(&r, FIRST, 1000);
    CHECK_EQ(r.delivered, 10);
    for (int i = 0; i < 20; i++) { /* what it was sent is not taken: others hear of all cycles */
        end(&r, (uint64_t)i + 1);
        begin(&r, (uint64_t)i + 2);
        desk_drained(r.desk, FIRST + 1);
        settle(&r);
    }
    CHECK_EQ(r.counts[FIRST + 1][WORD_START], 21);
    CHECK(r.counts[FIRST][WORD_START] < 21);
    desk_drained(r.desk, FIRST); /* it comes back to where the others are */
    settle(&r);
    CHECK(r.last[FIRST].kind == WORD_START && r.last[FIRST].cycle == 21);
    rig_fini(&r);
}

/* A master that comes again may be another program, or have other arguments. */
static void test_a_master_that_has_changed(void) {
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    uint64_t records = r.records, kept = desk_kept_bytes(r.desk);
    enter(&r, OTHER_MASTER, "m", SPEED_BY_CLASS); /* the same */
    CHECK_EQ(r.records, records);
    enter_with(&r, MASTER, "m", SPEED_BY_CLASS, "other");
    CHECK_EQ(r.records, records + 1);
    CHECK_EQ(desk_kept_bytes(r.desk), kept); /* the former is not kept: both fit into one block */
    join(&r, FIRST, 0);
    CHECK(r.counts[FIRST][WORD_INIT] == 1 && r.last[FIRST].body.len == 5);
    rig_fini(&r);
    r.records = 0;
    rig_start(&r); /* as the journal tells it */
    uint8_t room[64];
    struct word w = {.kind = (uint8_t)WORD_LOG_MASTER, .session = 1, .name = bytes_from_str("m")};
    w.body = profile_of(room_of(room, sizeof room), SPEED_BY_CLASS, "init");
    CHECK(desk_replay(r.desk, &w));
    w.body = profile_of(room_of(room, sizeof room), SPEED_BY_CLASS, "another");
    CHECK(desk_replay(r.desk, &w));
    join(&r, FIRST, 0);
    CHECK(r.counts[FIRST][WORD_INIT] == 2 && r.last[FIRST].body.len == 7);
    w.name = bytes_from_str("n");
    CHECK(!desk_replay(r.desk, &w));
    rig_fini(&r);
}

static void test_million_steps(void) {
    enum { STEPS = 1000000, AT_ONCE = 100 };
    struct rig r;
    rig_init(&r);
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    join(&r, FIRST + 1, 0);
    begin(&r, 1);
    uint64_t kept_most = 0, executed = 0;
    for (uint64_t step = 1; step <= STEPS; step++) {
        work(&r, MASTER, 1, step);
        if (step % AT_ONCE)
            continue;
        while (r.id_count[FIRST] || r.id_count[FIRST + 1]) {
            finish(&r, r.id_count[FIRST] ? FIRST : FIRST + 1, 2000);
            executed++;
        }
        ack(&r, r.delivered);
        uint64_t kept = desk_kept_bytes(r.desk);
        kept_most = kept > kept_most ? kept : kept_most;
    }
    CHECK_EQ(executed, STEPS);
    CHECK_EQ(r.delivered, STEPS);
    CHECK(kept_most <= 1024); /* what every worker is told, and nothing else */
    static uint8_t room[2 * (RECORD_PREFIX + WORD_BYTES_MAX) + 2];
    struct desk_cursor c = {0};
    size_t snapshot = 0;
    for (size_t len; (len = desk_snapshot(r.desk, &c, room_of(room, sizeof room)));)
        snapshot += len;
    CHECK(snapshot < 1000); /* all that the journal needs after a million steps */
    end(&r, 1);
    CHECK_EQ(r.last[MASTER].status, 0);
    rig_fini(&r);
}

/* Numbers under which steps are sent come again; the answer to one that is long over must not count for another. */
static void test_very_late_answer(void) {
    struct rig r;
    rig_init(&r);
    r.limits.ahead_ns = 0;
    rig_start(&r);
    enter(&r, MASTER, "m", SPEED_BY_CLASS);
    join(&r, FIRST, 0);
    for (uint64_t step = 1; step <= 20; step++) {
        work(&r, MASTER, 0, step);
        finish(&r, FIRST, 100 * MS);
    }
    join(&r, FIRST + 1, 0);
    work(&r, MASTER, 0, 50);
    uint32_t slow = r.id_count[FIRST] ? FIRST : FIRST + 1,
             quick = slow == FIRST ? FIRST + 1 : FIRST;
    r.now += 5000 * MS;
    desk_time(r.desk, r.now, &r.deeds);
    settle(&r);
    finish(&r, quick, 100 * MS);
    ack(&r, r.delivered);
    uint32_t old = r.ids[slow][0];
    bool again = false;
    for (uint64_t step = 100; step < 100 + 5000 && !again; step++) {
        work(&r, MASTER, 0, step);
        again = r.ids[quick][0] == old;
        if (again)
            break;
        finish(&r, quick, 100 * MS);
        ack(&r, r.delivered);
    }
    CHECK(again);
    uint64_t before = r.delivered;
    finish(&r, slow, 5000 * MS);
    CHECK_EQ(r.delivered, before);
    finish(&r, quick, 100 * MS);
    CHECK_EQ(r.delivered, before + 1);
    rig_fini(&r);
}

int main(void) {
    TEST(test_buffers);
    TEST(test_too_much);
    TEST(test_token);
    TEST(test_longest_to_fastest);
    TEST(test_benchmark);
    TEST(test_lost_worker);
    TEST(test_straggler);
    TEST(test_late_from_the_start);
    TEST(test_late_and_nothing_known);
    TEST(test_very_late_answer);
    TEST(test_host_rests);
    TEST(test_host_gone);
    TEST(test_wanted);
    TEST(test_slow_master);
    TEST(test_slow_worker);
    TEST(test_a_master_that_has_changed);
    TEST(test_million_steps);
    return tap_finish();
}
