/* SPDX-License-Identifier: MIT */
/* Programs that want to talk: see callers.h. */
#include "os/callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "os/enclosure.h"
#include "os/spawn.h"

enum { RINGS_AT_ONCE = 16 };

struct caller {
    struct callers *all;
    struct source line; /* -1: the place is free */
    struct list due;
    struct bell *bell;
    uint32_t rank;
    bool readable, wanted; /* there may be a frame; one is wanted */
    bool stuck;            /* it takes nothing */
    bool opened_due, stuck_due, free_due, closed_due;
};

/* ---- lines ---- */

static void due(struct caller *c) {
    if (!list_linked(&c->due))
        list_push_back(&c->all->due, &c->due);
}

static void hang_up(struct caller *c) {
    loop_close(c->all->loop, &c->line);
    list_remove(&c->due);
}

static void line_ready(struct source *s, uint32_t events) {
    struct caller *c = CONTAINER_OF(s, struct caller, line);
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        c->readable = true;
    if (c->stuck && (events & EPOLLOUT)) {
        c->stuck = false;
        c->free_due = true;
        loop_change(c->all->loop, s, EPOLLIN | EPOLLET);
    }
    due(c);
}

static void gone(struct caller *c) {
    c->closed_due = true;
    due(c);
}

/* A frame, if there is one. What is none, or is too long, ends it. */
static bool read_frame(struct caller *c, struct input_petition *ret) {
    ssize_t n;
    do
        n = recv(c->line.fd, c->all->frame, LINE_FRAME_MAX, MSG_DONTWAIT | MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) {
        c->readable = false;
        return false;
    }
    if (n < LINE_HEAD_BYTES || n > LINE_FRAME_MAX || load_le32(c->all->frame) > UINT16_MAX) {
        c->closed_due = true;
        return false;
    }
    c->wanted = false;
    ret->event = PETITION_SAID;
    ret->type = (uint16_t)load_le32(c->all->frame);
    ret->body = bytes_of(c->all->frame + LINE_HEAD_BYTES, (size_t)n - LINE_HEAD_BYTES);
    return true;
}

/* What it does not take is lost, and it will hear that. */
static void send_frame(struct caller *c, const struct effect_petition *e) {
    uint8_t head[LINE_HEAD_BYTES];
    store_le32(head, e->type);
    struct iovec parts[] = {{.iov_base = head, .iov_len = sizeof head},
                            {.iov_base = (void *)e->body.at, .iov_len = e->body.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (c->stuck || c->closed_due)
        return;
    if (sendmsg(c->line.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        return;
    if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
        gone(c);
        return;
    }
    c->stuck = c->stuck_due = true;
    loop_change(c->all->loop, &c->line, EPOLLIN | EPOLLOUT | EPOLLET);
    due(c);
}

void callers_carry(struct callers *all, enum effect_kind kind, const struct effect_petition *e) {
    ASSERT(e->place < all->cap);
    struct caller *c = all->table == NULL ? NULL : &all->table[e->place];
    if (c == NULL || c->line.fd < 0)
        return;
    if (kind == EFFECT_PETITION_READ) {
        c->wanted = true;
        due(c);
    } else if (kind == EFFECT_PETITION_SEND) {
        send_frame(c, e);
    } else {
        hang_up(c);
    }
}

/* ---- telling ---- */

static bool next_of(struct caller *c, struct input_petition *ret) {
    *ret = (struct input_petition){
        .place = (uint32_t)(c - c->all->table), .group = c->bell->group, .rank = c->rank};
    if (c->opened_due) {
        c->opened_due = false;
        ret->event = PETITION_OPENED;
        return true;
    }
    if (c->stuck_due) {
        c->stuck_due = false;
        ret->event = PETITION_STUCK;
        return true;
    }
    if (c->free_due) {
        c->free_due = false;
        ret->event = PETITION_FREE;
        return true;
    }
    if (!c->closed_due && c->wanted && c->readable && read_frame(c, ret))
        return true;
    if (!c->closed_due)
        return false;
    hang_up(c);
    ret->event = PETITION_CLOSED;
    return true;
}

bool callers_next(struct callers *all, struct input_petition *ret) {
    for (struct list *l; (l = list_first(&all->due)) != NULL; list_remove(l))
        if (next_of(CONTAINER_OF(l, struct caller, due), ret))
            return true;
    return false;
}

/* ---- bells ---- */

static struct caller *free_place(struct callers *all) {
    if (all->table == NULL) {
        all->table = calloc(all->cap, sizeof *all->table);
        all->frame = malloc(LINE_FRAME_MAX);
        for (uint32_t i = 0; all->table != NULL && i < all->cap; i++) {
            all->table[i].line.fd = -1;
            list_init(&all->table[i].due);
        }
    }
    for (uint32_t i = 0; all->table != NULL && all->frame != NULL && i < all->cap; i++)
        if (all->table[i].line.fd < 0)
            return &all->table[i];
    return NULL;
}

/* Whatever else came through the bell is not talked to. */
static bool is_line(int fd) {
    int domain = 0, type = 0;
    socklen_t len = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET;
}

static void let_in(struct bell *b, int fd, uint32_t rank) {
    struct callers *all = b->all;
    struct caller *c = b->group == BELL_NOBODY || !is_line(fd) ? NULL : free_place(all);
    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (struct caller){.all = all, .bell = b, .rank = rank, .readable = true, .opened_due = true};
    list_init(&c->due);
    if (loop_adopt(all->loop, &c->line, spawn_aside(fd), line_ready, EPOLLIN | EPOLLET) < 0)
        c->line.fd = -1;
    else
        due(c);
}

/* False: nobody else has rung. */
static bool answer_one(struct bell *b) {
    uint8_t hello[BELL_BYTES];
    int fd;
    ssize_t n = enclosure_receive(b->near.fd, hello, sizeof hello, &fd);
    if (n < 0)
        return errno == EINTR;
    if (fd >= 0 && n == BELL_BYTES && load_le32(hello) == BELL_VERSION)
        let_in(b, fd, load_le32(hello + 4));
    else if (fd >= 0)
        close(fd);
    return true;
}

static void bell_ready(struct source *s, uint32_t events) {
    struct bell *b = CONTAINER_OF(s, struct bell, near);
    (void)events;
    for (int i = 0; i < RINGS_AT_ONCE && answer_one(b); i++)
        ;
}

static struct bell *bell_new(struct callers *all) {
    int ends[2];
    struct bell *b = calloc(1, sizeof *b);
    if (b == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        free(b);
        return NULL;
    }
    *b = (struct bell){.all = all, .group = BELL_NOBODY, .far = spawn_aside(ends[1])};
    if (loop_adopt(all->loop, &b->near, spawn_aside(ends[0]), bell_ready, EPOLLIN) == 0)
        return b;
    close(b->far);
    free(b);
    return NULL;
}

void bells_stock(struct callers *all) {
    if (all->spare == NULL && all->cap > 0)
        all->spare = bell_new(all);
}

struct bell *bell_take(struct callers *all, uint32_t group) {
    struct bell *b = all->spare != NULL ? all->spare : all->cap > 0 ? bell_new(all) : NULL;
    all->spare = NULL;
    if (b != NULL)
        b->group = group;
    return b;
}

void bell_silence(struct bell *b) {
    struct callers *all = b->all;
    b->group = BELL_NOBODY;
    for (uint32_t i = 0; all->table != NULL && i < all->cap; i++)
        if (all->table[i].line.fd >= 0 && all->table[i].bell == b)
            hang_up(&all->table[i]);
}

void bell_close(struct bell *b) {
    if (b == NULL)
        return;
    bell_silence(b);
    loop_close(b->all->loop, &b->near);
    close(b->far);
    free(b);
}

void callers_init(struct callers *all, struct loop *loop, uint32_t cap) {
    *all = (struct callers){.loop = loop, .cap = cap};
    list_init(&all->due);
}

void callers_fini(struct callers *all) {
    bell_close(all->spare);
    free(all->table);
    free(all->frame);
}
