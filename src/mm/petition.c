/* SPDX-License-Identifier: MIT */
/* Programs of jobs that talk to us: conversations, and what may be said in them.
 *
 * A program is a client whose link is a number of ours; what it hears goes to its node by mail (REPLY). Mail may
 * be lost: both ends count, and where the counts do not fit the conversation is over and the program begins anew.
 * What we know of it then goes with it, as with a client whose link breaks.
 *
 * A program speaks of its own family only: its job and what belongs to that. */
#include "base/assert.h"
#include "mm/inside.h"
#include "rm/say.h"
#include "wire/bundle.h"

enum {
    PETITIONERS_MAX = 1024,
    PETITIONERS_EACH_RUN = PETITIONERS_MAX / 4,
    PETITION_LINK = 1 << (IDTABLE_INDEX_BITS - 1), /* no real link has so high an index */
    SENT_MOST =
        4096,       /* frames on their way down: as many as hosts may start in one step, and more */
    HEARD_MOST = 8, /* frames that came up before we say so */
};

/* ---- the table ---- */

size_t petition_bytes(void) {
    return PETITIONERS_MAX * sizeof(struct petitioner) + idtable_bytes(PETITIONERS_MAX);
}

void petition_init(struct mm *m, struct arena *a) {
    m->petitioners = arena_take(a, petition_bytes(), 8);
    idtable_init(&m->petition_ids, PETITIONERS_MAX, m->petitioners + PETITIONERS_MAX);
    for (uint32_t i = 0; i < PETITION_BUCKETS; i++)
        m->petition_buckets[i] = NO_SLOT;
}

bool petition_is(uint32_t link) {
    return (link & PETITION_LINK) != 0;
}

static uint32_t *bucket_of(struct mm *m, uint32_t node, uint64_t run, uint32_t number) {
    return &m->petition_buckets[(run ^ run >> 16 ^ node ^ number) % PETITION_BUCKETS];
}

static struct petitioner *find(struct mm *m, uint32_t node, uint64_t run, uint32_t number) {
    for (uint32_t at = *bucket_of(m, node, run, number); at != NO_SLOT;
         at = m->petitioners[at].next) {
        struct petitioner *t = &m->petitioners[at];
        if (t->node == node && t->run == run && t->number == number)
            return t;
    }
    return NULL;
}

static struct petitioner *of_link(const struct mm *m, uint32_t link) {
    uint32_t index;
    if (!petition_is(link) || idtable_get(&m->petition_ids, link & ~PETITION_LINK, &index) < 0)
        return NULL;
    return &m->petitioners[index];
}

static uint32_t count_of(const struct mm *m, uint64_t run) {
    uint32_t count = 0;
    for (uint32_t i = 0; (i = idtable_next(&m->petition_ids, i)) != IDTABLE_NONE; i++)
        count += m->petitioners[i].run == run;
    return count;
}

static struct petitioner *add(struct mm *m, uint32_t node, const struct message_petition *p) {
    uint32_t id, index;
    if (count_of(m, p->run) >= PETITIONERS_EACH_RUN ||
        idtable_alloc(&m->petition_ids, &id, &index) < 0)
        return NULL;
    uint32_t *bucket = bucket_of(m, node, p->run, p->number);
    m->petitioners[index] = (struct petitioner){.link = id | PETITION_LINK,
                                                .node = node,
                                                .run = p->run,
                                                .number = p->number,
                                                .rank = p->rank,
                                                .next = *bucket};
    *bucket = index;
    return &m->petitioners[index];
}

static void drop(struct mm *m, struct petitioner *t) {
    uint32_t place = (uint32_t)(t - m->petitioners);
    uint32_t *at = bucket_of(m, t->node, t->run, t->number);
    while (*at != place)
        at = &m->petitioners[*at].next;
    *at = t->next;
    client_down(m, t->link);
    idtable_free(&m->petition_ids, t->link & ~PETITION_LINK);
}

void petition_run_over(struct mm *m, uint64_t run) {
    if (idtable_count(&m->petition_ids) == 0)
        return;
    for (uint32_t i = 0; (i = idtable_next(&m->petition_ids, i)) != IDTABLE_NONE; i++)
        if (m->petitioners[i].run == run)
            m->petitioners[i].lost = m->petition_lost = true;
}

/* Those that are lost are taken out when nobody goes through lists any more; others may be lost by that. */
void petition_settle(struct mm *m) {
    while (m->petition_lost) {
        m->petition_lost = false;
        for (uint32_t i = 0; (i = idtable_next(&m->petition_ids, i)) != IDTABLE_NONE; i++)
            if (m->petitioners[i].lost)
                drop(m, &m->petitioners[i]);
    }
}

/* ---- saying ---- */

static void send(struct mm *m, uint32_t node, const struct message_reply *r, struct bytes body) {
    nodeset_clear(&m->one);
    nodeset_add(&m->one, node);
    say_down(m->out, &m->one, MESSAGE_REPLY, &(union message){.reply = *r}, body);
}

static void say_reset(struct mm *m, uint32_t node, uint64_t run, uint32_t number) {
    struct message_reply r = {.run = run, .number = number, .reset = true};
    send(m, node, &r, (struct bytes){0});
}

static void reply(struct mm *m, struct petitioner *t, uint16_t type, struct bytes body) {
    struct message_reply r = {
        .run = t->run, .number = t->number, .sequence = t->sent, .heard = t->heard, .type = type};
    t->told = t->heard;
    send(m, t->node, &r, body);
}

static void pass(struct mm *m, struct petitioner *t, uint16_t type, struct bytes body) {
    if (t->sent - t->acked >= SENT_MOST || body.len > PETITION_BYTES_MAX) {
        t->lost = m->petition_lost = true;
        say_reset(m, t->node, t->run, t->number);
        return;
    }
    t->sent++;
    reply(m, t, type, body);
}

static void say(struct mm *m, struct petitioner *t, uint16_t type, const union message *what) {
    long len = message_encode(type, what, effects_tail(m->out));
    ASSERT(len >= 0);
    pass(m, t, type, effects_take(m->out, (size_t)len));
}

void petition_pass(struct mm *m, uint32_t link, uint16_t type, struct bytes body) {
    struct petitioner *t = of_link(m, link);
    if (t != NULL && !t->lost)
        pass(m, t, type, body);
}

void petition_say(struct mm *m, uint32_t link, uint16_t type, const union message *what) {
    struct petitioner *t = of_link(m, link);
    if (t != NULL && !t->lost)
        say(m, t, type, what);
}

/* ---- judging ---- */

uint32_t petition_head(const struct mm *m, uint32_t link) {
    const struct petitioner *t = of_link(m, link);
    return t == NULL ? 0 : family_head(m, run_job(t->run));
}

bool petition_of_family(const struct mm *m, uint32_t head, uint32_t job) {
    return job_find(m, job) != NULL && family_head(m, job) == head;
}

void petition_nodes(struct mm *m, uint32_t head, struct nodeset *ret) {
    nodeset_clear(ret);
    for (uint32_t i = 0; i < m->running_peak; i++) {
        const struct running *r = &m->runnings[i];
        if (r->job != 0 && r->phase != PHASE_OVER && petition_of_family(m, head, r->job))
            nodeset_unite(ret, &r->set);
    }
}

bool petition_peer(const struct mm *m, uint32_t head, uint32_t from, struct peer_row *ret) {
    for (uint32_t i = from; (i = idtable_next(&m->petition_ids, i)) != IDTABLE_NONE; i++) {
        const struct petitioner *t = &m->petitioners[i];
        const struct job *j = job_find(m, run_job(t->run));
        if (!t->reached || t->lost || j == NULL || family_head(m, j->id) != head)
            continue;
        const struct job *host = j->kind == JOB_STEP ? job_find(m, j->inside) : NULL;
        *ret = (struct peer_row){.place = i,
                                 .job = j->id,
                                 .rank = t->rank,
                                 .number = t->number,
                                 .node = t->node,
                                 .host = host == NULL ? 0 : host->id,
                                 .reach = t->reach,
                                 .name = bytes_of(j->name, j->name_len)};
        if (host != NULL)
            ret->class_name = bytes_of(host->name, host->name_len);
        return true;
    }
    return false;
}

static const char *judge_act(const struct mm *m, uint32_t head, const struct message_act *a) {
    switch ((enum verb)a->verb) {
    case VERB_FOLLOW:
    case VERB_UNFOLLOW:
    case VERB_SIGNAL:
    case VERB_SUSPEND:
    case VERB_RESUME:
    case VERB_END:
    case VERB_KILL:
    case VERB_DEFINE:
    case VERB_UNDEFINE:
        break;
    default:
        return "a program may not ask for that";
    }
    for (size_t at = 0; at < a->jobs.len; at += 4)
        if (!petition_of_family(m, head, load_le32(a->jobs.at + at)))
            return "that job is not of this program's family";
    return NULL;
}

static const char *judge_ask(const struct mm *m, uint32_t head, const struct message_ask *a) {
    if (a->subject == SUBJECT_JOBS || a->subject == SUBJECT_NODES || a->subject == SUBJECT_PEERS)
        return NULL; /* it is told of its own family only */
    if (a->subject != SUBJECT_JOB && a->subject != SUBJECT_WHY && a->subject != SUBJECT_CLASSES)
        return "a program may not ask for that";
    return petition_of_family(m, head, a->job) ? NULL : "that job is not of this program's family";
}

/* What goes before it comes from the node of who says so, into caches: nobody is sent to another address. */
static bool gives_own(struct mm *m, uint32_t node, const struct message_submit *s) {
    union message c;
    struct bundle b;
    if (s->files.len == 0)
        return true;
    return (s->flags & JOB_SEVERAL) == 0 &&
           message_decode(MESSAGE_COPY, s->files, m->scratch, &c) == 0 && c.copy.source == node &&
           c.copy.address.len == 0 && bundle_decode(c.copy.descriptor, &b) == 0 &&
           b.goal == GOAL_SPOOL;
}

static const char *judge_submit(struct mm *m, const struct petitioner *t, uint32_t head,
                                const struct message_submit *s) {
    bool step = s->kind == JOB_STEP && petition_of_family(m, head, s->inside);
    bool host = (s->flags & JOB_FAMILY) != 0 && s->parent == head;
    if (!step && !host)
        return "a program may only ask for hosts, and start processes on these";
    return s->inputs.len == 0 && gives_own(m, t->node, s)
               ? NULL
               : "a program may only give programs of its own node";
}

/* NULL, or why it is refused. */
static const char *judge(struct mm *m, const struct petitioner *t, uint16_t type,
                         const union message *c) {
    uint32_t head = family_head(m, run_job(t->run));
    if (type == MESSAGE_ACT)
        return judge_act(m, head, &c->act);
    if (type == MESSAGE_ASK)
        return judge_ask(m, head, &c->ask);
    if (type == MESSAGE_SUBMIT)
        return judge_submit(m, t, head, &c->submit);
    return type == MESSAGE_TAKEN || type == MESSAGE_OFFER || type == MESSAGE_REACH
               ? NULL
               : "a program may not say that";
}

static void refuse_ask(struct mm *m, struct petitioner *t, const struct message_ask *a,
                       const char *why) {
    union message r = {.rows = {.request = {a->request[0], a->request[1]},
                                .subject = a->subject,
                                .last = true,
                                .wrong = bytes_from_str(why)}};
    say(m, t, MESSAGE_ROWS, &r);
}

static void refuse(struct mm *m, struct petitioner *t, const uint64_t *request, enum answer code,
                   const char *why) {
    union message a = {.answer = {.code = (uint8_t)code, .text = bytes_from_str(why)}};
    if (request != NULL) { /* otherwise it could not be read */
        a.answer.request[0] = request[0];
        a.answer.request[1] = request[1];
    }
    say(m, t, MESSAGE_ANSWER, &a);
}

static void refuse_any(struct mm *m, struct petitioner *t, uint16_t type, const union message *c,
                       enum answer code, const char *why) {
    if (type == MESSAGE_ASK)
        refuse_ask(m, t, &c->ask, why);
    else
        refuse(m, t,
               type == MESSAGE_ACT      ? c->act.request
               : type == MESSAGE_SUBMIT ? c->submit.request
               : type == MESSAGE_OFFER  ? c->offer.request
                                        : NULL,
               code, why);
}

/* It is not trusted: what a real client could not have sent is not understood. */
static bool understood(struct mm *m, const struct message_petition *p, union message *ret) {
    const struct message_rule *rule = message_rule(p->type);
    return rule != NULL && (rule->from & 1U << ROLE_CLIENT) != 0 &&
           p->body.len <= rule->max_bytes && message_decode(p->type, p->body, m->scratch, ret) == 0;
}

/* Whatever it says of where: it has one file of its own node made ready, as it sees that. */
static void take_offer(struct mm *m, const struct petitioner *t, const struct message_offer *o) {
    struct message_offer own = *o;
    nodeset_clear(&m->work);
    nodeset_add(&m->work, t->node);
    own.set = &m->work;
    own.pattern = false;
    own.program = true;
    files_offer(m, t->link, &own);
}

static void take(struct mm *m, struct petitioner *t, const struct message_petition *p) {
    union message c;
    if (!understood(m, p, &c)) {
        refuse(m, t, NULL, ANSWER_REFUSED, "that cannot be understood");
        return;
    }
    const char *why = judge(m, t, p->type, &c);
    if (why != NULL) {
        refuse_any(m, t, p->type, &c, ANSWER_REFUSED, why);
        return;
    }
    if (p->type == MESSAGE_REACH) {
        t->reached = true;
        t->reach = c.reach;
        return;
    }
    struct input_message in = {.link = t->link, .peer = t->node, .type = p->type, .body = p->body};
    if (p->type == MESSAGE_OFFER)
        take_offer(m, t, &c.offer);
    else
        client_message(m, &in);
}

/* ---- hearing ---- */

static bool runs_there(const struct mm *m, uint64_t run, uint32_t node) {
    const struct job *j = job_find(m, run_job(run));
    const struct running *r = j == NULL ? NULL : job_running(m, j);
    return r != NULL && r->run == run && r->phase != PHASE_OVER && nodeset_has(&r->set, node);
}

/* Where there is no place for it what it says is refused, and it begins anew with what comes next. */
static void take_first(struct mm *m, uint32_t node, const struct message_petition *p) {
    union message c;
    struct petitioner passing = {
        .node = node, .run = p->run, .number = p->number, .heard = p->sequence};
    struct petitioner *t = add(m, node, p);
    if (t != NULL) {
        t->heard = p->sequence;
        take(m, t, p);
    } else if (understood(m, p, &c)) {
        refuse_any(m, &passing, p->type, &c, ANSWER_FULL, "too many programs talk to the manager");
    }
}

static void hear_stranger(struct mm *m, uint32_t node, const struct message_petition *p) {
    if (p->over || m->replaying)
        return;
    if (p->type == MESSAGE_NONE || p->sequence != 1)
        say_reset(m, node, p->run, p->number);
    else if (runs_there(m, p->run, node))
        take_first(m, node, p);
}

static void lose(struct mm *m, struct petitioner *t) {
    say_reset(m, t->node, t->run, t->number);
    drop(m, t);
}

static void hear(struct mm *m, struct petitioner *t, const struct message_petition *p) {
    if (p->heard - t->acked <= t->sent - t->acked)
        t->acked = p->heard;
    uint32_t ahead = p->sequence - t->heard;
    if (p->over) {
        drop(m, t);
    } else if (p->type == MESSAGE_NONE && ahead == 0) {
        reply(m, t, MESSAGE_NONE, (struct bytes){0});
    } else if (p->type == MESSAGE_NONE || (ahead > 1 && ahead <= INT32_MAX)) {
        lose(m, t);
    } else if (ahead == 1) {
        uint32_t link = t->link;
        t->heard++;
        take(m, t, p);
        t = of_link(m, link);
        if (t != NULL && !t->lost && t->heard - t->told >= HEARD_MOST)
            reply(m, t, MESSAGE_NONE, (struct bytes){0});
    }
}

void petition_heard(struct mm *m, const struct input_message *in) {
    union message c;
    if (in->peer >= m->config.limits.nodes ||
        message_decode(in->type, in->body, m->scratch, &c) < 0)
        return;
    struct petitioner *t = find(m, in->peer, c.petition.run, c.petition.number);
    if (t == NULL)
        hear_stranger(m, in->peer, &c.petition);
    else
        hear(m, t, &c.petition);
}
