/* SPDX-License-Identifier: MIT */
/* Strobes past the tree: see cast.h. */
#include "os/cast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/nodeset.h"
#include "os/plan.h"

/* Before the body: channel and number. */
enum { HEAD = 4 + 8, AT_ONCE = 8 };

static int open_socket(void) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

int caster_init(struct caster *c, uint32_t nodes) {
    *c = (struct caster){.fd = open_socket(), .nodes = nodes};
    if (c->fd < 0)
        return c->fd;
    c->to = calloc(nodes, sizeof *c->to);
    if (c->to == NULL) {
        caster_fini(c);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < nodes; i++)
        c->to[i] = plan_strobe(i).local;
    return 0;
}

void caster_fini(struct caster *c) {
    if (c->fd >= 0)
        close(c->fd);
    free(c->to);
    *c = (struct caster){.fd = -1};
}

/* Nobody there, or one that has not read the last ones: the next will reach it, or the tree. */
void caster_send(struct caster *c, const struct effect_cast *e) {
    uint8_t bytes[CAST_BYTES_MAX];
    struct noderange r;
    if (c->fd < 0 || e->body.len > sizeof bytes - HEAD)
        return;
    store_le32(bytes, e->channel);
    store_le64(bytes + 4, e->number);
    memcpy(bytes + HEAD, e->body.at, e->body.len);
    for (uint32_t from = 0; nodeset_next_range(e->set, from, &r); from = r.last + 1)
        for (uint32_t i = r.first; i <= r.last && i < c->nodes; i++)
            sendto(c->fd, bytes, HEAD + e->body.len, MSG_DONTWAIT | MSG_NOSIGNAL,
                   (const struct sockaddr *)&c->to[i], sizeof c->to[i]);
}

/* ---- who listens ---- */

/* The newest of those that have piled up. */
static void ear_ready(struct source *s, uint32_t events) {
    struct ear *e = CONTAINER_OF(s, struct ear, source);
    uint8_t bytes[AT_ONCE][CAST_BYTES_MAX];
    struct mmsghdr messages[AT_ONCE] = {0};
    struct iovec parts[AT_ONCE];
    struct input newest = {.kind = INPUT_STROBE, .now = e->loop->now};
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        parts[i] = (struct iovec){.iov_base = bytes[i], .iov_len = sizeof bytes[i]};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    int count = recvmmsg(s->fd, messages, AT_ONCE, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        size_t len = messages[i].msg_len;
        bool cut = messages[i].msg_hdr.msg_flags & MSG_TRUNC;
        if (len < HEAD || cut || load_le64(bytes[i] + 4) <= newest.strobe.number)
            continue;
        newest.strobe = (struct input_strobe){.channel = load_le32(bytes[i]),
                                              .number = load_le64(bytes[i] + 4),
                                              .body = bytes_of(bytes[i] + HEAD, len - HEAD)};
    }
    if (newest.strobe.number != 0)
        e->heard(e->context, &newest);
}

int ear_init(struct ear *e, struct loop *loop, const char *path,
             void (*heard)(void *context, const struct input *in), void *context) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    *e = (struct ear){
        .source = {.fd = -1, .ready = ear_ready}, .loop = loop, .heard = heard, .context = context};
    if (strlen(path) >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path, path, strlen(path) + 1);
    int fd = open_socket();
    if (fd < 0)
        return fd;
    unlink(path);
    e->source.fd = fd;
    int r = bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ? -errno : 0;
    if (r == 0)
        r = loop_add(loop, &e->source, EPOLLIN);
    if (r < 0) {
        close(fd);
        e->source.fd = -1;
    }
    return r;
}

void ear_fini(struct ear *e) {
    if (e->source.fd < 0)
        return;
    loop_remove(e->loop, &e->source);
    close(e->source.fd);
    e->source.fd = -1;
}
