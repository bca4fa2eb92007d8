/* SPDX-License-Identifier: MIT */
/* Bulk bytes by a fabric, from a program that cannot hold libfabric: by a process of its own, storm-fab.
 *
 * Memory is shared with it, and what it is asked are a few words for each put (os/ferry_wire.h). What os/fabric.h says
 * of notes holds here too. But memory may be granted again: once a region was freed nothing that comes late gets at
 * it, as storm-fab has other pages in its place.
 *
 * One takes its time to start, as it wakes all providers: nothing may be asked of it before `ready`, or ferry_wait. To
 * make a region or a peer waits for the answer, for a few seconds at most. Callbacks come from the loop, never from
 * within a call. When storm-fab cannot start, dies or says what makes no sense, all puts under way end with an error,
 * `lost` is called, and everything that is asked after that is refused. */
#pragma once

#include "base/units.h"
#include "os/ferry_wire.h"
#include "os/loop.h"

struct ferry;

/* For storm-fab to start, on a machine where many do so at once. Who waits for `ready` looks at the clock itself. */
#define FERRY_START_NS (30 * NS_PER_S)

struct ferry_config {
    struct loop *loop;
    const char *program;  /* path of storm-fab */
    const char *provider; /* as libfabric has it; NULL: the best that reaches other machines */
    const char *source;   /* as in struct fabric_config */
    void (*ready)(void *context);
    void (*sent)(void *context, uint64_t cookie, int error, const char *why);
    void (*note)(void *context, uint32_t note);
    void (*lost)(void *context, const char *why);
    void *context;
};

struct ferry_put {
    uint32_t peer, region;
    uint64_t offset, len; /* len: not 0 */
    struct fabric_far into;
    uint64_t into_offset;
    uint32_t note;
    uint64_t cookie;
};

/* 0, or -errno with the reason. */
int ferry_new(const struct ferry_config *c, struct ferry **ret, char why[FABRIC_WHY_BYTES]);
/* Until it is ready, for whoever has nothing else to do. 0, or -errno with the reason. */
int ferry_wait(struct ferry *f, char why[FABRIC_WHY_BYTES]);
void ferry_free(struct ferry *f); /* nothing more is heard of puts */
/* The same, at once: when it returns nothing gets at any memory any more. */
void ferry_kill(struct ferry *f);

bool ferry_alive(const struct ferry *f); /* it is ready, and has not ended since */
const char *ferry_provider(const struct ferry *f);
struct bytes ferry_address(const struct ferry *f);

/* Memory behind this descriptor. Returns its number, or -errno. `grant` may be NULL. */
int ferry_region(struct ferry *f, int memory, uint64_t bytes, uint8_t grant[FABRIC_GRANT_BYTES]);
void ferry_region_free(struct ferry *f, uint32_t region);

/* Its number, or -errno. */
int ferry_peer(struct ferry *f, struct bytes address);
/* Nothing more is heard of puts to it: the caller takes them for over. */
void ferry_peer_free(struct ferry *f, uint32_t peer);

void ferry_put(struct ferry *f, const struct ferry_put *put);
void ferry_expect(struct ferry *f, bool notes);
