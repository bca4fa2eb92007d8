/* SPDX-License-Identifier: MIT */
/* A command that gives files: see giver.h. */
#include "client/giver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/plan.h"
#include "rm/spread.h"

struct giver {
    struct porter *porter;
    struct address *book;
    char path[CLUSTER_PATH_MAX + ADDRESS_TEXT_MAX]; /* of the socket; "": none */
    char address[ADDRESS_TEXT_MAX];
};

static uint64_t draw(void) {
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = 0;
    return number;
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
    if (chdir(here) < 0)
        return -errno;
    snprintf(g->path, sizeof g->path, "%s/%s", folder, a.local.sun_path);
    return fd;
}

static int listen_tcp(struct giver *g, const struct cluster *c) {
    struct address a = c->manager;
    if (a.any.sa_family == AF_INET)
        a.in.sin_port = 0;
    else
        a.in6.sin6_port = 0;
    int fd = address_listen(&a);
    if (fd >= 0)
        address_format(&a, g->address, sizeof g->address);
    return fd;
}

static struct address *make_book(const struct cluster *c) {
    struct address *book = calloc((size_t)c->nodes + 1, sizeof *book);
    struct in_addr host = {0};
    if (c->links == TRANSPORT_TCP)
        host = c->manager.in.sin_addr;
    for (uint32_t i = 0; book != NULL && i <= c->nodes; i++)
        book[i] = plan_mover(i, c->links, host);
    return book;
}

int giver_new(struct loop *loop, const struct cluster *cluster, struct giver **ret, char why[256]) {
    struct giver *g = calloc(1, sizeof *g);
    int r = -ENOMEM, fd = -1;
    snprintf(why, 256, "%s", strerror(ENOMEM));
    if (g == NULL)
        return r;
    g->book = make_book(cluster);
    fd = cluster->links == TRANSPORT_UNIX ? listen_local(g, cluster) : listen_tcp(g, cluster);
    if (fd < 0)
        snprintf(why, 256, "%s: %s", g->address, strerror(-fd));
    struct porter_config config = {.loop = loop,
                                   .self = NO_NODE,
                                   .universe = cluster->nodes + 1,
                                   .life = (uint32_t)draw(),
                                   .key = {cluster->key[0], cluster->key[1]},
                                   .book = g->book,
                                   .listener = fd};
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
    if (g->path[0] != '\0')
        unlink(g->path);
    free(g->book);
    free(g);
}

uint64_t giver_offer(struct giver *g, struct survey *s) {
    return porter_offer(g->porter, s);
}

struct bytes giver_address(const struct giver *g) {
    return bytes_from_str(g->address);
}

void giver_settle(struct giver *g) {
    porter_settle(g->porter);
}

bool giver_look(const struct giver *g, uint64_t offer, struct mover_view *ret) {
    return mover_look(porter_mover(g->porter), offer, ret);
}
