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
#include "cli/freight.h"
#include "cli/options.h"
#include "cli/terminal.h"

enum { ITEMS_MAX = NUMBERS_MAX };

struct request {
    const char *cluster;
    struct sending sending;
    bool verbose, quiet;
};

struct copy {
    struct contact contact;
    struct giver *giver;
    struct survey *survey;
    uint64_t offer;
    struct nodeset set;
    void *storage;
    const struct request *request;
    uint64_t began_ns, shown_ns;
    struct source signals;
    bool over;
    int status;
};

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

static int take_nodes(struct copy *c, const char *text, const char *path) {
    struct cluster_trouble trouble;
    char list[4096];
    size_t len = (size_t)(path - 1 - text);
    if (len >= sizeof list)
        return complain("cp", "that list of nodes is too long; use a shorter one");
    memcpy(list, text, len);
    list[len] = '\0';
    c->storage = malloc(nodeset_bytes(c->contact.cluster.nodes));
    if (c->storage == NULL)
        return complain("cp", "%s", strerror(ENOMEM));
    nodeset_init(&c->set, c->contact.cluster.nodes, c->storage);
    if (strcmp(list, "all") == 0) {
        nodeset_add_range(&c->set, 0, c->contact.cluster.nodes - 1);
        return 0;
    }
    int r = cluster_nodes(&c->contact.cluster, list, &c->set, &trouble);
    if (r == -ENOENT)
        return complain("cp", "there is no node %s; see: storm nodes", trouble.words);
    if (r < 0)
        return complain("cp", "%s: %s", list, trouble.words);
    return 0;
}

/* ---- looking the files over ---- */

static bool show_survey(void *context, uint64_t done, uint64_t all) {
    const struct copy *c = context;
    char line[80], size[24];
    units_format_size(all, size, sizeof size);
    snprintf(line, sizeof line, "looking at %s: %3" PRIu64 " %%", size,
             all == 0 ? 100 : done * 100 / all);
    if (!c->request->quiet)
        terminal_progress(line);
    return true;
}

static int survey(struct copy *c, char **paths, int count) {
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
                                   .digest = DIGEST_XXH3,
                                   .piece_bytes = (uint32_t)c->request->sending.chunk_bytes,
                                   .follow = true,
                                   .progress = show_survey,
                                   .context = c};
    freight_ledger(ledger, sizeof ledger);
    if (ledger[0] != '\0')
        config.ledger = ledger;
    int r = survey_new(&config, items, (uint32_t)count, &c->survey, why);
    terminal_progress(NULL);
    if (r < 0) {
        complain("cp", "%s", why);
        return STATUS_FAILED;
    }
    return 0;
}

/* ---- the copy ---- */

static void show_shape(const struct copy *c, const struct message_copied *m) {
    char shape[32], size[24];
    struct spread s = {.shape = m->shape, .arity = m->arity};
    const struct bundle *b = survey_bundle(c->survey);
    spread_format(&s, shape, sizeof shape);
    units_format_size(b->bytes, size, sizeof size);
    fprintf(stderr, "cp: %s in %" PRIu32 " pieces to %" PRIu32 " nodes, %s\n", size, b->pieces,
            nodeset_count(&c->set), shape);
}

static void complain_of(const struct copy *c, const struct message_copied *m) {
    char nodes[256], name[CLUSTER_NODE_NAME_MAX];
    uint32_t count = nodeset_count(m->without);
    nodeset_format(m->without, c->contact.cluster.prefix, nodes, sizeof nodes);
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
    struct copy *c = context;
    if (m == NULL) {
        c->status = contact_refused("cp", refusal);
        c->over = true;
    } else if (!m->over) {
        if (c->request->verbose)
            show_shape(c, m);
    } else {
        c->over = true;
        terminal_progress(NULL);
        if (!nodeset_empty(m->without)) {
            complain_of(c, m);
            c->status = STATUS_FAILED;
        }
    }
}

static void show_progress(struct copy *c) {
    struct mover_view v;
    char line[120], rate[24];
    uint64_t now = clock_ns();
    if (c->request->quiet || now - c->shown_ns < 100 * NS_PER_MS ||
        !giver_look(c->giver, c->offer, &v) || v.pieces == 0)
        return;
    c->shown_ns = now;
    const struct bundle *b = survey_bundle(c->survey);
    uint64_t ms = (now - c->began_ns) / NS_PER_MS;
    uint64_t done = b->bytes / v.pieces * v.furthest;
    units_format_size(ms == 0 ? 0 : done / ms * 1000, rate, sizeof rate);
    uint32_t percent = (uint32_t)((uint64_t)v.furthest * 100 / v.pieces);
    char bar[21];
    for (uint32_t i = 0; i < 20; i++)
        bar[i] = i < percent / 5 ? '#' : '.';
    bar[20] = '\0';
    snprintf(line, sizeof line, "[%s] %3u %%  %s/s", bar, percent, rate);
    terminal_progress(line);
}

static void on_signal(struct source *s, uint32_t events) {
    struct copy *c = CONTAINER_OF(s, struct copy, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(s->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    terminal_progress(NULL);
    complain("cp", "interrupted; the same command goes on where this one was");
    c->status = STATUS_SIGNAL + (int)info.ssi_signo;
    c->over = true;
}

/* What we leave in the cluster's folder must be taken away. */
static void catch_signals(struct copy *c) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    c->signals =
        (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .ready = on_signal};
    if (c->signals.fd >= 0)
        loop_add(&c->contact.loop, &c->signals, EPOLLIN);
}

static int copy(struct copy *c, const char *to, bool replace) {
    char why[256];
    int r = giver_new(&c->contact.loop, &c->contact.cluster, &c->giver, why);
    if (r < 0) {
        complain("cp", "%s", why);
        return STATUS_STORM;
    }
    catch_signals(c);
    c->offer = giver_offer(c->giver, c->survey);
    struct bundle b = *survey_bundle(c->survey);
    b.goal = GOAL_PATH;
    b.replace = replace;
    b.to = bytes_from_str(to);
    size_t cap = 8192 + b.pages.len;
    uint8_t *descriptor = malloc(cap);
    long len = descriptor == NULL ? -ENOMEM : bundle_encode(&b, room_of(descriptor, cap));
    struct message_copy m = {
        .offer = c->offer,
        .source = NO_NODE,
        .shape = c->request->sending.spread.shape,
        .arity = c->request->sending.spread.arity,
        .slots = c->request->sending.slots == 0 ? 1 : (uint32_t)c->request->sending.slots,
        .set = &c->set,
        .address = giver_address(c->giver),
        .descriptor = bytes_of(descriptor, len < 0 ? 0 : (size_t)len)};
    c->began_ns = clock_ns();
    r = len < 0 ? (int)len : session_copy(c->contact.session, &m, on_copied, c);
    if (r < 0)
        c->status = complain("cp", "%s; copy less at a time", strerror(-r));
    while (r == 0 && !c->over && !c->contact.lost) {
        giver_settle(c->giver);
        show_progress(c);
        session_turn(c->contact.session);
    }
    free(descriptor);
    if (c->contact.lost)
        c->status = STATUS_STORM;
    return c->status;
}

static int to_nodes(struct copy *c, char **paths, int count, const char *to, bool folder) {
    int r = survey(c, paths, count);
    struct session_config callbacks = {.patience_ns = PATIENCE_WAITING};
    if (r == 0)
        r = contact_begin(&c->contact, &callbacks);
    if (r != 0)
        return r;
    r = copy(c, to, !folder && to[1] != '\0');
    giver_free(c->giver);
    c->giver = NULL;
    contact_close(&c->contact);
    return r;
}

int cp_main(int argc, char **argv) {
    struct request q = {0};
    const struct option table[] = {
        {"tree", OPTION_TEXT, &q.sending.tree, "SHAPE",
         "chain, k-ary:N, binomial, flat, pair; otherwise as is best"},
        {"chunk", OPTION_TEXT, &q.sending.chunk, "SIZE",
         "of a piece, about; otherwise 128KiB or more"},
        {"slots", OPTION_NUMBER, &q.sending.slots, "N", "pieces that a node takes ahead"},
        {"verbose,v", OPTION_FLAG, &q.verbose, NULL, "say how it is done"},
        {"quiet,q", OPTION_FLAG, &q.quiet, NULL, "show no progress"},
        {"cluster", OPTION_TEXT, &q.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm cp [OPTIONS] FILE... NODES:PATH\n\n"
            "Copies files and folders to nodes: n3:/data, n[0-7]:/data, all:/data. A PATH that ends in a\n"
            "slash is a folder to put them in. A copy that was interrupted goes on where it was.");
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
    char *to = behind_nodes(argv[count]);
    if (to == NULL)
        return complain("cp", "%s: begin it with the nodes, for example all:/data/", argv[count]);
    if (to[0] != '/')
        return complain("cp", "%s: a path on a node begins with a slash", argv[count]);
    bool folder = count > 2 || to[strlen(to) - 1] == '/';
    if (!straighten(to))
        return complain("cp", "a path on a node is written without \"..\"");
    struct copy c = {.request = &q, .status = STATUS_OK};
    r = contact_find(&c.contact.cluster, q.cluster);
    if (r == 0)
        r = take_nodes(&c, argv[count], to);
    if (r == 0)
        r = to_nodes(&c, argv + 1, count - 1, to, folder);
    survey_free(c.survey);
    free(c.storage);
    return r;
}
