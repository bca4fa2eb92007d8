/* SPDX-License-Identifier: MIT */
/* S5: each result reaches its master exactly once, whoever is killed when.
 *
 * The real desk and the real master's side, with modelled workers, connections, a journal whose tail may be torn, and
 * acknowledgements in a word that survives. A seed draws the sizes and the faults; in the end there are no more faults and
 * all must be done. `wodi_campaign_test SEED` runs one seed alone, and tells more. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/random.h"
#include "client/wodi_side.h"
#include "tap.h"
#include "wodi/desk.h"

enum {
    MASTERS = 3,
    WORKERS = 6,
    LINKS = 2 * MASTERS + WORKERS,
    STEPS_MAX = 40,
    CYCLES_MAX = 4,
    SESSIONS = 512
};
enum { DEEDS_BYTES = 4 * DEED_MAX };

/* A connection: bytes on their way to the server and from it. */
struct wire {
    bool up;     /* as its client sees it */
    bool served; /* as the server does */
    struct wodi_bytes to, from;
};

enum { ACKED_PERHAPS = 9 };

enum doing { DOING_BEGIN, DOING_SEND, DOING_RECEIVE, DOING_END, DOING_COMPLETE, DOING_OVER };

struct master {
    struct side side;
    bool alive;
    enum doing doing;
    bool asked;
    bool local;    /* its acknowledgements are a word in memory that survives */
    uint32_t link; /* one of its two: the server may not have seen the end of the other */
    uint64_t cycle, step;
    uint64_t word;   /* that word */
    uint64_t handed; /* the step of the last result that was taken, 0: none, not acknowledged */
    bool handing;    /* a result waits for the confirmation of the one before */
    uint8_t acked[CYCLES_MAX + 1][STEPS_MAX + 1];
    uint32_t cycles, steps;
};

struct labourer {
    bool alive;
    struct {
        bool init;
        uint64_t started, finished;
    } knows[SESSIONS];
    struct list todo;
};

struct chore {
    struct list at;
    uint32_t id, session;
    uint64_t cycle, step;
    uint64_t got; /* what the master had said */
};

struct trial {
    struct random random;
    struct desk_limits limits;
    struct desk *desk;
    uint64_t now;
    struct wire wires[LINKS];
    struct master masters[MASTERS];
    struct labourer labourers[WORKERS];
    uint32_t masters_count, workers_count;
    struct wodi_bytes journal;
    uint64_t journal_records, records_base; /* of this life's count: when its journal began */
    uint64_t durable_bytes;
    uint64_t records, durable;
    struct deeds deeds;
    uint32_t faults;
    uint32_t big; /* one in so many bodies is large; 0: none */
    uint64_t executed, lives;
    const char *wrong;
};

static void fault(struct trial *t, const char *what) {
    if (!t->wrong)
        t->wrong = what;
}

/* ---- the server ---- */

static void carry_out(struct trial *t) {
    struct deed deed;
    for (size_t at = 0; deeds_next(&t->deeds, &at, &deed);) {
        if (deed.kind == DEED_LOG) {
            wodi_bytes_add(&t->journal, deed.bytes);
            t->records++;
            continue;
        }
        struct wire *w = &t->wires[deed.link];
        if (deed.kind == DEED_SEND && w->served)
            wodi_bytes_add(&w->from, deed.bytes);
        else if (deed.kind == DEED_CLOSE)
            w->served = false;
    }
    t->deeds.len = 0;
}

static void pump(struct trial *t) {
    bool more;
    do {
        more = desk_pump(t->desk, t->now, &t->deeds);
        carry_out(t);
    } while (more);
}

static void read_words(struct trial *t) {
    for (uint32_t slot = 0; slot < t->limits.masters; slot++) {
        struct desk_master m;
        if (desk_master(t->desk, slot, &m) && m.cookie < MASTERS && t->masters[m.cookie].local)
            desk_master_acked(t->desk, slot, t->masters[m.cookie].word, &t->deeds);
        carry_out(t);
    }
}

/* Memory that costs nothing until it is used, as the server has it. */
static void *desk_memory(const struct trial *t) {
    void *mem = mmap(NULL, desk_bytes(&t->limits), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mem == MAP_FAILED ? NULL : mem;
}

static void desk_free(const struct trial *t, struct desk *d) {
    munmap(d, desk_bytes(&t->limits));
}

static struct desk *desk_from(struct trial *t, struct bytes journal, size_t *ret_good) {
    struct desk *d = desk_init(desk_memory(t), &t->limits);
    struct word w;
    *ret_good = 0;
    for (long len;
         (len = record_next(bytes_of(journal.at + *ret_good, journal.len - *ret_good), &w)) > 0;
         *ret_good += (size_t)len)
        if (!desk_replay(d, &w)) {
            fault(t, "a record cannot be replayed");
            break;
        }
    return d;
}

static void server_start(struct trial *t) {
    size_t good;
    t->desk = desk_from(t, wodi_bytes_left(&t->journal), &good);
    t->journal.len = t->journal.from + good;
    t->durable_bytes = good;
    t->records = t->durable = 0;
    t->lives++;
    read_words(t);
}

/* It loses what was not durable, or a part of it, perhaps in the middle of a record; so do all connections. */
static void server_kill(struct trial *t) {
    size_t loose = t->journal.len - t->journal.from - t->durable_bytes;
    t->journal.len -= random_below(&t->random, loose + 1);
    if (random_chance(&t->random, 1, 4)) {
        uint8_t junk[5];
        random_bytes(&t->random, junk, sizeof junk);
        wodi_bytes_add(&t->journal, bytes_of(junk, sizeof junk));
    }
    desk_free(t, t->desk);
    for (uint32_t i = 0; i < LINKS; i++) {
        t->wires[i].served = false;
        t->wires[i].to.len = t->wires[i].to.from = 0;
    }
    server_start(t);
}

static uint64_t digest(const struct desk *d) {
    static uint8_t room[2 * (RECORD_PREFIX + WORD_BYTES_MAX) + 2];
    struct desk_cursor c = {0};
    uint64_t sum = 0;
    for (size_t len; (len = desk_snapshot(d, &c, room_of(room, sizeof room)));)
        sum += hash_once(room, len);
    return sum;
}

/* S11: the journal leads to the state in memory. */
static void check_replay(struct trial *t) {
    size_t good;
    struct desk *again = desk_from(t, wodi_bytes_left(&t->journal), &good);
    if (good != t->journal.len - t->journal.from || digest(again) != digest(t->desk))
        fault(t, "the journal leads elsewhere");
    desk_free(t, again);
}

static void compact(struct trial *t) {
    static uint8_t room[2 * (RECORD_PREFIX + WORD_BYTES_MAX) + 2];
    struct desk_cursor c = {0};
    t->journal.from = t->journal.len = 0;
    for (size_t len; (len = desk_snapshot(t->desk, &c, room_of(room, sizeof room)));)
        wodi_bytes_add(&t->journal, bytes_of(room, len));
    t->durable_bytes = t->journal.len;
    t->durable = t->records;
    desk_durable(t->desk, t->durable);
    pump(t);
}

static void server_sync(struct trial *t) {
    t->durable_bytes = t->journal.len - t->journal.from;
    t->durable = t->records;
    desk_durable(t->desk, t->durable);
    pump(t);
}

static void server_lose(struct trial *t, uint32_t link) {
    t->wires[link].served = false;
    t->wires[link].to.len = t->wires[link].to.from = 0;
    desk_down(t->desk, link, t->now);
    read_words(t);
    pump(t);
}

static void server_hears(struct trial *t, uint32_t link) {
    struct wire *w = &t->wires[link];
    struct word word;
    long len = word_next(wodi_bytes_left(&w->to), &word);
    if (len <= 0) {
        if (len < 0)
            fault(t, "the server hears nonsense");
        if (!w->up && w->served)
            server_lose(t, link); /* all that it had said was heard */
        return;
    }
    if (w->served)
        desk_heard(t->desk, link, &word, t->now, &t->deeds);
    wodi_bytes_took(&w->to, (size_t)len);
    carry_out(t);
    if (random_chance(&t->random, 1, 2))
        pump(t);
}

/* ---- connections ---- */

static void wire_open(struct trial *t, uint32_t link) {
    struct wire *w = &t->wires[link];
    if (w->served)
        server_lose(t, link);
    w->to.from = w->to.len = w->from.from = w->from.len = 0;
    w->up = w->served = true;
    desk_up(t->desk, link, true, t->now);
}

/* ---- workers ---- */

static uint64_t result_of(uint32_t master, uint64_t cycle, uint64_t step) {
    return (uint64_t)master * 1000003 + cycle * 1009 + step;
}

static void labourer_clear(struct labourer *l) {
    memset(l->knows, 0, sizeof l->knows);
    for (struct list *at; (at = list_pop_front(&l->todo));)
        free(CONTAINER_OF(at, struct chore, at));
}

static void labourer_hears(struct trial *t, uint32_t i, const struct word *w) {
    struct labourer *l = &t->labourers[i];
    if (w->kind == WORD_PING || w->kind == WORD_REFUSED)
        return;
    if (w->session >= SESSIONS) {
        fault(t, "too many sessions for this test");
        return;
    }
    bool bench = w->kind == WORD_STEP && (w->flag & STEP_BENCH);
    if (w->kind == WORD_INIT) {
        if (l->knows[w->session].init)
            fault(t, "initialised twice");
        l->knows[w->session].init = true;
    } else if (!l->knows[w->session].init) {
        fault(t, "not initialised");
    } else if (w->kind == WORD_START) {
        l->knows[w->session].started = w->cycle;
        if (w->body.len != 8 || load_le64(w->body.at) != w->cycle)
            fault(t, "wrong start of a cycle");
    } else if (w->kind == WORD_FINISH) {
        if (l->knows[w->session].started != w->cycle || load_le64(w->body.at) != ~w->cycle)
            fault(t, "wrong end of a cycle");
        l->knows[w->session].finished = w->cycle;
    } else if (w->kind == WORD_STEP) {
        if (!bench &&
            (l->knows[w->session].started != w->cycle || l->knows[w->session].finished == w->cycle))
            fault(t, "a step outside its cycle");
        struct chore *c = malloc(sizeof *c);
        *c = (struct chore){.id = w->id, .session = w->session, .cycle = w->cycle, .step = w->step};
        c->got = bench ? 0 : load_le64(w->body.at);
        list_push_back(&l->todo, &c->at);
    }
}

static void labourer_works(struct trial *t, uint32_t i) {
    struct list *at = list_pop_front(&t->labourers[i].todo);
    if (!at)
        return;
    struct chore *c = CONTAINER_OF(at, struct chore, at);
    static uint8_t body[300000];
    size_t len = t->big && random_chance(&t->random, 1, t->big) ? sizeof body : 8;
    store_le64(body, c->got);
    struct word w = {.kind = (uint8_t)WORD_RESULT,
                     .id = c->id,
                     .status = (uint32_t)c->step,
                     .ns = 1000 * (1 + c->step),
                     .body = bytes_of(body, len)};
    wodi_bytes_say(&t->wires[MASTERS + i].to, &w);
    t->executed++;
    free(c);
}

static void labourer_acts(struct trial *t, uint32_t i) {
    struct wire *w = &t->wires[MASTERS + i];
    struct labourer *l = &t->labourers[i];
    if (!l->alive || !w->up) {
        l->alive = true;
        labourer_clear(l);
        wire_open(t, MASTERS + i);
        uint64_t speed = random_between(&t->random, 1, 1 << 17);
        uint32_t class = (uint32_t)random_below(&t->random, 3);
        struct word hello = {.kind = (uint8_t)WORD_WORKER,
                             .id = class,
                             .ns = speed,
                             .token = {t->limits.token[0], t->limits.token[1]}};
        wodi_bytes_say(&w->to, &hello);
        return;
    }
    struct word word;
    long len = word_next(wodi_bytes_left(&w->from), &word);
    if (len > 0 && random_chance(&t->random, 2, 3)) {
        labourer_hears(t, i, &word);
        wodi_bytes_took(&w->from, (size_t)len);
        desk_drained(t->desk, MASTERS + i);
    } else if (len == 0 && !w->served) {
        w->up = false;
    } else {
        labourer_works(t, i);
    }
}

/* ---- masters ---- */

static void master_start(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    struct profile p = {
        .classes = 2, .needs = {1, 2}, .speeds = {1 << 16, 1 << 15}, .bench = bytes_from_str("b")};
    uint8_t room[200];
    side_init(&m->side);
    m->side.token[0] = t->limits.token[0];
    m->side.token[1] = t->limits.token[1];
    m->side.cookie = i;
    m->side.speed_source = (uint8_t)(i % SPEED_SOURCES);
    snprintf(m->side.name, sizeof m->side.name, "master-%u", i);
    size_t len = profile_write(&p, room_of(room, sizeof room));
    wodi_bytes_add(&m->side.profile, bytes_of(room, len));
    m->alive = true;
    m->doing = DOING_BEGIN;
    m->asked = m->handing = false;
    m->handed = 0;
    m->cycle = m->step = 1;
}

static void master_kill(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    /* In the middle of a call: nobody can say whether that has acknowledged. */
    if (m->handed && m->side.acked == m->side.taken)
        m->acked[m->cycle][m->handed] = ACKED_PERHAPS;
    side_fini(&m->side);
    t->wires[m->link].up = false;
    /* What it had said is on its way, or not. */
    if (random_chance(&t->random, 1, 2))
        t->wires[m->link].to.len = t->wires[m->link].to.from;
    m->alive = false;
}

/* The program calls rcvresult or end_cycle: what it was handed before is acknowledged when that call does something. */
static void master_acks(struct trial *t, struct master *m) {
    side_ack(&m->side);
    if (m->local)
        m->word = m->side.acked;
    if (m->handed == 0 || (!m->local && m->side.confirmed < m->side.acked))
        return;
    if (m->acked[m->cycle][m->handed]++)
        fault(t, "acknowledged twice");
    m->handed = 0;
}

static void master_receives(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    struct side *s = &m->side;
    master_acks(t, m);
    side_say_ack(s);
    if (m->handed)
        return; /* it waits for the confirmation */
    struct side_result *r = side_take(s);
    if (!r) {
        if (s->outstanding == 0)
            m->doing = DOING_END;
        return;
    }
    if (r->cycle != m->cycle || r->step == 0 || r->step > m->steps ||
        r->status != (uint32_t)r->step || r->len < 8 ||
        load_le64(r->body) != result_of(i, r->cycle, r->step))
        fault(t, "a wrong result");
    else if (m->acked[m->cycle][r->step] == 1)
        fault(t, "a result comes after it was acknowledged");
    else {
        m->acked[m->cycle][r->step] = 0;
        m->handed = r->step;
    }
    free(r);
}

static void master_sends(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    static uint8_t body[200000];
    size_t len = t->big && random_chance(&t->random, 1, t->big) ? sizeof body : 8;
    store_le64(body, result_of(i, m->cycle, m->step));
    int status = side_work(&m->side, m->step, bytes_of(body, len));
    if (status == -EAGAIN && m->side.inbox_count == 0)
        return;
    if (status == -EAGAIN)
        m->doing = DOING_RECEIVE; /* the rest is sent when these are here */
    else if (status != 0)
        fault(t, "a step was not taken");
    else if (++m->step > m->steps)
        m->doing = DOING_RECEIVE;
}

/* The answer to what was asked, -1: not yet. */
static int master_asks(struct trial *t, struct master *m, enum word_kind kind, uint64_t body) {
    struct side *s = &m->side;
    uint8_t bytes[8];
    store_le64(bytes, body);
    if (!m->asked) {
        m->asked = true;
        side_ask(s, kind, m->cycle, m->steps, bytes_of(bytes, 8));
    }
    if (!s->answered)
        return -1;
    m->asked = false;
    if (s->answer > 1)
        fault(t, "refused");
    return (int)s->answer;
}

static void master_begins(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    int answer = master_asks(t, m, WORD_BEGIN, m->cycle);
    m->step = 1;
    if (answer == 0)
        m->doing = DOING_SEND;
    else if (answer == 1)
        m->doing = m->cycle++ == m->cycles ? DOING_COMPLETE : DOING_BEGIN;
}

static void master_ends(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    master_acks(t, m);
    if (m->step <= m->steps) {
        m->doing = DOING_SEND;
        return;
    }
    if (m->handed || master_asks(t, m, WORD_END, ~m->cycle) < 0)
        return;
    for (uint32_t step = 1; step <= m->steps; step++)
        if (m->acked[m->cycle][step] != 1 && m->acked[m->cycle][step] != ACKED_PERHAPS)
            fault(t, "a cycle ended without a result");
    m->doing = m->cycle++ == m->cycles ? DOING_COMPLETE : DOING_BEGIN;
}

static void master_does(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    switch (m->doing) {
    case DOING_BEGIN:
        master_begins(t, i);
        break;
    case DOING_SEND:
        if (random_chance(&t->random, 1, 8))
            m->doing = DOING_RECEIVE;
        else
            master_sends(t, i);
        break;
    case DOING_RECEIVE:
        master_receives(t, i);
        break;
    case DOING_END:
        master_ends(t, i);
        break;
    case DOING_COMPLETE:
        if (master_asks(t, m, WORD_COMPLETE, 0) >= 0)
            m->doing = DOING_OVER;
        break;
    case DOING_OVER:
        break;
    }
}

static void master_acts(struct trial *t, uint32_t i) {
    struct master *m = &t->masters[i];
    struct word word;
    if (m->doing == DOING_OVER)
        return;
    if (!m->alive)
        master_start(t, i);
    if (!t->wires[m->link].up) {
        m->link = m->link == i ? MASTERS + WORKERS + i : i;
        wire_open(t, m->link);
        side_connect(&m->side);
    }
    struct wire *w = &t->wires[m->link];
    long len = word_next(wodi_bytes_left(&w->from), &word);
    if (len > 0) {
        if (!side_hear(&m->side, &word))
            fault(t, "the master is refused, or hears nonsense");
        if (word.kind == WORD_WELCOME && m->local) {
            side_found(&m->side, m->word);
            m->word = m->side.acked;
        }
        wodi_bytes_took(&w->from, (size_t)len);
    } else if (!w->served) {
        w->up = false;
        return;
    }
    if (m->side.welcomed)
        master_does(t, i);
    wodi_bytes_add(&w->to, wodi_bytes_left(&m->side.out));
    m->side.out.from = m->side.out.len = 0;
}

/* ---- a trial ---- */

static void trial_init(struct trial *t, uint64_t seed) {
    struct random *r = &t->random;
    random_init(r, seed);
    desk_usual(&t->limits);
    t->limits.links = LINKS;
    t->limits.masters = MASTERS;
    t->limits.workers = WORKERS;
    t->limits.steps = (uint32_t)random_between(r, 3, 64);
    t->limits.history = 16;
    t->limits.bytes = 4 * WORD_BODY_MAX;
    t->limits.results_ahead = (uint32_t)random_between(r, 1, 16);
    t->limits.steps_ahead = (uint32_t)random_between(r, 1, 8);
    t->limits.token[0] = 5;
    t->masters_count = (uint32_t)random_between(r, 1, MASTERS);
    t->workers_count = (uint32_t)random_between(r, 1, WORKERS);
    t->faults = (uint32_t)random_below(r, 40);
    t->big = random_chance(r, 1, 4) ? 5 : 0;
    t->deeds = (struct deeds){.at = malloc(DEEDS_BYTES), .cap = DEEDS_BYTES};
    for (uint32_t i = 0; i < WORKERS; i++)
        list_init(&t->labourers[i].todo);
    for (uint32_t i = 0; i < t->masters_count; i++) {
        t->masters[i].cycles = (uint32_t)random_between(r, 1, CYCLES_MAX);
        t->masters[i].steps = (uint32_t)random_between(r, 1, STEPS_MAX);
        t->masters[i].local = random_chance(r, 1, 2);
        t->masters[i].link = i;
        master_start(t, i);
    }
    server_start(t);
}

static void trial_fini(struct trial *t) {
    for (uint32_t i = 0; i < t->masters_count; i++)
        if (t->masters[i].alive)
            side_fini(&t->masters[i].side);
    for (uint32_t i = 0; i < WORKERS; i++)
        labourer_clear(&t->labourers[i]);
    for (uint32_t i = 0; i < LINKS; i++) {
        free(t->wires[i].to.at);
        free(t->wires[i].from.at);
    }
    free(t->journal.at);
    free(t->deeds.at);
    desk_free(t, t->desk);
}

static void misfortune(struct trial *t) {
    uint64_t what = random_below(&t->random, 10);
    uint32_t worker = (uint32_t)random_below(&t->random, t->workers_count);
    uint32_t master = (uint32_t)random_below(&t->random, t->masters_count);
    t->faults--;
    if (what < 4) {
        t->labourers[worker].alive = false;
        t->wires[MASTERS + worker].up = false;
        t->wires[MASTERS + worker].from.len = t->wires[MASTERS + worker].from.from = 0;
    } else if (what < 7) {
        server_kill(t);
    } else if (t->masters[master].alive && t->masters[master].doing < DOING_COMPLETE) {
        master_kill(t, master);
        if (what == 9)
            server_kill(t); /* both at once */
    }
}

static bool all_over(const struct trial *t) {
    for (uint32_t i = 0; i < t->masters_count; i++)
        if (t->masters[i].doing != DOING_OVER)
            return false;
    return true;
}

static void act(struct trial *t) {
    struct random *r = &t->random;
    t->now += random_below(r, 1000000);
    if (t->faults > 0 && random_chance(r, 1, 150))
        misfortune(t);
    uint64_t what = random_below(r, 16);
    if (what < 5)
        master_acts(t, (uint32_t)random_below(r, t->masters_count));
    else if (what < 9)
        labourer_acts(t, (uint32_t)random_below(r, t->workers_count));
    else if (what < 13)
        server_hears(t, (uint32_t)random_below(r, LINKS));
    else if (what < 15)
        server_sync(t);
    else if (random_chance(r, 1, 20))
        random_chance(r, 1, 2) ? compact(t) : check_replay(t);
    else {
        desk_time(t->desk, t->now, &t->deeds);
        carry_out(t);
        pump(t);
    }
}

/* NULL, or what is wrong. */
static const char *trial_run(uint64_t seed, bool tell) {
    struct trial *t = calloc(1, sizeof *t);
    trial_init(t, seed);
    uint64_t acts = 0;
    while (!all_over(t) && !t->wrong && acts++ < 2000000)
        act(t);
    if (!t->wrong && !all_over(t))
        t->wrong = "it does not end";
    if (!t->wrong && desk_kept_bytes(t->desk) != 0)
        t->wrong = "bodies are kept though all is over";
    const char *wrong = t->wrong;
    if (tell)
        printf("# seed %llu: %llu acts, %llu lives of the server, %llu steps executed\n",
               (unsigned long long)seed, (unsigned long long)acts, (unsigned long long)t->lives,
               (unsigned long long)t->executed);
    trial_fini(t);
    free(t);
    return wrong;
}

#ifdef STORM_SLOW
static uint64_t seeds = 100;
#else
static uint64_t seeds = 1000;
#endif

static void test_every_result_once(void) {
    if (getenv("STORM_WODI_SEEDS"))
        seeds = strtoull(getenv("STORM_WODI_SEEDS"), NULL, 10);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        const char *wrong = trial_run(seed, false);
        if (!CHECK(wrong == NULL)) {
            printf("# seed %llu: %s\n", (unsigned long long)seed, wrong);
            return;
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        const char *wrong = trial_run(strtoull(argv[1], NULL, 10), true);
        printf("%s\n", wrong ? wrong : "all is well");
        return wrong != NULL;
    }
    TEST(test_every_result_once);
    return tap_finish();
}
