/* SPDX-License-Identifier: MIT */
/* A client of the simulated cluster: see customer.h.
 *
 * Four times a second it looks at everything it has under way and says what is to be said, or to be said
 * again. An errand is one order from its submission to its last byte. */
#include "sim/customer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "base/units.h"
#include "sim/act.h"
#include "wire/classes.h"
#include "wire/row.h"
#include "wire/sections.h"
#include "wire/spec.h"

#define LOOK_NS  (250 * NS_PER_MS)
#define AGAIN_NS (1200 * NS_PER_MS)
#define ASK_NS   (2 * NS_PER_S)

/* For output of a launcher that has died: nobody knows how much there was. And for what should be there. */
#define GIVE_UP_NS      (4 * NS_PER_S)
#define GIVE_UP_LATE_NS (45 * NS_PER_S)

enum {
    COOKIE = 1,
    TIMER_LOOK = 1,
    TYPE_BYTES = 6000,
    ACTS_MAX = 256,
    SPEC_BYTES = 1024,
    SECTIONS_BYTES = 128
};

struct errand {
    bool used;
    int32_t order;
    uint64_t asked_at; /* last time; 0: not on this link */
    bool followed;     /* on this link */
    uint64_t run;
    uint8_t state;
    uint64_t *next; /* of each stream: rank * 2 + (0, 1) */
    uint64_t received;
    uint64_t drained, typed_at;
    uint64_t settled_at;
    /* What it is going to do, 0: nothing. */
    uint64_t end_at, suspend_at, resume_at;
    uint8_t end_verb;
    uint32_t end_value;
    uint64_t said_at; /* the last of these */
    uint32_t steps;   /* of an allocation: still to come */
    uint32_t grows;   /* so often it will ask for hosts */
};

/* To be said until it is answered. */
struct wish {
    int32_t order; /* NO_ORDER: about nodes */
    uint8_t verb;
    uint32_t value, more;
    const char *text;
    const char *ranks; /* NULL: all */
    uint64_t request[2];
    uint64_t said_at;
    uint32_t reservation; /* its number; 0: it is none */
    uint32_t first, last; /* nodes of it */
    uint64_t from_ns, to_ns;
};

struct customer {
    struct customer_config config;
    struct random random;
    uint64_t now;
    struct effects *out;
    uint32_t link; /* 0: none */
    bool opening;
    uint64_t order_at; /* not before */
    uint64_t ask_at;
    struct errand errands[ERRANDS_MAX];
    struct wish wishes[ACTS_MAX];
    uint32_t wish_count;
    struct nodeset sets[2], none, nodes, exclude;
};

static struct order *order_of(const struct customer *c, const struct errand *e) {
    return &c->config.book->orders[e->order];
}

/* ---- saying ---- */

static void say(struct customer *c, uint16_t type, const union message *m) {
    if (c->link == 0)
        return;
    long len = message_encode(type, m, effects_tail(c->out));
    ASSERT(len >= 0);
    effects_send(c->out, c->link, 0, type, effects_take(c->out, (size_t)len), (struct bytes){0});
}

static void say_act(struct customer *c, const struct nodeset *nodes, uint32_t job, enum verb verb,
                    uint32_t value) {
    uint8_t jobs[4];
    store_le32(jobs, job);
    uint64_t one = random_u64(&c->random), two = random_u64(&c->random);
    union message m = {.act = {.request = {one, two},
                               .verb = (uint8_t)verb,
                               .value = value,
                               .nodes = (struct nodeset *)nodes,
                               .jobs = bytes_of(jobs, job == 0 ? 0 : 4),
                               .text = bytes_from_str("as it was wished")}};
    say(c, MESSAGE_ACT, &m);
}

static bool is_several(const struct order *o) {
    return (o->flags & JOB_SEVERAL) != 0 && (o->flags & JOB_SCRIPT) == 0 && o->kind != JOB_ALLOC &&
           o->procs > 1;
}

/* Two that do the same: what comes of it must not depend on that. */
static void make_programs(struct customer *c, const struct order *o, struct spec *s) {
    uint32_t first = 1 + (uint32_t)(o->request[0] % (o->procs - 1));
    struct spec_program p = {
        .ranks = o->procs - first, .program = s->program, .arguments = s->arguments};
    uint8_t *room = effects_room(c->out, SPEC_BYTES / 2);
    long len = spec_program_store(&p, room_of(room, SPEC_BYTES / 2));
    ASSERT(len > 0);
    s->ranks = first;
    s->programs = bytes_of(room, (size_t)len);
}

static struct bytes make_spec(struct customer *c, const struct order *o) {
    struct spec s = {.stdin_mode = o->typed > 0 ? STDIN_RANK : STDIN_NONE,
                     .folder = bytes_from_str("/"),
                     .program = bytes_from_str(o->program),
                     .arguments = bytes_of(o->words, o->words_len)};
    if (is_several(o))
        make_programs(c, o, &s);
    uint8_t *room = effects_room(c->out, SPEC_BYTES);
    long len = spec_encode(&s, room_of(room, SPEC_BYTES));
    ASSERT(len > 0);
    return bytes_of(room, (size_t)len);
}

/* When it may start. What it was to wait for must be known by its number. */
static struct bytes when(struct customer *c, struct order *o) {
    const struct order *other = book_awaited(c->config.book, o);
    if (other == NULL || other->job == 0 || other->kind == JOB_STEP) {
        o->after = 0;
        return (struct bytes){0};
    }
    uint8_t *room = effects_room(c->out, AWAIT_BYTES);
    room[0] = o->after_kind;
    store_le32(room + 1, other->job);
    return bytes_of(room, AWAIT_BYTES);
}

static uint64_t begin_of(const struct customer *c, const struct order *o) {
    return o->begin_ns == 0 ? 0 : o->begin_ns + (o->asked_at == 0 ? c->now : o->asked_at);
}

/* Of a reservation; none has a name of no length. */
static struct bytes name_of(uint32_t reservation, char out[8]) {
    struct text t;
    text_init(&t, out, 8);
    if (reservation != 0) {
        text_char(&t, 'w');
        text_u64(&t, reservation);
    }
    return bytes_of(out, t.len);
}

/* Of a step nothing: its allocation has its nodes. */
static struct bytes need_of(const struct order *o, char out[16]) {
    struct text t;
    text_init(&t, out, 16);
    if (o->speed != 0 && o->kind != JOB_STEP) {
        text_str(&t, o->faster ? "speed>=" : "SPEED = ");
        text_u64(&t, o->speed);
    }
    return bytes_of(out, t.len);
}

/* Some ask for their nodes in two sections, of which the second has the need. */
static struct bytes sections_of(struct customer *c, const struct order *o, struct bytes need) {
    if (!order_splits(o))
        return (struct bytes){0};
    uint32_t half = o->nodes / 2;
    const struct section both[] = {
        {.nodes = o->nodes - half, .ppn = o->ppn, .procs = (o->nodes - half) * o->ppn},
        {.nodes = half, .ppn = o->ppn, .procs = half * o->ppn, .need = need}};
    uint8_t *room = effects_room(c->out, SECTIONS_BYTES);
    size_t len = 0;
    for (size_t i = 0; i < 2; i++) {
        long more = section_store(&both[i], room_of(room + len, SECTIONS_BYTES - len));
        ASSERT(more > 0);
        len += (size_t)more;
    }
    return bytes_of(room, len);
}

static struct bytes classes_of(struct customer *c, const struct order *o) {
    if (o->hosts + o->hosts_more == 0)
        return (struct bytes){0};
    struct host_class one = {.least = o->hosts,
                             .most = o->hosts + o->hosts_more,
                             .ppn = 1,
                             .name = bytes_from_str("host")};
    uint8_t *room = effects_room(c->out, SECTIONS_BYTES);
    long len = class_store(&one, room_of(room, SECTIONS_BYTES));
    ASSERT(len > 0);
    return bytes_of(room, (size_t)len);
}

static void submit(struct customer *c, struct errand *e) {
    struct order *o = order_of(c, e);
    uint32_t inside = 0, parent = 0;
    char reservation[8], words[16];
    struct bytes need = need_of(o, words), sections = sections_of(c, o, need);
    struct bytes classes = classes_of(c, o);
    if (sections.len > 0)
        need = (struct bytes){0};
    if (o->kind == JOB_STEP)
        inside = c->config.book->orders[o->around].job;
    if ((o->flags & JOB_FAMILY) != 0)
        parent = c->config.book->orders[o->around].job;
    nodeset_clear(&c->nodes);
    nodeset_clear(&c->exclude);
    if (o->on >= 0)
        nodeset_add(&c->nodes, (uint32_t)o->on);
    if (o->exclude >= 0)
        nodeset_add(&c->exclude, (uint32_t)o->exclude);
    union message m = {.submit = {.request = {o->request[0], o->request[1]},
                                  .kind = (uint8_t)o->kind,
                                  .flags = (is_several(o) ? o->flags : o->flags & ~JOB_SEVERAL) |
                                           (need.len > 0 ? JOB_NEEDS : 0U) |
                                           (sections.len > 0 ? JOB_SECTIONS : 0U) |
                                           (classes.len > 0 ? JOB_CLASSES : 0U),
                                  .need = need,
                                  .sections = sections,
                                  .classes = classes,
                                  .nodes = o->nodes,
                                  .ppn = o->ppn,
                                  .procs = o->procs,
                                  .inside = inside,
                                  .parent = parent,
                                  .together = o->together,
                                  .array_first = o->count > 1 ? 1 : 0,
                                  .array_last = o->count > 1 ? o->count : 0,
                                  .limit_ns = o->limit_ns,
                                  .begin_ns = begin_of(c, o),
                                  .after = when(c, o),
                                  .priority = o->priority,
                                  .on = &c->nodes,
                                  .exclude = &c->exclude,
                                  .name = bytes_from_str("order"),
                                  .reservation = name_of(o->reservation, reservation),
                                  .spec = make_spec(c, o)}};
    if (o->asked_at == 0)
        o->asked_at = c->now;
    e->asked_at = c->now;
    say(c, MESSAGE_SUBMIT, &m);
}

static bool takes_output(const struct order *o) {
    return o->kind != JOB_ALLOC && o->count == 1;
}

static void follow(struct customer *c, struct errand *e) {
    const struct order *o = order_of(c, e);
    e->followed = true;
    say_act(c, &c->none, o->job, VERB_FOLLOW,
            takes_output(o) || (o->kind == JOB_ALLOC && o->count == 1) ? 1 : 2);
}

/* ---- errands ---- */

static void begin(struct customer *c, int32_t order) {
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        struct errand *e = &c->errands[i];
        if (e->used)
            continue;
        *e = (struct errand){.used = true, .order = order};
        e->next = calloc((size_t)c->config.book->orders[order].procs * 2, sizeof *e->next);
        ASSERT(e->next != NULL);
        return;
    }
    assert_failed("a free errand", __FILE__, __LINE__);
}

static uint32_t busy(const struct customer *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < ERRANDS_MAX; i++)
        n += c->errands[i].used;
    return n;
}

static void finish(struct customer *c, struct errand *e) {
    if (order_of(c, e)->job != 0)
        say_act(c, &c->none, order_of(c, e)->job, VERB_UNFOLLOW, 0);
    free(e->next);
    e->next = NULL;
    e->used = false;
    if (c->config.pause_ns > 0)
        c->order_at = c->now + random_below(&c->random, c->config.pause_ns);
}

/* What it will do with a job that it has. */
static void plan(struct customer *c, struct errand *e) {
    struct random *r = &c->random;
    struct order *o = order_of(c, e);
    if (c->config.draw == NULL)
        return;
    if (o->kind == JOB_ALLOC) {
        e->steps = o->count > 1 ? 0 : (uint32_t)random_below(r, 3);
        e->end_at = c->now + random_between(r, NS_PER_S, 8 * NS_PER_S);
        e->end_verb = VERB_END;
    } else if (random_chance(r, 1, 7)) {
        static const uint8_t verbs[] = {VERB_END, VERB_KILL, VERB_SIGNAL, VERB_SIGNAL};
        static const uint32_t signals[] = {0, 0, 15, 9};
        uint64_t which = random_below(r, 4);
        e->end_at = c->now + random_below(r, 3 * NS_PER_S) + 1;
        e->end_verb = verbs[which];
        e->end_value = signals[which];
    } else if (random_chance(r, 1, 6)) {
        e->grows = 1 + (uint32_t)random_below(r, 2);
    } else if (random_chance(r, 1, 8)) {
        e->suspend_at = c->now + random_below(r, 2 * NS_PER_S) + 1;
        e->resume_at = e->suspend_at + random_below(r, 3 * NS_PER_S);
    }
}

static struct errand *errand_of_job(struct customer *c, uint32_t job) {
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        struct errand *e = &c->errands[i];
        const struct order *o = e->used ? order_of(c, e) : NULL;
        if (o != NULL && o->job != 0 && job >= o->job && job - o->job < o->count)
            return e;
    }
    return NULL;
}

/* ---- input ---- */

static void type_some(struct customer *c, struct errand *e) {
    const struct order *o = order_of(c, e);
    if (e->run == 0 || e->drained >= o->typed || c->link == 0)
        return;
    uint64_t len = o->typed - e->drained;
    if (len > TYPE_BYTES)
        len = TYPE_BYTES;
    uint8_t *bytes = effects_room(c->out, (size_t)len);
    for (uint64_t i = 0; i < len; i++)
        bytes[i] = act_byte(e->drained + i);
    union message m = {.typed = {.run = e->run,
                                 .rank = 0,
                                 .end = e->drained + len == o->typed,
                                 .offset = e->drained,
                                 .bytes = bytes_of(bytes, (size_t)len)}};
    e->typed_at = c->now;
    say(c, MESSAGE_TYPED, &m);
}

static void on_drained(struct customer *c, const struct message_drained *m) {
    struct errand *e = errand_of_job(c, run_job(m->run));
    if (e == NULL || e->run != m->run || m->offset <= e->drained)
        return;
    e->drained = m->offset;
    type_some(c, e);
}

/* ---- output ---- */

static void begin_run(struct customer *c, struct errand *e, uint64_t run) {
    if (run <= e->run)
        return;
    e->run = run;
    e->received = e->drained = 0;
    memset(e->next, 0, (size_t)order_of(c, e)->procs * 2 * sizeof *e->next);
}

static void check_bytes(struct customer *c, const struct message_output *m, uint64_t from) {
    for (uint64_t at = from; at < m->offset + m->bytes.len; at++)
        if (m->bytes.at[at - m->offset] != act_byte(at)) {
            verdict_add(c->config.book->verdict, "output",
                        "run %" PRIx64 " rank %" PRIu32 ".%u: a wrong byte at %" PRIu64, m->run,
                        m->rank, m->stream, at);
            return;
        }
}

static void on_output(struct customer *c, const struct message_output *m) {
    struct errand *e = errand_of_job(c, run_job(m->run));
    if (e == NULL || m->run < e->run)
        return;
    begin_run(c, e, m->run);
    if (m->rank >= order_of(c, e)->procs) {
        verdict_add(c->config.book->verdict, "output", "run %" PRIx64 " has no rank %" PRIu32,
                    m->run, m->rank);
        return;
    }
    uint64_t *next = &e->next[m->rank * 2 + m->stream - 1], end = m->offset + m->bytes.len;
    if (m->offset > *next)
        return; /* what comes before is still on its way */
    if (end > *next) {
        check_bytes(c, m, *next);
        e->received += end - *next;
        *next = end;
    }
    union message taken = {
        .taken = {.run = m->run, .rank = m->rank, .stream = m->stream, .offset = *next}};
    say(c, MESSAGE_TAKEN, &taken);
}

/* ---- what it is told ---- */

/* It has said the same twice, and was first told no, as what it named was not there yet: it does not want it any more. */
static void take_back(struct customer *c, const struct message_answer *a) {
    const struct book *b = c->config.book;
    for (uint32_t i = 0; a->code == ANSWER_DONE && a->job != 0 && i < b->count; i++) {
        const struct order *o = &b->orders[i];
        if (o->code == ANSWER_REFUSED && o->request[0] == a->request[0] &&
            o->request[1] == a->request[1])
            say_act(c, &c->none, a->job, VERB_KILL, 0);
    }
}

static void on_answer(struct customer *c, const struct message_answer *a) {
    for (uint32_t i = 0; i < c->wish_count; i++)
        if (c->wishes[i].request[0] == a->request[0] && c->wishes[i].request[1] == a->request[1] &&
            a->code != ANSWER_FULL) {
            memmove(c->wishes + i, c->wishes + i + 1, (c->wish_count - i - 1) * sizeof *c->wishes);
            c->wish_count--;
            return;
        }
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        struct errand *e = &c->errands[i];
        struct order *o = e->used ? order_of(c, e) : NULL;
        if (o == NULL || o->request[0] != a->request[0] || o->request[1] != a->request[1])
            continue;
        bool first = o->job == 0;
        book_answer(c->config.book, e->order, a, c->now);
        if (a->code == ANSWER_FULL)
            e->asked_at = c->now; /* again in a while */
        else if (a->code != ANSWER_DONE)
            finish(c, e);
        else if (first)
            plan(c, e);
        if (a->code == ANSWER_DONE && e->used && !e->followed)
            follow(c, e);
        return;
    }
    take_back(c, a);
}

static bool all_settled(const struct order *o) {
    for (uint32_t i = 0; i < o->count; i++)
        if (!o->ends[i].settled)
            return false;
    return true;
}

static void on_news(struct customer *c, const struct message_news *n) {
    struct errand *e = errand_of_job(c, n->job);
    if (e == NULL)
        return;
    struct order *o = order_of(c, e);
    book_news(c->config.book, e->order, n);
    if (o->count == 1) {
        e->state = n->state;
        if (n->state != STATE_QUEUED)
            begin_run(c, e, n->run);
    }
    if (n->state == STATE_RUNNING && e->typed_at == 0)
        type_some(c, e);
    if (all_settled(o) && e->settled_at == 0)
        e->settled_at = c->now;
}

static void on_rows(struct customer *c, const struct message_rows *m) {
    size_t at = 0;
    struct job_row job;
    struct node_row node;
    int r = 1;
    while (r > 0 && (m->subject == SUBJECT_JOBS || m->subject == SUBJECT_NODES))
        r = m->subject == SUBJECT_JOBS ? job_row_next(m->rows, &at, &job)
                                       : node_row_next(m->rows, &at, &node);
    if (r < 0)
        verdict_add(c->config.book->verdict, "rows", "rows that cannot be read");
}

/* ---- looking ---- */

/* Is everything of it here? */
static bool has_all(struct customer *c, struct errand *e) {
    struct order *o = order_of(c, e);
    const struct ended *end = &o->ends[0];
    if (!takes_output(o) || (e->run == end->run && e->received == end->output)) {
        o->complete = takes_output(o);
        o->received = e->received;
        return true;
    }
    bool unsure = end->state == STATE_LOST || !state_over((enum job_state)end->state);
    o->received = e->received;
    return c->now > e->settled_at + (unsure ? GIVE_UP_NS : GIVE_UP_LATE_NS);
}

static void pursue_plans(struct customer *c, struct errand *e) {
    struct order *o = order_of(c, e);
    if (c->link == 0 || e->settled_at != 0 || c->now < e->said_at + NS_PER_S)
        return;
    e->said_at = c->now;
    if (e->end_at != 0 && c->now >= e->end_at) {
        o->killed = true;
        for (uint32_t i = 0; i < o->count; i++)
            if (!o->ends[i].settled)
                say_act(c, &c->none, o->job + i, (enum verb)e->end_verb, e->end_value);
        if (e->end_verb == VERB_SIGNAL && c->now > e->end_at + 5 * NS_PER_S)
            e->end_verb = VERB_KILL; /* it does not listen */
    } else if (e->suspend_at != 0 && c->now >= e->suspend_at && e->state == STATE_RUNNING) {
        e->suspend_at = 0;
        say_act(c, &c->none, o->job, VERB_SUSPEND, 0);
    } else if (e->state == STATE_SUSPENDED && e->resume_at != 0 && c->now >= e->resume_at) {
        say_act(c, &c->none, o->job, VERB_RESUME, 0);
    } else {
        e->said_at = 0;
    }
}

static void begin_steps(struct customer *c, struct errand *e) {
    struct order step;
    const struct order *o = order_of(c, e);
    while (e->steps > 0 && e->state == STATE_RUNNING && busy(c) < ERRANDS_MAX) {
        e->steps--;
        if (!c->config.draw(c->config.context, c->config.number, &c->random, &step))
            return;
        step.kind = JOB_STEP;
        step.count = 1;
        step.around = e->order;
        step.flags &= JOB_BAD_EXIT;
        step.after = 0;
        step.begin_ns = 0;
        step.on = step.exclude = -1;
        step.nodes = step.nodes < o->nodes ? step.nodes : o->nodes;
        step.ppn = step.ppn < o->ppn ? step.ppn : o->ppn;
        step.procs = step.nodes * step.ppn;
        begin(c, book_add(c->config.book, &step));
        o = order_of(c, e); /* the book may have moved */
    }
}

/* A job that runs asks for hosts. */
static void begin_hosts(struct customer *c, struct errand *e) {
    struct order host;
    if (e->grows == 0 || e->state != STATE_RUNNING || busy(c) >= ERRANDS_MAX ||
        order_of(c, e)->count > 1)
        return;
    e->grows--;
    if (!c->config.draw(c->config.context, c->config.number, &c->random, &host))
        return;
    host = (struct order){.customer = host.customer,
                          .request = {host.request[0], host.request[1]},
                          .kind = JOB_ALLOC,
                          .flags = JOB_FAMILY | JOB_LENT | JOB_DETACHED,
                          .nodes = 1,
                          .ppn = 1,
                          .procs = 1,
                          .count = 1 + (uint32_t)(host.request[0] % 4),
                          .around = e->order,
                          .together = (uint32_t)(host.request[1] % 3),
                          .on = -1,
                          .exclude = -1,
                          .program = "/actor"};
    begin(c, book_add(c->config.book, &host));
}

static void look_at(struct customer *c, struct errand *e) {
    struct order *o = order_of(c, e);
    if (o->job == 0) {
        if (c->link != 0 && (e->asked_at == 0 || c->now >= e->asked_at + AGAIN_NS))
            submit(c, e);
        return;
    }
    if (c->link != 0 && !e->followed)
        follow(c, e);
    if (e->settled_at != 0) {
        if (has_all(c, e))
            finish(c, e);
        return;
    }
    if (o->typed > 0 && c->now >= e->typed_at + AGAIN_NS)
        type_some(c, e);
    pursue_plans(c, e);
    begin_steps(c, e);
    begin_hosts(c, e);
}

static void say_reserve(struct customer *c, struct wish *w) {
    nodeset_clear(&c->nodes);
    nodeset_add_range(&c->nodes, w->first, w->last);
    char name[8];
    union message m = {.reserve = {.request = {w->request[0], w->request[1]},
                                   .cancel = w->to_ns == 0,
                                   .from_ns = w->from_ns,
                                   .to_ns = w->to_ns,
                                   .nodes = &c->nodes,
                                   .name = name_of(w->reservation, name)}};
    w->said_at = c->now;
    say(c, MESSAGE_RESERVE, &m);
}

static void say_wish(struct customer *c, struct wish *w) {
    struct order *o = w->order == NO_ORDER ? NULL : &c->config.book->orders[w->order];
    if (c->link == 0 || (o != NULL && o->job == 0) ||
        (w->said_at != 0 && c->now < w->said_at + AGAIN_NS))
        return;
    if (w->reservation != 0) {
        say_reserve(c, w);
        return;
    }
    uint32_t count = o == NULL ? 0 : o->count;
    uint8_t *jobs = effects_room(c->out, 4 * (size_t)count + 4);
    for (uint32_t k = 0; k < count; k++)
        store_le32(jobs + 4 * (size_t)k, o->job + k);
    nodeset_clear(&c->nodes);
    bool about_nodes = w->verb == VERB_DRAIN || w->verb == VERB_UNDRAIN;
    if (about_nodes)
        nodeset_add(&c->nodes, w->value);
    else if (w->verb == VERB_END || w->verb == VERB_KILL || w->verb == VERB_SIGNAL)
        o->killed = true;
    union message m = {.act = {.request = {w->request[0], w->request[1]},
                               .verb = w->verb,
                               .value = about_nodes ? 0 : w->value,
                               .more = w->more,
                               .nodes = &c->nodes,
                               .jobs = bytes_of(jobs, 4 * (size_t)count),
                               .text = bytes_from_str(w->text)}};
    uint8_t ranks[RANKS_BYTES_MAX];
    if (w->ranks != NULL) {
        int good = ranks_parse(w->ranks, ranks, &m.act.ranks);
        ASSERT(good == 0);
    }
    w->said_at = c->now;
    say(c, MESSAGE_ACT, &m);
}

static void grant_wishes(struct customer *c) {
    for (uint32_t i = 0; i < c->wish_count; i++)
        say_wish(c, &c->wishes[i]);
}

static void ask_something(struct customer *c) {
    static const uint8_t subjects[] = {SUBJECT_JOBS, SUBJECT_NODES, SUBJECT_CLUSTER, SUBJECT_JOBS};
    uint64_t which = random_below(&c->random, 4);
    uint64_t one = random_u64(&c->random);
    union message m = {.ask = {.request = {one, 7}, .subject = subjects[which], .most = 20}};
    c->ask_at = c->now + ASK_NS;
    say(c, MESSAGE_ASK, &m);
}

static void look(struct customer *c) {
    struct order o;
    effects_timer(c->out, TIMER_LOOK, c->now + LOOK_NS);
    if (c->link == 0 && !c->opening) {
        struct effect *e = effects_add(c->out, EFFECT_OPEN);
        e->open = (struct effect_open){.purpose = PURPOSE_CLIENT, .cookie = COOKIE};
        c->opening = true;
    }
    grant_wishes(c);
    for (uint32_t i = 0; i < ERRANDS_MAX; i++)
        if (c->errands[i].used)
            look_at(c, &c->errands[i]);
    if (c->link != 0 && c->now >= c->ask_at)
        ask_something(c);
    if (c->config.draw == NULL || *c->config.closed || busy(c) >= c->config.errands ||
        c->now < c->order_at)
        return;
    if (!c->config.draw(c->config.context, c->config.number, &c->random, &o))
        return;
    if (o.after != 0)
        o.after = c->config.book->count; /* the last; 0 if there is none */
    begin(c, book_add(c->config.book, &o));
}

/* ---- steps ---- */

static void on_message(struct customer *c, const struct input_message *in) {
    union message m;
    if (in->link != c->link)
        return;
    if (message_decode(in->type, in->body, c->sets, &m) < 0) {
        verdict_add(c->config.book->verdict, "client", "a message of type %u that cannot be read",
                    in->type);
        return;
    }
    if (in->type == MESSAGE_ANSWER)
        on_answer(c, &m.answer);
    else if (in->type == MESSAGE_NEWS)
        on_news(c, &m.news);
    else if (in->type == MESSAGE_OUTPUT)
        on_output(c, &m.output);
    else if (in->type == MESSAGE_DRAINED)
        on_drained(c, &m.drained);
    else if (in->type == MESSAGE_ROWS)
        on_rows(c, &m.rows);
}

/* A new link: what was not answered is asked again, what goes on is followed again. */
static void on_link(struct customer *c, const struct input_link *in, bool up) {
    if (!up && in->link != c->link && in->link != 0)
        return;
    c->opening = false;
    c->link = up ? in->link : 0;
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        c->errands[i].asked_at = 0;
        c->errands[i].followed = false;
    }
    if (up)
        look(c);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct customer *c = self;
    c->now = in->now;
    c->out = out;
    switch (in->kind) {
    case INPUT_BOOT:
    case INPUT_TIMER:
        look(c);
        break;
    case INPUT_LINK_UP:
        on_link(c, &in->link, true);
        break;
    case INPUT_LINK_DOWN:
        on_link(c, &in->link, false);
        break;
    case INPUT_MESSAGE:
        on_message(c, &in->message);
        break;
    default:
        break;
    }
}

struct customer *customer_new(const struct customer_config *config) {
    struct customer *c = calloc(1, sizeof *c);
    size_t bytes = nodeset_bytes(config->universe);
    ASSERT(c != NULL);
    c->config = *config;
    random_init(&c->random, config->seed);
    struct nodeset *const sets[] = {&c->sets[0], &c->sets[1], &c->none, &c->nodes, &c->exclude};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        void *storage = malloc(bytes);
        ASSERT(storage != NULL);
        nodeset_init(sets[i], config->universe, storage);
    }
    return c;
}

void customer_free(struct customer *c) {
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < ERRANDS_MAX; i++) {
        if (c->errands[i].used)
            order_of(c, &c->errands[i])->abandoned = true;
        free(c->errands[i].next);
    }
    free(c->sets[0].storage);
    free(c->sets[1].storage);
    free(c->none.storage);
    free(c->nodes.storage);
    free(c->exclude.storage);
    free(c);
}

struct machine customer_machine(struct customer *c) {
    return (struct machine){.self = c, .step = step};
}

int32_t customer_order(struct customer *c, const struct order *o) {
    int32_t number = book_add(c->config.book, o);
    begin(c, number);
    return number;
}

static struct wish *wish(struct customer *c, int32_t order, enum verb verb, uint32_t value) {
    ASSERT(c->wish_count < ACTS_MAX);
    uint64_t one = random_u64(&c->random);
    struct wish *w = &c->wishes[c->wish_count++];
    *w = (struct wish){.order = order,
                       .verb = (uint8_t)verb,
                       .value = value,
                       .text = "as it was wished",
                       .request = {one, 9}};
    return w;
}

void customer_act(struct customer *c, int32_t order, enum verb verb, uint32_t value) {
    wish(c, order, verb, value);
}

void customer_signal(struct customer *c, int32_t order, uint32_t signal, const char *ranks) {
    wish(c, order, VERB_SIGNAL, signal)->ranks = ranks;
}

void customer_policy(struct customer *c, const char *name, uint32_t slots, uint32_t quantum_us) {
    struct wish *w = wish(c, NO_ORDER, VERB_POLICY, slots);
    w->text = name;
    w->more = quantum_us;
}

void customer_drain(struct customer *c, uint32_t node, bool drained) {
    customer_act(c, NO_ORDER, drained ? VERB_DRAIN : VERB_UNDRAIN, node);
}

void customer_reserve(struct customer *c, uint32_t number, uint32_t first, uint32_t last,
                      uint64_t from_ns, uint64_t to_ns) {
    customer_act(c, NO_ORDER, VERB_CHECK, 0);
    struct wish *w = &c->wishes[c->wish_count - 1];
    w->reservation = number;
    w->first = first;
    w->last = last;
    w->from_ns = from_ns;
    w->to_ns = to_ns;
}

bool customer_idle(const struct customer *c) {
    return busy(c) == 0 && c->wish_count == 0;
}
