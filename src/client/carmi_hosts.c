/* SPDX-License-Identifier: MIT */
/* A program's steward: hosts that come, are suspended, go on, and go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/carmi_steward.h"

/* That the manager is asked to end with one word: it takes 512. */
enum { ENDS_AT_ONCE = 256 };

struct host *host_find(const struct steward *s, uint64_t job) {
    LIST_EACH (l, &s->hosts) {
        struct host *h = CONTAINER_OF(l, struct host, at);
        if (h->job == job)
            return h;
    }
    return NULL;
}

static struct host *host_get(struct steward *s, uint32_t job) {
    struct host *h = host_find(s, job);
    if (h != NULL)
        return h;
    h = calloc(1, sizeof *h);
    if (h == NULL) {
        s->failed = true;
        return NULL;
    }
    h->job = job;
    h->survey = s->surveys;
    list_push_back(&s->hosts, &h->at);
    return h;
}

static void keep_text(char *to, size_t room, struct bytes text) {
    size_t len = text.len < room ? text.len : room - 1;
    memset(to, 0, room);
    if (len > 0)
        memcpy(to, text.at, len);
}

/* ---- notices ---- */

static bool is_about(const struct call *c, const struct host *h) {
    if (c->class_name != NULL && strcmp(c->class_name, h->class_name) != 0)
        return false;
    for (size_t i = 0; i < c->host_count; i++)
        if (c->hosts[i] == h->job)
            return true;
    return c->host_count == 0;
}

static void notify_one(struct steward *s, const struct call *c, enum carmi_kind kind,
                       const struct host *h) {
    struct letter *l = letter_add(s, c, kind);
    carmi_host one = h->job;
    if (l == NULL)
        return;
    l->message.last = 0;
    letter_hosts(s, l, &one, 1);
}

static void notify(struct steward *s, enum call_kind which, enum carmi_kind kind,
                   const struct host *h) {
    LIST_EACH (l, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, at);
        if (c->kind == which && is_about(c, h))
            notify_one(s, c, kind, h);
    }
}

/* The program knows of it from now on: what has happened to it meanwhile is told behind that. */
static void decide(struct steward *s, struct host *h) {
    h->decided = true;
    if (h->stage == STAGE_SUSPENDED)
        notify(s, CALL_SUSPEND_NOTIFY, CARMI_HOSTS_SUSPENDED, h);
}

/* ---- hosts that were asked for ---- */

static const char will_not_come[] = "the rest will not come";

static bool all_came(const struct call *c) {
    for (uint32_t i = 0; i < c->count; i++)
        if (c->slots[i] == SLOT_GONE)
            return false;
    return true;
}

static void decide_group(struct steward *s, const struct call *c, uint32_t from, uint32_t end) {
    for (uint32_t i = from; i < end; i++) {
        struct host *h = c->slots[i] == SLOT_TOLD ? host_find(s, c->first + i) : NULL;
        if (h != NULL)
            decide(s, h);
    }
}

/* A group whose hosts are all known of, and some are there, is told. */
static void tell_group(struct steward *s, struct call *c, uint32_t from) {
    uint32_t end = from + c->increment < c->count ? from + c->increment : c->count;
    bool here = false;
    for (uint32_t i = from; i < end; i++) {
        if (c->slots[i] == SLOT_WAITS)
            return;
        here = here || c->slots[i] == SLOT_HERE;
    }
    if (!here)
        return;
    struct letter *l = letter_add(s, c, CARMI_HOSTS_ADDED);
    carmi_host *hosts = l == NULL ? NULL : letter_block(s, l, (end - from) * sizeof *hosts);
    if (hosts == NULL)
        return;
    l->message.last = c->waits == 0;
    l->message.hosts = hosts;
    for (uint32_t i = from; i < end; i++)
        if (c->slots[i] == SLOT_HERE) {
            hosts[l->message.host_count++] = c->first + i;
            c->slots[i] = SLOT_TOLD;
        }
    if (l->message.last && !all_came(c))
        letter_failed(s, l, ECANCELED, bytes_from_str(will_not_come));
    decide_group(s, c, from, end);
}

/* If nothing is left to come and that was not said with the last that came. */
static void end_add(struct steward *s, struct call *c, bool told) {
    if (c->waits > 0)
        return;
    if (!told)
        letter_failed(s, letter_add(s, c, CARMI_HOSTS_ADDED), ECANCELED,
                      bytes_from_str(will_not_come));
    call_end(c);
}

static void slot_is(struct steward *s, struct call *c, uint32_t place, enum slot now) {
    if (place >= c->count || c->slots[place] != SLOT_WAITS)
        return;
    c->slots[place] = (uint8_t)now;
    c->waits--;
    uint32_t from = place - place % c->increment;
    struct list *before = s->letters.prev;
    tell_group(s, c, from);
    end_add(s, c, s->letters.prev != before);
}

/* ---- stages ---- */

static void came(struct steward *s, struct host *h) {
    struct call *c = call_find(s, h->added);
    if (h->added == 0 && h->leaves == 0 && s->adds_unanswered > 0)
        return; /* it may be one of those */
    if (c != NULL && c->kind == CALL_ADD) {
        slot_is(s, c, h->job - c->first, SLOT_HERE); /* decides it with its group */
        return;
    }
    if (h->added == 0 && h->leaves == 0)
        notify(s, CALL_ADD_NOTIFY, CARMI_HOSTS_ADDED, h);
    decide(s, h);
}

static void left(struct steward *s, struct host *h) {
    struct call *c = call_find(s, h->leaves);
    if (c == NULL || c->kind != CALL_DELETE) {
        if (h->leaves == 0)
            notify(s, CALL_DELETE_NOTIFY, CARMI_HOSTS_DELETED, h);
        return;
    }
    if (--c->waits > 0)
        return;
    struct letter *l = letter_add(s, c, CARMI_HOSTS_DELETED);
    if (c->partly)
        letter_failed(s, l, ESRCH, bytes_from_str("the program did not have all of these"));
    letter_hosts(s, l, c->hosts, c->host_count);
    call_end(c);
}

void host_gone(struct steward *s, struct host *h) {
    enum stage before = h->stage;
    struct call *c = call_find(s, h->added);
    if (before == STAGE_GONE)
        return;
    h->stage = STAGE_GONE;
    bool awaited = c != NULL && c->kind == CALL_ADD && !h->decided;
    if (before == STAGE_WAITS && awaited) {
        slot_is(s, c, h->job - c->first, SLOT_GONE);
        return;
    }
    if (awaited && h->job - c->first < c->count)
        c->slots[h->job - c->first] = SLOT_GONE; /* others of its group are waited for */
    if (h->decided || h->leaves != 0)
        left(s, h);
}

static void host_runs(struct steward *s, struct host *h) {
    enum stage before = h->stage;
    h->stage = STAGE_RUNS;
    if (before == STAGE_WAITS)
        came(s, h);
    else if (before == STAGE_SUSPENDED && h->decided)
        notify(s, CALL_RESUME_NOTIFY, CARMI_HOSTS_RESUMED, h);
}

void host_stage(struct steward *s, struct host *h, enum job_state state) {
    if (h->stage == STAGE_GONE)
        return;
    if (state == STATE_RUNNING && h->stage != STAGE_RUNS) {
        host_runs(s, h);
    } else if (state == STATE_SUSPENDED && h->stage != STAGE_SUSPENDED) {
        if (h->stage == STAGE_WAITS)
            host_runs(s, h);
        h->stage = STAGE_SUSPENDED;
        if (h->decided)
            notify(s, CALL_SUSPEND_NOTIFY, CARMI_HOSTS_SUSPENDED, h);
    } else if (state_over(state)) {
        host_gone(s, h);
    }
}

void host_row(struct steward *s, const struct job_row *row) {
    struct host *h = host_get(s, row->job);
    if (h == NULL)
        return;
    h->survey = s->surveys;
    keep_text(h->class_name, sizeof h->class_name, row->name);
    keep_text(h->where, sizeof h->where, row->node_list);
    host_stage(s, h, (enum job_state)row->state);
}

/* ---- answers ---- */

/* Those that came while it was not known whose they are. */
static void decide_others(struct steward *s) {
    LIST_EACH_SAFE (l, &s->hosts) {
        struct host *h = CONTAINER_OF(l, struct host, at);
        if (s->adds_unanswered == 0 && !h->decided && h->added == 0 &&
            (h->stage == STAGE_RUNS || h->stage == STAGE_SUSPENDED))
            came(s, h);
    }
}

static int error_of(enum answer code) {
    return code == ANSWER_FULL ? EAGAIN : code == ANSWER_UNKNOWN ? ESRCH : EINVAL;
}

static void claim(struct steward *s, struct call *c, uint32_t place) {
    struct host *h = host_get(s, c->first + place);
    if (h == NULL)
        return;
    h->added = c->id;
    keep_text(h->class_name, sizeof h->class_name, bytes_from_str(c->class_name));
    if (h->stage == STAGE_GONE)
        slot_is(s, c, place, SLOT_GONE);
    else if (h->stage != STAGE_WAITS)
        came(s, h);
}

/* Its own: those that are there already, and the rest when they come. */
static void claim_all(struct steward *s, carmi_request id, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct call *c = call_find(s, id);
        if (c != NULL)
            claim(s, c, i);
    }
}

/* They are on their way out: nobody is told when they come. */
static void give_back(struct steward *s, carmi_request call, uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct host *h = host_get(s, first + i);
        carmi_host one = first + i;
        if (h != NULL)
            h->leaves = call;
        hosts_end(s, &one, 1);
    }
}

void hosts_answered(struct steward *s, carmi_request call, const struct message_answer *a) {
    struct call *c = call_find(s, call);
    if (c == NULL && a->code == ANSWER_DONE) {
        give_back(s, call, a->job, a->count); /* it was cancelled meanwhile */
    } else if (c != NULL && a->code != ANSWER_DONE) {
        letter_failed(s, letter_add(s, c, CARMI_HOSTS_ADDED), error_of((enum answer)a->code),
                      a->text);
        call_end(c);
    } else if (c != NULL) {
        c->first = a->job;
        claim_all(s, c->id, c->count);
    }
    decide_others(s);
}

/* Hosts that are told of, or about to be, stay. */
void hosts_cancel(struct steward *s, struct call *c) {
    for (uint32_t i = 0; c->first != 0 && i < c->count; i++) {
        struct host *h = host_find(s, c->first + i);
        if (c->slots[i] == SLOT_HERE) {
            c->slots[i] = SLOT_TOLD; /* its group is not whole, and never will be */
            notify_one(s, c, CARMI_HOSTS_ADDED, h);
            decide(s, h);
        }
        if (c->slots[i] == SLOT_WAITS)
            give_back(s, c->id, c->first + i, 1);
    }
}

/* ---- hosts that are given back ---- */

void hosts_end(struct steward *s, const carmi_host *hosts, size_t count) {
    for (size_t at = 0; at < count; at += ENDS_AT_ONCE) {
        size_t part = count - at < ENDS_AT_ONCE ? count - at : ENDS_AT_ONCE;
        errand_act(s, ERRAND_END, VERB_END, 0, hosts + at, part, 0);
    }
}

/* Where the manager's log is behind it is said again. If one of several is unknown nothing was done: they are ended one by one. */
void hosts_end_answered(struct steward *s, struct bytes jobs, enum answer code) {
    carmi_host again[ENDS_AT_ONCE];
    size_t count = 0;
    for (size_t at = 0; code != ANSWER_DONE && at < jobs.len && count < ENDS_AT_ONCE; at += 4) {
        const struct host *h = host_find(s, load_le32(jobs.at + at));
        carmi_host job = h == NULL || h->stage == STAGE_GONE ? 0 : h->job;
        if (job != 0 && code == ANSWER_FULL)
            again[count++] = job;
        else if (job != 0 && jobs.len > 4)
            hosts_end(s, &job, 1);
        else if (job != 0)
            errand_ask(s, ERRAND_LOOK, SUBJECT_JOB, (uint32_t)job, 0);
    }
    hosts_end(s, again, count);
}

void hosts_present(struct steward *s, struct call *c) {
    LIST_EACH (l, &s->hosts) {
        const struct host *h = CONTAINER_OF(l, struct host, at);
        bool here = h->stage == STAGE_RUNS || h->stage == STAGE_SUSPENDED;
        if (here && h->decided && h->added == 0 && is_about(c, h))
            notify_one(s, c, CARMI_HOSTS_ADDED, h);
    }
}

/* Those that are gone, and that nobody waits for: whether one was asked for by us may not be known yet. */
void hosts_forget(struct steward *s) {
    LIST_EACH_SAFE (l, &s->hosts) {
        struct host *h = CONTAINER_OF(l, struct host, at);
        if (h->stage != STAGE_GONE || s->adds_unanswered > 0 || h->tasks > 0 ||
            call_find(s, h->added) != NULL || call_find(s, h->leaves) != NULL)
            continue;
        list_remove(l);
        free(h);
    }
}
