/* SPDX-License-Identifier: MIT */
/* A terminal whose every key goes to the job (--pty), and that is as before when the command ends. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>

struct rawtty {
    int fd;
    bool raw;
    struct termios before;
};

/* False if it is no terminal. */
bool rawtty_begin(struct rawtty *t, int fd);
void rawtty_end(struct rawtty *t);

bool rawtty_size(int fd, uint32_t *ret_columns, uint32_t *ret_rows);
