/* SPDX-License-Identifier: MIT */
/* Node processes on this machine: see crew.h. */
#include "os/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"

/* Descriptors of a node's process: these and no others are inherited. */
enum { FD_LISTENER = 3, FD_POKE, FD_BELL, FD_FIRST_OTHER };

enum { PORT_FIRST = 20000 };

/* What the parent knows of a process. */
struct hand {
    pid_t pid; /* 0: none runs */
    int pidfd;
    int listener; /* until the process has it; -1 later, then it makes one itself */
    int poke;
    uint32_t lives;
};

struct crew {
    struct crew_config config;
    uint32_t count; /* nodes and seats */
    char folder[PATH_MAX];
    bool folder_ours;
    uint64_t key[2];
    int epoll;
    int bell;
    struct hand *hands;
    struct address *book;
    /* shared with the processes */
    uint8_t *heaps;
    size_t heap_stride;
    struct life_counts *counts;
    size_t shared_bytes;
};

static int complain(const char *what, int error) {
    fprintf(stderr, "storm: %s: %s\n", what, strerror(-error));
    return error;
}

/* ---- addresses ---- */

/* An address of this cluster's own on the loopback network: its ports are never in the way of, nor
 * taken by, connections that others make. */
static void draw_loopback(struct address *a) {
    uint8_t draw[3];
    ssize_t got = getrandom(draw, sizeof draw, 0);
    ASSERT(got == sizeof draw);
    uint32_t ip =
        127U << 24 | (64U + draw[0] % 64) << 16 | (uint32_t)draw[1] << 8 | (1U + draw[2] % 254);
    a->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(ip)};
    a->len = sizeof a->in;
}

static int listen_tcp(struct crew *c, uint32_t node, const struct address *host) {
    struct address *a = &c->book[node];
    *a = *host;
    a->in.sin_port = htons((uint16_t)(PORT_FIRST + node));
    int fd = address_listen(a);
    if (fd != -EADDRNOTAVAIL)
        return fd;
    a->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* there is only the usual one */
    a->in.sin_port = 0;
    return address_listen(a);
}

static int listen_unix(struct crew *c, uint32_t node) {
    char text[PATH_MAX + 32];
    snprintf(text, sizeof text, "unix:%s/n%u.sock", c->folder, node);
    int r = address_parse(&c->book[node], text);
    return r < 0 ? r : address_listen(&c->book[node]);
}

static int listen_all(struct crew *c) {
    struct address host;
    draw_loopback(&host);
    for (uint32_t i = 0; i < c->count; i++) {
        int fd = c->config.links == CREW_TCP ? listen_tcp(c, i, &host) : listen_unix(c, i);
        if (fd < 0) {
            char text[ADDRESS_TEXT_MAX];
            address_format(&c->book[i], text, sizeof text);
            return complain(text, fd);
        }
        c->hands[i].listener = fd;
    }
    return 0;
}

/* ---- beginning ---- */

static int make_folder(struct crew *c) {
    const char *given = c->config.folder;
    const char *base = getenv("TMPDIR");
    if (given != NULL)
        snprintf(c->folder, sizeof c->folder, "%s", given);
    else
        snprintf(c->folder, sizeof c->folder, "%s/storm-XXXXXX", base != NULL ? base : "/tmp");
    c->folder_ours = given == NULL;
    if (given == NULL && mkdtemp(c->folder) == NULL)
        return complain(c->folder, -errno);
    for (uint32_t i = 0; i < c->count; i++) {
        char path[PATH_MAX + 16];
        snprintf(path, sizeof path, "%s/n%u", c->folder, i);
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
            return complain(path, -errno);
    }
    return 0;
}

static int share_memory(struct crew *c) {
    c->heap_stride = align_up(c->config.prim.limits.heap_bytes + 1, 4096);
    size_t heaps = c->heap_stride * c->count;
    c->shared_bytes = heaps + c->count * sizeof *c->counts;
    void *at = mmap(NULL, c->shared_bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return complain("shared memory", -errno);
    c->heaps = at;
    c->counts = (struct life_counts *)(void *)(c->heaps + heaps);
    return 0;
}

static int make_bells(struct crew *c) {
    struct epoll_event e = {.events = EPOLLIN};
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->epoll < 0 || c->bell < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->bell, &e) < 0)
        return complain("event loop", -errno);
    for (uint32_t i = 0; i < c->count; i++) {
        c->hands[i].poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (c->hands[i].poke < 0)
            return complain("event loop", -errno);
    }
    return 0;
}

/* A root may hold a link to every node, the parent a few descriptors for each. */
static void raise_limits(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

struct crew *crew_new(const struct crew_config *config, int *ret_error) {
    struct crew *c = calloc(1, sizeof *c);
    uint32_t count = limits_universe(&config->prim.limits);
    int r = -ENOMEM;
    raise_limits();
    if (c != NULL) {
        *c = (struct crew){.config = *config, .count = count, .epoll = -1, .bell = -1};
        c->hands = calloc(count, sizeof *c->hands);
        c->book = calloc(count, sizeof *c->book);
        ssize_t got = getrandom(c->key, sizeof c->key, 0);
        ASSERT(got == sizeof c->key);
    }
    if (c != NULL && c->hands != NULL && c->book != NULL) {
        for (uint32_t i = 0; i < count; i++)
            c->hands[i].pidfd = c->hands[i].listener = c->hands[i].poke = -1;
        r = make_folder(c);
        if (r == 0)
            r = share_memory(c);
        if (r == 0)
            r = make_bells(c);
        if (r == 0)
            r = listen_all(c);
    }
    if (r < 0) {
        crew_free(c);
        *ret_error = r;
        return NULL;
    }
    return c;
}

/* ---- a node's process ---- */

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Moves what is inherited to its place and closes everything else: a descriptor that leaked here
 * would hide the end of somebody else's link. */
static void keep_only(int listener, int poke, int bell) {
    int from[] = {listener, poke, bell};
    for (int i = 0; i < 3; i++) /* out of the way of the places first */
        from[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, 64);
    for (int i = 0; i < 3; i++) {
        if (from[i] < 0)
            close(FD_LISTENER + i);
        else
            dup3(from[i], FD_LISTENER + i, O_CLOEXEC);
    }
    close_range(FD_FIRST_OTHER, UINT_MAX, 0);
}

struct outside {
    struct source poke;
    struct crew *crew;
    struct life *life;
};

static void on_poke(struct source *s, uint32_t events) {
    struct outside *o = CONTAINER_OF(s, struct outside, poke);
    uint64_t count;
    (void)events;
    if (read(s->fd, &count, sizeof count) == sizeof count && o->crew->config.poked != NULL)
        o->crew->config.poked(o->crew->config.context, o->life);
}

static _Noreturn void live(struct crew *c, uint32_t node, bool listening) {
    char folder[PATH_MAX + 16];
    int error = 0;
    snprintf(folder, sizeof folder, "%s/n%u", c->folder, node);
    struct life_config config = {.prim = c->config.prim,
                                 .self = node,
                                 .root = node >= c->config.prim.limits.nodes,
                                 .book = c->book,
                                 .listener = listening ? FD_LISTENER : -1,
                                 .key = {c->key[0], c->key[1]},
                                 .folder = folder,
                                 .heap = c->heaps + c->heap_stride * node,
                                 .counts = &c->counts[node],
                                 .daemon = c->config.daemon,
                                 .observe = c->config.observe,
                                 .context = c->config.context};
    struct life *l = life_new(&config, &error);
    if (l == NULL)
        _exit(1);
    struct outside o = {.poke = {.fd = FD_POKE, .ready = on_poke}, .crew = c, .life = l};
    if (loop_add(life_loop(l), &o.poke, EPOLLIN) < 0)
        _exit(1);
    life_run(l);
    life_free(l);
    _exit(0);
}

static _Noreturn void become_node(struct crew *c, uint32_t node, pid_t parent) {
    char name[24];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    snprintf(name, sizeof name, "storm-n%u", node);
    prctl(PR_SET_NAME, name);
    signal(SIGPIPE, SIG_IGN);
    bool listening = c->hands[node].listener >= 0;
    keep_only(c->hands[node].listener, c->hands[node].poke, c->bell);
    c->bell = FD_BELL;
    live(c, node, listening);
}

/* A new life begins with an empty heap. */
static void prepare(struct crew *c, uint32_t node) {
    uint64_t count;
    memset(c->heaps + c->heap_stride * node, 0, c->config.prim.limits.heap_bytes);
    while (read(c->hands[node].poke, &count, sizeof count) > 0)
        ;
}

int crew_start(struct crew *c, uint32_t node) {
    struct hand *h = &c->hands[node];
    ASSERT(node < c->count && h->pid == 0);
    if (h->lives > 0)
        prepare(c, node);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        become_node(c, node, parent);
    h->pid = pid;
    h->lives++;
    close_fd(&h->listener);
    h->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = node + 1};
    if (h->pidfd < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, h->pidfd, &e) < 0)
        return complain("process", -errno);
    return 0;
}

int crew_start_all(struct crew *c) {
    int r = 0;
    for (uint32_t i = c->count; i-- > 0 && r == 0;) /* seats come last in number, first in time */
        if (i == c->config.prim.limits.nodes)
            r = crew_start(c, i);
    for (uint32_t i = 0; i < c->config.prim.limits.nodes && r == 0; i++)
        r = crew_start(c, i);
    return r;
}

/* ---- watching ---- */

/* Its process is gone or about to be: waits for that. */
static void reap(struct crew *c, uint32_t node) {
    struct hand *h = &c->hands[node];
    int status;
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    epoll_ctl(c->epoll, EPOLL_CTL_DEL, h->pidfd, NULL);
    close_fd(&h->pidfd);
    h->pid = 0;
}

int crew_signal(struct crew *c, uint32_t node, int signal) {
    const struct hand *h = &c->hands[node];
    if (h->pid == 0)
        return -ESRCH;
    return syscall(SYS_pidfd_send_signal, h->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

void crew_kill(struct crew *c, uint32_t node) {
    if (crew_signal(c, node, SIGKILL) == 0)
        reap(c, node);
}

void crew_free(struct crew *c) {
    if (c == NULL)
        return;
    for (uint32_t i = 0; c->hands != NULL && i < c->count; i++)
        crew_signal(c, i, SIGKILL);
    for (uint32_t i = 0; c->hands != NULL && i < c->count; i++) {
        struct hand *h = &c->hands[i];
        if (h->pid != 0)
            reap(c, i);
        close_fd(&h->listener);
        close_fd(&h->poke);
    }
    for (uint32_t i = 0; c->folder_ours && i < c->count; i++) {
        static const char *const names[] = {"n%u/state", "n%u/state.new", "n%u.sock", "n%u"};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            char name[32], path[PATH_MAX + 40];
            snprintf(name, sizeof name, names[k], i);
            snprintf(path, sizeof path, "%s/%s", c->folder, name);
            remove(path);
        }
    }
    if (c->folder_ours)
        rmdir(c->folder);
    if (c->heaps != NULL)
        munmap(c->heaps, c->shared_bytes);
    close_fd(&c->epoll);
    close_fd(&c->bell);
    free(c->hands);
    free(c->book);
    free(c);
}

void crew_poke(struct crew *c, uint32_t node) {
    uint64_t one = 1;
    ssize_t r = write(c->hands[node].poke, &one, sizeof one);
    ASSERT(r == sizeof one || errno == EAGAIN);
}

void crew_ring(const struct crew *c) {
    uint64_t one = 1;
    ssize_t r = write(c->bell, &one, sizeof one);
    ASSERT(r == sizeof one || errno == EAGAIN);
}

int crew_wait(struct crew *c, int timeout_ms) {
    struct epoll_event events[32];
    int died = 0;
    int count = epoll_wait(c->epoll, events, 32, timeout_ms);
    for (int i = 0; i < count; i++) {
        uint64_t rings;
        if (events[i].data.u32 == 0) {
            while (read(c->bell, &rings, sizeof rings) > 0)
                ;
            continue;
        }
        uint32_t node = events[i].data.u32 - 1;
        if (c->hands[node].pid == 0)
            continue;
        reap(c, node);
        died++;
        if (c->config.keep_root && node >= c->config.prim.limits.nodes)
            crew_start(c, node);
    }
    return died;
}

/* ---- what is shared ---- */

pid_t crew_pid(const struct crew *c, uint32_t node) {
    return c->hands[node].pid;
}

uint32_t crew_lives(const struct crew *c, uint32_t node) {
    return c->hands[node].lives;
}

const uint8_t *crew_heap(const struct crew *c, uint32_t node) {
    return c->heaps + c->heap_stride * node;
}

const struct life_counts *crew_counts(const struct crew *c, uint32_t node) {
    return &c->counts[node];
}

const struct address *crew_address(const struct crew *c, uint32_t node) {
    return &c->book[node];
}

const uint64_t *crew_key(const struct crew *c) {
    return c->key;
}

const char *crew_folder(const struct crew *c) {
    return c->folder;
}
