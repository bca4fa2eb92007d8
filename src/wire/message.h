/* SPDX-License-Identifier: MIT */
/* Every message there is, in one table.
 *
 * A row says who may send it (as seen by the receiver), on which lane, how large it may be, whether
 * its body is secret (then the world keeps it in a key slot and neither logic nor logs see it), and
 * how its fields follow each other. The gate checks a frame against its row before the body is
 * touched. docs/protocol.md tells what the messages mean. */
#pragma once

#include "base/nodeset.h"
#include "machine/machine.h"
#include "sched/map.h"
#include "wire/codec.h"
#include "wire/ending.h"
#include "wire/kinds.h"
#include "wire/petition.h"
#include "wire/ranks.h"

enum message_type {
    MESSAGE_NONE,
    /* down the tree */
    MESSAGE_EPOCH,    /* parent to child: the epoch we are in; attach to it */
    MESSAGE_ATTACHED, /* root to nodes: the path to you is confirmed */
    MESSAGE_FENCED,   /* root to one node: you were given up, start anew */
    MESSAGE_VIEW,     /* root to all: who is a member */
    MESSAGE_PREPARE,  /* root to a set: hold this operation, vote */
    MESSAGE_DECIDE,   /* root to a set: apply or drop it */
    MESSAGE_ARM,      /* root to a set: tell when this compare holds */
    MESSAGE_RESULT,   /* root to the initiator: how it ended */
    MESSAGE_STROBE,   /* root to a set: newest wins */
    MESSAGE_TICK,     /* parent to child: heartbeat */
    MESSAGE_DONATE,   /* root to one node: send me your variables */
    /* up the tree */
    MESSAGE_ATTACH,   /* node to root: I (and those below me) am here now */
    MESSAGE_LOST,     /* node to root: these are not below me any more */
    MESSAGE_DETACH,   /* child to parent: I move elsewhere */
    MESSAGE_ACK,      /* combined: these nodes have done what you cast */
    MESSAGE_REQUEST,  /* initiator to root: order this operation */
    MESSAGE_RECEIVED, /* initiator to root: I have the result */
    MESSAGE_TOCK,     /* combined answer to a tick */
    MESSAGE_DONATION, /* a node's variables */
    /* between a source and a sink of a bulk transfer */
    MESSAGE_WANT, /* sink to source: send from this chunk on, so many */
    MESSAGE_PUT,  /* source to sink: bytes for a buffer (made and read by the world) */
    /* gathers, down and up the tree */
    MESSAGE_QUERY,   /* root to a set: send me your record */
    MESSAGE_RECORDS, /* combined: these nodes have answered, with these records */
    /* both ways, first on every connection (made and read by the world) */
    MESSAGE_HELLO,
    /* carriers of mail along the tree: one for each lane */
    MESSAGE_MAIL,
    MESSAGE_PARCEL,
    /* root to the nodes of a run */
    MESSAGE_LAUNCH,  /* by XFER-AND-SIGNAL: start your part of it */
    MESSAGE_COMMAND, /* do this with it; also a node's manager to its launcher */
    MESSAGE_FORGET,  /* these are over and done with */
    /* nodes to those above */
    MESSAGE_HAVE, /* these runs are here and not over: what to do with them? */
    MESSAGE_ENDS, /* combined: a run is over on these nodes */
    /* streams: launcher, node, root, client, and back */
    MESSAGE_OUTPUT,  /* what a process has written */
    MESSAGE_TAKEN,   /* the client has it */
    MESSAGE_TYPED,   /* for a process's standard input */
    MESSAGE_DRAINED, /* the process has it */
    /* a node's manager and its launcher */
    MESSAGE_SETUP, /* make a run's processes ready here */
    MESSAGE_ENDED, /* none of them is left */
    MESSAGE_HOLD,  /* launcher to a new manager: this run is here and not over */
    /* client and machine manager */
    MESSAGE_SUBMIT, /* run this */
    MESSAGE_ACT,    /* do this with jobs or nodes */
    MESSAGE_ASK,    /* what is there? */
    MESSAGE_ANSWER, /* to SUBMIT and ACT */
    MESSAGE_NEWS,   /* a job that the client follows has changed */
    MESSAGE_ROWS,   /* to ASK */
    /* bundles of files: root to nodes, a node's manager to its mover */
    MESSAGE_TRANSFER, /* to nodes by XFER-AND-SIGNAL: a bundle is to come to you, or to go from you */
    MESSAGE_ENOUGH,   /* these transfers are over */
    MESSAGE_ARRIVED, /* mover to its manager, node to root: it is here, or will not be */
    /* between movers, one transfer a link */
    MESSAGE_JOIN, /* taker to giver: give it to me */
    MESSAGE_PAGE, /* giver to taker: the next page of its table */
    MESSAGE_NEED, /* taker to giver: of this page I lack these */
    MESSAGE_ROOM, /* taker to giver: so many pieces may come */
    MESSAGE_PART, /* giver to taker: not from me */
    MESSAGE_BEAT, /* giver to taker: I am here, there is nothing to send */
    /* client and machine manager */
    MESSAGE_COPY,   /* have this bundle taken to nodes */
    MESSAGE_COPIED, /* where it is, where not and why */
    /* client to root, root to nodes, a node's manager to its mover; and back */
    MESSAGE_OFFER,   /* make these files ready to be had from you */
    MESSAGE_OFFERED, /* they are, under this number; or why not */
    /* between the worlds of two movers, beside what the movers say: bytes by a fabric */
    MESSAGE_WINDOW,  /* taker to giver, before JOIN: you may write into this memory of mine */
    MESSAGE_PLACED,  /* giver to taker, for each put by the fabric: this is what will be there */
    MESSAGE_COUNT,   /* a command to a node's mover: what went which way? */
    MESSAGE_COUNTED, /* so much */
    /* a node's manager to its mover: remove the folders of these runs; and back: they are gone */
    MESSAGE_CLEAR,
    /* gangs: root to nodes, a node's manager to its launcher */
    MESSAGE_TURN,  /* to nodes by STROBE: run this slot now */
    MESSAGE_SLOTS, /* these runs belong to these slots */
    /* launcher to its manager, node to root */
    MESSAGE_TURNED, /* it runs, since then */
    /* client to machine manager */
    MESSAGE_RESERVE, /* keep nodes for some for a while, or no more; answered as ACT is */
    /* between the worlds of a guest and of the lodge (os/lodge.h) */
    MESSAGE_COME,   /* guest to lodge: I am here */
    MESSAGE_SEEK,   /* guest to lodge: where is this one? */
    MESSAGE_LETTER, /* lodge to guest: there, and by these keys */
    /* launcher to its manager */
    MESSAGE_MEASURED, /* what a run has used until now */
    /* launcher, node, root, client */
    MESSAGE_PIDS, /* the processes of a run, and how their systems number them */
    /* between a program and the root: its launcher and node carry them (docs/protocol.md) */
    MESSAGE_PETITION, /* upwards */
    MESSAGE_REPLY,    /* downwards */
    MESSAGE_OWNER,    /* root to nodes: this tells whether somebody works at your machine */
    MESSAGE_REACH,    /* inside PETITION: where others of its family reach this process */
    MESSAGE_TYPES
};

/* Who asked for an operation: with the number it is unique for ever. */
struct op_id {
    uint32_t node;
    uint64_t number;
    uint64_t incarnation;
};

enum operation_kind {
    OPERATION_XFER,
    OPERATION_COMPARE,
    OPERATION_STANDING, /* only in requests: becomes a COMPARE when it is ordered */
    OPERATION_STROBE,   /* only in requests: never ordered */
    OPERATION_ANNOUNCE, /* a bulk transfer begins: make room */
    OPERATION_PUBLISH,  /* it is complete: make it visible */
    OPERATION_KINDS
};

/* What is to be done; the same in a REQUEST and in the PREPARE that follows from it. */
struct operation {
    uint8_t kind;
    bool hint;
    bool ask; /* never without hint */
    uint8_t relation;
    uint32_t event;       /* remote event; channel of a STROBE */
    uint32_t heap_offset; /* XFER, PUBLISH */
    uint32_t variable;
    uint32_t write_variable;
    uint64_t transfer; /* ANNOUNCE, PUBLISH: request number of the announce */
    uint64_t value;    /* compared with; ANNOUNCE: how long the transfer may take, ns */
    uint64_t write_value;
    uint64_t len; /* of a bulk transfer */
    struct bytes body;
};

struct message_epoch {
    uint32_t root;
};

struct message_attached {
    struct nodeset *set;
};

struct message_fenced {
    uint32_t node;
    uint64_t incarnation;
};

struct message_view {
    uint64_t view;
    uint64_t order; /* joiners count operations after this one */
    uint64_t stable;
    struct nodeset *members;
    struct nodeset *joined;
    struct bytes variables;   /* snapshot for the joined, 8 bytes each */
    struct bytes resolutions; /* of the former epoch: struct resolution each */
};

struct message_prepare {
    uint64_t order;
    uint64_t stable; /* everything before this is finished everywhere */
    struct op_id id;
    struct nodeset *set;
    struct operation operation;
};

struct message_decide {
    uint64_t order;
    uint64_t stable;
    bool commit;
    struct nodeset *set;
};

struct message_arm {
    uint64_t number;
    struct nodeset *set;
    bool disarm;
    uint8_t relation;
    uint32_t variable;
    uint64_t value;
    struct bytes active; /* all numbers that are armed now, 8 bytes each: others may be forgotten */
};

struct message_result {
    struct op_id id;
    uint8_t outcome;
    uint32_t culprit;
    uint64_t order;
};

struct message_strobe {
    uint32_t channel;
    uint64_t number;
    struct nodeset *set;
    struct bytes body;
};

struct message_tick {
    uint64_t tick;
    uint64_t view; /* the root's: who stays behind it has been left out */
    uint64_t stable;
    struct nodeset *limbo; /* members the root has no path to: they should attach again */
};

struct message_donate {
    uint32_t node;
    uint64_t incarnation;
};

struct message_attach {
    uint32_t node;
    uint64_t incarnation;
    uint64_t attempt;      /* ascends: what comes late by another way is ignored */
    bool member;           /* has state of an earlier attachment */
    uint32_t member_epoch; /* the epoch of that state */
    uint64_t view;
    struct nodeset *below;
    struct nodeset *members; /* of that view; empty unless the epoch has changed */
    struct bytes records;    /* struct record each; only if the epoch has changed */
};

struct message_lost {
    struct nodeset *set;
    uint32_t node; /* whose link broke, NO_NODE if it left on its own */
};

enum ack_what { ACK_PREPARE, ACK_DECIDE, ACK_VIEW, ACK_ARM, ACK_WHATS };

struct message_ack {
    uint8_t what;
    bool no;         /* the condition does not hold here */
    uint64_t number; /* order, view or standing number */
    struct nodeset *set;
};

struct message_request {
    struct op_id id;
    uint32_t epoch; /* in which it was first sent */
    uint64_t after; /* number of an earlier request that must come first, 0 if none */
    uint64_t timeout_ns;
    struct nodeset *set;
    struct operation operation;
};

struct message_received {
    struct op_id id;
};

struct message_tock {
    uint64_t tick;
    uint32_t nodes;
    bool complete;
};

struct message_donation {
    uint32_t node;
    struct bytes variables;
};

struct message_want {
    struct op_id transfer;
    uint32_t node;   /* the sink */
    uint32_t next;   /* first chunk not yet here */
    uint32_t credit; /* chunks that may come beyond it */
    uint32_t buffer; /* where they go */
    bool done;       /* this node and all its sinks have everything */
};

struct message_put {
    uint32_t buffer;
    uint64_t offset;
    uint64_t note;
    struct bytes body;
};

struct message_query {
    uint64_t number;
    uint32_t channel;
    bool apart; /* not to be combined: the root wants to know who it is that does not answer */
    struct nodeset *set;
};

struct message_records {
    uint64_t number;
    struct nodeset *set;  /* who answers; not all of them need have a record */
    struct bytes records; /* struct reply each */
};

/* Which cluster a connection belongs to, and what of it: its link (named by the opener) and lane.
 * The answer repeats it. The key is what a role rests on until links are authenticated. */
struct message_hello {
    uint64_t key[2];
    uint32_t to;
    uint8_t purpose;
    uint8_t lane;
    uint64_t token;
};

/* Mail on its way: of this node, for these (empty: upwards). */
struct message_mail {
    uint32_t origin;
    bool root; /* upwards: not for the next node but for the root */
    uint16_t type;
    struct nodeset *set;
    struct bytes body;
};

/* A run is one attempt of a job: the job's number and the attempt's. Every run ever is another. */
static inline uint64_t run_of(uint32_t job, uint16_t attempt) {
    return (uint64_t)job << 16 | attempt;
}

static inline uint32_t run_job(uint64_t run) {
    return (uint32_t)(run >> 16);
}

/* The first `procs` nodes of the set have processes, as sched/size.h shares them out. */
struct message_launch {
    uint64_t run;
    uint32_t procs;
    uint8_t map;     /* enum map_kind; the places of a list are in the spec */
    uint32_t window; /* bytes of each stream that may be on their way to the client */
    uint32_t index;  /* of an array's job */
    struct nodeset *set;
    struct bytes sections; /* as sched/map.h has them; empty: none */
    bool folder;           /* the run has one of its own on each node */
    uint64_t slots;        /* that it belongs to, as bits; 0: to all there are */
    uint64_t version;      /* of the matrix that says so */
    struct bytes spec;     /* wire/spec.h */
};

/* What a transfer by XFER-AND-SIGNAL to nodes is about. */
enum { EVENT_LAUNCH, EVENT_FILES, EVENT_SLOTS };

/* What a strobe is about. */
enum { CHANNEL_TURN };

/* Rows of the matrix: a run has a bit for each that it belongs to. */
enum { GANG_SLOTS_MAX = 64, GANG_ALL = 255 /* there is only one: whatever is here runs */ };

/* Shorter turns are nothing but switches: nodes do not take them by themselves. */
enum { GANG_QUANTUM_LEAST_US = 100 };

/* A strobe's number: the epoch of whoever sent it, and in that they are counted. */
enum { STROBE_EPOCH_SHIFT = 40 };

/* Whose turn it is. */
struct message_turn {
    uint64_t number;     /* of the strobe; in the strobe itself it says nothing */
    uint8_t slot;        /* below GANG_SLOTS_MAX, or GANG_ALL */
    bool tell;           /* answer TURNED */
    uint64_t sent_ns;    /* by the root's clock */
    uint32_t quantum_us; /* how long a turn lasts; 0: until the next strobe */
    uint64_t
        cycle; /* slots that take turns from here on, in ascending order, round and round, without
                            further strobes; 0: this one stays until the next strobe */
    uint64_t spent_ns; /* of this turn, when the strobe was sent */
};

enum { SLOTS_ROW_BYTES = 16 };

/* A version that is older than what is known of a run says nothing about it. */
struct message_slots {
    uint64_t version;
    struct bytes rows; /* a run and its slots, 8 bytes each */
};

/* How a node switches. */
enum gang_means {
    GANG_BY_CGROUP,    /* whatever a run does: all of it, and nobody notices */
    GANG_BY_NAMESPACE, /* all of it, by stopping: a program can see that, and undo it for itself */
    GANG_BY_DESCENT,   /* what is found of it, by stopping */
    GANG_MEANS
};

struct message_turned {
    uint64_t number;
    uint8_t slot;
    uint8_t means;
    bool prompt;      /* the launcher is served at once: it has a real-time priority */
    uint64_t sent_ns; /* as it came */
    uint64_t at_ns;   /* when all was switched, by the node's clock */
    uint32_t took_ns; /* from hearing of it until then */
    uint32_t missed;  /* strobes since the last answer that were never heard of */
};

enum verb {
    VERB_START, /* launcher only: what was set up is to run */
    VERB_SIGNAL, /* value: the signal; ranks: to these processes alone, not to what they have begun */
    VERB_SUSPEND, /* stop the processes where they are */
    VERB_RESUME,
    VERB_END,    /* SIGTERM on STORM's behalf: who ends by it does not count */
    VERB_KILL,   /* everything that descends from the run, now */
    VERB_RESEND, /* output that nobody has taken yet */
    VERB_CHECK,  /* nodes: tell whether you have it, and how it stands */
    VERB_SIZE,   /* value, more: columns and rows of the terminal */
    VERB_RENEW, /* launcher only, no run: the manager is alive; value: milliseconds until the next */
    VERB_DROP,  /* launcher only: forget it, it is over or was never started */
    /* from clients, about jobs */
    VERB_FOLLOW, /* tell me of this job; value, bits: 1: I take its output; 2: of its array; 4: of its hosts */
    VERB_UNFOLLOW, /* no more; the job goes on; value 1: all it has written is kept, but for what text tells */
    /* from clients, about nodes */
    VERB_DRAIN,
    VERB_UNDRAIN,
    /* from clients, about the cluster */
    VERB_STOP,
    VERB_POLICY, /* text: its name, "": the same; value: slots; more: quantum, microseconds; 0: the same */
    VERB_MEASURE, /* launcher only, no run: answer MEASURED for each that runs */
    /* from clients, about jobs; and to launchers */
    VERB_PIDS, /* answered by PIDS; value: of launchers, who has asked */
    /* from programs, about their job; text: a class, as wire/classes.h has it. Who is refused is told an errno as count. */
    VERB_DEFINE,
    VERB_UNDEFINE, /* only its name says something */
    VERBS
};

struct message_command {
    uint64_t run;
    uint8_t verb;
    uint32_t value;
    uint32_t more;
    struct bytes ranks; /* wire/ranks.h; none: it is for all */
};

struct message_forget {
    struct bytes runs; /* 8 bytes each */
};

/* Beside a run in HAVE: it could begin, but it is not known here that its launch was decided. */
#define HAVE_READY ((uint64_t)1 << 63)

struct message_have {
    bool all;          /* there are no others */
    struct bytes runs; /* 8 bytes each */
    struct bytes
        report; /* what the node is like: traits_report (sched/traits.h); empty: nothing is said */
};

/* What clean nodes have written and used is one sum: who knows of one of them already cannot take it apart, and takes all
 * of them or none. */
struct message_ends {
    uint64_t run;
    struct nodeset *clean; /* all processes ended with status 0 */
    uint64_t output;       /* of these, as struct ending has it */
    struct usage usage;    /* of these */
    struct bytes ends;     /* of other nodes, and what is said again: struct ending each */
};

#define RANK_ALL UINT32_MAX

/* Bytes of each stream of a run that may be on their way: who sends and who takes them must agree. All
 * streams together have a bound, each of them has a page at least. */
static inline uint32_t stream_window(uint32_t procs) {
    uint32_t share = (8U << 20) / (procs == 0 ? 1 : procs);
    return share < 4U << 10 ? 4U << 10 : share > 256U << 10 ? 256U << 10 : share;
}

struct message_output {
    uint64_t run;
    uint32_t rank;
    uint8_t stream; /* 1, 2 */
    bool end;
    uint64_t offset;
    struct bytes bytes;
};

struct message_taken {
    uint64_t run;
    uint32_t rank;
    uint8_t stream;
    uint64_t offset; /* everything before */
};

struct message_typed {
    uint64_t run;
    uint32_t rank; /* RANK_ALL: every process */
    bool end;
    uint64_t offset;
    struct bytes bytes;
};

struct message_drained {
    uint64_t run;
    uint32_t rank;
    uint64_t offset; /* UINT64_MAX: it reads no more */
};

enum { PIDS_ROW_BYTES = 8 };

/* Those of one node, or some of them. */
struct message_pids {
    uint64_t run;
    uint32_t asker;    /* as it came in COMMAND */
    struct bytes node; /* its name */
    struct bytes host; /* what the machine calls itself */
    struct bytes
        rows; /* a rank and its process's number there, 4 bytes each; ascending ranks. 0: it has ended */
};

/* As wire/owner.h has it; empty: nobody is its owner. */
struct message_owner {
    struct bytes watch;
};

struct message_setup {
    uint64_t run;
    uint64_t slots; /* as in LAUNCH */
    uint64_t version;
    struct bytes setup; /* wire/setup.h */
};

struct message_ended {
    uint64_t run;
    struct bytes ends; /* one struct ending */
};

struct message_hold {
    uint64_t run;
    bool started;
    struct bytes setup; /* as it came in SETUP */
};

struct message_measured {
    uint64_t run;
    struct usage usage; /* no node is named */
};

struct message_submit {
    uint64_t request[2]; /* drawn by the client: a retry has the same */
    uint8_t kind;
    uint32_t flags; /* enum job_flag */
    uint32_t nodes; /* the size, whole: nodes * ppn >= procs */
    uint32_t ppn;
    uint32_t procs;
    uint32_t inside;      /* STEP: the allocation's job */
    uint32_t array_first; /* indices, both 0 if it is no array */
    uint32_t array_last;
    uint64_t limit_ns; /* time it may run, 0: any */
    uint64_t begin_ns; /* of the calendar: not before; 0: any time */
    int32_t priority;
    struct nodeset *on;      /* only these nodes; empty: any */
    struct nodeset *exclude; /* none of these */
    struct bytes after;      /* the ends of these jobs: AWAIT_BYTES each */
    struct bytes name;
    struct bytes reservation; /* it starts there and then only; empty: in none */
    struct bytes need;        /* JOB_NEEDS: what its nodes must be like, as sched/need.h reads it */
    struct bytes
        sections; /* JOB_SECTIONS: wire/sections.h. The sizes above are sums, and the largest ppn */
    uint32_t parent; /* JOB_FAMILY: the job that it is a host of */
    uint32_t
        together; /* JOB_FAMILY: so many of an array start at once, or none of these; 0: each alone */
    struct bytes classes; /* JOB_CLASSES: wire/classes.h. The sizes above are without their hosts */
    /* That must be on its nodes first: the body of a COPY or, of JOB_SEVERAL, several. Empty: none. */
    struct bytes files;
    struct bytes inputs; /* the same, for its folder: where that is is filled in for each run */
    struct bytes spec;   /* wire/spec.h */
};

struct message_act {
    uint64_t request[2];
    uint8_t verb;
    uint32_t value;
    uint32_t more;
    struct nodeset *nodes;
    struct bytes jobs;  /* 4 bytes each */
    struct bytes text;  /* a reason */
    struct bytes ranks; /* wire/ranks.h; none: all */
};

enum { RESERVATION_NAME_MAX = 40 };

/* Nodes that are kept for jobs that name the reservation, from then until before then. */
struct message_reserve {
    uint64_t request[2];
    bool cancel;             /* the one of that name; the rest says nothing */
    uint64_t from_ns, to_ns; /* of the calendar */
    struct nodeset *nodes;
    struct bytes name; /* empty: the manager finds one; RESERVATION_NAME_MAX bytes at most */
};

enum subject {
    SUBJECT_JOBS,
    SUBJECT_JOB,
    SUBJECT_NODES,
    SUBJECT_WHY,
    SUBJECT_CLUSTER,
    SUBJECT_SPEC, /* what a job is to run: the rows are its spec */
    SUBJECT_POLICIES,
    SUBJECT_RESERVATIONS,
    SUBJECT_CLASSES, /* of a job's hosts: the rows are as wire/classes.h has them */
    SUBJECT_PEERS,   /* processes of the asker's family that can be reached */
    SUBJECTS
};

struct message_ask {
    uint64_t request[2];
    uint8_t subject;
    uint32_t job;      /* JOB, WHY: which; JOBS, NODES, PEERS: from this number on */
    uint32_t most;     /* rows */
    bool whole;        /* NODES: with all that they are like, not only what tells them apart */
    struct bytes need; /* NODES: only those that meet it; empty: all */
};

enum answer {
    ANSWER_DONE,
    ANSWER_REFUSED, /* it makes no sense or can never be; text says why */
    ANSWER_FULL,    /* not now */
    ANSWER_UNKNOWN, /* no such job or node */
    ANSWERS
};

struct message_answer {
    uint64_t request[2];
    uint8_t code;
    uint32_t job;   /* the first */
    uint32_t count; /* of jobs */
    struct bytes text;
};

enum job_state {
    STATE_QUEUED,
    STATE_STARTING,
    STATE_RUNNING,
    STATE_SUSPENDED,
    STATE_ENDING,
    STATE_DONE,
    STATE_FAILED,
    STATE_KILLED,
    STATE_TIMEOUT,
    STATE_LOST,
    STATES
};

static inline bool state_over(enum job_state s) {
    return s >= STATE_DONE;
}

const char *state_name(enum job_state s); /* as people and JSON see it */

struct message_news {
    uint32_t job;
    uint64_t run; /* 0: none yet */
    uint8_t state;
    bool settled;    /* the last that will be said of it */
    uint32_t status; /* over: as the command exits */
    uint8_t cause;   /* over and not 0: of the worst process, where and why */
    uint8_t step;
    uint32_t node; /* NO_NODE: none to blame */
    uint32_t rank;
    uint32_t value;
    uint32_t bad;
    uint32_t procs;
    uint8_t map;             /* enum map_kind */
    struct bytes sections;   /* as sched/map.h has them, of its nodes; empty: none */
    uint32_t loose;          /* a node that does not limit memory as was asked for; NO_NODE: none */
    uint64_t output;         /* over: bytes written by all processes */
    bool held;               /* and somebody is still to take them from the nodes */
    uint64_t since_ns;       /* its submission: when this happened */
    struct usage usage;      /* over: of all its processes */
    struct nodeset *nodes;   /* it runs or ran on; none: that is not known any more */
    struct nodeset *waiting; /* ENDING: those of them that have not confirmed yet */
    struct bytes text;
    struct bytes
        unwritten; /* over: what its output could not be written to, and why; once, behind its end */
};

struct message_rows {
    uint64_t request[2];
    uint8_t subject;
    bool last;
    uint32_t total;     /* of all that there are */
    struct bytes wrong; /* what was asked makes no sense: why, in words; else empty */
    struct bytes rows;  /* wire/row.h */
};

/* How a bundle spreads; position 0 is the source, the others are the set's nodes in order. Whoever gives it is told
 * with its own offer as number, by itself. */
struct message_transfer {
    uint64_t transfer; /* its number, never given before */
    uint64_t offer;    /* how the source knows what it is to give */
    uint32_t source;   /* a node, or NO_NODE: at `address` */
    uint8_t shape;     /* rm/spread.h */
    uint32_t arity;
    uint32_t slots;          /* pieces that a receiver takes ahead, in each tree */
    struct nodeset *set;     /* who receives */
    struct bytes address;    /* of a source that is no node */
    struct bytes fabric;     /* that pieces go by, "ofi:tcp"; empty: streams */
    uint64_t run;            /* whose folder it is for; 0: it is for none */
    uint32_t source_switch;  /* 0: not known */
    struct bytes switches;   /* of the receivers: rm/switches.h; none: the plan knows of none */
    struct bytes descriptor; /* wire/bundle.h */
};

struct message_clear {
    struct bytes runs; /* 8 bytes each */
};

struct message_enough {
    bool keep;              /* what came of them may serve another try */
    struct bytes transfers; /* 8 bytes each */
};

struct message_arrived {
    uint64_t transfer;
    int32_t error; /* 0, or -errno: it will not be here */
    struct bytes text;
};

struct message_join {
    uint64_t transfer;
    uint64_t offer;
    uint8_t tree;    /* 1: the second of a pair */
    uint32_t page;   /* of the table: the first that is to be told */
    uint32_t first;  /* the first whose needs will be told */
    uint32_t buffer; /* for pieces, `slots` of them */
    uint32_t slots;
    uint32_t slot; /* where the first is to go, the next ones behind it, around */
    uint32_t room; /* so many may come */
};

struct message_page {
    uint32_t page;
    struct bytes table;
};

struct message_need {
    uint32_t page;
    struct bytes bits; /* for each piece of the page, the lowest bit first */
};

struct message_room {
    uint32_t room; /* pieces that may come in all, on this link */
};

struct message_part {
    int32_t error;
    struct bytes text;
};

/* Ports are 0 if it does not listen. */
struct message_come {
    uint16_t port;       /* of the node's manager */
    uint16_t files_port; /* of its mover */
    struct bytes host;   /* IP address to be found at; empty: where it comes from */
};

struct message_seek {
    uint32_t peer; /* a node, or a client as wire/identity.h has it */
};

struct message_letter {
    uint32_t peer;       /* that was sought; NO_NODE: none, it is about the guest itself */
    bool known;          /* otherwise it is not here */
    struct bytes at;     /* its address, as text; empty: the guest knows it */
    struct bytes files;  /* its mover's */
    struct bytes letter; /* os/keyring.h; empty: links are open */
};

enum { SLOTS_MAX = 64 };

struct message_offer {
    uint64_t request[2];  /* drawn by the client */
    uint32_t piece_bytes; /* about; 0: the usual */
    bool pattern;         /* the last part of the path may hold * ? [] */
    bool program; /* one that a process asks for: as that sees it, though nodes share a machine */
    struct nodeset *set; /* who; of no meaning to a mover */
    struct bytes path;   /* absolute, as the node sees it */
};

struct message_offered {
    uint64_t request[2];
    uint32_t node;
    uint64_t offer;
    int32_t error; /* 0, or -errno */
    struct bytes text;
    struct bytes descriptor; /* without a goal */
};

struct message_copy {
    uint64_t request[2];
    uint32_t source; /* a node that has offered it, or NO_NODE: the client, at `address` */
    uint64_t offer;
    uint8_t shape; /* SPREAD_AUTO: as is best */
    uint32_t arity;
    uint32_t slots;
    struct nodeset *set;
    struct bytes address; /* where the client gives it out */
    struct bytes fabric;  /* as in TRANSFER */
    struct bytes descriptor;
};

struct message_copied {
    uint64_t request[2];
    uint8_t shape; /* as it was chosen */
    uint32_t arity;
    bool over;               /* nothing more will be said */
    struct nodeset *set;     /* over: where it is */
    struct nodeset *without; /* over: where it is not */
    uint32_t node;           /* the first of those, NO_NODE: none */
    int32_t error;           /* why */
    struct bytes text;
    uint32_t switches; /* that the plan keeps apart; 0: none are known */
    uint32_t crossed;  /* its links between them */
};

/* Of the name of a fabric. */
enum { FABRIC_NAME_MAX = 64 };

struct message_window {
    uint32_t buffer;      /* of the JOIN that follows */
    uint32_t note;        /* the lowest byte counts puts, the rest is to come back with each */
    struct bytes fabric;  /* its name */
    struct bytes address; /* there */
    struct bytes grant;   /* os/fabric.h */
};

/* As a PUT, without the bytes. */
struct message_placed {
    uint32_t buffer;
    uint64_t offset;
    uint32_t len;
    uint64_t note;
};

struct message_count {
    uint64_t offer;
};

struct message_counted {
    uint64_t offer;
    uint64_t put_fabric, put_stream;   /* bytes of pieces that this mover has given */
    uint64_t came_fabric, came_stream; /* and got */
    struct bytes text;                 /* why it used streams though a fabric was asked for */
};

/* Decoded or to be encoded; set pointers are given by the caller before decoding. */
union message {
    struct message_epoch epoch;
    struct message_attached attached;
    struct message_fenced fenced;
    struct message_view view;
    struct message_prepare prepare;
    struct message_decide decide;
    struct message_arm arm;
    struct message_result result;
    struct message_strobe strobe;
    struct message_tick tick;
    struct message_donate donate;
    struct message_attach attach;
    struct message_lost lost;
    struct message_ack ack;
    struct message_request request;
    struct message_received received;
    struct message_tock tock;
    struct message_donation donation;
    struct message_want want;
    struct message_put put;
    struct message_query query;
    struct message_records records;
    struct message_hello hello;
    struct message_mail mail; /* and PARCEL */
    struct message_launch launch;
    struct message_command command;
    struct message_forget forget;
    struct message_have have;
    struct message_ends ends;
    struct message_output output;
    struct message_taken taken;
    struct message_typed typed;
    struct message_drained drained;
    struct message_setup setup;
    struct message_ended ended;
    struct message_hold hold;
    struct message_measured measured;
    struct message_submit submit;
    struct message_act act;
    struct message_ask ask;
    struct message_answer answer;
    struct message_news news;
    struct message_rows rows;
    struct message_transfer transfer;
    struct message_enough enough;
    struct message_arrived arrived;
    struct message_join join;
    struct message_page page;
    struct message_need need;
    struct message_room room;
    struct message_part part;
    struct message_copy copy;
    struct message_copied copied;
    struct message_offer offer;
    struct message_offered offered;
    struct message_window window;
    struct message_placed placed;
    struct message_count count;
    struct message_counted counted;
    struct message_clear clear;
    struct message_turn turn;
    struct message_slots slots;
    struct message_turned turned;
    struct message_come come;
    struct message_seek seek;
    struct message_letter letter;
    struct message_reserve reserve;
    struct message_pids pids;
    struct message_petition petition;
    struct message_reach reach;
    struct message_reply reply;
    struct message_owner owner;
};

struct message_rule {
    const char *name;
    uint32_t from; /* bit mask of enum role: what the sender is to the receiver */
    uint8_t lane;
    bool secret;
    uint32_t max_bytes;
    void (*walk)(struct codec *c, union message *m);
};

/* The row of a type, NULL if there is none. */
const struct message_rule *message_rule(uint16_t type);

/* Whether any message between the ends of such a link goes by this lane. */
bool message_lane_used(enum purpose purpose, enum lane lane);

/* Length written, or -ENOBUFS. The operation's body may be left out to be sent as the tail. */
long message_encode(uint16_t type, const union message *m, struct room out);

/* 0, or -EBADMSG. `sets` are two sets, initialised, that node sets of the message are decoded into:
 * the first into sets[0], the second into sets[1]. */
int message_decode(uint16_t type, struct bytes in, struct nodeset *sets, union message *ret);

/* An ordered operation as a node remembers it, for the root of a new epoch. */
enum record_state { RECORD_PREPARED, RECORD_COMMITTED, RECORD_ABORTED, RECORD_STATES };

struct record {
    uint64_t order;
    struct op_id id;
    uint8_t state;
    uint32_t epoch; /* of the view of who reports it; not sent */
};

enum { RECORD_BYTES = 29, RESOLUTION_BYTES = 9 };

void record_store(uint8_t out[RECORD_BYTES], const struct record *r);
bool record_load(struct record *ret, struct bytes records, uint32_t index);

struct resolution {
    uint64_t order;
    bool commit;
};

void resolution_store(uint8_t out[RESOLUTION_BYTES], const struct resolution *r);
bool resolution_load(struct resolution *ret, struct bytes resolutions, uint32_t index);
