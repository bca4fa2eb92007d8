/* SPDX-License-Identifier: MIT */
/* storm bench load: keeps a node busy until it is killed, for benches of a loaded cluster (section 4.2.2 of the STORM
 * paper). It runs as a job: with `cpu` every process computes; with `network` the even ranks send to the odd ones, as
 * fast as they can. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/bench.h"
#include "cli/complain.h"

enum { BLOCK_BYTES = 65536, TRIES = 1000, TRY_US = 10000 };

static void compute(void) {
    for (volatile uint64_t n = 0;; n++)
        ;
}

/* A name without a file, of this job and this pair. */
static socklen_t pair_address(uint64_t pair, struct sockaddr_un *ret) {
    const char *job = getenv("STORM_JOB_ID");
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "storm-bench-load-%s-%d-%llu",
                     job == NULL ? "0" : job, (int)geteuid(), (unsigned long long)pair);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int await_peer(uint64_t pair) {
    struct sockaddr_un a;
    socklen_t len = pair_address(pair, &a);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&a, len) < 0 || listen(listener, 1) < 0)
        return -errno;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int find_peer(uint64_t pair) {
    struct sockaddr_un a;
    socklen_t len = pair_address(pair, &a);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (int i = 0; fd >= 0 && i < TRIES; i++) {
        if (connect(fd, (struct sockaddr *)&a, len) == 0)
            return fd;
        usleep(TRY_US);
    }
    return -errno;
}

static int flood(uint64_t rank) {
    static char block[BLOCK_BYTES];
    int fd = rank % 2 == 0 ? await_peer(rank / 2) : find_peer(rank / 2);
    ssize_t n = 1;
    while (fd >= 0 && n > 0)
        n = rank % 2 == 0 ? send(fd, block, sizeof block, MSG_NOSIGNAL)
                          : recv(fd, block, sizeof block, 0);
    return fd < 0 ? fd : 0;
}

int bench_load(int argc, char **argv) {
    const char *rank = getenv("STORM_RANK");
    if (argc != 2 || (strcmp(argv[1], "cpu") != 0 && strcmp(argv[1], "network") != 0))
        return complain("bench", "load: give cpu or network");
    if (strcmp(argv[1], "cpu") == 0)
        compute();
    int r = flood(rank == NULL ? 0 : strtoull(rank, NULL, 10));
    if (r < 0)
        complain("bench", "load: %s", strerror(-r));
    return r < 0 ? STATUS_FAILED : STATUS_OK;
}
