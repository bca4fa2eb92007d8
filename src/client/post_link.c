/* SPDX-License-Identifier: MIT */
/* One connection between two processes of a program: frames (wire/peer.h) out and in. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/post.h"
#include "os/address.h"
#include "os/enclosure.h"

/* So much is read at once, so that others have their turn; so many are acknowledged without being asked. */
enum { READ_MOST = 1 << 20, TOLD_MOST = 64 };

struct link *link_new(struct post *p, int fd, bool ours, struct peer *peer) {
    struct link *l = calloc(1, sizeof *l);
    struct epoll_event e = {.events = EPOLLIN | (ours ? EPOLLOUT : 0U), .data.ptr = l};
    if (l == NULL || epoll_ctl(p->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        free(l);
        close(fd);
        return NULL;
    }
    l->post = p;
    l->peer = peer;
    l->fd = fd;
    l->ours = l->connecting = ours;
    l->events = e.events;
    l->memory = -1;
    list_init(&l->unacked);
    list_push_back(&p->links, &l->at);
    return l;
}

void link_free(struct link *l) {
    list_remove(&l->at);
    close(l->fd);
    if (l->memory >= 0)
        close(l->memory);
    l->post->ringed -= l->ringed;
    rings_free(&l->rings);
    if (l->letter != NULL)
        letter_free(l->letter);
    free(l);
}

/* ---- outwards ---- */

static size_t write_rings(struct link *l, const uint8_t *at, size_t len) {
    long n = rings_write(&l->rings, at, len);
    l->lost = l->lost || n < 0;
    return n < 0 ? 0 : (size_t)n;
}

/* With the first byte goes the memory. */
static ssize_t write_with_memory(struct link *l, const uint8_t *at, size_t len) {
    ssize_t n = enclosure_send(l->fd, at, len, l->memory, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        close(l->memory);
        l->memory = -1;
    }
    return n;
}

/* Bytes that were taken, 0: none now; the link may be lost by it. */
static size_t write_some(struct link *l, const uint8_t *at, size_t len) {
    ssize_t n;
    if (l->ringed)
        return write_rings(l, at, len);
    do
        n = l->memory >= 0 ? write_with_memory(l, at, len)
                           : send(l->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    l->lost = l->lost || (n < 0 && errno != EAGAIN && errno != ENOBUFS);
    return n < 0 ? 0 : (size_t)n;
}

/* True: nothing is left. */
static bool flush(struct link *l) {
    while (l->out_from < l->out_to && !l->connecting) {
        size_t n = write_some(l, l->out + l->out_from, l->out_to - l->out_from);
        if (n == 0)
            return false;
        l->out_from += n;
    }
    if (l->out_from < l->out_to)
        return false;
    l->out_from = l->out_to = 0;
    return true;
}

static bool has_room(struct link *l, size_t len) {
    return LINK_BYTES - l->out_to >= len || (flush(l) && len <= LINK_BYTES);
}

static void put_head(struct link *l, uint32_t kind, uint32_t len, uint32_t tag) {
    struct peer_head h = {.kind = kind, .len = len, .tag = tag, .received = l->received};
    peer_head_write(&h, l->out + l->out_to);
    l->out_to += PEER_HEAD_BYTES;
    l->post->untold -= l->received - l->told;
    l->told = l->received;
}

/* As much of the bytes as can go: what is long is not copied first. */
static size_t put(struct link *l, const uint8_t *at, size_t len) {
    size_t done = 0;
    while (done < len && !l->lost) {
        size_t left = len - done;
        if (left >= LINK_BYTES && flush(l)) {
            size_t n = write_some(l, at + done, left);
            if (n == 0)
                break;
            done += n;
            continue;
        }
        if (!has_room(l, 1))
            break;
        size_t n = LINK_BYTES - l->out_to < left ? LINK_BYTES - l->out_to : left;
        memcpy(l->out + l->out_to, at + done, n);
        l->out_to += n;
        done += n;
    }
    return done;
}

/* The body of what has been begun; true: it is written. */
static bool put_body(struct link *l) {
    struct sending *s = l->going;
    l->gone += put(l, s->cargo->data + l->gone, s->cargo->len - l->gone);
    if (l->gone < s->cargo->len)
        return false;
    if (--s->cargo->refs == 0)
        free(s->cargo);
    s->cargo = NULL;
    list_push_back(&l->unacked, &s->at);
    l->going = NULL;
    return true;
}

static struct sending *next(const struct link *l) {
    struct list *first = l->up && l->peer->link == l ? list_first(&l->peer->queue) : NULL;
    return first == NULL ? NULL : CONTAINER_OF(first, struct sending, at);
}

/* One that is awake looks itself. If the socket is full of such bytes it will wake, too. */
static void wake_other(struct link *l) {
    if (l->ringed && rings_wake(&l->rings) && send(l->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        errno != EAGAIN && errno != EINTR)
        l->ended = true;
}

void link_write(struct link *l) {
    while (!l->lost && (l->going == NULL || put_body(l))) {
        struct sending *s = next(l);
        if (s == NULL || !has_room(l, PEER_HEAD_BYTES))
            break;
        list_remove(&s->at);
        put_head(l, PEER_DATA, (uint32_t)s->cargo->len, s->tag);
        l->going = s;
        l->gone = 0;
    }
    if (l->up && l->going == NULL && l->told != l->received && has_room(l, PEER_HEAD_BYTES))
        put_head(l, PEER_ACK, 0, 0);
    flush(l);
    wake_other(l);
    link_watch(l);
}

/* One of ours is welcomed with rings or without. */
static void use_rings(struct link *l, bool so) {
    l->ringed = so;
    l->post->ringed += so;
    if (!so)
        rings_free(&l->rings);
    else if (!l->post->awake)
        rings_wait_in(&l->rings); /* and is read from, now */
}

/* Memory for one of the same node; where there is none, the socket does. */
static void offer_rings(struct link *l, struct peer_hello *hello) {
    l->memory = l->near ? rings_make(&l->rings) : -1;
    hello->rings = l->memory >= 0 ? RINGS_BYTES : 0;
}

static bool take_rings(struct link *l, const struct peer_hello *hello) {
    bool taken =
        l->memory >= 0 && hello->rings == RINGS_BYTES && rings_take(&l->rings, l->memory) == 0;
    if (l->memory >= 0)
        close(l->memory);
    l->memory = -1;
    return taken;
}

void link_hail(struct link *l, struct peer_hello *hello) {
    if (l->ours) {
        offer_rings(l, hello);
        put_head(l, PEER_HELLO, PEER_HELLO_BYTES, 0);
        peer_hello_write(hello, l->out + l->out_to);
        l->out_to += PEER_HELLO_BYTES;
        link_write(l);
        return;
    }
    bool so = take_rings(l, hello);
    put_head(l, PEER_WELCOME, 0, so);
    if (!flush(l))
        l->lost = true; /* into an empty socket it goes, or nowhere */
    use_rings(l, so);
}

void link_watch(struct link *l) {
    bool reads = l->post->inbox < POST_INBOX_MAX;
    if (l->ringed) /* as it is: bytes on the socket wake */
        reads = true;
    bool writes = l->connecting || l->out_to > 0 || l->going != NULL || next(l) != NULL;
    struct epoll_event e = {.events = (reads ? (uint32_t)EPOLLIN : 0U) |
                                      (writes && !l->ringed ? (uint32_t)EPOLLOUT : 0U),
                            .data.ptr = l};
    if (e.events == l->events || l->ended || (l->unwatched && !reads))
        return;
    l->events = e.events;
    epoll_ctl(l->post->epoll, l->unwatched ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, l->fd, &e);
    l->unwatched = false;
}

/* ---- inwards ---- */

/* What comes tells how many of ours have been taken. */
static bool take_ack(struct link *l, uint32_t received) {
    while (l->acked != received) {
        struct list *first = list_pop_front(&l->unacked);
        if (first == NULL)
            return false;
        l->acked++;
        post_settle(l->post, l->peer, CONTAINER_OF(first, struct sending, at), 0);
    }
    return true;
}

static bool begin_letter(struct link *l) {
    struct steward *s = l->post->steward;
    struct call about = {.tag = (int)l->now.tag};
    struct letter *letter = letter_add(s, &about, CARMI_DATA);
    if (letter == NULL)
        return false;
    list_remove(&letter->at);
    l->letter = letter;
    letter->message.last = 0;
    letter->message.process = l->peer->id;
    letter->message.bytes = l->now.len;
    letter->message.data = letter_data(s, letter, l->now.len);
    return letter->message.data != NULL;
}

static bool on_head(struct link *l) {
    if (!peer_head_read(&l->now, l->head))
        return false;
    if (!l->up)
        return l->now.received == 0 && l->now.kind == (l->ours ? PEER_WELCOME : PEER_HELLO);
    if (l->now.kind != PEER_DATA && l->now.kind != PEER_ACK)
        return false;
    return take_ack(l, l->now.received) && (l->now.kind != PEER_DATA || begin_letter(l));
}

static bool on_frame(struct link *l) {
    struct peer_hello hello;
    switch (l->now.kind) {
    case PEER_HELLO:
        return peer_hello_read(&hello, bytes_of(l->head + PEER_HEAD_BYTES, PEER_HELLO_BYTES)) &&
               post_hello(l, &hello);
    case PEER_WELCOME:
        if (l->now.tag == 1 && l->rings.memory == NULL)
            return false;
        use_rings(l, l->now.tag == 1);
        if (l->ringed)
            l->in_from = l->in_to = 0; /* what is behind it only wakes */
        post_up(l);
        return true;
    case PEER_DATA:
        list_push_back(&l->post->steward->letters, &l->letter->at);
        l->letter = NULL;
        l->post->inbox += l->now.len + POST_OVERHEAD;
        l->received++;
        l->post->untold++;
        return true;
    default:
        return true;
    }
}

/* Where the next bytes belong, and how many. */
static struct room place(struct link *l) {
    if (!l->in_body)
        return room_of(l->head + l->have, PEER_HEAD_BYTES - l->have);
    uint8_t *body = l->letter == NULL ? l->head + PEER_HEAD_BYTES
                                      : (uint8_t *)(uintptr_t)l->letter->message.data;
    return room_of(body + l->have, l->now.len - l->have);
}

/* The place is full: a head, or a body. */
static void filled(struct link *l) {
    bool good = l->in_body || on_head(l);
    bool whole = good && (l->in_body || l->now.len == 0);
    l->in_body = good && !l->in_body && l->now.len > 0;
    l->have = 0;
    if (!good || (whole && !on_frame(l)))
        l->lost = true;
}

/* What has ended may have left something. */
static size_t read_rings(struct link *l, uint8_t *at, size_t len) {
    bool ended = l->ended;
    long n = rings_read(&l->rings, at, len);
    l->lost = l->lost || n < 0 || (n == 0 && ended);
    return n < 0 ? 0 : (size_t)n;
}

/* With HELLO may come memory. */
static ssize_t read_with_memory(struct link *l, uint8_t *at, size_t len) {
    int memory;
    ssize_t n = enclosure_receive(l->fd, at, len, &memory);
    if (memory >= 0 && l->memory < 0)
        l->memory = memory;
    else if (memory >= 0)
        close(memory);
    return n;
}

/* Bytes, 0: none now; the link may be lost by it. */
static size_t read_some(struct link *l, uint8_t *at, size_t len) {
    ssize_t n;
    if (l->ringed)
        return read_rings(l, at, len);
    do
        n = l->up ? recv(l->fd, at, len, MSG_DONTWAIT) : read_with_memory(l, at, len);
    while (n < 0 && errno == EINTR);
    l->lost = l->lost || n == 0 || (n < 0 && errno != EAGAIN);
    return n < 0 ? 0 : (size_t)n;
}

static size_t fetch(struct link *l, struct room to) {
    if (l->in_from == l->in_to && to.len >= LINK_BYTES)
        return read_some(l, to.at, to.len);
    if (l->in_from == l->in_to) {
        l->in_from = 0;
        l->in_to = read_some(l, l->in, LINK_BYTES);
    }
    size_t n = l->in_to - l->in_from < to.len ? l->in_to - l->in_from : to.len;
    memcpy(to.at, l->in + l->in_from, n);
    l->in_from += n;
    return n;
}

void link_read(struct link *l) {
    size_t most = READ_MOST;
    while (!l->lost && l->post->inbox < POST_INBOX_MAX && (most > 0 || l->in_from < l->in_to)) {
        struct room to = place(l);
        size_t n = fetch(l, to);
        if (n == 0)
            break;
        most -= n < most ? n : most;
        l->have += n;
        if (n == to.len)
            filled(l);
    }
    l->post->stalled = l->post->stalled || l->post->inbox >= POST_INBOX_MAX;
    if (!l->lost && l->received - l->told >= TOLD_MOST) {
        link_write(l);
    } else {
        wake_other(l);
        link_watch(l);
    }
}

/* Bytes on the socket of one that has rings. */
static void hear_bell(struct link *l) {
    uint8_t waste[256];
    ssize_t n;
    do
        n = recv(l->fd, waste, sizeof waste, MSG_DONTWAIT);
    while (n == (ssize_t)sizeof waste || (n < 0 && errno == EINTR));
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        epoll_ctl(l->post->epoll, EPOLL_CTL_DEL, l->fd, NULL);
        l->ended = true;
    }
}

void link_look(struct link *l) {
    link_read(l);
    if (!l->lost && (l->out_to > 0 || l->going != NULL || next(l) != NULL))
        link_write(l);
}

/* It has ended, of which epoll always tells; what it has left is read later. */
static void unwatch(struct link *l) {
    epoll_ctl(l->post->epoll, EPOLL_CTL_DEL, l->fd, NULL);
    l->unwatched = true;
    l->events = 0;
}

static bool connected(struct link *l) {
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0 ||
        address_self_connected(l->fd))
        return false;
    l->connecting = false;
    return true;
}

void link_event(struct link *l, uint32_t events) {
    if (l->ringed) {
        hear_bell(l);
        link_look(l);
        return;
    }
    if (l->connecting && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0)
        l->lost = !connected(l);
    if (!l->lost && !l->connecting && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
        link_read(l);
    if (!l->lost && (events & EPOLLOUT) != 0)
        link_write(l);
    if (!l->lost && (events & (EPOLLERR | EPOLLHUP)) != 0 && l->post->inbox >= POST_INBOX_MAX)
        unwatch(l);
}
