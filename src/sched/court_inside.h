/* SPDX-License-Identifier: MIT */
/* What the files of the court share.
 *
 * A job is a place in a table. It is later (its begin has not come), waits (in the queue, or in another if it names a
 * window), runs (in the sorted list of ends) or is spent: it runs, but has used up its estimate, and others may have
 * its PEs. */
#pragma once

#include "base/heap.h"
#include "base/text.h"
#include "base/units.h"
#include "sched/court.h"
#include "sched/matrix.h"
#include "sched/plan.h"

enum court_where { WHERE_NOWHERE, WHERE_LATER, WHERE_QUEUE, WHERE_BOOKED, WHERE_RUNS, WHERE_SPENT };
enum court_pending { PENDING_START = 1, PENDING_STOP = 2, PENDING_SLOTS = 4 };

/* The queue is a tree, too, see court_queue.c: of all jobs at and below this one the smallest of each. */
struct court_twig {
    uint32_t up, left, right;
    uint32_t nodes, pes;
    uint64_t estimate;
};

/* It did not fit in a slot: nor does it before so much was given back there, see matrix_row.gives. Holds in one era:
 * nothing but what is free has changed in its favour. */
struct court_lack {
    uint64_t era, until;
    uint32_t slot;
};

struct court_job {
    struct storm_job pub; /* first: policies point at it */
    const struct nodeset *only, *meets, *exclude, *avoid;
    struct heap_item later;
    uint64_t tie;        /* as it came, then as it started */
    uint32_t prev, next; /* in the queue, or of free places */
    struct court_twig tree;
    const struct court_section *sections;
    uint32_t set;          /* of its nodes */
    uint32_t parts;        /* the first of a set for each section */
    uint32_t window;       /* that it names */
    bool inside;           /* it runs there, and no policy knows it */
    uint8_t section_count; /* 0: it has none */
    bool takes_memory;     /* it, or a section of it */
    uint32_t memory;       /* on each node; of sections none */
    uint32_t news_next;
    struct court_lack lack;
    uint64_t found; /* slots it may run in, while that is found out */
    uint8_t where;
    uint8_t pending;
    bool in_news;
    bool stopping;
};

struct court_end_entry {
    uint64_t ends, tie;
    uint32_t job;
};

/* Who waits, by priority. */
struct court_line {
    uint32_t root, first, last, count;
};

/* Nodes that are kept for some for a while; see court_window.c. */
struct court_window {
    uint32_t id;
    uint64_t from, to;
    struct nodeset nodes;
};

struct court_windows {
    struct court_window at[STORM_WINDOWS_MAX]; /* as they begin; the places behind have sets, too */
    uint32_t count;
    uint32_t open;                           /* so many of them have begun */
    struct nodeset ahead[STORM_WINDOWS_MAX]; /* nodes of the next, of the next two, ... */
    struct nodeset up;                       /* nodes that can be used, windows aside */
    struct nodeset bar;                      /* to reckon with */
    uint64_t edge;                           /* the next begin or end */
};

/* Windows that keep a job out at some time, a bit each; shut: it is not the time of its own. */
struct court_bar {
    uint64_t mask;
    bool shut;
};

/* What is held for one job; see storm_reserve. */
struct court_room {
    bool held;
    bool exact; /* by node, else PEs are counted */
    uint32_t job, slot;
    uint64_t at;
    uint64_t extra;       /* counted: what others may have beyond `at` */
    uint16_t *free;       /* exact: by node */
    int64_t *memory;      /* exact, of a job that takes some: by node */
    uint64_t *may, *will; /* to reckon with: nodes it may have, and that will do for it */
    bool remembers;       /* it does, so what others take matters in all slots */
    struct court_bar bar; /* exact: what keeps it out at `at` */
};

/* What nodes have of memory, and what is left of it by jobs of all slots; see court_memory.c. */
struct court_memory {
    int64_t *has, *left;
    uint32_t limited; /* nodes that have a limit: without any it does not matter */
};

/* Jobs that were started in this decision, whose nodes nobody has seen yet; see court_swap.c. */
enum { COURT_SWAPS_MAX = 64 };

struct court_swaps {
    uint32_t jobs[COURT_SWAPS_MAX];
    uint32_t count;
    uint32_t tries, steps; /* that are left */
    bool chosen;           /* one of them chooses */
};

struct court {
    struct storm_host host; /* first: policies get it */
    struct court_config config;
    struct storm_limits limits; /* of now: as the policy sees them */
    const struct storm_policy *policy;
    void *self;
    uint64_t *own; /* COURT_OWN_MAX bytes each */
    uint64_t now;
    bool held, deciding, broken;
    uint64_t era; /* see court_lack */
    bool stirred; /* something has happened since the policy was asked */
    char words[COURT_WORDS_MAX];
    bool words_news;

    struct matrix matrix; /* a row for each slot, and one to reckon with */
    struct court_memory memory;
    struct court_job *jobs;
    uint32_t jobs_used, jobs_free;
    uint64_t ties;
    struct court_line queue, booked;
    struct heap later;

    struct court_end_entry *ends; /* sorted */
    uint32_t running;
    struct nodeset *sets;
    uint32_t *set_free;
    uint32_t set_free_count;
    struct nodeset *parts; /* of sections */
    uint32_t *part_next;   /* of the same job, or free */
    uint32_t part_free, part_free_count;

    uint32_t news_first, news_last;
    struct court_room room;
    struct court_windows windows;
    struct court_swaps swaps;
    uint32_t choosers;          /* jobs of the queue that do not take every node */
    struct nodeset scratch;     /* to reckon with */
    struct plan_step *forecast; /* to reckon with */
    uint32_t promised;          /* who was last held something for */

    uint32_t slot; /* that runs */
    bool turn_news;
    bool slots_changed; /* who runs as well where has to be found out anew */
    uint64_t quantum_at, wake_at;
};

static inline struct court *court_of(const struct storm_host *h) {
    return (struct court *)(uintptr_t)h;
}

static inline bool court_sliced(const struct court *c) {
    return (c->policy->flags & STORM_SLICED) != 0;
}

/* When it is expected to end, if it has not ended until now. */
static inline uint64_t court_end_at(const struct court *c, uint64_t ends) {
    return ends > c->now ? ends : c->now + 1;
}

/* Ticks from start to expected end, of a job and of any with that estimate. */
uint64_t court_span(const struct court *c, uint64_t estimate);
uint64_t court_span_of(const struct court *c, const struct court_job *j);
void court_pass_time(struct court *c, uint64_t now);
void court_stir(struct court *c); /* the policy is to be asked, now if it is not held */
struct want court_want(const struct court_job *j);
void court_run(struct court *c, struct court_job *j, uint64_t started, uint32_t slot);
void court_news(struct court *c, struct court_job *j, uint8_t what);
uint32_t court_ends_at(const struct court *c, uint64_t ends,
                       uint64_t tie); /* its place in `ends` */

/* court_seat.c */
void court_seats_init(struct court *c, uint64_t *storage);
/* Are there sets for its nodes? The next one that a job gets: what is in it counts for nothing. */
bool court_has_sets(const struct court *c, const struct court_job *j);
struct nodeset *court_next_set(struct court *c);
/* Nodes on which it holds the same number of PEs (WANT_WHOLE: all), and so much memory; false: it has not so many parts. */
struct court_part {
    const struct nodeset *set;
    uint32_t each, memory;
};
bool court_part(const struct court *c, const struct court_job *j, uint32_t k,
                struct court_part *ret);
/* It takes the least special nodes that fit; those of the next set (-EINVAL: they are not for its sections, or as
 * matrix_hold has it; -ENOMEM: one has too little memory); those it had, one set for each section. Nothing is changed if it cannot. */
int court_seat(struct court *c, struct court_job *j, const struct matrix_where *at);
int court_seat_on(struct court *c, struct court_job *j, const struct matrix_where *at,
                  uint32_t *ret_node);
int court_seat_again(struct court *c, struct court_job *j, uint32_t row,
                     const struct nodeset *sets);
void court_unseat(struct court *c, struct court_job *j);
/* What it holds, in another row. */
bool court_idle(const struct court *c, const struct court_job *j, uint32_t row);
void court_occupy(struct court *c, const struct court_job *j, uint32_t row);
void court_vacate(struct court *c, const struct court_job *j, uint32_t row);
bool court_seats_conserved(const struct court *c);

/* court_memory.c */
void court_memory_init(struct court *c);
/* What is left by node; NULL: it does not matter to this job. */
const int64_t *court_memory_for(const struct court *c, const struct court_job *j);
/* What it takes of its nodes changes hands. */
void court_memory_change(struct court *c, const struct court_job *j, bool take);
bool court_memory_conserved(const struct court *c);

/* court_queue.c */
void court_enqueue(struct court *c, struct court_job *j);
void court_dequeue(struct court *c, struct court_job *j);
/* The first job of the queue, from this place on, that may start in the slot now. COURT_NONE: none may. */
uint32_t court_candidate(const struct court *c, uint32_t from, uint32_t slot);
bool court_tree_conserved(const struct court *c, const struct court_line *line);

/* court_window.c */
size_t court_windows_sets(void);
void court_windows_init(struct court *c, uint64_t *storage);
/* Some begin or end now. */
void court_windows_pass(struct court *c);
/* Jobs that name an open one start there. */
void court_windows_start(struct court *c);
void court_windows_usable(struct court *c, const struct nodeset *nodes, bool usable);
bool court_window_is_open(const struct court *c, uint32_t id);
struct court_window *court_window_find(const struct court *c, uint32_t id);
struct court_bar court_bar_at(const struct court *c, const struct court_job *j, uint64_t at);
/* The nodes of it; NULL: it keeps nobody out. Not if it is shut. Valid until it is asked again. */
const struct nodeset *court_bar_set(const struct court *c, const struct court_job *j,
                                    struct court_bar bar);
/* Nodes that it may not have if it starts now, for what has not begun; NULL: it may have all. */
static inline const struct nodeset *court_barred(const struct court *c, const struct court_job *j) {
    const struct court_windows *w = &c->windows;
    if (w->count == w->open)
        return NULL;
    uint64_t ends = units_after(c->now, court_span_of(c, j));
    uint32_t reached = w->open;
    while (reached < w->count && w->at[reached].from < ends)
        reached++;
    return reached == w->open ? NULL : &w->ahead[reached - w->open - 1];
}
bool court_windows_conserved(const struct court *c);

/* court_outlook.c */
size_t court_outlook_steps(const struct court *c);

/* court_host.c: what policies call */
extern const struct storm_host_ops court_host_ops;
/* The policy was wrong: it is not called again. Always -EINVAL. */
int court_fault(struct court *c, const struct court_job *j, const char *words, uint32_t node);

/* court_room.c */
/* Nodes that it fits on in this slot, windows and memory aside or not; and when these are enough. */
uint32_t court_room_now(struct court *c, const struct court_job *j, uint32_t slot, bool barred,
                        bool memory);
uint64_t court_earliest(struct court *c, const struct court_job *j, uint32_t slot);
uint64_t court_reserve(struct court *c, const struct court_job *j, uint32_t slot);
/* Does it fit there, wherever in the slot? */
bool court_fits(struct court *c, const struct court_job *j, const struct matrix_where *at);
bool court_may(const struct court *c, const struct court_job *j, uint32_t slot);
/* Would it be in the way of what is held? */
bool court_outlasts(const struct court *c, const struct court_job *j, uint32_t slot);
/* All nodes of a slot that are not barred to it; within what is held for another, if it would outlast that. */
struct matrix_where court_where(const struct court *c, const struct court_job *j, uint32_t slot);
struct matrix_where court_where_within(const struct court *c, const struct court_job *j,
                                       uint32_t slot);
/* The job takes nodes in this slot, beside what is held if it would outlast that. */
int court_take(struct court *c, struct court_job *j, uint32_t slot, uint32_t first, uint32_t last);

/* court_swap.c */
void court_swaps_begin(struct court *c); /* a decision */
void court_swaps_end(struct court *c);
void court_swaps_note(struct court *c, const struct court_job *j);
void court_swaps_pin(struct court *c, const struct court_job *j); /* it stays where it is */
/* May there be room where none is seen? */
bool court_swaps_open(struct court *c);
/* Moves others so that it fits there. False: it does not, and nothing is changed. */
bool court_swap(struct court *c, const struct court_job *j, const struct matrix_where *at);
/* Nodes that those who wait insist on more than it does; NULL: none. Valid until it is asked again. */
const struct nodeset *court_coveted(struct court *c, const struct court_job *j);

/* court_slots.c */
void court_settle_slots(struct court *c);
void court_turn_next(struct court *c);
void court_turns(struct court *c, uint64_t due);
bool court_merge(struct court *c, uint32_t into, uint32_t from);
