/* SPDX-License-Identifier: MIT */
/* A program's line to the machine manager (wire/bell.h): frames out, frames in, nothing else. */
#pragma once

#include "base/bytes.h"
#include "wire/bell.h"

struct line {
    int fd;         /* the line, -1: there is none. Readable when there is something to hear */
    uint8_t *frame; /* LINE_FRAME_MAX: what was heard last */
};

/* 0, or -errno: -ENOENT: this process is not of a job, or has closed what it was given; another: its launcher does not let it in. */
int line_open(struct line *p);
void line_close(struct line *p);

/* 1: said; 0: there is no room for it now; -errno: the line is cut. */
int line_say(struct line *p, uint16_t type, struct bytes body);

/* 1: something was heard, valid until the next call; 0: there is nothing; -errno: the line is cut. */
int line_hear(struct line *p, uint16_t *ret_type, struct bytes *ret_body);

/* Waits until there is something to hear or, if that is wanted, room to speak, or a signal has come; -1: for ever. False: the time
 * is over. */
bool line_wait(const struct line *p, bool to_speak, int timeout_ms);
