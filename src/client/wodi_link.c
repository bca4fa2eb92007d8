/* SPDX-License-Identifier: MIT */
/* The connection of a master or a worker. */
#include "client/wodi_link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "wodi/history.h"

enum { READ_BYTES = 1 << 16, PATIENCE_S = 600, RETRY_FIRST_MS = 5, RETRY_MAX_MS = 500 };

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

const char *wodi_link_setting(const char *given, const char *variable, const char *usual) {
    const char *value = given ? given : getenv(variable);
    return value && *value ? value : usual;
}

uint64_t wodi_link_speed(double speed) {
    return speed > 0 && speed < 1e6 ? (uint64_t)(speed * (double)SPEED_ONE) + 1 : SPEED_ONE;
}

static bool parse_token(const char *text, uint64_t token[2]) {
    char half[17] = {0};
    if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32)
        return false;
    memcpy(half, text, 16);
    token[0] = strtoull(half, NULL, 16);
    token[1] = strtoull(text + 16, NULL, 16);
    return true;
}

int wodi_link_init(struct wodi_link *l, const char *server, unsigned patience_s) {
    char address[ADDRESS_TEXT_MAX];
    *l = (struct wodi_link){.fd = -1};
    l->patience_ns = (uint64_t)(patience_s ? patience_s : PATIENCE_S) * 1000000000;
    server = wodi_link_setting(server, "STORM_WODI", NULL);
    if (!server)
        return -ENOENT;
    const char *hash = strrchr(server, '#');
    if (!hash || (size_t)(hash - server) >= sizeof address || !parse_token(hash + 1, l->token))
        return -EINVAL;
    memcpy(address, server, (size_t)(hash - server));
    address[hash - server] = 0;
    return address_parse(&l->to, address);
}

void wodi_link_drop(struct wodi_link *l) {
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    l->in.from = l->in.len = l->given = 0;
}

void wodi_link_fini(struct wodi_link *l) {
    wodi_link_drop(l);
    free(l->in.at);
}

static int connect_once(struct wodi_link *l) {
    int done = 0;
    int fd = address_connect(&l->to, &done);
    if (fd < 0)
        return fd;
    if (!done) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int error = 0;
        socklen_t len = sizeof error;
        int ready = poll(&p, 1, 10000);
        if (ready <= 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
            error = ETIMEDOUT;
        if (error == 0 && address_self_connected(fd))
            error = ECONNREFUSED;
        if (error) {
            close(fd);
            return -error;
        }
    }
    l->fd = fd;
    return 0;
}

int wodi_link_connect(struct wodi_link *l) {
    uint64_t until = now_ns() + l->patience_ns;
    int pause = RETRY_FIRST_MS;
    for (;;) {
        int status = connect_once(l);
        if (status == 0 || now_ns() >= until)
            return status;
        poll(NULL, 0, pause);
        pause = pause * 2 < RETRY_MAX_MS ? pause * 2 : RETRY_MAX_MS;
    }
}

/* 1: some went, 0: the socket takes nothing now, -1: it has ended. */
static int send_some(struct wodi_link *l, struct wodi_bytes *out) {
    struct bytes left = wodi_bytes_left(out);
    if (left.len == 0)
        return 0;
    ssize_t n = send(l->fd, left.at, left.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    wodi_bytes_took(out, (size_t)n);
    return 1;
}

static int read_some(struct wodi_link *l) {
    wodi_bytes_took(&l->in, l->given);
    l->given = 0;
    uint8_t *to = wodi_bytes_room(&l->in, READ_BYTES);
    if (!to)
        return -1;
    ssize_t n = recv(l->fd, to, READ_BYTES, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    l->in.len += (size_t)n;
    return n > 0 ? 1 : -1;
}

void wodi_link_send(struct wodi_link *l, struct wodi_bytes *out) {
    send_some(l, out);
}

bool wodi_link_exchange(struct wodi_link *l, struct wodi_bytes *out, bool wait) {
    for (;;) {
        int went = send_some(l, out);
        int came = went < 0 ? -1 : read_some(l);
        if (came < 0) {
            wodi_link_drop(l);
            return false;
        }
        if (came > 0 || !wait)
            return true;
        bool more = wodi_bytes_left(out).len > 0;
        struct pollfd p = {.fd = l->fd, .events = (short)(POLLIN | (more ? POLLOUT : 0))};
        poll(&p, 1, -1);
    }
}

int wodi_link_next(struct wodi_link *l, struct word *ret) {
    wodi_bytes_took(&l->in, l->given);
    l->given = 0;
    long len = word_next(wodi_bytes_left(&l->in), ret);
    if (len <= 0)
        return (int)len;
    l->given = (size_t)len;
    return 1;
}
