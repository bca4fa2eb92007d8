/* SPDX-License-Identifier: MIT */
/* The mover's end of a storm-fab: see ferry.h.
 *
 * What storm-fab says while we wait for an answer is kept and told in the next turn. While we wait for it to read, we
 * read what it says: so neither of us can wait for the other for ever. */
#include "os/ferry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/units.h"
#include "os/child.h"
#include "os/enclosure.h"

/* To register memory or a peer. */
#define ANSWER_NS (5 * NS_PER_S)

/* The number of the descriptor that storm-fab finds its end of the line at. */
enum { FD_LINE = 3, FD_FIRST_OTHER };
enum { EXIT_NOT_STARTED = 127 };

#define SHARED_MEMORY "/dev/shm"

/* To see the end of a storm-fab that is not needed any more; then it is left to itself. */
#define ENDING_NS (500 * NS_PER_MS)

/* A put that storm-fab has. */
struct asked {
    bool used;
    uint32_t
        serial; /* of the place: what is said of one that was here before is not about this one */
    uint32_t peer;
    uint64_t cookie;
};

struct ferry {
    struct ferry_config config;
    struct source line;
    struct source kick; /* what was kept is to be told */
    pid_t pid;
    bool met, dead, mourned;
    bool answered;
    struct ferry_word answer;
    struct ferry_word *kept;
    uint32_t kept_count, kept_cap;
    char provider[FERRY_PROVIDER_MAX];
    uint8_t address[FABRIC_ADDRESS_BYTES_MAX];
    uint32_t address_len;
    bool regions[FERRY_REGIONS_MAX];
    bool peers[FERRY_PEERS_MAX];
    struct ferry_put *waiting; /* a ring */
    uint32_t waiting_at, waiting_count, waiting_cap;
    struct asked under_way[FERRY_PUTS_MAX];
    uint32_t under_way_count;
    char why[FABRIC_WHY_BYTES];
};

/* ---- its end ---- */

static void kick(struct ferry *f) {
    uint64_t one = 1;
    if (write(f->kick.fd, &one, sizeof one) < 0)
        return; /* it is set already */
}

static void die(struct ferry *f, const char *why) {
    if (f->dead)
        return;
    f->dead = true;
    snprintf(f->why, sizeof f->why, "%s", why);
    if (f->line.fd >= 0)
        loop_remove(f->config.loop, &f->line);
    kick(f);
}

/* Without having said anything: it is perhaps none. */
static void die_unmet(struct ferry *f, const char *why) {
    char text[FABRIC_WHY_BYTES];
    snprintf(text, sizeof text, "%.100s (%.120s)", why, f->config.program);
    die(f, text);
}

/* A provider for shared memory has a file for each process, and one that was killed leaves it. */
static void sweep(pid_t pid) {
    char begin[16];
    DIR *dir = opendir(SHARED_MEMORY);
    int len = snprintf(begin, sizeof begin, "%d:", (int)pid);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, begin, (size_t)len) == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir != NULL)
        closedir(dir);
}

/* Its line is closed: how it ended is known at once, or it does not matter. */
static void has_ended(struct ferry *f) {
    char why[FABRIC_WHY_BYTES] = "storm-fab has ended";
    int status;
    uint64_t deadline = clock_ns() + ENDING_NS;
    while (!f->dead && f->pid > 0 && clock_ns() < deadline) {
        if (waitpid(f->pid, &status, WNOHANG) == f->pid) {
            sweep(f->pid);
            if (WIFSIGNALED(status))
                snprintf(why, sizeof why, "storm-fab was ended by signal %d", WTERMSIG(status));
            f->pid = 0;
        } else {
            poll(NULL, 0, 1);
        }
    }
    if (f->met)
        die(f, why);
    else
        die_unmet(f, why);
}

/* ---- words ---- */

static void keep(struct ferry *f, const struct ferry_word *w) {
    if (f->kept_count == f->kept_cap) {
        uint32_t cap = f->kept_cap ? 2 * f->kept_cap : 64;
        struct ferry_word *kept = realloc(f->kept, cap * sizeof *kept);
        ASSERT(kept != NULL);
        f->kept = kept;
        f->kept_cap = cap;
    }
    f->kept[f->kept_count++] = *w;
    kick(f);
}

/* One word; false: there is none now, or never will be. */
static bool hear(struct ferry *f, struct ferry_word *ret) {
    memset(ret, 0, sizeof *ret);
    if (f->dead)
        return false;
    ssize_t n = recv(f->line.fd, ret, sizeof *ret, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n < (ssize_t)offsetof(struct ferry_word, ready)) {
        has_ended(f);
        return false;
    }
    return true;
}

/* Its first word. */
static void meet(struct ferry *f, const struct ferry_word *w) {
    char why[FABRIC_WHY_BYTES];
    if (w->kind == FERRY_FAILED) {
        snprintf(why, sizeof why, "%.*s", FABRIC_WHY_BYTES - 1, w->why);
        die(f, why);
        return;
    }
    if (w->kind != FERRY_READY || w->ready.order_bytes != sizeof(struct ferry_order) ||
        w->ready.address_len > sizeof f->address) {
        snprintf(why, sizeof why, "%.120s is of another release; install STORM as a whole",
                 f->config.program);
        die(f, why);
        return;
    }
    f->address_len = w->ready.address_len;
    memcpy(f->address, w->ready.address, f->address_len);
    snprintf(f->provider, sizeof f->provider, "%.*s", FERRY_PROVIDER_MAX - 1, w->ready.provider);
    f->met = true;
}

static void hear_all(struct ferry *f) {
    struct ferry_word w;
    while (hear(f, &w)) {
        if (!f->met) {
            meet(f, &w);
        } else if (w.kind == FERRY_ANSWER) {
            f->answer = w;
            f->answered = true;
        } else {
            keep(f, &w);
        }
    }
}

/* Until it has said something, or takes something. */
static void await(struct ferry *f, short events, uint64_t deadline) {
    uint64_t now = clock_ns();
    struct pollfd p = {.fd = f->line.fd, .events = events};
    if (now >= deadline || poll(&p, 1, (int)((deadline - now) / NS_PER_MS) + 1) == 0)
        die(f, "storm-fab does not answer");
}

static void tell(struct ferry *f, const struct ferry_order *o, size_t len, int memory) {
    uint64_t deadline = clock_ns() + ANSWER_NS;
    while (!f->dead &&
           enclosure_send(f->line.fd, o, len, memory, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            has_ended(f);
            return;
        }
        await(f, POLLIN | POLLOUT, deadline);
        hear_all(f);
    }
}

#define TELL(ferry, order, part, memory) \
    tell(ferry, order, offsetof(struct ferry_order, part) + sizeof(order)->part, memory)

static int await_answer(struct ferry *f, uint64_t patience_ns) {
    uint64_t deadline = clock_ns() + patience_ns;
    hear_all(f);
    while (!f->answered && !f->dead) {
        await(f, POLLIN, deadline);
        hear_all(f);
    }
    if (!f->answered)
        return -EPIPE;
    f->answered = false;
    return f->answer.error;
}

/* ---- puts ---- */

static void post(struct ferry *f, const struct ferry_put *put) {
    uint32_t at = 0;
    while (f->under_way[at].used)
        at++;
    struct asked *a = &f->under_way[at];
    *a = (struct asked){
        .used = true, .serial = a->serial + 1, .peer = put->peer, .cookie = put->cookie};
    f->under_way_count++;
    struct ferry_order o = {.kind = FERRY_PUT,
                            .id = put->region,
                            .put = {.cookie = (uint64_t)a->serial << 32 | at,
                                    .offset = put->offset,
                                    .len = put->len,
                                    .into = put->into,
                                    .into_offset = put->into_offset,
                                    .peer = put->peer,
                                    .note = put->note}};
    TELL(f, &o, put, -1);
}

static void post_waiting(struct ferry *f) {
    while (f->waiting_count > 0 && f->under_way_count < FERRY_PUTS_MAX && !f->dead) {
        struct ferry_put put = f->waiting[f->waiting_at];
        f->waiting_at = (f->waiting_at + 1) % f->waiting_cap;
        f->waiting_count--;
        post(f, &put);
    }
}

void ferry_put(struct ferry *f, const struct ferry_put *put) {
    if (f->waiting_count == f->waiting_cap) {
        uint32_t cap = f->waiting_cap ? 2 * f->waiting_cap : 64;
        struct ferry_put *waiting = malloc(cap * sizeof *waiting);
        ASSERT(waiting != NULL);
        for (uint32_t i = 0; i < f->waiting_count; i++)
            waiting[i] = f->waiting[(f->waiting_at + i) % f->waiting_cap];
        free(f->waiting);
        f->waiting = waiting;
        f->waiting_cap = cap;
        f->waiting_at = 0;
    }
    f->waiting[(f->waiting_at + f->waiting_count++) % f->waiting_cap] = *put;
    post_waiting(f);
}

static void forget(struct ferry *f, struct asked *a) {
    a->used = false;
    f->under_way_count--;
}

static void on_sent(struct ferry *f, const struct ferry_word *w) {
    uint32_t at = (uint32_t)w->sent.cookie, serial = (uint32_t)(w->sent.cookie >> 32);
    struct asked *a = at < FERRY_PUTS_MAX ? &f->under_way[at] : NULL;
    if (a == NULL || !a->used || a->serial != serial)
        return;
    uint64_t cookie = a->cookie;
    forget(f, a);
    post_waiting(f);
    f->config.sent(f->config.context, cookie, w->error, w->sent.why);
}

/* All that is under way, or waits: it never will be. */
static void fail_puts(struct ferry *f) {
    for (struct asked *a = f->under_way; a < f->under_way + FERRY_PUTS_MAX; a++)
        if (a->used) {
            forget(f, a);
            f->config.sent(f->config.context, a->cookie, -EPIPE, f->why);
        }
    while (f->waiting_count > 0) {
        uint64_t cookie = f->waiting[f->waiting_at].cookie;
        f->waiting_at = (f->waiting_at + 1) % f->waiting_cap;
        f->waiting_count--;
        f->config.sent(f->config.context, cookie, -EPIPE, f->why);
    }
}

/* ---- turns ---- */

static void on_kick(struct source *s, uint32_t events) {
    struct ferry *f = CONTAINER_OF(s, struct ferry, kick);
    uint64_t count;
    (void)events;
    if (read(s->fd, &count, sizeof count) < 0)
        return;
    for (uint32_t i = 0; i < f->kept_count; i++) { /* more may be kept meanwhile */
        struct ferry_word w = f->kept[i];
        if (w.kind == FERRY_SENT)
            on_sent(f, &w);
        else if (w.kind == FERRY_NOTE)
            f->config.note(f->config.context, w.note);
    }
    f->kept_count = 0;
    if (!f->dead)
        return;
    fail_puts(f);
    if (!f->mourned)
        f->config.lost(f->config.context, f->why);
    f->mourned = true;
}

static void on_line(struct source *s, uint32_t events) {
    struct ferry *f = CONTAINER_OF(s, struct ferry, line);
    (void)events;
    bool met = f->met;
    hear_all(f);
    if (f->met && !met)
        f->config.ready(f->config.context);
    on_kick(&f->kick, 0);
}

/* ---- beginning and end ---- */

static _Noreturn void become(const struct ferry_config *c, int line) {
    char fd[12];
    const char *argv[8] = {c->program, "--serve", fd};
    size_t count = 3;
    snprintf(fd, sizeof fd, "%d", FD_LINE);
    if (c->provider != NULL) {
        argv[count++] = "--provider";
        argv[count++] = c->provider;
    }
    if (c->source != NULL) {
        argv[count++] = "--source";
        argv[count++] = c->source;
    }
    child_place(line, FD_LINE, 0);
    child_close_from(FD_FIRST_OTHER);
    execv(c->program, (char **)(uintptr_t)argv);
    _exit(EXIT_NOT_STARTED);
}

static int start(struct ferry *f) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    f->line.fd = pair[0];
    f->pid = fork();
    if (f->pid == 0) {
        child_forget_signals();
        become(&f->config, pair[1]);
    }
    int r = f->pid < 0 ? -errno : 0;
    close(pair[1]);
    return r;
}

int ferry_new(const struct ferry_config *c, struct ferry **ret, char why[FABRIC_WHY_BYTES]) {
    struct ferry *f = calloc(1, sizeof *f);
    snprintf(why, FABRIC_WHY_BYTES, "%s", strerror(ENOMEM));
    if (f == NULL)
        return -ENOMEM;
    f->config = *c;
    f->line = (struct source){.fd = -1, .ready = on_line};
    f->kick = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = on_kick};
    int r = f->kick.fd < 0 ? -errno : start(f);
    if (r == 0)
        r = loop_add(c->loop, &f->kick, EPOLLIN);
    if (r == 0)
        r = loop_add(c->loop, &f->line, EPOLLIN);
    if (r < 0) {
        snprintf(why, FABRIC_WHY_BYTES, "%s: %s", c->program, strerror(-r));
        ferry_free(f);
        return r;
    }
    *ret = f;
    return 0;
}

int ferry_wait(struct ferry *f, char why[FABRIC_WHY_BYTES]) {
    uint64_t deadline = clock_ns() + FERRY_START_NS;
    while (!f->met && !f->dead) {
        await(f, POLLIN, deadline);
        hear_all(f);
    }
    if (!f->dead)
        return 0;
    snprintf(why, FABRIC_WHY_BYTES, "%s", f->why);
    return -EPIPE;
}

/* It ends by itself when the line does, also if we are killed: a provider has things to take down. */
static void part(struct ferry *f) {
    if (f->pid <= 0)
        return;
    if (f->dead)
        kill(f->pid, SIGKILL);
    uint64_t deadline = clock_ns() + ENDING_NS;
    pid_t gone;
    while ((gone = waitpid(f->pid, NULL, f->dead ? 0 : WNOHANG)) == 0 && clock_ns() < deadline)
        poll(NULL, 0, 1);
    if (gone == f->pid)
        sweep(f->pid);
}

void ferry_free(struct ferry *f) {
    if (f == NULL)
        return;
    if (f->line.fd >= 0) {
        if (!f->dead)
            loop_remove(f->config.loop, &f->line);
        close(f->line.fd);
    }
    if (f->kick.fd >= 0) {
        loop_remove(f->config.loop, &f->kick);
        close(f->kick.fd);
    }
    part(f);
    free(f->kept);
    free(f->waiting);
    free(f);
}

void ferry_kill(struct ferry *f) {
    if (f != NULL)
        die(f, "it was ended");
    ferry_free(f);
}

bool ferry_alive(const struct ferry *f) {
    return f->met && !f->dead;
}

const char *ferry_provider(const struct ferry *f) {
    return f->provider;
}

struct bytes ferry_address(const struct ferry *f) {
    return bytes_of(f->address, f->address_len);
}

/* ---- regions and peers ---- */

/* A number that is not in use; -ENOSPC. */
static int take_number(bool *used, int count) {
    for (int i = 0; i < count; i++)
        if (!used[i]) {
            used[i] = true;
            return i;
        }
    return -ENOSPC;
}

int ferry_region(struct ferry *f, int memory, uint64_t bytes, uint8_t grant[FABRIC_GRANT_BYTES]) {
    int id = !ferry_alive(f) ? -EPIPE : take_number(f->regions, FERRY_REGIONS_MAX);
    if (id < 0)
        return id;
    struct ferry_order o = {.kind = FERRY_REGION, .id = (uint32_t)id, .region = {.bytes = bytes}};
    TELL(f, &o, region, memory);
    int r = await_answer(f, ANSWER_NS);
    if (r < 0) {
        f->regions[id] = false;
        return r;
    }
    if (grant != NULL)
        memcpy(grant, f->answer.answer.grant, FABRIC_GRANT_BYTES);
    return id;
}

/* If it could not be told, it has ended, or will be ended: nothing of it is to outlive the grant. */
void ferry_region_free(struct ferry *f, uint32_t region) {
    struct ferry_order o = {.kind = FERRY_REGION_FREE, .id = region};
    ASSERT(f->regions[region]);
    f->regions[region] = false;
    if (!f->dead) {
        TELL(f, &o, id, -1);
        if (await_answer(f, ANSWER_NS) < 0)
            die(f, "storm-fab cannot let go of memory");
    }
    if (f->dead && f->pid > 0)
        kill(f->pid, SIGKILL);
}

int ferry_peer(struct ferry *f, struct bytes address) {
    struct ferry_order o = {.kind = FERRY_PEER};
    if (address.len > sizeof o.peer.address)
        return -EBADMSG;
    int id = !ferry_alive(f) ? -EPIPE : take_number(f->peers, FERRY_PEERS_MAX);
    if (id < 0)
        return id;
    o.id = (uint32_t)id;
    o.peer.len = (uint32_t)address.len;
    memcpy(o.peer.address, address.at, address.len);
    TELL(f, &o, peer, -1);
    int r = await_answer(f, ANSWER_NS);
    if (r < 0)
        f->peers[id] = false;
    return r < 0 ? r : id;
}

void ferry_peer_free(struct ferry *f, uint32_t peer) {
    struct ferry_order o = {.kind = FERRY_PEER_FREE, .id = peer};
    uint32_t left = 0;
    ASSERT(f->peers[peer]);
    f->peers[peer] = false;
    for (struct asked *a = f->under_way; a < f->under_way + FERRY_PUTS_MAX; a++)
        if (a->used && a->peer == peer)
            forget(f, a);
    for (uint32_t i = 0; i < f->waiting_count; i++) {
        struct ferry_put put = f->waiting[(f->waiting_at + i) % f->waiting_cap];
        if (put.peer != peer)
            f->waiting[(f->waiting_at + left++) % f->waiting_cap] = put;
    }
    f->waiting_count = left;
    TELL(f, &o, id, -1);
    post_waiting(f);
}

void ferry_expect(struct ferry *f, bool notes) {
    struct ferry_order o = {.kind = FERRY_EXPECT, .expect = notes};
    TELL(f, &o, expect, -1);
}
