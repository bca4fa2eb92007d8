/* SPDX-License-Identifier: MIT */
/* Jobs of the past: see past.h. */
#include "manager/past.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "client/hostsfile.h"
#include "mm/chronicle.h"
#include "os/journal.h"
#include "os/plan.h"

enum { JOBS_MAX = 1 << 18, ROW_MAX = 8 * KIB, TEXT_MAX = 64 * MIB };

static void on_row(void *context, const struct job_row *row) {
    uint8_t bytes[ROW_MAX];
    (void)context;
    long len = job_row_encode(row, room_of(bytes, sizeof bytes));
    if (len > 0)
        fwrite(bytes, 1, (size_t)len, stdout);
}

static bool on_event(void *context, uint64_t key, struct bytes body) {
    if (key >= HISTORY_KEY_END)
        return false;
    return chronicle_feed(context, key, body);
}

static struct chronicle *make(const struct roster *roster, uint32_t from, uint32_t to) {
    struct chronicle_config c = {.nodes_max = PLAN_NODES_MAX + 1,
                                 .jobs_max = JOBS_MAX,
                                 .text_max = TEXT_MAX,
                                 .roster = roster,
                                 .from = from,
                                 .to = to,
                                 .row = on_row};
    struct arena a;
    size_t bytes = chronicle_bytes(&c);
    void *at = calloc(1, bytes); /* what is not used is not touched */
    if (at == NULL)
        return NULL;
    arena_init(&a, at, bytes);
    return chronicle_new(&c, &a);
}

static int fail(int error) {
    fprintf(stderr, "storm-mm: state.db: %s\n",
            error == -ENOTSUP ? "it was written by a newer STORM" : strerror(-error));
    return 1;
}

/* What was submitted last has the highest number. */
static int find_last(const char *folder, uint32_t *ret) {
    struct roster none = roster_plain("", 0);
    struct chronicle *h = make(&none, UINT32_MAX, 0);
    int r = h == NULL ? -ENOMEM : journal_history(folder, HISTORY_KEY_END - 1, on_event, h);
    *ret = r < 0 ? 0 : chronicle_last(h);
    free(h);
    return r;
}

/* Hosts that have left the cluster, and nodes of one that is virtual, are known by their numbers. */
static struct roster *load_roster(const char *folder) {
    char path[CLUSTER_PATH_MAX];
    struct cluster_trouble trouble;
    struct hosts hosts = {0};
    int r = hosts_path(folder, path, sizeof path);
    if (r == 0)
        r = hosts_read(&hosts, PLAN_NODES_MAX, path, &trouble);
    struct roster *roster = r < 0 ? NULL : hosts_roster(&hosts, "n", &r, NULL);
    hosts_free(&hosts);
    if (roster == NULL && (roster = malloc(sizeof *roster)) != NULL)
        *roster = roster_plain("n", PLAN_NODES_MAX);
    return roster;
}

static int print_from(const char *folder, const struct roster *roster, uint32_t from, uint32_t last,
                      uint32_t only) {
    struct chronicle *h = make(roster, from, only);
    uint8_t total[4];
    if (h == NULL)
        return -ENOMEM;
    store_le32(total, last);
    fwrite(total, 1, sizeof total, stdout);
    int r = last == 0 ? 0 : journal_history(folder, from, on_event, h);
    chronicle_end(h);
    free(h);
    return r;
}

int past_print(const char *folder, unsigned most, unsigned only) {
    uint32_t last = 0;
    int r = find_last(folder, &last);
    if (r < 0)
        return fail(r);
    uint32_t from = most == 0 || most >= last ? 1 : last - most + 1;
    struct roster *roster = load_roster(folder);
    r = roster == NULL ? -ENOMEM : print_from(folder, roster, only != 0 ? only : from, last, only);
    free(roster);
    if (r < 0)
        return fail(r);
    return fflush(stdout) == 0 ? 0 : 1;
}
