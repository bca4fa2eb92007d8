/* SPDX-License-Identifier: MIT */
/* What the parts of the primitives' machine share.
 *
 * The machine is one state with several concerns, a file each:
 *   uplink   finding a parent, attaching, moving, being fenced
 *   route    children, who is below them, casting down, passing up
 *   ack      combining acknowledgements
 *   member   the log of ordered operations on a node; variables and events
 *   request  what this node's own daemon has asked for
 *   wave     heartbeat
 *   slot     bulk transfers
 *   query    gathering small records
 *   mail     messages between daemons
 *   place    telling the daemon who is below it
 * and at the acting root
 *   order    the total order of operations
 *   view     who is a member
 *   collect  the first steps of a new epoch
 *
 * Invariant of the paths: a cast for node t passes a hop only along a path that the root has
 * confirmed after its last change, and what the root has in flight for t follows the confirmation.
 * So a node sees casts in order and without gaps, however often it or its ancestors change their
 * parents. */
#pragma once

#include "base/list.h"
#include "base/random.h"
#include "machine/machine.h"
#include "prim/prim.h"
#include "wire/gate.h"
#include "wire/message.h"

enum prim_timer {
    TIMER_WAVE,
    TIMER_UPLINK,
    TIMER_REQUEST,
    TIMER_ORDER,
    TIMER_VIEW,
    TIMER_SLOT,
    TIMER_QUERY,
    TIMER_STROBE
};

/* Deliberate bugs that the checkers must find; chosen when building, never in a release. */
enum planted {
    PLANTED_NONE,
    PLANTED_EARLY_APPLY,     /* apply before all have acknowledged */
    PLANTED_NO_ORDER,        /* skip the total order */
    PLANTED_NO_RESEND,       /* forget to send again after re-parenting */
    PLANTED_OLD_INCARNATION, /* accept an old incarnation's messages */
    PLANTED_LOSE_PREPARED,   /* lose a prepared operation at a change of root */
    PLANTED_NO_SNAPSHOT,     /* rejoin without the snapshot */
};
#ifndef STORM_PLANTED_BUG
#define STORM_PLANTED_BUG 0
#endif

static inline bool planted(enum planted bug) {
    return STORM_PLANTED_BUG == (int)bug;
}

/* Limits of silence, in wave periods. */
enum { SILENT_PERIODS = 3, STALLED_PERIODS = 6, LIMBO_PERIODS = 3, RESEND_PERIODS = 2 };
/* And how long a disk may take to keep an epoch. */
enum { PERSIST_PERIODS = 4 };

enum { CANDIDATES = 6, PATIENCE_MAX = 4, ATTEMPTS_MAX = 2 };

/* Most nodes that one step of a new root fences by name. */
enum { FENCES_AT_ONCE = 1000 };

enum uplink_state {
    UPLINK_NONE,      /* at the root, before boot, or while an epoch is being persisted */
    UPLINK_WAITING,   /* before the next try */
    UPLINK_OPENING,   /* a link is being opened */
    UPLINK_GREETING,  /* waiting for the parent's epoch */
    UPLINK_ATTACHING, /* waiting for the root's confirmation */
    UPLINK_ATTACHED,
};

struct uplink {
    enum uplink_state state;
    uint32_t link; /* 0 if none */
    uint32_t peer;
    uint64_t cookie;
    uint32_t candidate; /* index of the one being tried */
    uint32_t candidates[CANDIDATES + ROOTS_MAX];
    uint32_t candidate_count;
    uint64_t heard;    /* when the parent last said anything */
    uint64_t advanced; /* when the tick last went up */
    uint64_t attached_at;
    uint64_t retry_ns;
    uint32_t rounds;   /* through all candidates without success */
    uint32_t attempts; /* to attach on this link */
    uint64_t asked_at; /* the last of them */
    bool move;         /* a nearer ancestor is back */
    uint32_t moves;    /* that did not lead to the nearest */
    /* While we move we look first: the old link stays until the new parent has greeted us. */
    uint64_t scout_cookie; /* 0 if we are not looking */
    uint32_t scout_link;
    uint32_t scout_candidate;
};

struct child {
    uint32_t link;
    uint32_t node;
    bool attached; /* it has attached itself, in this epoch */
    bool tocked;
    uint32_t tock_nodes;
    uint64_t heard;
    struct nodeset below; /* itself and everyone reached through it */
};

struct route {
    struct child *children;
    uint32_t count;
    uint32_t cap;
    uint32_t *index; /* open addressing: place in children + 1, by link */
    uint32_t index_mask;
    uint64_t *attempts;     /* by node: the newest ATTACH that has passed */
    uint64_t *sets;         /* storage of the children's sets */
    struct nodeset reach;   /* everyone below */
    struct nodeset waiting; /* of these, whose path is not confirmed yet */
    bool changed;           /* one of the two, since the daemon was last told */
};

/* Acknowledgements of one cast, combined until all that was cast to has answered. */
struct ack {
    bool open;
    bool answered; /* a "no" has gone up; the rest is swallowed */
    bool no;
    uint8_t what;
    uint64_t number;
    struct nodeset want;
    struct nodeset have;
};

/* An ordered operation on a node of its set. */
struct entry {
    uint64_t order;
    struct op_id id;
    struct operation operation; /* its body is in the pool */
    uint32_t body_slot;
    bool asked; /* the daemon has not voted yet */
    bool refused;
    bool voted;
    bool no;
    bool decided;
    bool commit;
    bool finished;
};

struct armed {
    bool used;
    uint64_t number;
    uint32_t variable;
    uint8_t relation;
    uint64_t value;
};

struct member {
    bool joined;
    uint32_t epoch; /* of the view */
    uint64_t view;
    uint64_t top; /* highest order accepted */
    uint64_t stable;
    struct nodeset members;
    struct entry *log; /* ascending, the first `count` */
    uint32_t count;
    uint8_t *bodies;      /* window x body_bytes */
    uint64_t bodies_used; /* bit i: slot i */
    uint64_t *variables;
    uint64_t *events;
    uint64_t *strobes; /* newest number by channel */
    struct armed *armed;
};

enum ask_state {
    ASK_FREE,
    ASK_WAITING,   /* for the root's answer */
    ASK_STREAMING, /* a bulk transfer between announce and publish */
};

/* A request of this node's daemon. A bulk transfer is a series of operations under one tag. */
struct ask {
    enum ask_state state;
    uint64_t number;
    uint32_t epoch; /* in which it was first sent; 0 if it was not yet */
    bool unknown_told;
    struct op_id transfer;
    uint64_t tag;
    uint64_t deadline;
    uint64_t timeout_ns;
    uint32_t local_event;
    uint32_t buffer;
    struct operation operation;
    struct nodeset set;
    uint8_t *body;
};

struct requests {
    struct ask *asks;
    uint32_t end;        /* all that are not free lie before this */
    uint64_t generation; /* numbers are generation x outstanding + slot: they ascend in each slot */
    uint64_t resend_at;
};

struct wave {
    uint64_t tick;
    uint64_t tick_at; /* when it was passed on */
    bool tock_sent;
    uint32_t missing; /* children that have not answered */
    uint32_t behind;  /* ticks in a row that knew of a newer view than we */
};

enum { SINKS_MAX = 8, PARKED_MAX = 16 };

/* A sink that asked before we knew of the transfer: it is served when we do. */
struct parked {
    uint32_t link; /* 0 if free */
    struct message_want want;
};

/* One receiver below us in the tree of a transfer. */
struct sink {
    uint32_t node;
    uint32_t link;
    uint32_t next;  /* chunk to send next */
    uint32_t limit; /* chunks granted */
    uint32_t buffer;
    bool done;
};

/* One bulk transfer on a node that takes part in it. */
struct transfer {
    bool used;
    bool source;
    bool pinned; /* we have voted to publish it: kept until that is decided */
    bool told;   /* we and all our sinks have everything, and who must know has been told */
    struct op_id id;
    uint32_t buffer;
    uint64_t len;
    uint32_t chunks;
    uint32_t have; /* chunks here, always a prefix */
    uint64_t deadline;
    uint32_t parent;
    uint32_t link;
    uint64_t cookie;
    uint32_t sink_count; /* in the plan */
    uint32_t sinks_here;
    struct sink sinks[SINKS_MAX];
    struct nodeset set;
};

/* Replies to one query, combined until all that were asked below have replied, or there is no room
 * for more. */
struct relay {
    bool open;
    uint64_t number;
    struct nodeset want; /* who has not been passed on */
    struct nodeset have; /* who will be next */
    uint8_t *replies;
    size_t used;
};

/* A gather that the root's daemon has asked for. */
struct query {
    bool used;
    bool hurried; /* half of its time is over, and it was sent again for that */
    uint64_t number;
    uint64_t tag;
    uint32_t channel;
    uint64_t asked_at;
    uint64_t deadline;
    struct nodeset pending; /* who has not answered */
    struct nodeset lost;    /* and will not: no members, or dropped meanwhile */
    struct nodeset have;    /* whose record is here */
    uint8_t *records;       /* record_bytes for each node */
    uint16_t *lengths;      /* by node */
};

struct queries {
    uint8_t *own; /* this node's records, by channel */
    uint16_t *own_lengths;
    struct relay *relays;
    size_t room;           /* for the replies of one message */
    struct query *queries; /* NULL unless this is a seat */
    uint64_t next;
};

/* What the daemon was last told of the tree. */
struct place {
    bool attached;
    uint32_t epoch;
    uint32_t settled; /* the epoch that was told, 0 if none */
    struct nodeset below;
};

/* ---- the acting root ---- */

enum op_state {
    OP_FREE,
    OP_QUEUED,    /* waiting for its place in the order */
    OP_ARMED,     /* standing compare: waiting to become true */
    OP_PREPARING, /* waiting for votes */
    OP_DECIDED,   /* waiting until it is applied or dropped everywhere */
    OP_DONE,      /* waiting for the initiator to have the result */
};

struct op {
    enum op_state state;
    struct list at; /* queue, flight or standing */
    uint64_t order;
    uint64_t arm_number;
    struct op_id id;
    struct operation operation;
    uint8_t *body;
    uint64_t admitted;
    uint64_t deadline;
    struct nodeset set;
    struct nodeset pending;
    bool standing;
    bool commit;
    bool answered;
    bool received;
    uint8_t outcome;
    uint32_t culprit;
    uint64_t since;       /* when it was decided or answered, or last sent again */
    bool nudged;          /* sent again without effect */
    bool hurried;         /* half of its time is over, and it was sent again for that */
    uint64_t view_needed; /* finished only when this view is known everywhere */
};

enum { STROBE_KEPT_BYTES = 4096 };

/* See strobe.c. */
struct strobes {
    uint64_t count; /* that were sent in this epoch */
    uint64_t copied_at;
    uint32_t channel;
    uint32_t kept_len;               /* 0: none */
    uint8_t kept[STROBE_KEPT_BYTES]; /* the newest: the tree has not carried it yet */
};

struct order {
    struct op *ops;
    uint32_t op_count;
    struct list free;
    struct list queue;
    struct list flight; /* by order: preparing, decided, done */
    struct list standing;
    struct list closed; /* ended without a place in the order */
    uint32_t armed_count;
    uint64_t next;
    uint64_t next_arm;
    uint64_t timer_at;
    struct strobes strobes;
};

/* What the root knows of each node. */
struct peer {
    uint64_t incarnation;
    bool given_up;    /* this incarnation was dropped: it cannot come back */
    uint64_t lost_at; /* when its path broke */
};

enum root_stage {
    STAGE_COLLECTING, /* survivors of the former epoch report */
    STAGE_OPENING,    /* the first view is on its way to them */
    STAGE_DONATING,   /* one of them sends its variables */
    STAGE_OPEN,
};

struct view {
    enum root_stage stage;
    struct peer *peers;
    uint64_t *last;  /* by node and slot: the last request number admitted or refused */
    uint32_t *blame; /* and whom a refusal named */
    uint64_t acked;  /* view known by all members */
    struct nodeset pending;
    uint64_t since; /* when the view was cast, or last cast again */
    bool nudged;
    struct nodeset suspects; /* refused at once */
    struct nodeset limbo;    /* members without a path to us, the suspects among them */
    struct nodeset joiners;  /* attached, not yet in a view */
    struct nodeset joined;   /* in the current view, not known everywhere */
    struct nodeset fallen;   /* dropped, not yet reported to the daemon */
    struct nodeset dropping; /* scratch of view_drop */
    uint64_t *snapshot;
    uint64_t snapshot_order;
    uint64_t settle_at, lost_at, collect_at, donate_at; /* the next of each, 0 if none */
    uint64_t back_at; /* when we last went on after we had not run for a while */
    uint32_t donor;
    /* collecting */
    struct nodeset reported;
    struct nodeset best_members;
    uint32_t best_epoch;
    uint64_t best_view;
    uint64_t top;
    struct record *records; /* window, by order modulo */
    uint8_t *resolutions;
    uint32_t resolution_count;
};

struct prim {
    struct prim_config config;
    uint32_t universe;
    uint32_t self;
    bool seat;
    bool root; /* acting */
    uint32_t root_node;
    uint32_t boots;
    uint32_t rejoins;
    uint64_t incarnation; /* boots and rejoins in one number */
    uint32_t epoch;
    uint32_t epoch_wanted; /* being persisted */
    uint64_t kept;         /* of a former life: epoch above view, as prim_persist keeps them */
    struct random random;
    uint64_t cookie;
    uint64_t refused[16];

    struct uplink uplink;
    struct route route;
    struct ack *acks;
    uint64_t *ack_sets;
    uint32_t ack_count;
    uint32_t ack_end; /* all that are open lie before this */
    struct member member;
    struct requests requests;
    struct wave wave;
    struct queries queries;
    struct place place;
    struct transfer *transfers;
    struct parked parked[PARKED_MAX];
    uint32_t next_parked;
    uint32_t next_buffer;

    struct order *order; /* NULL unless this is a seat */
    struct view *view;

    struct nodeset own; /* {self} */

    /* The rest is of this step only. */
    struct nodeset in[2]; /* sets of the message being handled */
    struct nodeset aim;   /* scratch of route_cast */
    struct nodeset gone;  /* scratch of route.c: nodes that have left */
    struct nodeset part;  /* scratch of one function at a time, never across calls */
    struct nodeset part2;

    uint64_t now;
    struct effects *out;
};

/* prim.c */
struct bytes prim_encode(struct prim *p, uint16_t type, const union message *m);
void prim_send(struct prim *p, uint32_t link, uint16_t type, const union message *m);
void prim_close(struct prim *p, uint32_t link, enum refusal why);
/* What must not be forgotten: the epoch a node follows, the view a root has relied on. */
void prim_persist(struct prim *p, uint32_t epoch, uint64_t view);
void prim_set_init(struct prim *p, struct nodeset *s, struct arena *a);
bool prim_attached(const struct prim *p);

/* uplink.c */
void uplink_start(struct prim *p);
bool uplink_link_up(struct prim *p, const struct input_link *l);
void uplink_link_down(struct prim *p, const struct input_link *l);
void uplink_timer(struct prim *p);
void uplink_lost(struct prim *p);
void uplink_epoch(struct prim *p, uint32_t epoch, const struct message_epoch *m);
bool uplink_scouting(const struct prim *p, uint32_t link);
void uplink_scouted(struct prim *p, uint32_t epoch);
void uplink_durable(struct prim *p, uint32_t epoch);
void uplink_attached(struct prim *p, const struct message_attached *m, struct bytes body);
void uplink_attach(struct prim *p);
void uplink_fenced(struct prim *p, const struct message_fenced *m, struct bytes body);
void uplink_consider_move(struct prim *p, const struct nodeset *joined);
bool uplink_usable(const struct prim *p);
void uplink_pass(struct prim *p, uint16_t type, struct bytes body);
void uplink_send(struct prim *p, uint16_t type, const union message *m);

/* route.c */
void route_init(struct prim *p, struct arena *a);
struct child *route_child(struct prim *p, uint32_t link);
void route_link_up(struct prim *p, const struct input_link *l);
void route_link_down(struct prim *p, uint32_t link);
void route_greet(struct prim *p);
void route_new_epoch(struct prim *p);
bool route_attach(struct prim *p, struct child *c, const struct message_attach *m);
void route_attach_passing(struct prim *p, struct child *c, const struct message_attach *m,
                          struct bytes body);
void route_lost(struct prim *p, struct child *c, const struct message_lost *m);
void route_detach(struct prim *p, struct child *c);
void route_confirm(struct prim *p, const struct nodeset *set, struct bytes body);
/* Sends to the children through which nodes of `set` are reached; leaves the set reached in aim. */
void route_cast(struct prim *p, uint16_t type, const struct nodeset *set, struct bytes body);
/* The same of a body in two parts, of which the second need not be in the effects' own bytes. */
void route_cast_parts(struct prim *p, uint16_t type, const struct nodeset *set, struct bytes head,
                      struct bytes tail);
void route_unicast(struct prim *p, uint32_t node, uint16_t type, struct bytes body);
void route_drop_children(struct prim *p, const struct nodeset *members);
void route_close_all(struct prim *p);

/* ack.c */
void ack_init(struct prim *p, struct arena *a);
void ack_reset(struct prim *p);
void ack_open(struct prim *p, enum ack_what what, uint64_t number, bool self);
void ack_acked(struct prim *p, const struct message_ack *m);
void ack_without(struct prim *p, const struct nodeset *gone);
void ack_close(struct prim *p, enum ack_what what, uint64_t number);
void ack_trim(struct prim *p, uint64_t stable);
/* This node itself has done what was cast. */
void ack_self(struct prim *p, enum ack_what what, uint64_t number, bool no);

/* member.c */
void member_init(struct prim *p, struct arena *a);
void member_reset(struct prim *p);
void member_prepare(struct prim *p, const struct message_prepare *m);
void member_decide(struct prim *p, uint64_t order, uint64_t stable, bool commit);
void member_view(struct prim *p, const struct message_view *m);
void member_trim(struct prim *p, uint64_t stable);
void member_arm(struct prim *p, const struct message_arm *m);
void member_set(struct prim *p, uint32_t variable, uint64_t value);
/* What the daemon says to an operation that has asked it. */
void member_vote(struct prim *p, uint64_t order, bool no);
void member_signal(struct prim *p, uint32_t event, uint64_t order, uint32_t offset, uint64_t len,
                   struct bytes body);
void member_strobe(struct prim *p, const struct message_strobe *m);
struct bytes member_records(struct prim *p);
/* Is every field of it within the limits, which are the same on every node? */
bool member_fits(const struct prim *p, const struct operation *o);
uint8_t *member_store_variables(struct prim *p);

/* request.c */
void request_init(struct prim *p, struct arena *a);
void request_reset(struct prim *p);
void request_make(struct prim *p, const struct primitive *r);
void request_result(struct prim *p, const struct message_result *m);
void request_timer(struct prim *p);
void request_resend(struct prim *p);
void request_streamed(struct prim *p, struct op_id id);
void request_broken(struct prim *p, struct op_id id, uint32_t culprit);
uint32_t request_count(const struct prim *p);

/* wave.c */
void wave_start(struct prim *p);
void wave_timer(struct prim *p);
void wave_tick(struct prim *p, const struct message_tick *m, struct bytes body);
void wave_tock(struct prim *p, struct child *c, const struct message_tock *m);
void wave_check(struct prim *p);

/* slot.c */
void slot_init(struct prim *p, struct arena *a);
void slot_reset(struct prim *p);
void slot_begin(struct prim *p, const struct entry *e, struct bytes body);
bool slot_vote(struct prim *p, const struct entry *e);
void slot_publish(struct prim *p, const struct entry *e);
void slot_discard(struct prim *p, struct op_id id);
bool slot_link_up(struct prim *p, const struct input_link *l);
bool slot_link_down(struct prim *p, const struct input_link *l);
void slot_want(struct prim *p, uint32_t link, const struct message_want *m);
void slot_put(struct prim *p, const struct input_put *put);
void slot_without(struct prim *p, const struct nodeset *members);
void slot_timer(struct prim *p);
bool slot_source(struct prim *p, const struct ask *a);
bool slot_streamed(const struct prim *p, struct op_id id);
bool slot_active(const struct prim *p);

/* query.c */
void query_init(struct prim *p, struct arena *a);
/* Forgets what is under way through this node, and its own records too. */
void query_forget(struct prim *p);
void query_reset(struct prim *p);
void query_record(struct prim *p, uint32_t channel, struct bytes record);
void query_make(struct prim *p, const struct primitive *r);
/* After a cast that reached p->aim. */
void query_asked(struct prim *p, const struct message_query *m);
/* False: it is beyond the limits, its sender is not to be listened to. */
bool query_replied(struct prim *p, struct child *c, const struct message_records *m);
void query_without(struct prim *p, const struct nodeset *gone);
void query_resend(struct prim *p, const struct nodeset *set);
void query_drop(struct prim *p, const struct nodeset *gone);
void query_timer(struct prim *p);

/* mail.c */
/* Needs none of the step's sets: a daemon may ask for many in one step. */
void mail_make(struct prim *p, const struct primitive *r);
/* What is wrong with it, if anything is: then its sender is not to be listened to. */
enum refusal mail_down(struct prim *p, uint16_t carrier, const struct message_mail *m,
                       struct bytes body);
enum refusal mail_up(struct prim *p, const struct child *c, uint16_t carrier,
                     const struct message_mail *m, struct bytes body);

/* place.c */
void place_init(struct prim *p, struct arena *a);
void place_boot(struct prim *p);
void place_tell(struct prim *p);

/* order.c */
/* strobe.c: at the root */
void strobe_make(struct prim *p, const struct message_request *m);
void strobe_timer(struct prim *p);

void order_init(struct prim *p, struct arena *a);
void order_admit(struct prim *p, const struct message_request *m);
void order_received(struct prim *p, const struct op_id *id);
void order_watch(struct prim *p, struct nodeset *stalled);
void order_acked(struct prim *p, enum ack_what what, uint64_t number, bool no,
                 const struct nodeset *set);
void order_pump(struct prim *p);
void order_timer(struct prim *p);
void order_resend(struct prim *p, const struct nodeset *set);
void order_drop(struct prim *p, const struct nodeset *gone);
void order_view_acked(struct prim *p);
uint64_t order_first(const struct prim *p);
bool order_undecided(const struct prim *p);
uint64_t order_stable(const struct prim *p);
void order_recover(struct prim *p, const struct record *r);
void order_open(struct prim *p);
uint32_t order_in_flight(const struct prim *p);

/* view.c */
void view_init(struct prim *p, struct arena *a);
void view_boot(struct prim *p);
void view_attach(struct prim *p, struct child *c, const struct message_attach *m);
void view_lost(struct prim *p, const struct nodeset *set, uint32_t node);
void view_acked(struct prim *p, uint64_t number, const struct nodeset *set);
void view_durable(struct prim *p, uint64_t ticket);
void view_donation(struct prim *p, const struct message_donation *m);
void view_timer(struct prim *p);
void view_drop(struct prim *p, const struct nodeset *gone);
void view_change(struct prim *p);
void view_admit(struct prim *p);
bool view_holds_order(const struct prim *p);
void view_find_limbo(struct prim *p);
void view_know_peer(struct prim *p, uint32_t node, uint64_t incarnation);
void view_watch(struct prim *p);
void view_limbo(struct prim *p, struct nodeset *ret);
uint32_t view_unfit(struct prim *p, const struct nodeset *set);

/* collect.c */
void collect_report(struct prim *p, const struct message_attach *m);
void collect_finish(struct prim *p);
bool collect_complete(struct prim *p);
