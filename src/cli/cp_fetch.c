/* SPDX-License-Identifier: MIT */
/* storm cp: files of nodes, to other nodes or to here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/cp.h"
#include "cli/fetch.h"

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

int cp_between(struct cp *c, const char *path, const char *to, bool replace) {
    struct between b = {.cp = c};
    struct bundle bundle;
    uint64_t began = clock_ns();
    int r = fetch_ask(c->contact.session, &c->from, path, (uint32_t)c->request->sending.chunk_bytes,
                      on_one, &b);
    if (r < 0)
        r = complain("cp", "%s", strerror(-r));
    while (r == 0 && !b.here && !c->over && !c->contact.lost &&
           clock_ns() - began < FETCH_PATIENCE_NS) {
        loop_wake_at(&c->contact.loop, began + FETCH_PATIENCE_NS);
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

/* The folder must be there, unless one file is to have that name. */
static int find_folder(struct cp *c, struct fetch_order *f, const char *to, char out[4096]) {
    struct stat st;
    size_t len = strlen(to);
    bool slash = len > 0 && to[len - 1] == '/';
    bool there = stat(to, &st) == 0 && S_ISDIR(st.st_mode);
    f->apart = nodeset_count(&c->from) > 1;
    f->replace = !f->apart && !there && !slash;
    f->to = out;
    int r = fetch_path(to, out, 4096);
    if (r < 0)
        return complain("cp", "%s: %s", to, strerror(-r));
    return 0;
}

static bool is_stopped(void *context) {
    const struct cp *c = context;
    return c->over || c->contact.lost;
}

int cp_fetch(struct cp *c, const char *path, const char *to) {
    char here[4096];
    struct fetch_outcome all;
    struct fetch_order f = {.who = "cp",
                            .contact = &c->contact,
                            .from = &c->from,
                            .path = path,
                            .sending = &c->request->sending,
                            .quiet = c->request->quiet,
                            .stopped = is_stopped,
                            .context = c};
    int r = find_folder(c, &f, to, here);
    if (r != 0)
        return r;
    r = fetch_files(&f, &all);
    if (c->status == 0)
        c->status = r != 0 ? r : all.bad > 0 ? STATUS_FAILED : 0;
    return c->contact.lost ? STATUS_STORM : c->status;
}
