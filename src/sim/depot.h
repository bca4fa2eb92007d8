/* SPDX-License-Identifier: MIT */
/* A model of what the world does for a mover: it keeps bundles, pages and pieces, in virtual time.
 *
 * It carries out the same effects as the real depot (os/depot.h) and tells of the same things; contents are
 * tags (sim/cargo.h), which lie in the buffers of the world as stamps. Everything takes the time of a disk
 * that does one thing after the other, and a little more, so results come in any order. What can go wrong with files
 * goes wrong as it is told to. It knows what is right: what a mover must never ask for is told to
 * whoever watches. */
#pragma once

#include "machine/machine.h"
#include "sim/cargo.h"
#include "sim/world.h"

struct sim_depot;

/* What a mover has done that it must not. */
enum sim_depot_sin {
    SIN_COMMIT,   /* made a bundle visible that was not whole */
    SIN_UNJUDGED, /* passed on what had been spoiled on its way to it */
    SIN_UNKNOWN,  /* asked for what is not open, or not there */
    SIN_CLOSED,   /* opened what was open, or closed it twice */
    SINS
};
const char *sim_depot_sin_name(enum sim_depot_sin sin);

struct sim_depot_config {
    struct world *world;
    uint32_t body;
    const struct stock *stock;
    uint64_t seed;
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t latency_ns;  /* of anything */
    uint64_t jitter_ns;
    uint64_t commit_ns;
    void (*sinned)(void *context, uint32_t body, enum sim_depot_sin sin); /* may be NULL */
    void *context;
};

/* What ails it. Chances are in 1,000 of pieces or pages. */
struct sim_depot_ills {
    uint32_t full_after;   /* so many pieces there is no space; 0: never */
    uint32_t way_chance;   /* a piece was spoiled on its way here */
    uint32_t load_chance;  /* a piece that is read is wrong */
    uint32_t page_chance;  /* a page that is read is wrong */
    uint32_t error_chance; /* a piece cannot be read: -ESTALE at its source, -EIO elsewhere */
    bool refuses;          /* no bundle can be opened */
    bool uncommitted;      /* or committed */
};

struct sim_depot_counts {
    uint64_t stored, stored_bytes; /* pieces that came and were not here */
    uint64_t again;                /* that came and were here */
    uint64_t wrong;                /* that did not fit, or pages */
    uint64_t loaded;
    uint64_t whole_at;     /* when all pieces of a bundle were here, the last time; 0: never */
    uint64_t committed_at; /* the same */
};

struct sim_depot *sim_depot_new(const struct sim_depot_config *c);
void sim_depot_free(struct sim_depot *d);

/* What a source has to give, by the number of its offer. */
void sim_depot_offer(struct sim_depot *d, uint64_t offer, const struct cargo *c);

void sim_depot_carry(struct sim_depot *d, const struct effect *e);
/* What has happened by now and was not told yet, one by one. The world is poked for each. */
bool sim_depot_tell(struct sim_depot *d, struct input *ret);

/* Its mover has died. What came stays, or is lost. */
void sim_depot_crash(struct sim_depot *d, bool keep);
/* Nothing will have happened until then. */
void sim_depot_hang(struct sim_depot *d, uint64_t until);
void sim_depot_slow(struct sim_depot *d, uint32_t factor);
void sim_depot_ail(struct sim_depot *d, const struct sim_depot_ills *ills);

/* Some of its pieces are here from the beginning: so many in a hundred. */
void sim_depot_cache(struct sim_depot *d, const struct cargo *c, uint32_t percent);

/* Is all of it here under its name? How many of its pieces (bytes) would have to come? */
bool sim_depot_has(const struct sim_depot *d, const struct cargo *c);
uint32_t sim_depot_lacks(const struct sim_depot *d, const struct cargo *c, uint64_t *ret_bytes);
/* It is taken away, under its name; its pieces stay, or go too. */
void sim_depot_remove(struct sim_depot *d, const struct cargo *c, bool all);

uint32_t sim_depot_open(const struct sim_depot *d); /* bundles */
/* The error that was told of a transfer (or, at its source, offer); 0: none. */
int32_t sim_depot_error(const struct sim_depot *d, uint64_t transfer);
const struct sim_depot_counts *sim_depot_counts(const struct sim_depot *d);
