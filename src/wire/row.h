/* SPDX-License-Identifier: MIT */
/* Rows of the lists that the machine manager answers with: a job, a node, the cluster, a policy, a
 * reservation, a process that others reach.
 *
 * Rows follow each other, each behind its length. Sets are text: the manager folds names. Times are
 * the calendar's, nanoseconds; 0: not yet. */
#pragma once

#include "wire/message.h"

struct job_row {
    uint32_t job;
    uint64_t run;
    uint8_t state;
    uint8_t kind;
    uint32_t flags;
    uint32_t procs, nodes, ppn;
    uint32_t status; /* of the command, when it is over */
    int32_t priority;
    uint32_t array;  /* index; 0: none */
    uint32_t parent; /* the job that it is a host of; 0: none */
    uint32_t hosts;  /* that it has or waits for */
    uint64_t submitted_ns, started_ns, ended_ns;
    uint64_t begin_ns; /* it was not to start before */
    uint64_t limit_ns;
    uint64_t expected_ns; /* it waits, and will start by then */
    struct bytes name;
    struct bytes node_list;   /* folded names */
    struct bytes why;         /* it waits, or how it ended; in words */
    struct bytes reservation; /* that it starts in; empty: in none */
    /* What it has used: in all if it is over, otherwise until then, on nodes where it runs and that have told. */
    bool measured;
    struct usage usage;
    uint64_t measured_ns;
    uint32_t measured_nodes;
    struct bytes peak_where, node_where; /* names of the nodes that the usage has numbers of */
};

enum node_state { NODE_UP, NODE_DOWN, NODE_DRAINED, NODE_STATES };

const char *node_state_name(enum node_state s);

/* Somebody who works at its machine. */
enum node_owner {
    NODE_OWNER_NONE,
    NODE_OWNER_AWAY,
    NODE_OWNER_ACTIVE,
    NODE_OWNER_UNKNOWN,
    NODE_OWNERS
};

const char *node_owner_name(enum node_owner o);

struct node_row {
    uint32_t node;
    uint8_t state;
    uint32_t pes, used;
    uint64_t since_ns; /* in this state */
    struct bytes name;
    struct bytes reason;
    struct bytes jobs;   /* 4 bytes each */
    struct bytes traits; /* what it is like: "CPU=1GHZ MEMORY=24GiB ...", see node_row_trait */
    /* As the machine that it is on has told last; 0 ns: never. */
    uint64_t seen_ns;
    uint32_t load_x100; /* processes that want to run, a mean over a minute */
    uint64_t memory_bytes, memory_used;
    uint8_t owner; /* enum node_owner */
};

struct cluster_row {
    uint32_t epoch;
    uint32_t nodes, up, pes, used;
    uint32_t queued, running;
    uint64_t started_ns; /* this life of the manager */
    uint64_t said;       /* of what the administrator says of nodes: said_hash */
};

/* A scheduling policy; of the one that is chosen also how it goes. */
struct policy_row {
    uint8_t chosen;
    uint8_t sliced; /* it shares time */
    uint32_t slots, rows;
    uint64_t quantum_ns;
    uint32_t samples; /* strobes that nodes have answered; none: what follows says nothing */
    uint64_t skew_ns, skew99_ns;
    uint64_t reach_ns, reach99_ns; /* from sending until the last node had switched */
    uint64_t missed;
    uint32_t unprompt, unwhole; /* as struct skew */
    struct bytes name, words;
    struct bytes fault; /* why it is fcfs */
};

struct reservation_row {
    uint8_t open; /* it has begun */
    uint32_t nodes;
    uint32_t waiting, running; /* jobs that named it */
    uint64_t from_ns, to_ns;
    struct bytes name;
    struct bytes node_list;
};

/* A process that others of its family can reach: see struct message_reach. */
struct peer_row {
    uint32_t place; /* in the list: who wants more asks from the next on */
    uint32_t job, rank;
    uint32_t number; /* of its conversation: of two of the same rank, the greater is the newer */
    uint32_t node;
    uint32_t host; /* that it runs on; 0: it is of the program itself */
    struct message_reach reach;
    struct bytes name;       /* of its job */
    struct bytes class_name; /* of its host */
};

/* What was said is told apart by this: whoever has said it can see that it was heard. */
uint64_t said_hash(const struct input_traits *in);

/* Length written, or -ENOBUFS. */
long job_row_encode(const struct job_row *r, struct room out);
long node_row_encode(const struct node_row *r, struct room out);
long cluster_row_encode(const struct cluster_row *r, struct room out);
long policy_row_encode(const struct policy_row *r, struct room out);
long reservation_row_encode(const struct reservation_row *r, struct room out);
long peer_row_encode(const struct peer_row *r, struct room out);

/* The next of a node's traits, which move on; false behind the last. A value that has blanks is in quotes there, and comes without. */
bool node_row_trait(struct bytes *traits, struct bytes *ret_name, struct bytes *ret_value);

/* The row at *at, which moves on; 1, 0 at the end, or -EBADMSG. Views borrow. */
int job_row_next(struct bytes rows, size_t *at, struct job_row *ret);
int node_row_next(struct bytes rows, size_t *at, struct node_row *ret);
int cluster_row_next(struct bytes rows, size_t *at, struct cluster_row *ret);
int policy_row_next(struct bytes rows, size_t *at, struct policy_row *ret);
int reservation_row_next(struct bytes rows, size_t *at, struct reservation_row *ret);
int peer_row_next(struct bytes rows, size_t *at, struct peer_row *ret);
