/* SPDX-License-Identifier: MIT */
/* Addresses and the sockets at them: see address.h. */
#include "os/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many as the kernel allows: a whole cluster may come at once. */
enum { BACKLOG = 4096 };

const char *transport_name(enum transport transport) {
    static const char *const names[TRANSPORTS] = {
        [TRANSPORT_TCP] = "tcp", [TRANSPORT_UNIX] = "unix"};
    return transport < TRANSPORTS ? names[transport] : "?";
}

bool transport_parse(const char *name, enum transport *ret) {
    for (int i = 0; i < TRANSPORTS; i++)
        if (strcmp(name, transport_name((enum transport)i)) == 0) {
            *ret = (enum transport)i;
            return true;
        }
    return false;
}

static int parse_port(const char *text, in_port_t *ret) {
    char *end;
    unsigned long port = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || port > 65535)
        return -EINVAL;
    *ret = htons((uint16_t)port);
    return 0;
}

static int parse_in6(struct address *ret, const char *text) {
    char host[ADDRESS_TEXT_MAX];
    const char *close = strstr(text, "]:");
    if (close == NULL || (size_t)(close - text) >= sizeof host)
        return -EINVAL;
    memcpy(host, text, (size_t)(close - text));
    host[close - text] = '\0';
    ret->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
    ret->len = sizeof ret->in6;
    if (inet_pton(AF_INET6, host, &ret->in6.sin6_addr) != 1)
        return -EINVAL;
    return parse_port(close + 2, &ret->in6.sin6_port);
}

static int parse_in(struct address *ret, const char *text) {
    char host[ADDRESS_TEXT_MAX];
    const char *colon = strrchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof host)
        return -EINVAL;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    ret->in = (struct sockaddr_in){.sin_family = AF_INET};
    ret->len = sizeof ret->in;
    if (inet_pton(AF_INET, host, &ret->in.sin_addr) != 1)
        return -EINVAL;
    return parse_port(colon + 1, &ret->in.sin_port);
}

static int parse_local(struct address *ret, const char *path) {
    size_t len = strlen(path);
    if (len == 0)
        return -EINVAL;
    if (len >= sizeof ret->local.sun_path)
        return -ENAMETOOLONG;
    ret->local = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->local.sun_path, path, len);
    ret->len = sizeof ret->local;
    return 0;
}

int address_parse(struct address *ret, const char *text) {
    struct address a = {0};
    int r = -EINVAL;
    if (strncmp(text, "unix:", 5) == 0)
        r = parse_local(&a, text + 5);
    else if (strncmp(text, "seqpacket:", 10) == 0)
        r = parse_local(&a, text + 10);
    else if (strncmp(text, "tcp:[", 5) == 0)
        r = parse_in6(&a, text + 5);
    else if (strncmp(text, "tcp:", 4) == 0)
        r = parse_in(&a, text + 4);
    a.packets = *text == 's';
    if (r == 0)
        *ret = a;
    return r;
}

void address_format(const struct address *a, char *out, size_t size) {
    char host[INET6_ADDRSTRLEN] = "?";
    switch (a->len == 0 ? AF_UNSPEC : a->any.sa_family) {
    case AF_INET:
        inet_ntop(AF_INET, &a->in.sin_addr, host, sizeof host);
        snprintf(out, size, "tcp:%s:%u", host, ntohs(a->in.sin_port));
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &a->in6.sin6_addr, host, sizeof host);
        snprintf(out, size, "tcp:[%s]:%u", host, ntohs(a->in6.sin6_port));
        break;
    case AF_UNIX:
        snprintf(out, size, "%s:%s", a->packets ? "seqpacket" : "unix", a->local.sun_path);
        break;
    default:
        snprintf(out, size, "none");
        break;
    }
}

static int make_socket(const struct address *a) {
    int type = a->packets ? SOCK_SEQPACKET : SOCK_STREAM;
    int fd = socket(a->any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

/* A machine that is gone says nothing: an idle connection asks after IDLE_S, and again every ASK_S. What is on its
 * way and not acknowledged ends the connection after SILENT_MS. */
enum { IDLE_S = 10, ASK_S = 5, ASKS = 3, SILENT_MS = 25 * 1000 };
enum { BULK_BYTES = 1 << 20 };

static void set(int fd, int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
}

/* Every frame is wanted at once, and who is gone is not waited for. */
static void prepare(int fd, const struct address *a) {
    if (!address_is_far(a))
        return;
    set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(fd, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S);
    set(fd, IPPROTO_TCP, TCP_KEEPINTVL, ASK_S);
    set(fd, IPPROTO_TCP, TCP_KEEPCNT, ASKS);
    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENT_MS);
}

void address_be_patient(int fd) {
    if (address_socket_is_far(fd))
        set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
}

void address_widen(int fd) {
    if (address_socket_is_far(fd))
        return; /* the system finds out what serves */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &(int){BULK_BYTES}, sizeof(int)) < 0)
        set(fd, SOL_SOCKET, SO_SNDBUF, BULK_BYTES);
}

bool address_is_far(const struct address *a) {
    return a->len > 0 && a->any.sa_family != AF_UNIX;
}

bool address_socket_is_far(int fd) {
    int domain = AF_UNIX;
    socklen_t len = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain != AF_UNIX;
}

bool address_peer_is_trusted(int fd) {
    struct ucred who;
    socklen_t len = sizeof who;
    if (address_socket_is_far(fd))
        return true;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
           (who.uid == 0 || who.uid == geteuid());
}

void address_of_peer(int fd, char *out, size_t size) {
    struct address a = {0};
    socklen_t len = sizeof a - offsetof(struct address, any);
    if (getpeername(fd, &a.any, &len) == 0)
        a.len = len;
    address_format(&a, out, size);
}

/* "10.0.0.7", "fd00::1" */
static bool parse_host(struct address *ret, const char *text) {
    struct address a = {.len = sizeof a.in};
    a.in.sin_family = AF_INET;
    if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1) {
        *ret = a;
        return true;
    }
    a = (struct address){.len = sizeof a.in6};
    a.in6.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, text, &a.in6.sin6_addr) != 1)
        return false;
    *ret = a;
    return true;
}

/* One that leads nowhere but to the same wire is of no use to others. */
static bool is_wanted(const struct ifaddrs *i, const char *name, int family) {
    if (i->ifa_addr == NULL || strcmp(i->ifa_name, name) != 0)
        return false;
    int kind = i->ifa_addr->sa_family;
    if (kind == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr))
        return false;
    return kind == family || (family == AF_UNSPEC && (kind == AF_INET || kind == AF_INET6));
}

int address_of_interface(struct address *ret, const char *name, int family) {
    struct ifaddrs *all = NULL;
    if (parse_host(ret, name))
        return family == AF_UNSPEC || ret->any.sa_family == family ? 0 : -EADDRNOTAVAIL;
    if (if_nametoindex(name) == 0)
        return -ENODEV;
    if (getifaddrs(&all) < 0)
        return -errno;
    int r = -EADDRNOTAVAIL;
    for (struct ifaddrs *i = all; i != NULL && r < 0; i = i->ifa_next) {
        if (!is_wanted(i, name, family))
            continue;
        struct address a = {.len = i->ifa_addr->sa_family == AF_INET ? sizeof a.in : sizeof a.in6};
        memcpy(&a.any, i->ifa_addr, a.len);
        *ret = a;
        r = 0;
    }
    freeifaddrs(all);
    return r;
}

/* Takes a socket away that nobody listens at any more. Whatever else is at the place stays, and
 * binding will say that it is in use. */
static void remove_stale(const struct address *a) {
    struct stat at;
    if (lstat(a->local.sun_path, &at) < 0 || !S_ISSOCK(at.st_mode))
        return;
    int fd = make_socket(a);
    if (fd < 0)
        return;
    if (connect(fd, &a->any, a->len) < 0 && errno == ECONNREFUSED)
        unlink(a->local.sun_path);
    close(fd);
}

int address_listen(struct address *a) {
    int one = 1;
    int fd = make_socket(a);
    if (fd < 0)
        return fd;
    if (a->any.sa_family == AF_UNIX)
        remove_stale(a);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    prepare(fd, a); /* inherited by what is accepted */
    socklen_t len = sizeof *a - offsetof(struct address, any);
    if (bind(fd, &a->any, a->len) < 0 || listen(fd, BACKLOG) < 0 ||
        (a->any.sa_family != AF_UNIX && getsockname(fd, &a->any, &len) < 0)) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static void set_port(struct address *a, uint16_t port) {
    if (a->any.sa_family == AF_INET6)
        a->in6.sin6_port = htons(port);
    else
        a->in.sin_port = htons(port);
}

int address_listen_within(struct address *a, uint16_t first, uint16_t last) {
    int fd = -EADDRINUSE;
    for (uint32_t port = first; port <= last && fd == -EADDRINUSE; port++) {
        set_port(a, (uint16_t)port);
        fd = address_listen(a);
    }
    return fd;
}

int address_of_socket(int fd, struct address *ret) {
    struct address a = {0};
    socklen_t len = sizeof a - offsetof(struct address, any);
    if (getsockname(fd, &a.any, &len) < 0)
        return -errno;
    a.len = len;
    *ret = a;
    return 0;
}

uint16_t address_port(int fd) {
    struct address a;
    if (address_of_socket(fd, &a) < 0)
        return 0;
    return a.any.sa_family == AF_INET    ? ntohs(a.in.sin_port)
           : a.any.sa_family == AF_INET6 ? ntohs(a.in6.sin6_port)
                                         : 0;
}

void address_host(const struct address *a, char out[INET6_ADDRSTRLEN]) {
    out[0] = '\0';
    if (a->len > 0 && a->any.sa_family == AF_INET)
        inet_ntop(AF_INET, &a->in.sin_addr, out, INET6_ADDRSTRLEN);
    else if (a->len > 0 && a->any.sa_family == AF_INET6)
        inet_ntop(AF_INET6, &a->in6.sin6_addr, out, INET6_ADDRSTRLEN);
}

/* Connecting a socket for datagrams sends nothing; it only looks which way they would go. */
int address_towards(const struct address *to, struct address *ret) {
    if (!address_is_far(to))
        return -EAFNOSUPPORT;
    int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    struct address there = *to;
    set_port(&there, 9); /* any will do */
    int r = connect(fd, &there.any, there.len) < 0 ? -errno : address_of_socket(fd, ret);
    close(fd);
    if (r == 0)
        set_port(ret, 0);
    return r;
}

int address_connect(const struct address *a, int *ret_done) {
    if (a->len == 0)
        return -EADDRNOTAVAIL;
    int fd = make_socket(a);
    if (fd < 0)
        return fd;
    prepare(fd, a);
    int r = connect(fd, &a->any, a->len);
    if (r < 0 && errno != EINPROGRESS &&
        errno != EINTR) { /* interrupted, it goes on all the same */
        r = -errno;
        close(fd);
        return r;
    }
    *ret_done = r == 0;
    return fd;
}

int address_accept(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int address_spare(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int address_accept_or_dismiss(int listener, int *spare) {
    int fd = address_accept(listener);
    if (fd >= 0 && *spare < 0) /* somebody else had taken it */
        *spare = address_spare();
    if ((fd != -EMFILE && fd != -ENFILE) || *spare < 0)
        return fd;
    close(*spare);
    fd = address_accept(listener);
    if (fd >= 0)
        close(fd);
    *spare = address_spare();
    return fd < 0 ? fd : -ECONNABORTED;
}

bool address_self_connected(int fd) {
    struct address here = {0}, there = {0};
    socklen_t room = sizeof here - offsetof(struct address, any);
    socklen_t here_len = room, there_len = room;
    if (getsockname(fd, &here.any, &here_len) < 0 || getpeername(fd, &there.any, &there_len) < 0)
        return false;
    return here.any.sa_family != AF_UNIX && here_len == there_len &&
           memcmp(&here.any, &there.any, here_len) == 0;
}
