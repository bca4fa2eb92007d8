/* SPDX-License-Identifier: MIT */
/* Where output goes on the client's side: see sink.h. */
#include "client/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "os/files.h"

enum {
    DIRECT_BYTES = 16 * 1024,  /* larger parts are not copied if nothing waits */
    GATHER_BYTES = 256 * 1024, /* written before the turn is over */
    CAREFUL_BYTES = 4096,      /* what a pipe that is ready surely takes */
    KEEP_BYTES = 1 << 20
};

static void ready(struct source *source, uint32_t events) {
    struct sink *s = CONTAINER_OF(source, struct sink, source);
    (void)events;
    sink_settle(s);
}

void sink_init(struct sink *s, struct loop *loop, int fd, bool own) {
    *s = (struct sink){.source = {.fd = fd, .ready = ready}, .loop = loop, .own = own};
}

/* Before the first byte: most commands write nothing to one of them. */
static void prepare(struct sink *s) {
    struct stat st;
    int fd = s->source.fd;
    s->prepared = true;
    if (fd < 0 || fstat(fd, &st) < 0) {
        s->error = -EBADF;
        return;
    }
    if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) || s->own)
        return;
    int again = S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)
                    ? files_open_again(fd, O_WRONLY | O_NONBLOCK)
                    : -1;
    s->careful = again < 0;
    if (again >= 0) {
        s->source.fd = again;
        s->own = true;
    }
}

static void wait_for(struct sink *s, bool more) {
    if (s->waiting == more)
        return;
    if (!more)
        loop_remove(s->loop, &s->source);
    else if (loop_add(s->loop, &s->source, EPOLLOUT) < 0)
        return; /* what cannot be waited for is always ready: the next turn tries again */
    s->waiting = more;
}

void sink_fini(struct sink *s) {
    wait_for(s, false);
    if (s->own && s->source.fd >= 0)
        close(s->source.fd);
    free(s->out);
    *s = (struct sink){.source = {.fd = -1}};
}

static bool is_ready(const struct sink *s) {
    struct pollfd p = {.fd = s->source.fd, .events = POLLOUT};
    return poll(&p, 1, 0) > 0;
}

static ssize_t write_part(const struct sink *s, const uint8_t *at, size_t len) {
    if (!s->careful)
        return write(s->source.fd, at, len);
    ssize_t n = send(s->source.fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0 || errno != ENOTSOCK)
        return n;
    if (!is_ready(s)) {
        errno = EAGAIN;
        return -1;
    }
    return write(s->source.fd, at, len < CAREFUL_BYTES ? len : CAREFUL_BYTES);
}

/* How much of it went out. */
static size_t write_some(struct sink *s, struct bytes bytes) {
    size_t done = 0;
    while (done < bytes.len && s->error == 0) {
        ssize_t n = write_part(s, bytes.at + done, bytes.len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            s->error = -errno;
    }
    return done;
}

static int append(struct sink *s, struct bytes bytes) {
    if (s->at == s->len)
        s->at = s->len = 0;
    if (s->cap - s->len < bytes.len) {
        size_t cap = s->cap ? s->cap : DIRECT_BYTES;
        while (cap - s->len < bytes.len)
            cap *= 2;
        uint8_t *more = realloc(s->out, cap);
        if (more == NULL)
            return -ENOMEM;
        s->out = more;
        s->cap = cap;
    }
    memcpy(s->out + s->len, bytes.at, bytes.len);
    s->len += bytes.len;
    return 0;
}

static void drop(struct sink *s) {
    s->at = s->len = 0;
    if (s->cap > KEEP_BYTES) {
        free(s->out);
        s->out = NULL;
        s->cap = 0;
    }
}

void sink_settle(struct sink *s) {
    if (s->len > s->at)
        s->at += write_some(s, bytes_of(s->out + s->at, s->len - s->at));
    if (s->at == s->len || s->error != 0)
        drop(s);
    wait_for(s, s->len > 0);
}

int sink_write(struct sink *s, struct bytes bytes) {
    if (!s->prepared)
        prepare(s);
    if (s->error != 0)
        return 0;
    if (sink_waiting(s) == 0 && bytes.len >= DIRECT_BYTES) {
        size_t done = write_some(s, bytes);
        bytes = bytes_of(bytes.at + done, bytes.len - done);
    }
    if (bytes.len == 0 || s->error != 0)
        return 0;
    int r = append(s, bytes);
    if (r == 0 && !s->waiting && sink_waiting(s) >= GATHER_BYTES)
        sink_settle(s);
    return r;
}
