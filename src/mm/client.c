/* SPDX-License-Identifier: MIT */
/* Clients: who follows which job, and what they are told.
 *
 * A client that follows a job hears of every change; one of them may take its output. A job that
 * somebody runs is ended when nobody has taken its output for a while, unless it was to go on alone. */
#include "base/assert.h"
#include "mm/inside.h"
#include "rm/say.h"
#include "wire/gate.h"

enum { UNWRITTEN_MAX = 400 };

static uint32_t *bucket_of(struct mm *m, uint32_t job) {
    return &m->follow_buckets[job % FOLLOW_BUCKETS];
}

static uint32_t first_in(const struct mm *m, uint32_t job) {
    return m->follow_buckets[job % FOLLOW_BUCKETS];
}

static struct follow *find(const struct mm *m, uint32_t link, uint32_t job) {
    for (uint32_t at = first_in(m, job); at != NO_SLOT; at = m->follows[at].next)
        if (m->follows[at].link == link && m->follows[at].job == job)
            return &m->follows[at];
    return NULL;
}

static struct follow *add(struct mm *m, uint32_t link, uint32_t job) {
    uint32_t i = 0;
    while (i < m->follow_end && m->follows[i].link != 0)
        i++;
    if (i == m->follow_cap)
        return NULL;
    if (i == m->follow_end)
        m->follow_end++;
    uint32_t *bucket = bucket_of(m, job);
    m->follows[i] = (struct follow){.link = link, .job = job, .next = *bucket};
    *bucket = i;
    return &m->follows[i];
}

static void drop(struct mm *m, struct follow *f) {
    uint32_t place = (uint32_t)(f - m->follows);
    uint32_t *at = bucket_of(m, f->job);
    while (*at != place)
        at = &m->follows[*at].next;
    *at = f->next;
    f->link = 0;
    while (m->follow_end > 0 && m->follows[m->follow_end - 1].link == 0)
        m->follow_end--;
}

bool client_follow(struct mm *m, uint32_t link, uint32_t job, bool output, bool array) {
    struct follow *f = find(m, link, job);
    if (f == NULL)
        f = add(m, link, job);
    if (f == NULL)
        return false;
    f->output = f->output || output;
    f->array = f->array || array;
    struct job *j = job_find(m, job);
    struct running *r = j == NULL || !output ? NULL : job_running(m, j);
    if (r != NULL) {
        r->orphan_at = 0;
        due_set(m, r);
    }
    return true;
}

void client_follow_family(struct mm *m, uint32_t link, uint32_t job) {
    struct follow *f = find(m, link, job);
    if (f != NULL)
        f->family = true;
}

uint32_t client_of_output(const struct mm *m, const struct job *j) {
    uint32_t batch = 0;
    for (uint32_t at = first_in(m, j->id); at != NO_SLOT; at = m->follows[at].next)
        if (m->follows[at].job == j->id && m->follows[at].output)
            return m->follows[at].link;
    for (uint32_t at = first_in(m, 0); j->kind == JOB_BATCH && at != NO_SLOT;
         at = m->follows[at].next)
        if (m->follows[at].job == 0 && m->follows[at].output)
            batch = m->follows[at].link;
    return batch;
}

bool client_follows(const struct mm *m, uint32_t link, uint32_t job) {
    return link != 0 && find(m, link, job) != NULL;
}

/* Nobody takes its output any more. */
static void orphaned(struct mm *m, uint32_t job) {
    struct job *j = job_find(m, job);
    struct running *r = j == NULL ? NULL : job_running(m, j);
    if (j != NULL)
        end_unfollowed(m, j);
    if (r == NULL || r->phase != PHASE_GOING)
        return; /* when it starts */
    start_orphan(m, j, r);
    due_set(m, r);
}

void client_down(struct mm *m, uint32_t link) {
    files_client_down(m, link);
    for (uint32_t i = 0; i < m->follow_end; i++) {
        struct follow *f = &m->follows[i];
        if (f->link != link)
            continue;
        uint32_t job = f->output ? f->job : 0;
        drop(m, f);
        if (job != 0)
            orphaned(m, job);
    }
}

void client_say(struct mm *m, uint32_t link, uint16_t type, const union message *what) {
    if (petition_is(link))
        petition_say(m, link, type, what);
    else
        say_link(m->out, link, type, what, (struct bytes){0});
}

void client_pass(struct mm *m, uint32_t link, const struct input_message *in) {
    if (petition_is(link))
        petition_pass(m, link, in->type, in->body);
    else
        effects_send(m->out, link, 0, in->type, in->body, (struct bytes){0});
}

void client_answer(struct mm *m, uint32_t link, const uint64_t request[2], enum answer code,
                   uint32_t job, uint32_t count, const char *text) {
    union message a = {.answer = {.request = {request[0], request[1]},
                                  .code = (uint8_t)code,
                                  .job = job,
                                  .count = count,
                                  .text = bytes_from_str(text)}};
    if (link != 0) /* else nobody has asked */
        client_say(m, link, MESSAGE_ANSWER, &a);
}

static struct bytes words_of(const struct mm *m, const struct job *j) {
    const char *words = job_reason((enum reason)j->reason);
    return words != NULL ? bytes_from_str(words) : files_words(m, j->id);
}

static struct message_news describe(struct mm *m, const struct job *j) {
    const struct running *r = job_running(m, j);
    bool over = state_over((enum job_state)j->state);
    const struct ending *worst = over || r == NULL ? &j->worst : &r->worst;
    struct message_news n = {.job = j->id,
                             .run = run_of(j->id, j->attempt),
                             .state = j->state,
                             .settled = j->settled || (r != NULL && r->told),
                             .status = over ? j->status : 125,
                             .cause = worst->cause,
                             .step = worst->step,
                             .node = worst->node,
                             .rank = worst->rank,
                             .value = worst->value,
                             .bad = over || r == NULL ? j->bad : r->bad,
                             .procs = j->procs,
                             .map = (uint8_t)job_map(j->flags),
                             .sections = r == NULL ? (struct bytes){0} : sections_map(m, j, r),
                             .loose = j->loose,
                             .output = over || r == NULL ? j->output : r->output,
                             .held = j->settled && r != NULL && j->output > 0,
                             .since_ns = m->now - j->born,
                             .usage = j->usage,
                             .nodes = r == NULL ? &m->empty : (struct nodeset *)&r->set,
                             .waiting = &m->empty,
                             .text = words_of(m, j)};
    if (r != NULL && j->state == STATE_ENDING)
        n.waiting = (struct nodeset *)&r->waiting;
    return n;
}

static void tell(struct mm *m, uint32_t link, const struct message_news *n) {
    client_say(m, link, MESSAGE_NEWS, &(union message){.news = *n});
}

/* Of this job, or of all of its array. */
static void tell_followers(struct mm *m, const struct job *j, const struct message_news *n) {
    for (uint32_t at = first_in(m, j->id); at != NO_SLOT; at = m->follows[at].next)
        if (m->follows[at].job == j->id)
            tell(m, m->follows[at].link, n);
    uint32_t first = (uint32_t)j->key;
    for (uint32_t at = first_in(m, first); first != j->id && at != NO_SLOT;
         at = m->follows[at].next)
        if (m->follows[at].job == first && m->follows[at].array)
            tell(m, m->follows[at].link, n);
}

/* Those who follow its family, and not itself. */
static void tell_family(struct mm *m, const struct job *j, const struct message_news *n) {
    uint32_t head = family_head(m, j->id);
    for (uint32_t at = first_in(m, head); head != j->id && at != NO_SLOT; at = m->follows[at].next)
        if (m->follows[at].job == head && m->follows[at].family &&
            find(m, m->follows[at].link, j->id) == NULL)
            tell(m, m->follows[at].link, n);
}

/* An end is told when it is durable. */
void client_news(struct mm *m, const struct job *j) {
    if (state_over((enum job_state)j->state) && !j->settled)
        return;
    struct message_news n = describe(m, j);
    tell_followers(m, j, &n);
    tell_family(m, j, &n);
    for (uint32_t at = first_in(m, 0); j->kind == JOB_BATCH && at != NO_SLOT;
         at = m->follows[at].next)
        if (m->follows[at].job == 0 && n.settled && (n.held || n.output == 0) &&
            (n.output > 0 || n.status != 0))
            tell(m, m->follows[at].link, &n);
}

/* Those who wait for the job hear why; the words are not kept. */
static void tell_unwritten(struct mm *m, struct job *j, struct bytes words) {
    struct message_news n = describe(m, j);
    j->unwritten = true;
    n.unwritten = bytes_of(words.at, words.len < UNWRITTEN_MAX ? words.len : UNWRITTEN_MAX);
    tell_followers(m, j, &n);
}

void client_unfollow(struct mm *m, uint32_t link, struct job *j, const struct message_act *a) {
    struct follow *f = find(m, link, j->id);
    bool output = f != NULL && f->output;
    if (f != NULL)
        drop(m, f);
    if (j->settled && a->value != 0 && a->text.len > 0)
        tell_unwritten(m, j, a->text);
    if (j->settled && (output || a->value != 0)) /* of a batch job: all is written */
        end_release(m, j);
    else if (output)
        orphaned(m, j->id);
}

void client_tell(struct mm *m, uint32_t link, const struct job *j) {
    if (state_over((enum job_state)j->state) && !j->settled)
        return; /* it will hear in a moment */
    struct message_news n = describe(m, j);
    if (j->unwritten)
        n.unwritten = bytes_from_str("see the log of the cluster");
    tell(m, link, &n);
}

void client_message(struct mm *m, const struct input_message *in) {
    union message c;
    if (in->type == MESSAGE_TAKEN || in->type == MESSAGE_TYPED) {
        stream_down(m, in);
        return;
    }
    if (message_decode(in->type, in->body, m->scratch, &c) < 0) {
        struct effect *e = effects_add(m->out, EFFECT_CLOSE);
        e->close.link = in->link;
        e->close.refusal = REFUSAL_BODY;
        client_down(m, in->link);
        return;
    }
    if (in->type == MESSAGE_SUBMIT)
        submit_heard(m, in->link, &c.submit, in->body);
    else if (in->type == MESSAGE_ACT)
        act_heard(m, in->link, &c.act);
    else if (in->type == MESSAGE_RESERVE)
        reserve_heard(m, in->link, &c.reserve);
    else if (in->type == MESSAGE_ASK)
        ask_heard(m, in->link, &c.ask);
    else if (in->type == MESSAGE_COPY)
        files_copy(m, in->link, &c.copy);
    else if (in->type == MESSAGE_OFFER)
        files_offer(m, in->link, &c.offer);
}
