/* SPDX-License-Identifier: MIT */
/* A program's steward: what was asked for, what is known of hosts and processes, what is said to the machine manager, and
 * what is to be told to the program.
 *
 * No descriptors here: frames to be said are taken by steward_out, those that were heard are fed in. What is said is kept until it is
 * answered; when the conversation begins anew all of it is said again, and the manager, who knows repeated requests, is asked what
 * there is: so whatever happened meanwhile is found. */
#pragma once

#include "base/list.h"
#include "storm/carmi.h"
#include "wire/message.h"
#include "wire/row.h"

/* ---- what the program is told ---- */

enum { LETTER_BLOCKS = 4 };

struct letter {
    struct list at;
    struct carmi_message message;
    void *blocks[LETTER_BLOCKS]; /* that it points into */
    uint32_t block_count;
};

/* ---- what the program has asked for ---- */

enum call_kind {
    CALL_CONFIG,
    CALL_INFO,
    CALL_ADD,
    CALL_DELETE,
    CALL_ADD_NOTIFY,
    CALL_DELETE_NOTIFY,
    CALL_SUSPEND_NOTIFY,
    CALL_RESUME_NOTIFY,
    CALL_SPAWN,
    CALL_PROCESSES,
    CALL_CLASSES,
    CALL_ADD_TO_BE,        /* until it is known what its class is like; */
    CALL_ADD_NOTIFY_TO_BE, /* that there is such a class */
    CALL_PEERS,
    CALL_SEND,
    CALL_BROADCAST
};

enum slot { SLOT_WAITS, SLOT_HERE, SLOT_TOLD, SLOT_GONE };

struct call {
    struct list at;
    carmi_request id;
    int tag;
    enum call_kind kind;
    char *class_name;  /* NULL: any */
    carmi_host *hosts; /* DELETE, notices: these (none: all); CONFIG: found until now; INFO: one */
    size_t host_count, host_cap;
    /* ADD */
    uint32_t first; /* number of the first host; 0: not known yet */
    uint32_t count, increment;
    uint8_t *slots; /* enum slot, of each */
    uint32_t waits; /* so many do */
    bool partly;    /* DELETE: some were not ours */
    struct carmi_process_info *processes;
    size_t process_count;
    char *where; /* INFO: the node; */
    char *class_of;
    uint8_t state; /* and the state of the host */
    /* SEND, BROADCAST: `waits` for so many, `count` have it */
    carmi_process process; /* whom it is for; 0: many */
    int error;
    uint32_t book; /* PEERS: as this one has them */
};

/* ---- what there is ---- */

enum stage { STAGE_WAITS, STAGE_RUNS, STAGE_SUSPENDED, STAGE_GONE };

struct host {
    struct list at;
    uint32_t job;
    enum stage stage;
    char class_name[40];
    char where[64];       /* its node */
    carmi_request added;  /* by which call; 0: by none of ours */
    carmi_request leaves; /* the call that gives it back; 0: none */
    bool decided;         /* it is known who has asked for it; if we have, it was told */
    uint32_t survey;      /* in which it was last seen */
    uint32_t tasks;
};

struct task {
    struct list at;
    uint32_t job; /* 0: not known yet */
    carmi_request call;
    uint32_t host;
    char *executable;
    /* Until it runs: what it is to be, and its file here, if there is one. A host that lacks that is sent it. */
    uint8_t *spec;
    size_t spec_len;
    char *program;
    uint32_t sendings; /* it was sent so often */
    bool awaits;       /* that the file is made ready */
    bool told;         /* that it runs */
    bool settled;      /* it is over, and only its output may be missing */
    bool followed;     /* after we began anew: its news and its output will come */
    uint64_t taken[2], output;
    uint32_t status;
    uint64_t cpu_ns;
    int error; /* it could not be started: errno */
    uint32_t survey;
};

/* A process of the family that can be reached. */
struct acquaintance {
    struct list at;
    carmi_process id;
    uint32_t number, node, host;
    struct message_reach reach;
    char *name;
    char class_name[40];
};

/* Who wants to know: a new book is there; a job has so many processes, 0: it is over. */
struct steward_ear {
    void (*book)(void *context);
    void (*job)(void *context, uint32_t job, uint32_t procs);
};

/* ---- what is said to the manager ---- */

enum errand_kind {
    ERRAND_FOLLOW,
    ERRAND_SURVEY, /* what there is, for ourselves */
    ERRAND_OUTPUT, /* of one job, once more */
    ERRAND_LOOK,   /* at one job */
    ERRAND_CONFIG,
    ERRAND_PROCESSES,
    ERRAND_INFO_HOST,
    ERRAND_INFO_NODE,
    ERRAND_CLASSES, /* to list them, or to use one */
    ERRAND_DEFINE,
    ERRAND_UNDEFINE,
    ERRAND_ADD,
    ERRAND_END, /* hosts that are given back */
    ERRAND_SPAWN,
    ERRAND_OFFER, /* of a program's file */
    ERRAND_BOOK,  /* who can be reached */
    ERRAND_PEER,  /* is this job over? */
    ERRAND_QUIET, /* whatever the answer is */
    ERRAND_TAKEN, /* has none */
    ERRAND_REACH  /* neither */
};

struct errand {
    struct list at;
    uint64_t number;
    enum errand_kind kind;
    uint16_t type;
    bool said;
    carmi_request call; /* on whose behalf; 0: ours */
    uint32_t job;
    size_t len;
    uint8_t body[];
};

struct steward {
    uint64_t seed;    /* of request numbers: no other program draws the same */
    uint32_t own;     /* job of this process */
    uint32_t head;    /* of its family; 0: not known yet */
    bool ready;       /* what is asked for first is known */
    bool failed;      /* no memory */
    int refused;      /* 0, or -errno: the manager does not talk to us */
    bool anew;        /* that we begin anew is to be said */
    uint64_t numbers; /* of requests to the manager */
    int64_t calls_made;
    uint32_t surveys;
    uint32_t adds_unanswered;
    struct list errands, calls, hosts, tasks;
    struct list letters, given_out;
    /* Messages between processes: where this one is reached, and the others */
    struct message_reach reach; /* token 0: it is not */
    const struct steward_ear *ear;
    void *ear_context;
    struct list book, book_next; /* of entries; what is being read */
    uint32_t books, books_asked; /* numbers of these two */
    bool book_again;             /* it is to be asked for once more */
    uint8_t *scratch;            /* PETITION_BYTES_MAX */
    struct nodeset sets[2], none;
    /* What a process has written, to be written by the owner before anything else is fed in: 1 or 2, 0: nothing. */
    uint8_t output_to;
    struct bytes output;
};

/* 0 or -ENOMEM. */
int steward_init(struct steward *s, uint64_t seed, uint32_t own);
void steward_fini(struct steward *s);

/* The next frame to be said; false: none. When it is, steward_went. */
bool steward_out(struct steward *s, uint16_t *ret_type, struct bytes *ret_body);
void steward_went(struct steward *s);

/* A frame was heard. */
void steward_hear(struct steward *s, uint16_t type, struct bytes body);

/* The next letter, or the next of this call (0: any). It is the program's until the next is taken. */
bool steward_letter(struct steward *s, carmi_request call, struct carmi_message *ret);
bool steward_outstanding(const struct steward *s, carmi_request call);

/* carmi_letters.c */
struct letter *letter_add(struct steward *s, const struct call *c, enum carmi_kind kind);
void *letter_block(struct steward *s, struct letter *l, size_t bytes);
/* The same, not cleared: all of it will be written. */
void *letter_data(struct steward *s, struct letter *l, size_t bytes);
void letter_hosts(struct steward *s, struct letter *l, const carmi_host *hosts, size_t count);
void letter_failed(struct steward *s, struct letter *l, int error, struct bytes text);
void letter_free(struct letter *l);
void letter_classes(struct steward *s, struct letter *l, struct bytes rows);
/* What a host is like, as names and values. */
void letter_attributes(struct steward *s, struct letter *l, const struct call *c,
                       const struct node_row *row);

/* carmi_calls.c: requests, and who is told what */
struct call *call_add(struct steward *s, enum call_kind kind, int tag);
struct call *call_find(const struct steward *s, carmi_request id);
/* It is over, with or without a letter before. */
void call_end(struct call *c);
bool call_set_hosts(struct steward *s, struct call *c, const carmi_host *hosts, size_t count);
bool call_add_host(struct steward *s, struct call *c, carmi_host host);

/* carmi_classes.c: what the manager knows of classes, it alone */
void class_change(struct steward *s, struct call *c, enum verb verb, const struct carmi_class *d);
void class_answered(struct steward *s, enum errand_kind kind, struct call *c,
                    const struct message_answer *a);
/* All that there are: a call lists them, or uses one. */
void class_rows(struct steward *s, struct call *c, const struct message_rows *r);

/* carmi_steward.c */
struct errand *errand_add(struct steward *s, enum errand_kind kind, uint16_t type, union message *m,
                          carmi_request call);
void errand_ask(struct steward *s, enum errand_kind kind, enum subject subject, uint32_t job,
                carmi_request call);
void errand_act(struct steward *s, enum errand_kind kind, enum verb verb, uint32_t value,
                const carmi_host *jobs, size_t count, carmi_request call);
char *steward_copy(struct steward *s, struct bytes text);

/* carmi_book.c: who of the family can be reached */
void steward_listens(struct steward *s, const struct message_reach *reach,
                     const struct steward_ear *ear, void *context);
/* A book that is newer than this call: its number. */
uint32_t book_want(struct steward *s);
/* The conversation begins anew. */
void book_anew(struct steward *s);
void book_rows(struct steward *s, const struct message_rows *r);
void book_job(struct steward *s, uint32_t job, const struct message_rows *r);
void book_clear(struct list *book);

/* carmi_hosts.c */
struct host *host_find(const struct steward *s, uint64_t job);
/* A row of a host, or news of one. */
void host_row(struct steward *s, const struct job_row *row);
void host_stage(struct steward *s, struct host *h, enum job_state state);
void host_gone(struct steward *s, struct host *h);
/* Our call's hosts have these numbers; or it was refused. */
void hosts_answered(struct steward *s, carmi_request call, const struct message_answer *a);
/* They are given back; and what became of that. */
void hosts_end(struct steward *s, const carmi_host *hosts, size_t count);
void hosts_end_answered(struct steward *s, struct bytes jobs, enum answer code);
void hosts_cancel(struct steward *s, struct call *c);
/* A program may grow and shrink for ever: those that are gone take no room. */
void hosts_forget(struct steward *s);
/* A notice of hosts that come: those that are there are told of. */
void hosts_present(struct steward *s, struct call *c);

/* carmi_tasks.c */
struct task *task_find(const struct steward *s, uint32_t job);
struct task *task_of_call(const struct steward *s, carmi_request call);
void task_answered(struct steward *s, struct task *t, const struct message_answer *a);
void task_news(struct steward *s, struct task *t, const struct message_news *n);
/* The same from a row; NULL: nobody knows any more. */
void task_row(struct steward *s, struct task *t, const struct job_row *row);
void task_output(struct steward *s, const struct message_output *o);
void task_free(struct steward *s, struct task *t);
/* The manager need not keep it any more. */
void task_release(struct steward *s, const struct task *t);
/* It could not be done, or not any more. */
void task_fail(struct steward *s, struct task *t, int error, struct bytes why);

/* carmi_spawn.c: asks for the process; `files` go to its host before, if there are any. 0 or -errno. */
int task_order(struct steward *s, const struct task *t, struct bytes spec, struct bytes files);

/* carmi_ship.c */
/* It is over: because its host lacks the program? Then that is sent, and it begins anew. */
bool task_ships(struct steward *s, struct task *t, const struct message_news *n);
/* The file is ready, or is not. */
void ship_offered(struct steward *s, carmi_request call, const struct message_offered *o);
