/* SPDX-License-Identifier: MIT */
/* Connections to and fro, the desk in between.
 *
 * A turn: all that has come is heard, what follows is said, records are written with one call, then what may be said because
 * of that; at last everything leaves, one call for each connection. */
#include "distributor/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18, DEEDS_BYTES = 8 << 20, OUT_MAX = 256 << 20 };

/* ---- acknowledgements that masters of this machine write down themselves ---- */

static void read_word(struct server *s, uint32_t slot) {
    struct desk_master m;
    char path[40];
    uint8_t word[8];
    if (!desk_master(s->desk, slot, &m))
        return;
    snprintf(path, sizeof path, "ack.%016llx", (unsigned long long)m.cookie);
    int fd = openat(s->folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (read(fd, word, sizeof word) == sizeof word)
        desk_master_acked(s->desk, slot, load_le64(word), &s->deeds);
    close(fd);
    server_carry_out(s);
}

static void read_words(struct server *s) {
    for (uint32_t slot = 0; slot < s->limits.masters; slot++)
        read_word(s, slot);
}

/* ---- connections ---- */

static void connection_end(struct connection *c, bool tell) {
    struct server *s = c->server;
    if (c->source.fd < 0)
        return;
    loop_close(&s->loop, &c->source);
    c->in.from = c->in.len = c->out.from = c->out.len = 0;
    if (tell && !c->closing) {
        desk_down(s->desk, c->link, s->loop.now);
        read_words(s);
        s->again = true;
    }
    c->closing = c->waiting = c->touched = false;
}

static void connection_flush(struct connection *c) {
    struct bytes b = wodi_bytes_left(&c->out);
    c->touched = false;
    if (c->source.fd < 0)
        return;
    ssize_t n = b.len ? send(c->source.fd, b.at, b.len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        connection_end(c, true);
        return;
    }
    wodi_bytes_took(&c->out, n > 0 ? (size_t)n : 0);
    bool more = wodi_bytes_left(&c->out).len > 0;
    if (!more)
        desk_drained(c->server->desk, c->link);
    if (!more && c->closing)
        connection_end(c, false);
    else if (more != c->waiting)
        loop_change(&c->server->loop, &c->source, EPOLLIN | (more ? EPOLLOUT : 0u));
    c->waiting = more;
}

static void carry_out_one(struct server *s, const struct deed *d) {
    struct connection *c = &s->all[d->link];
    switch (d->kind) {
    case DEED_LOG:
        keep_add(&s->keep, d->bytes);
        break;
    case DEED_SEND:
        /* Its end is heard as any other's, in a turn of its own. */
        if (c->source.fd >= 0 &&
            (wodi_bytes_left(&c->out).len > OUT_MAX || !wodi_bytes_add(&c->out, d->bytes)))
            shutdown(c->source.fd, SHUT_RDWR);
        c->touched = true;
        break;
    case DEED_CLOSE:
        c->closing = c->touched = c->source.fd >= 0;
        break;
    }
}

void server_carry_out(struct server *s) {
    struct deed d;
    for (size_t at = 0; deeds_next(&s->deeds, &at, &d);)
        carry_out_one(s, &d);
    s->deeds.len = 0;
}

static void hear_all(struct connection *c) {
    struct server *s = c->server;
    struct word w;
    long len = 0;
    while (!c->closing && (len = word_next(wodi_bytes_left(&c->in), &w)) > 0) {
        if (w.kind == WORD_MASTER)
            read_words(s); /* of its former life, whose end we may not have seen yet */
        desk_heard(s->desk, c->link, &w, s->loop.now, &s->deeds);
        wodi_bytes_took(&c->in, (size_t)len);
        server_carry_out(s);
    }
    if (!c->closing && c->source.fd >= 0 && len < 0)
        connection_end(c, true);
}

static void on_ready(struct source *source, uint32_t events) {
    struct connection *c = CONTAINER_OF(source, struct connection, source);
    if (events & EPOLLOUT)
        connection_flush(c);
    if (c->source.fd < 0 || !(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    uint8_t *to = wodi_bytes_room(&c->in, READ_BYTES);
    ssize_t n = to ? recv(c->source.fd, to, READ_BYTES, MSG_DONTWAIT) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        connection_end(c, true);
        return;
    }
    c->in.len += (size_t)n;
    hear_all(c);
}

static void accept_all(struct server *s, int listener, bool local) {
    for (int fd;
         (fd = address_accept_or_dismiss(listener, &s->spare)) >= 0 || fd == -ECONNABORTED;) {
        uint32_t link = 0;
        if (fd < 0)
            continue;
        while (link < s->limits.links && (s->all[link].source.fd >= 0 || s->all[link].closing))
            link++;
        struct connection *c = &s->all[link];
        if (link == s->limits.links ||
            loop_adopt(&s->loop, &c->source, fd, on_ready, EPOLLIN) != 0) {
            if (link == s->limits.links)
                close(fd);
            continue;
        }
        desk_up(s->desk, link, local, s->loop.now);
    }
}

static void on_connect(struct source *source, uint32_t events) {
    (void)events;
    struct server *s = CONTAINER_OF(source, struct server, listener);
    accept_all(s, source->fd, s->local);
}

static void on_connect_outer(struct source *source, uint32_t events) {
    (void)events;
    accept_all(CONTAINER_OF(source, struct server, outer), source->fd, false);
}

static void on_synced(struct source *source, uint32_t events) {
    (void)events;
    struct server *s = CONTAINER_OF(source, struct server, synced);
    keep_answered(&s->keep);
}

/* ---- a turn ---- */

static void pump(struct server *s) {
    bool more;
    desk_durable(s->desk, s->keep.durable);
    do {
        more = desk_pump(s->desk, s->loop.now, &s->deeds);
        server_carry_out(s);
    } while (more);
}

/* 0 or -errno: what could not be written must not be acted on. */
static int write_down(struct server *s) {
    int status = keep_flush(&s->keep);
    if (status == 0 && keep_should_compact(&s->keep))
        status = keep_compact(&s->keep, s->desk);
    return status;
}

static void settle(struct server *s) {
    server_look_at_past(s, false);
    do {
        s->again = false;
        pump(s);
        s->status = write_down(s);
        if (s->status < 0)
            return;
        pump(s);
        for (uint32_t i = 0; i < s->limits.links; i++)
            if (s->all[i].touched)
                connection_flush(&s->all[i]);
    } while (s->again);
}

void server_turn(struct server *s) {
    uint64_t at = desk_deadline(s->desk, s->loop.now);
    if (at)
        loop_wake_at(&s->loop, at);
    loop_turn(&s->loop, -1);
    if (at && s->loop.now >= at)
        desk_time(s->desk, s->loop.now, &s->deeds);
    server_carry_out(s);
    settle(s);
}

/* ---- life ---- */

static int make_memory(struct server *s) {
    void *mem = mmap(NULL, desk_bytes(&s->limits), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    s->deeds = (struct deeds){.at = malloc(DEEDS_BYTES), .cap = DEEDS_BYTES};
    s->all = calloc(s->limits.links, sizeof *s->all);
    s->past = calloc(s->limits.masters, sizeof *s->past);
    if (mem == MAP_FAILED || !s->deeds.at || !s->all || !s->past)
        return -ENOMEM;
    s->desk = desk_init(mem, &s->limits);
    for (uint32_t i = 0; i < s->limits.links; i++)
        s->all[i] = (struct connection){.source = {.fd = -1}, .server = s, .link = i};
    return 0;
}

int server_start(struct server *s, int folder, const struct desk_limits *limits, bool sync,
                 uint64_t compact_bytes, struct address *listen) {
    *s = (struct server){
        .limits = *limits, .folder = folder, .outer = {.fd = -1}, .spare = address_spare()};
    int status = make_memory(s);
    if (status == 0)
        status = loop_init(&s->loop);
    if (status == 0)
        status = keep_open(&s->keep, folder, sync, compact_bytes, s->desk);
    if (status < 0)
        return status;
    read_words(s);
    int fd = address_listen(listen);
    if (fd < 0)
        return fd;
    s->local = listen->any.sa_family == AF_UNIX;
    status = loop_adopt(&s->loop, &s->listener, fd, on_connect, EPOLLIN);
    if (status == 0)
        status = loop_adopt(&s->loop, &s->synced, s->keep.answer, on_synced, EPOLLIN);
    settle(s);
    return status < 0 ? status : s->status;
}

int server_listen_also(struct server *s, struct address *listen) {
    int fd = address_listen(listen);
    return fd < 0 ? fd : loop_adopt(&s->loop, &s->outer, fd, on_connect_outer, EPOLLIN);
}

void server_stop(struct server *s) {
    server_look_at_past(s, true);
    for (uint32_t i = 0; i < s->limits.links; i++) {
        connection_end(&s->all[i], false);
        free(s->all[i].in.at);
        free(s->all[i].out.at);
    }
    loop_close(&s->loop, &s->listener);
    loop_close(&s->loop, &s->outer);
    if (s->spare >= 0)
        close(s->spare);
    loop_remove(&s->loop, &s->synced);
    keep_close(&s->keep);
    loop_fini(&s->loop);
    munmap(s->desk, desk_bytes(&s->limits));
    free(s->deeds.at);
    free(s->all);
    free(s->past);
}
