/* SPDX-License-Identifier: MIT */
/* One output stream of a process: see outlet.h. */
#include "os/outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void ready(struct source *s, uint32_t events) {
    (void)events;
    struct outlet *o = CONTAINER_OF(s, struct outlet, near);
    if (o->ready == NULL || o->ended)
        return;
    o->readable = true;
    if (!list_linked(&o->link))
        list_push_back(o->ready, &o->link);
}

int outlet_adopt(struct outlet *o, struct loop *l, int near, int far) {
    *o = (struct outlet){.near = {.fd = near, .ready = ready}, .far = far};
    list_init(&o->link);
    int r = fcntl(near, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno : 0;
    if (r == 0)
        r = loop_add(l, &o->near, EPOLLIN | EPOLLET);
    if (r < 0) {
        close(near);
        close(far);
        o->near.fd = o->far = -1;
    }
    return r;
}

int outlet_open(struct outlet *o, struct loop *l) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    return outlet_adopt(o, l, fds[0], fds[1]);
}

/* What has copies must leave the loop before it is closed: they would keep it there. A terminal has one
 * for its keys. */
void outlet_close(struct outlet *o, struct loop *l, bool copied) {
    list_remove(&o->link);
    if (o->near.fd >= 0) {
        if (copied || o->terminal)
            loop_remove(l, &o->near);
        else
            loop_forget(l, &o->near);
        close(o->near.fd);
    }
    if (o->far >= 0)
        close(o->far);
    o->near.fd = o->far = -1;
    window_fini(&o->window);
}

void outlet_begin(struct outlet *o, void *owner, struct list *ready_list, size_t window) {
    o->owner = owner;
    o->ready = ready_list;
    window_init(&o->window, window);
}

void outlet_release(struct outlet *o) {
    if (o->far >= 0)
        close(o->far);
    o->far = -1;
}

void outlet_seal(struct outlet *o, bool rest) {
    o->sealed = true;
    o->readable = rest;
    if (!rest)
        o->ended = true;
    else if (!list_linked(&o->link))
        list_push_back(o->ready, &o->link);
}

/* A pipe that gives less than was asked for is empty; a terminal gives line by line. */
static bool read_some(struct outlet *o, struct room room) {
    ssize_t n;
    do
        n = read(o->near.fd, room.at, room.len);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        window_grow(&o->window, (size_t)n);
    bool dry = n < 0 && errno == EAGAIN;
    bool all = n <= 0 || ((size_t)n < room.len && !o->terminal);
    if (n == 0 || (n < 0 && !dry) || (all && o->sealed))
        o->ended = true; /* a terminal that nobody has open any more says EIO */
    if (all)
        o->readable = false;
    return !all;
}

void outlet_fill(struct outlet *o) {
    while (outlet_thirsty(o)) {
        struct room room = window_room(&o->window);
        if (room.len == 0 || !read_some(o, room))
            return;
    }
}

bool outlet_next(struct outlet *o, struct input_stream *ret) {
    if (o->told == o->window.to && !(o->ended && !o->end_told))
        return false;
    struct bytes part = window_part(&o->window, o->told);
    if (part.len > OUTLET_PIECE)
        part.len = OUTLET_PIECE;
    ret->offset = o->told;
    ret->bytes = part;
    o->told += part.len;
    ret->end = o->ended && o->told == o->window.to;
    o->end_told = o->end_told || ret->end;
    return true;
}

void outlet_taken(struct outlet *o, uint64_t offset) {
    window_drop(&o->window, offset);
    if (o->told < o->window.from)
        o->told = o->window.from;
}

void outlet_again(struct outlet *o, uint64_t offset) {
    if (offset < o->window.from)
        offset = o->window.from;
    if (offset > o->window.to)
        offset = o->window.to;
    o->told = offset;
    o->end_told = false;
}
