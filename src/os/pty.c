/* SPDX-License-Identifier: MIT */
/* A terminal for a process: see pty.h. */
#include "os/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int pty_open(int *ret_person, int *ret_process) {
    int person = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (person < 0)
        return -errno;
    int process =
        unlockpt(person) < 0 ? -1 : ioctl(person, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (process < 0) {
        int r = -errno;
        close(person);
        return r;
    }
    *ret_person = person;
    *ret_process = process;
    return 0;
}

void pty_size(int person, uint32_t columns, uint32_t rows) {
    struct winsize w = {.ws_col = (unsigned short)(columns < USHRT_MAX ? columns : USHRT_MAX),
                        .ws_row = (unsigned short)(rows < USHRT_MAX ? rows : USHRT_MAX)};
    ioctl(person, TIOCSWINSZ, &w); /* a size of 0 means unknown; that it fails harms nobody */
}
