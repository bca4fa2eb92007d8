/* SPDX-License-Identifier: MIT */
/* What the files of the node manager share.
 *
 * A run here:  told (PREPARED or SIGNAL) -> set up at the launcher -> started -> over -> forgotten.
 * What the launcher says of a run comes from whichever launcher is linked now; after the link was
 * broken we do not know whether it is still the same one, and CHECK each run. */
#pragma once

#include "nm/nm.h"
#include "wire/message.h"
#include "wire/owner.h"

/* Endings of nodes below that wait to be sent on together. */
enum { ENDINGS_MAX = 128 };

struct run {
    uint64_t run;         /* 0: the place is free */
    uint64_t order;       /* of the launch */
    bool decided;         /* it is to run */
    uint64_t agreed_at;   /* when we heard of it */
    bool handed;          /* the launcher has been told of it */
    uint32_t handed_to;   /* the life of that launcher */
    bool unsure;          /* by a launcher whose link broke since */
    bool over;            /* here */
    bool whole;           /* `set` is known: not so for a run that was adopted */
    struct ending ending; /* or, until then, the worst that has ended while others go on: .more */
    uint64_t slots;       /* of the matrix, as bits; 0: all */
    uint64_t version;     /* of the matrix that says so */
    bool measured;        /* what it has used until now, if it was asked for */
    struct usage usage;
    bool alone; /* one process here: the launcher has all it needs ready at all times */
    uint32_t setup_len;
    uint8_t *setup; /* limits.body_bytes; needed until it is started */
    /* Combining what comes from below, until it was sent once. */
    bool sent;
    struct nodeset set;    /* nodes that have processes of it */
    struct nodeset told;   /* of these, who has ended */
    struct nodeset clean;  /* told, not sent yet, ended well: */
    uint64_t clean_output; /* what these have written */
    struct usage clean_usage;
    struct ending *endings; /* told, not sent yet */
    uint32_t ending_count;
};

/* The launch that is written down. At first the one of our last life, until it is adopted or passed over. */
struct stow {
    uint64_t run;       /* 0: nothing */
    uint64_t handed_at; /* when the launcher was told of it, 0 if not by us */
    /* of the last life */
    uint32_t launcher_life;
    uint64_t slots, version;
    uint32_t setup_len; /* 0: it is settled */
    uint8_t *setup;     /* limits.body_bytes */
};

enum { DROPS_MAX = 16, ORDERS_MAX = 8 /* TRANSFER_PLACES */, ORDER_TEXT = 200 };

enum { FOLDERS_MAX = 256 };

/* A folder of a run. */
struct folder {
    uint64_t run;  /* 0: the place is free */
    bool unwanted; /* it is being removed */
    uint64_t asked_at;
};

/* A transfer that this node has a part in. */
struct order {
    uint64_t transfer; /* 0: the place is free */
    bool told;         /* the mover was */
    bool over;         /* here */
    int32_t error;     /* then: why it failed, 0 if it did not */
    uint64_t over_at;
    uint32_t len; /* of the order, as the mover gets it */
    uint8_t *body;
    uint32_t text_len;
    uint8_t text[ORDER_TEXT];
};

/* What tells that the machine's owner works there, and whether he does: see owner.c. */
struct owner {
    uint32_t len;
    char text[OWNER_TEXT_MAX];
    struct owner_watch watch; /* the same, read */
    bool judged;              /* we have looked */
    bool active;
    /* Of processors: when we looked the last two times, what anybody had used then; what runs had used at the last. */
    uint32_t looks;
    uint64_t looked_at[2], busy_ns[2], runs_before_ns;
    int64_t others_x800; /* eight times the mean of what others use, in hundredths */
    uint64_t loaded_at[OWNER_SIGNS_MAX]; /* by sign: when that was too much; 0: never */
};

struct nm {
    struct nm_config config;
    uint64_t now;
    struct effects *out;
    bool joined;
    bool attached;
    uint32_t settled; /* the epoch we are in, 0 if none */
    uint32_t epoch;   /* the last that was not 0 */
    struct nodeset below;
    struct nodeset scratch[2]; /* for decoding */
    struct nodeset work;
    uint32_t launcher; /* link; 0: none */
    uint32_t launcher_life;
    struct stow stow;
    uint64_t drops[DROPS_MAX]; /* runs for the launcher to forget when it is spoken to next */
    uint32_t drop_count;
    bool later;         /* TIMER_LATER is set */
    bool ready;         /* the launcher has told what it has */
    bool announced;     /* the root knows what we have */
    bool talks;         /* programs here have said something to the root */
    bool renewing;      /* the launcher has been told how long, and TIMER_RENEW is set */
    uint64_t repeat_at; /* the timer of that name, 0 if it is not set */
    struct run *runs;
    uint32_t run_end; /* all that are in use lie before this */
    uint32_t mover;   /* link; 0: none */
    bool mover_opening;
    bool mover_missed;  /* it was not reached, and is being tried once more */
    uint8_t wish[4096]; /* OFFERs for a mover that is not there yet */
    uint32_t wish_len;
    uint64_t files_idle_at; /* the mover is let go then, if there is nothing to do */
    struct order orders[ORDERS_MAX];
    struct folder folders[FOLDERS_MAX];
    bool gauged; /* we have looked at ourselves: */
    struct input_gauged gauge;
    struct owner owner;
    uint64_t runs_ns; /* of processors, that runs have used; as far as that was told */
};

#define RUNS_EACH(r, n)                                                \
    for (struct run *r = (n)->runs; r < (n)->runs + (n)->run_end; r++) \
        if (r->run != 0)

enum { COOKIE_LAUNCHER = 1, COOKIE_MOVER };

enum nm_timer {
    TIMER_LAUNCHER = 1, /* try to reach it again */
    TIMER_RENEW,
    TIMER_REPEAT, /* say again what was not heard */
    TIMER_LATER,  /* tell the launcher what did not hurry */
    TIMER_FILES,
    TIMER_FOLDERS,
    TIMER_HEALTH,
};

/* Set up by a former life of ours, in a launch of which we have not heard how it was decided. */
static inline bool run_adopted(const struct run *r) {
    return !r->decided && !r->over && !r->whole;
}

/* runs.c */
struct run *run_find(struct nm *n, uint64_t run);
/* NULL if there is no place. */
struct run *run_add(struct nm *n, uint64_t run);
void run_drop(struct nm *n, struct run *r);
/* It is over here; tells those above when it is time to. */
void run_over(struct nm *n, struct run *r, const struct ending *e);

/* stow.c: launches that the launcher does not know yet */
void stow_boot(struct nm *n, struct bytes stowed);
/* Instead of keeper_hand, before it is decided: false if that cannot wait. */
bool stow_run(struct nm *n, struct run *r);
/* The launcher has told all it has: what we had agreed to before we died, and it has never heard of, is
 * with us again. True if there was something. */
bool stow_adopt(struct nm *n);

/* launch.c */
void launch_prepared(struct nm *n, const struct input_prepared *in);
void launch_looked(struct nm *n, const struct input_looked *in);
void launch_decided(struct nm *n, const struct input_signal *in);
void launch_command(struct nm *n, const struct message_command *m);
void launch_forget(struct nm *n, const struct message_forget *m);
/* Another manager has taken over: launches that are not decided now never will be. */
void launch_settled(struct nm *n);

/* ends.c */
void ends_own(struct nm *n, struct run *r);
/* Somebody wants to know: said at once, with what has come from below. */
void ends_asked(struct nm *n, struct run *r);
void ends_heard(struct nm *n, const struct message_ends *m);
/* Who is below has changed: what we waited for may not come this way any more. */
void ends_check(struct nm *n);
/* Says again what has not been forgotten. */
void ends_repeat(struct nm *n);
/* One of its processes has ended badly, others go on: said at once, and whenever it may have been lost. */
void ends_early(struct nm *n, const struct run *r);
/* Nothing is known of this run here. */
void ends_unknown(struct nm *n, uint64_t run);

/* turns.c */
void turns_strobe(struct nm *n, const struct input_strobe *in);
void turns_heard(struct nm *n, const struct input_signal *in);
void turns_slots(struct nm *n, const struct message_slots *m);
void turns_told(struct nm *n, const struct message_turned *m);

/* orders.c: transfers of files */
void orders_heard(struct nm *n, const struct input_signal *in);
void orders_up(struct nm *n, const struct input_link *in);
void orders_down(struct nm *n);
void orders_message(struct nm *n, const struct input_message *in);
void orders_enough(struct nm *n, const struct input_message *in, const struct message_enough *e);
void orders_offer(struct nm *n, const struct input_message *in);
void orders_settled(struct nm *n);
void orders_timer(struct nm *n);

/* The mover is there, or will be. */
void orders_reach(struct nm *n);

/* folders.c: what runs have on this node beside their processes */
/* Those that the world has found. */
void folders_boot(struct nm *n, struct bytes runs);
/* This run has one, or is about to. False if there are too many. */
bool folders_add(struct nm *n, uint64_t run);
/* Nobody wants it any more, if there is one. */
void folders_drop(struct nm *n, uint64_t run);
/* The mover is there. */
void folders_up(struct nm *n);
/* The mover has removed them. */
void folders_gone(struct nm *n, const struct message_clear *m);
void folders_timer(struct nm *n);

/* health.c: how this node is */
void health_boot(struct nm *n);
void health_timer(struct nm *n);
void health_gauged(struct nm *n, const struct input_gauged *in);
void health_measured(struct nm *n, const struct message_measured *m);
/* What is known is kept for whoever asks. */
void health_publish(struct nm *n);

/* owner.c: whether somebody works at this machine */
void owner_heard(struct nm *n, const struct message_owner *m);
/* Looks at the machine; for its owner, too. */
void owner_look(struct nm *n);
void owner_gauged(struct nm *n, const struct input_gauged *in);
/* A run has used so much by now. */
void owner_measured(struct nm *n, const struct run *r, const struct usage *u);
/* keeper.c: the launcher's keeper */
void keeper_boot(struct nm *n);
void keeper_link_up(struct nm *n, const struct input_link *in);
void keeper_link_down(struct nm *n, const struct input_link *in);
void keeper_message(struct nm *n, const struct input_message *in);
void keeper_timer(struct nm *n, uint32_t id);
void keeper_hand(struct nm *n, struct run *r);
/* It need not keep this any more. There is no hurry: it is told with the next launch, or in a while. */
void keeper_drop(struct nm *n, uint64_t run);
void keeper_command(struct nm *n, uint64_t run, enum verb verb, uint32_t value, uint32_t more);
/* The same, as it came. */
void keeper_pass(struct nm *n, const struct message_command *m);
/* There is something for the launcher that can wait, but not for ever. */
void keeper_later(struct nm *n);
/* What programs have said to the root, or it to them, may be lost. */
void keeper_talks_anew(struct nm *n);
/* Tells the root that this is here. */
void keeper_have(struct nm *n, const struct run *r);
/* Tells the root what is here, once all is known and we are a member. */
void keeper_announce(struct nm *n);
