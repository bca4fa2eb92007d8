/* SPDX-License-Identifier: MIT */
/* A master's own server: storm-wodi as a child of the program, which hires workers (src/distributor/staff.h).
 *
 * They hold the two ends of a socket, the leash: over it the server says where it is, and it ends when the program does. One that has died is
 * started again on its folder and goes on. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "storm/wodi.h"

enum { WODI_SERVER_LINE = 256 };

struct wodi_server {
    pid_t pid; /* 0: there is none */
    int leash;
    unsigned restarts;
    char **argv;
    char **words; /* of these, the worker's, which are copies */
    char program[4096], folder[128], leash_text[16];
    char hires[WODI_CLASSES_MAX][1024];
    bool own_folder;             /* made here, and removed in the end */
    char line[WODI_SERVER_LINE]; /* "ADDRESS#TOKEN" */
};

/* -ENOENT: this process is of no job, or there is no storm-wodi; -EINVAL, -ENAMETOOLONG, -EIO: it has ended, and said why; -ECHILD: as below.
 * Whatever it returns, wodi_server_end() follows. */
int wodi_server_start(struct wodi_server *s, const struct wodi_options *o);

/* If it has died it is started again. -ECHILD: it has given up, as there are no workers to be had; -EIO: it dies again and again. */
int wodi_server_look(struct wodi_server *s);

/* It gives all hosts back, and ends. */
void wodi_server_end(struct wodi_server *s);
