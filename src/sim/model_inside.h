/* SPDX-License-Identifier: MIT */
/* What the files of the model share, and nobody else sees: see model.h.
 *
 *   model.c   time, nodes and their daemons
 *   census.c  who is a member, and the heartbeat
 *   ledger.c  the operations and their order
 *   survey.c  gathers and the records they bring
 *   post.c    mail */
#pragma once

#include "base/heap.h"
#include "base/list.h"
#include "base/random.h"
#include "sim/memory.h"
#include "sim/model.h"

enum due_kind {
    DUE_OP,      /* the next thing that happens to an operation */
    DUE_TIMER,   /* of a daemon */
    DUE_DURABLE, /* what a daemon persists is safe */
    DUE_SETTLE,  /* joining nodes have been gathered */
    DUE_JOIN,    /* they are members */
    DUE_DOWN,    /* a node that crashed is given up */
    DUE_OPEN,    /* a new root has gathered the survivors */
    DUE_TICK,    /* a heartbeat starts */
    DUE_WAVE,    /* and is back */
    DUE_SURVEY,  /* the next thing that happens to a gather */
    DUE_MAIL     /* a letter arrives */
};

/* Waits in the agenda for its time. It concerns one life of a node. */
struct due {
    struct heap_item item;
    uint8_t kind;
    uint32_t node;
    uint32_t life;
    uint64_t number; /* ticket, tick */
};

struct model_timer {
    struct due due;
    uint32_t id;
    struct model_timer *next;
};

struct model_buffer {
    uint32_t number;
    uint64_t bytes;
    uint8_t *at;
    struct model_buffer *next;
};

struct model_node {
    struct machine daemon;
    struct model_timer *timers;
    struct model_buffer *buffers;
    uint8_t *records; /* by channel, each behind its length; NULL if it has none */
    uint32_t boots;
    uint32_t asks; /* unanswered */
    bool up;
    bool idle;
};

/* What an operation costs, remembered: many in a row are alike. */
struct ledger_price {
    bool known;
    uint64_t bytes;
    uint32_t count;
    uint64_t whole_ns, apply_ns, gap_ns;
};

struct ledger {
    struct list flight;  /* ordered operations, until they are done */
    struct list armed;   /* standing compares */
    struct list waiting; /* for a root */
    struct list away;    /* on their way to the root or back */
    uint32_t flight_count;
    uint32_t armed_count;
    uint64_t next;         /* place in the order */
    uint64_t applied;      /* the newest that has taken effect */
    uint64_t start_at;     /* before that the next one cannot start */
    uint64_t last_decide;  /* of the newest operation ... */
    uint64_t last_apply;   /* ... these are planned ... */
    uint64_t last_done;    /* ... or past */
    uint64_t window[64];   /* when the operations of the last window are done, by order */
    uint64_t strobe;       /* number of the newest sent */
    uint64_t *strobe_seen; /* newest delivered, by channel */
    struct ledger_price prices[COST_KINDS];
};

struct model {
    struct model_config config;
    uint64_t now;
    uint64_t sequence;
    struct heap agenda;
    struct heap_item **agenda_array;
    struct model_node *nodes;
    uint32_t node_count;
    struct memory *memory;
    struct random lives;
    struct effects effects;
    void *effect_list;
    void *effect_bytes;
    struct ledger ledger;
    struct list surveys;
    uint32_t survey_count;
    /* census.c */
    uint32_t root;  /* the acting one, NO_NODE */
    uint32_t epoch; /* the highest there was */
    bool open;      /* it has gathered the survivors */
    bool settling;
    uint64_t tick;
    uint64_t tick_ns; /* when the newest started */
    uint64_t *set_storage;
    struct nodeset members;
    struct nodeset dead; /* members that have crashed and are not given up yet */
    struct nodeset joiners;
    struct nodeset joined;    /* between gathering and being members */
    struct nodeset listeners; /* nodes that are up and whose daemon wants to hear */
    struct nodeset scratch;
    struct nodeset scratch2;
    struct model_counts counts;
};

/* model.c */
void model_schedule(struct model *m, struct due *d, uint64_t at);
void model_cancel(struct model *m, struct due *d);
/* A due of its own that is freed when it has happened. */
void model_note(struct model *m, enum due_kind kind, uint32_t node, uint64_t number, uint64_t at);
/* Steps a daemon, unless it is idle or down, and carries out what it wants. */
void model_feed(struct model *m, uint32_t node, const struct input *in);
struct model_buffer *model_find_buffer(const struct model *m, uint32_t node, uint32_t number);

/* census.c */
void census_booted(struct model *m, uint32_t node, bool root);
void census_crashed(struct model *m, uint32_t node);
void census_due(struct model *m, const struct due *d);
/* The first node of the set that no operation may name now, NO_NODE if all are fit. */
uint32_t census_unfit(struct model *m, const struct nodeset *set);

/* ledger.c */
int ledger_init(struct model *m);
void ledger_fini(struct model *m);
void ledger_request(struct model *m, uint32_t node, const struct primitive *r);
void ledger_due(struct model *m, struct due *d);
void ledger_crashed(struct model *m, uint32_t node);
void ledger_closed(struct model *m); /* there is no root any more */
void ledger_opened(struct model *m); /* there is one again */

/* survey.c */
void survey_init(struct model *m);
void survey_fini(struct model *m);
void survey_request(struct model *m, uint32_t node, const struct primitive *r);
void survey_due(struct model *m, struct due *d);
void survey_closed(struct model *m); /* the root is gone, and nobody else waits */
void survey_given_up(struct model *m, const struct nodeset *gone);

/* post.c */
void post_request(struct model *m, uint32_t node, const struct primitive *r);
void post_due(struct model *m, const struct due *d);
