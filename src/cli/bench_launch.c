/* SPDX-License-Identifier: MIT */
/* storm bench launch: the time of `storm run`, whole, as the user who types it feels it.
 *
 * For each size a cluster of its own is brought up. Floor, storm and peers take turns, so that
 * whatever else the machine has to do meets all of them alike; figures are ratios to the floor of
 * the same minute. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "base/units.h"
#include "cli/bench.h"
#include "cli/bench_image.h"
#include "os/companion.h"
#include "cli/complain.h"
#include "cli/peers.h"
#include "cli/plot.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "cli/tempcluster.h"
#include "cli/terminal.h"
#include "os/floor.h"

enum { NODES_MAX = 4096, RUNS_MAX = 1000, WARM_RUNS = 2 };

enum contender { FLOOR, STORM, HYDRA, SLURM, CONTENDERS };

static const struct contender_info {
    const char *name;  /* in JSON */
    const char *title; /* in the table */
} contenders[CONTENDERS] = {
    [FLOOR] = {"floor", "floor"},
    [STORM] = {"storm", "storm run"},
    [HYDRA] = {"hydra", "mpiexec.hydra (fork)"},
    [SLURM] = {"slurm", "srun"},
};

struct launch_settings {
    struct number_list nodes;
    uint64_t runs;
    const char *launchers, *svg, *command, *image, *tree, *load, *timeline;
    uint64_t quantum_ns;
    struct number_list sizes;
    bool json, peers, links;
    /* found out */
    char self[PATH_MAX], nop[PATH_MAX];
    bool hydra;
    uint64_t slurm_nodes;
};

/* One size. */
struct launch_row {
    uint32_t nodes;
    bool takes_part[CONTENDERS];
    uint64_t *ns[CONTENDERS];
    struct stats stats[CONTENDERS];
};

/* ---- peers ---- */

static void find_peers(struct launch_settings *s) {
    const char *hydra[] = {"mpiexec.hydra", "-launcher", "fork", "-n", "1", s->nop, NULL};
    s->hydra = peers_runs_well(hydra, NULL, 0);
    s->slurm_nodes = peers_slurm_nodes();
    if (!s->hydra)
        fputs("mpiexec.hydra does not run here; package mpich has it\n", stderr);
    if (s->slurm_nodes == 0)
        fputs("no SLURM runs here\n", stderr);
}

static int run_peer(const struct launch_settings *s, enum contender who, uint32_t nodes,
                    uint64_t *ret_ns) {
    char count[16];
    const char *hydra[] = {"mpiexec.hydra", "-launcher", "fork", "-n", count, s->nop, NULL};
    const char *slurm[] = {"srun", "-Q", "-N", count, s->nop, NULL};
    snprintf(count, sizeof count, "%" PRIu32, nodes);
    struct errand e = {.argv = who == HYDRA ? hydra : slurm};
    int r = errand_run(&e);
    if (tempcluster_interrupted())
        return -EINTR;
    if (r == 0 && e.status != 0)
        r = -EPROTO;
    if (r < 0)
        complain("bench", "%s does not run %" PRIu32 " processes; it is left out", e.argv[0],
                 nodes);
    else if (who == SLURM)
        peers_slurm_settle(s->slurm_nodes);
    *ret_ns = e.ns;
    return r;
}

/* ---- measuring ---- */

/* Twice, and the second counts: the floor is the least that it can take, with warm caches. */
static int run_floor(const struct launch_settings *s, uint32_t nodes, uint64_t *ret_ns) {
    struct floor_config c = {.program = s->nop, .processes = nodes};
    int r = floor_run(&c, ret_ns);
    if (r == 0)
        r = floor_run(&c, ret_ns);
    if (r < 0)
        complain("bench", "%" PRIu32 " bare processes: %s", nodes, strerror(-r));
    return r;
}

static int run_storm(const struct launch_settings *s, const struct tempcluster *t, uint32_t nodes,
                     uint64_t *ret_ns) {
    char count[16];
    const char *args[] = {"run", "-N", count, s->nop, NULL};
    snprintf(count, sizeof count, "%" PRIu32, nodes);
    return tempcluster_run(t, args, NULL, 0, ret_ns);
}

/* One of each, in turn. A peer that fails takes no further part. */
static int run_round(const struct launch_settings *s, const struct tempcluster *t,
                     struct launch_row *row, int64_t round) {
    for (int who = 0; who < CONTENDERS; who++) {
        uint64_t ns;
        if (!row->takes_part[who])
            continue;
        int r = who == FLOOR   ? run_floor(s, row->nodes, &ns)
                : who == STORM ? run_storm(s, t, row->nodes, &ns)
                               : run_peer(s, (enum contender)who, row->nodes, &ns);
        if (r < 0 && (who <= STORM || r == -EINTR))
            return r;
        if (r < 0)
            row->takes_part[who] = false;
        else if (round >= 0)
            row->ns[who][round] = ns;
    }
    return 0;
}

static void evaluate(const struct launch_settings *s, struct launch_row *row) {
    for (int who = 0; who < CONTENDERS; who++)
        if (row->takes_part[who]) {
            sort_u64(row->ns[who], s->runs);
            row->stats[who] = stats_of(row->ns[who], (uint32_t)s->runs);
        }
}

static int measure_row(const struct launch_settings *s, struct launch_row *row) {
    struct tempcluster t;
    char words[64];
    uint64_t *memory = calloc(CONTENDERS * s->runs, sizeof *memory);
    if (memory == NULL)
        return -ENOMEM;
    for (int who = 0; who < CONTENDERS; who++)
        row->ns[who] = memory + who * s->runs;
    snprintf(words, sizeof words, "launching on %" PRIu32 " nodes ...", row->nodes);
    terminal_progress(words);
    const char *const launchers[] = {"--launchers", s->launchers, NULL};
    int r = tempcluster_up(&t, s->command, row->nodes, launchers);
    if (r == 0) {
        for (int64_t i = -WARM_RUNS; i < (int64_t)s->runs && r == 0; i++)
            r = run_round(s, &t, row, i);
        tempcluster_down(&t);
    }
    terminal_progress(NULL);
    if (r == 0)
        evaluate(s, row);
    free(memory);
    return r;
}

/* ---- what is shown ---- */

static void print_row(const struct launch_row *row) {
    for (int who = 0; who < CONTENDERS; who++) {
        char median[UNITS_TEXT_MAX], spread[UNITS_TEXT_MAX];
        const struct stats *st = &row->stats[who];
        if (!row->takes_part[who])
            continue;
        uint64_t x100 = st->median * 100 / row->stats[FLOOR].median;
        units_format_duration(st->median, median, sizeof median);
        units_format_duration(st->ci95, spread, sizeof spread);
        printf("%7" PRIu32 "  %-22s %10s %10s", row->nodes, contenders[who].title, median, spread);
        if (who != FLOOR)
            printf(" %7" PRIu64 ".%02" PRIu64, x100 / 100, x100 % 100);
        putchar('\n');
    }
    fflush(stdout);
}

static void print_json(const struct launch_settings *s, const struct launch_row *row) {
    for (int who = 0; who < CONTENDERS; who++) {
        const struct stats *st = &row->stats[who];
        uint64_t floor = row->stats[FLOOR].median;
        if (!row->takes_part[who])
            continue;
        printf("{\"bench\":\"launch\",\"case\":\"%s\",\"nodes\":%" PRIu32 ",\"runs\":%" PRIu64,
               contenders[who].name, row->nodes, s->runs);
        if (who == STORM)
            printf(",\"launchers\":\"%s\"", s->launchers);
        report_json_ms("median_ms", st->median, stdout);
        report_json_ms("ci95_ms", st->ci95, stdout);
        report_json_ms("floor_ms", floor, stdout);
        printf(",\"ratio\":%" PRIu64 ".%02" PRIu64 "}\n", st->median / floor,
               st->median * 100 / floor % 100);
    }
    fflush(stdout);
}

static int write_plot(const struct launch_settings *s, const struct launch_row *rows) {
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct plot){.title = "Launch of a program that does nothing",
                       .subtitle = "the whole command, from start to prompt; one process a node, "
                                   "all nodes on this machine",
                       .x_words = "nodes",
                       .y_words = "time",
                       .label = plot_label_time};
    for (int who = 0; who < CONTENDERS; who++) {
        struct plot_series *line = plot_add(p, (uint32_t)who, who == FLOOR);
        ASSERT(line != NULL);
        snprintf(line->name, sizeof line->name, "%s", contenders[who].title);
        for (uint32_t i = 0; i < s->nodes.count; i++)
            if (rows[i].takes_part[who])
                plot_point(line, rows[i].nodes, rows[i].stats[who].median);
        if (line->count == 0)
            p->count--;
    }
    FILE *out = fopen(s->svg, "we");
    int r = out == NULL ? -errno : plot_write(p, out);
    if (out != NULL && fclose(out) != 0 && r == 0)
        r = -EIO;
    free(p);
    if (r < 0)
        complain("bench", "%s: %s", s->svg, strerror(-r));
    return r;
}

static int run_all(const struct launch_settings *s) {
    struct launch_row *rows = calloc(s->nodes.count, sizeof *rows);
    int r = rows == NULL ? -ENOMEM : 0;
    if (!s->json)
        printf("launch of a program that does nothing, one process a node, medians of %" PRIu64
               " runs\n\n%7s  %-22s %10s %10s %10s\n",
               s->runs, "nodes", "", "median", "ci95", "x floor");
    for (uint32_t i = 0; i < s->nodes.count && r == 0; i++) {
        rows[i] = (struct launch_row){.nodes = (uint32_t)s->nodes.at[i]};
        rows[i].takes_part[FLOOR] = rows[i].takes_part[STORM] = true;
        rows[i].takes_part[HYDRA] = s->hydra;
        rows[i].takes_part[SLURM] = s->slurm_nodes >= rows[i].nodes;
        r = measure_row(s, &rows[i]);
        if (r == 0 && s->json)
            print_json(s, &rows[i]);
        else if (r == 0)
            print_row(&rows[i]);
    }
    if (r == 0 && !s->json)
        puts("\nfloor: as many processes started and reaped by two threads of a bare program.");
    if (r == 0 && s->svg != NULL)
        r = write_plot(s, rows);
    free(rows);
    return r;
}

/* ---- the command line ---- */

static int check(struct launch_settings *s) {
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.at[i] < 1 || s->nodes.at[i] > NODES_MAX)
            return complain("bench", "--nodes %" PRIu64 ": give 1 to %d", s->nodes.at[i],
                            NODES_MAX);
    if (s->runs < 1 || s->runs > RUNS_MAX)
        return complain("bench", "--runs %" PRIu64 ": give 1 to %d", s->runs, RUNS_MAX);
    if (strcmp(s->launchers, "node") != 0 && strcmp(s->launchers, "process") != 0)
        return complain("bench", "--launchers \"%s\": give node or process", s->launchers);
    if (s->image != NULL && !bench_sizes(s->image, &s->sizes))
        return complain("bench", "--image %s: sizes such as 4MB,12MB", s->image);
    if (s->image == NULL && s->tree != NULL)
        return complain("bench", "--tree: the way of what is sent; add --image");
    if (s->image != NULL && s->load == NULL && s->svg != NULL)
        return complain("bench", "--svg: with --image there is a plot only of --load");
    if (s->load != NULL && strcmp(s->load, "cpu") != 0 && strcmp(s->load, "network") != 0)
        return complain("bench", "--load \"%s\": give cpu or network", s->load);
    if (s->timeline != NULL && (s->image == NULL || s->load != NULL || s->peers))
        return complain("bench", "--timeline goes with --image, and not with --load or --peers");
    if (s->quantum_ns > 0 && s->load == NULL)
        return complain("bench", "--quantum goes with --load: turns with whom?");
    if (s->links && (s->image == NULL || s->load != NULL || s->timeline != NULL))
        return complain("bench", "--links goes with --image alone");
    if (s->load != NULL && (s->image == NULL || s->peers))
        return complain("bench", "--load goes with --image, and not with --peers");
    return STATUS_OK;
}

static int run_image(const struct launch_settings *s) {
    struct image_settings i = {.nodes = s->nodes,
                               .sizes = s->sizes,
                               .runs = s->runs,
                               .tree = s->tree,
                               .launchers = s->launchers,
                               .command = s->command,
                               .nop = s->nop,
                               .load = s->load,
                               .quantum_ns = s->quantum_ns,
                               .self = s->self,
                               .svg = s->svg,
                               .timeline = s->timeline,
                               .peers = s->peers,
                               .links = s->links,
                               .json = s->json};
    int r = s->timeline != NULL ? bench_timeline(&i)
            : s->load != NULL   ? bench_loaded(&i)
                                : bench_image(&i);
    return r < 0 ? STATUS_FAILED : STATUS_OK;
}

int bench_launch(int argc, char **argv) {
    struct launch_settings s = {.launchers = "node", .runs = 15, .command = s.self};
    options_list("1,16,64", &s.nodes);
    const struct option table[] = {
        {"nodes", OPTION_LIST, &s.nodes, "LIST", "1,64 or doubling 4..64 (default 1,16,64)"},
        {"runs", OPTION_NUMBER, &s.runs, "R", "of each (default 15)"},
        {"launchers", OPTION_TEXT, &s.launchers, "WHICH", "one a node (default), or one a process"},
        {"image", OPTION_TEXT, &s.image, "LIST", "sizes of a program that is sent first: 12MB"},
        {"tree", OPTION_TEXT, &s.tree, "SHAPE", "--image: by which way, as for storm run"},
        {"load", OPTION_TEXT, &s.load, "KIND",
         "--image: nodes of two processors, idle, and one of them busy: cpu or network"},
        {"quantum", OPTION_DURATION, &s.quantum_ns, "TIME",
         "--load: both are busy, under the policy gang: launches in turns of so long"},
        {"timeline", OPTION_TEXT, &s.timeline, "FILE",
         "--image: draw the stages of one launch on the last of --nodes, and nothing else"},
        {"peers", OPTION_FLAG, &s.peers, NULL, "beside MPICH's Hydra and SLURM, where they run"},
        {"links", OPTION_FLAG, &s.links, NULL, "--image: also over TCP, open and sealed"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"svg", OPTION_TEXT, &s.svg, "FILE", "write a plot"},
        {"command", OPTION_TEXT, &s.command, "PATH", "another storm command (default: this one)"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts("usage: storm bench launch [OPTIONS]\n"
             "\n"
             "How long `storm run -N n` takes with a program that does nothing, from the start of\n"
             "the command to its end, on temporary clusters of n nodes on this machine.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("bench", "what is \"%s\" for? see: storm bench launch --help", argv[1]);
    int status = check(&s);
    if (status != STATUS_OK)
        return status;
    if (companion_self(s.self, sizeof s.self) < 0 ||
        companion_find("storm-nop", s.nop, sizeof s.nop) < 0) {
        complain("bench", "storm-nop is missing; install storm again");
        return STATUS_FAILED;
    }
    if (s.image != NULL)
        return run_image(&s);
    if (s.peers)
        find_peers(&s);
    return run_all(&s) < 0 ? STATUS_FAILED : STATUS_OK;
}
