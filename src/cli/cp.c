/* SPDX-License-Identifier: MIT */
/* storm cp: files and folders to nodes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/cp.h"
#include "cli/options.h"
#include "cli/tally.h"
#include "cli/terminal.h"

enum { ITEMS_MAX = NUMBERS_MAX };

/* "n3:/path", "all:/path", "n[0-3]:/path": a name with a colon and no slash before it. */
static char *behind_nodes(char *text) {
    char *colon = strchr(text, ':');
    const char *slash = strchr(text, '/');
    return colon == NULL || colon == text || (slash != NULL && slash < colon) ? NULL : colon + 1;
}

/* Writes a path on a node in the one way that nodes are told it: "/a//./b/" is "/a/b". */
static bool straighten(char *path) {
    char *out = path;
    for (const char *at = path; *at != '\0';) {
        size_t len = strcspn(at += strspn(at, "/"), "/");
        if (len == 2 && strncmp(at, "..", 2) == 0)
            return false;
        if (len > 0 && !(len == 1 && *at == '.')) {
            *out++ = '/';
            memmove(out, at, len);
            out += len;
        }
        at += len;
    }
    if (out == path)
        *out++ = '/';
    *out = '\0';
    return true;
}

static int take_nodes(const struct cluster *cluster, struct nodeset *set, const char *text,
                      const char *path) {
    struct cluster_trouble trouble;
    char list[4096];
    size_t len = (size_t)(path - 1 - text);
    if (len >= sizeof list)
        return complain("cp", "that list of nodes is too long; use a shorter one");
    memcpy(list, text, len);
    list[len] = '\0';
    if (strcmp(list, "all") == 0) {
        cluster_all(cluster, set);
        return 0;
    }
    int r = cluster_nodes(cluster, list, set, &trouble);
    if (r == -ENOENT)
        return complain("cp", "there is no node %s; see: storm nodes", trouble.words);
    if (r < 0)
        return complain("cp", "%s: %s", list, trouble.words);
    return 0;
}

static int make_sets(struct cp *c) {
    uint32_t nodes = c->contact.cluster.nodes;
    size_t bytes = nodeset_bytes(nodes);
    c->storage = malloc(2 * bytes);
    if (c->storage == NULL)
        return complain("cp", "%s", strerror(ENOMEM));
    nodeset_init(&c->set, nodes, c->storage);
    nodeset_init(&c->from, nodes, (uint8_t *)c->storage + bytes);
    return 0;
}

/* ---- being interrupted ---- */

static void interrupted(struct cp *c, int signal) {
    terminal_progress(NULL);
    complain("cp", "interrupted; the same command goes on where this one was");
    c->status = STATUS_SIGNAL + signal;
    c->over = true;
}

static sigset_t ending_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* ---- looking the files over ---- */

static bool show_survey(void *context, uint64_t done, uint64_t all) {
    struct cp *c = context;
    char line[80], size[24];
    sigset_t set = ending_signals();
    struct timespec now = {0};
    int signal = sigtimedwait(&set, NULL, &now);
    if (signal > 0) {
        interrupted(c, signal);
        return false;
    }
    units_format_size(all, size, sizeof size);
    snprintf(line, sizeof line, "looking at %s: %3" PRIu64 " %%", size,
             all == 0 ? 100 : done * 100 / all);
    if (!c->request->quiet)
        terminal_progress(line);
    return true;
}

static int survey(struct cp *c, char **paths, int count) {
    struct survey_item items[ITEMS_MAX];
    char ledger[CLUSTER_PATH_MAX + 16], why[256];
    if (count > ITEMS_MAX)
        return complain("cp", "too many files at once; put them into a folder");
    for (int i = 0; i < count; i++) {
        size_t len = strlen(paths[i]);
        while (len > 1 && paths[i][len - 1] == '/')
            paths[i][--len] = '\0';
        const char *slash = strrchr(paths[i], '/');
        items[i] = (struct survey_item){.path = paths[i], .name = slash ? slash + 1 : paths[i]};
        if (items[i].name[0] == '\0' || strcmp(items[i].name, ".") == 0 ||
            strcmp(items[i].name, "..") == 0)
            return complain("cp", "%s: has no name to be copied under; name the folder", paths[i]);
    }
    struct survey_config config = {.beneath = AT_FDCWD,
                                   .digest = c->request->sending.digest,
                                   .piece_bytes = (uint32_t)c->request->sending.chunk_bytes,
                                   .spread = c->request->sending.spread,
                                   .terms = c->request->sending.terms,
                                   .send = c->request->sending.type,
                                   .grows = true,
                                   .follow = true,
                                   .progress = show_survey,
                                   .context = c};
    freight_ledger(ledger, sizeof ledger);
    if (ledger[0] != '\0')
        config.ledger = ledger;
    int r = survey_new(&config, items, (uint32_t)count, &c->survey, why);
    terminal_progress(NULL);
    if (r < 0 && !c->over) {
        complain("cp", "%s", why);
        return STATUS_FAILED;
    }
    return c->status;
}

/* ---- the copy ---- */

static void note_shape(struct cp *c, const struct message_copied *m) {
    struct spread s = {.shape = m->shape, .arity = m->arity};
    spread_format(&s, c->tally.shape, sizeof c->tally.shape);
    c->tally.switches = m->switches;
    c->tally.crossed = m->crossed;
    c->tally.at_ns[TALLY_ACCEPTED] = clock_ns();
}

static void tell(struct cp *c) {
    struct tally *t = &c->tally;
    struct mover_view v = {0};
    if (c->giver != NULL)
        giver_look(c->giver, c->offer, &v);
    t->at_ns[TALLY_MET] = v.met_at;
    t->at_ns[TALLY_FIRST] = v.first_at;
    t->at_ns[TALLY_LAST] = v.last_at;
    t->at_ns[TALLY_DONE] = clock_ns();
    t->nodes = nodeset_count(&c->set);
    t->pieces = c->survey != NULL ? survey_pieces(c->survey) : c->pieces;
    t->bytes = c->bytes;
    t->read = c->survey != NULL ? survey_bytes_read(c->survey) : 0;
    t->given = v.bytes_put;
    if ((c->request->sending.fabric != NULL || t->fabric[0] != '\0') &&
        (c->request->verbose || c->request->json))
        cp_count(c);
    if (c->request->verbose)
        tally_print(t, stderr);
    if (c->request->json)
        tally_json(t, stdout);
}

static void complain_of(const struct cp *c, const struct message_copied *m) {
    char nodes[256], name[CLUSTER_NODE_NAME_MAX];
    uint32_t count = nodeset_count(m->without);
    cluster_format_nodes(&c->contact.cluster, m->without, nodes, sizeof nodes);
    cluster_node_name(&c->contact.cluster, m->node, name, sizeof name);
    int len = m->text.len > 200 ? 200 : (int)m->text.len;
    if (len == 0)
        complain("cp", "%s: %s", name, strerror(-m->error));
    else
        complain("cp", "%s: %.*s", name, len, (const char *)m->text.at);
    if (count > 1)
        complain("cp", "not copied to %" PRIu32 " nodes: %s", count, nodes);
}

static void on_copied(void *context, const struct message_copied *m,
                      const struct message_answer *refusal) {
    struct cp *c = context;
    if (m == NULL) {
        c->status = contact_refused("cp", refusal);
        c->over = true;
    } else if (!m->over) {
        note_shape(c, m);
    } else {
        c->over = true;
        terminal_progress(NULL);
        if (!nodeset_empty(m->without)) {
            complain_of(c, m);
            c->status = STATUS_FAILED;
        }
    }
}

static void show_progress(struct cp *c) {
    struct mover_view v;
    char line[120], rate[24];
    uint64_t now = clock_ns();
    if (c->request->quiet || c->survey == NULL || now - c->shown_ns < 100 * NS_PER_MS ||
        !giver_look(c->giver, c->offer, &v) || v.pieces == 0)
        return;
    c->shown_ns = now;
    uint64_t ms = (now - c->began_ns) / NS_PER_MS;
    uint64_t pieces = survey_pieces(c->survey); /* about, while the file is looked over */
    v.furthest = v.furthest < pieces ? v.furthest : (uint32_t)pieces;
    uint64_t done = c->bytes / pieces * v.furthest;
    units_format_size(ms == 0 ? 0 : done / ms * 1000, rate, sizeof rate);
    uint32_t percent = (uint32_t)(v.furthest * 100 / pieces);
    char bar[21];
    for (uint32_t i = 0; i < 20; i++)
        bar[i] = i < percent / 5 ? '#' : '.';
    bar[20] = '\0';
    snprintf(line, sizeof line, "[%s] %3u %%  %s/s", bar, percent, rate);
    terminal_progress(line);
}

static void on_signal(struct source *s, uint32_t events) {
    struct cp *c = CONTAINER_OF(s, struct cp, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(s->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    interrupted(c, (int)info.ssi_signo);
}

void cp_catch_signals(struct cp *c) {
    sigset_t set = ending_signals();
    c->signals =
        (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_signal};
    if (c->signals.fd >= 0)
        loop_add(&c->contact.loop, &c->signals, EPOLLIN);
}

int cp_send(struct cp *c, uint32_t source, struct bundle *b, const char *to, bool replace) {
    b->goal = GOAL_PATH;
    b->replace = replace;
    b->to = bytes_from_str(to);
    c->bytes = b->bytes;
    c->pieces = b->pieces;
    size_t cap = bundle_room(b);
    uint8_t *descriptor = malloc(cap);
    long len = descriptor == NULL ? -ENOMEM : bundle_encode(b, room_of(descriptor, cap));
    const struct sending *s = &c->request->sending;
    struct message_copy m = {.source = source,
                             .offer = c->offer,
                             .shape = s->spread.shape,
                             .arity = s->spread.arity,
                             .slots = s->slots == 0 ? 1 : (uint32_t)s->slots,
                             .set = &c->set,
                             .fabric = bytes_from_str(c->tally.fabric),
                             .descriptor = bytes_of(descriptor, len < 0 ? 0 : (size_t)len)};
    if (source == NO_NODE)
        m.address = giver_address(c->giver);
    c->began_ns = clock_ns();
    int r = len < 0 ? (int)len : session_copy(c->contact.session, &m, on_copied, c);
    if (r < 0)
        c->status = complain("cp", "%s; copy less at a time", strerror(-r));
    while (r == 0 && !c->over && !c->contact.lost) {
        if (c->giver != NULL)
            giver_settle(c->giver);
        show_progress(c);
        session_turn(c->contact.session);
    }
    free(descriptor);
    if (c->contact.lost)
        c->status = STATUS_STORM;
    return c->status;
}

int cp_prepare(struct cp *c) {
    return sending_prepare(&c->request->sending, "cp", &c->contact.cluster, c->giver,
                           c->tally.fabric);
}

static int from_here(struct cp *c, const char *to, bool replace) {
    char why[256];
    int r = giver_new(&c->contact.loop, &c->contact.cluster, NULL, &c->giver, why);
    if (r < 0) {
        complain("cp", "%s", why);
        return STATUS_STORM;
    }
    r = cp_prepare(c);
    if (r != 0)
        return r;
    c->offer = giver_offer(c->giver, c->survey);
    struct bundle b = *survey_bundle(c->survey);
    return cp_send(c, NO_NODE, &b, to, replace);
}

/* From where to where is known. */
static int go(struct cp *c, char **argv, int count) {
    struct session_config callbacks = {.patience_ns = PATIENCE_WAITING};
    const char *path = behind_nodes(argv[1]), *to = behind_nodes(argv[count]);
    sending_to(&c->request->sending, &c->contact.cluster, nodeset_count(&c->set));
    int r = path == NULL ? survey(c, argv + 1, count - 1) : 0;
    c->tally.at_ns[TALLY_LOOKED] = clock_ns();
    if (r == 0)
        r = contact_begin(&c->contact, &callbacks);
    if (r != 0)
        return r;
    c->tally.at_ns[TALLY_CONNECTED] = clock_ns();
    cp_catch_signals(c);
    if (path == NULL)
        r = from_here(c, to, !c->into);
    else if (to != NULL)
        r = (r = cp_prepare(c)) != 0 ? r : cp_between(c, path, to, !c->into);
    else
        r = cp_fetch(c, path, argv[count]);
    if (r == STATUS_OK && to != NULL)
        tell(c);
    giver_free(c->giver);
    contact_close(&c->contact);
    return r;
}

/* A path on a node, as nodes are told it. */
static int check_path(char *text, bool *ret_folder) {
    char *path = behind_nodes(text);
    if (path == NULL)
        return 0;
    if (path[0] != '/')
        return complain("cp", "%s: a path on a node begins with a slash", text);
    *ret_folder = path[strlen(path) - 1] == '/';
    if (!straighten(path))
        return complain("cp", "%s: a path on a node is written without \"..\"", text);
    return 0;
}

/* Files of nodes come one path at a time, for two would be two answers. */
static int check_places(struct cp *c, char **argv, int count) {
    const struct cluster *cluster = &c->contact.cluster;
    bool any;
    int r = check_path(argv[count], &c->into);
    c->into = c->into || count > 2;
    for (int i = 1; i < count && r == 0; i++) {
        const char *path = behind_nodes(argv[i]);
        if (path == NULL)
            continue;
        if (count > 2)
            return complain("cp", "%s: files of nodes are copied one at a time", argv[i]);
        r = check_path(argv[i], &any);
        if (r == 0)
            r = take_nodes(cluster, &c->from, argv[i], path);
    }
    const char *to = behind_nodes(argv[count]);
    if (r == 0 && to != NULL)
        r = take_nodes(cluster, &c->set, argv[count], to);
    if (r == 0 && to == NULL && nodeset_empty(&c->from))
        return complain("cp", "%s: begin it with the nodes, for example all:/data/", argv[count]);
    if (r == 0 && to != NULL && nodeset_count(&c->from) > 1)
        return complain("cp", "%s: name one node to copy from", argv[1]);
    return r;
}

int cp_main(int argc, char **argv) {
    struct cp_request q = {0};
    struct tally tally = {.began_ns = clock_ns()};
    const struct option table[] = {
        {"tree", OPTION_TEXT, &q.sending.tree, "SHAPE",
         "chain, k-ary:N, binomial, flat, pair; otherwise as is best"},
        {"chunk", OPTION_TEXT, &q.sending.chunk, "SIZE",
         "of a piece, about; otherwise 256KiB to 1MiB, or as suits --bandwidth"},
        {"slots", OPTION_NUMBER, &q.sending.slots, "N", "pieces that a node takes ahead"},
        {"send", OPTION_TEXT, &q.sending.send, "TYPE", "how files are read: " SEND_TYPE_NAMES},
        {"fabric", OPTION_TEXT, &q.sending.fabric, "F",
         "auto (default), streams, ofi or ofi:PROVIDER: what carries them"},
        {"verbose,v", OPTION_FLAG, &q.verbose, NULL, "say how it was done"},
        {"quiet,q", OPTION_FLAG, &q.quiet, NULL, "show no progress"},
        {"json", OPTION_FLAG, &q.json, NULL, "say how it was done, as JSON"},
        {"cluster", OPTION_TEXT, &q.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm cp [OPTIONS] FILE... NODES:PATH\n"
            "       storm cp [OPTIONS] NODE:PATH NODES:PATH\n"
            "       storm cp [OPTIONS] NODES:PATH FOLDER\n\n"
            "Copies files and folders to nodes (n3:/data, n[0-7]:/data, all:/data), from one node to others,\n"
            "or from nodes to here, each into FOLDER/NODE. A PATH that ends in a slash is a folder to put\n"
            "them in. A copy that was interrupted goes on where it was.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count < 2)
        return complain("cp", "from where to where? for example: storm cp FILE all:/data/");
    int r = sending_check(&q.sending, "cp");
    if (r != 0)
        return r;
    struct cp c = {.request = &q, .tally = tally, .status = STATUS_OK};
    sigset_t set = ending_signals(); /* what we leave in the cluster's folder must be taken away */
    sigprocmask(SIG_BLOCK, &set, NULL);
    r = contact_find(&c.contact.cluster, q.cluster);
    if (r == 0)
        r = make_sets(&c);
    if (r == 0)
        r = check_places(&c, argv, count);
    if (r == 0)
        r = go(&c, argv, count);
    survey_free(c.survey);
    free(c.tally.movers);
    free(c.storage);
    cluster_free(&c.contact.cluster);
    return r;
}
