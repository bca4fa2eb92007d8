/* SPDX-License-Identifier: MIT */
/* Strobes past the tree: see cast.h. */
#include "os/cast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/nodeset.h"
#include "base/siphash.h"
#include "os/plan.h"

/* Before the body: channel and number. Behind it, on a network: the tag. */
enum { HEAD = 4 + 8, TAG = 8, AT_ONCE = 8 };

static int open_socket(int family) {
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

/* Of the addresses that are for use within an organisation; two clusters have the same one hardly ever, and then their tags
 * tell them apart. */
static struct sockaddr_in group_of(const uint64_t key[2]) {
    uint64_t draw = siphash(key, "group", 5);
    uint32_t ip = 239U << 24 | 193U << 16 | (uint32_t)(draw & 0xffff);
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)(20000 + (draw >> 16) % 10000)),
                                .sin_addr = {htonl(ip)}};
}

int caster_init(struct caster *c, uint32_t nodes) {
    *c = (struct caster){.fd = open_socket(AF_UNIX), .nodes = nodes};
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

int caster_init_group(struct caster *c, const uint64_t key[2], struct in_addr from) {
    *c = (struct caster){
        .fd = open_socket(AF_INET), .group = group_of(key), .key = {key[0], key[1]}};
    if (c->fd < 0)
        return c->fd;
    if (setsockopt(c->fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from) == 0)
        return 0;
    int r = -errno;
    caster_fini(c);
    return r;
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
    size_t len = HEAD + e->body.len;
    if (c->fd < 0 || len > sizeof bytes - TAG)
        return;
    store_le32(bytes, e->channel);
    store_le64(bytes + 4, e->number);
    memcpy(bytes + HEAD, e->body.at, e->body.len);
    if (c->to == NULL) {
        store_le64(bytes + len, siphash(c->key, bytes, len));
        sendto(c->fd, bytes, len + TAG, MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&c->group, sizeof c->group);
        return;
    }
    for (uint32_t from = 0; nodeset_next_range(e->set, from, &r); from = r.last + 1)
        for (uint32_t i = r.first; i <= r.last && i < c->nodes; i++)
            sendto(c->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL,
                   (const struct sockaddr *)&c->to[i], sizeof c->to[i]);
}

/* ---- who listens ---- */

/* The length without the tag, 0 if that is wrong. */
static size_t judge(const struct ear *e, const uint8_t *bytes, size_t len) {
    if (!e->tagged)
        return len;
    if (len < HEAD + TAG || siphash(e->key, bytes, len - TAG) != load_le64(bytes + len - TAG))
        return 0;
    return len - TAG;
}

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
        bool cut = messages[i].msg_hdr.msg_flags & MSG_TRUNC;
        size_t len = cut ? 0 : judge(e, bytes[i], messages[i].msg_len);
        if (len < HEAD || load_le64(bytes[i] + 4) <= newest.strobe.number)
            continue;
        newest.strobe = (struct input_strobe){.channel = load_le32(bytes[i]),
                                              .number = load_le64(bytes[i] + 4),
                                              .far = e->tagged,
                                              .body = bytes_of(bytes[i] + HEAD, len - HEAD)};
    }
    if (newest.strobe.number != 0)
        e->heard(e->context, &newest);
}

static int listen_at_path(int fd, const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    memcpy(at.sun_path, path, strlen(path) + 1);
    unlink(path);
    return bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ? -errno : 0;
}

/* Launchers of one machine listen side by side. */
static int listen_to_group(int fd, const char *address, const uint64_t key[2]) {
    struct sockaddr_in group = group_of(key);
    struct ip_mreq member = {.imr_multiaddr = group.sin_addr};
    int on = 1;
    if (inet_pton(AF_INET, address, &member.imr_interface) != 1)
        return -EINVAL;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&group, sizeof group) < 0 ||
        setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member) < 0)
        return -errno;
    return 0;
}

int ear_init(struct ear *e, struct loop *loop, const char *path, const uint64_t key[2],
             void (*heard)(void *context, const struct input *in), void *context) {
    const size_t prefix = sizeof EAR_MULTICAST - 1;
    bool tagged = strncmp(path, EAR_MULTICAST, prefix) == 0;
    *e = (struct ear){.source = {.fd = -1, .ready = ear_ready},
                      .loop = loop,
                      .tagged = tagged,
                      .key = {key[0], key[1]},
                      .heard = heard,
                      .context = context};
    int fd = open_socket(tagged ? AF_INET : AF_UNIX);
    if (fd < 0)
        return fd;
    e->source.fd = fd;
    int r = tagged ? listen_to_group(fd, path + prefix, key) : listen_at_path(fd, path);
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
