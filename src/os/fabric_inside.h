/* SPDX-License-Identifier: MIT */
/* What the files of a fabric share; for nobody else. */
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include "base/list.h"
#include "os/fabric.h"

struct fabric_region {
    struct list link; /* fabric.regions */
    struct fabric *fabric;
    struct room memory;
    struct fid_mr *mr;
    uint8_t grant[FABRIC_GRANT_BYTES];
};

struct fabric_peer {
    struct list link; /* fabric.peers */
    struct fabric *fabric;
    fi_addr_t at;
    uint32_t puts;     /* under way: waiting or posted */
    uint32_t lost;     /* of those that were given up */
    uint64_t moved_at; /* when it last took something, or was given the first */
    uint64_t tried;    /* the round in which it could take nothing more */
    bool given_up;
    bool freed; /* by its owner; it goes when nothing of it is lost any more */
};

/* A put on its way: parts are written one after the other, the last one with the note. If the
 * provider cannot do that, a message with the note follows when all parts are known to be there. */
enum put_state {
    PUT_FREE,
    PUT_WAITING, /* in fabric.waiting: its next step is to be posted */
    PUT_POSTED,  /* the provider has it */
    PUT_LOST,    /* the provider has it, nobody waits for it any more */
};

struct put {
    struct fi_context2 provider; /* first: its address is what the provider gives back */
    struct list link;            /* fabric.unused or fabric.waiting */
    enum put_state state;
    struct fabric_put what;
    uint64_t done; /* bytes written */
    uint64_t part; /* bytes of the write that is posted */
    bool noted;    /* it carries the note */
};

/* A receive for a note that comes as a message. Some providers also take one for each that does not. */
enum { NOTE_BYTES = 4, RECEIVES = 128 };
struct receive {
    struct fi_context2 provider;
    uint8_t bytes[NOTE_BYTES];
};

struct fabric {
    struct fabric_config config;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;

    struct source wait;  /* of the completion queue; -1 if the provider has no descriptor */
    struct source timer; /* edge-triggered */
    uint64_t timer_at;   /* 0: not set */
    uint64_t looked_at;
    uint32_t vain;   /* looks in a row that found nothing */
    uint64_t nap_ns; /* until we look again, if we must; longer and longer while nothing happens */
    bool expecting;
    bool in_round;
    bool moved;  /* something has happened in this round */
    bool kicked; /* we must look at once */
    int dead;    /* -errno: the queue itself has failed */

    struct list regions, peers, waiting, unused;
    struct put *puts; /* puts_max */
    uint32_t posted;  /* of them */
    uint64_t rounds;
    struct receive *receives;
    struct fid_mr *receives_mr; /* if the provider wants its receives registered */
    uint32_t receive_count;

    uint64_t part_bytes_max;
    bool notes_by_message;
    struct fabric_counts counts;
    uint8_t address[FABRIC_ADDRESS_BYTES_MAX];
    size_t address_len;
    size_t raw_len; /* of the provider's own address, at the end of it */
};

/* Chooses a provider and opens all of it; 0 or -errno with the reason. Whatever was opened is closed by fabric_close. */
int fabric_open(struct fabric *f, char why[FABRIC_WHY_BYTES]);
void fabric_close(struct fabric *f);

/* Gives a receive to the provider (again). 0 or -errno. */
int fabric_receive(struct fabric *f, struct receive *r);
/* As -errno; what only libfabric has a number for is -EIO. */
int fabric_error(long error);
int fabric_register(struct fabric *f, struct room memory, uint64_t access, struct fid_mr **ret);
/* The provider's part of a peer's address; -EBADMSG, -EPROTONOSUPPORT. */
int fabric_raw(const struct fabric *f, struct bytes address, struct bytes *ret);
