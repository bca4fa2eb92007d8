/* SPDX-License-Identifier: MIT */
/* A program's line to the machine manager: see line.h. */
#include "client/line.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/enclosure.h"

/* A number in the environment; -1: there is none. */
static long number_of(const char *variable) {
    const char *text = getenv(variable);
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    long value = strtol(text, &end, 10);
    return *end == '\0' && value <= INT_MAX ? value : -1;
}

/* The number may be left over from a process whose descriptors were closed, and be another's now: a bell is one of two nameless sockets
 * that somebody else has made. */
static bool is_bell(int fd) {
    int domain = 0, type = 0;
    struct ucred maker = {0};
    struct sockaddr_un other;
    socklen_t int_len = sizeof domain, maker_len = sizeof maker, other_len = sizeof other;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &int_len) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_len) == 0 && type == SOCK_SEQPACKET &&
           getpeername(fd, (struct sockaddr *)&other, &other_len) == 0 &&
           other_len == sizeof other.sun_family &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &maker, &maker_len) == 0 &&
           maker.pid != getpid();
}

static int ring(int bell, uint32_t rank, int line) {
    uint8_t hello[BELL_BYTES];
    store_le32(hello, BELL_VERSION);
    store_le32(hello + 4, rank);
    ssize_t n;
    do
        n = enclosure_send(bell, hello, sizeof hello, line, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int line_open(struct line *p) {
    int ends[2];
    long bell = number_of("STORM_PETITION"), rank = number_of("STORM_RANK");
    *p = (struct line){.fd = -1};
    if (bell < 0 || !is_bell((int)bell))
        return -ENOENT;
    p->frame = malloc(LINE_FRAME_MAX);
    if (p->frame == NULL)
        return -ENOMEM;
    int r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;
    if (r == 0) {
        r = ring((int)bell, rank < 0 ? 0 : (uint32_t)rank, ends[1]);
        close(ends[1]);
        p->fd = ends[0];
    }
    if (r < 0)
        line_close(p);
    return r;
}

void line_close(struct line *p) {
    if (p->fd >= 0)
        close(p->fd);
    free(p->frame);
    *p = (struct line){.fd = -1};
}

int line_say(struct line *p, uint16_t type, struct bytes body) {
    uint8_t head[LINE_HEAD_BYTES];
    store_le32(head, type);
    struct iovec parts[] = {{.iov_base = head, .iov_len = sizeof head},
                            {.iov_base = (void *)(uintptr_t)body.at, .iov_len = body.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (body.len > PETITION_BYTES_MAX)
        return -EMSGSIZE;
    for (;;) {
        if (sendmsg(p->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
            return 1;
        if (errno != EINTR)
            return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
    }
}

int line_hear(struct line *p, uint16_t *ret_type, struct bytes *ret_body) {
    ssize_t n;
    do
        n = recv(p->fd, p->frame, LINE_FRAME_MAX, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (n < LINE_HEAD_BYTES)
        return -EPIPE;
    *ret_type = (uint16_t)load_le32(p->frame);
    *ret_body = bytes_of(p->frame + LINE_HEAD_BYTES, (size_t)n - LINE_HEAD_BYTES);
    return 1;
}

bool line_wait(const struct line *p, bool to_speak, int timeout_ms) {
    struct pollfd one = {.fd = p->fd, .events = (short)(POLLIN | (to_speak ? POLLOUT : 0))};
    return poll(&one, 1, timeout_ms) != 0;
}
