/* SPDX-License-Identifier: MIT */
/* The desk's state, shared by its files. */
#pragma once

#include "base/heap.h"
#include "base/idtable.h"
#include "base/list.h"
#include "wodi/desk.h"
#include "wodi/history.h"
#include "wodi/blocks.h"
#include "wodi/ranges.h"
#include "wodi/straggle.h"

enum step_state { STEP_WAITING, STEP_RUNNING, STEP_DONE };

struct step {
    struct heap_item wait; /* in its master's `waiting` */
    struct list result_at; /* in its master's `results` */
    uint64_t number;
    uint64_t arrival; /* never the same twice in a life */
    uint64_t seq;
    uint64_t ticket; /* records that must be durable before the result is sent */
    uint64_t ns;
    struct body work, result;
    uint32_t id;
    uint32_t status;
    uint32_t slot;   /* of its master */
    uint8_t state;   /* enum step_state */
    uint32_t copies; /* workers that have it */
};

/* Something that is told when it is durable; what comes while it waits is told with the next. */
struct mark {
    bool waits;
    uint64_t ticket, value; /* records that must be durable before the value is told */
    uint64_t latest;
};

struct session {
    bool used;
    uint32_t number;
    uint32_t link; /* plus one; 0: away */
    uint8_t speed_source;
    uint8_t classes;
    bool fewest;
    uint8_t name_len;
    uint8_t name[WORD_NAME_MAX];
    uint32_t needs[PROFILE_CLASSES_MAX];
    uint64_t speeds[PROFILE_CLASSES_MAX];
    uint64_t cookie;
    uint64_t bench_ns; /* what the first worker took for the benchmark */
    struct body init, bench, start, finish;

    uint64_t cycle; /* 0: before the first; steps may be sent then too */
    uint64_t cycle_steps;
    uint64_t ended;      /* all cycles up to this one are over */
    uint64_t arrived;    /* steps of this cycle */
    uint64_t hold_until; /* more of them are expected at once: the longest may be among them */
    bool open;
    struct ranges done;
    struct history history;
    struct straggle spread[PROFILE_CLASSES_MAX];

    struct heap waiting;
    struct list results; /* done, not acknowledged, by seq */
    struct step *unsent; /* the first of them that is to be sent */
    uint32_t steps, running;
    uint32_t work_blocks, result_blocks;
    uint32_t result_most; /* blocks, of the largest so far */
    uint64_t seq, acked;
    uint32_t flight, flight_blocks; /* results sent, not acknowledged */

    /* Of this connection. */
    uint64_t works_heard;
    struct mark kept, confirm;
};

/* What a worker knows of the master in a slot. */
struct told {
    uint32_t number; /* of the master; 0: nothing */
    uint64_t started, finished;
    uint64_t speed; /* measured; 0: not yet */
};

struct errand_at {
    uint32_t id; /* of a step; 0: the benchmark of master `arrival` */
    uint32_t slot;
    uint64_t arrival;
    uint64_t expected_ns;
};

struct worker {
    bool used;
    uint32_t link;
    uint32_t class;
    uint64_t speed;
    uint64_t since; /* the first of its steps is executed */
    uint64_t host;  /* as it says; 0: it does not */
    bool rests;     /* that stands still */
    uint64_t heard;
    bool pinged;
    uint64_t unsent;
    uint64_t version; /* what it was told last */
    struct told *told;
    struct errand_at *steps; /* a ring; the first is executed */
    uint32_t head, count;
    uint64_t load_ns;
};

enum peer { PEER_NONE, PEER_STRANGER, PEER_MASTER, PEER_WORKER };

struct peer_link {
    uint8_t peer; /* enum peer */
    bool local;
    uint32_t index; /* slot of a master, or worker */
    /* An answer that waits for its record. */
    bool answering;
    uint64_t answer_ticket;
    uint32_t answer;
};

struct desk {
    struct desk_limits limits;
    struct blocks pool;
    struct idtable ids;
    struct step *steps; /* by index of id */
    uint32_t *index;    /* hash table of (slot, number): index of step plus one */
    uint32_t index_mask;
    struct session *sessions;
    struct worker *workers;
    uint32_t workers_end; /* none from here on is used */
    uint32_t worker_count;
    struct peer_link *links;
    uint8_t *scratch; /* WORD_BODY_MAX */
    uint64_t records; /* appended */
    uint64_t durable;
    uint64_t arrivals;
    uint64_t version; /* of what workers are to be told */
    uint64_t changes;
    uint64_t results[PROFILE_CLASSES_MAX]; /* by class of worker */
    uint32_t numbers;                      /* of masters, given so far */
    uint32_t turn;                         /* slot that comes first among equals */
    uint32_t waiting;                      /* steps of all masters */
    uint32_t running;
    uint32_t quota; /* blocks for work, and for results, of each master */
    bool replaying;
};

/* desk_step.c */
struct step *desk_step_find(struct desk *d, uint32_t slot, uint64_t number);
struct step *desk_step_of(struct desk *d, const struct errand_at *e);
struct step *desk_step_new(struct desk *d, uint32_t slot, uint64_t number, struct bytes work);
void desk_step_free(struct desk *d, struct step *t);
void desk_step_wait(struct desk *d, struct step *t);
/* A result: it counts from now on. The first `seq` that was not given is its. */
void desk_step_finish(struct desk *d, struct step *t, uint32_t status, uint64_t ns,
                      struct bytes result);

/* desk_master.c */
struct session *desk_session_new(struct desk *d, const struct word *hello, uint32_t number);
/* A master that is known says what it is like now: workers that come are told that. False: as before, or not to be read. */
bool desk_session_changes(struct desk *d, struct session *s, const struct word *hello);
void desk_session_free(struct desk *d, struct session *s);
void desk_session_ack(struct desk *d, struct session *s, uint64_t seq);
void desk_session_begin(struct desk *d, struct session *s, const struct word *w);
void desk_session_hold(struct desk *d, struct session *s, uint64_t now);
void desk_session_end(struct desk *d, struct session *s, uint64_t cycle, struct bytes body);
bool desk_session_may_run(const struct desk *d, const struct session *s, uint64_t now);
void desk_master_hello(struct desk *d, uint32_t link, const struct word *w, struct deeds *out);
void desk_master_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                       struct deeds *out);
void desk_master_gone(struct desk *d, struct session *s);
bool desk_master_pump(struct desk *d, struct session *s, struct deeds *out);

/* desk_worker.c */
void desk_worker_hello(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                       struct deeds *out);
void desk_worker_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                       struct deeds *out);
void desk_worker_gone(struct desk *d, struct worker *k);
bool desk_worker_told(const struct desk *d, const struct worker *k, const struct session *s);
uint64_t desk_worker_speed(const struct desk *d, const struct session *s, const struct worker *k);
/* How long it will take for the step; 0: nothing is known. */
uint64_t desk_worker_expect(const struct desk *d, const struct worker *k, const struct step *t);
struct errand_at *desk_worker_errand(const struct desk *d, const struct worker *k, uint32_t n);
bool desk_worker_catch_up(struct desk *d, struct worker *k, uint64_t now, struct deeds *out);
void desk_worker_give(struct desk *d, struct worker *k, struct step *t, uint64_t now,
                      struct deeds *out);

/* desk_deal.c */
bool desk_deal(struct desk *d, uint64_t now, struct deeds *out);
void desk_deal_copies(struct desk *d, uint64_t now, struct deeds *out);

/* desk.c */
uint32_t desk_slot_of(const struct desk *d, const struct session *s);
void desk_log(struct desk *d, const struct word *w, struct deeds *out);
void desk_refuse(struct desk *d, uint32_t link, uint32_t status, struct deeds *out);
static inline bool room_for_one(const struct deeds *out) {
    return deeds_room(out) >= DEED_MAX;
}
