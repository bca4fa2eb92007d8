/* SPDX-License-Identifier: MIT */
/* storm cp: files of nodes, to other nodes or to here. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/cp.h"
#include "cli/terminal.h"

/* For a node to look its files over, which takes a while if they are large. */
#define PATIENCE_NS (120 * NS_PER_S)

/* Fetched at the same time. */
enum { FETCHES_MAX = 8 };

/* One node's files. */
struct arrival {
    bool answered, begun, over;
    uint64_t number; /* of the transfer */
    struct message_offered offered;
    uint8_t *descriptor;
};

struct fetch {
    struct cp *cp;
    struct arrival *arrivals; /* by node */
    uint32_t left;            /* nodes of which there is more to come */
    uint32_t under_way, good;
    bool apart; /* a folder for each */
    char to[4096];
    bool replace;
    uint64_t heard_ns;
};

/* ---- between nodes ---- */

struct between {
    struct cp *cp;
    bool here;
    int error;
    struct message_offered offered;
    uint8_t *descriptor;
};

static void on_one(void *context, const struct message_offered *m) {
    struct between *b = context;
    char name[CLUSTER_NODE_NAME_MAX];
    if (b->here)
        return;
    b->here = true;
    b->error = m->error;
    b->offered = *m;
    b->descriptor = malloc(m->descriptor.len + 1);
    if (b->descriptor == NULL || m->error != 0) {
        cluster_node_name(&b->cp->contact.cluster, m->node, name, sizeof name);
        complain("cp", "%s: %.*s", name, (int)m->text.len, (const char *)m->text.at);
        return;
    }
    memcpy(b->descriptor, m->descriptor.at, m->descriptor.len);
    b->offered.descriptor.at = b->descriptor;
}

static int ask(struct cp *c, const char *path, session_offered *then, void *context) {
    struct message_offer m = {.piece_bytes = (uint32_t)c->request->sending.chunk_bytes,
                              .pattern = strpbrk(path, "*?[") != NULL,
                              .set = &c->from,
                              .path = bytes_from_str(path)};
    int r = session_offer(c->contact.session, &m, then, context);
    if (r < 0)
        return complain("cp", "%s", strerror(-r));
    return 0;
}

int cp_between(struct cp *c, const char *path, const char *to, bool replace) {
    struct between b = {.cp = c};
    struct bundle bundle;
    uint64_t began = clock_ns();
    int r = ask(c, path, on_one, &b);
    while (r == 0 && !b.here && !c->over && !c->contact.lost && clock_ns() - began < PATIENCE_NS) {
        loop_wake_at(&c->contact.loop, began + PATIENCE_NS);
        session_turn(c->contact.session);
    }
    if (r == 0 && !b.here && !c->over) {
        complain("cp", "%s: the node does not answer", path);
        r = STATUS_STORM;
    }
    if (r == 0 && strcmp(path, to) == 0)
        nodeset_subtract(&c->set, &c->from); /* it is there already */
    c->offer = b.offered.offer;
    if (r == 0 && b.here && b.error == 0 && bundle_decode(b.offered.descriptor, &bundle) == 0 &&
        !nodeset_empty(&c->set))
        r = cp_send(c, b.offered.node, &bundle, to, replace);
    else if (r == 0)
        r = b.error != 0 ? STATUS_FAILED : c->status;
    free(b.descriptor);
    return r;
}

/* ---- to here ---- */

static void blame(struct fetch *f, uint32_t node, int error, struct bytes text) {
    char name[CLUSTER_NODE_NAME_MAX];
    cluster_node_name(&f->cp->contact.cluster, node, name, sizeof name);
    if (text.len > 0)
        complain("cp", "%s: %.*s", name, (int)text.len, (const char *)text.at);
    else
        complain("cp", "%s: %s", name, strerror(-error));
    f->cp->status = STATUS_FAILED;
}

static void is_over(struct fetch *f, uint32_t node, int error, struct bytes text) {
    struct arrival *a = &f->arrivals[node];
    if (a->over)
        return;
    a->over = true;
    f->left--;
    f->heard_ns = clock_ns();
    if (error != 0)
        blame(f, node, error, text);
    else
        f->good++;
}

static void on_offered(void *context, const struct message_offered *m) {
    struct fetch *f = context;
    if (m->node >= f->cp->contact.cluster.nodes || !nodeset_has(&f->cp->from, m->node) ||
        f->arrivals[m->node].answered)
        return;
    struct arrival *a = &f->arrivals[m->node];
    f->heard_ns = clock_ns();
    a->answered = true;
    if (m->error != 0) {
        is_over(f, m->node, m->error, m->text);
        return;
    }
    a->offered = *m;
    a->descriptor = malloc(m->descriptor.len + 1);
    ASSERT(a->descriptor != NULL);
    memcpy(a->descriptor, m->descriptor.at, m->descriptor.len);
    a->offered.descriptor.at = a->descriptor;
}

static void on_arrived(void *context, const struct message_arrived *m) {
    struct fetch *f = context;
    NODESET_EACH (n, &f->cp->from)
        if (f->arrivals[n].begun && f->arrivals[n].number == m->transfer)
            is_over(f, n, m->error, m->text);
}

static void begin(struct fetch *f, uint32_t node) {
    struct arrival *a = &f->arrivals[node];
    char to[4096 + CLUSTER_NODE_NAME_MAX + 1], name[CLUSTER_NODE_NAME_MAX];
    cluster_node_name(&f->cp->contact.cluster, node, name, sizeof name);
    snprintf(to, sizeof to, f->apart ? "%s/%s" : "%s", f->to, name);
    a->begun = true;
    f->under_way++;
    a->number = giver_fetch(f->cp->giver, &a->offered, to, f->replace);
    if (a->number == 0)
        is_over(f, node, -EBADMSG, (struct bytes){0});
}

/* Begins what can begin; what is over is let go. */
static void serve(struct fetch *f) {
    NODESET_EACH (n, &f->cp->from) {
        struct arrival *a = &f->arrivals[n];
        if (a->begun && a->over && a->number != 0) {
            giver_fetched(f->cp->giver, a->number);
            a->number = 0;
            f->under_way--;
        }
        if (a->answered && !a->begun && !a->over && f->under_way < FETCHES_MAX)
            begin(f, n);
    }
}

/* The folder must be there, unless one file is to have that name. */
static int find_folder(struct fetch *f, const char *to) {
    struct stat st;
    size_t len = strlen(to);
    bool slash = len > 0 && to[len - 1] == '/';
    bool there = stat(to, &st) == 0 && S_ISDIR(st.st_mode);
    char here[2048] = "";
    f->apart = nodeset_count(&f->cp->from) > 1;
    f->replace = !f->apart && !there && !slash;
    if (*to != '/' && getcwd(here, sizeof here) == NULL)
        return complain("cp", "this folder: %s", strerror(errno));
    int n = snprintf(f->to, sizeof f->to, "%s%s%s", here, *to != '/' ? "/" : "", to);
    if (n >= (int)sizeof f->to)
        return complain("cp", "%s: the name is too long", to);
    while (n > 1 && f->to[n - 1] == '/')
        f->to[--n] = '\0';
    return 0;
}

static void show(struct fetch *f) {
    char line[80];
    uint64_t now = clock_ns();
    if (f->cp->request->quiet || now - f->cp->shown_ns < 100 * NS_PER_MS)
        return;
    f->cp->shown_ns = now;
    snprintf(line, sizeof line, "%" PRIu32 " of %" PRIu32 " nodes", f->good,
             nodeset_count(&f->cp->from));
    terminal_progress(line);
}

static void wait_for_all(struct fetch *f) {
    struct cp *c = f->cp;
    f->heard_ns = clock_ns();
    while (f->left > 0 && !c->over && !c->contact.lost) {
        giver_settle(c->giver);
        serve(f);
        giver_settle(c->giver);
        show(f);
        if (f->under_way == 0 && clock_ns() - f->heard_ns > PATIENCE_NS)
            break;
        loop_wake_at(&c->contact.loop, f->heard_ns + PATIENCE_NS);
        if (f->left > 0)
            session_turn(c->contact.session);
    }
    terminal_progress(NULL);
}

int cp_fetch(struct cp *c, const char *path, const char *to) {
    char why[256];
    struct fetch f = {.cp = c, .left = nodeset_count(&c->from)};
    struct giver_fetches fetches = {.arrived = on_arrived, .context = &f};
    int r = find_folder(&f, to);
    if (r != 0)
        return r;
    f.arrivals = calloc(c->contact.cluster.nodes, sizeof *f.arrivals);
    if (f.arrivals == NULL)
        return complain("cp", "%s", strerror(ENOMEM));
    r = giver_new(&c->contact.loop, &c->contact.cluster, &fetches, &c->giver, why);
    if (r < 0) {
        complain("cp", "%s", why);
        c->status = STATUS_STORM;
    } else if ((r = cp_prepare(c)) != 0) {
        c->status = r;
    } else if ((r = ask(c, path, on_offered, &f)) == 0) {
        wait_for_all(&f);
    }
    NODESET_EACH (n, &c->from) {
        if (r == 0 && !f.arrivals[n].over && !c->over)
            blame(&f, n, -ETIMEDOUT, bytes_from_str("the node does not answer"));
        free(f.arrivals[n].descriptor);
    }
    free(f.arrivals);
    return c->contact.lost ? STATUS_STORM : c->status;
}
