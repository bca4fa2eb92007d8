/* SPDX-License-Identifier: MIT */
/* What clients want done with jobs and nodes. */
#include "base/text.h"
#include "base/units.h"
#include "mm/inside.h"
#include "rm/say.h"
#include "sched/map.h"

enum { SIGNAL_KILL = 9, ACTS_MAX = 512 };

static void answer(struct mm *m, uint32_t link, const struct message_act *a, enum answer code,
                   uint32_t job, const char *text) {
    client_answer(m, link, a->request, code, job, 1, text);
}

static void command(struct mm *m, const struct running *r, enum verb verb, uint32_t value,
                    uint32_t more) {
    union message c = {
        .command = {.run = r->run, .verb = (uint8_t)verb, .value = value, .more = more}};
    say_down(m->out, &r->waiting, MESSAGE_COMMAND, &c, (struct bytes){0});
}

/* It is kept that somebody has asked for this, before that is answered. */
static void end_asked(struct mm *m, struct job *j, uint32_t signal, bool now) {
    struct running *r = job_running(m, j);
    uint8_t reason = j->reason, force = r == NULL ? 0 : r->force;
    end_job(m, j, REASON_USER, signal, now);
    if (r != NULL && job_running(m, j) == r && r->phase != PHASE_OVER &&
        (j->reason != reason || r->force != force))
        after_keep(m, j, record_ending(m, j, r));
}

static void signal_job(struct mm *m, struct job *j, uint32_t signal) {
    struct running *r = job_running(m, j);
    if (j->state == STATE_QUEUED || j->kind == JOB_ALLOC) {
        end_asked(m, j, signal, true);
        return;
    }
    if (r == NULL)
        return;
    r->signal = signal;
    if (r->phase != PHASE_GOING) { /* not there yet: it will find its end waiting */
        end_asked(m, j, signal, true);
        return;
    }
    command(m, r, VERB_SIGNAL, signal, 0);
}

/* Words of a refusal that are not always the same. */
struct refusal {
    char words[96];
};

static bool goes(const struct job *j, const struct running *r) {
    return r != NULL && r->phase == PHASE_GOING && j->kind != JOB_ALLOC;
}

/* The nodes of these ranks that have not ended. Of a listed job only its nodes know who is where. */
static void find_nodes(struct mm *m, const struct job *j, const struct running *r,
                       struct bytes ranks) {
    uint32_t place = 0;
    struct map map = job_placing(m, j, r);
    nodeset_copy(&m->work, &r->waiting);
    if (map.kind == MAP_LIST)
        return;
    for (uint32_t node = nodeset_first(&r->set); node != NODESET_NONE && place < map.nodes;
         node = nodeset_next(&r->set, node), place++) {
        uint32_t rank = map_first(&map, place);
        while (rank < map.procs && !ranks_has(ranks, rank))
            rank = map_next(&map, place, rank);
        if (rank >= map.procs)
            nodeset_remove(&m->work, node);
    }
}

static const char *signal_ranks(struct mm *m, struct job *j, const struct message_act *a,
                                struct refusal *no) {
    const struct running *r = job_running(m, j);
    uint32_t highest = ranks_highest(a->ranks);
    if (highest >= j->procs) {
        struct text t;
        text_init(&t, no->words, sizeof no->words);
        text_str(&t, "there is no rank ");
        text_u64(&t, highest);
        text_str(&t, j->procs == 1 ? ": it has one process, rank 0" : " among its ");
        if (j->procs > 1) {
            text_u64(&t, j->procs);
            text_str(&t, " processes");
        }
        return no->words;
    }
    if (!goes(j, r))
        return "it does not run";
    union message c = {
        .command = {.run = r->run, .verb = VERB_SIGNAL, .value = a->value, .ranks = a->ranks}};
    find_nodes(m, j, r, a->ranks);
    if (!nodeset_empty(&m->work)) /* who has ended does not hear it */
        say_down(m->out, &m->work, MESSAGE_COMMAND, &c, (struct bytes){0});
    return NULL;
}

/* Whoever asks must follow the job: that is how answers find the way back (stream.c). */
static const char *ask_pids(struct mm *m, uint32_t link, const struct job *j) {
    const struct running *r = job_running(m, j);
    if (!goes(j, r))
        return "it does not run";
    command(m, r, VERB_PIDS, link, 0);
    return NULL;
}

static void hold_steps(struct mm *m, const struct job *around, bool stop) {
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        struct job *j = r->job == 0 ? NULL : job_find(m, r->job);
        if (j != NULL && j->kind == JOB_STEP && j->inside == around->id &&
            r->phase == PHASE_GOING && j->state != STATE_ENDING)
            act_hold(m, j, stop);
    }
    m->dirty = true; /* those that wait for room there */
}

void act_hold(struct mm *m, struct job *j, bool stop) {
    struct running *r = job_running(m, j);
    bool changes = r->suspended != stop;
    r->suspended = stop;
    r->held = true;
    if (changes)
        after_keep(m, j, record_hold(m, j, r));
    j->state = stop ? STATE_SUSPENDED : STATE_RUNNING;
    if (j->kind == JOB_ALLOC) {
        hold_steps(m, j, stop);
    } else {
        r->repeat_at = m->now + NS_PER_S;
        due_set(m, r);
        command(m, r, stop ? VERB_SUSPEND : VERB_RESUME, 0, 0);
    }
    client_news(m, j);
}

static const char *suspend(struct mm *m, struct job *j, bool stop) {
    struct running *r = job_running(m, j);
    if (r == NULL || r->phase != PHASE_GOING || j->state == STATE_ENDING)
        return "it does not run";
    r->rests = r->called && stop;
    act_hold(m, j, stop);
    return NULL;
}

/* All of the family that it is in: one of them does not know who is its head. */
static const char *follow_family(struct mm *m, uint32_t link, const struct job *j) {
    uint32_t head = family_head(m, j->id);
    if (!client_follow(m, link, head, false, false))
        return "too many clients follow jobs";
    client_follow_family(m, link, head);
    return NULL;
}

static const char *follow(struct mm *m, uint32_t link, struct job *j, uint32_t value) {
    if ((value & 4) != 0)
        return follow_family(m, link, j);
    if (!client_follow(m, link, j->id, (value & 1) != 0, (value & 2) != 0))
        return "too many clients follow jobs";
    client_tell(m, link, j);
    for (uint32_t i = 1; (value & 2) != 0 && i < j->count; i++) {
        const struct job *other = job_find(m, j->id + i);
        if (other != NULL && other->state != STATE_QUEUED)
            client_tell(m, link, other);
    }
    struct running *r = job_running(m, j);
    if (r != NULL && (value & 1) != 0)
        stream_again(m, r);
    return NULL;
}

/* NULL, or why not. */
static const char *act_on(struct mm *m, uint32_t link, const struct message_act *a, struct job *j,
                          struct refusal *no) {
    if (a->verb == VERB_FOLLOW)
        return follow(m, link, j, a->value);
    if (a->verb == VERB_UNFOLLOW) {
        client_unfollow(m, link, j, a);
        return NULL;
    }
    if (a->verb == VERB_SIGNAL && a->ranks.len > 0)
        return signal_ranks(m, j, a, no);
    if (a->verb == VERB_PIDS)
        return ask_pids(m, link, j);
    if (state_over((enum job_state)j->state))
        return a->verb == VERB_SIGNAL || a->verb == VERB_END || a->verb == VERB_KILL ? NULL
                                                                                     : "it is over";
    switch ((enum verb)a->verb) {
    case VERB_SIGNAL:
        signal_job(m, j, a->value);
        return NULL;
    case VERB_END:
        end_asked(m, j, a->value, false);
        return NULL;
    case VERB_KILL:
        end_asked(m, j, SIGNAL_KILL, true);
        return NULL;
    case VERB_SUSPEND:
    case VERB_RESUME:
        return suspend(m, j, a->verb == VERB_SUSPEND);
    case VERB_SIZE:
        if (job_running(m, j) != NULL)
            command(m, job_running(m, j), VERB_SIZE, a->value, a->more);
        return NULL;
    default:
        return "that cannot be done with a job";
    }
}

/* Asks for something that is logged? */
static bool is_kept(const struct message_act *a) {
    return a->verb == VERB_SIGNAL || a->verb == VERB_END || a->verb == VERB_KILL ||
           a->verb == VERB_SUSPEND || a->verb == VERB_RESUME;
}

/* An answer leaves when what was asked for is durable, also if it had been asked for before. */
static void answer_kept(struct mm *m, uint32_t link, const struct message_act *a, uint32_t job) {
    if (!is_kept(a) || m->durable == m->tickets) {
        answer(m, link, a, ANSWER_DONE, job, "");
        return;
    }
    struct after *w = after_add(m, m->tickets, AFTER_ACT);
    *w = (struct after){.ticket = w->ticket,
                        .kind = AFTER_ACT,
                        .link = link,
                        .request = {a->request[0], a->request[1]},
                        .job = job,
                        .count = 1};
}

/* Each may be a word to all nodes of a job, or an entry of the log; to follow is neither. */
static bool too_many(const struct mm *m, const struct message_act *a) {
    size_t count = a->jobs.len / 4;
    return (a->verb != VERB_FOLLOW && count > ACTS_MAX) || (is_kept(a) && after_full(m, 2 * count));
}

static void act_on_jobs(struct mm *m, uint32_t link, const struct message_act *a) {
    if (too_many(m, a)) {
        answer(m, link, a, ANSWER_FULL, 0, "too many at once; try again in a moment");
        return;
    }
    for (size_t at = 0; at < a->jobs.len; at += 4) {
        uint32_t id = load_le32(a->jobs.at + at);
        struct job *j = job_find(m, id);
        if (j == NULL && a->verb == VERB_FOLLOW && id == 0) {
            client_follow(m, link, 0, true, false);
            continue;
        }
        struct refusal no;
        const char *why = j == NULL ? "there is no such job" : act_on(m, link, a, j, &no);
        if (why != NULL) {
            answer(m, link, a, j == NULL ? ANSWER_UNKNOWN : ANSWER_REFUSED, id, why);
            return;
        }
    }
    uint32_t first = a->jobs.len >= 4 ? load_le32(a->jobs.at) : 0;
    answer_kept(m, link, a, first);
}

static void drain(struct mm *m, uint32_t link, const struct message_act *a) {
    bool drained = a->verb == VERB_DRAIN;
    if (!nodeset_covers(&m->taken, a->nodes)) {
        answer(m, link, a, ANSWER_UNKNOWN, 0, "some of these are not in the cluster (any more)");
        return;
    }
    if (node_draining(m, a->nodes) || after_full(m, 0)) {
        answer(m, link, a, ANSWER_FULL, 0, "somebody does the same; try again in a moment");
        return;
    }
    node_drain(m, a->nodes, drained, a->text, wall(m));
    uint64_t ticket = record_drain(m, a->nodes, drained, a->text);
    node_drain_wait(m, a->nodes, ticket);
    struct after *w = after_add(m, ticket, AFTER_NODE);
    w->link = link;
    w->request[0] = a->request[0];
    w->request[1] = a->request[1];
}

/* The cluster goes down: nothing starts any more, what runs is ended. */
static void stop(struct mm *m, uint32_t link, const struct message_act *a) {
    m->stopped = true;
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct job *j = m->runnings[i].job == 0 ? NULL : job_find(m, m->runnings[i].job);
        if (j != NULL)
            end_job(m, j, REASON_USER, 0, a->value != 0);
    }
    answer(m, link, a, ANSWER_DONE, m->running_count, "");
}

void act_heard(struct mm *m, uint32_t link, const struct message_act *a) {
    if (a->verb == VERB_DRAIN || a->verb == VERB_UNDRAIN)
        drain(m, link, a);
    else if (a->verb == VERB_STOP)
        stop(m, link, a);
    else if (a->verb == VERB_DEFINE || a->verb == VERB_UNDEFINE)
        classes_heard(m, link, a);
    else if (a->verb == VERB_POLICY)
        policy_heard(m, link, a);
    else
        act_on_jobs(m, link, a);
}
