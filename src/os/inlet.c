/* SPDX-License-Identifier: MIT */
/* The standard input of a process: see inlet.h. */
#include "os/inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/list.h"

void inlet_none(struct inlet *i) {
    *i = (struct inlet){.near = {.fd = -1}, .far = -1, .deaf = true};
}

static void shut(struct inlet *i) {
    if (i->near.fd < 0)
        return;
    if (i->watched)
        loop_remove(i->loop, &i->near);
    close(i->near.fd);
    i->watched = false;
    i->near.fd = -1;
}

void inlet_close(struct inlet *i) {
    shut(i);
    if (i->far >= 0)
        close(i->far);
    i->far = -1;
    window_fini(&i->window);
}

/* The rest of the input does not matter any more. */
static void go_deaf(struct inlet *i) {
    i->deaf = i->due = true;
    shut(i);
    window_fini(&i->window);
}

/* As many as fit; negative if nobody reads them. */
static ssize_t push(struct inlet *i, struct bytes bytes) {
    ssize_t n;
    do
        n = write(i->near.fd, bytes.at, bytes.len);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        i->last = bytes.at[n - 1];
    return n < 0 && errno == EAGAIN ? 0 : n;
}

/* A terminal's reader sees the end when it reads an empty line piece: the first mark ends a line that
 * was begun, the second one is the end. */
static void finish(struct inlet *i) {
    struct termios t;
    if (!i->terminal) {
        shut(i);
        return;
    }
    uint8_t mark = tcgetattr(i->near.fd, &t) == 0 ? t.c_cc[VEOF] : 4;
    uint8_t marks[2] = {mark, mark};
    bool begun = i->window.to > 0 && i->last != '\n';
    ssize_t n = push(i, bytes_of(marks, begun ? 2 : 1));
    (void)n; /* a terminal that is full has other troubles */
    shut(i);
}

static void flush(struct inlet *i) {
    while (i->window.from < i->window.to) {
        ssize_t n = push(i, window_part(&i->window, i->window.from));
        if (n < 0) {
            go_deaf(i);
            return;
        }
        if (n == 0)
            return;
        window_drop(&i->window, i->window.from + (uint64_t)n);
        i->due = true;
    }
    if (i->end)
        finish(i);
}

static void ready(struct source *s, uint32_t events) {
    (void)events;
    struct inlet *i = CONTAINER_OF(s, struct inlet, near);
    flush(i);
    if (i->due && i->moved != NULL)
        i->moved(i);
}

int inlet_open(struct inlet *i, struct loop *l, size_t window) {
    int fds[2];
    inlet_none(i);
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(fds[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0) {
        int r = -errno;
        close(fds[0]);
        close(fds[1]);
        return r;
    }
    *i = (struct inlet){.near = {.fd = fds[1], .ready = ready}, .loop = l, .far = fds[0]};
    window_init(&i->window, window);
    return 0;
}

void inlet_adopt(struct inlet *i, struct loop *l, int fd, size_t window) {
    *i = (struct inlet){.near = {.fd = fd, .ready = ready}, .loop = l, .far = -1, .terminal = true};
    window_init(&i->window, window);
}

void inlet_release(struct inlet *i) {
    if (i->far >= 0)
        close(i->far);
    i->far = -1;
}

/* Straight into the pipe if nothing waits; the rest waits. True if all was accepted. */
static bool accept_all(struct inlet *i, struct bytes bytes) {
    struct window *w = &i->window;
    if (w->from == w->to && bytes.len > 0) {
        ssize_t n = push(i, bytes);
        if (n < 0) {
            go_deaf(i);
            return false;
        }
        w->from = w->to = w->to + (uint64_t)n;
        bytes = bytes_of(bytes.at + n, bytes.len - (size_t)n);
    }
    while (bytes.len > 0) {
        struct room room = window_room(w);
        size_t n = room.len < bytes.len ? room.len : bytes.len;
        if (n == 0)
            return false;
        memcpy(room.at, bytes.at, n);
        window_grow(w, n);
        bytes = bytes_of(bytes.at + n, bytes.len - n);
    }
    return true;
}

void inlet_feed(struct inlet *i, uint64_t offset, struct bytes bytes, bool end) {
    i->due = true;
    if (i->deaf || i->end || offset > i->window.to || i->window.to - offset > bytes.len)
        return;
    size_t known = (size_t)(i->window.to - offset);
    i->end = accept_all(i, bytes_of(bytes.at + known, bytes.len - known)) && end;
    if (i->deaf)
        return;
    if (i->window.from < i->window.to && !i->watched)
        i->watched = loop_add(i->loop, &i->near, EPOLLOUT | EPOLLET) == 0;
    if (i->end && i->window.from == i->window.to)
        finish(i);
}

bool inlet_next(struct inlet *i, uint64_t *ret_offset) {
    if (!i->due)
        return false;
    i->due = false;
    *ret_offset = i->deaf ? INLET_DEAF : i->window.from;
    return true;
}
