/* SPDX-License-Identifier: MIT */
/* storm bench exec-link: the connector of `storm bench exec --lambda`.
 *
 * Hosts are made up: all of them are this machine. What is real is the time that a connection takes, and (unless --at-once was
 * said) that a host makes one after the other; the launcher paper's model assumes no more than that. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"

#define HERE "STORM_BENCH_HOST"

/* So that others who connect from the same host wait. */
static int take_turn(const char *folder) {
    char path[PATH_MAX];
    const char *here = getenv(HERE);
    snprintf(path, sizeof path, "%s/link-%s", folder, here == NULL ? "" : here);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX) < 0) {
        close(fd);
        return -errno;
    }
    return fd < 0 ? -errno : fd;
}

int bench_exec_link(int argc, char **argv) {
    if (argc != 6)
        return complain("bench", "exec-link: give FOLDER NANOSECONDS one-by-one|at-once HOST LINE");
    uint64_t ns = strtoull(argv[2], NULL, 10);
    struct timespec pause = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    bool at_once = strcmp(argv[3], "at-once") == 0;
    int turn = at_once ? 0 : take_turn(argv[1]);
    if (turn < 0) {
        complain("bench", "%s: %s", argv[1], strerror(-turn));
        return STATUS_STORM;
    }
    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        continue;
    if (!at_once)
        close(turn);
    setenv(HERE, argv[4], 1);
    setenv("HOME", argv[1], 1);
    execl("/bin/sh", "sh", "-c", argv[5], (char *)NULL);
    complain("bench", "/bin/sh: %s", strerror(errno));
    return STATUS_NOT_FOUND;
}
