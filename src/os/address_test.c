/* SPDX-License-Identifier: MIT */
/* Addresses: all their forms, what is none, and the sockets at them. */
#include "os/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "turns.h"

/* ---- texts ---- */

static void test_forms(void) {
    static const char *const same[] = {
        "tcp:10.0.0.7:7000", "tcp:127.0.0.1:0",  "tcp:0.0.0.0:65535", "tcp:[fe80::1]:7000",
        "tcp:[::]:1",        "unix:/tmp/a.sock", "unix:relative",     "seqpacket:/tmp/a.sock"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct address a;
        char text[ADDRESS_TEXT_MAX];
        CHECK_EQ(address_parse(&a, same[i]), 0);
        address_format(&a, text, sizeof text);
        CHECK_STR(text, same[i]);
    }
    struct address none = {0};
    char text[ADDRESS_TEXT_MAX];
    address_format(&none, text, sizeof text);
    CHECK_STR(text, "none");
}

static void test_bad_texts(void) {
    static const char *const bad[] = {"",
                                      "unix",
                                      "unix:",
                                      "seqpacket:",
                                      "seqpacket",
                                      "tcp",
                                      "tcp:",
                                      "tcp:10.0.0.7",
                                      "tcp:10.0.0.7:",
                                      "tcp:10.0.0.7:x",
                                      "tcp:10.0.0.7:65536",
                                      "tcp:10.0.0.7:-1",
                                      "tcp:10.0.0.7:+1",
                                      "tcp:10.0.0.7: 1",
                                      "tcp:10.0.0.7:1x",
                                      "tcp:10.0.0.7:99999999999999999999",
                                      "tcp:10.0.0:1",
                                      "tcp:10.0.0.256:1",
                                      "tcp:localhost:1",
                                      "tcp::1",
                                      "tcp:[::1]",
                                      "tcp:[::1]:",
                                      "tcp:[::1:7",
                                      "tcp:[]:7",
                                      "tcp:[10.0.0.7]:7",
                                      "tcp:::1:7",
                                      "udp:10.0.0.7:7",
                                      " tcp:10.0.0.7:7",
                                      "TCP:10.0.0.7:7"};
    struct address a = {.len = 77};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!CHECK_EQ(address_parse(&a, bad[i]), -EINVAL))
            printf("#   %s\n", bad[i]);
    CHECK_EQ(a.len, 77); /* untouched */
    char host[400];
    memset(host, '1', sizeof host);
    memcpy(host, "tcp:", 4);
    memcpy(host + 300, ":7", 3);
    CHECK_EQ(address_parse(&a, host), -EINVAL);
    memcpy(host, "tcp:[", 5);
    memcpy(host + 300, "]:7", 4);
    CHECK_EQ(address_parse(&a, host), -EINVAL);
}

static void test_long_path(void) {
    char text[200] = "unix:/";
    struct address a;
    size_t longest = sizeof a.local.sun_path - 1;
    memset(text + 6, 'a', longest);
    text[5 + longest] = '\0';
    CHECK_EQ(address_parse(&a, text), 0);
    text[5 + longest] = 'a';
    text[6 + longest] = '\0';
    CHECK_EQ(address_parse(&a, text), -ENAMETOOLONG);
}

/* ---- sockets ---- */

static bool has_flags(int fd) {
    return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static bool ready(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, 60000) == 1;
}

/* Somebody listens there: a byte gets from one end to the other. */
static void check_meet(const struct address *a, int listener) {
    int done = -1;
    char byte = 0;
    CHECK_EQ(address_accept(listener), -EAGAIN);
    int out = address_connect(a, &done);
    if (!CHECK(out >= 0))
        return;
    CHECK(ready(out, POLLOUT));
    CHECK(ready(listener, POLLIN));
    int in = address_accept(listener);
    CHECK(in >= 0);
    CHECK(has_flags(listener) && has_flags(out) && has_flags(in));
    CHECK(!address_self_connected(out) && !address_self_connected(in));
    CHECK_EQ(write(out, "x", 1), 1);
    CHECK(ready(in, POLLIN));
    CHECK_EQ(read(in, &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    close(in);
    close(out);
}

static void test_tcp_learns_its_port(void) {
    static const char *const texts[] = {"tcp:127.0.0.1:0", "tcp:[::1]:0"};
    for (size_t i = 0; i < 2; i++) {
        struct address a;
        CHECK_EQ(address_parse(&a, texts[i]), 0);
        int listener = address_listen(&a);
        if (listener == -EADDRNOTAVAIL || listener == -EAFNOSUPPORT)
            continue; /* no such network here */
        CHECK(listener >= 0);
        CHECK((i == 0 ? a.in.sin_port : a.in6.sin6_port) != 0);
        check_meet(&a, listener);
        struct address again = a;
        CHECK_EQ(address_listen(&again), -EADDRINUSE);
        close(listener);
        listener = address_listen(&again); /* though connections of before are not forgotten */
        CHECK(listener >= 0);
        close(listener);
    }
}

static void local_address(struct address *a, const char *folder, char path[PATH_MAX]) {
    char text[PATH_MAX + 8];
    folder_file(folder, "a.sock", path);
    snprintf(text, sizeof text, "unix:%s", path);
    CHECK_EQ(address_parse(a, text), 0);
}

static void test_stale_socket_is_replaced(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    struct address a;
    struct stat at;
    folder_make(folder);
    local_address(&a, folder, path);
    int listener = address_listen(&a);
    CHECK(listener >= 0);
    close(listener);
    CHECK_EQ(lstat(path, &at), 0); /* it stays behind */
    listener = address_listen(&a);
    CHECK(listener >= 0);
    check_meet(&a, listener);
    close(listener);
    folder_remove(folder);
}

/* A second daemon by mistake must not take the first one's place; nor must a file be lost. */
static void test_what_is_in_use_stays(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    struct address a;
    struct stat at;
    folder_make(folder);
    local_address(&a, folder, path);
    int listener = address_listen(&a);
    CHECK(listener >= 0);
    CHECK_EQ(address_listen(&a), -EADDRINUSE);
    int visit = address_accept(listener); /* the other has looked whether we live */
    CHECK(visit >= 0);
    close(visit);
    check_meet(&a, listener);
    close(listener);
    unlink(path);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK_EQ(write(file, "precious", 8), 8);
    close(file);
    CHECK_EQ(address_listen(&a), -EADDRINUSE);
    CHECK_EQ(stat(path, &at), 0);
    CHECK_EQ(at.st_size, 8);
    folder_remove(folder);
}

static void test_nobody_there(void) {
    char folder[PATH_MAX], path[PATH_MAX];
    struct address a;
    int done;
    folder_make(folder);
    local_address(&a, folder, path);
    CHECK_EQ(address_connect(&a, &done), -ENOENT);
    int listener = address_listen(&a);
    close(listener);
    CHECK_EQ(address_connect(&a, &done), -ECONNREFUSED);
    struct address none = {0};
    CHECK_EQ(address_connect(&none, &done), -EADDRNOTAVAIL);
    folder_remove(folder);
}

/* Nobody accepts: those who come too many are told so, at once. */
static void test_full_backlog(void) {
    enum { MANY = 5000 };
    static int fds[MANY];
    struct rlimit r;
    char folder[PATH_MAX], path[PATH_MAX];
    struct address a;
    int done, count = 0;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = r.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    folder_make(folder);
    local_address(&a, folder, path);
    int listener = address_listen(&a);
    CHECK(listener >= 0);
    while (count < MANY && (fds[count] = address_connect(&a, &done)) >= 0)
        count++;
    CHECK(count < MANY && (fds[count] == -EAGAIN || fds[count] == -EMFILE));
    while (count > 0)
        close(fds[--count]);
    close(listener);
    folder_remove(folder);
}

/* Who waits when there are no descriptors left is shown out, and nobody waits any more. */
static void test_no_descriptors(void) {
    enum { GUESTS = 3 };
    struct rlimit before, tight;
    char folder[PATH_MAX], path[PATH_MAX], byte;
    struct address a;
    int guests[GUESTS], done, spare = address_spare();
    folder_make(folder);
    local_address(&a, folder, path);
    int listener = address_listen(&a);
    CHECK(listener >= 0 && spare >= 0);
    for (int i = 0; i < GUESTS; i++)
        CHECK((guests[i] = address_connect(&a, &done)) >= 0);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)guests[GUESTS - 1] + 1; /* all below are in use */
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    CHECK_EQ(address_accept(listener), -EMFILE);
    for (int i = 0; i < GUESTS; i++)
        CHECK_EQ(address_accept_or_dismiss(listener, &spare), -ECONNABORTED);
    CHECK_EQ(address_accept_or_dismiss(listener, &spare), -EAGAIN);
    CHECK(spare >= 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < GUESTS; i++) {
        CHECK_EQ(recv(guests[i], &byte, 1, MSG_DONTWAIT), 0);
        close(guests[i]);
    }
    close(spare);
    close(listener);
    folder_remove(folder);
}

/* Made on purpose here: a socket that is bound to the port that it connects to. */
static void test_self_connection(void) {
    struct address a;
    CHECK_EQ(address_parse(&a, "tcp:127.0.0.1:0"), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof a.in;
    CHECK_EQ(bind(fd, &a.any, len), 0);
    CHECK_EQ(getsockname(fd, &a.any, &len), 0);
    CHECK(!address_self_connected(fd));
    CHECK_EQ(connect(fd, &a.any, len), 0);
    CHECK(address_self_connected(fd));
    close(fd);
}

static uint16_t port_of(const struct address *a) {
    return ntohs(a->any.sa_family == AF_INET ? a->in.sin_port : a->in6.sin6_port);
}

/* The first that nobody has: by us, or by somebody else. */
static void test_range_of_ports(void) {
    static const char *const texts[] = {"tcp:127.0.0.1:0", "tcp:[::1]:0"};
    for (size_t i = 0; i < 2; i++) {
        struct address a, b, found;
        CHECK_EQ(address_parse(&a, texts[i]), 0);
        b = a;
        int first = address_listen(&a);
        if (first == -EADDRNOTAVAIL || first == -EAFNOSUPPORT)
            continue;
        uint16_t port = port_of(&a);
        CHECK_EQ(address_listen_within(&b, port, port), -EADDRINUSE);
        int second = address_listen_within(&b, port, port < 65000 ? port + 500 : 65535);
        CHECK(second >= 0 && port_of(&b) > port);
        CHECK_EQ(address_of_socket(second, &found), 0);
        CHECK_EQ(port_of(&found), port_of(&b));
        check_meet(&b, second);
        close(second);
        close(first);
    }
}

static void test_our_own_address(void) {
    char text[ADDRESS_TEXT_MAX];
    struct address to, a;
    CHECK_EQ(address_parse(&to, "tcp:127.0.0.1:7000"), 0);
    CHECK_EQ(address_towards(&to, &a), 0);
    address_format(&a, text, sizeof text);
    CHECK_STR(text, "tcp:127.0.0.1:0");
    CHECK_EQ(address_of_interface(&a, "lo", AF_INET), 0);
    CHECK_EQ(ntohl(a.in.sin_addr.s_addr) >> 24, 127);
    CHECK_EQ(address_of_interface(&a, "10.0.0.7", AF_UNSPEC), 0);
    address_format(&a, text, sizeof text);
    CHECK_STR(text, "tcp:10.0.0.7:0");
    CHECK_EQ(address_of_interface(&a, "fd00::7", AF_UNSPEC), 0);
    address_format(&a, text, sizeof text);
    CHECK_STR(text, "tcp:[fd00::7]:0");
    CHECK_EQ(address_of_interface(&a, "fd00::7", AF_INET), -EADDRNOTAVAIL);
    CHECK_EQ(address_of_interface(&a, "nowhere77", AF_UNSPEC), -ENODEV);
}

int main(void) {
    TEST(test_forms);
    TEST(test_bad_texts);
    TEST(test_long_path);
    TEST(test_tcp_learns_its_port);
    TEST(test_range_of_ports);
    TEST(test_our_own_address);
    TEST(test_stale_socket_is_replaced);
    TEST(test_what_is_in_use_stays);
    TEST(test_nobody_there);
    TEST(test_full_backlog);
    TEST(test_no_descriptors);
    TEST(test_self_connection);
    return tap_finish();
}
