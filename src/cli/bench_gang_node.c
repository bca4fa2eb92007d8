/* SPDX-License-Identifier: MIT */
/* storm bench gang-node: two gangs of one process a processor on one node, switched by its launcher, against the same one
 * after the other.
 *
 * There is no cluster: we play the manager (os/rehearsal.h). The processes note when they did not run; from that and from
 * when each strobe was sent follows how long it takes until a whole gang runs, and until the other is held. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/gangpace.h"
#include "cli/options.h"
#include "cli/stats.h"
#include "os/companion.h"
#include "os/prompt.h"
#include "os/rehearsal.h"

enum { GANGS = 2, PES_MAX = 64, STROBES_MAX = 1 << 16, RUNS_MAX = 100 };

#define CYCLE_US        ((uint64_t)50000)
#define CALIBRATE_UNITS ((uint64_t)200000)

struct gang_settings {
    struct number_list quanta_us;
    uint64_t pes, seconds, runs;
    const char *confine_text, *kernel_text;
    enum gangkernel kernel;
    bool steady, strobes;
    enum confine confine;
    char self[PATH_MAX], launcher[PATH_MAX];
};

struct strobe {
    uint64_t at;
    uint8_t slot;
};

struct gang_bench {
    const struct gang_settings *s;
    struct rehearsal r;
    struct gangnotes notes[GANGS];
    uint64_t units;
    struct strobe *strobes;
    uint32_t strobe_count;
    uint64_t *incoming, *outgoing; /* of each strobe */
    uint32_t incoming_count, outgoing_count;
};

/* ---- the machine ---- */

/* What others have had of our processors is nobody's slowdown. */
struct watch {
    uint64_t from, stolen;
};

static struct watch watch_begin(void) {
    return (struct watch){.stolen = machine_stolen_ns(), .from = clock_ns()};
}

/* Without what was stolen. */
static uint64_t watch_end(const struct watch *w, uint64_t at, uint64_t pes) {
    uint64_t stolen = (machine_stolen_ns() - w->stolen) / pes;
    return at - w->from > stolen ? at - w->from - stolen : 1;
}

/* ---- one gang ---- */

static struct gangwork *work_of(const struct gang_bench *b, uint32_t gang, uint64_t rank) {
    return gangnotes_of(&b->notes[gang], (uint32_t)rank);
}

static int launch(struct gang_bench *b, uint32_t gang, uint64_t units) {
    char text[PATH_MAX + 256];
    gangnotes_clear(&b->notes[gang]);
    int len = snprintf(text, sizeof text, "storm%cbench%cgang-work%c%s%c%s%c%" PRIu64, 0, 0, 0,
                       b->notes[gang].path, 0, gangkernel_name(b->s->kernel), 0, units) +
              1;
    return rehearsal_launch(&b->r, gang + 1, 1U << gang, (uint32_t)b->s->pes, b->s->self,
                            bytes_of(text, (size_t)len));
}

static const struct rehearsal_gang *gang_of(const struct gang_bench *b, uint32_t gang) {
    return &b->r.gangs[gang + 1];
}

static bool well(const struct gang_bench *b, uint32_t gang) {
    const struct rehearsal_gang *g = gang_of(b, gang);
    if (g->ended && g->end.cause == CAUSE_EXITED && g->end.value == 0)
        return true;
    complain("bench", "a gang did not end well: %s", g->text);
    return false;
}

/* How long it takes by itself; 0 if it failed. */
static uint64_t alone(struct gang_bench *b, uint32_t gang, uint64_t units) {
    rehearsal_turn(&b->r, GANG_ALL, 0, false);
    struct watch w = watch_begin();
    launch(b, gang, units);
    while (!gang_of(b, gang)->ended && b->r.link != 0)
        rehearsal_listen(&b->r, 1000);
    return well(b, gang) ? watch_end(&w, gang_of(b, gang)->ended_at, b->s->pes) : 0;
}

/* ---- both, in turns ---- */

/* Until then, or until news of the gangs have come. */
static void wait_or_hear(struct gang_bench *b, uint64_t at) {
    for (uint64_t now; (now = clock_ns()) < at && !gang_of(b, 0)->ended && !gang_of(b, 1)->ended;)
        if (at - now > NS_PER_MS)
            rehearsal_listen(&b->r, (int)((at - now) / NS_PER_MS));
        else
            clock_sleep_until(at);
    rehearsal_listen(&b->r, 0);
}

static void note(struct gang_bench *b, uint64_t at, uint8_t slot) {
    if (b->strobe_count < STROBES_MAX)
        b->strobes[b->strobe_count++] = (struct strobe){.at = at, .slot = slot};
}

static void strobe(struct gang_bench *b, uint8_t slot, uint64_t quantum_us) {
    note(b, rehearsal_turn(&b->r, slot, (uint32_t)quantum_us, false), slot);
}

/* Turns until the next strobe: as the machine manager, about twenty strobes a second. */
static uint64_t turns_of(const struct gang_bench *b, uint64_t quantum_us) {
    uint64_t turns = b->s->strobes ? 1 : CYCLE_US / quantum_us;
    return turns == 0 ? 1 : turns;
}

/* So many turns, from this slot on. Returns when the last of them is over. */
static uint64_t take_turns(struct gang_bench *b, uint64_t first, uint64_t quantum_us) {
    uint64_t turns = turns_of(b, quantum_us), quantum = quantum_us * NS_PER_US;
    uint8_t slot = (uint8_t)(first % GANGS);
    uint64_t at = rehearsal_cycle(&b->r, slot, (uint32_t)quantum_us,
                                  turns > 1 ? (1U << GANGS) - 1 : 0, false);
    for (uint64_t i = 0; i < turns; i++)
        note(b, at + i * quantum, (uint8_t)((first + i) % GANGS));
    return at + turns * quantum;
}

/* The same as the machine manager would: no strobes when only one row is left. */
static uint64_t in_turns(struct gang_bench *b, uint64_t quantum_us) {
    b->strobe_count = 0;
    struct watch w = watch_begin();
    strobe(b, 0, quantum_us);
    for (uint32_t g = 0; g < GANGS; g++)
        launch(b, g, b->units);
    uint64_t next = clock_ns(), turns = turns_of(b, quantum_us);
    for (uint64_t i = 1; b->r.link != 0; i += turns) {
        wait_or_hear(b, next);
        bool over[GANGS] = {gang_of(b, 0)->ended, gang_of(b, 1)->ended};
        if (over[0] && over[1])
            break;
        if (!over[0] && !over[1])
            next = take_turns(b, i, quantum_us);
        else
            rehearsal_turn(&b->r, GANG_ALL, 0, false);
        while ((over[0] || over[1]) && !(gang_of(b, 0)->ended && gang_of(b, 1)->ended) &&
               b->r.link != 0)
            rehearsal_listen(&b->r, 1000);
    }
    if (!well(b, 0) || !well(b, 1))
        return 0;
    uint64_t ends[GANGS] = {gang_of(b, 0)->ended_at, gang_of(b, 1)->ended_at};
    return watch_end(&w, ends[0] > ends[1] ? ends[0] : ends[1], b->s->pes);
}

/* ---- what the processes saw ---- */

/* The pause that was on when this strobe was sent; NULL if it ran. */
static const struct gangwork_gap *pause_at(const struct gangwork *w, uint64_t *from, uint64_t at,
                                           uint64_t least) {
    for (; *from < w->gaps; ++*from) {
        const struct gangwork_gap *g = &w->gap[*from];
        if (g->to >= at)
            return g->from < at && g->to - g->from >= least ? g : NULL;
    }
    return NULL;
}

/* The pause that began after it was sent. */
static const struct gangwork_gap *pause_after(const struct gangwork *w, uint64_t *from, uint64_t at,
                                              uint64_t least) {
    for (; *from < w->gaps; ++*from) {
        const struct gangwork_gap *g = &w->gap[*from];
        if (g->to > at && g->to - g->from >= least)
            return g;
    }
    return NULL;
}

/* For each strobe: until all of the one gang ran, and until nothing of the other did. */
static void look_back(struct gang_bench *b, uint64_t quantum_us) {
    uint64_t least = quantum_us * NS_PER_US / 2;
    uint64_t at[GANGS][PES_MAX] = {{0}};
    b->incoming_count = b->outgoing_count = 0;
    for (uint32_t i = 2; i + 2 < b->strobe_count; i++) {
        const struct strobe *s = &b->strobes[i];
        uint64_t in = 0, out = 0;
        bool whole = true;
        for (uint64_t pe = 0; pe < b->s->pes && whole; pe++) {
            const struct gangwork_gap *g =
                pause_at(work_of(b, s->slot, pe), &at[s->slot][pe], s->at, least);
            whole = g != NULL;
            if (whole && g->to - s->at > in)
                in = g->to - s->at;
        }
        for (uint64_t pe = 0; pe < b->s->pes && whole; pe++) {
            uint64_t seek = at[1 - s->slot][pe];
            const struct gangwork_gap *g =
                pause_after(work_of(b, 1 - s->slot, pe), &seek, s->at, least);
            whole = g != NULL;
            if (whole && g->from > s->at && g->from - s->at > out)
                out = g->from - s->at;
        }
        if (!whole)
            continue;
        b->incoming[b->incoming_count++] = in;
        b->outgoing[b->outgoing_count++] = out;
    }
    sort_u64(b->incoming, b->incoming_count);
    sort_u64(b->outgoing, b->outgoing_count);
}

static double percentile(const uint64_t *sorted, uint32_t count, uint32_t percent) {
    return count == 0 ? 0 : (double)sorted[(uint64_t)(count - 1) * percent / 100] / 1000;
}

static int compare(struct gang_bench *b, uint64_t quantum_us) {
    uint64_t slow[RUNS_MAX];
    for (uint64_t run = 0; run < b->s->runs; run++) {
        uint64_t one = alone(b, 0, b->units), two = alone(b, 1, b->units);
        uint64_t both = in_turns(b, quantum_us);
        if (one == 0 || two == 0 || both == 0)
            return STATUS_FAILED;
        uint64_t sum = one + two;
        slow[run] = both > sum ? (both - sum) * 100000 / sum : 0; /* thousandths of a percent */
        look_back(b, quantum_us);
        printf("  %6.3f s + %6.3f s, in turns %6.3f s: %+6.2f %%; strobes %" PRIu32
               "; gang runs after %.0f / %.0f / %.0f us, other held after %.0f / %.0f / %.0f us\n",
               (double)one / 1e9, (double)two / 1e9, (double)both / 1e9,
               ((double)both - (double)sum) * 100 / (double)sum, b->strobe_count,
               percentile(b->incoming, b->incoming_count, 50),
               percentile(b->incoming, b->incoming_count, 99),
               percentile(b->incoming, b->incoming_count, 100),
               percentile(b->outgoing, b->outgoing_count, 50),
               percentile(b->outgoing, b->outgoing_count, 99),
               percentile(b->outgoing, b->outgoing_count, 100));
        fflush(stdout);
    }
    sort_u64(slow, b->s->runs);
    printf("quantum %" PRIu64 " us, %s: slowdown %.2f %% (median of %" PRIu64 ")\n", quantum_us,
           b->s->kernel_text, (double)slow[b->s->runs / 2] / 1000, b->s->runs);
    return STATUS_OK;
}

/* ---- in windows ---- */

/* On a machine whose processors are taken away now and then, whole runs say little. So both gangs work without end, and
 * what they get done is compared in windows that follow each other, one with switching and one without; the better
 * windows of each kind were left alone. */
enum { WINDOWS_MAX = 4096 };
#define WINDOW_NS (40 * NS_PER_MS)

static uint64_t progress(const struct gang_bench *b) {
    uint64_t sum = 0;
    for (uint32_t g = 0; g < GANGS; g++)
        for (uint64_t pe = 0; pe < b->s->pes; pe++)
            sum += atomic_load_explicit(&work_of(b, g, pe)->units, memory_order_relaxed);
    return sum;
}

/* Units in a second. */
static uint64_t window(struct gang_bench *b, uint64_t quantum_us, bool switching, uint8_t slot) {
    uint64_t quantum = quantum_us * NS_PER_US, turns = turns_of(b, quantum_us);
    strobe(b, slot, quantum_us);
    uint64_t next = clock_ns() + quantum;
    clock_sleep_until(next);
    uint64_t from = clock_ns(), before = progress(b);
    for (uint64_t i = 1; clock_ns() - from < WINDOW_NS; i += turns) {
        next = switching ? take_turns(b, slot + i, quantum_us) : clock_ns() + turns * quantum;
        clock_sleep_until(next);
    }
    uint64_t done = progress(b) - before;
    return done * NS_PER_S / (clock_ns() - from);
}

static double in_percent(uint64_t with, uint64_t without) {
    return without == 0 ? 0 : ((double)without / (double)with - 1) * 100;
}

static int steady(struct gang_bench *b, uint64_t quantum_us) {
    static uint64_t rates[2][WINDOWS_MAX];
    uint32_t count = 0;
    for (uint32_t g = 0; g < GANGS; g++)
        launch(b, g, UINT64_MAX / 2);
    for (uint32_t i = 0; i < 50; i++) /* both are there */
        window(b, quantum_us, true, 0);
    b->strobe_count = 0;
    uint64_t until = clock_ns() + b->s->seconds * NS_PER_S;
    while (clock_ns() < until && count < WINDOWS_MAX) {
        for (uint32_t switching = 0; switching < 2; switching++)
            rates[switching][count] = window(b, quantum_us, switching == 1, count % GANGS);
        rehearsal_listen(&b->r, 0);
        count++;
    }
    for (uint32_t g = 0; g < GANGS; g++)
        rehearsal_command(&b->r, g + 1, VERB_KILL, 0);
    while (!(gang_of(b, 0)->ended && gang_of(b, 1)->ended) && b->r.link != 0)
        rehearsal_listen(&b->r, 1000);
    look_back(b, quantum_us);
    for (uint32_t switching = 0; switching < 2; switching++)
        sort_u64(rates[switching], count);
    printf(
        "quantum %5" PRIu64 " us, %s: slowdown %.2f %% (median of %" PRIu32
        " windows), %.2f %% (best tenth); gang runs after %.0f / %.0f / %.0f us (50, 90, 99 %%), "
        "other held after %.0f / %.0f / %.0f us\n",
        quantum_us, b->s->kernel_text, in_percent(rates[1][count / 2], rates[0][count / 2]), count,
        in_percent(rates[1][count - count / 10 - 1], rates[0][count - count / 10 - 1]),
        percentile(b->incoming, b->incoming_count, 50),
        percentile(b->incoming, b->incoming_count, 90),
        percentile(b->incoming, b->incoming_count, 99),
        percentile(b->outgoing, b->outgoing_count, 50),
        percentile(b->outgoing, b->outgoing_count, 90),
        percentile(b->outgoing, b->outgoing_count, 99));
    fflush(stdout);
    return b->r.link != 0 ? STATUS_OK : STATUS_FAILED;
}

/* ---- all ---- */

static int make_notes(struct gang_bench *b) {
    for (uint32_t g = 0; g < GANGS; g++) {
        char path[64];
        snprintf(path, sizeof path, "/dev/shm/storm-gang-%d-%u", (int)getpid(), g);
        int r = gangnotes_make(&b->notes[g], path, (uint32_t)b->s->pes);
        if (r < 0)
            return r;
    }
    b->strobes = calloc(STROBES_MAX, sizeof *b->strobes);
    b->incoming = calloc(STROBES_MAX, sizeof *b->incoming);
    b->outgoing = calloc(STROBES_MAX, sizeof *b->outgoing);
    return b->strobes == NULL || b->incoming == NULL || b->outgoing == NULL ? -ENOMEM : 0;
}

static int measure(struct gang_bench *b) {
    uint64_t probe = alone(b, 0, CALIBRATE_UNITS);
    if (probe == 0)
        return STATUS_FAILED;
    probe = work_of(b, 0, 0)->done - work_of(b, 0, 0)->begun;
    b->units = CALIBRATE_UNITS * (b->s->seconds * NS_PER_MS) / (probe / 1000);
    int status = STATUS_OK;
    for (uint32_t i = 0; i < b->s->quanta_us.count && status == STATUS_OK; i++)
        status =
            b->s->steady ? steady(b, b->s->quanta_us.at[i]) : compare(b, b->s->quanta_us.at[i]);
    return status;
}

static int run(const struct gang_settings *s) {
    static struct gang_bench b;
    b = (struct gang_bench){.s = s};
    int r = make_notes(&b);
    if (r < 0)
        complain("bench", "notes of the processes: %s", strerror(-r));
    if (r == 0)
        r = rehearsal_begin(&b.r, s->launcher, s->confine);
    if (r == 0) {
        prompt_set(true);
        r = measure(&b);
        prompt_set(false);
        rehearsal_end(&b.r);
    }
    for (uint32_t g = 0; g < GANGS; g++)
        gangnotes_fini(&b.notes[g]);
    free(b.strobes);
    free(b.incoming);
    free(b.outgoing);
    return r < 0 ? STATUS_FAILED : r;
}

int bench_gang_node(int argc, char **argv) {
    static struct gang_settings s;
    s = (struct gang_settings){.quanta_us = {.count = 1, .at = {1000}},
                               .pes = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
                               .seconds = 5,
                               .runs = 1,
                               .confine_text = "auto",
                               .kernel_text = "compute"};
    const struct option options[] = {
        {"quanta", OPTION_LIST, &s.quanta_us, "US,...", "microseconds of a time slice"},
        {"pes", OPTION_NUMBER, &s.pes, "N", "processes of a gang; default: processors here"},
        {"seconds", OPTION_NUMBER, &s.seconds, "N", "what a gang takes by itself; default 5"},
        {"runs", OPTION_NUMBER, &s.runs, "N", "of each quantum; default 1"},
        {"kernel", OPTION_TEXT, &s.kernel_text, "NAME", "compute (default), cache, pair or wave"},
        {"steady", OPTION_FLAG, &s.steady, NULL, "compare windows instead of whole runs"},
        {"strobes", OPTION_FLAG, &s.strobes, NULL,
         "a strobe for every turn, instead of for a cycle"},
        {"confine", OPTION_TEXT, &s.confine_text, "HOW", "auto, cgroup, namespace or none"},
        {0}};
    int count = options_parse(options, argc, argv);
    if (count == OPTIONS_HELP) {
        fputs("usage: storm bench gang-node [OPTIONS]\n\n", stdout);
        options_print(options, stdout);
        return STATUS_OK;
    }
    if (count != 0)
        return count == OPTIONS_WRONG ? STATUS_USAGE
                                      : complain("bench", "gang-node takes options only");
    if (!confine_parse(s.confine_text, &s.confine) || !gangkernel_find(s.kernel_text, &s.kernel) ||
        s.pes == 0 || s.pes > PES_MAX || s.runs == 0 || s.runs > RUNS_MAX || s.seconds == 0)
        return complain("bench", "gang-node: see storm bench gang-node --help");
    int r = companion_self(s.self, sizeof s.self);
    if (r == 0)
        r = companion_find("storm-pl", s.launcher, sizeof s.launcher);
    return r < 0 ? complain("bench", "storm-pl: %s", strerror(-r)) : run(&s);
}
