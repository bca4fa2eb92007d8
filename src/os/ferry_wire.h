/* SPDX-License-Identifier: MIT */
/* What a mover and its storm-fab say to each other: packets of a socket pair, each one of these structs.
 *
 * Both ends are of one build and on one machine, so the structs go as they are; the first word says how large
 * they are on the other side, in case somebody has installed one half of a release. */
#pragma once

#include <stdint.h>

#include "os/fabric.h"

enum { FERRY_PROVIDER_MAX = 64, FERRY_REGIONS_MAX = 256, FERRY_PEERS_MAX = 4096 };

/* Puts that storm-fab is asked for at once; others wait at the mover. */
enum { FERRY_PUTS_MAX = 256 };

enum ferry_order_kind {
    FERRY_REGION,      /* with a descriptor of memory; answered */
    FERRY_REGION_FREE, /* answered: from then on nothing from outside gets at that memory */
    FERRY_PEER,        /* answered */
    FERRY_PEER_FREE,
    FERRY_PUT,    /* SENT follows */
    FERRY_EXPECT, /* notes may come, or none will */
};

struct ferry_order {
    uint32_t kind;
    uint32_t id; /* of the region or peer; drawn by the mover */
    union {
        struct {
            uint64_t bytes;
        } region;
        struct {
            uint32_t len;
            uint8_t address[FABRIC_ADDRESS_BYTES_MAX];
        } peer;
        struct {
            uint64_t cookie;
            uint64_t offset, len; /* in the region `id` */
            struct fabric_far into;
            uint64_t into_offset;
            uint32_t peer;
            uint32_t note;
        } put;
        uint32_t expect;
    };
};

enum ferry_word_kind {
    FERRY_READY, /* the first, or FAILED */
    FERRY_FAILED,
    FERRY_ANSWER,
    FERRY_SENT,
    FERRY_NOTE,
};

struct ferry_word {
    uint32_t kind;
    int32_t error; /* 0, or -errno */
    union {
        struct {
            uint32_t order_bytes; /* sizeof(struct ferry_order) */
            uint32_t address_len;
            char provider[FERRY_PROVIDER_MAX];
            uint8_t address[FABRIC_ADDRESS_BYTES_MAX];
        } ready;
        char why[FABRIC_WHY_BYTES]; /* FAILED */
        struct {
            uint8_t grant[FABRIC_GRANT_BYTES];
        } answer;
        struct {
            uint64_t cookie;
            char why[FABRIC_WHY_BYTES];
        } sent;
        uint32_t note;
    };
};
