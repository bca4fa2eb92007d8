/* SPDX-License-Identifier: MIT */
/* A file that is being sent: how its bytes get to where they are sent from.
 *
 * The send types of the file-distribution paper (section 4.4), and the system's own way to read. Whoever sends holds the
 * file meanwhile, so bytes that are sent from where they lie stay there though the next file is open already.
 *
 * A file may be cut short while it is mapped. A copy out of it fails then, and does not end the process; and the kernel,
 * which takes mapped bytes itself when they are sent, refuses them with EFAULT. */
#pragma once

#include "base/bytes.h"

enum send_type {
    SEND_USUAL,     /* the best of these: see original.c */
    SEND_READ,      /* read into a buffer */
    SEND_FILE,      /* sent from the file: its pages go, and nothing is copied */
    SEND_MMAP_ALL,  /* the file is mapped, and sent from there: copied by the kernel only */
    SEND_ONE_MAP,   /* the file is mapped, and copied piece by piece into buffers */
    SEND_MULTI_MAP, /* each piece is mapped, copied into a buffer, and unmapped */
    SEND_TYPES
};

/* False if there is none of that name. */
bool send_type_parse(const char *name, enum send_type *ret);
/* All of them, for people. */
#define SEND_TYPE_NAMES "sendfile, mmap-all, one-map, multi-map or read"

struct original;

/* Takes the descriptor over, and closes it in any case. 0 or -errno. */
int original_open(int fd, uint64_t bytes, enum send_type type, struct original **ret);
/* One more, and one less, who needs it; the last one closes it. NULL is nobody's. */
struct original *original_hold(struct original *o);
void original_drop(struct original *o);

int original_fd(const struct original *o);
/* Exactly these bytes: 0, or -errno: -ESTALE if the file is shorter now. */
int original_read(struct original *o, uint64_t from, struct room out);
/* Where these bytes lie, to be sent from there and touched by nobody but the kernel; empty if they are to be read. */
struct bytes original_part(struct original *o, uint64_t from, size_t len);
/* A descriptor of its own for whoever sends them from the file, or -1: from memory. */
int original_lend_fd(const struct original *o);
