/* SPDX-License-Identifier: MIT */
/* The simulated world: thousands of nodes in one process, in virtual time.
 *
 * It carries out the effects of the very machines that run on real nodes: links with latency,
 * bandwidth and jitter, nodes whose processor takes time for every message, disks, heaps, buffers,
 * timers; and every fault we can name. Everything follows from the seed: the same seed gives the
 * same trace hash with any compiler, on any byte order.
 *
 * Beside the nodes there may be bodies, which have a daemon's machine but no primitives below it: a
 * launcher and a mover for each compute node, and clients. Their numbers follow those of the seats. A
 * link for a launcher or mover leads to that of the node; one for a client to the seat that acts as root. A link for
 * files leads to a node's mover or, by an address of 4 bytes, to the body of that number. Buffers
 * of bodies hold stamps in place of bytes (stamp.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "machine/machine.h"
#include "machine/stack.h"
#include "prim/prim.h"
#include "wire/gate.h"

struct link_model {
    uint64_t latency_ns;
    uint64_t jitter_ns;      /* uniform in 0..jitter, order on a link is kept */
    uint64_t bytes_per_s;    /* of a node's network interface, each direction; 0: unlimited */
    uint64_t cpu_receive_ns; /* of a node's processor for one message in */
    uint64_t cpu_send_ns;    /* and for one message out, per link */
    uint64_t connect_ns;     /* to open a link */
    uint64_t durable_ns;     /* until a persisted value is safe */
    uint64_t window_bytes;   /* of puts, to one end: what is beyond has not left; 0: no limit */
    /* Processors that all nodes share, as processes of one machine do: see cores.h. 0: each node
     * has one of its own, and the rest does not apply. */
    uint64_t cores;
    uint64_t core_idle_ns; /* until a processor that had nothing to do runs a process again */
    uint64_t cpu_wake_ns;  /* to switch to a process that slept, until it knows why */
    uint64_t cpu_poll_ns;  /* for a process that has not slept to ask what is new */
    uint64_t cpu_sleep_ns; /* for it to find that there is nothing, and to go to sleep */
    uint64_t cpu_step_ns;  /* of a machine, for one input: decoding, logic, encoding */
    uint64_t cpu_kib_ns;   /* to copy 1,024 bytes out of a process, or in */
};

struct world;
struct journal;

struct world_config {
    struct prim_config prim;
    struct link_model link;
    uint64_t seed;
    bool hash; /* compute the trace hash */
    /* Makes the daemon's machine for a node that boots. It may read the globals while it lives.
     * NULL: nobody is there to listen. */
    struct machine (*daemon)(void *context, uint32_t node, struct globals globals);
    void *context;
    /* Called after every step of a node, when its effects have been carried out. May be NULL. */
    void (*observe)(void *context, struct world *w, uint32_t node);
    /* If not NULL: makes the machine below the daemon in place of the primitives', from an arena of
     * lower_bytes, zeroed. lower_globals, if not NULL, says what the daemon may read of it. */
    struct machine (*lower)(void *context, uint32_t node, struct arena *a);
    size_t lower_bytes;
    struct globals (*lower_globals)(void *context, uint32_t node);
    /* Switches in a row, each joined to the next by a link of so many bytes a second each way: that of each
     * compute node and its bodies; all others are on the first. NULL: one for all. */
    const uint32_t *switches;
    uint64_t between_bytes_per_s;
    /* Bodies; their machines come from `daemon`, too. */
    bool launchers; /* one for each compute node */
    bool movers;    /* the same */
    uint32_t clients;
    /* Carries out effects about processes, their streams, and files. NULL: no machine has any. */
    void (*process)(void *context, uint32_t body, const struct effect *e);
    /* What is new outside for a body that was poked; false if nothing is. Bytes are lent until the next
     * call. */
    bool (*news)(void *context, uint32_t body, struct input *ret);
    /* Carries strobes past the tree. NULL: all are lost. */
    void (*cast)(void *context, const struct effect_cast *e);
    /* Called when a node or a body has died. NULL: nobody cares. */
    void (*died)(void *context, uint32_t node);
};

/* Bodies, as nodes of the world. */
uint32_t world_launcher(const struct world *w, uint32_t node);
uint32_t world_mover(const struct world *w, uint32_t node);
uint32_t world_client(const struct world *w, uint32_t client);

/* NULL if the system has no room for so large a world. */
struct world *world_new(const struct world_config *config);
void world_free(struct world *w);

/* Powers a node on (a fresh life; a seat that is to act as root gets the next epoch). */
void world_boot(struct world *w, uint32_t node, bool root);

/* Carries out the next event; false when there is none. */
bool world_step(struct world *w);
void world_run_until(struct world *w, uint64_t time);

/* When the next event is; false if there is none. */
bool world_next(const struct world *w, uint64_t *ret_at);

/* Something is new outside for this one: it asks for it at that time, unless it dies before. */
void world_poke(struct world *w, uint32_t body, uint64_t at);

uint64_t world_now(const struct world *w);
uint64_t world_hash(const struct world *w);

struct world_counts {
    uint64_t events;   /* of the world: frames on their way, timers, disks, ... */
    uint64_t steps;    /* of machines */
    uint64_t messages; /* delivered to a machine, puts included */
    uint64_t bytes;    /* sent, headers included */
    uint64_t refused[REFUSALS];
    uint64_t queue_max; /* longest queue toward one end of a link, messages on the way included */
    uint64_t effects_max;
    uint64_t effect_bytes_max;
};
const struct world_counts *world_counts(const struct world *w);

/* What a client on a node could see. Of a node that is down: NULL and nothing. */
bool world_up(const struct world *w, uint32_t node);
bool world_paused(const struct world *w, uint32_t node);
struct globals world_globals(const struct world *w, uint32_t node);
const uint8_t *world_heap(const struct world *w, uint32_t node);
/* A buffer of the node, made if there is none of that number yet. */
uint8_t *world_buffer(struct world *w, uint32_t node, uint32_t buffer, uint64_t bytes);
uint32_t world_boots(const struct world *w, uint32_t node);
uint32_t world_buffers(const struct world *w, uint32_t node);
uint32_t world_links(const struct world *w, uint32_t node);                /* live ones */
const struct prim *world_prim(const struct world *w, uint32_t node);       /* NULL when down */
const struct journal *world_journal(const struct world *w, uint32_t node); /* what it has logged */

/* What lies in a body's buffer, as one put or load wrote it; false if nothing does. */
bool world_stamp(const struct world *w, uint32_t body, uint32_t buffer, uint64_t offset,
                 uint64_t *ret_tag, uint32_t *ret_len);
/* Writes there, if there is such a buffer. */
void world_set_stamp(struct world *w, uint32_t body, uint32_t buffer, uint64_t offset, uint32_t len,
                     uint64_t tag);

/* From now on hands every input of the node, as machine/record.h encodes it, to the sink before it
 * is fed: the log replays the node exactly. A NULL sink ends it. */
void world_record(struct world *w, uint32_t node, void (*sink)(void *context, struct bytes record),
                  void *context);

/* Faults. Those with an end heal by themselves. Where there is no link, there is nothing to break;
 * `pick` chooses among the node's live links, modulo their number. */
void world_crash(struct world *w, uint32_t node);
void world_pause(struct world *w, uint32_t node, uint64_t until);
void world_resume(struct world *w, uint32_t node); /* a paused node goes on before its time */
void world_reset(struct world *w, uint32_t node, uint32_t pick); /* breaks one of its links */
void world_mute(struct world *w, uint32_t node, uint32_t pick, bool outgoing, uint64_t until);
void world_duplicate(struct world *w, uint32_t node, uint64_t until);
void world_slow(struct world *w, uint32_t node, uint32_t factor, uint64_t until);
/* Nothing more goes into its log. */
void world_fill_disk(struct world *w, uint32_t node, uint64_t until);
/* Raw bytes arriving on one of a node's links in place of a frame. */
void world_garbage(struct world *w, uint32_t node, uint32_t pick, const uint8_t *bytes, size_t len);
