/* SPDX-License-Identifier: MIT */
/* storm reload: what nodes are like, said anew of a cluster that runs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/options.h"
#include "client/hostsfile.h"
#include "client/nodespec.h"
#include "wire/row.h"

struct reload {
    const char *attribs, *nodespec;
    char folder[CLUSTER_PATH_MAX];
    char kept[NODESPEC_FILES][CLUSTER_PATH_MAX];
    uint64_t said; /* as the manager will know it */
};

/* A file that was not named stays as it is. */
static void name_kept(struct reload *l) {
    if (l->attribs == NULL && nodespec_kept(l->folder, NODESPEC_ATTRIBS, l->kept[0]))
        l->attribs = l->kept[0];
    if (l->nodespec == NULL && nodespec_kept(l->folder, NODESPEC_NODES, l->kept[1]))
        l->nodespec = l->kept[1];
}

static int refuse(const char *why) {
    complain("reload", "%s", why);
    return STATUS_STORM;
}

/* Both are read before either is kept. */
static int keep(struct reload *l, struct cluster *c) {
    char why[NODESPEC_WHY_MAX];
    struct nodespec spec;
    struct nodespec_told told = {0};
    int r = nodespec_load(c, l->attribs, l->nodespec, &spec, why);
    nodespec_free(&spec);
    if (r < 0)
        return refuse(why);
    r = nodespec_keep(l->folder, l->attribs, l->nodespec);
    why[0] = '\0';
    if (r == 0)
        r = hosts_nodespec(c, l->folder, &spec, why);
    if (r == 0)
        r = nodespec_tell(&spec, &told);
    bool wider = nodespec_widest(&spec) > 0 && !c->widths;
    nodespec_free(&spec);
    l->said = r == 0 ? said_hash(&told.in) : 0;
    free(told.memory);
    if (r == 0 && wider) { /* for ever: what runs may need what was said before */
        c->widths = true;
        r = cluster_save(c, l->folder);
        complain("reload",
                 "no node was given a number of processors before: more than %" PRIu32
                 " count when the manager is started again",
                 c->pes);
    }
    return r == 0 ? 0 : refuse(*why != '\0' ? why : strerror(-r));
}

/* The manager hears of it when the file is in its place; until it has, what is asked of it may still be judged by what was
 * said before. */
static int await_heard(struct contact *c, uint64_t said) {
    struct message_ask ask = {.subject = SUBJECT_CLUSTER};
    const struct timespec pause = {.tv_nsec = (long)(10 * NS_PER_MS)};
    for (int tries = 0; tries < 500; tries++) {
        struct contact_rows rows = {0};
        struct cluster_row row = {0};
        size_t at = 0;
        int r = contact_ask(c, &ask, &rows);
        bool heard = r == 0 && cluster_row_next(bytes_of(rows.at, rows.len), &at, &row) == 1 &&
                     row.said == said;
        free(rows.at);
        if (r != 0 || heard)
            return r;
        nanosleep(&pause, NULL);
    }
    return refuse("the manager has not taken it; its log says why: see storm doctor");
}

static int reload(struct reload *l, const char *cluster) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    int r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    if (cluster_is_elsewhere(&c.cluster))
        r = refuse("this is done where the cluster was brought up");
    else if (cluster_folder(c.cluster.name, l->folder, sizeof l->folder) < 0)
        r = refuse("the cluster's folder is not to be found");
    if (r == 0) {
        name_kept(l);
        r = keep(l, &c.cluster);
    }
    if (r == 0)
        r = await_heard(&c, l->said);
    contact_close(&c);
    return r;
}

int reload_main(int argc, char **argv) {
    static struct reload l;
    const char *cluster = NULL;
    const struct option table[] = {
        {"attribs", OPTION_TEXT, &l.attribs, "FILE", "what nodes are told apart by from now on"},
        {"nodespec", OPTION_TEXT, &l.nodespec, "FILE", "what nodes are like from now on"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm reload [--attribs FILE] [--nodespec FILE]\n\n"
            "Says anew what the nodes of a cluster that runs are like; see: storm up. Jobs go on.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("reload", "what is \"%s\" for? leave it out", argv[1]);
    if (l.attribs == NULL && l.nodespec == NULL)
        return complain("reload", "say what: --attribs FILE, --nodespec FILE");
    return reload(&l, cluster);
}
