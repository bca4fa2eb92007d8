/* SPDX-License-Identifier: MIT */
/* storm bench launch --image --load: send and execute times on a loaded cluster, beside those on an idle one: section
 * 4.2.2 of the STORM paper, its figure 2.
 *
 * Every node has two processors, one of which a load job has while loaded; or both, and shares them with what is launched in
 * turns, as a gang. A launch that finds the program on the nodes is
 * what execution takes; by how much it takes longer when the program must be sent first is what sending takes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/bench_image.h"
#include "cli/cargo.h"
#include "cli/complain.h"
#include "cli/plot.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "cli/terminal.h"

/* Digests of a file that was changed less than two seconds ago are not kept. */
enum { RIPE_US = 2100000, TEXT_BYTES = 256 };

enum { IDLE, LOADED, CONDITIONS };
enum { COLD, CACHED, KINDS };

struct loaded_row {
    uint64_t bytes;
    struct stats stats[CONDITIONS][KINDS];
};

static uint64_t send_ns(const struct loaded_row *row, int condition) {
    const struct stats *s = row->stats[condition];
    return s[COLD].median > s[CACHED].median ? s[COLD].median - s[CACHED].median : 0;
}

static uint64_t x100(uint64_t value, uint64_t of) {
    return value * 100 / (of ? of : 1);
}

/* ---- measuring ---- */

static int run_one(const struct image_settings *s, struct cargo *c, uint64_t bytes, int kind,
                   uint64_t *ret_ns) {
    if (kind == CACHED)
        return cargo_launch(c, "known", s->nop, s->tree, ret_ns);
    int r = cargo_make(c, "fresh", bytes, s->nop);
    if (r == 0)
        r = cargo_launch(c, "fresh", s->nop, s->tree, ret_ns);
    cargo_clear_cache(c, "fresh");
    return r;
}

static int measure(const struct image_settings *s, struct cargo *c, uint64_t bytes,
                   struct stats ret[KINDS]) {
    uint64_t *ns = calloc(KINDS * s->runs, sizeof *ns);
    int r = ns == NULL ? -ENOMEM : cargo_make(c, "known", bytes, s->nop);
    if (r == 0)
        usleep(RIPE_US);
    for (int64_t i = -1; i < (int64_t)s->runs && r == 0; i++)
        for (int kind = 0; kind < KINDS && r == 0; kind++) {
            uint64_t took = 0;
            r = run_one(s, c, bytes, kind, &took);
            if (i >= 0)
                ns[(uint64_t)kind * s->runs + (uint64_t)i] = took;
        }
    cargo_clear_cache(c, "known");
    for (int kind = 0; kind < KINDS && r == 0; kind++) {
        sort_u64(ns + (uint64_t)kind * s->runs, s->runs);
        ret[kind] = stats_of(ns + (uint64_t)kind * s->runs, (uint32_t)s->runs);
    }
    free(ns);
    return r;
}

/* The job that keeps one processor of every node busy, by its number. */
static int begin_load(const struct image_settings *s, const struct cargo *c, char job[TEXT_BYTES]) {
    char count[16], processes[16], text[TEXT_BYTES];
    const char *args[] = {"submit",    "-N",    count,   "-n",   processes, "-o",
                          "/dev/null", s->self, "bench", "load", s->load,   NULL};
    uint64_t ns;
    snprintf(count, sizeof count, "%" PRIu32, c->nodes);
    snprintf(processes, sizeof processes, "%" PRIu32, s->quantum_ns > 0 ? 2 * c->nodes : c->nodes);
    int r = tempcluster_run(&c->cluster, args, text, sizeof text, &ns);
    if (r < 0)
        return r;
    snprintf(job, TEXT_BYTES, "%.*s", (int)strspn(text, "0123456789"), text);
    if (job[0] == '\0')
        complain("bench", "storm submit does not tell of its job");
    return job[0] == '\0' ? -EPROTO : 0;
}

static int end_load(const struct cargo *c, const char *job) {
    const char *args[] = {"kill", job, NULL};
    uint64_t ns;
    return tempcluster_run(&c->cluster, args, NULL, 0, &ns);
}

static int measure_all(const struct image_settings *s, struct cargo *c, struct loaded_row *rows) {
    int r = 0;
    char job[TEXT_BYTES] = "";
    for (int condition = 0; condition < CONDITIONS && r == 0; condition++) {
        terminal_progress(condition == LOADED ? "loaded ..." : "idle ...");
        if (condition == LOADED)
            r = begin_load(s, c, job);
        for (uint32_t i = 0; i < s->sizes.count && r == 0; i++) {
            rows[i].bytes = s->sizes.at[i];
            r = measure(s, c, rows[i].bytes, rows[i].stats[condition]);
        }
    }
    if (r == 0)
        r = end_load(c, job);
    terminal_progress(NULL);
    return r;
}

/* ---- what is shown ---- */

static void print_line(const char *words, uint64_t idle, uint64_t loaded) {
    char before[UNITS_TEXT_MAX], after[UNITS_TEXT_MAX];
    uint64_t ratio = x100(loaded, idle);
    units_format_duration(idle, before, sizeof before);
    units_format_duration(loaded, after, sizeof after);
    printf("  %-9s %10s %10s %5" PRIu64 ".%02" PRIu64 "\n", words, before, after, ratio / 100,
           ratio % 100);
}

static void print_row(const struct loaded_row *row) {
    char size[UNITS_TEXT_MAX];
    const struct stats(*st)[KINDS] = row->stats;
    units_format_size(row->bytes, size, sizeof size);
    printf("%s\n", size);
    print_line("send", send_ns(row, IDLE), send_ns(row, LOADED));
    print_line("execute", st[IDLE][CACHED].median, st[LOADED][CACHED].median);
    print_line("both", st[IDLE][COLD].median, st[LOADED][COLD].median);
}

static void print_json(const struct image_settings *s, uint32_t nodes,
                       const struct loaded_row *row) {
    const struct stats(*st)[KINDS] = row->stats;
    uint64_t ratio = x100(st[LOADED][COLD].median, st[IDLE][COLD].median);
    for (int condition = 0; condition < CONDITIONS; condition++) {
        printf("{\"bench\":\"launch\",\"case\":\"%s\",\"nodes\":%" PRIu32 ",\"image\":%" PRIu64
               ",\"runs\":%" PRIu64,
               condition == LOADED ? s->load : "idle", nodes, row->bytes, s->runs);
        if (s->quantum_ns > 0)
            report_json_ms("quantum_ms", s->quantum_ns, stdout);
        report_json_ms("median_ms", st[condition][COLD].median, stdout);
        report_json_ms("ci95_ms", st[condition][COLD].ci95, stdout);
        report_json_ms("send_ms", send_ns(row, condition), stdout);
        report_json_ms("execute_ms", st[condition][CACHED].median, stdout);
        report_json_ms("idle_ms", st[IDLE][COLD].median, stdout);
        printf(",\"ratio\":%" PRIu64 ".%02" PRIu64 "}\n", condition == LOADED ? ratio / 100 : 1,
               condition == LOADED ? ratio % 100 : 0);
    }
}

static int write_plot(const struct image_settings *s, const struct loaded_row *rows) {
    static const char *const names[CONDITIONS][KINDS] = {{"send, idle", "execute, idle"},
                                                         {"send, loaded", "execute, loaded"}};
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct plot){.title = "Launch on a loaded cluster",
                       .subtitle = s->load,
                       .x_words = "size of the program, MB",
                       .y_words = "time",
                       .label = plot_label_time};
    for (int i = 0; i < CONDITIONS * KINDS; i++) {
        int condition = i / KINDS, kind = i % KINDS;
        struct plot_series *line = plot_add(p, (uint32_t)condition, kind == CACHED);
        snprintf(line->name, sizeof line->name, "%s", names[condition][kind]);
        for (uint32_t k = 0; k < s->sizes.count; k++) {
            uint64_t mb = rows[k].bytes / MIB, sent = send_ns(&rows[k], condition);
            uint64_t ns = kind == COLD ? sent : rows[k].stats[condition][CACHED].median;
            plot_point(line, mb ? mb : 1, ns ? ns : 1);
        }
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

static int show(const struct image_settings *s, uint32_t nodes, const struct loaded_row *rows) {
    if (!s->json)
        printf("launch on %" PRIu32 " nodes of two processors, medians of %" PRIu64
               " runs\n\n  %-9s %10s %10s %8s\n",
               nodes, s->runs, "", "idle", s->load, "x idle");
    for (uint32_t i = 0; i < s->sizes.count; i++)
        if (s->json)
            print_json(s, nodes, &rows[i]);
        else
            print_row(&rows[i]);
    return s->svg != NULL ? write_plot(s, rows) : 0;
}

int bench_loaded(const struct image_settings *s) {
    char quantum[24];
    const char *const shared[] = {"--pes", "2", "--policy", "gang", "--quantum", quantum, NULL};
    const char *const split[] = {"--pes", "2", NULL};
    const char *const *more = s->quantum_ns > 0 ? shared : split;
    int r = 0;
    snprintf(quantum, sizeof quantum, "%" PRIu64 "us", s->quantum_ns / NS_PER_US);
    for (uint32_t i = 0; i < s->nodes.count && r == 0; i++) {
        struct cargo c;
        struct loaded_row rows[NUMBERS_MAX] = {0};
        r = cargo_up(&c, s->command, (uint32_t)s->nodes.at[i], true, more);
        if (r < 0)
            return r;
        r = measure_all(s, &c, rows);
        cargo_down(&c);
        if (r == 0)
            r = show(s, c.nodes, rows);
    }
    return r;
}
