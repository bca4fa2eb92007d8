/* SPDX-License-Identifier: MIT */
/* Any process of a real tree is killed, the root too, at any moment of a stream of operations.
 *
 * No survivor hangs, every operation ends (done, failed, or unknown and later resolved), and a
 * reader that polls every node's memory all the while never sees data of one operation on some
 * survivors only once it is decided. deeds.h is the stream and its log, witness.h the reader with
 * its rules, inquest.h what is judged in the end; this file kills and starts.
 *
 * The test's process is the parent of all: one loop that waits a millisecond at most, reads all
 * memories, starts again who was dead long enough, and kills. Moments are drawn from a seed: plain
 * ones, and those that are aimed at what the log and the root's state show (a request just made,
 * one under way, a phase of the root), at a node that has just been started, two at once, the root
 * together with an inner node. The root is started again by its crew, at once.
 *
 * The period of the heartbeat is 500 ms. Three silent periods make a node suspect, and on two
 * processors that are shared with others a process may well have to wait 200 ms and more for its turn;
 * shorter periods would be a test of the machine's load. Kills come about every 1.5 periods on the
 * average, so most of them meet a cluster that is still busy with the last one.
 *
 * STORM_KILLS: kills in the trees of 64 nodes together (25). STORM_SEED: to draw the same moments. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inquest.h"
#include "troupe.h"

#define PERIOD_NS (500 * NS_PER_MS)

enum { KILLS = 25, SETTLE_PERIODS = 150, QUIET_PERIODS = 2, CLOSINGS_MAX = 5, FENCED_TOLD = 8 };

enum aim {
    AIM_NOW,
    AIM_REQUEST,    /* a request has just been made */
    AIM_OPEN,       /* one is under way */
    AIM_PHASE,      /* the root is in a certain phase */
    AIM_COLLECTING, /* the root is killed, the next one collects survivors */
    AIM_JOINING,    /* a node has just been started */
    AIM_PAIR,       /* two at once */
    AIM_BOTH,       /* an operation is applied on some: the root and an inner node that lacks it */
    AIMS
};

static const char *const aim_names[AIMS] = {"any moment",  "request made",   "request open",
                                            "phase",       "new root",       "node starting",
                                            "two at once", "applied on some"};

struct scene {
    struct deeds *d;
    struct witness *w;
    struct random random;
    uint32_t kills_left;
    uint64_t next_ns; /* not before this the next kill */
    uint64_t give_up_ns;
    enum aim aim;
    enum prim_phase phase;
    uint32_t deeds_then;
    uint64_t restart_ns[NODES_MAX]; /* of the dead; 0: alive */
    uint64_t resume_ns[NODES_MAX];  /* of the stopped; 0: runs */
    uint32_t root_lives;            /* as far as the test has to do with it */
    uint32_t started;               /* the node that was started last */
    uint32_t down;
    /* figures */
    uint32_t by_aim[AIMS];
    uint32_t roots, inners, leaves, asking, stopped;
};

/* ---- killing ---- */

static uint64_t draw_ns(struct scene *s, uint64_t max_ns) {
    return random_below(&s->random, max_ns + 1);
}

static bool alive(const struct scene *s, uint32_t node) {
    if (node == s->d->root)
        return crew_lives(s->d->crew, node) == s->root_lives && crew_pid(s->d->crew, node) != 0;
    return s->restart_ns[node] == 0;
}

static bool is_inner(const struct scene *s, uint32_t node) {
    struct noderange r = tree_subtree(&s->d->prim.tree, node);
    return r.last > r.first;
}

static void count_kill(struct scene *s, uint32_t node) {
    s->kills_left -= s->kills_left > 0;
    s->by_aim[s->aim]++;
    if (node == s->d->root)
        s->roots++;
    else if (is_inner(s, node))
        s->inners++;
    else
        s->leaves++;
    for (uint32_t i = 1; i < s->d->actor_count; i++)
        s->asking += s->d->actor_node[i] == node;
}

static void strike(struct scene *s, uint32_t node) {
    struct deeds *d = s->d;
    if (!alive(s, node))
        return;
    uint32_t life = crew_lives(d->crew, node);
    ASSERT(life < LIVES_MAX);
    s->w->killed_ns[node][life] = clock_ns(); /* before the signal: from now on it does not count */
    int r = crew_signal(d->crew, node, SIGKILL);
    ASSERT(r == 0);
    if (node == d->root) {
        s->root_lives++;
    } else {
        s->restart_ns[node] = clock_ns() + draw_ns(s, 8 * PERIOD_NS);
        s->down++;
    }
    count_kill(s, node);
}

/* The most treacherous kind of dead: it comes back, and does not know that it was given up. */
static void stop(struct scene *s, uint32_t node) {
    if (!alive(s, node) || s->resume_ns[node] != 0)
        return;
    s->stopped++;
    s->resume_ns[node] = clock_ns() + draw_ns(s, 12 * PERIOD_NS);
    crew_signal(s->d->crew, node, SIGSTOP);
}

static void resume(struct scene *s, bool all) {
    for (uint32_t n = 0; n < s->d->universe; n++) {
        if (s->resume_ns[n] == 0 || (clock_ns() < s->resume_ns[n] && !all))
            continue;
        crew_signal(s->d->crew, n, SIGCONT); /* unless it was killed meanwhile */
        s->resume_ns[n] = 0;
    }
}

static uint32_t draw_node(struct scene *s) {
    return (uint32_t)random_below(&s->random, s->d->universe);
}

static uint32_t draw_inner(struct scene *s) {
    for (int i = 0; i < 100; i++) {
        uint32_t node = (uint32_t)random_below(&s->random, s->d->root);
        if (is_inner(s, node) && alive(s, node))
            return node;
    }
    return 0;
}

/* The root is one of many, but the one that matters most. */
static uint32_t draw_victim(struct scene *s) {
    uint64_t kind = random_below(&s->random, 8);
    if (kind == 0)
        return s->d->root;
    return kind < 3 ? draw_inner(s) : draw_node(s);
}

/* ---- aiming ---- */

static uint32_t deeds_so_far(const struct deeds *d) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->actor_count; i++)
        count += look_u32(&d->actor[i].deeds);
    return count;
}

/* Somebody who has to do with the newest request of some actor, if it is open. */
static uint32_t draw_concerned(struct scene *s) {
    uint32_t a = (uint32_t)random_below(&s->random, s->d->actor_count);
    uint32_t count = look_u32(&s->d->actor[a].deeds);
    for (uint32_t i = count; i-- > 0 && i + 4 > count;) {
        const struct deed *d = &s->d->actor[a].deed[i];
        if (look_u32(&d->state) != DEED_ASKED || deed_final(d))
            continue;
        uint64_t who = random_below(&s->random, 6);
        if (who < 2)
            return d->node;
        if (who == 2)
            return s->d->root;
        for (int k = 0; k < 200; k++) {
            uint32_t node = draw_node(s);
            if (bits_test(d->set, node))
                return node;
        }
    }
    return NO_NODE;
}

static void take_aim(struct scene *s) {
    static const enum prim_phase phases[] = {PHASE_PREPARING, PHASE_DECIDING, PHASE_VIEW,
                                             PHASE_STREAMING};
    uint64_t now = clock_ns();
    bool at_once = random_chance(&s->random, 1, 4);
    s->aim = (enum aim)random_below(&s->random, AIMS);
    s->phase = phases[random_below(&s->random, 4)];
    s->next_ns = now + draw_ns(s, at_once ? PERIOD_NS / 40 : 4 * PERIOD_NS);
    s->give_up_ns = s->next_ns + 4 * PERIOD_NS;
    s->started = NO_NODE;
    __atomic_store_n(&s->d->aiming, true, __ATOMIC_RELAXED);
}

/* Too many dead at once make a different test: there would be nobody to ask. */
static bool too_many_down(const struct scene *s) {
    return s->down > s->d->root / 4;
}

static void fire(struct scene *s, uint32_t node) {
    if (s->aim == AIM_PAIR)
        strike(s, draw_victim(s));
    strike(s, node);
    if (s->w->stops)
        stop(s, draw_victim(s));
    __atomic_store_n(&s->d->aiming, false, __ATOMIC_RELAXED);
    s->deeds_then = deeds_so_far(s->d);
    take_aim(s);
}

static void collecting(struct scene *s) {
    enum prim_phase phase = s->d->node[s->d->root].status.phase;
    bool fresh = crew_lives(s->d->crew, s->d->root) == s->root_lives;
    if (s->started == NO_NODE) {
        strike(s, s->d->root);
        s->started = s->d->root;
    } else if (fresh && phase == PHASE_COLLECTING) {
        fire(s, random_chance(&s->random, 1, 2) ? s->d->root : draw_inner(s));
    }
}

/* An inner node that has not applied the newest operation yet while somebody else has, NO_NODE if
 * there is no such operation now. */
static uint32_t draw_laggard(struct scene *s) {
    const struct deed *d = deed_of(s->d, s->w->newest);
    if (d == NULL || deed_final(d))
        return NO_NODE;
    for (int i = 0; i < 50; i++) {
        uint32_t node = draw_inner(s);
        if (bits_test(d->set, node) && alive(s, node) &&
            glance(s->w, node, d->place) != s->w->newest)
            return node;
    }
    return NO_NODE;
}

/* What the root has decided stops half way: some have it, some will never hear it from this root. */
static void cut_in_half(struct scene *s) {
    uint32_t node = draw_laggard(s);
    if (node == NO_NODE)
        return;
    strike(s, node);
    fire(s, s->d->root);
}

static void aim(struct scene *s) {
    uint64_t now = clock_ns();
    if (now < s->next_ns || too_many_down(s))
        return;
    bool late = now >= s->give_up_ns;
    uint32_t node = draw_victim(s);
    switch (s->aim) {
    case AIM_REQUEST:
        if (deeds_so_far(s->d) > s->deeds_then || late) {
            uint32_t concerned = draw_concerned(s);
            fire(s, concerned != NO_NODE ? concerned : node);
        }
        s->deeds_then = deeds_so_far(s->d);
        return;
    case AIM_OPEN:
        node = draw_concerned(s);
        if (node != NO_NODE || late)
            fire(s, node != NO_NODE ? node : s->d->root);
        return;
    case AIM_PHASE:
        if (s->d->node[s->d->root].status.phase == s->phase || late)
            fire(s, random_chance(&s->random, 1, 3) ? s->d->root : node);
        return;
    case AIM_COLLECTING:
        if (late)
            fire(s, node);
        else
            collecting(s);
        return;
    case AIM_JOINING:
        if (s->started != NO_NODE || late)
            fire(s, s->started != NO_NODE ? s->started : node);
        return;
    case AIM_BOTH:
        if (late)
            fire(s, s->d->root);
        else
            cut_in_half(s);
        return;
    default:
        fire(s, node);
        return;
    }
}

/* ---- the loop ---- */

static void start_the_dead(struct scene *s, bool all) {
    for (uint32_t n = 0; n < s->d->root; n++) {
        if (s->restart_ns[n] == 0 || crew_pid(s->d->crew, n) != 0 ||
            (clock_ns() < s->restart_ns[n] && !all))
            continue;
        int r = crew_start(s->d->crew, n);
        if (r < 0)
            complain(s->w, "node %u cannot be started: %s", n, strerror(-r));
        s->restart_ns[n] = 0;
        s->down--;
        s->started = n;
    }
}

/* A process that ends and was not killed has failed an assertion, or worse. */
static void look_for_crashes(struct scene *s) {
    for (uint32_t n = 0; n < s->d->root; n++)
        if (s->restart_ns[n] == 0 && crew_pid(s->d->crew, n) == 0) {
            complain(s->w, "node %u has died by itself", n);
            s->w->killed_ns[n][crew_lives(s->d->crew, n)] = clock_ns();
            s->restart_ns[n] = clock_ns();
            s->down++;
        }
    if (crew_lives(s->d->crew, s->d->root) > s->root_lives) {
        complain(s->w, "the root has died by itself");
        s->root_lives = crew_lives(s->d->crew, s->d->root);
    }
}

static void turn(struct scene *s) {
    if (crew_wait(s->d->crew, 1) > 0)
        look_for_crashes(s);
    witness_poll(s->w);
    if (s->kills_left > 0)
        aim(s);
    start_the_dead(s, s->kills_left == 0);
    resume(s, s->kills_left == 0);
}

/* ---- the end ---- */

static bool all_members(const struct scene *s) {
    for (uint32_t n = 0; n < s->d->universe; n++)
        if (current_stay(s->w, n) == NO_STAY)
            return false;
    return crew_lives(s->d->crew, s->d->root) == s->root_lives;
}

static bool all_answered(const struct scene *s) {
    for (uint32_t a = 0; a < s->d->actor_count; a++)
        for (uint32_t i = 0; i < look_u32(&s->d->actor[a].deeds); i++) {
            const struct deed *d = &s->d->actor[a].deed[i];
            if (look_u32(&d->state) == DEED_ASKED && !deed_final(d) && !deed_lost(s->w, d))
                return false;
        }
    return true;
}

/* Everyone is a member and nothing is open, and so it is still a little later. */
static bool settle(struct scene *s) {
    uint64_t end = clock_ns() + SETTLE_PERIODS * PERIOD_NS, since = 0;
    while (clock_ns() < end) {
        turn(s);
        if (!all_members(s) || !all_answered(s))
            since = 0;
        else if (since == 0)
            since = clock_ns();
        else if (clock_ns() - since > QUIET_PERIODS * PERIOD_NS)
            return true;
    }
    return false;
}

static uint32_t done_so_far(const struct scene *s) {
    uint32_t count = 0;
    for (uint32_t a = 0; a < s->d->actor_count; a++)
        for (uint32_t i = 0; i < look_u32(&s->d->actor[a].deeds); i++) {
            const struct deed *d = &s->d->actor[a].deed[i];
            count += deed_final(d) && d->result.outcome == OUTCOME_DONE;
        }
    return count;
}

/* The kills may have come so fast that little was done between them: let the stream flow on until
 * it has done more operations than there were kills. */
static void flow_on(struct scene *s, uint32_t kills) {
    uint64_t end = clock_ns() + SETTLE_PERIODS * PERIOD_NS;
    while (done_so_far(s) <= kills && clock_ns() < end)
        turn(s);
}

static void describe_node(const struct scene *s, uint32_t n) {
    const struct prim_status *p = &s->d->node[n].status;
    bool fine = current_stay(s->w, n) != NO_STAY && p->outstanding == 0;
    if (fine && n != s->d->root)
        return;
    printf("# node %u, life %u: %s%s, epoch %u, view %" PRIu64 ", parent %d, %u children, %u "
           "in flight, %u outstanding, %s, %" PRIu64 " turns\n",
           n, crew_lives(s->d->crew, n), p->attached ? "attached" : "not attached",
           p->member ? ", member" : "", p->epoch, p->view,
           p->parent == NO_NODE ? -1 : (int)p->parent, p->children, p->in_flight, p->outstanding,
           phase_name(p->phase), crew_counts(s->d->crew, n)->turns);
}

/* Both closing requests of the last attempt. */
static bool closing_ended(const struct scene *s, bool *ret_done) {
    const struct actor_log *log = &s->d->actor[0];
    uint32_t ended = 0, done = 0, seen = 0;
    for (uint32_t i = look_u32(&log->deeds); i-- > 0 && seen < 2;) {
        const struct deed *d = &log->deed[i];
        if (look_u32(&d->state) != DEED_ASKED || !d->closing)
            continue;
        seen++;
        ended += deed_final(d);
        done += deed_done(d);
    }
    *ret_done = done == 2;
    return ended == 2;
}

static uint32_t closing_asked(const struct scene *s) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < look_u32(&s->d->actor[0].deeds); i++)
        count += s->d->actor[0].deed[i].state == DEED_ASKED && s->d->actor[0].deed[i].closing;
    return count;
}

/* Two operations to everyone. On a busy machine somebody may be taken for dead once more. */
static bool close_run(struct scene *s) {
    bool done = false;
    for (uint32_t attempt = 1; attempt <= CLOSINGS_MAX && !done; attempt++) {
        __atomic_store_n(&s->d->closing, attempt, __ATOMIC_RELEASE);
        __atomic_store_n(&s->d->stage, STAGE_CLOSE, __ATOMIC_RELEASE);
        uint64_t end = clock_ns() + SETTLE_PERIODS * PERIOD_NS;
        while (clock_ns() < end && (closing_asked(s) < 2 * attempt || !closing_ended(s, &done)))
            turn(s);
        if (!done && !settle(s))
            return false;
    }
    return done;
}

/* The closing transfer is in all heaps. */
static void check_agreement(struct scene *s) {
    const uint64_t tag = glance(s->w, s->d->root, 0);
    for (uint32_t n = 0; n < s->d->universe; n++)
        CHECK_EQ(glance(s->w, n, 0), tag);
}

/* ---- a run ---- */

struct run {
    const char *name;
    struct tree tree;
    enum transport links;
    uint32_t kills;
    bool stops;
};

static struct limits run_limits(uint32_t nodes) {
    return (struct limits){.nodes = nodes,
                           .roots = 1,
                           .variables = 8,
                           .events = 4,
                           .heap_bytes = HEAP_BYTES,
                           .children = nodes,
                           .window = 16,
                           .queue = 64,
                           .outstanding = OPEN_MAX,
                           .body_bytes = SMALL_BYTES,
                           .standing = 2,
                           .transfers = 6,
                           .chunk_bytes = 4096,
                           .slots = 4};
}

static struct deeds *deeds_new(const struct run *run, uint64_t seed) {
    struct deeds *d = mmap(NULL, sizeof *d, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!CHECK(d != MAP_FAILED))
        return NULL;
    d->root = run->tree.nodes;
    d->universe = d->root + 1;
    d->seed = seed;
    d->gap_ns = PERIOD_NS / 4;
    d->prim = (struct prim_config){.limits = run_limits(d->root), .tree = run->tree};
    prim_config_times(&d->prim, PERIOD_NS);
    d->actor_node[d->actor_count++] = d->root;
    uint32_t step = d->root / (ACTORS_MAX - 1) + 1;
    for (uint32_t n = 1; n < d->root && d->actor_count < ACTORS_MAX; n += step)
        d->actor_node[d->actor_count++] = n;
    return d;
}

static uint64_t last_root_kill(const struct scene *s, uint64_t before) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < LIVES_MAX; i++) {
        uint64_t at = s->w->killed_ns[s->d->root][i];
        last = at < before && at > last ? at : last;
    }
    return last;
}

/* Without stops this takes a machine so busy that somebody was silent for too long. */
static uint32_t tell_fenced(const struct scene *s) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < s->d->universe; n++)
        for (uint32_t i = 0; i < s->d->node[n].stays; i++) {
            uint64_t at = s->d->node[n].stay[i].fenced_ns;
            if (at != 0 && count++ < FENCED_TOLD && !s->w->stops)
                printf("# fenced: node %u, %.2f s after the root was killed\n", n,
                       (double)(at - last_root_kill(s, at)) / 1e9);
        }
    return count;
}

static void tell(const struct run *run, const struct scene *s, const struct inquest *q,
                 uint64_t took_ns) {
    uint32_t fenced = tell_fenced(s);
    printf("## %s, %s: %u kills in %.0f s (root %u, inner %u, leaf %u; %u of them askers), "
           "%u stops, %u fenced\n",
           run->name, run->links == TRANSPORT_TCP ? "TCP" : "Unix sockets",
           s->roots + s->inners + s->leaves, (double)took_ns / 1e9, s->roots, s->inners, s->leaves,
           s->asking, s->stopped, fenced);
    printf("## %u operations: %u done, %u false, %u failed, %u refused, %u lost by fencing, %u "
           "with their node; %u unknown for a while; the longest took %.1f periods\n",
           q->asked, q->outcome[OUTCOME_DONE], q->outcome[OUTCOME_FALSE],
           q->outcome[OUTCOME_FAILED], q->outcome[OUTCOME_REFUSED], q->outcome[OUTCOME_LOST],
           q->killed, q->unknown, (double)q->longest_ns / (double)PERIOD_NS);
    printf("# %" PRIu64 " polls, %" PRIu64 " changes seen, %" PRIu64 " looks after done, %" PRIu64
           " applied; %" PRIu64 " charges dismissed, %u doubts left, %" PRIu64 " dropped\n",
           s->w->polls, s->w->sightings, s->w->done_checks, q->applied, s->w->dismissed,
           s->w->doubt_count, s->w->doubts_dropped);
    printf("# by moment:");
    for (int i = 0; i < AIMS; i++)
        printf(" %s %u%s", aim_names[i], s->by_aim[i], i + 1 < AIMS ? "," : "\n");
    fflush(stdout);
}

static void play(const struct run *run, struct scene *s) {
    uint64_t begin = clock_ns();
    s->root_lives = 1;
    s->w->stops = run->stops;
    s->started = NO_NODE;
    bool up = settle(s);
    __atomic_store_n(&s->d->stage, STAGE_STREAM, __ATOMIC_RELEASE);
    s->kills_left = run->kills;
    take_aim(s);
    while (up && s->kills_left > 0 && s->w->complaints < COMPLAINTS_MAX)
        turn(s);
    s->kills_left = 0;
    flow_on(s, run->kills);
    __atomic_store_n(&s->d->stage, STAGE_QUIET, __ATOMIC_RELEASE);
    bool settled = CHECK(up) && CHECK(settle(s));
    if (settled && CHECK(close_run(s)))
        check_agreement(s);
    else
        for (uint32_t n = 0; n < s->d->universe; n++)
            describe_node(s, n);
    witness_poll(s->w);
    struct inquest q;
    inquest_hold(s->w, &q);
    tell(run, s, &q, clock_ns() - begin);
    CHECK(q.outcome[OUTCOME_DONE] > run->kills);
    CHECK_EQ(s->w->complaints, 0);
}

static uint64_t number_from(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

static void run(const struct run *run) {
    uint64_t seed = number_from("STORM_SEED", clock_ns() % 1000000);
    int error = 0;
    printf("# %s: STORM_SEED=%" PRIu64 "\n", run->name, seed);
    fflush(stdout);
    keep_state_in_memory();
    struct deeds *d = deeds_new(run, seed);
    struct witness *w = calloc(1, sizeof *w);
    struct scene s = {.d = d, .w = w};
    random_init(&s.random, seed);
    if (d == NULL || !CHECK(w != NULL))
        return;
    w->d = d;
    struct crew_config config = {.prim = d->prim,
                                 .links = run->links,
                                 .keep_root = true,
                                 .daemon = actor_new,
                                 .observe = actor_observe,
                                 .context = d};
    d->crew = crew_new(&config, &error);
    if (CHECK(d->crew != NULL) && CHECK_EQ(crew_start_all(d->crew), 0))
        play(run, &s);
    crew_free(d->crew);
    free(w);
    munmap(d, sizeof *d);
}

static uint32_t kills(uint32_t part, uint32_t of) {
    return (uint32_t)(number_from("STORM_KILLS", KILLS) * part / of);
}

static void test_a_tree_of_64_over_tcp(void) {
    run(&(struct run){"64 nodes, 4-ary", {SHAPE_KARY, 4, 64}, TRANSPORT_TCP, kills(1, 2), false});
}

static void test_a_binomial_tree_of_64_over_unix_sockets(void) {
    run(&(struct run){
        "64 nodes, binomial", {SHAPE_BINOMIAL, 0, 64}, TRANSPORT_UNIX, kills(1, 2), false});
}

/* Here almost every kill hits the path of almost every operation. */
static void test_a_small_tree(void) {
    run(&(struct run){"7 nodes, binary", {SHAPE_KARY, 2, 7}, TRANSPORT_TCP, kills(1, 5), false});
}

static void test_nodes_are_stopped_as_well(void) {
    run(&(struct run){"20 nodes, 3-ary", {SHAPE_KARY, 3, 20}, TRANSPORT_UNIX, kills(1, 5), true});
}

int main(void) {
    TEST(test_a_tree_of_64_over_tcp);
    TEST(test_a_binomial_tree_of_64_over_unix_sockets);
    TEST(test_a_small_tree);
    TEST(test_nodes_are_stopped_as_well);
    return tap_finish();
}
