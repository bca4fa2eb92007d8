/* SPDX-License-Identifier: MIT */
/* storm bench exec: how long `storm exec` takes, by hosts and shape, with files and without.
 *
 * All ways take turns: in every round each is run once, so that what disturbs one disturbs the others. Other launchers run on the
 * same hosts in the same rounds. The model is that of the launcher paper, with the time of a single host as its
 * lambda; it assumes that a host makes one connection at a time, so a way that makes several is faster than it says. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/sort.h"
#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/report.h"
#include "cli/roll.h"
#include "cli/sample.h"
#include "cli/stats.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "os/companion.h"
#include "os/errand.h"
#include "os/files.h"
#include "sim/analytic.h"

enum { RUNS_MAX = 1000, ARGS_MAX = 48 };

struct way {
    const char *name;
    const char *shape; /* NULL: another's */
    const char *fanout;
    const char *const *peer; /* its words, before hosts and command */
};

static const char *const pdsh[] = {"pdsh", "-R", "ssh", "-f", "%n", "-w", "%w", "true", NULL};
static const char *const clush[] = {"clush", "-q", "-f", "%n", "-w", "%w", "true", NULL};
static const char *const taktuk[] = {"taktuk",    "-s",   "-f", "%f",   "-c", "ssh -oBatchMode=yes",
                                     "broadcast", "exec", "[",  "true", "]",  NULL};

static const struct way ways[] = {
    {"adaptive", "adaptive", NULL, NULL}, {"flat", "flat", NULL, NULL},
    {"binomial", "binomial", NULL, NULL}, {"binary", "k-ary", "2", NULL},
    {"3-ary", "k-ary", "3", NULL},        {"4-ary", "k-ary", "4", NULL},
    {"chain", "chain", NULL, NULL},       {"pdsh", NULL, NULL, pdsh},
    {"clush", NULL, NULL, clush},         {"taktuk", NULL, NULL, taktuk}};
enum { WAYS = sizeof ways / sizeof *ways };

struct settings {
    const char *hosts, *connector, *only, *sizes_text;
    struct number_list counts, sizes;
    uint64_t runs, link_ns;
    bool peers, json, at_once;
    struct roll roll;
    bool wanted[WAYS];
    char self[PATH_MAX], link[PATH_MAX + 96];
    char folder[32], file[64], list[64]; /* of ours; what is sent; hosts, one in a line */
    uint64_t lambda_ns;
    uint64_t *ns[WAYS];
};

/* ---- One run ----------------------------------------------------------------------------------- */

/* What of a peer's words stands for something else. */
static const char *word_of(const struct settings *s, const char *word, const char *hosts,
                           const char *number) {
    return strcmp(word, "%w") == 0   ? hosts
           : strcmp(word, "%n") == 0 ? number
           : strcmp(word, "%f") == 0 ? s->list
                                     : word;
}

static void storm_words(const struct settings *s, const struct way *w, const char *hosts,
                        const char *put, const char *args[ARGS_MAX]) {
    int n = 0;
    const char *begin[] = {s->self, "exec", "-q", "-t", "60s", "--shape", w->shape, "-w", hosts};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        args[n++] = begin[i];
    if (w->fanout != NULL) {
        args[n++] = "--fanout";
        args[n++] = w->fanout;
    }
    if (s->connector != NULL) {
        args[n++] = "--connector";
        args[n++] = s->connector;
    }
    if (put != NULL) {
        args[n++] = "--put";
        args[n++] = put;
    }
    args[n++] = "true";
    args[n] = NULL;
}

static int run_once(const struct settings *s, const struct way *w, const char *hosts,
                    uint64_t count, const char *put, uint64_t *ret_ns) {
    const char *args[ARGS_MAX] = {NULL};
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, count);
    if (w->shape != NULL)
        storm_words(s, w, hosts, put, args);
    for (int i = 0; w->peer != NULL && w->peer[i] != NULL; i++)
        args[i] = word_of(s, w->peer[i], hosts, number);
    struct errand e = {.argv = args, .silent = true};
    int r = errand_run(&e);
    if (r == 0 && e.status != 0)
        r = -EIO;
    if (r < 0)
        complain("bench", "%s on %" PRIu64 " hosts: %s", w->name, count,
                 r == -EIO ? "it failed; try it by hand" : strerror(-r));
    *ret_ns = e.ns;
    return r;
}

/* ---- Results ----------------------------------------------------------------------------------- */

/* 0: the model says nothing of it. */
static uint64_t model_ns(const struct settings *s, const struct way *w, uint64_t hosts) {
    uint32_t nodes = (uint32_t)hosts + 1; /* and the one that begins */
    if (w->shape == NULL || strcmp(w->shape, "adaptive") == 0)
        return 0;
    if (strcmp(w->shape, "binomial") == 0)
        return analytic_binomial_ns(s->lambda_ns, nodes);
    if (w->fanout != NULL)
        return analytic_kary_ns(s->lambda_ns, (uint32_t)(w->fanout[0] - '0'), nodes);
    return s->lambda_ns * hosts; /* one after the other, whoever connects */
}

static void show_json(const struct settings *s, const struct way *w, uint64_t hosts, uint64_t bytes,
                      struct stats st) {
    uint64_t model = model_ns(s, w, hosts);
    printf("{\"bench\":\"exec\",\"case\":\"%s\",\"nodes\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"runs\":%" PRIu64,
           w->name, hosts, bytes, s->runs);
    report_json_ms("median_ms", st.median, stdout);
    report_json_ms("ci95_ms", st.ci95, stdout);
    if (model > 0)
        report_json_ms("model_ms", model, stdout);
    puts("}");
    fflush(stdout);
}

static void show_row(const struct settings *s, struct table *t, const struct way *w, uint64_t hosts,
                     uint64_t bytes, struct stats st) {
    char size[UNITS_TEXT_MAX] = "-";
    uint64_t model = model_ns(s, w, hosts);
    if (bytes > 0)
        units_format_size(bytes, size, sizeof size);
    table_cell(t, "%s", w->name);
    table_cell(t, "%" PRIu64, hosts);
    table_cell(t, "%s", size);
    table_cell(t, "%.1f", (double)st.median / NS_PER_MS);
    table_cell(t, "%.1f", (double)st.ci95 / NS_PER_MS);
    if (model > 0)
        table_cell(t, "%.1f", (double)model / NS_PER_MS);
    else
        table_cell(t, "-");
}

/* ---- Rounds ------------------------------------------------------------------------------------ */

static bool takes_part(const struct settings *s, int way, uint64_t bytes) {
    return s->wanted[way] && (ways[way].shape != NULL || bytes == 0);
}

static int write_list(const struct settings *s, uint64_t count) {
    FILE *f = fopen(s->list, "we");
    if (f == NULL)
        return -errno;
    for (uint64_t i = 0; i < count; i++)
        fprintf(f, "%s\n", s->roll.names[i]);
    return fclose(f) == 0 ? 0 : -errno;
}

static int prepare_round(const struct settings *s, uint64_t count, uint64_t bytes,
                         char **ret_hosts) {
    struct random r;
    uint32_t *which = calloc(count, sizeof *which);
    for (uint32_t i = 0; which != NULL && i < count; i++)
        which[i] = i;
    *ret_hosts = which != NULL ? roll_fold(&s->roll, which, (uint32_t)count) : NULL;
    free(which);
    random_init(&r, bytes);
    int status = *ret_hosts == NULL ? -ENOMEM : write_list(s, count);
    return status < 0 || bytes == 0 ? status : sample_file(s->file, bytes, &r);
}

static int measure(struct settings *s, struct table *t, uint64_t count, uint64_t bytes) {
    char *hosts = NULL, put[160], words[96];
    int r = prepare_round(s, count, bytes, &hosts);
    snprintf(put, sizeof put, "%s:/tmp/storm-bench-exec", s->file);
    for (uint64_t run = 0; run < s->runs && r == 0; run++) {
        snprintf(words, sizeof words, "%" PRIu64 " hosts, round %" PRIu64 " of %" PRIu64 " ...",
                 count, run + 1, s->runs);
        terminal_progress(words);
        for (int w = 0; w < WAYS && r == 0; w++)
            if (takes_part(s, w, bytes))
                r = run_once(s, &ways[w], hosts, count, bytes > 0 ? put : NULL, &s->ns[w][run]);
    }
    terminal_progress(NULL);
    for (int w = 0; w < WAYS && r == 0; w++) {
        if (!takes_part(s, w, bytes))
            continue;
        sort_u64(s->ns[w], s->runs);
        struct stats st = stats_of(s->ns[w], (uint32_t)s->runs);
        if (s->json)
            show_json(s, &ways[w], count, bytes, st);
        else
            show_row(s, t, &ways[w], count, bytes, st);
    }
    free(hosts);
    return r;
}

/* The time of one host, once its helper is there. */
static int measure_lambda(struct settings *s) {
    uint64_t ns[5];
    int r = run_once(s, &ways[0], s->roll.names[0], 1, NULL, &ns[0]);
    for (int i = 0; i < 5 && r == 0; i++)
        r = run_once(s, &ways[0], s->roll.names[0], 1, NULL, &ns[i]);
    if (r == 0) {
        sort_u64(ns, 5);
        s->lambda_ns = ns[2];
    }
    return r;
}

static int measure_all(struct settings *s) {
    static const char *const titles[] = {"way", ">hosts", ">file", ">ms", ">+-", ">model ms", NULL};
    struct table t;
    int r = measure_lambda(s);
    table_init(&t, titles);
    for (uint32_t size = 0; size <= s->sizes.count && r == 0; size++)
        for (uint32_t i = 0; i < s->counts.count && r == 0; i++)
            r = measure(s, &t, s->counts.at[i], size == 0 ? 0 : s->sizes.at[size - 1]);
    if (!s->json && r == 0) {
        table_print(&t, stdout);
        printf("\nlambda, one host: %.1f ms; %" PRIu64 " rounds, medians, 95 %% of the mean\n",
               (double)s->lambda_ns / NS_PER_MS, s->runs);
    }
    table_fini(&t);
    return r < 0 ? -1 : 0;
}

/* ---- What the user wants ----------------------------------------------------------------------- */

static bool named(const char *list, const char *name) {
    size_t len = strlen(name);
    for (const char *at = list; at != NULL; at = strchr(at, ','), at = at != NULL ? at + 1 : NULL)
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}

/* A name that is none is a mistake. */
static int look_at_names(const char *list) {
    for (const char *at = list; at != NULL && *at != '\0'; at += strspn(at, ",")) {
        size_t len = strcspn(at, ",");
        bool known = false;
        for (int w = 0; w < WAYS && !known; w++)
            known = strlen(ways[w].name) == len && strncmp(at, ways[w].name, len) == 0;
        if (!known)
            return complain("bench", "there is no way \"%.*s\"; see: storm bench exec --help",
                            (int)len, at);
        at += len;
    }
    return 0;
}

/* However it ends: not all know that option. */
static bool is_installed(const char *const *argv) {
    struct errand e = {.argv = argv, .silent = true};
    return errand_run(&e) == 0;
}

static int choose_ways(struct settings *s) {
    bool any = false;
    if (look_at_names(s->only) != 0)
        return STATUS_USAGE;
    for (int w = 0; w < WAYS; w++) {
        const char *help[] = {ways[w].peer != NULL ? ways[w].peer[0] : "", "--version", NULL};
        bool peer = ways[w].peer != NULL;
        bool asked = s->only != NULL ? named(s->only, ways[w].name) : peer ? s->peers : true;
        if (asked && peer && (s->connector != NULL || !is_installed(help))) {
            complain("bench", "%s is left out: %s", ways[w].name,
                     s->connector != NULL ? "it knows no connector"
                                          : "it is not installed; tools/setup hosts does so");
            asked = false;
        }
        s->wanted[w] = asked;
        any = any || asked;
        s->ns[w] = calloc(s->runs, sizeof **s->ns);
        if (s->ns[w] == NULL)
            return STATUS_STORM;
    }
    return any ? 0 : complain("bench", "no way is left to measure");
}

static int settle(struct settings *s) {
    if (s->hosts == NULL)
        return complain("bench", "on which hosts? say -w HOSTS");
    if (s->runs < 2 || s->runs > RUNS_MAX)
        return complain("bench", "--runs must be from 2 to %d", RUNS_MAX);
    if (s->sizes_text != NULL && !bench_sizes(s->sizes_text, &s->sizes))
        return complain("bench", "--put %s: sizes like 1MB,16MB", s->sizes_text);
    if (s->link_ns > 0 && s->connector != NULL)
        return complain("bench", "--lambda is a connector of its own: leave --connector out");
    if (s->link_ns > 0) {
        snprintf(s->link, sizeof s->link, "\"%s\" bench exec-link %s %" PRIu64 " %s %%h %%c",
                 s->self, s->folder, s->link_ns, s->at_once ? "at-once" : "one-by-one");
        s->connector = s->link;
    }
    int r = roll_read(&s->roll, "bench", s->hosts, NULL);
    if (r != 0)
        return r;
    if (s->counts.count == 0)
        s->counts = (struct number_list){.count = 1, .at = {s->roll.count}};
    for (uint32_t i = 0; i < s->counts.count; i++)
        if (s->counts.at[i] == 0 || s->counts.at[i] > s->roll.count)
            return complain("bench", "--counts %" PRIu64 ": there are %" PRIu32 " hosts",
                            s->counts.at[i], s->roll.count);
    return choose_ways(s);
}

int bench_exec(int argc, char **argv) {
    static struct settings s = {.runs = 20};
    const struct option table[] = {
        {"on,w", OPTION_TEXT, &s.hosts, "HOSTS", "where: h[0-31], @FILE"},
        {"counts", OPTION_LIST, &s.counts, "LIST", "how many of them: 4,8..32; all if not given"},
        {"put", OPTION_TEXT, &s.sizes_text, "SIZES",
         "also with files of these sizes sent before: 1MB,16MB"},
        {"ways", OPTION_TEXT, &s.only, "LIST",
         "only these: adaptive,flat,binomial,binary,3-ary,4-ary,chain,pdsh,clush,taktuk"},
        {"peers", OPTION_FLAG, &s.peers, NULL, "pdsh, clush and taktuk too"},
        {"connector", OPTION_TEXT, &s.connector, "WORDS", "instead of ssh"},
        {"lambda", OPTION_DURATION, &s.link_ns, "TIME",
         "made-up hosts: a connection takes so long, each makes one at a time"},
        {"at-once", OPTION_FLAG, &s.at_once, NULL, "with --lambda: all that it makes"},
        {"runs", OPTION_NUMBER, &s.runs, "N", "rounds; 20 if not given"},
        {"json", OPTION_FLAG, &s.json, NULL, "one object a line"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm bench exec -w HOSTS [OPTIONS]\n\n"
            "How long `storm exec HOSTS true` takes, by shape, beside the launcher paper's model and other\n"
            "launchers. Files are written to /tmp/storm-bench-exec on the hosts.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    snprintf(s.folder, sizeof s.folder, "/tmp/storm-bench-XXXXXX");
    if (mkdtemp(s.folder) == NULL)
        return complain("bench", "no folder can be made in /tmp: %s", strerror(errno)),
               STATUS_FAILED;
    snprintf(s.file, sizeof s.file, "%s/file", s.folder);
    snprintf(s.list, sizeof s.list, "%s/hosts", s.folder);
    int status = companion_self(s.self, sizeof s.self) < 0 ? STATUS_STORM : settle(&s);
    if (status == 0)
        status = measure_all(&s) < 0 ? STATUS_FAILED : STATUS_OK;
    files_remove(AT_FDCWD, s.folder);
    roll_free(&s.roll);
    for (int w = 0; w < WAYS; w++)
        free(s.ns[w]);
    return status;
}
