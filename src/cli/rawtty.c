/* SPDX-License-Identifier: MIT */
/* A terminal whose every key goes to the job: see rawtty.h. */
#include "cli/rawtty.h"

#include <sys/ioctl.h>
#include <unistd.h>

bool rawtty_begin(struct rawtty *t, int fd) {
    struct termios raw;
    *t = (struct rawtty){.fd = fd};
    if (isatty(fd) != 1 || tcgetattr(fd, &t->before) < 0)
        return false;
    raw = t->before;
    cfmakeraw(&raw);
    t->raw = tcsetattr(fd, TCSADRAIN, &raw) == 0;
    return t->raw;
}

void rawtty_end(struct rawtty *t) {
    if (t->raw)
        tcsetattr(t->fd, TCSADRAIN, &t->before);
    t->raw = false;
}

bool rawtty_size(int fd, uint32_t *ret_columns, uint32_t *ret_rows) {
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) < 0)
        return false;
    *ret_columns = size.ws_col;
    *ret_rows = size.ws_row;
    return true;
}
