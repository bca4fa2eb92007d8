/* SPDX-License-Identifier: MIT */
/* A program's steward: see carmi_steward.h. Here: what is said to the manager, and what it says. */
#include "client/carmi_steward.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Clusters are smaller; and a host has one node. */
enum { UNIVERSE = 1 << 18, ROWS_AT_ONCE = 64, FOLLOW_OUTPUT = 1, FOLLOW_FAMILY = 4 };

char *steward_copy(struct steward *s, struct bytes text) {
    char *copy = calloc(1, text.len + 1);
    if (copy == NULL)
        s->failed = true;
    else if (text.len > 0)
        memcpy(copy, text.at, text.len);
    return copy;
}

/* ---- saying ---- */

static void set_request(struct steward *s, uint16_t type, union message *m, uint64_t number) {
    uint64_t *request = type == MESSAGE_ACT      ? m->act.request
                        : type == MESSAGE_ASK    ? m->ask.request
                        : type == MESSAGE_SUBMIT ? m->submit.request
                        : type == MESSAGE_OFFER  ? m->offer.request
                                                 : NULL;
    if (request == NULL)
        return;
    request[0] = s->seed;
    request[1] = number;
}

struct errand *errand_add(struct steward *s, enum errand_kind kind, uint16_t type, union message *m,
                          carmi_request call) {
    uint64_t number = ++s->numbers;
    set_request(s, type, m, number);
    long len = message_encode(type, m, room_of(s->scratch, PETITION_BYTES_MAX));
    struct errand *e = len < 0 ? NULL : malloc(sizeof *e + (size_t)len);
    if (e == NULL) {
        s->failed = s->failed || len >= 0;
        return NULL;
    }
    *e = (struct errand){
        .number = number, .kind = kind, .type = type, .call = call, .len = (size_t)len};
    memcpy(e->body, s->scratch, e->len);
    list_push_back(&s->errands, &e->at);
    return e;
}

void errand_ask(struct steward *s, enum errand_kind kind, enum subject subject, uint32_t job,
                carmi_request call) {
    union message m = {.ask = {.subject = (uint8_t)subject,
                               .job = job,
                               .most = ROWS_AT_ONCE,
                               .whole = subject == SUBJECT_NODES}};
    struct errand *e = errand_add(s, kind, MESSAGE_ASK, &m, call);
    if (e != NULL)
        e->job = job;
}

void errand_act(struct steward *s, enum errand_kind kind, enum verb verb, uint32_t value,
                const carmi_host *jobs, size_t count, carmi_request call) {
    uint8_t *numbers = malloc(4 * count + 1);
    if (numbers == NULL) {
        s->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        store_le32(numbers + 4 * i, (uint32_t)jobs[i]);
    union message m = {.act = {.verb = (uint8_t)verb,
                               .value = value,
                               .nodes = &s->none,
                               .jobs = bytes_of(numbers, 4 * count)}};
    struct errand *e = errand_add(s, kind, MESSAGE_ACT, &m, call);
    if (e != NULL && count == 1)
        e->job = (uint32_t)jobs[0];
    free(numbers);
}

static void errand_free(struct errand *e) {
    list_remove(&e->at);
    free(e);
}

static bool of_beginning(enum errand_kind kind) {
    return kind == ERRAND_FOLLOW || kind == ERRAND_SURVEY || kind == ERRAND_LOOK ||
           kind == ERRAND_TAKEN || kind == ERRAND_QUIET || kind == ERRAND_REACH ||
           kind == ERRAND_END || kind == ERRAND_BOOK || kind == ERRAND_OUTPUT;
}

/* Before all else: who follows first and looks then misses nothing. */
static void begin(struct steward *s) {
    struct list others;
    list_init(&others);
    list_move_all(&others, &s->errands);
    carmi_host own = s->own;
    errand_act(s, ERRAND_FOLLOW, VERB_FOLLOW, FOLLOW_FAMILY, &own, 1, 0);
    s->surveys++;
    errand_ask(s, ERRAND_SURVEY, SUBJECT_JOBS, 0, 0);
    book_anew(s);
    LIST_EACH (l, &s->tasks) {
        struct task *t = CONTAINER_OF(l, struct task, at);
        carmi_host job = t->job;
        t->followed = false;
        if (t->job != 0)
            errand_act(s, ERRAND_OUTPUT, VERB_FOLLOW, FOLLOW_OUTPUT, &job, 1, 0);
    }
    list_move_all(&s->errands, &others);
}

/* All that was not answered is said again. */
static void begin_anew(struct steward *s) {
    s->anew = true;
    LIST_EACH_SAFE (l, &s->errands) {
        struct errand *e = CONTAINER_OF(l, struct errand, at);
        e->said = false;
        if (of_beginning(e->kind))
            errand_free(e);
    }
    begin(s);
}

static struct errand *unsaid(const struct steward *s) {
    LIST_EACH (l, &s->errands) {
        struct errand *e = CONTAINER_OF(l, struct errand, at);
        if (!e->said)
            return e;
    }
    return NULL;
}

bool steward_out(struct steward *s, uint16_t *ret_type, struct bytes *ret_body) {
    const struct errand *e = unsaid(s);
    *ret_type = s->anew || e == NULL ? MESSAGE_NONE : e->type;
    *ret_body = s->anew || e == NULL ? (struct bytes){0} : bytes_of(e->body, e->len);
    return s->anew || e != NULL;
}

void steward_went(struct steward *s) {
    struct errand *e = s->anew ? NULL : unsaid(s);
    s->anew = false;
    if (e != NULL)
        e->said = true;
    if (e != NULL && (e->kind == ERRAND_TAKEN || e->kind == ERRAND_REACH))
        errand_free(e);
}

/* ---- rows ---- */

static struct errand *errand_find(const struct steward *s, const uint64_t request[2]) {
    LIST_EACH (l, &s->errands) {
        struct errand *e = CONTAINER_OF(l, struct errand, at);
        if (request[0] == s->seed && request[1] == e->number)
            return e;
    }
    return NULL;
}

static void note(struct steward *s, const struct job_row *row) {
    struct task *t = task_find(s, row->job);
    if (row->kind == JOB_RUN || row->kind == JOB_BATCH)
        s->head = row->job;
    else if (row->kind == JOB_ALLOC && row->parent != 0)
        host_row(s, row);
    else if (t != NULL)
        task_row(s, t, row);
}

/* What we think is there and was not found is looked for: perhaps it is known how it has ended. What was given back and is there
 * was not heard of, perhaps; to end it twice does no harm. */
static void surveyed(struct steward *s) {
    LIST_EACH (l, &s->hosts) {
        const struct host *h = CONTAINER_OF(l, struct host, at);
        carmi_host job = h->job;
        if (h->stage == STAGE_GONE)
            continue;
        if (h->survey != s->surveys)
            errand_ask(s, ERRAND_LOOK, SUBJECT_JOB, h->job, 0);
        else if (h->leaves != 0)
            hosts_end(s, &job, 1);
    }
    LIST_EACH (l, &s->tasks) {
        const struct task *t = CONTAINER_OF(l, struct task, at);
        if (t->survey != s->surveys && t->job != 0)
            errand_ask(s, ERRAND_LOOK, SUBJECT_JOB, t->job, 0);
    }
    s->ready = true;
}

static bool is_host(const struct steward *s, const struct job_row *row) {
    return row->kind == JOB_ALLOC && row->parent != 0 && row->parent == s->head &&
           (row->state == STATE_RUNNING || row->state == STATE_SUSPENDED);
}

static void config_row(struct steward *s, struct call *c, const struct job_row *row) {
    if (is_host(s, row))
        call_add_host(s, c, row->job);
}

static void config_done(struct steward *s, struct call *c) {
    letter_hosts(s, letter_add(s, c, CARMI_CONFIG), c->hosts, c->host_count);
    call_end(c);
}

/* Where a process runs, by what is known here, or by its node. */
static carmi_host host_of(const struct steward *s, const struct job_row *row) {
    const struct task *t = task_find(s, row->job);
    if (t != NULL)
        return t->host;
    LIST_EACH (l, &s->hosts) {
        const struct host *h = CONTAINER_OF(l, struct host, at);
        if (h->stage != STAGE_GONE && bytes_equal(bytes_from_str(h->where), row->node_list))
            return h->job;
    }
    return 0;
}

static void process_row(struct steward *s, struct call *c, const struct job_row *row) {
    const struct task *t = task_find(s, row->job);
    if (row->kind != JOB_STEP || row->job == s->own || state_over((enum job_state)row->state))
        return;
    char *executable = steward_copy(s, t != NULL ? bytes_from_str(t->executable) : row->name);
    void *more = executable == NULL
                     ? NULL
                     : realloc(c->processes, (c->process_count + 1) * sizeof *c->processes);
    if (more == NULL) {
        s->failed = true;
        free(executable);
        return;
    }
    c->processes = more;
    c->processes[c->process_count++] =
        (struct carmi_process_info){.id = row->job,
                                    .host = host_of(s, row),
                                    .parent = t != NULL && s->own != s->head ? s->own : 0,
                                    .executable = executable};
}

static void processes_done(struct steward *s, struct call *c) {
    struct letter *l = letter_add(s, c, CARMI_PROCESS_INFO);
    size_t bytes = 0;
    for (size_t i = 0; i < c->process_count; i++)
        bytes += strlen(c->processes[i].executable) + 1;
    struct carmi_process_info *list =
        l == NULL ? NULL : letter_block(s, l, c->process_count * sizeof *list);
    char *text = list == NULL ? NULL : letter_block(s, l, bytes);
    for (size_t i = 0; text != NULL && i < c->process_count; i++) {
        size_t len = strlen(c->processes[i].executable) + 1;
        list[i] = c->processes[i];
        list[i].executable = memcpy(text, c->processes[i].executable, len);
        text += len;
    }
    if (text != NULL) {
        l->message.processes = list;
        l->message.process_count = c->process_count;
    }
    call_end(c);
}

static void fail_call(struct steward *s, struct call *c, enum carmi_kind kind, int error,
                      const char *why) {
    letter_failed(s, letter_add(s, c, kind), error, bytes_from_str(why));
    call_end(c);
}

/* First where it is, then what that node is like. */
static void info_host(struct steward *s, struct call *c, const struct message_rows *r) {
    struct job_row row;
    size_t at = 0;
    if (job_row_next(r->rows, &at, &row) <= 0 || !is_host(s, &row)) {
        fail_call(s, c, CARMI_HOST_INFO, ESRCH, "the program does not have that host");
        return;
    }
    c->where = steward_copy(s, row.node_list);
    c->class_of = steward_copy(s, row.name);
    c->state = row.state;
    errand_ask(s, ERRAND_INFO_NODE, SUBJECT_NODES, 0, c->id);
}

static bool info_node(struct steward *s, struct call *c, const struct message_rows *r,
                      uint32_t *ret_next) {
    struct node_row row;
    for (size_t at = 0; node_row_next(r->rows, &at, &row) > 0;) {
        *ret_next = row.node + 1;
        if (!bytes_equal(row.name, bytes_from_str(c->where)))
            continue;
        struct letter *l = letter_add(s, c, CARMI_HOST_INFO);
        letter_hosts(s, l, c->hosts, 1);
        letter_attributes(s, l, c, &row);
        call_end(c);
        return true;
    }
    return false;
}

static void info_rows(struct steward *s, struct call *c, const struct message_rows *r) {
    uint32_t next = 0;
    if (info_node(s, c, r, &next))
        return;
    if (!r->last && next > 0)
        errand_ask(s, ERRAND_INFO_NODE, SUBJECT_NODES, next, c->id);
    else
        fail_call(s, c, CARMI_HOST_INFO, ESRCH, "its node is gone");
}

static void each_job(struct steward *s, enum errand_kind kind, struct call *c,
                     const struct job_row *row) {
    if (kind == ERRAND_SURVEY)
        note(s, row);
    else if (c != NULL && kind == ERRAND_CONFIG)
        config_row(s, c, row);
    else if (c != NULL)
        process_row(s, c, row);
}

/* Lists of jobs come in parts. */
static void jobs_rows(struct steward *s, enum errand_kind kind, carmi_request call,
                      const struct message_rows *r) {
    struct call *c = call_find(s, call);
    struct job_row row;
    uint32_t next = 0;
    for (size_t at = 0; job_row_next(r->rows, &at, &row) > 0; next = row.job + 1)
        each_job(s, kind, c, &row);
    if (!r->last && next > 0)
        errand_ask(s, kind, SUBJECT_JOBS, next, call);
    else if (kind == ERRAND_SURVEY)
        surveyed(s);
    else if (c != NULL && kind == ERRAND_CONFIG)
        config_done(s, c);
    else if (c != NULL)
        processes_done(s, c);
}

/* At one job: if nobody knows it, it is gone. */
static void look_rows(struct steward *s, uint32_t job, const struct message_rows *r) {
    struct host *h = host_find(s, job);
    struct task *t = task_find(s, job);
    struct job_row row;
    size_t at = 0;
    if (job_row_next(r->rows, &at, &row) > 0)
        note(s, &row);
    else if (h != NULL)
        host_gone(s, h);
    else if (t != NULL)
        task_row(s, t, NULL);
}

static void on_rows(struct steward *s, const struct message_rows *r) {
    struct errand *e = errand_find(s, r->request);
    if (e == NULL)
        return;
    struct call *c = call_find(s, e->call);
    if (e->kind == ERRAND_LOOK)
        look_rows(s, e->job, r);
    else if (e->kind == ERRAND_CLASSES && c != NULL)
        class_rows(s, c, r);
    else if (e->kind == ERRAND_INFO_HOST && c != NULL)
        info_host(s, c, r);
    else if (e->kind == ERRAND_INFO_NODE && c != NULL)
        info_rows(s, c, r);
    else if (e->kind == ERRAND_SURVEY || e->kind == ERRAND_CONFIG || e->kind == ERRAND_PROCESSES)
        jobs_rows(s, e->kind, e->call, r);
    else if (e->kind == ERRAND_BOOK)
        book_rows(s, r);
    else if (e->kind == ERRAND_PEER)
        book_job(s, e->job, r);
    errand_free(e);
}

/* ---- answers and news ---- */

/* Which hosts it was about is in what was said. */
static void end_answered(struct steward *s, const struct errand *e, enum answer code) {
    union message said;
    if (message_decode(e->type, bytes_of(e->body, e->len), s->sets, &said) == 0)
        hosts_end_answered(s, said.act.jobs, code);
}

static void on_answer(struct steward *s, const struct message_answer *a) {
    struct errand *e = errand_find(s, a->request);
    if (e == NULL)
        return;
    struct call *c = call_find(s, e->call);
    struct task *t = e->kind == ERRAND_SPAWN    ? task_of_call(s, e->call)
                     : e->kind == ERRAND_OUTPUT ? task_find(s, e->job)
                                                : NULL;
    if (e->kind == ERRAND_FOLLOW) {
        if (a->code != ANSWER_DONE)
            s->refused = -EAGAIN; /* to ask again at once would only keep it busy */
    } else if (e->kind == ERRAND_OUTPUT) {
        if (t != NULL)
            t->followed = a->code == ANSWER_DONE;
    } else if (e->kind == ERRAND_ADD) {
        s->adds_unanswered--;
        hosts_answered(s, e->call, a);
    } else if (e->kind == ERRAND_END) {
        end_answered(s, e, (enum answer)a->code);
    } else if ((e->kind == ERRAND_DEFINE || e->kind == ERRAND_UNDEFINE) && c != NULL) {
        class_answered(s, e->kind, c, a);
    } else if (e->kind == ERRAND_OFFER) {
        struct message_offered none = {.error = -EAGAIN, .text = a->text};
        ship_offered(s, e->call, &none);
    } else if (t != NULL) {
        task_answered(s, t, a);
    }
    errand_free(e);
}

static void on_offered(struct steward *s, const struct message_offered *o) {
    struct errand *e = errand_find(s, o->request);
    if (e == NULL || e->kind != ERRAND_OFFER)
        return;
    ship_offered(s, e->call, o);
    errand_free(e);
}

static void on_news(struct steward *s, const struct message_news *n) {
    struct host *h = host_find(s, n->job);
    struct task *t = task_find(s, n->job);
    if (s->ear != NULL && state_over((enum job_state)n->state))
        s->ear->job(s->ear_context, n->job, 0);
    if (h != NULL)
        host_stage(s, h, (enum job_state)n->state);
    else if (t != NULL)
        task_news(s, t, n);
    else if (n->job != s->own && n->job != s->head && !state_over((enum job_state)n->state))
        errand_ask(s, ERRAND_LOOK, SUBJECT_JOB, n->job, 0); /* another has asked for it */
}

void steward_hear(struct steward *s, uint16_t type, struct bytes body) {
    union message m;
    if (type == MESSAGE_NONE) {
        begin_anew(s);
        return;
    }
    if (message_decode(type, body, s->sets, &m) < 0)
        return;
    if (type == MESSAGE_ANSWER)
        on_answer(s, &m.answer);
    else if (type == MESSAGE_ROWS)
        on_rows(s, &m.rows);
    else if (type == MESSAGE_NEWS)
        on_news(s, &m.news);
    else if (type == MESSAGE_OUTPUT)
        task_output(s, &m.output);
    else if (type == MESSAGE_OFFERED)
        on_offered(s, &m.offered);
}

/* ---- life ---- */

static bool make_sets(struct steward *s) {
    size_t each = nodeset_bytes(UNIVERSE);
    uint8_t *room = calloc(2, each);
    uint64_t *none = calloc(1, nodeset_bytes(64));
    s->scratch = malloc(PETITION_BYTES_MAX);
    nodeset_init(&s->sets[0], UNIVERSE, room);
    nodeset_init(&s->sets[1], UNIVERSE, room == NULL ? NULL : room + each);
    nodeset_init(&s->none, 64, none);
    return room != NULL && none != NULL && s->scratch != NULL;
}

int steward_init(struct steward *s, uint64_t seed, uint32_t own) {
    *s = (struct steward){.seed = seed, .own = own};
    struct list *const lists[] = {&s->errands, &s->calls,     &s->hosts, &s->tasks,
                                  &s->letters, &s->given_out, &s->book,  &s->book_next};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list_init(lists[i]);
    if (!make_sets(s)) {
        steward_fini(s);
        return -ENOMEM;
    }
    begin(s);
    return s->failed ? -ENOMEM : 0;
}

void steward_fini(struct steward *s) {
    LIST_EACH_SAFE (l, &s->errands)
        errand_free(CONTAINER_OF(l, struct errand, at));
    LIST_EACH_SAFE (l, &s->calls)
        call_end(CONTAINER_OF(l, struct call, at));
    LIST_EACH_SAFE (l, &s->tasks)
        task_free(s, CONTAINER_OF(l, struct task, at));
    LIST_EACH_SAFE (l, &s->hosts)
        free(CONTAINER_OF(l, struct host, at));
    list_move_all(&s->letters, &s->given_out);
    LIST_EACH_SAFE (l, &s->letters)
        letter_free(CONTAINER_OF(l, struct letter, at));
    book_clear(&s->book);
    book_clear(&s->book_next);
    free(s->scratch);
    free(s->sets[0].storage);
    free(s->none.storage);
}
