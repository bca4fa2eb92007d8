/* SPDX-License-Identifier: MIT */
/* Remote queues (the STORM paper's Algorithms 1 to 3): one master, a set of nodes, a ring of slots
 * at the same place of the heap on each of them.
 *
 * The master multicasts numbered messages by XFER-AND-SIGNAL, many in one transfer when they come
 * quickly; every node consumes them in order, at its own pace, and stores the last number consumed in
 * its copy of a variable. Before a slot is used again COMPARE-AND-WRITE has said that all nodes have
 * consumed what was in it. Both ends are sub-machines of a daemon: they append to its effects and
 * return what they have learnt. docs/queues.md tells how nodes enter, are lost and come back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/nodeset.h"
#include "machine/machine.h"

enum {
    QUEUE_HEADER_BYTES = 24, /* of a slot, before the message */
    QUEUE_SLOTS_MAX = 1024,
    QUEUE_FLIGHTS_MAX = 8,
    QUEUE_TAGS = QUEUE_FLIGHTS_MAX + 2, /* tags of its requests: config.tag and those after it */
};

/* The `dequeued` variable of a node that has nothing of the queue and awaits nothing: it is in
 * nobody's way. */
#define QUEUE_IDLE UINT64_MAX

/* What master and nodes must agree on. */
struct queue_shape {
    uint32_t heap_offset;
    uint32_t slots; /* at least 1 */
    uint32_t slot_bytes;
    uint32_t event;    /* signalled for each transfer */
    uint32_t dequeued; /* variable: number of the last message consumed, or QUEUE_IDLE */
};

static inline uint32_t queue_message_max(const struct queue_shape *s) {
    return s->slot_bytes - QUEUE_HEADER_BYTES;
}

static inline uint32_t queue_heap_bytes(const struct queue_shape *s) {
    return s->slots * s->slot_bytes;
}

/* ---- the master ---- */

/* How to wait for the slowest node (Algorithm 1). Decision 12 has the figures. */
enum queue_wait {
    QUEUE_WAIT_MIXED,    /* a compare; if it does not hold, standing ones for a while: default */
    QUEUE_WAIT_STANDING, /* a standing compare at once */
    QUEUE_WAIT_BACKOFF,  /* compares at growing intervals, as the paper has it */
    QUEUE_WAITS
};

enum queue_loss {
    QUEUE_LOSS_DROP, /* go on with the rest */
    QUEUE_LOSS_FAIL, /* the queue has failed */
};

struct queue_config {
    struct queue_shape shape;
    uint32_t universe;   /* of node sets */
    uint32_t body_bytes; /* limits.body_bytes: the largest transfer; at least a slot */
    uint32_t backlog;    /* messages held until they are delivered, at least 1 */
    uint32_t flights;    /* transfers at once, at most QUEUE_FLIGHTS_MAX */
    uint64_t tag;        /* the first of QUEUE_TAGS that are the queue's own */
    uint32_t timer;      /* its own, of the daemon's */
    enum queue_wait wait;
    enum queue_loss loss;
    uint64_t timeout_ns;     /* of each request */
    uint64_t backoff_min_ns; /* before asking again; doubled each time */
    uint64_t backoff_max_ns;
    uint64_t patience_ns; /* with a node that requests are refused for; 0: until INPUT_NODES */
};

/* Sensible times for a wave period, and four flights. */
void queue_config_times(struct queue_config *c, uint64_t period_ns);

struct queue;

/* In one step it appends at most a transfer for each flight and two more requests: room for so many
 * bodies and sets is what it needs of the effects. */
size_t queue_bytes(const struct queue_config *c);
struct queue *queue_new(const struct queue_config *c, struct arena *a);

/* Nodes that are to get what is sent from now on. They enter between two transfers, when they have
 * nothing left of an earlier master; until one has entered, messages wait. Those that are lost and
 * reported up again (INPUT_NODES) enter anew by themselves. */
void queue_add(struct queue *q, const struct nodeset *nodes, uint64_t now, struct effects *out);

/* Accepts a message; numbers begin with 1. -ENOSPC: the backlog is full, there will be news of room.
 * -EMSGSIZE: longer than queue_message_max(). -EPIPE: the queue has failed. */
int queue_push(struct queue *q, struct bytes message, uint64_t now, struct effects *out,
               uint64_t *ret_number);

/* Asks until all that was pushed so far is known to be consumed. Without this the master asks only
 * when it needs room. */
void queue_drain(struct queue *q, uint64_t now, struct effects *out);

/* What an input has changed. */
struct queue_news {
    bool room;          /* the backlog was full and is not any more */
    bool delivered;     /* more than before: struct queue_status has the numbers */
    bool consumed;      /* more than before */
    uint32_t entered;   /* so many nodes */
    uint32_t lost;      /* so many that had entered or were about to */
    uint32_t lost_node; /* one of them, or NO_NODE */
    bool failed;        /* now */
};

/* Feeds a completion, timer, NODES or JOINED. False, and no news, if it is not for this queue. */
bool queue_step(struct queue *q, const struct input *in, struct effects *out,
                struct queue_news *ret);

struct queue_status {
    uint64_t pushed;
    uint64_t sent;      /* in a transfer */
    uint64_t delivered; /* in the ring of every node, all up to this */
    uint64_t consumed;  /* by every node, as far as it was asked */
    uint32_t nodes;     /* that have entered */
    uint32_t entering;  /* and that are to */
    uint32_t room;      /* messages that may be pushed now */
    bool failed;
    uint32_t culprit; /* of the failure */
    /* since the beginning */
    uint64_t transfers;
    uint64_t compares;
    uint64_t standing;
    uint64_t repeated; /* messages put into a transfer once more */
};
void queue_status(const struct queue *q, struct queue_status *ret);

/* ---- a node ---- */

/* What must not happen. Each is a bug in the master, the primitives or the flow control. */
enum queue_fault {
    QUEUE_FAULT_NONE,
    QUEUE_FAULT_DOUBLED, /* a number came twice */
    QUEUE_FAULT_OVERRUN, /* a slot was overwritten before its message was consumed */
    QUEUE_FAULT_FOREIGN, /* another master's, or not a message */
    QUEUE_FAULTS
};

struct queue_reader_config {
    struct queue_shape shape;
    const uint8_t *heap; /* the whole of it, as the world keeps it */
    uint32_t timer;      /* the reader's own, of the daemon's */
};

/* Lives in the daemon. Treat as opaque; `fault` and `repeated` may be read. */
struct queue_reader {
    struct queue_reader_config config;
    uint64_t session; /* of the master whose messages these are; 0 if none has come yet */
    uint64_t popped;
    uint64_t done;
    bool begun;     /* the next message is the first of the session */
    bool signalled; /* something has come that was not looked at */
    bool resetting; /* a master wants to begin: when we have nothing left */
    uint32_t first; /* slot that the first signal of a session has named */
    enum queue_fault fault;
    uint64_t repeated;                   /* messages that a master has sent once more, rightly */
    uint64_t news[QUEUE_SLOTS_MAX / 64]; /* slots signalled, not looked at */
    uint64_t here[QUEUE_SLOTS_MAX / 64]; /* slots with a message to pop */
};

struct queue_message {
    uint64_t number;
    struct bytes bytes; /* in the heap, until it is done with */
    bool first;         /* this node begins (anew) here; what came before was not for it */
};

void queue_reader_init(struct queue_reader *r, const struct queue_reader_config *c);

/* Feeds a signal, timer, JOINED or FENCED. The bytes of a signal are in the heap only when its step
 * is over, so the reader looks at them when its timer is due, which is at once. True if there may be
 * something new to pop. */
bool queue_reader_step(struct queue_reader *r, const struct input *in, struct effects *out);

/* Is there something to pop? */
bool queue_ready(const struct queue_reader *r);

/* The next message in order, if it is here. None after a fault. */
bool queue_pop(struct queue_reader *r, struct queue_message *ret);

/* Popped messages up to this number are consumed: their slots may be used again. */
void queue_done(struct queue_reader *r, uint64_t number, struct effects *out);

const char *queue_fault_name(enum queue_fault fault);
const char *queue_wait_name(enum queue_wait wait);

/* ---- a slot, for both ends ---- */

/* Sent once more: those who have it already pass over it. */
#define QUEUE_FLAG_AGAIN 1u

struct queue_header {
    uint64_t session; /* place in the order of the master's beginning: never used twice */
    uint64_t number;
    uint32_t len;
    uint32_t flags;
};

void queue_header_store(uint8_t *to, const struct queue_header *h);
struct queue_header queue_header_load(const uint8_t *from);
