/* SPDX-License-Identifier: MIT */
/* The server of a work distributor: the desk, its journal, and connections. */
#pragma once

#include "distributor/keep.h"
#include "os/address.h"
#include "os/loop.h"

struct server;

struct connection {
    struct source source; /* fd -1: free */
    struct server *server;
    uint32_t link;
    bool closing; /* what was said before still goes out */
    bool waiting; /* for the socket to take more */
    bool touched; /* has something to send */
    struct wodi_bytes in, out;
};

struct server {
    struct loop loop;
    struct source listener, outer, synced;
    int spare;  /* descriptor, for when there is no other */
    bool local; /* who connects to the first listener is on this machine */
    struct desk_limits limits;
    struct desk *desk;
    struct deeds deeds;
    struct keep keep;
    struct connection *all; /* by link */
    int folder;
    uint64_t changes;
    struct server_past {
        bool loaded;
        uint64_t saved_at;
        uint64_t name; /* a hash */
    } * past;          /* by slot */
    bool again;        /* somebody has gone since it was said what follows */
    bool over;
    int status; /* why it ended, -errno */
};

/* `folder`: a descriptor, of `path`. 0 or -errno. */
int server_start(struct server *s, int folder, const struct desk_limits *limits, bool sync,
                 uint64_t compact_bytes, struct address *listen);
/* Listens here as well; `listen` learns the port. 0 or -errno. */
int server_listen_also(struct server *s, struct address *listen);
/* What the desk has said so far is done, or made ready to leave. */
void server_carry_out(struct server *s);
/* One turn of its loop. */
void server_turn(struct server *s);
void server_stop(struct server *s);

/* past.c: histories are loaded for masters that came, and saved for those that work or went. */
void server_look_at_past(struct server *s, bool last);
