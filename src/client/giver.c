/* SPDX-License-Identifier: MIT */
/* A command that gives files: see giver.h. */
#include "client/giver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "client/keys.h"
#include "os/files.h"
#include "os/guide.h"
#include "os/plan.h"
#include "rm/spread.h"

struct giver {
    struct porter *porter;
    struct address *book;
    struct guide *guide;                            /* NULL: the book tells all */
    int folder;                                     /* the cluster's */
    char path[CLUSTER_PATH_MAX + ADDRESS_TEXT_MAX]; /* of the socket; "": none */
    char address[ADDRESS_TEXT_MAX];
    char spool[CLUSTER_PATH_MAX + 48]; /* of what is fetched; "": none */
    struct giver_fetches fetches;
    char fabric[FABRIC_NAME_MAX + 1]; /* "": streams */
    char source[INET_ADDRSTRLEN];
    giver_counted *counted;
    void *counted_context;
};

static void on_arrived(void *context, const struct message_arrived *a) {
    const struct giver *g = context;
    if (g->fetches.arrived != NULL)
        g->fetches.arrived(g->fetches.context, a);
}

static void on_counted(void *context, uint32_t node, const struct message_counted *m) {
    const struct giver *g = context;
    if (g->counted != NULL)
        g->counted(g->counted_context, node, m);
}

static uint64_t draw(void) {
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = 0;
    return number;
}

/* Does nobody listen there any more? */
static bool deserted(const char *name) {
    char text[ADDRESS_TEXT_MAX];
    struct address a;
    int done = 0;
    snprintf(text, sizeof text, "unix:%.100s", name);
    int fd = address_parse(&a, text) < 0 ? -EINVAL : address_connect(&a, &done);
    if (fd >= 0)
        close(fd);
    return fd == -ECONNREFUSED;
}

/* Sockets of commands that were killed. One that was just made has a process, but does not listen yet. */
static void sweep(void) {
    DIR *dir = opendir(".");
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char *end;
        long pid = e->d_name[0] == 'c' ? strtol(e->d_name + 1, &end, 10) : 0;
        if (pid > 0 && *end == '-' && kill((pid_t)pid, 0) < 0 && errno == ESRCH &&
            deserted(e->d_name))
            unlink(e->d_name);
    }
    closedir(dir);
}

/* In the cluster's folder, which is where daemons take relative names from. The folder may be deeper than an
 * address can hold: so we listen from inside it. */
static int listen_local(struct giver *g, const struct cluster *c) {
    char folder[CLUSTER_PATH_MAX], here[CLUSTER_PATH_MAX];
    int r = cluster_folder(c->name, folder, sizeof folder);
    if (r < 0)
        return r;
    struct address a;
    snprintf(g->address, sizeof g->address, "unix:c%d-%08" PRIx32 ".sock", (int)getpid(),
             (uint32_t)draw());
    r = address_parse(&a, g->address);
    if (r < 0)
        return r;
    if (getcwd(here, sizeof here) == NULL || chdir(folder) < 0)
        return -errno;
    int fd = address_listen(&a);
    sweep();
    if (chdir(here) < 0)
        return -errno;
    snprintf(g->path, sizeof g->path, "%s/%s", folder, a.local.sun_path);
    return fd;
}

/* Where the nodes reach us, as the manager does; and who we are, if they are to have a key to us. */
static int listen_tcp(struct giver *g, const struct cluster *c) {
    struct address a;
    int r = address_towards(&c->manager, &a);
    int fd = r < 0 ? r : address_listen(&a);
    if (fd < 0)
        return fd;
    address_format(&a, g->address, sizeof g->address);
    size_t len = strlen(g->address);
    if (c->sealed)
        snprintf(g->address + len, sizeof g->address - len, "#%" PRIu64, guide_client(g->guide));
    return fd;
}

/* Daemons name their sockets from inside the cluster's folder; we do so through a descriptor of it, which fits into an
 * address however deep the folder is. */
static void from_outside(struct address *a, int folder) {
    char text[ADDRESS_TEXT_MAX];
    snprintf(text, sizeof text, "unix:/proc/self/fd/%d/%.40s", folder, a->local.sun_path);
    int r = address_parse(a, text);
    ASSERT(r == 0);
}

static int make_book(struct giver *g, const struct cluster *c) {
    char path[CLUSTER_PATH_MAX];
    struct in_addr host = {0};
    g->book = calloc((size_t)c->nodes + 1, sizeof *g->book);
    int r = g->book == NULL ? -ENOMEM : cluster_folder(c->name, path, sizeof path);
    if (r < 0)
        return r;
    g->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (g->folder < 0)
        return -errno;
    if (c->links == TRANSPORT_TCP && c->manager.any.sa_family == AF_INET)
        host = c->manager.in.sin_addr;
    plan_fabric(c->links, host, g->source);
    if (c->asks) {
        g->book[c->nodes] = c->manager;
        return keys_guide(c, true, &g->guide);
    }
    for (uint32_t i = 0; i <= c->nodes; i++) {
        g->book[i] = plan_mover(i, c->links, host);
        if (c->links == TRANSPORT_UNIX)
            from_outside(&g->book[i], g->folder);
    }
    return 0;
}

/* What comes is written beside where it goes; of the spool little is used, and nothing is left. */
static void make_spool(struct giver *g) {
    char home[CLUSTER_PATH_MAX];
    if (cluster_home(home, sizeof home) == 0)
        snprintf(g->spool, sizeof g->spool, "%s/fetch-%d-%08" PRIx32, home, (int)getpid(),
                 (uint32_t)draw());
}

int giver_new(struct loop *loop, const struct cluster *cluster, const struct giver_fetches *fetches,
              struct giver **ret, char why[256]) {
    struct giver *g = calloc(1, sizeof *g);
    int r = -ENOMEM, fd = -1;
    snprintf(why, 256, "%s", strerror(ENOMEM));
    if (g == NULL)
        return r;
    g->folder = -1;
    r = make_book(g, cluster);
    fd = r < 0                              ? r
         : cluster->links == TRANSPORT_UNIX ? listen_local(g, cluster)
                                            : listen_tcp(g, cluster);
    if (fd < 0)
        snprintf(why, 256, "%s: %s", g->address, strerror(-fd));
    struct porter_config config = {.loop = loop,
                                   .self = NO_NODE,
                                   .universe = cluster->nodes + 1,
                                   .life = (uint32_t)draw(),
                                   .key = {cluster->key[0], cluster->key[1]},
                                   .book = g->book,
                                   .near = cluster->near.len > 0 ? &cluster->near : NULL,
                                   .guide = g->guide,
                                   .listener = fd,
                                   .source = g->source,
                                   .arrived = on_arrived,
                                   .counted = on_counted,
                                   .context = g};
    char diary[CLUSTER_PATH_MAX + 8], folder[CLUSTER_PATH_MAX];
    if (cluster_folder(cluster->name, folder, sizeof folder) == 0) {
        snprintf(diary, sizeof diary, "%s/diary", folder);
        config.diary = diary;
    }
    struct depot_config depot = {.spool = g->spool, .root = "/", .cache_bytes = MIB};
    if (fetches != NULL) {
        make_spool(g);
        config.depot = &depot;
        g->fetches = *fetches;
    }
    signal(SIGPIPE,
           SIG_IGN); /* a taker dies while a file is sent to it: sendfile has no word for that */
    r = fd;
    if (fd >= 0)
        g->porter = porter_new(&config, &r, why);
    if (g->porter == NULL) {
        giver_free(g);
        return r < 0 ? r : -ENOMEM;
    }
    *ret = g;
    return 0;
}

void giver_free(struct giver *g) {
    if (g == NULL)
        return;
    porter_free(g->porter);
    guide_free(g->guide);
    if (g->path[0] != '\0')
        unlink(g->path);
    if (g->spool[0] != '\0')
        files_remove(AT_FDCWD, g->spool);
    free(g->book);
    if (g->folder >= 0)
        close(g->folder);
    free(g);
}

void giver_ready(const struct giver *g) {
    if (g->guide != NULL)
        guide_ready(g->guide); /* if it does not work nobody can come */
}

uint64_t giver_offer(struct giver *g, struct survey *s) {
    return porter_offer(g->porter, s);
}

uint64_t giver_fetch(struct giver *g, const struct message_offered *o, const char *to,
                     bool replace) {
    uint64_t storage = 0, number = draw();
    struct nodeset none;
    struct bundle b;
    if (bundle_decode(o->descriptor, &b) < 0)
        return 0;
    b.goal = GOAL_PATH;
    b.replace = replace;
    b.to = bytes_from_str(to);
    size_t cap = bundle_room(&b);
    uint8_t *descriptor = malloc(cap);
    ASSERT(descriptor != NULL);
    long len = bundle_encode(&b, room_of(descriptor, cap));
    nodeset_init(&none, 1, &storage);
    union message m = {.transfer = {.transfer = number,
                                    .offer = o->offer,
                                    .source = o->node,
                                    .shape = SPREAD_FLAT,
                                    .slots = 8,
                                    .set = &none,
                                    .fabric = bytes_from_str(g->fabric),
                                    .descriptor = bytes_of(descriptor, len < 0 ? 0 : (size_t)len)}};
    bool fits = len > 0 && bundle_decode(m.transfer.descriptor, &b) == 0;
    if (fits)
        porter_order(g->porter, MESSAGE_TRANSFER, &m);
    free(descriptor);
    return fits ? number : 0;
}

void giver_fetched(struct giver *g, uint64_t number) {
    uint8_t bytes[8];
    store_le64(bytes, number);
    union message m = {.enough = {.transfers = bytes_of(bytes, sizeof bytes)}};
    porter_order(g->porter, MESSAGE_ENOUGH, &m);
}

int giver_prepare(struct giver *g, const char *fabric, char why[256]) {
    int r = porter_prepare(g->porter, bytes_from_str(fabric), why);
    if (r == 0)
        snprintf(g->fabric, sizeof g->fabric, "%s", fabric);
    return r;
}

void giver_counts(const struct giver *g, uint64_t offer, struct message_counted *ret) {
    porter_counts(g->porter, offer, ret);
}

void giver_count(struct giver *g, const struct nodeset *set, uint64_t offer, giver_counted *counted,
                 void *context) {
    g->counted = counted;
    g->counted_context = context;
    NODESET_EACH (n, set)
        porter_count(g->porter, n, offer);
}

struct bytes giver_address(const struct giver *g) {
    return bytes_from_str(g->address);
}

struct diary *giver_diary(struct giver *g) {
    return porter_diary(g->porter);
}

void giver_settle(struct giver *g) {
    porter_settle(g->porter);
}

bool giver_look(const struct giver *g, uint64_t offer, struct mover_view *ret) {
    return mover_look(porter_mover(g->porter), offer, ret);
}
