/* SPDX-License-Identifier: MIT */
/* A program's steward: processes on hosts. What they write is handed to whoever owns this, in order. */
#include <errno.h>
#include <stdlib.h>

#include "client/carmi_steward.h"

struct task *task_find(const struct steward *s, uint32_t job) {
    LIST_EACH (l, &s->tasks) {
        struct task *t = CONTAINER_OF(l, struct task, at);
        if (t->job == job && job != 0)
            return t;
    }
    return NULL;
}

struct task *task_of_call(const struct steward *s, carmi_request call) {
    LIST_EACH (l, &s->tasks) {
        struct task *t = CONTAINER_OF(l, struct task, at);
        if (t->call == call)
            return t;
    }
    return NULL;
}

void task_free(struct steward *s, struct task *t) {
    struct host *h = host_find(s, t->host);
    if (h != NULL && h->tasks > 0)
        h->tasks--;
    list_remove(&t->at);
    free(t->executable);
    free(t->program);
    free(t->spec);
    free(t);
}

static struct letter *letter(struct steward *s, const struct call *c, const struct task *t,
                             enum carmi_kind kind) {
    struct letter *l = letter_add(s, c, kind);
    carmi_host host = t->host;
    if (l == NULL)
        return NULL;
    l->message.process = t->job;
    letter_hosts(s, l, &host, 1);
    return l;
}

static void tell_spawned(struct steward *s, struct task *t) {
    const struct call *c = call_find(s, t->call);
    struct letter *l = c == NULL || t->told ? NULL : letter(s, c, t, CARMI_SPAWNED);
    t->told = true;
    free(t->spec);
    t->spec = NULL;
    if (l != NULL)
        l->message.last = 0;
}

void task_fail(struct steward *s, struct task *t, int error, struct bytes why) {
    struct call *c = call_find(s, t->call);
    if (c != NULL) {
        letter_failed(s, letter(s, c, t, t->told ? CARMI_EXITED : CARMI_SPAWNED), error, why);
        call_end(c);
    }
    task_free(s, t);
}

/* The manager need not keep it any more. */
void task_release(struct steward *s, const struct task *t) {
    carmi_host job = t->job;
    errand_act(s, ERRAND_QUIET, VERB_UNFOLLOW, 0, &job, 1, 0);
}

static void exited(struct steward *s, struct task *t) {
    struct call *c = call_find(s, t->call);
    task_release(s, t);
    if (t->error != 0) {
        task_fail(s, t, t->error, bytes_from_str("it could not be started"));
        return;
    }
    tell_spawned(s, t);
    if (c != NULL) {
        struct letter *l = letter(s, c, t, CARMI_EXITED);
        if (l != NULL) {
            l->message.status = (int)t->status;
            l->message.cpu_ns = t->cpu_ns;
        }
        call_end(c);
    }
    task_free(s, t);
}

void task_answered(struct steward *s, struct task *t, const struct message_answer *a) {
    if (a->code == ANSWER_DONE) {
        t->job = a->job;
        t->survey = s->surveys;
        return;
    }
    task_fail(s, t,
              a->code == ANSWER_FULL      ? EAGAIN
              : a->code == ANSWER_UNKNOWN ? ESRCH
                                          : EINVAL,
              a->text);
}

static bool all_taken(const struct task *t) {
    return t->settled && t->taken[0] + t->taken[1] >= t->output;
}

void task_news(struct steward *s, struct task *t, const struct message_news *n) {
    bool runs = n->state == STATE_RUNNING || n->state == STATE_SUSPENDED;
    if (runs)
        tell_spawned(s, t);
    if (!state_over((enum job_state)n->state) || !n->settled)
        return;
    if (task_ships(s, t, n))
        return;
    t->settled = true;
    t->output = n->held ? n->output : 0;
    t->status = n->status;
    t->cpu_ns = n->usage.user_ns + n->usage.system_ns;
    t->error = n->cause == CAUSE_FAILED ? (int)n->value : 0;
    if (all_taken(t))
        exited(s, t);
}

void task_row(struct steward *s, struct task *t, const struct job_row *row) {
    if (row == NULL) {
        task_fail(s, t, ESRCH, bytes_from_str("it is over, and nobody knows how any more"));
        return;
    }
    t->survey = s->surveys;
    if (row->state == STATE_RUNNING || row->state == STATE_SUSPENDED)
        tell_spawned(s, t);
    if (!state_over((enum job_state)row->state) || row->ended_ns == 0)
        return;
    if (t->followed)
        return;        /* news of its end come, or have come, and say how much it has written */
    t->settled = true; /* what it has written was told while we were away, or is lost */
    t->status = row->status;
    t->cpu_ns = row->usage.user_ns + row->usage.system_ns;
    exited(s, t);
}

/* What was here before is passed over; what would leave a gap comes again. */
void task_output(struct steward *s, const struct message_output *o) {
    struct task *t = task_find(s, run_job(o->run));
    if (t == NULL || o->stream < 1 || o->stream > 2)
        return;
    uint64_t *taken = &t->taken[o->stream - 1];
    uint64_t end = o->offset + o->bytes.len;
    if (o->offset > *taken || end < o->offset)
        return;
    if (end > *taken) {
        size_t known = (size_t)(*taken - o->offset);
        s->output_to = o->stream;
        s->output = bytes_of(o->bytes.at + known, o->bytes.len - known);
        *taken = end;
    }
    union message m = {
        .taken = {.run = o->run, .rank = o->rank, .stream = o->stream, .offset = *taken}};
    errand_add(s, ERRAND_TAKEN, MESSAGE_TAKEN, &m, 0);
    if (all_taken(t))
        exited(s, t);
}
