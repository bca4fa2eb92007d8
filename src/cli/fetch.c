/* SPDX-License-Identifier: MIT */
/* Files of nodes, brought here: see fetch.h. */
#include "cli/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/terminal.h"

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
    const struct fetch_order *order;
    struct fetch_outcome *outcome;
    struct giver *giver;
    struct arrival *arrivals; /* by node */
    uint32_t left;            /* nodes of which there is more to come */
    uint32_t under_way;
    uint64_t heard_ns, shown_ns;
};

int fetch_ask(struct session *s, const struct nodeset *from, const char *path, uint32_t chunk_bytes,
              session_offered *then, void *context) {
    struct message_offer m = {.piece_bytes = chunk_bytes,
                              .pattern = strpbrk(path, "*?[") != NULL,
                              .set = (struct nodeset *)from,
                              .path = bytes_from_str(path)};
    return session_offer(s, &m, then, context);
}

/* Adds what is not there yet to what is: without parts that say nothing, or lead back. */
static int append(char *out, size_t cap, const char *rest) {
    size_t len = strcmp(out, "/") == 0 ? 0 : strlen(out);
    while (*(rest += strspn(rest, "/")) != '\0') {
        size_t part = strcspn(rest, "/");
        if (part == 2 && strncmp(rest, "..", 2) == 0)
            return -ENOENT;
        if (len + part + 2 > cap)
            return -ENAMETOOLONG;
        if (part != 1 || *rest != '.') {
            out[len++] = '/';
            memcpy(out + len, rest, part);
            len += part;
            out[len] = '\0';
        }
        rest += part;
    }
    return 0;
}

/* As much of it as is there is resolved: nothing is written through links. */
int fetch_path(const char *path, char *out, size_t cap) {
    char there[PATH_MAX], real[PATH_MAX];
    size_t len = strlen(path);
    if (len >= sizeof there || len == 0)
        return len == 0 ? -ENOENT : -ENAMETOOLONG;
    for (;;) {
        snprintf(there, sizeof there, "%.*s", (int)len, path);
        if (realpath(len == 0 ? "." : there, real) != NULL)
            break;
        if (errno != ENOENT || len == 0)
            return -errno;
        while (len > 0 && path[len - 1] == '/')
            len--;
        while (len > 0 && path[len - 1] != '/')
            len--;
    }
    if (snprintf(out, cap, "%s", real) >= (int)cap)
        return -ENAMETOOLONG;
    return append(out, cap, path + len);
}

static void blame(struct fetch *f, uint32_t node, int error, struct bytes text) {
    char name[CLUSTER_NODE_NAME_MAX];
    cluster_node_name(&f->order->contact->cluster, node, name, sizeof name);
    f->outcome->bad++;
    if (text.len > 0)
        complain(f->order->who, "%s: %.*s", name, (int)text.len, (const char *)text.at);
    else
        complain(f->order->who, "%s: %s", name, strerror(-error));
}

static void is_over(struct fetch *f, uint32_t node, int error, struct bytes text) {
    struct arrival *a = &f->arrivals[node];
    if (a->over)
        return;
    a->over = true;
    f->left--;
    f->heard_ns = clock_ns();
    if (error == 0)
        f->outcome->good++;
    else if (error == -ENOENT && !a->begun && f->order->lenient)
        f->outcome->none++;
    else
        blame(f, node, error, text);
}

static void on_offered(void *context, const struct message_offered *m) {
    struct fetch *f = context;
    if (m->node >= f->order->contact->cluster.nodes || !nodeset_has(f->order->from, m->node) ||
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
    NODESET_EACH (n, f->order->from)
        if (f->arrivals[n].begun && f->arrivals[n].number == m->transfer)
            is_over(f, n, m->error, m->text);
}

static void begin(struct fetch *f, uint32_t node) {
    struct arrival *a = &f->arrivals[node];
    char to[4096 + CLUSTER_NODE_NAME_MAX + 1], name[CLUSTER_NODE_NAME_MAX];
    cluster_node_name(&f->order->contact->cluster, node, name, sizeof name);
    snprintf(to, sizeof to, f->order->apart ? "%s/%s" : "%s", f->order->to, name);
    a->begun = true;
    f->under_way++;
    a->number = giver_fetch(f->giver, &a->offered, to, f->order->replace);
    if (a->number != 0)
        return;
    f->under_way--;
    is_over(f, node, -EBADMSG, (struct bytes){0});
}

/* Begins what can begin; what is over is let go. */
static void serve(struct fetch *f) {
    NODESET_EACH (n, f->order->from) {
        struct arrival *a = &f->arrivals[n];
        if (a->begun && a->over && a->number != 0) {
            giver_fetched(f->giver, a->number);
            a->number = 0;
            f->under_way--;
        }
        if (a->answered && !a->begun && !a->over && f->under_way < FETCHES_MAX)
            begin(f, n);
    }
}

static void show(struct fetch *f) {
    char line[80];
    uint64_t now = clock_ns();
    if (f->order->quiet || now - f->shown_ns < 100 * NS_PER_MS)
        return;
    f->shown_ns = now;
    snprintf(line, sizeof line, "%" PRIu32 " of %" PRIu32 " nodes", f->outcome->good,
             nodeset_count(f->order->from));
    terminal_progress(line);
}

static void wait_for_all(struct fetch *f) {
    const struct fetch_order *o = f->order;
    f->heard_ns = clock_ns();
    while (f->left > 0 && !o->stopped(o->context)) {
        giver_settle(f->giver);
        serve(f);
        giver_settle(f->giver);
        show(f);
        if (f->under_way == 0 && clock_ns() - f->heard_ns > FETCH_PATIENCE_NS)
            break;
        loop_wake_at(&o->contact->loop, f->heard_ns + FETCH_PATIENCE_NS);
        if (f->left > 0)
            session_turn(o->contact->session);
    }
    terminal_progress(NULL);
}

static int begin_all(struct fetch *f) {
    const struct fetch_order *o = f->order;
    struct giver_fetches fetches = {.arrived = on_arrived, .context = f};
    char why[256];
    int r = giver_new(&o->contact->loop, &o->contact->cluster, &fetches, &f->giver, why);
    if (r < 0) {
        complain(o->who, "%s", why);
        return STATUS_STORM;
    }
    static const struct sending usual;
    const struct sending *s = o->sending == NULL ? &usual : o->sending;
    char fabric[FABRIC_NAME_MAX + 1];
    r = sending_prepare(s, o->who, &o->contact->cluster, f->giver, fabric);
    if (r != 0)
        return r;
    r = fetch_ask(o->contact->session, o->from, o->path, (uint32_t)s->chunk_bytes, on_offered, f);
    return r < 0 ? complain(o->who, "%s", strerror(-r)) : 0;
}

int fetch_files(const struct fetch_order *o, struct fetch_outcome *ret) {
    *ret = (struct fetch_outcome){0};
    struct fetch f = {.order = o, .outcome = ret, .left = nodeset_count(o->from)};
    f.arrivals = calloc(o->contact->cluster.nodes, sizeof *f.arrivals);
    ASSERT(f.arrivals != NULL);
    int r = begin_all(&f);
    if (r == 0)
        wait_for_all(&f);
    NODESET_EACH (n, o->from) {
        if (r == 0 && !f.arrivals[n].over && !o->stopped(o->context))
            blame(&f, n, -ETIMEDOUT, bytes_from_str("the node does not answer"));
        free(f.arrivals[n].descriptor);
    }
    free(f.arrivals);
    session_offer_end(o->contact->session, &f);
    giver_free(f.giver);
    return r;
}
