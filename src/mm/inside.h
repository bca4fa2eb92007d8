/* SPDX-License-Identifier: MIT */
/* What the files of the machine manager share.
 *
 * A job is a place in a table, found by its number; a job that has nodes has a `running` too. State is
 * changed by events that are logged, and by the same functions when they are replayed. What is to be
 * said or done when an event is durable waits in `after`, in the order of tickets. */
#pragma once

#include "base/heap.h"
#include "base/idtable.h"
#include "base/text.h"
#include "mm/chronicle.h"
#include "mm/mm.h"
#include "mm/loans.h"
#include "mm/owners.h"
#include "rm/gather.h"
#include "rm/skew.h"
#include "rm/spread.h"
#include "rm/transfer.h"
#include "sched/court.h"
#include "sched/need.h"
#include "wire/classes.h"
#include "wire/codec.h"
#include "wire/message.h"
#include "wire/row.h"

#define NO_SLOT UINT32_MAX

/* With fewer free places than this, output that nobody takes makes room. */
enum { RUNNINGS_LOW = 64 };

enum { NAME_MAX_BYTES = 40, REASON_MAX_BYTES = 80, FOLLOW_BUCKETS = 1024, REQUEST_BUCKETS = 1024 };

/* Why a job is being ended, beside that its processes have ended. */
enum reason {
    REASON_NONE,
    REASON_BAD,     /* a process died, or could not be started */
    REASON_USER,    /* somebody asked for it */
    REASON_TIME,    /* its limit is reached */
    REASON_LOST,    /* a node is gone */
    REASON_ORPHAN,  /* nobody waits for it any more */
    REASON_AFTER,   /* what it was to wait for will never be */
    REASON_POLICY,  /* the scheduling policy wants it */
    REASON_WINDOW,  /* its reservation is over, and it had not started */
    REASON_CLAIMED, /* its processors were lent, and others wanted them */
    REASON_PARENT,  /* it is a host of a job that is over */
    REASON_OWNER,   /* its processors were lent, and the owner of the machine wanted them */
    REASON_DRAINED, /* its processors were lent, and their node is to be emptied */
    REASON_AROUND,  /* the allocation that it was to run in is over */
    REASONS
};

struct job {
    uint32_t id; /* 0: the place is free */
    uint8_t state;
    uint8_t kind;
    uint8_t reason;
    bool settled;   /* over, and that is durable */
    bool logged;    /* its submission is durable */
    bool again;     /* to be queued once more */
    bool unlogged;  /* its end could not be kept */
    uint32_t left;  /* the first of an array: how many are not over */
    uint32_t count; /* the first of an array: how many there are */
    uint16_t attempt;
    uint32_t flags;
    uint32_t nodes, ppn, procs;
    uint32_t inside;
    uint32_t parent;   /* whose host it is; 0: it is none */
    uint32_t together; /* so many of its array start at once; 0: it starts alone */
    uint32_t children; /* hosts that it has or waits for */
    uint32_t index;    /* of an array */
    int32_t priority;
    uint64_t limit_ns;
    uint32_t
        window; /* number of the reservation that it starts in, WINDOW_GONE: one that is over; 0: none */
    uint64_t key; /* of its events: its number, or its array's */
    uint64_t request[2];
    uint32_t request_next;                       /* in its bucket */
    uint64_t submitted_ns, started_ns, ended_ns; /* of the calendar */
    uint64_t begin_ns;                           /* not before; 0: at once */
    uint64_t born;                               /* when it was submitted, or this life began */
    uint32_t status;
    struct ending worst;
    uint32_t bad;
    uint64_t output;
    uint32_t memory; /* MiB that each process may use; 0: nothing is said of it */
    uint16_t need;   /* one more than the place of what it needs of nodes; 0: nothing */
    bool measured;   /* what it has used is known */
    bool unwritten;  /* some of its output could not be; not kept over lives */
    struct usage usage;
    uint32_t loose;      /* a node that does not limit memory as was asked for; NO_NODE: none */
    uint32_t slot;       /* of its `running` */
    uint64_t rank;       /* among those who wait; 0: it never has. It comes back to where it was */
    uint32_t seat;       /* its number in the court, COURT_NONE: it is not there */
    bool given;          /* it has nodes, and is about to start */
    uint32_t prev, next; /* among these, or among steps that wait */
    /* The first of a submission: what it waits for, and what became of it. */
    uint32_t awaits;      /* place of a condition, NO_SLOT: none */
    uint32_t doomed_next; /* of those that will never start */
    bool waits;           /* it is not in the queue yet */
    bool doomed;
    bool spoilt; /* some of it has not ended well */
    uint32_t name_len;
    char name[NAME_MAX_BYTES];
};

/* Nodes that are kept for some jobs for a while: see reserve.c. */
struct reservation {
    uint32_t id;             /* 0: the place is free */
    bool leaving;            /* it has been taken back, and that is not durable */
    uint64_t ticket;         /* of what is not durable; 0: all is */
    uint64_t request[2];     /* that has made it */
    uint64_t made_ns;        /* of the calendar */
    uint64_t from_ns, to_ns; /* of the calendar */
    struct nodeset nodes;
    uint32_t name_len;
    char name[RESERVATION_NAME_MAX];
};

#define WINDOW_GONE UINT32_MAX

/* Something that has to be before a submission may start: see waits.c. */
struct await {
    uint32_t job; /* the first of the submission; 0: the place is free */
    uint8_t kind; /* enum await_kind, or AWAIT_BEGIN */
    uint32_t on;  /* the job whose end it is about; 0: it is about a time */
    uint32_t next, sibling;
    struct heap_item due; /* BEGIN */
};

enum { AWAIT_BUCKETS = 1024, AWAIT_BEGIN = AWAIT_KINDS };

enum {
    MM_ATTRIBUTES = TRAITS_MAX, /* of nodes */
    NEEDS_MAX = 512,            /* that jobs have at once, those that are the same counted once */
    NEED_KEPT_MAX = NEED_TEXT_MAX + 1,
    NEEDS_WHY_MAX = 640,
    NEEDS_TERMS_TOLD = 4 /* conditions of a need whose nodes are counted for who is refused */
};

/* What some jobs need of their nodes, and who has it: see needs.c. */
struct need_kept {
    bool used;
    bool broken; /* it cannot be read: there is no such attribute, or value, any more */
    char text[NEED_KEPT_MAX];
    struct need need;
    struct nodeset set;
};

/* The sections of a job: see sections.c. */
struct sectioned {
    uint32_t count;
    uint32_t nodes[COURT_SECTIONS_MAX], ppn[COURT_SECTIONS_MAX], procs[COURT_SECTIONS_MAX];
    uint16_t need[COURT_SECTIONS_MAX]; /* as struct job has it */
    struct court_section court[COURT_SECTIONS_MAX];
};

enum { CLASSES_MAX = COURT_SECTIONS_MAX - 1, TOGETHER_MAX = 1024, HOSTS_MAX = 65536 };

/* The classes of a job's hosts: see family.c. */
struct classed {
    uint32_t count;
    struct class_kept {
        uint32_t least, most, ppn;
        uint16_t need; /* as struct job has it */
        uint32_t name_len;
        char name[CLASS_NAME_MAX];
    } at[CLASSES_MAX];
    uint32_t section_count; /* its own nodes, and those of classes that it does not start without */
    struct court_section sections[COURT_SECTIONS_MAX];
};

/* A class that a program has defined: see classes.c. */
struct definition {
    uint32_t head;       /* of the family; 0: none */
    uint64_t request[2]; /* that has defined it, or removed */
    uint32_t ppn;
    bool gone; /* removed: only who has asked for that is remembered */
    uint16_t name_len, need_len;
    char name[CLASS_NAME_MAX], need[NEED_TEXT_MAX];
};

/* Nodes a job insists on or will not have. */
struct wish {
    struct nodeset on, exclude;
};

enum phase {
    PHASE_LOGGING,   /* the start is not durable yet */
    PHASE_FETCHING,  /* of what is to be run */
    PHASE_COPYING,   /* its files are on their way to its nodes */
    PHASE_LAUNCHING, /* asked of the primitives */
    PHASE_GOING,     /* it is on all its nodes */
    PHASE_OVER,      /* its end is not durable yet */
};

enum { RUNNING_SETS = 5 };

struct running {
    uint32_t job; /* 0: the place is free */
    uint8_t phase;
    bool crowded;    /* the next waits until fewer are under way */
    bool missed;     /* its output came before somebody followed it */
    bool told;       /* followers know that it is over but for nodes that are lost */
    bool suspended;  /* by its user, or because it is called back */
    bool held;       /* it has been: what holds is said again and again */
    bool unheld;     /* its processors are held for another, whose end was not kept */
    bool unkept;     /* what was asked for it could not be kept */
    bool parting;    /* its hosts are being ended */
    bool called;     /* it is lent, and called back; */
    bool rests;      /* and its user wants it suspended, too */
    uint8_t force;   /* 0, or the verb that is being repeated: END, KILL */
    uint32_t signal; /* REASON_USER: which */
    uint32_t copied; /* so many of its bundles of files are there: see start.c */
    uint64_t run;
    uint64_t slots;    /* of the matrix, as nodes were told; 0: all there are */
    uint64_t launched; /* as its launch has it */
    bool moved;        /* nodes are to be told of them */
    uint64_t ran_ns;   /* in its slots, until they were changed; and what they had had then */
    uint64_t ran_base;
    struct nodeset set;     /* its nodes */
    struct nodeset waiting; /* have processes, and have not told of their end */
    struct nodeset unsure;  /* of these: we do not know whether they have it (a new life) */
    struct nodeset lost;    /* of these: given up; held until the lease is over */
    struct nodeset ready;   /* of these: have it, and do not know whether it was decided */
    bool ours;              /* we have ended processes of it */
    bool started;           /* it is known to have been on its nodes */
    uint32_t unknown;       /* nodes that do not have it */
    uint32_t unknown_node;  /* one of them */
    uint32_t steps;         /* of an allocation */
    struct ending worst;
    uint32_t bad;
    uint64_t output;
    struct usage usage;  /* of nodes where it has ended */
    struct usage so_far; /* of all, as it was then; 0: not known yet */
    uint64_t so_far_at;
    uint32_t so_far_nodes; /* where it ran, and that have told */
    /* What is due when; 0: nothing. */
    uint64_t limit_at, force_at, repeat_at, orphan_at, lost_at, vacate_at;
    struct heap_item due;
    uint16_t *
        by_node; /* of each node: an allocation: processors that steps use; a job with sections: which it is in */
};

struct node {
    bool member;
    bool announced; /* has told what it has, since it joined */
    bool drained;
    bool down;          /* given up, and that was said */
    bool reported;      /* what it is like */
    bool said;          /* how many processors it has was said */
    uint32_t pes;       /* processors that it has; the court may still know another number */
    uint64_t since;     /* of the calendar: in this state */
    uint64_t absent_at; /* not a member since; 0: it is one, or never was */
    /* A change of `drained` that is not durable, 0 if there is none, and how it was before. */
    uint64_t drain_ticket;
    bool was_drained;
    uint32_t was_reason_len;
    uint32_t reason_len;
    char reason[REASON_MAX_BYTES];
};

enum copy_phase {
    COPY_WAITING,
    COPY_ORDERING,
    COPY_MOVING,
    COPY_JUDGING,
    COPY_ASKING,
    COPY_LEAVING
};

/* A transfer of files, see files.c. */
struct copying {
    uint64_t transfer; /* 0: the place is free */
    uint8_t phase;
    bool heard;    /* of a failure, while a compare was under way */
    uint32_t link; /* the client that wants it, 0: none */
    uint64_t request[2];
    uint64_t run; /* or the run */
    bool inputs;  /* they are for its folder */
    uint64_t offer;
    uint32_t source;
    struct spread spread;       /* without its groups */
    uint32_t switches, crossed; /* as struct message_copied */
    uint32_t slots;
    struct nodeset set;     /* where it is to be, or is */
    struct nodeset without; /* where it will not be */
    uint32_t node;          /* the first of these, and why */
    int32_t error;
    uint32_t text_len;
    uint8_t text[200];
    uint32_t address_len, descriptor_len;
    uint8_t *body; /* both; half of limits.body_bytes */
    uint32_t fabric_len;
    uint8_t fabric[FABRIC_NAME_MAX];
    uint64_t key; /* of a run's files */
};

/* Which nodes have the files of a descriptor, as far as we know. */
struct holders {
    uint64_t key;  /* 0: the place is free */
    uint64_t used; /* ascends */
    struct nodeset set;
};

enum { HOLDERS_MAX = 32 };

/* Why the files of a job could not be sent, in words. */
struct copy_words {
    uint32_t job;
    uint32_t len;
    char text[160];
};

enum { COPY_WORDS_MAX = 8 };

/* A client that has asked nodes for their files. */
struct asker {
    uint32_t link;
    uint64_t request[2];
};

enum { ASKERS_MAX = 1024 }; /* a program has few at once */

/* A completion about files has this in its tag; others have a run. */
#define FILES_TAG ((uint64_t)1 << 62)

/* A client that wants to hear of a job. */
struct follow {
    uint32_t link; /* 0: the place is free */
    uint32_t job;  /* 0: every batch job */
    bool output;
    bool array;  /* and of the whole array that begins with it */
    bool family; /* and of its hosts, and what runs there */
    uint32_t next;
};

enum { PETITION_BUCKETS = 256 };

/* A program that talks to us, see petition.c. */
struct petitioner {
    uint32_t link; /* as which it is known elsewhere */
    uint32_t node;
    uint64_t run;
    uint32_t number;      /* of its conversation */
    uint32_t sent, acked; /* frames downwards, and those that its launcher has heard of */
    uint32_t heard, told; /* upwards, and those that it knows of */
    uint32_t next;        /* in its bucket */
    bool lost;            /* it begins anew; its place is still taken */
    bool reached;         /* others of its family reach it: so */
    uint32_t rank;
    struct message_reach reach;
};

enum after_kind {
    AFTER_ANSWER, /* to a submission */
    AFTER_AGAIN,  /* to one that has come again */
    AFTER_START,
    AFTER_SETTLE,
    AFTER_NODE,   /* and an answer */
    AFTER_KEEP,   /* what was asked for a running job */
    AFTER_ACT,    /* the answer to it */
    AFTER_POLICY, /* the same, if somebody has asked */
    AFTER_RESERVE /* and an answer */
};

/* What happens when an event is durable. */
struct after {
    uint64_t ticket;
    uint8_t kind;
    uint32_t link; /* ANSWER, AGAIN, NODE, ACT */
    uint64_t request[2];
    uint32_t job, count;
};

/* A client that wants to know what a job is to run, until that has come from the log. */
struct inquiry {
    uint32_t link; /* 0: the place is free */
    uint64_t request[2];
};

enum { INQUIRIES = 64 };

/* Whose turn it is, see slices.c. */
struct turns {
    bool used;        /* runs belong to slots: time is shared, or was */
    bool sharing;     /* it is: what is launched belongs to some */
    bool moved;       /* some run belongs to others than its nodes were told */
    bool again;       /* the turn is to be said, though it is the same */
    uint8_t slot;     /* whose turn it is, as far as was said */
    uint64_t cycle;   /* slots that take turns by the nodes' own clocks; 0: strobes say each turn */
    uint64_t quantum; /* of their turns */
    uint64_t ends;    /* when the turn of `slot` is over, in a cycle */
    uint64_t sync_at; /* when the cycle is to be said again; 0: there is none */
    uint32_t repeats; /* of what may be lost, that are left to be said */
    uint64_t repeat_at; /* 0: not */
    uint64_t version;   /* of what is said of slots: ascends, the epoch above */
    uint64_t since;     /* until then the times are reckoned */
    uint64_t all_ns;    /* in which everybody ran */
    uint64_t slot_ns[GANG_SLOTS_MAX];
};

/* What the log says of the policy. */
struct policy_kept {
    bool any;
    bool unkept;                       /* the newest was not, as the disk was full */
    const struct storm_policy *policy; /* NULL: one that is not there */
    uint32_t slots;
    uint64_t quantum;
};

struct mm {
    struct mm_config config;
    uint64_t now;
    uint64_t wall_ns; /* what to add to `now` for the calendar's time */
    struct effects *out;
    bool replaying;
    uint64_t replayed_at; /* of the calendar: when what is read again happened */
    bool dirty;           /* something may start now */
    bool orphans;         /* there may be hosts whose job is gone */
    bool stopped;         /* nothing may, any more */
    bool stalled;         /* nothing may: the log takes nothing */
    bool overlap;         /* some have processors that are held for others */
    uint32_t epoch;
    uint64_t booted;
    bool ticked; /* the court wants to be heard */
    bool prompt; /* we have asked to be served at once */
    struct turns turns;
    struct skew skew; /* of the nodes' switches */
    bool fresh; /* the first life in this cluster: what ran before was in another, and is gone */

    struct job *jobs;
    struct wish *wishes;
    struct sectioned *sectioned;
    struct classed *classed;
    struct definition *definitions;
    uint32_t definition_count; /* places that are taken */
    uint32_t lent;             /* that run, and are lent */
    uint32_t hosts;            /* that jobs have or wait for */
    bool splitting;            /* a place in court becomes several: nobody arrives there */
    uint16_t *lent_by_node;    /* room for loans.c, by node; and a set: */
    uint16_t *missing_by_node; /* processors that are to be given back */
    struct nodeset called;
    struct nodeset claimed; /* nodes of the first who waits, while loans are called back for it */
    struct nodeset unlent;  /* and those of owners: nothing that is lent comes there */
    struct owners owners;
    struct nodeset section_sets[COURT_SECTIONS_MAX]; /* of the run below; 0: of none */
    uint64_t section_sets_run;
    uint64_t *wish_sets;
    uint32_t next_id;
    uint32_t given_first, given_last; /* those that have nodes, and are about to start */
    uint64_t ranks;                   /* that were given out */
    uint32_t steps_first, steps_last; /* those that wait for room in their allocation */
    uint32_t queued;
    struct await *awaits;
    uint32_t await_cap, await_used, await_free;
    uint32_t await_peak; /* no place at or above this was ever taken */
    uint32_t await_buckets[AWAIT_BUCKETS];
    struct heap begins;
    uint32_t doomed_first;
    uint32_t ending;                    /* in this step, of those */
    uint32_t requests[REQUEST_BUCKETS]; /* place of the first, NO_SLOT if none */

    struct running *runnings;
    uint32_t running_cap, running_count;
    uint32_t running_peak;       /* no place at or above this was ever taken */
    uint32_t *running_free;      /* stack of places that were given back */
    uint32_t running_returned;   /* so many */
    uint32_t running_free_count; /* with those that were never taken */
    uint64_t *running_sets;      /* of places: made ready when one is taken the first time */
    uint16_t *running_by_node;
    uint32_t starting; /* that are not on their nodes yet */
    struct heap dues;
    uint64_t ties;

    struct court *court;         /* who waits, and who has which processors */
    char fault[COURT_WORDS_MAX]; /* why the policy is not the one that was asked for */
    struct policy_kept kept;
    struct reservation reservations[STORM_WINDOWS_MAX];
    uint32_t reservation_ids; /* the last that was given out */
    bool stranded;            /* jobs may wait for one that is over */
    uint32_t stranded_at;     /* places before this were looked at */
    struct node *nodes;
    bool unsettled; /* some have not the processors yet that they should have */
    struct traits traits;
    uint8_t *special; /* how special nodes are, by node */
    uint64_t *special_scratch;
    bool unranked; /* they have changed since that was reckoned */
    uint64_t said; /* hash of what the administrator has said */
    struct need_kept *needs;
    struct roster roster, roster_next; /* who is there; room for what is heard of that */
    struct nodeset taken;              /* the same, as a set */
    struct nodeset members;
    uint64_t nodes_at; /* when they are looked at, 0: not */

    struct follow *follows;
    uint32_t follow_cap;
    uint32_t follow_end; /* behind the last that is in use */
    uint32_t follow_buckets[FOLLOW_BUCKETS];

    struct petitioner *petitioners;
    struct idtable petition_ids;
    uint32_t petition_buckets[PETITION_BUCKETS];
    bool petition_lost; /* some are */

    struct after *after; /* ring */
    uint32_t after_cap, after_head, after_count;
    uint64_t tickets; /* the last that was given out */
    uint64_t durable; /* the last that is known to be durable, or not */

    uint64_t forget[512]; /* runs to be forgotten, with the nodes that may have them */
    uint32_t forget_count;
    struct nodeset forget_set;

    struct nodeset scratch[2];
    struct nodeset work;
    struct nodeset empty;
    struct nodeset one;
    struct inquiry inquiries[INQUIRIES];
    struct copying copies[TRANSFER_PLACES];
    uint32_t copy_count; /* in this life */
    uint32_t *switches;  /* of the nodes, 0: not known */
    bool switched;       /* some are */
    /* If switches are known: those of a transfer's receivers, the order of these, ends of groups, and how it is told. */
    uint32_t *plan_switches, *plan_order, *plan_ends;
    uint8_t *plan_runs;
    bool copy_left; /* a place has become free */
    struct asker askers[ASKERS_MAX];
    uint32_t asker_next;
    struct holders holders[HOLDERS_MAX];
    uint64_t holders_used;
    struct copy_words copy_words[COPY_WORDS_MAX];
    uint32_t copy_words_next;
    uint64_t submitted, ended;
    struct gather *vitals; /* NULL: there are no gathers */
};

enum mm_timer {
    TIMER_DUE = 1,
    TIMER_FORGET,
    TIMER_NODES,
    TIMER_STALL,
    TIMER_BEGIN,
    TIMER_COURT,
    TIMER_RESERVE,
    TIMER_VITALS,
    TIMER_QUEUE,
    TIMER_GATHER
};

/* jobs.c: the table */
struct job *job_find(const struct mm *m, uint32_t id);
/* A place for the job of the next number; NULL if there is none. */
struct job *job_new(struct mm *m, uint32_t id);
void job_free(struct mm *m, struct job *j);
uint32_t job_place(const struct mm *m, const struct job *j);
struct job *job_of_request(const struct mm *m, const uint64_t request[2]);
void job_keep_request(struct mm *m, struct job *j);
struct wish *job_wish(struct mm *m, const struct job *j); /* NULL if it does not care */
void job_keep_wish(struct mm *m, struct job *j, const struct message_submit *s);
struct running *job_running(const struct mm *m, const struct job *j);
/* Which process is on which node; places of a list are not known here. */
struct map job_placing(struct mm *m, const struct job *j, const struct running *r);
/* Processors that it holds on this node, if it is there. */
uint32_t job_each(const struct mm *m, const struct job *j, uint32_t node);
/* MiB that each process of a submission may use; 0: nothing is said of it. */
uint32_t job_memory(const struct message_submit *s);
/* The same of so many on a node. */
uint32_t job_memory_of(uint32_t memory, uint32_t processes);
/* What a submission says of it. */
void job_fill(struct job *j, const struct message_submit *s, uint64_t at);
/* What a list says of it, but for its nodes and why. */
struct job_row job_row_of(const struct job *j);
/* Names the nodes of its usage, in the given room. */
void job_row_where(const struct roster *names, struct job_row *row, char peak[ROSTER_NAME_MAX],
                   char node[ROSTER_NAME_MAX]);
/* Why it was ended, in words, as far as that needs no more to be known; otherwise NULL. */
const char *job_reason(enum reason reason);
uint64_t wall(const struct mm *m);

/* queue.c: who waits, who starts */
/* Who has been there before comes to where it was. */
void queue_enter(struct mm *m, struct job *j);
void queue_remove(struct mm *m, struct job *j);
/* A new life: the court hears of what runs on its nodes, false if another has these; and of all who wait. */
bool queue_hold(struct mm *m, struct job *j, const struct running *r);
void queue_resume(struct mm *m);
/* What it had is for others. */
void queue_leave(struct mm *m, struct job *j);
/* The court's time has come. */
void queue_tick(struct mm *m);
/* Starts what can start now. */
void queue_run(struct mm *m);
/* Could it ever run, on all nodes? */
bool queue_could(struct mm *m, const struct message_submit *s);
/* What one that waits wants of the court. */
struct court_order queue_order(struct mm *m, const struct job *j);
/* One that waits and has no place in court gets one. */
void queue_arrive(struct mm *m, struct job *j);
/* It gets a place in court for these nodes, which are free in that slot; false: there is none. */
bool queue_seat(struct mm *m, struct job *j, const struct nodeset *nodes, uint32_t slot);
/* It does not wait any more, as it is about to start. */
void queue_off(struct mm *m, struct job *j);

/* family.c: hosts that belong to a job */
size_t family_bytes(const struct mm_config *c);
void family_init(struct mm *m, struct arena *a);
/* The job that it belongs to, or it itself. */
uint32_t family_head(const struct mm *m, uint32_t job);
/* Are there hosts of that class, or do any wait? */
bool family_has(const struct mm *m, uint32_t head, struct bytes name);
/* A class of a job's hosts; false: there are not so many. */
bool family_class(const struct mm *m, const struct job *j, uint32_t index, struct host_class *ret);
void family_joined(struct mm *m, const struct job *j);
void family_left(struct mm *m, const struct job *j);
/* A host that came with a job is lost or was called back: another is asked for. */
void family_replace(struct mm *m, const struct job *j);
/* There may be hosts whose job is gone: they end, some now and others later. */
void family_look(struct mm *m);
void family_end_orphans(struct mm *m);
/* Its processes have ended: its hosts are to end, too. False: it has none. */
bool family_parts(struct mm *m, const struct job *j, struct running *r);
/* Another waits in court for it, too. */
bool family_follows(const struct mm *m, const struct job *j);
/* One that waited has ended: so do those that were to start with it. */
void family_disband(struct mm *m, const struct job *j, enum reason reason);
/* Keeps what a submission says of classes; false: there are too many needs. */
bool family_take(struct mm *m, struct job *j, const struct message_submit *s);
void family_mark_needs(struct mm *m, const struct job *j);
/* Sizes for the court; how many they are. */
uint32_t family_sections(const struct message_submit *s,
                         struct court_section ret[COURT_SECTIONS_MAX]);
int family_judge(struct mm *m, const struct message_submit *s, struct text *why);
/* How long it runs at most; STORM_NEVER: nobody knows. A host ends with its job. */
uint64_t family_estimate(const struct mm *m, const struct job *j);
/* What one that waits wants beyond its own nodes. */
void family_order(const struct mm *m, const struct job *j, struct court_order *o);
/* Its place in court is for several. So many. */
uint32_t family_size(const struct mm *m, const struct job *j);
void family_start(struct mm *m, struct job *j);
/* Those that waited for it wait for themselves now. */
void family_started(struct mm *m, const struct job *j);

/* loans.c; why one that was called back ends */
enum reason loans_reason(const struct mm *m, const struct running *r);

/* needs.c: what nodes are like, and what jobs need of them */
size_t needs_bytes(const struct mm_config *c);
void needs_init(struct mm *m, struct arena *a);
/* What the administrator says; what a node reports of itself; another is in its place. */
void needs_said(struct mm *m, const struct input_traits *in);
void needs_reported(struct mm *m, uint32_t node, struct bytes report);
void needs_forget(struct mm *m, uint32_t node);
/* How special nodes are is reckoned anew. */
void needs_rank(struct mm *m);
/* It has, or will have, another number of processors. */
void needs_width(struct mm *m, uint32_t node);
/* Keeps what a submission needs; false: there are too many. */
bool needs_take(struct mm *m, struct job *j, const struct message_submit *s);
/* One of them; *ret is as struct job has it. */
bool needs_keep(struct mm *m, struct bytes need, uint16_t *ret);
const struct need_kept *needs_of(const struct mm *m, const struct job *j); /* NULL: nothing */
/* Who has that? -EINVAL: why not, with the place in the text. */
int needs_select(struct mm *m, struct bytes need, struct nodeset *ret, struct text *why);
/* Could enough nodes ever have it? 0, or -errno and the reason. */
int needs_judge(struct mm *m, const struct message_submit *s, struct text *why);
void needs_why(const struct need_kept *k, struct text *why);

/* sections.c: jobs whose nodes are not all alike */
const struct sectioned *sections_of(const struct mm *m,
                                    const struct job *j); /* NULL: it has none */
/* Could there ever be nodes for each of them? 0, or -errno and the reason. */
int sections_judge(struct mm *m, const struct message_submit *s, struct text *why);
/* Keeps what a submission says of them; false: there are too many needs. */
bool sections_take(struct mm *m, struct job *j, const struct message_submit *s);
/* Their sizes, for the court; how many they are. */
uint32_t sections_order(const struct message_submit *s,
                        struct court_section ret[COURT_SECTIONS_MAX]);
/* It has been given nodes: which of them belongs to which. */
void sections_assign(struct mm *m, const struct job *j, struct running *r);
/* The same as struct map has it; empty: it has none. */
struct bytes sections_map(struct mm *m, const struct job *j, const struct running *r);
/* As the log has it; false: it says nothing of the kind. */
bool sections_load(struct mm *m, const struct job *j, struct running *r, struct bytes told);
/* Processors on a node of it. */
uint32_t sections_ppn(const struct mm *m, const struct job *j, uint32_t node);
/* The nodes of each, one set behind another; of a job without: all its nodes. */
const struct nodeset *sections_sets(struct mm *m, const struct job *j, const struct running *r);
/* The node of a rank (below procs) of a job with sections; NO_NODE: none has it. */
uint32_t sections_node(struct mm *m, const struct job *j, const struct running *r, uint32_t rank);

/* why.c: in words */
/* Can it ever run? 0, or -errno and the reason. */
int why_not(struct mm *m, const struct message_submit *s, struct text *why);
/* "1 node", "4 nodes": the noun begins with a blank. */
void why_count(struct text *out, uint64_t count, const char *noun);
/* How much is to be found out. */
enum why { WHY_SHORT, WHY_LONG };
/* Why it waits; when it will start, of the calendar, or 0. A list asks for little of each: what is known already. */
uint64_t why_waits(struct mm *m, const struct job *j, enum why how, struct text *why);

/* policy.c: which one, and what becomes of one that is wrong */
void policy_begin(struct mm *m);
void policy_heard(struct mm *m, uint32_t link, const struct message_act *a);
void policy_fault(struct mm *m, const char *words);
/* Writes down which there is; what follows when it is durable may be added. */
struct after *policy_keep(struct mm *m);
void policy_replay(struct mm *m, struct bytes name, uint32_t slots, uint64_t quantum_ns);
/* The one at this place, and all about it if it is the chosen one; false: there is none. */
bool policy_row_at(struct mm *m, uint32_t index, struct policy_row *ret);

/* reserve.c: nodes that are kept for some */
void reserve_init(struct mm *m, uint64_t *storage); /* of a set for each */
void reserve_heard(struct mm *m, uint32_t link, const struct message_reserve *w);
/* The number of the one of that name that is not over at that time, 0 if there is none. */
uint32_t reserve_find(const struct mm *m, struct bytes name, uint64_t at_ns);
const struct reservation *reserve_of(const struct mm *m, uint32_t id); /* NULL: it is over */
/* It is durable, or has never been; the answer is the caller's. Its name, NULL if it is gone. */
const struct reservation *reserve_kept(struct mm *m, uint64_t ticket, bool kept);
void reserve_replay(struct mm *m, const struct message_reserve *w, uint64_t at_ns);
/* A new life: the court hears of them. */
void reserve_begin(struct mm *m);
void reserve_tick(struct mm *m);
/* Somebody waits for one that is over. */
void reserve_strand(struct mm *m);
/* Ends jobs that wait for one that is over. */
void reserve_end_stranded(struct mm *m);
/* How many jobs have named it. */
void reserve_count(const struct mm *m, uint32_t id, struct reservation_row *ret);

/* waits.c: who may not start yet */
/* Can what it waits for ever be? 0, or -errno and the reason. */
int waits_judge(struct mm *m, const struct message_submit *s, struct text *why);
/* Keeps what a submission waits for; false: nothing. */
bool waits_take(struct mm *m, struct job *first, const struct message_submit *s);
void waits_forget(struct mm *m, const struct job *first);
/* One job of it, beside the queue; and no more. */
void waits_hold(struct mm *m, struct job *j);
void waits_drop(struct mm *m, struct job *j);
/* A job is about to be over. */
void waits_ended(struct mm *m, const struct job *j);
/* The log tells what became of a condition. */
void waits_replay(struct mm *m, uint32_t job, uint32_t on, bool good);
void waits_replay_at(struct mm *m, uint64_t at); /* what is read next happened then */
/* All of the log is read: what is over by now, and nobody was told so. */
void waits_resume(struct mm *m);
void waits_timer(struct mm *m);
void waits_begin(struct mm *m);
/* Ends those that will never start. */
void waits_end_doomed(struct mm *m);
void waits_why(const struct mm *m, const struct job *j, struct text *why);

/* start.c: from nodes given to processes running */
struct running *running_new(struct mm *m, struct job *j, const struct nodeset *set);
void running_free(struct mm *m, struct running *r);
/* Times of a job that nobody follows: it is ended if that stays so. */
void start_orphan(struct mm *m, const struct job *j, struct running *r);
void start_job(struct mm *m, struct job *j, const struct nodeset *set);
/* It is not being started any more: another may. */
void start_leave(struct mm *m, struct running *r);
void start_durable(struct mm *m, struct job *j);
void start_fetched(struct mm *m, const struct input_fetched *in);
void start_completed(struct mm *m, const struct completion *c);
void start_hold(struct mm *m);
/* A new life: what was running may still be. */
void start_resume(struct mm *m);

/* It waits for its files, and is to end. */
void start_stop_copying(struct mm *m, struct job *j, struct running *r);
/* The files of a run are on its nodes, or not. */
void start_copied(struct mm *m, uint64_t run, const struct copying *c);
/* Fewer files are under way: those that wait for that go on. */
void start_crowded(struct mm *m);

/* files.c: files to nodes */
/* A place for it, with everything that it needs but a client or a run; NULL and why. */
struct copying *files_begin(struct mm *m, const struct message_copy *t, const char **ret_why);
void files_go(struct mm *m, struct copying *c);
/* What switch each node hangs at, 4 bytes each, 0: not known; empty: none are. */
void files_switches(struct mm *m, struct bytes switches);
/* Some have come, or are known to stay away: who has waited for them goes. */
void files_nodes_changed(struct mm *m);
void files_copy(struct mm *m, uint32_t link, const struct message_copy *t);
void files_completed(struct mm *m, const struct completion *done);
/* A node says that it has failed there. */
void files_arrived(struct mm *m, uint32_t node, const struct message_arrived *a);
void files_client_down(struct mm *m, uint32_t link);
void files_offer(struct mm *m, uint32_t link, const struct message_offer *o);
void files_offered(struct mm *m, uint32_t node, const struct message_offered *o);
/* The run does not wait for its files any more. */
void files_run_over(struct mm *m, uint64_t run);
enum files_sent {
    FILES_THERE, /* no node lacks them */
    FILES_SENT,  /* they are on their way; what comes of it may be known already */
    FILES_LATER, /* too much is under way */
    FILES_WRONG  /* it cannot be, `why` */
};

/* A bundle of a run's files. */
struct shipment {
    struct bytes copy; /* the body of a COPY; empty: nothing */
    bool inputs;       /* for its folder */
    const struct nodeset *to;
};

/* Begins to send it to those of its nodes that lack it. */
enum files_sent files_send(struct mm *m, const struct running *r, const struct shipment *s,
                           const char **why);
/* So many more could be under way. */
uint32_t files_free(const struct mm *m);
/* What we thought to be there is not, on that node. */
void files_missing(struct mm *m, uint32_t node);
/* A node has come anew: who knows what it has. */
void files_node_down(struct mm *m, const struct nodeset *nodes);
/* Why a job's files could not be sent; empty if nothing is known. */
struct bytes files_words(const struct mm *m, uint32_t job);

/* end.c: from the first end to the last word */
void end_heard(struct mm *m, const struct message_ends *e);
void end_have(struct mm *m, uint32_t node, const struct message_have *h);
/* Ends a job: END now, KILL after the grace; or KILL now. */
void end_job(struct mm *m, struct job *j, enum reason reason, uint32_t signal, bool now);
void end_node_lost(struct mm *m, uint32_t node);
/* A new life: it was to end. */
void end_resume(struct mm *m, struct job *j, struct running *r);
/* Nobody has processes of it any more? Then it is over. */
void end_check(struct mm *m, struct running *r);
/* Its processors, or its allocation's, are free. */
void end_give_back(struct mm *m, struct job *j, const struct running *r);
void end_settled(struct mm *m, struct job *j);
/* Nobody takes its output any more: it is kept for a while. */
void end_unfollowed(struct mm *m, struct job *j);
/* All is said and taken. */
void end_release(struct mm *m, struct job *j);
void end_make_room(struct mm *m);
void end_forget(struct mm *m, uint64_t run, const struct nodeset *nodes);
void end_forget_flush(struct mm *m);
/* If all that are to forget something are about to hear from us anyway. */
void end_forget_with(struct mm *m, const struct nodeset *nodes);

/* due.c: what happens because of time */
void due_set(struct mm *m, struct running *r);
void due_run(struct mm *m);

/* client.c: who wants to hear what */
void client_down(struct mm *m, uint32_t link);
void client_message(struct mm *m, const struct input_message *in);
void client_answer(struct mm *m, uint32_t link, const uint64_t request[2], enum answer code,
                   uint32_t job, uint32_t count, const char *text);
void client_news(struct mm *m, const struct job *j);
void client_tell(struct mm *m, uint32_t link, const struct job *j);
bool client_follow(struct mm *m, uint32_t link, uint32_t job, bool output, bool array);
/* One that follows it already also follows all that belong to it. */
void client_follow_family(struct mm *m, uint32_t link, uint32_t job);
void client_unfollow(struct mm *m, uint32_t link, struct job *j, const struct message_act *a);
/* The link that takes this job's output, 0 if none does. */
uint32_t client_of_output(const struct mm *m, const struct job *j);
/* Does this client follow the job? */
bool client_follows(const struct mm *m, uint32_t link, uint32_t job);

/* Says it to a client, or to a program. */
void client_say(struct mm *m, uint32_t link, uint16_t type, const union message *what);
/* The same with what came so. */
void client_pass(struct mm *m, uint32_t link, const struct input_message *in);

/* classes.c: what programs define */
size_t classes_bytes(void);
void classes_init(struct mm *m, struct arena *a);
/* The next that a family has defined, from place *at on; false: that were all. */
bool classes_next(const struct mm *m, uint32_t head, uint32_t *at, struct host_class *ret);
void classes_heard(struct mm *m, uint32_t link, const struct message_act *a);
struct class_change;
void classes_replay(struct mm *m, uint32_t head, const struct class_change *c);
/* It is over, or begins anew. */
void classes_drop(struct mm *m, uint32_t head);

/* petition.c: programs that talk to us as clients do */
size_t petition_bytes(void);
void petition_init(struct mm *m, struct arena *a);
/* Is it the link of one? */
bool petition_is(uint32_t link);
void petition_heard(struct mm *m, const struct input_message *in);
void petition_say(struct mm *m, uint32_t link, uint16_t type, const union message *what);
void petition_pass(struct mm *m, uint32_t link, uint16_t type, struct bytes body);
void petition_run_over(struct mm *m, uint64_t run);
/* At the end of each step. */
void petition_settle(struct mm *m);
/* The job that this program belongs to, 0: it is no program's link. And who belongs to that. */
uint32_t petition_head(const struct mm *m, uint32_t link);
bool petition_of_family(const struct mm *m, uint32_t head, uint32_t job);
/* Nodes that they have. */
void petition_nodes(struct mm *m, uint32_t head, struct nodeset *ret);
/* The first process of the family from this place on that others reach; false: there is none. */
bool petition_peer(const struct mm *m, uint32_t head, uint32_t from, struct peer_row *ret);

/* submit.c, act.c, ask.c: what clients want */
void submit_heard(struct mm *m, uint32_t link, const struct message_submit *s, struct bytes body);
/* Makes the jobs of a submission, also one of a former life; false if there is no place. */
bool submit_take(struct mm *m, const struct message_submit *s, uint32_t first, uint32_t count,
                 uint64_t at);
/* The manager's own: the number of the first, 0: there is no room. */
uint32_t submit_own(struct mm *m, const struct message_submit *s, uint32_t count);
void act_heard(struct mm *m, uint32_t link, const struct message_act *a);
/* Suspends what runs, or lets it go on; of an allocation all that runs there. */
void act_hold(struct mm *m, struct job *j, bool stop);
void ask_heard(struct mm *m, uint32_t link, const struct message_ask *a);
void ask_fetched(struct mm *m, const struct input_fetched *in);
/* A fetch on behalf of an inquiry has this and its place as ticket; others have a run. */
#define INQUIRY_TICKET ((uint64_t)1 << 63)

/* slices.c: slots take turns */
/* To which slots a run belongs: for its launch. */
void slices_launch(struct mm *m, const struct job *j, struct running *r,
                   struct message_launch *ret);
/* It is on its nodes: its time counts from now on. */
void slices_began(struct mm *m, struct running *r);
/* The court has put this job into other slots. */
void slices_moved(struct mm *m, const struct job *j);
/* What runs is of a former life, which may have said anything of slots. */
void slices_resume(struct mm *m);
/* A node has told what it has: it may know nothing of slots. */
void slices_node(struct mm *m, uint32_t node);
/* Every run may be in other slots than nodes know. */
void slices_all_moved(struct mm *m);
/* At most so many share a processor. */
uint32_t slices_share(const struct mm *m);
/* How long it has run since it began, its turns only. */
uint64_t slices_ran(struct mm *m, const struct running *r);
/* Says what has changed. */
void slices_settle(struct mm *m);
uint64_t slices_due(const struct mm *m); /* STORM_NEVER: nothing */

/* strobe.c: gangs */
/* To these nodes: run this slot now (GANG_ALL: there is only one). In a `cycle` these slots take turns from then on, each for a
 * quantum, in ascending order, by the nodes' own clocks until another strobe comes, and so much of the first turn is over;
 * without one (0) the next strobe says the next turn. Answer TURNED if `tell`. */
void strobe_turn(struct mm *m, const struct nodeset *set, uint8_t slot, uint32_t quantum_us,
                 uint64_t cycle, uint64_t spent_ns, bool tell);
/* Runs and the slots they belong to now: rows of SLOTS_ROW_BYTES. */
void strobe_slots(struct mm *m, const struct nodeset *set, uint64_t version, struct bytes rows);
void strobe_turned(struct mm *m, uint32_t node, const struct message_turned *t);

/* stream.c: output and input on their way through */
void stream_again(struct mm *m, struct running *r);
void stream_up(struct mm *m, const struct input_message *in);
void stream_pids(struct mm *m, const struct input_message *in);
void stream_down(struct mm *m, const struct input_message *in);

/* vitals.c: how nodes are, and what runs have used until now */
#define VITALS_TAG ((uint64_t)1 << 61) /* of requests */
size_t vitals_bytes(const struct mm_config *c);
void vitals_init(struct mm *m, struct arena *a);
void vitals_resume(struct mm *m);
void vitals_timer(struct mm *m);
/* Of all inputs. */
void vitals_input(struct mm *m, const struct input *in);
/* Fills in what is known. */
void vitals_of_node(const struct mm *m, uint32_t node, struct node_row *row);
void vitals_of_job(const struct mm *m, const struct job *j, struct job_row *row);

/* node.c */
void node_changed(struct mm *m, const struct input_nodes *in);
void node_announced(struct mm *m, uint32_t node);
/* It was in the way of a launch: not to be used until it has told again what it has. */
void node_suspect(struct mm *m, uint32_t node);
void node_drain(struct mm *m, const struct nodeset *set, bool drained, struct bytes reason,
                uint64_t at);
/* Is a change of one of these not durable yet? */
bool node_draining(const struct mm *m, const struct nodeset *set);
/* The change that was just made waits for this ticket; it is durable, or has never been. */
void node_drain_wait(struct mm *m, const struct nodeset *set, uint64_t ticket);
void node_drain_kept(struct mm *m, uint64_t ticket, bool kept);
void node_tick(struct mm *m);
/* Who is there, from now on. */
void node_roster(struct mm *m, const struct input_roster *in);
/* It has so many processors from now on, as soon as nothing is held there; 0: as many as usual. */
void node_width(struct mm *m, uint32_t node, uint32_t said);
void node_settle(struct mm *m);
/* What runs there of a former life needs so many: it has them until it is idle. Nobody holds all of it. */
void node_widen(struct mm *m, uint32_t node, uint32_t pes);
/* May something be put there? */
bool node_usable(const struct mm *m, uint32_t node);
/* Is it there, and may what has it already go on to use it? */
bool node_serves(const struct mm *m, uint32_t node);
bool node_all_usable(const struct mm *m, const struct nodeset *set);
/* A new life: whoever does not come back in time is lost. */
void node_resume(struct mm *m);

/* after.c: when an event is durable */
/* What was asked for a running job is in the log with this ticket, or is tried again. */
void after_keep(struct mm *m, const struct job *j, uint64_t ticket);
struct after *after_add(struct mm *m, uint64_t ticket, enum after_kind kind);
bool after_full(const struct mm *m, uint64_t more); /* so many would be too many now */
bool after_may_end(const struct mm *m,
                   uint32_t *ended); /* one more in this step, because of another? */
void after_logged(struct mm *m, const struct input_logged *in);
/* What could not be kept is tried again. */
void after_stalled(struct mm *m);

#include "mm/record.h"
