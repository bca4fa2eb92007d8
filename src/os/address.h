/* SPDX-License-Identifier: MIT */
/* Where a node listens: `unix:/path`, `seqpacket:/path`, `tcp:10.0.0.7:7000` or
 * `tcp:[fe80::1]:7000`.
 *
 * Addresses are numbers and paths; names are looked up before a daemon starts, as asking a name
 * service can block. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { ADDRESS_TEXT_MAX = 128 };

/* What links are made of. */
enum transport { TRANSPORT_TCP, TRANSPORT_UNIX, TRANSPORTS };

const char *transport_name(enum transport transport); /* "tcp", "unix" */
bool transport_parse(const char *name, enum transport *ret);

struct address {
    socklen_t len; /* 0: none */
    bool packets;  /* a Unix socket that keeps packets apart */
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un local;
    };
};

/* -EINVAL if the text is no address, -ENAMETOOLONG if a path does not fit into one. */
int address_parse(struct address *ret, const char *text);
void address_format(const struct address *a, char *out, size_t size);

/* An address of this machine: a number, or that of an interface; of this family if it is not AF_UNSPEC. Port 0. -ENODEV: there
 * is none of that name, -EADDRNOTAVAIL: it has none. */
int address_of_interface(struct address *ret, const char *name, int family);

/* A listening socket, without delay, close-on-exec; or -errno. A Unix socket at the place that
 * nobody listens at is replaced; anything else there is -EADDRINUSE. `a` learns the port if it asked
 * for any. */
int address_listen(struct address *a);

/* The same at the first port of a range that nobody has; -EADDRINUSE: all are taken. */
int address_listen_within(struct address *a, uint16_t first, uint16_t last);

/* Where a socket is bound. */
int address_of_socket(int fd, struct address *ret);

/* Our own address as whoever is at `to` sees it, with port 0. 0 or -errno: there is no way there. */
int address_towards(const struct address *to, struct address *ret);

/* A socket that is being connected, or -errno (-EAGAIN: too many wait at a Unix socket). `ret_done`:
 * it already is. */
int address_connect(const struct address *a, int *ret_done);

/* The next who has connected, or -errno (-EAGAIN: nobody). */
int address_accept(int listener);

/* The same for a loop that would find the same one waiting again and again when there are no descriptors left: `spare` is one that is kept
 * for this moment (address_spare). Whoever waits is let in by it and shown out (-ECONNABORTED: there may be more), and will come again. */
int address_accept_or_dismiss(int listener, int *spare);
int address_spare(void);

/* Whether what is said at it leaves the machine, as far as we can know. */
bool address_is_far(const struct address *a);
bool address_socket_is_far(int fd);
/* On a Unix socket: is our user or root at the other end? The system knows. Elsewhere only a key can tell: true. */
bool address_peer_is_trusted(int fd);

/* A connection whose peer does not acknowledge for a while is given up, also one that it takes nothing from (docs/protocol.md).
 * Not so with a peer that may stand still and is to be waited for: */
void address_be_patient(int fd);

/* Within this machine: room for a piece of a file or more on its way, so that neither end is woken for parts of it. */
void address_widen(int fd);

/* The port that a socket is at, 0: it has none. */
uint16_t address_port(int fd);

/* Its IP address as text, without the port; "": it has none. */
void address_host(const struct address *a, char out[INET6_ADDRSTRLEN]);

/* Who is at the other end of a socket. */
void address_of_peer(int fd, char *out, size_t size);

/* TCP to a port of this machine where nobody listens may get that very port as its own, and then
 * talks to itself. */
bool address_self_connected(int fd);
