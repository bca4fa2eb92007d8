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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/child.h"
#include "os/files.h"
#include "os/plan.h"

/* Descriptors of a node's process: these and no others are inherited. */
enum { FD_LISTENER = 3, FD_POKE, FD_BELL, FD_FIRST_OTHER };

/* A root that keeps dying young is started again after a pause that grows to the longer one. */
#define YOUNG_NS     (1 * NS_PER_S)
#define PAUSE_MIN_NS (50 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_S)

/* How often to look after processes that the kernel cannot tell us about. */
enum { LOOK_MS = 20 };

/* What the parent knows of a process. */
struct hand {
    pid_t pid;    /* 0: none runs */
    int pidfd;    /* -1 also if the kernel gives none: then it is looked after from time to time */
    int listener; /* until the process has it; -1 later, then it makes one itself */
    int poke;
    uint32_t lives;
    uint64_t born;
    uint64_t pause_ns; /* after the last death */
    uint64_t start_at; /* when to start it again, 0 if not */
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
    uint32_t unwatched; /* processes without a pidfd */
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

static int listen_tcp(struct crew *c, uint32_t node, struct in_addr host) {
    struct address *a = &c->book[node];
    *a = plan_address(node, TRANSPORT_TCP, host);
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
    return r < 0 ? complain(text, r) : address_listen(&c->book[node]);
}

static int listen_all(struct crew *c) {
    struct in_addr host = plan_draw_host();
    for (uint32_t i = 0; i < c->count; i++) {
        int fd = c->config.links == TRANSPORT_TCP ? listen_tcp(c, i, host) : listen_unix(c, i);
        if (fd < 0) {
            char text[ADDRESS_TEXT_MAX];
            address_format(&c->book[i], text, sizeof text);
            return c->book[i].len == 0 ? fd : complain(text, fd);
        }
        c->hands[i].listener = fd;
    }
    return 0;
}

/* ---- beginning ---- */

/* What a node keeps is no safer than the folder that it is in. */
static int sync_folder(const char *path) {
    int r = files_sync(path);
    return r < 0 ? complain(path, r) : 0;
}

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
    return given == NULL ? 0 : sync_folder(c->folder);
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

struct crew *crew_new(const struct crew_config *config, int *ret_error) {
    struct crew *c = calloc(1, sizeof *c);
    uint32_t count = limits_universe(&config->prim.limits);
    int r = -ENOMEM;
    child_raise_limits(); /* a root may hold a link to every node, the parent a few for each */
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
        from[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, FD_FIRST_OTHER);
    for (int i = 0; i < 3; i++) {
        if (from[i] < 0)
            close(FD_LISTENER + i);
        else
            dup3(from[i], FD_LISTENER + i, O_CLOEXEC);
    }
    child_close_from(FD_FIRST_OTHER);
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
    child_follow(parent);
    snprintf(name, sizeof name, "storm-n%u", node);
    prctl(PR_SET_NAME, name);
    child_forget_signals();
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
    h->born = clock_ns();
    h->start_at = 0;
    close_fd(&h->listener);
    h->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = node + 1};
    if (h->pidfd >= 0 && epoll_ctl(c->epoll, EPOLL_CTL_ADD, h->pidfd, &e) < 0)
        close_fd(&h->pidfd);
    c->unwatched += h->pidfd < 0;
    return 0;
}

int crew_start_all(struct crew *c) {
    uint32_t nodes = c->config.prim.limits.nodes;
    int r = crew_start(c, nodes);
    for (uint32_t i = 0; i < nodes && r == 0; i++)
        r = crew_start(c, i);
    return r;
}

/* ---- watching ---- */

/* Its process is gone or about to be: waits for that. Returns how it ended. */
static int reap(struct crew *c, uint32_t node) {
    struct hand *h = &c->hands[node];
    int status = 0;
    while (waitpid(h->pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->unwatched -= h->pidfd < 0;
    if (h->pidfd >= 0)
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, h->pidfd, NULL);
    close_fd(&h->pidfd);
    h->pid = 0;
    return status;
}

/* Nobody else gets the number of a child that we have not reaped. */
int crew_signal(struct crew *c, uint32_t node, int signal) {
    const struct hand *h = &c->hands[node];
    if (h->pid == 0)
        return -ESRCH;
    return kill(h->pid, signal) < 0 ? -errno : 0;
}

void crew_kill(struct crew *c, uint32_t node) {
    c->hands[node].start_at = 0;
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

/* The root is started again at once; but one that cannot live, because its disk is full perhaps, must
 * not keep the machine busy with starting it. */
static void plan_restart(struct crew *c, uint32_t node, int status, uint64_t now) {
    struct hand *h = &c->hands[node];
    if (!c->config.keep_root || node < c->config.prim.limits.nodes)
        return;
    if (now - h->born >= YOUNG_NS) {
        h->pause_ns = 0;
    } else if (h->pause_ns == 0) {
        h->pause_ns = PAUSE_MIN_NS; /* for the next time */
        h->start_at = now;
        return;
    } else {
        fprintf(stderr, "storm: the root's process ended (%s %d) after %llu ms; next in %llu ms\n",
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                (unsigned long long)((now - h->born) / NS_PER_MS),
                (unsigned long long)(h->pause_ns / NS_PER_MS));
    }
    h->start_at = now + h->pause_ns;
    h->pause_ns = h->pause_ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : h->pause_ns * 2;
}

static void died(struct crew *c, uint32_t node) {
    int status = reap(c, node);
    plan_restart(c, node, status, clock_ns());
}

/* Starts what is due; returns when the next is, UINT64_MAX if none. */
static uint64_t start_due(struct crew *c) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = c->config.prim.limits.nodes; i < c->count; i++) {
        struct hand *h = &c->hands[i];
        if (h->start_at != 0 && h->start_at <= clock_ns()) {
            int r = crew_start(c, i);
            if (r < 0) {
                complain("starting the root again", r);
                h->start_at = clock_ns() + PAUSE_MAX_NS;
            }
        }
        if (h->start_at != 0 && h->start_at < next)
            next = h->start_at;
    }
    return next;
}

static int look_after_unwatched(struct crew *c) {
    int count = 0;
    for (uint32_t i = 0; c->unwatched > 0 && i < c->count; i++) {
        siginfo_t info = {0};
        const struct hand *h = &c->hands[i];
        if (h->pid == 0 || h->pidfd >= 0)
            continue;
        if (waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid != 0) {
            died(c, i);
            count++;
        }
    }
    return count;
}

/* Waits once; returns whether there was anything, and adds up who has died. */
static bool wait_once(struct crew *c, int timeout_ms, int *dead) {
    struct epoll_event events[32];
    int count = epoll_wait(c->epoll, events, 32, timeout_ms);
    bool interrupted = count < 0;
    for (int i = 0; i < count; i++) {
        uint64_t rings;
        uint32_t node = events[i].data.u32 - 1;
        if (events[i].data.u32 == 0) {
            while (read(c->bell, &rings, sizeof rings) > 0)
                ;
        } else if (c->hands[node].pid != 0) {
            died(c, node);
            *dead += 1;
        }
    }
    *dead += look_after_unwatched(c);
    return interrupted || count > 0 || *dead > 0;
}

static int ms_until(uint64_t at, uint64_t now) {
    uint64_t ms = at <= now ? 0 : (at - now - 1) / NS_PER_MS + 1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

int crew_wait(struct crew *c, int timeout_ms) {
    uint64_t now = clock_ns();
    uint64_t end = timeout_ms < 0 ? UINT64_MAX : now + (uint64_t)timeout_ms * NS_PER_MS;
    int dead = 0;
    for (bool first = true; first || now < end; first = false) {
        uint64_t next = start_due(c);
        uint64_t until = next < end ? next : end;
        int ms = until == UINT64_MAX ? -1 : ms_until(until, now);
        if (c->unwatched > 0 && (ms < 0 || ms > LOOK_MS))
            ms = LOOK_MS;
        if (wait_once(c, ms, &dead))
            break;
        now = clock_ns();
    }
    start_due(c);
    return dead;
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
