/* SPDX-License-Identifier: MIT */
/* Jobs of a bench on temporary clusters: see gangrig.h. */
#include "cli/gangrig.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/complain.h"

enum { TEXT = 64, NUMBER = 24 };

/* ---- clusters ---- */

static int cluster_up(struct tempcluster *t, const struct gangrig_config *c, const char *policy) {
    char pes[NUMBER], mpl[NUMBER], quantum[NUMBER];
    const char *more[] = {"--pes", pes,         "--policy", policy, "--mpl",
                          mpl,     "--quantum", quantum,    NULL};
    snprintf(pes, sizeof pes, "%" PRIu32, c->pes);
    snprintf(mpl, sizeof mpl, "%" PRIu32, c->jobs > 1 ? c->jobs : 2);
    snprintf(quantum, sizeof quantum, "%" PRIu64 "us", c->quantum_ns / NS_PER_US);
    return tempcluster_up(t, c->command, c->nodes, more);
}

static int make_notes(struct gangrig *g) {
    int r = 0;
    for (uint32_t i = 0; i < g->config.jobs && r == 0; i++) {
        char path[TEXT];
        snprintf(path, sizeof path, "/dev/shm/storm-gang-%d-%" PRIu32, (int)getpid(), i);
        r = gangnotes_make(&g->notes[i], path, g->config.nodes * g->config.pes);
    }
    if (r < 0)
        complain("bench", "/dev/shm: %s; the processes of a job share memory there", strerror(-r));
    return r;
}

int gangrig_up(struct gangrig *g, const struct gangrig_config *c) {
    *g = (struct gangrig){.config = *c};
    int r = make_notes(g);
    if (r == 0)
        r = cluster_up(&g->gang, c, "gang");
    g->gang_up = r == 0;
    if (r == 0 && c->plain) {
        r = cluster_up(&g->local, c, "local");
        g->local_up = r == 0;
    }
    if (r < 0)
        gangrig_down(g);
    return r;
}

/* With the last cluster a Ctrl-C that was held ends us: the notes go before. */
void gangrig_down(struct gangrig *g) {
    for (uint32_t i = 0; i < GANGRIG_JOBS; i++)
        gangnotes_fini(&g->notes[i]);
    if (g->local_up)
        tempcluster_down(&g->local);
    if (g->gang_up)
        tempcluster_down(&g->gang);
    g->local_up = g->gang_up = false;
}

/* ---- jobs ---- */

static int submit(struct gangrig *g, const struct tempcluster *t, uint32_t job,
                  enum gangkernel kernel, uint64_t units, bool wait, char id[TEXT]) {
    char nodes[NUMBER], processes[NUMBER], amount[NUMBER], text[TEXT] = "";
    const char *args[] = {"submit",
                          "-N",
                          nodes,
                          "-n",
                          processes,
                          "-o",
                          "/dev/null",
                          "--stdin",
                          "none",
                          g->config.self,
                          "bench",
                          "gang-work",
                          g->notes[job].path,
                          gangkernel_name(kernel),
                          amount,
                          NULL};
    const char *waits[sizeof args / sizeof *args + 1] = {args[0], "--wait"};
    uint64_t ns;
    snprintf(nodes, sizeof nodes, "%" PRIu32, g->config.nodes);
    snprintf(processes, sizeof processes, "%" PRIu32, g->config.nodes * g->config.pes);
    snprintf(amount, sizeof amount, "%" PRIu64, units);
    memcpy(waits + 2, args + 1, sizeof args - sizeof *args);
    gangnotes_clear(&g->notes[job]);
    int r = tempcluster_run(t, wait ? waits : args, text, sizeof text, &ns);
    snprintf(id, TEXT, "%.*s", (int)strspn(text, "0123456789"), text);
    if (r == 0 && id[0] == '\0') {
        complain("bench", "storm submit does not tell of its job");
        r = -EPROTO;
    }
    return r;
}

static int span_of(const struct gangrig *g, uint32_t job, struct gangspan *ret) {
    if (gangnotes_span(&g->notes[job], ret))
        return 0;
    complain("bench", "a process of a job has noted nothing; did it run on this machine?");
    return -EPROTO;
}

static int run_alone(struct gangrig *g, enum gangkernel kernel, uint64_t units, uint32_t jobs,
                     uint64_t *ret_ns) {
    char id[TEXT];
    struct gangspan span;
    int r = 0;
    *ret_ns = 0;
    for (uint32_t i = 0; i < jobs && r == 0; i++) {
        r = submit(g, &g->gang, i, kernel, units, true, id);
        if (r == 0)
            r = span_of(g, i, &span);
        if (r == 0)
            *ret_ns += span.to - span.from;
    }
    return r;
}

static int run_together(struct gangrig *g, const struct tempcluster *t, enum gangkernel kernel,
                        uint64_t units, uint32_t jobs, uint64_t *ret_ns) {
    char ids[GANGRIG_JOBS][TEXT];
    const char *args[GANGRIG_JOBS + 2] = {"wait"};
    struct gangspan all = {.from = UINT64_MAX}, one;
    uint64_t ns;
    int r = 0;
    for (uint32_t i = 0; i < jobs && r == 0; i++) {
        r = submit(g, t, i, kernel, units, false, ids[i]);
        args[i + 1] = ids[i];
    }
    if (r == 0)
        r = tempcluster_run(t, args, NULL, 0, &ns);
    for (uint32_t i = 0; i < jobs && r == 0; i++) {
        r = span_of(g, i, &one);
        all.from = one.from < all.from ? one.from : all.from;
        all.to = one.to > all.to ? one.to : all.to;
    }
    *ret_ns = all.to - all.from;
    return r;
}

int gangrig_run(struct gangrig *g, enum gangway way, enum gangkernel kernel, uint64_t units,
                uint32_t jobs, uint64_t *ret_ns) {
    if (way == GANGWAY_ALONE)
        return run_alone(g, kernel, units, jobs, ret_ns);
    return run_together(g, way == GANGWAY_PLAIN ? &g->local : &g->gang, kernel, units, jobs,
                        ret_ns);
}
