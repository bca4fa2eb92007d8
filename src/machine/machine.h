/* SPDX-License-Identifier: MIT */
/* The contract between logic and world.
 *
 * A machine is a deterministic function: one input in, own state changed, effects appended. It
 * calls nobody, reads no clock, allocates nothing. Two worlds carry the effects out: the simulator
 * and the real one; neither the machine nor its tests can tell them apart.
 *
 * Who owns which bytes:
 *  - What an input points to (message body, node set, vars) is borrowed for that step.
 *  - What an effect points to is either in that same input or in the effects' own byte store, never
 *    in the machine's state; so a machine may change its state at once, and the world may carry the
 *    effects out any time before it feeds the next input.
 *  - Bulk bytes never pass through a machine. They live in buffers of the world, named by number; a
 *    put moves them from a local buffer into a peer's (shaped like RMA; stream links emulate
 *    it), if the peer has granted that buffer to the link.
 *  - The symmetric heap belongs to the world too; machines write it by effects.
 *
 * What the world promises:
 *  - A link delivers frames in order and once per lane until it goes down; then an unknown
 *    suffix is lost and both ends hear LINK_DOWN, though perhaps at very different times; who
 *    closed it hears nothing more of it. No link number is used again before its LINK_DOWN was delivered.
 *  - A frame reaches a machine only through the gate (wire/gate.h): known type, right lane and
 *    sender, size within limits, body fully decodable is up to the machine's decoder.
 *  - A timer fires once, not before its time, and never after it was cancelled or moved.
 *  - DURABLE follows PERSIST only when the value survives any crash. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/usage.h"
#include "machine/primitive.h"

enum lane { LANE_CONTROL, LANE_BULK, LANES };

/* What a link is for; who opens it follows from that. */
enum purpose {
    PURPOSE_TREE,     /* opened by the child to its parent in the order tree */
    PURPOSE_SLOT,     /* opened by a receiver to its source in the tree of one bulk transfer */
    PURPOSE_LAUNCHER, /* opened by a node's manager to its launcher */
    PURPOSE_CLIENT,   /* opened by a user's command to the machine manager */
    PURPOSE_MOVER,    /* opened by a node's manager to its file mover */
    PURPOSE_FILES,    /* opened by a mover that receives a bundle to one that has it */
    PURPOSE_LODGE, /* opened by the world of a node, a mover or a command to the manager's: who is where */
    PURPOSES
};

/* What the peer on a link is to us; the message table says what each may send. */
enum role {
    ROLE_PARENT,
    ROLE_CHILD,
    ROLE_SOURCE,
    ROLE_SINK,
    ROLE_STRANGER, /* has not said yet who it is; machines never meet one */
    ROLE_LAUNCHER, /* of this node */
    ROLE_KEEPER,   /* the manager of this node, as its launcher sees it */
    ROLE_CLIENT,
    ROLE_MANAGER, /* of the machine, as a client sees it */
    ROLE_ROOT,    /* no link: what the root says to nodes by mail or by XFER-AND-SIGNAL */
    ROLE_NODE,    /* no link: what a node says to those above it by mail */
    ROLE_MOVER,   /* of this node */
    ROLE_HOST,    /* the manager of this node, as its mover sees it */
    ROLE_GIVER,   /* a mover that has what we receive */
    ROLE_TAKER,
    ROLE_LODGE, /* tells where others are, and by which key they are met */
    ROLE_GUEST,
    ROLES
};

/* What the peer on a link is to the end that opened it, and to the one that was asked. */
static inline enum role purpose_role(enum purpose purpose, bool opener) {
    switch (purpose) {
    case PURPOSE_TREE:
        return opener ? ROLE_PARENT : ROLE_CHILD;
    case PURPOSE_SLOT:
        return opener ? ROLE_SOURCE : ROLE_SINK;
    case PURPOSE_LAUNCHER:
        return opener ? ROLE_LAUNCHER : ROLE_KEEPER;
    case PURPOSE_CLIENT:
        return opener ? ROLE_MANAGER : ROLE_CLIENT;
    case PURPOSE_MOVER:
        return opener ? ROLE_MOVER : ROLE_HOST;
    case PURPOSE_FILES:
        return opener ? ROLE_GIVER : ROLE_TAKER;
    case PURPOSE_LODGE:
        return opener ? ROLE_LODGE : ROLE_GUEST;
    case PURPOSES:
        break;
    }
    return ROLE_STRANGER;
}

enum input_kind {
    INPUT_BOOT,       /* first input of a life */
    INPUT_MESSAGE,    /* a frame arrived */
    INPUT_LINK_UP,    /* a link is usable: ours (cookie as asked) or a peer's (cookie 0) */
    INPUT_LINK_DOWN,  /* it is gone, or could not be opened (link 0, cookie as asked) */
    INPUT_TIMER,      /* a timer of ours is due */
    INPUT_DURABLE,    /* what we persisted will survive */
    INPUT_PUT,        /* a peer's put has arrived in a buffer of ours */
    INPUT_REQUEST,    /* from above: a primitive request */
    INPUT_COMPLETION, /* from below: a request is finished (or its outcome unknown for now) */
    INPUT_SIGNAL,     /* from below: an ordered operation has signalled an event here */
    INPUT_PREPARED,   /* from below: an operation is here but undecided (hint) */
    INPUT_STROBE,     /* from below: the newest strobe of a channel */
    INPUT_JOINED,     /* from below: this node is a member now, variables hold the snapshot */
    INPUT_FENCED,     /* from below: this node was given up by the others; it starts anew */
    INPUT_NODES,      /* from below, at the root: nodes that came up or went down for good */
    INPUT_WAVE,       /* from below, at the root: a heartbeat wave has come back */
    INPUT_GATHERED,   /* from below, at the root: a gather is over */
    INPUT_TREE,       /* from below: who is below this node, or its way to the root, has changed */
    INPUT_REPLAY,     /* after boot: an event that was logged in a former life; the last is empty */
    INPUT_LOGGED,     /* what we logged will survive */
    INPUT_FETCHED,    /* what was logged under a key */
    INPUT_CHILD,      /* a process of a group has started, could not be started, or has ended */
    INPUT_EMPTY,      /* no process of a group is left */
    INPUT_STREAM,     /* a process has written, or closed a stream */
    INPUT_DRAINED,    /* a process's standard input has taken so much */
    INPUT_SENT,       /* the bytes of a put have left: its part of the buffer may be used again */
    INPUT_BUNDLE,     /* a bundle is open, or committed, or could not be */
    INPUT_PAGE,       /* a page of its table: what of it is here */
    INPUT_PIECE,      /* a piece was stored or loaded, or could not be */
    INPUT_LOOKED,     /* whether a run could begin here */
    INPUT_ROSTER,     /* at the root: which numbers are taken by nodes, and their names */
    INPUT_TRAITS,     /* at the root: what the administrator says of nodes */
    INPUT_MEASURED,   /* what a group has used until now */
    INPUT_GAUGED,     /* how much the node has to do, how much memory there is */
    INPUT_PETITION,   /* a program of a group wants to talk, has said something, or is gone */
    INPUT_KINDS
};

struct input_boot {
    uint32_t node;
    uint32_t boots; /* how often this node has started, kept durable by the world */
    uint64_t kept;  /* the highest value this node has persisted, 0 if none */
    bool root;      /* this node is to act as root, of this epoch, never given before */
    uint32_t epoch;
    uint64_t random_seed; /* for jitter */
    uint64_t wall_ns;     /* the calendar's time when `now` was 0, for what people read */
    struct bytes stowed;  /* by the last life, with EFFECT_STOW; empty: nothing, or lost */
    struct bytes folders; /* of runs, that are here: their numbers, 8 bytes each */
};

struct input_message {
    uint32_t link;
    uint32_t peer;
    uint32_t epoch; /* the sender's, from the header */
    uint16_t type;  /* enum message_type */
    struct bytes body;
};

struct input_link {
    uint32_t link;
    uint32_t peer;
    uint64_t cookie;
    enum role role; /* of the peer */
    uint32_t life;  /* of the peer: another if it was started again */
};

struct input_put {
    uint32_t link;
    uint32_t buffer;
    uint64_t offset;
    uint32_t len;
    uint64_t note; /* the sender's remote completion data */
};

/* The bytes are in the heap when the step in which this is heard is over, not before: whoever wants to
 * read them sets a timer for now. */
struct input_signal {
    uint32_t event;
    uint64_t order;
    uint32_t heap_offset;
    uint64_t len;
    struct bytes body; /* the same bytes, of a small transfer; empty for a bulk one */
};

struct input_prepared {
    uint64_t order;
    uint32_t heap_offset;
    struct bytes body;
    bool ask; /* it is not decided before our VOTE */
};

struct input_strobe {
    uint32_t channel;
    uint64_t number;
    struct bytes body;
    bool far; /* it may have come from a machine with another clock */
};

struct input_joined {
    uint32_t epoch;
    uint64_t incarnation;
    uint64_t order; /* operations after this one count for us */
};

struct input_nodes {
    const struct nodeset *nodes;
    bool up;
    uint64_t order;
};

struct input_wave {
    uint64_t tick;
    uint32_t nodes;      /* that answered */
    bool complete;       /* all attached ones did */
    uint64_t started_ns; /* when the root sent the tick */
};

/* Who is neither missing nor among the records has answered that it has none. */
struct input_gathered {
    uint64_t tag;
    uint32_t channel;
    struct bytes records; /* struct reply each, ascending by node */
    const struct nodeset *missing;
};

struct input_tree {
    const struct nodeset *below; /* those whose way to the root leads through this node */
    bool attached;               /* this node has a way itself */
    uint32_t
        epoch; /* of the root that has taken it in: whatever was under way under the one before is
                     * decided or dropped, and that was told; 0: none has, yet */
};

/* An event of the log: who it is about (a job, a node), what happened. */
struct input_replay {
    uint64_t key;
    bool over; /* the key is, and long ago: only its first event is told, as it is the highest */
    struct bytes body; /* empty: that was the last */
};

struct input_logged {
    uint64_t ticket; /* this and all lower ones */
    int32_t error;   /* 0, or -errno: nothing of this ticket was kept */
};

struct input_fetched {
    uint64_t ticket;
    struct bytes body; /* of the key's first event; empty if there is none */
};

/* Where starting a process can fail. */
enum spawn_step {
    SPAWN_PROGRAM,
    SPAWN_FOLDER,
    SPAWN_LIMITS,
    SPAWN_STDIO,
    SPAWN_FORK,
    SPAWN_IMAGE,  /* what was sent to the node is not there, or not as it was */
    SPAWN_COPY,   /* it could not be sent */
    SPAWN_HIDDEN, /* another file, or none, has its name there */
    SPAWN_STEPS
};

struct input_looked {
    uint64_t ticket;
    int32_t error;        /* 0, or -errno: it could not */
    enum spawn_step step; /* because of what */
    uint32_t rank;        /* and of whom */
};

/* From now on these numbers are taken, the others vacant. Names as roster_fill (base/roster.h) has them. */
struct input_roster {
    const struct nodeset *taken;
    struct bytes names; /* empty: as usual */
};

/* In place of what was said before. */
struct input_traits {
    struct bytes traits; /* as traits_take (sched/traits.h) reads it; empty: nothing is said */
    /* Of each node 4 bytes, 0: nothing is said; empty: of none. */
    struct bytes widths; /* processors */
    struct bytes switches;
    struct bytes owners;      /* one more than the place of what tells of its owner, in: */
    struct bytes owner_texts; /* wire/owner.h, each with a NUL behind it */
};

/* Of the machine that the node is on: several nodes may share one. */
struct input_gauged {
    uint32_t load_x100; /* processes that run or want to, as a mean over the last minute */
    uint64_t memory_bytes, memory_used;
    /* If GAUGE has said what tells of an owner: */
    bool owner; /* he is active, as far as files tell */
    uint64_t
        busy_ns; /* of processors, used by anybody since the machine was started; 0: nobody has asked */
};

/* Also of a group that has ended. */
struct input_measured {
    uint32_t group;
    struct usage usage; /* no node is named */
};

enum child_event {
    CHILD_STARTED,
    CHILD_FAILED,
    CHILD_EXITED,
    CHILD_KILLED,
    CHILD_EXCEEDED, /* it, or what it has started, was killed for using more memory than it may */
    CHILD_EVENTS
};

/* Limits on memory are told in so many bytes: none of the kernel's pages is smaller. */
enum { MEMORY_UNIT = 4096 };

struct input_child {
    uint32_t group;
    uint32_t index; /* of the process in its group */
    enum child_event event;
    uint32_t value;       /* STARTED: pid; FAILED: errno; EXITED: status; KILLED: signal;
                             EXCEEDED: the limit, in MEMORY_UNITs */
    enum spawn_step step; /* FAILED */
    bool loose;           /* STARTED: its memory is not limited as was asked for */
};

struct input_stream {
    uint32_t group;
    uint32_t index;
    uint8_t stream; /* 1: output, 2: error */
    bool end;       /* nothing comes after these bytes */
    uint64_t offset;
    struct bytes bytes;
};

struct input_drained {
    uint32_t group;
    uint32_t index;
    uint64_t offset; /* so many bytes of its input are in the pipe; UINT64_MAX: it reads no more */
};

enum petition_event {
    PETITION_OPENED, /* it is there; nothing is read from it before PETITION_READ */
    PETITION_SAID,   /* one frame, as was asked for */
    PETITION_STUCK,  /* it does not take what is sent to it: that is lost, and so is what follows */
    PETITION_FREE,   /* it takes something again */
    PETITION_CLOSED, /* it is gone; its place may be another's */
    PETITION_EVENTS
};

/* The most bytes of a frame from or to a program. */
enum { PETITION_BYTES_MAX = 72 * 1024 };

struct input_petition {
    uint32_t place; /* chosen by the world, below the machine's limit */
    enum petition_event event;
    uint32_t group;    /* OPENED */
    uint32_t rank;     /* OPENED: that it says to have */
    uint16_t type;     /* SAID: of the message; MESSAGE_NONE: it begins anew */
    struct bytes body; /* SAID */
};

struct input_sent {
    uint32_t link;
    uint32_t buffer;
    uint64_t offset;
    uint64_t note; /* as in the put */
};

struct input_bundle {
    uint32_t bundle;
    bool committed;    /* or: opened */
    int32_t error;     /* 0, or -errno */
    struct bytes text; /* the reason */
};

struct input_page {
    uint32_t bundle;
    uint32_t page;
    int32_t error; /* 0; -EBADMSG: it does not fit the descriptor; other -errno: of this node */
    struct bytes table; /* its rows: wire/bundle.h */
    struct bytes have;  /* a bit for each row, the lowest first: this piece is here */
    uint32_t pieces;    /* of an open bundle, if this page is the last: all there are; else 0 */
    struct bytes text;
};

struct input_piece {
    uint32_t bundle;
    uint32_t piece;
    bool loaded;   /* or: stored */
    int32_t error; /* 0; -EBADMSG: what came does not fit its digest; other -errno: of this node */
    uint32_t buffer; /* as asked; loaded: where it lies */
    uint64_t offset;
    uint32_t len;
    struct bytes text;
};

struct input {
    enum input_kind kind;
    uint64_t now; /* monotonic nanoseconds */
    union {
        struct input_boot boot;
        struct input_message message;
        struct input_link link;
        struct {
            uint32_t id;
        } timer;
        struct {
            uint64_t ticket;
        } durable;
        struct input_put put;
        struct primitive request;
        struct completion completion;
        struct input_signal signal;
        struct input_prepared prepared;
        struct input_strobe strobe;
        struct input_joined joined;
        struct input_nodes nodes;
        struct input_wave wave;
        struct input_gathered gathered;
        struct input_tree tree;
        struct input_replay replay;
        struct input_logged logged;
        struct input_fetched fetched;
        struct input_looked looked;
        struct input_roster roster;
        struct input_traits traits;
        struct input_child child;
        struct input_measured empty;
        struct input_measured measured;
        struct input_gauged gauged;
        struct input_stream stream;
        struct input_drained drained;
        struct input_petition petition;
        struct input_sent sent;
        struct input_bundle bundle;
        struct input_page page;
        struct input_piece piece;
    };
};

enum effect_kind {
    EFFECT_NONE,         /* consumed by the stack */
    EFFECT_SEND,         /* one frame to one or many links */
    EFFECT_OPEN,         /* open a link to a node */
    EFFECT_CLOSE,        /* close a link: frames sent before still go out */
    EFFECT_TIMER,        /* set, move (or, at 0, cancel) a timer */
    EFFECT_PERSIST,      /* keep a small value for ever, then tell */
    EFFECT_HEAP_WRITE,   /* store bytes into the symmetric heap */
    EFFECT_HEAP_PUBLISH, /* store a buffer's bytes into the symmetric heap */
    EFFECT_HEAP_CLEAR,   /* zero the heap: a new incarnation begins */
    EFFECT_BUFFER_OPEN,  /* make a buffer of so many bytes */
    EFFECT_BUFFER_GRANT, /* from now on this link, and no other, may put into it */
    EFFECT_BUFFER_CLOSE, /* it is not needed any more */
    EFFECT_PUT,          /* bytes of a local buffer into a peer's buffer */
    EFFECT_REQUEST,      /* to the primitives below */
    EFFECT_RAISE,        /* to the daemon above */
    EFFECT_LOG,          /* append an event to the durable log, then tell */
    EFFECT_FETCH,        /* read the first event of a key */
    EFFECT_NOTE,         /* a line for the people who look after the machine */
    /* Processes, at a launcher. A group is all processes of a run on this node. */
    EFFECT_GROUP_OPEN,    /* make everything ready for them but start none */
    EFFECT_GROUP_START,   /* start them all; CHILD tells of each */
    EFFECT_GROUP_SIGNAL,  /* to every process of it, or to one of them */
    EFFECT_GROUP_FREEZE,  /* stop them all, or let them go on */
    EFFECT_GROUP_KILL,    /* end everything that descends from it; EMPTY follows */
    EFFECT_GROUP_CLOSE,   /* forget it, its streams too; nothing of it runs */
    EFFECT_GROUP_SIZE,    /* the window of its terminal has changed */
    EFFECT_GROUP_MEASURE, /* what has it used until now? MEASURED tells, unless it is empty */
    EFFECT_STREAM_TAKEN,  /* these bytes are not needed any more */
    EFFECT_STREAM_AGAIN,  /* tell STREAM again from here on */
    EFFECT_STREAM_FEED,   /* bytes for a process's standard input */
    EFFECT_STOW,          /* keep these bytes, in place of the last, for our next life */
    /* Files, at a mover. A bundle is what one transfer carries (wire/bundle.h); its bytes are the world's. */
    EFFECT_BUNDLE_OPEN,   /* make ready to take it in, or to give it out; BUNDLE tells */
    EFFECT_BUNDLE_COMMIT, /* all of it is here: make it visible; BUNDLE tells */
    EFFECT_BUNDLE_CLOSE,  /* no more of it */
    EFFECT_PAGE_KEEP,   /* a page of its table has come: judge it, find what is here; PAGE tells */
    EFFECT_PAGE_FETCH,  /* tell PAGE of one that is here */
    EFFECT_PIECE_STORE, /* a piece lies in this buffer: judge and keep it; PIECE tells */
    EFFECT_PIECE_LOAD,  /* put a piece that is here into this buffer; PIECE tells */
    EFFECT_LOOK,        /* could this run begin here? LOOKED tells, at once */
    EFFECT_PROMPT,      /* from now on we must be served at once; or need not */
    EFFECT_CAST,        /* a strobe, to all of a set at once; it may be lost */
    EFFECT_GAUGE,       /* how much has this node to do? GAUGED tells, at once */
    /* Programs that ask for something, at a launcher. */
    EFFECT_PETITION_READ,  /* take one frame from this one, when there is one; PETITION tells */
    EFFECT_PETITION_SEND,  /* a frame for it */
    EFFECT_PETITION_CLOSE, /* nothing more from or to it, and nothing is told of it any more */
    EFFECT_KINDS
};

/* What EFFECT_STOW takes at most. */
enum { STOW_BYTES_MAX = 32 * 1024 - 64 };

struct effect_send {
    const uint32_t *links;
    uint32_t link_count;
    uint32_t epoch;
    uint16_t type;
    struct bytes head; /* the frame's body is head, then tail; many links share these bytes */
    struct bytes tail;
};

struct effect_open {
    uint32_t node;
    enum purpose purpose;
    uint64_t cookie;      /* not 0 */
    struct bytes address; /* FILES, to a node that is in no book (NO_NODE): where it listens */
};

struct effect_heap {
    uint32_t offset;
    struct bytes bytes; /* WRITE */
    uint32_t buffer;    /* PUBLISH */
    uint64_t len;       /* PUBLISH */
};

struct effect_buffer {
    uint32_t buffer;
    uint64_t bytes;  /* OPEN */
    uint32_t bundle; /* the same: whose pieces it is for, of a mover's */
    uint32_t link;   /* GRANT */
};

struct effect_put {
    uint32_t link;
    uint32_t buffer; /* ours */
    uint64_t offset;
    uint32_t len;
    uint32_t peer_buffer;
    uint64_t peer_offset;
    uint64_t note;
};

/* Of the keys that are over the newest are replayed: somebody may still ask for them. */
enum { LOG_OVER_KEPT = 1024 };

/* One event of the log. A key is opened by its first event and over with the one that closes it. Of
 * keys that are over the LOG_OVER_KEPT that were closed last are replayed, and the highest. */
struct effect_log {
    uint64_t ticket; /* ascending */
    uint64_t key;
    bool opens; /* the first of its key */
    bool closes;
    struct bytes body; /* not empty */
};

struct effect_group {
    uint32_t group;     /* chosen by the machine, below limits.groups */
    struct bytes setup; /* OPEN: wire/setup.h */
    uint32_t value;     /* START: 1: as a gang, which has the processors to itself when it runs;
                         * SIGNAL: which; FREEZE: 1 stops, 0 goes on; SIZE: columns */
    uint32_t rows;      /* SIZE */
    uint32_t one; /* SIGNAL: 1 + the index of the only process that gets it, and nothing that it has
                         * begun; 0: all */
};

struct effect_stream {
    uint32_t group;
    uint32_t index;
    uint8_t stream;     /* TAKEN, AGAIN: 1 or 2 */
    uint64_t offset;    /* TAKEN: everything before; AGAIN: from here; FEED: of the bytes */
    struct bytes bytes; /* FEED */
    bool end;           /* FEED: nothing comes after them */
};

struct effect_petition {
    uint32_t place;
    uint16_t type;     /* SEND: as in struct input_petition */
    struct bytes body; /* SEND */
};

struct effect_bundle {
    uint32_t bundle;         /* chosen by the machine */
    bool gives;              /* OPEN: we are its source; it was told to the world beforehand */
    bool owners;             /* OPEN: its source is a command of the cluster's user, no node */
    uint64_t transfer;       /* OPEN: its number */
    struct bytes descriptor; /* OPEN: wire/bundle.h */
    bool keep;               /* CLOSE: if it was not committed, what came may serve another try */
};

struct effect_page {
    uint32_t bundle;
    uint32_t page;
    struct bytes table; /* KEEP */
};

struct effect_cast {
    const struct nodeset *set;
    uint32_t channel;
    uint64_t number;
    struct bytes body;
};

struct effect_piece {
    uint32_t bundle;
    uint32_t piece;
    uint32_t buffer;
    uint64_t offset;
    uint32_t len; /* STORE: its bytes; LOAD: the room */
};

struct effect {
    enum effect_kind kind;
    uint8_t layer; /* of a timer or ticket: which machine of the stack it belongs to */
    union {
        struct effect_send send;
        struct effect_open open;
        struct {
            uint32_t link;
            uint8_t refusal; /* enum refusal (wire/gate.h): why, or 0 for an ordinary end */
        } close;
        struct {
            uint32_t id;
            uint64_t at; /* 0 cancels */
        } timer;
        struct {
            uint64_t ticket;
            uint64_t value;
        } persist;
        struct bytes stow;
        struct bytes gauge; /* what tells of an owner: wire/owner.h; empty: there is none */
        bool prompt;
        struct {
            uint64_t ticket;
            uint64_t run;
            struct bytes setup; /* wire/setup.h */
        } look;
        struct effect_heap heap;
        struct effect_buffer buffer;
        struct effect_put put;
        struct primitive request;
        struct input raise;
        struct effect_log log;
        struct {
            uint64_t ticket;
            uint64_t key;
        } fetch;
        struct bytes note;
        struct effect_group group;
        struct effect_stream stream;
        struct effect_petition petition;
        struct effect_bundle bundle;
        struct effect_page page;
        struct effect_piece piece;
        struct effect_cast cast;
    };
};

/* Effects of one step, in order. One store serves all machines of a world, one after the other. */
struct effects {
    struct effect *list;
    uint32_t count;
    uint32_t cap;
    uint8_t *bytes;
    size_t bytes_used;
    size_t bytes_cap;
};

struct machine {
    void *self;
    void (*step)(void *self, const struct input *in, struct effects *out);
};

void effects_init(struct effects *e, struct effect *list, uint32_t cap, uint8_t *bytes,
                  size_t bytes_cap);
void effects_clear(struct effects *e);

/* Appends an effect; the caller fills it in. Running out of room is a bug: limits give the bound.
 */
struct effect *effects_add(struct effects *e, enum effect_kind kind);

/* Room in the byte store, to be filled by the caller; effects may point into it. 8-aligned. */
uint8_t *effects_room(struct effects *e, size_t len);
struct bytes effects_copy(struct effects *e, struct bytes from);
const struct nodeset *effects_copy_set(struct effects *e, const struct nodeset *from);

/* All the room that is left, then how much of it was used: for encoders. */
struct room effects_tail(struct effects *e);
struct bytes effects_take(struct effects *e, size_t len);

void effects_timer(struct effects *e, uint32_t id, uint64_t at);
void effects_send(struct effects *e, uint32_t link, uint32_t epoch, uint16_t type,
                  struct bytes head, struct bytes tail);
struct input *effects_raise(struct effects *e, enum input_kind kind, uint64_t now);

const char *input_name(enum input_kind kind);
