/* SPDX-License-Identifier: MIT */
/* storm bench launch --image: the time of `storm run --copy` with a program of a given size that does nothing.
 *
 * Cold: other bytes every time, so that all of it goes to all nodes before it runs. Cached: the same program again, which
 * the nodes have and this machine has looked over. Beside both the same launch without any file. The floor of the
 * first is to write as many files and to execute them, of the others to start as many processes. */
#include "cli/bench_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/cargo.h"
#include "cli/complain.h"
#include "cli/peers.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "cli/terminal.h"
#include "os/floor.h"

/* Digests of a file that was changed less than two seconds ago are not kept. */
enum { RIPE_US = 2100000, WARM_RUNS = 2 };

/* What was written is taken away after each run; the system is busy with that for a moment. */
enum { SETTLE_US = 500000 };

/* Those that write much come last, and all of these begin alike: as many files are written and removed before. What was there
 * before decides how long the next takes, if only because a virtual machine must get the memory from its host. */
enum contender { STARTS, PLAIN, CACHED, WRITES, COLD, TCP, TLS, SLURM, CONTENDERS };

static const struct contender_info {
    const char *name;  /* in JSON */
    const char *title; /* in the table */
    enum contender floor;
} contenders[CONTENDERS] = {
    [STARTS] = {"floor", "floor, started", STARTS},
    [WRITES] = {"floor-image", "floor, written and started", WRITES},
    [PLAIN] = {"storm", "storm run", STARTS},
    [COLD] = {"cold", "storm run --copy, cold", WRITES},
    [CACHED] = {"cached", "storm run --copy, cached", STARTS},
    [TCP] = {"cold-tcp", "the same, links by TCP", WRITES},
    [TLS] = {"cold-tls", "the same, links sealed", WRITES},
    [SLURM] = {"slurm", "srun --bcast", WRITES},
};

/* Clusters of one size: the usual, and those with other links. */
struct fleet {
    struct cargo usual, tcp, tls;
};

struct image_row {
    uint32_t nodes;
    uint64_t bytes;
    uint64_t *ns[CONTENDERS]; /* NULL: takes no part */
    struct stats stats[CONTENDERS];
};

/* ---- measuring ---- */

static int run_cold(const struct image_settings *s, struct cargo *c, uint64_t *ret_ns) {
    int r = cargo_launch(c, "fresh", s->nop, s->tree, ret_ns);
    cargo_clear_cache(c, "fresh");
    return r;
}

/* A folder as its destination gives each node a file of its own. */
static int run_slurm(struct cargo *c, uint64_t nodes_up, uint64_t *ret_ns) {
    char count[16], path[CARGO_PATH_MAX], to[CARGO_PATH_MAX];
    const char *argv[] = {"srun", "-Q", "-N", count, to, "--send-libs=no", path, NULL};
    snprintf(count, sizeof count, "%" PRIu32, c->nodes);
    snprintf(to, sizeof to, "--bcast=%s/", c->floor);
    cargo_path(c, "fresh", path);
    struct errand e = {.argv = argv};
    int r = errand_run(&e);
    if (tempcluster_interrupted())
        return -EINTR;
    if (r < 0 || e.status != 0) {
        complain("bench", "srun --bcast does not run on %" PRIu32 " nodes", c->nodes);
        return r < 0 ? r : -EPROTO;
    }
    peers_slurm_settle(nodes_up);
    cargo_clear_floor(c);
    *ret_ns = e.ns;
    return 0;
}

static int run_one(const struct image_settings *s, struct fleet *f, const struct image_row *row,
                   enum contender who, uint64_t *ret_ns) {
    struct cargo *c = &f->usual;
    struct floor_config starts = {.program = s->nop, .processes = row->nodes};
    switch (who) {
    case STARTS:
        return floor_run(&starts, ret_ns);
    case WRITES:
        return cargo_floor(c, "known", true, ret_ns);
    case COLD:
        return run_cold(s, c, ret_ns);
    case TCP:
        return run_cold(s, &f->tcp, ret_ns);
    case TLS:
        return run_cold(s, &f->tls, ret_ns);
    case SLURM: /* what was cold a moment ago: nothing of it is known there */
        return run_slurm(c, s->slurm_nodes, ret_ns);
    default:
        return cargo_launch(c, who == CACHED ? "known" : NULL, s->nop, s->tree, ret_ns);
    }
}

/* Of other bytes each time; then as many files are written and removed as before all others. */
static int begin_alike(const struct image_settings *s, struct fleet *f, const struct image_row *row,
                       enum contender who) {
    struct cargo *c = who == TCP ? &f->tcp : who == TLS ? &f->tls : &f->usual;
    uint64_t ns;
    int r = who == WRITES || who == SLURM ? 0 : cargo_make(c, "fresh", row->bytes, s->nop);
    return r == 0 ? cargo_floor(&f->usual, "known", false, &ns) : r;
}

static int measure_row(const struct image_settings *s, struct fleet *f, struct image_row *row) {
    struct cargo *c = &f->usual;
    char words[80], size[UNITS_TEXT_MAX];
    units_format_size(row->bytes, size, sizeof size);
    snprintf(words, sizeof words, "launching %s on %" PRIu32 " nodes ...", size, row->nodes);
    terminal_progress(words);
    int r = cargo_make(c, "known", row->bytes, s->nop);
    if (r == 0)
        usleep(RIPE_US);
    for (int64_t i = -WARM_RUNS; i < (int64_t)s->runs && r == 0; i++)
        for (int who = 0; who < CONTENDERS && r == 0; who++) {
            uint64_t ns;
            if (row->ns[who] == NULL)
                continue;
            if (who == STARTS)
                usleep(SETTLE_US);
            if (who >= WRITES)
                r = begin_alike(s, f, row, (enum contender)who);
            if (r == 0)
                r = run_one(s, f, row, (enum contender)who, &ns);
            if (r == 0 && i >= 0)
                row->ns[who][i] = ns;
        }
    cargo_clear_cache(c, "known");
    terminal_progress(NULL);
    for (int who = 0; who < CONTENDERS && r == 0; who++)
        if (row->ns[who] != NULL) {
            sort_u64(row->ns[who], s->runs);
            row->stats[who] = stats_of(row->ns[who], (uint32_t)s->runs);
        }
    return r;
}

/* ---- what is shown ---- */

static uint64_t x100(const struct image_row *row, enum contender who, enum contender of) {
    return row->stats[who].median * 100 / row->stats[of].median;
}

/* What sealing costs. */
static void print_seal(const struct image_row *row) {
    if (row->ns[TLS] == NULL)
        return;
    uint64_t ratio = x100(row, TLS, TCP);
    printf("%15s  sealed against open TCP: %" PRIu64 ".%02" PRIu64 "\n", "", ratio / 100,
           ratio % 100);
}

static void print_row(const struct image_row *row) {
    char size[UNITS_TEXT_MAX];
    units_format_size(row->bytes, size, sizeof size);
    for (int who = 0; who < CONTENDERS; who++) {
        char median[UNITS_TEXT_MAX], spread[UNITS_TEXT_MAX];
        if (row->ns[who] == NULL)
            continue;
        uint64_t ratio = x100(row, who, contenders[who].floor);
        units_format_duration(row->stats[who].median, median, sizeof median);
        units_format_duration(row->stats[who].ci95, spread, sizeof spread);
        printf("%5" PRIu32 " %9s  %-27s %9s %9s %5" PRIu64 ".%02" PRIu64, row->nodes, size,
               contenders[who].title, median, spread, ratio / 100, ratio % 100);
        ratio = x100(row, who, PLAIN);
        if (who > PLAIN)
            printf(" %5" PRIu64 ".%02" PRIu64, ratio / 100, ratio % 100);
        putchar('\n');
    }
    print_seal(row);
    fflush(stdout);
}

static void print_json(const struct image_settings *s, const struct image_row *row) {
    for (int who = 0; who < CONTENDERS; who++) {
        if (row->ns[who] == NULL)
            continue;
        uint64_t ratio = x100(row, who, contenders[who].floor), plain = x100(row, who, PLAIN);
        printf("{\"bench\":\"launch\",\"case\":\"%s\",\"nodes\":%" PRIu32 ",\"image\":%" PRIu64
               ",\"runs\":%" PRIu64,
               contenders[who].name, row->nodes, row->bytes, s->runs);
        report_json_ms("median_ms", row->stats[who].median, stdout);
        report_json_ms("ci95_ms", row->stats[who].ci95, stdout);
        report_json_ms("floor_ms", row->stats[contenders[who].floor].median, stdout);
        printf(",\"ratio\":%" PRIu64 ".%02" PRIu64 ",\"plain_ratio\":%" PRIu64 ".%02" PRIu64 "}\n",
               ratio / 100, ratio % 100, plain / 100, plain % 100);
    }
    fflush(stdout);
}

static int fleet_up(const struct image_settings *s, struct fleet *f, uint32_t nodes) {
    const char *const usual[] = {"--launchers", s->launchers, NULL};
    const char *const tcp[] = {"--launchers", s->launchers, "--links", "tcp", NULL};
    const char *const tls[] = {"--launchers", s->launchers, "--links", "tls", NULL};
    int r = cargo_up(&f->usual, s->command, nodes, true, usual);
    if (r < 0 || !s->links)
        return r;
    r = cargo_up(&f->tcp, s->command, nodes, true, tcp);
    if (r == 0) {
        r = cargo_up(&f->tls, s->command, nodes, true, tls);
        if (r < 0)
            cargo_down(&f->tcp);
    }
    if (r < 0)
        cargo_down(&f->usual);
    return r;
}

static void fleet_down(const struct image_settings *s, struct fleet *f) {
    if (s->links) {
        cargo_down(&f->tls);
        cargo_down(&f->tcp);
    }
    cargo_down(&f->usual);
}

static bool takes_part(const struct image_settings *s, enum contender who, uint32_t nodes) {
    return who == SLURM ? s->slurm_nodes >= nodes : (who != TCP && who != TLS) || s->links;
}

static int measure_nodes(const struct image_settings *s, uint32_t nodes, uint64_t *memory) {
    struct fleet f;
    int r = fleet_up(s, &f, nodes);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < s->sizes.count && r == 0; i++) {
        struct image_row row = {.nodes = nodes, .bytes = s->sizes.at[i]};
        for (int who = 0; who < CONTENDERS; who++)
            row.ns[who] = takes_part(s, (enum contender)who, nodes) ? memory + who * s->runs : NULL;
        r = measure_row(s, &f, &row);
        if (r == 0 && s->json)
            print_json(s, &row);
        else if (r == 0)
            print_row(&row);
    }
    fleet_down(s, &f);
    return r;
}

int bench_image(struct image_settings *s) {
    s->slurm_nodes = s->peers ? peers_slurm_nodes() : 0;
    if (s->peers && s->slurm_nodes == 0)
        fputs("no SLURM runs here\n", stderr);
    uint64_t *memory = calloc(CONTENDERS * s->runs, sizeof *memory);
    int r = memory == NULL ? -ENOMEM : 0;
    if (!s->json)
        printf("launch of a program that does nothing, one process a node, medians of %" PRIu64
               " runs\n\n%5s %9s  %-27s %9s %9s %8s %8s\n",
               s->runs, "nodes", "size", "", "median", "ci95", "x floor", "x run");
    for (uint32_t i = 0; i < s->nodes.count && r == 0; i++)
        r = measure_nodes(s, (uint32_t)s->nodes.at[i], memory);
    if (r == 0 && !s->json)
        puts("\nfloor: as many processes started, or files written and executed, by two threads of "
             "a bare program.");
    free(memory);
    return r;
}
