/* SPDX-License-Identifier: MIT */
/* Bulk bytes by remote memory access, through libfabric.
 *
 * A fabric is one endpoint of one provider. Memory is registered as regions. What is sent to a peer
 * by other means: our address, and for a region that it may write into, its grant. A put writes bytes
 * of a local region into a granted one; when they are all there, and not before, the other side
 * hears a note of 32 bits. Nobody's processor copies anything on the way, if the network can do that.
 *
 * The note is all that the other side hears, not even from whom: whoever grants a region chooses the note
 * and has it sent back, with some bits that differ from grant to grant, as one may come late.
 * Whoever knows a grant may write until its region is freed, and what has begun to arrive goes on
 * even then: let nothing be granted twice that a peer was given up over.
 *
 * It all happens in the loop; callbacks come from there, never from within a call. Where the
 * provider has a descriptor to wait for, that wakes us; otherwise a timer does while puts are under way or
 * expected, and nothing at all while none are.
 *
 * The programs that are linked statically have no libfabric: they call through a table of functions,
 * which only a program that is linked with it can pass to them. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "os/loop.h"

enum {
    FABRIC_WHY_BYTES = 256,
    FABRIC_GRANT_BYTES = 24,
    FABRIC_ADDRESS_BYTES_MAX = 384,
    FABRIC_ARRIVALS_MAX = 1024, /* that may be granted, and not yet arrived, at once */
};

struct fabric;
struct fabric_region;
struct fabric_peer;

struct fabric_config {
    struct loop *loop;
    const char
        *provider; /* as libfabric has it: "tcp;ofi_rxm", "shm", "verbs", ...; NULL: the best that
                             reaches other machines */
    const char
        *source; /* numeric IP address to be at; NULL: as the provider chooses. One that has other
                             addresses takes no notice */
    uint32_t puts_max; /* under way at once; 0: the usual 64 */
    uint64_t stall_ns; /* a peer that takes nothing for so long is given up; 0: the usual 10 s */
    uint64_t part_bytes_max; /* larger puts are split; 0: as the provider wants it */
    bool notes_by_message;   /* as if the provider could not send notes along with puts */
    /* The bytes of a put have left, its part of the region may be used again; or -errno, in words. */
    void (*sent)(void *context, uint64_t cookie, int error, const char *why);
    /* All bytes of a peer's put are here. Returns how many they are, for the counts. */
    uint64_t (*arrived)(void *context, uint32_t note);
    void *context;
};

/* A region that a peer has granted us. */
struct fabric_far {
    uint64_t base;
    uint64_t key;
    uint64_t bytes;
};

struct fabric_put {
    struct fabric_peer *peer;
    const struct fabric_region *region; /* ours, that the bytes lie in */
    const void *from;
    uint64_t len; /* not 0 */
    struct fabric_far into;
    uint64_t offset;
    uint32_t note;
    uint64_t cookie;
};

struct fabric_counts {
    uint64_t puts, bytes_put; /* that have left */
    uint64_t writes;          /* they took */
    uint64_t notes, bytes_arrived;
    uint64_t errors;
    uint64_t looks; /* for something to do: an idle fabric takes none */
    /* Puts that were given up and that the provider has still to give back. With shared memory it never does
     * if the peer has died, and holds back all that follow: then a new fabric has to be made. */
    uint64_t lost;
};

struct fabric_calls {
    /* 0, or -errno with the reason. */
    int (*create)(const struct fabric_config *config, struct fabric **ret,
                  char why[FABRIC_WHY_BYTES]);
    /* With all its regions and peers. Not from a callback. */
    void (*free)(struct fabric *f);
    const char *(*provider)(const struct fabric *f);
    struct bytes (*address)(const struct fabric *f); /* for peers; it is the fabric's */

    /* The memory stays the caller's, and must stay. */
    int (*region)(struct fabric *f, struct room memory, struct fabric_region **ret);
    struct bytes (*grant)(const struct fabric_region *r); /* it is the region's */
    /* -EBUSY: a put, perhaps one that was given up, still reads it. */
    int (*region_free)(struct fabric_region *r);

    /* By what its address() says. -EBADMSG: no address; -EPROTONOSUPPORT: of another provider. */
    int (*peer)(struct fabric *f, struct bytes address, struct fabric_peer **ret);
    /* Nothing more is heard of puts to it that are under way. */
    void (*peer_free)(struct fabric_peer *p);

    /* 0: it will be, and `sent` tells. -EAGAIN: too many are under way, try after the next `sent`.
     * -ERANGE: the far region is smaller. -EPIPE: the peer was given up. */
    int (*put)(struct fabric *f, const struct fabric_put *put);
    /* While notes are expected, say so: some providers must be looked after for anything to arrive. */
    void (*expect)(struct fabric *f, bool notes);

    const struct fabric_counts *(*counts)(const struct fabric *f);
};

/* What a program links that has libfabric. */
extern const struct fabric_calls fabric_ofi;

/* The same: tells the providers that can do what we need, with the device or network of each, the fastest first; one may
 * come several times. 0 or -errno: there are none. */
int fabric_ofi_providers(void (*tell)(void *context, const char *name, const char *domain),
                         void *context);

/* -EBADMSG if it is no grant. */
static inline int fabric_far(struct bytes grant, struct fabric_far *ret) {
    if (grant.len != FABRIC_GRANT_BYTES)
        return -EBADMSG;
    *ret = (struct fabric_far){.base = load_le64(grant.at),
                               .key = load_le64(grant.at + 8),
                               .bytes = load_le64(grant.at + 16)};
    return ret->bytes > UINT64_MAX - ret->base ? -EBADMSG : 0;
}
