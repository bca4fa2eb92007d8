/* SPDX-License-Identifier: MIT */
/* The workers that a server hires itself: hosts by CARMI, a worker on each (the CARMI paper, section 3.1).
 *
 * What is asked for and given back is decided by wodi/hire.h, from what the desk wants; here it is carried out. A host that is suspended keeps
 * its worker, the desk has its steps done elsewhere and another host is asked for. A worker that has ended is judged a moment later:
 * by then it is known whether its host was lost, and the worker with it. Hosts that a former life of this server has left
 * are given back: their workers look for a server that listened elsewhere. */
#pragma once

#include "distributor/server.h"
#include "storm/carmi.h"
#include "wodi/hire.h"

enum { STAFF_REQUESTS_MAX = 4 };

struct staff_class {
    struct hire hire;
    const char *expression;
    uint32_t processors;
    char name[32];
    struct staff_request {
        carmi_request id; /* 0: none */
        uint32_t left;    /* hosts that are to come */
    } requests[STAFF_REQUESTS_MAX];
    uint64_t not_before; /* hosts were refused: none is asked for until then */
    bool told;           /* that they were */
};

struct staff_host {
    carmi_host id;
    uint32_t class;
    bool rests;   /* suspended */
    bool leaving; /* given back, and not gone yet */
    uint32_t early;
    carmi_request worker; /* by which it was started */
    uint64_t began;
    uint64_t ended; /* 0: it has not, as far as we know */
};

struct staff {
    struct server *server;
    struct carmi *carmi; /* NULL: none is hired */
    struct source source;
    uint32_t class_count;
    struct staff_class classes[PROFILE_CLASSES_MAX];
    char *const *command;
    struct staff_host *hosts;
    uint32_t host_count, host_cap;
    uint64_t *scratch;
    uint64_t looked, stamp; /* when, and at what */
    uint64_t pause;         /* until the next look, at least */
    uint64_t look_at;       /* 0: not before something happens */
    uint64_t judge_at;      /* workers that have ended; 0: none has */
    char why[320];          /* the last of them */
    bool stirred;           /* hosts came or went */
    int status; /* -ECHILD: there are no workers to be had; any other: the launcher is gone */
};

/* "LEAST:MOST:PROCESSORS:EXPRESSION", which stays. False: it is none. */
bool staff_class_parse(struct staff *t, const char *text);

/* `command` ends in NULL. Workers find the server at `where`, "ADDRESS#TOKEN". 0 or -errno, and why is told. */
int staff_open(struct staff *t, struct server *s, char *const *command, const char *where);
/* After each turn of the server; sees to it that the next is not too late. */
void staff_turn(struct staff *t);
/* All hosts are given back. */
void staff_close(struct staff *t);

/* Where machines of the cluster can reach this one, port 0. */
void staff_address(struct address *ret);
