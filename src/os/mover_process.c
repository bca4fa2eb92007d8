/* SPDX-License-Identifier: MIT */
/* The process of a node's file mover: see mover_process.h. */
#include "os/mover_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"
#include "os/child.h"
#include "os/guide.h"
#include "os/plan.h"
#include "os/porter.h"

enum { FD_LISTENER = 3, FD_FAR_LISTENER, FD_FIRST_OTHER };

/* Beside sixteen programs that compute, on two processors, a launch with a program of 12 MB takes half as long so. */

/* A manager that has not come by then never will. */
#define HOST_NS (10 * NS_PER_S)

/* That of the manager who was here before may still be dying. */
#define LAST_NS (4 * NS_PER_S)
#define LOOK_MS 10

/* 0 or -errno: it is tried again when there is something to move. */
static int listen_here(struct mover_process *p) {
    enum transport links = p->config.asks ? TRANSPORT_UNIX : p->config.links;
    struct address here = plan_mover(p->config.self, links, p->config.host);
    if (p->listener < 0)
        p->listener = address_listen(&here);
    return p->listener < 0 ? p->listener : 0;
}

void mover_process_init(struct mover_process *p, const struct mover_process_config *c) {
    *p = (struct mover_process){.config = *c, .listener = -1, .pidfd = {.fd = -1}};
    listen_here(p);
}

/* ---- in the new process ---- */

struct errands {
    bool met; /* the manager has been here */
    bool over;
};

static void on_host(void *context, bool there) {
    struct errands *e = context;
    e->met = e->met || there;
    e->over = !there;
}

static const struct address *make_book(const struct mover_process_config *c) {
    struct address *book = calloc((size_t)c->nodes + 1, sizeof *book);
    if (book != NULL && c->asks) {
        book[c->nodes] = c->manager;
        return book;
    }
    for (uint32_t i = 0; book != NULL && i <= c->nodes; i++)
        book[i] = plan_mover(i, c->links, c->host);
    return book;
}

/* NULL: there is none to be asked. */
static struct guide *find_guide(const struct mover_process_config *c) {
    const struct guide_config config = {
        .key = c->secret, .self = c->self, .nodes = c->nodes, .listens = true, .files = true};
    struct guide *g = NULL;
    if (c->asks && guide_new(&config, &g) < 0)
        _exit(1);
    return g;
}

/* Until nobody uses the spool. The lock is the depot's: it takes it then. */
static void await_last(const char *spool) {
    char path[48];
    uint64_t deadline = clock_ns() + LAST_NS;
    snprintf(path, sizeof path, "%s/lock", spool);
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && clock_ns() < deadline)
        poll(NULL, 0, LOOK_MS);
    if (fd >= 0)
        close(fd);
}

static _Noreturn void live(const struct mover_process_config *c) {
    char spool[32], root[32], diary[48], why[256], source[INET_ADDRSTRLEN];
    int error = 0;
    struct loop loop;
    struct errands errands = {0};
    snprintf(spool, sizeof spool, "n%" PRIu32 "/spool", c->self);
    snprintf(root, sizeof root, "n%" PRIu32 "/root", c->self);
    plan_fabric(c->links, c->host, source);
    snprintf(diary, sizeof diary, "%s/diary", spool);
    mkdir(root, 0700); /* if that fails the depot says why */
    struct depot_config depot = {
        .spool = spool, .root = root, .top = c->top, .cache_bytes = c->cache_bytes};
    if (loop_init(&loop) < 0)
        _exit(1);
    struct porter_config config = {.loop = &loop,
                                   .self = c->self,
                                   .universe = c->nodes + 1,
                                   .life = (uint32_t)getpid(),
                                   .key = {c->key[0], c->key[1]},
                                   .book = make_book(c),
                                   .listener = c->asks ? FD_FAR_LISTENER : FD_LISTENER,
                                   .near_listener = c->asks ? FD_LISTENER : -1,
                                   .guide = find_guide(c),
                                   .depot = &depot,
                                   .digest =
                                       c->links == TRANSPORT_TCP ? DIGEST_SHA256 : DIGEST_XXH3,
                                   .source = source,
                                   .diary = diary,
                                   .host = on_host,
                                   .context = &errands};
    await_last(spool);
    struct porter *p = porter_new(&config, &error, why);
    if (p == NULL) {
        fprintf(stderr, "n%" PRIu32 ": files: %s\n", c->self, why);
        _exit(1);
    }
    uint64_t deadline = clock_ns() + HOST_NS;
    porter_settle(p);
    while ((!errands.over || porter_giving(p)) && (errands.met || loop.now < deadline)) {
        if (!errands.met)
            loop_wake_at(&loop, deadline);
        loop_turn(&loop, -1);
        porter_settle(p);
    }
    porter_free(p);
    _exit(0);
}

/* ---- in the manager ---- */

static void on_end(struct source *s, uint32_t events) {
    struct mover_process *p = CONTAINER_OF(s, struct mover_process, pidfd);
    (void)events;
    loop_remove(p->loop, s);
    close(s->fd);
    s->fd = -1;
    waitpid(p->pid, NULL, WNOHANG);
    if (p->asked)
        mover_process_start(p, p->loop);
}

/* Out of the way of the places first. */
static void place_listeners(const struct mover_process *p) {
    int near = fcntl(p->listener, F_DUPFD_CLOEXEC, FD_FIRST_OTHER);
    int far = p->config.asks ? fcntl(p->config.far_listener, F_DUPFD_CLOEXEC, FD_FIRST_OTHER) : -1;
    child_place(near, FD_LISTENER, O_CLOEXEC);
    if (far >= 0)
        child_place(far, FD_FAR_LISTENER, O_CLOEXEC);
    child_close_from(far >= 0 ? FD_FIRST_OTHER : FD_FAR_LISTENER);
}

int mover_process_start(struct mover_process *p, struct loop *loop) {
    pid_t parent = getpid();
    p->asked = p->pidfd.fd >= 0;
    int r = p->asked ? 0 : listen_here(p);
    if (p->asked || r < 0)
        return r;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        char name[16];
        child_follow(parent);
        child_forget_signals();
        place_listeners(p);
        snprintf(name, sizeof name, "storm-fm n%" PRIu32, p->config.self);
        prctl(PR_SET_NAME, name);
        live(&p->config);
    }
    p->pid = pid;
    p->loop = loop;
    p->pidfd = (struct source){.fd = (int)syscall(SYS_pidfd_open, pid, 0), .ready = on_end};
    if (p->pidfd.fd < 0 || loop_add(loop, &p->pidfd, EPOLLIN) < 0)
        return -errno;
    return 0;
}
