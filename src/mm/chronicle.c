/* SPDX-License-Identifier: MIT */
/* Jobs of the past: see history.h. */
#include "mm/chronicle.h"

#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"

enum { LIST_MAX = 2048, WHY_MAX = 128 + ROSTER_NAME_MAX };

struct chronicle {
    struct chronicle_config config;
    uint64_t key;   /* whose events are being fed; 0: none */
    uint32_t first; /* its jobs */
    uint32_t count;
    uint32_t last;
    struct job *jobs;
    struct bytes *lists; /* of the nodes of each */
    char *text;          /* where those are */
    size_t text_len;
    struct nodeset sets[2];
};

static size_t set_words(const struct chronicle_config *c) {
    return nodeset_bytes(c->nodes_max) / sizeof(uint64_t);
}

static struct chronicle *carve(const struct chronicle_config *c, struct arena *a) {
    struct chronicle *h = ARENA_TAKE(a, struct chronicle, 1);
    struct job *jobs = ARENA_TAKE(a, struct job, c->jobs_max);
    struct bytes *lists = ARENA_TAKE(a, struct bytes, c->jobs_max);
    char *text = ARENA_TAKE(a, char, c->text_max);
    uint64_t *words = ARENA_TAKE(a, uint64_t, 2 * set_words(c));
    if (h == NULL)
        return NULL;
    *h = (struct chronicle){.config = *c, .jobs = jobs, .lists = lists, .text = text};
    nodeset_init(&h->sets[0], c->nodes_max, words);
    nodeset_init(&h->sets[1], c->nodes_max, words + set_words(c));
    return h;
}

/* ---- telling ---- */

static void say_where(const struct chronicle *h, const struct job *j, struct text *why) {
    if (j->worst.node == NO_NODE)
        return;
    char name[ROSTER_NAME_MAX];
    roster_name(h->config.roster, j->worst.node, name, sizeof name);
    text_str(why, " on ");
    text_str(why, name);
}

static void say_memory(const struct chronicle *h, const struct job *j, struct text *why) {
    char limit[UNITS_TEXT_MAX];
    units_format_size((uint64_t)j->worst.value * MEMORY_UNIT, limit, sizeof limit);
    text_str(why, "rank ");
    text_u64(why, j->worst.rank);
    say_where(h, j, why);
    text_str(why, " was killed: it used more than its ");
    text_str(why, limit);
    text_str(why, " of memory");
}

static void say_why(const struct chronicle *h, const struct job *j, struct text *why) {
    if (j->state == STATE_TIMEOUT) {
        text_str(why, "its time limit was reached");
    } else if (j->state == STATE_LOST) {
        text_str(why, "a node was lost");
        say_where(h, j, why);
    } else if (job_reason((enum reason)j->reason) != NULL) {
        text_str(why, job_reason((enum reason)j->reason));
    } else if (j->worst.node != NO_NODE && j->worst.cause == CAUSE_FAILED) {
        text_str(why, "it could not be started");
        say_where(h, j, why);
    } else if (j->worst.node != NO_NODE && j->worst.cause == CAUSE_KILLED) {
        text_str(why, "rank ");
        text_u64(why, j->worst.rank);
        say_where(h, j, why);
        text_str(why, " was killed by signal ");
        text_u64(why, j->worst.value);
    } else if (j->worst.node != NO_NODE && j->worst.cause == CAUSE_MEMORY) {
        say_memory(h, j, why);
    }
}

static void tell(struct chronicle *h, uint32_t i) {
    const struct job *j = &h->jobs[i];
    char words[WHY_MAX];
    struct text why;
    text_init(&why, words, sizeof words);
    if (state_over((enum job_state)j->state))
        say_why(h, j, &why);
    struct job_row row = job_row_of(j);
    row.node_list = h->lists[i];
    row.why = bytes_of(words, why.len);
    char peak[ROSTER_NAME_MAX], node[ROSTER_NAME_MAX];
    job_row_where(h->config.roster, &row, peak, node);
    h->config.row(h->config.context, &row);
}

void chronicle_end(struct chronicle *h) {
    for (uint32_t i = 0; i < h->count; i++)
        if (h->first + i >= h->config.from && (h->config.to == 0 || h->first + i <= h->config.to))
            tell(h, i);
    h->count = 0;
    h->key = 0;
    h->text_len = 0;
}

/* ---- events ---- */

static struct job *find(struct chronicle *h, uint32_t id) {
    return id >= h->first && id - h->first < h->count ? &h->jobs[id - h->first] : NULL;
}

static void fill(struct job *j, const struct record_head *e, const struct message_submit *s,
                 uint32_t i) {
    *j = (struct job){.id = e->job + i, .state = STATE_QUEUED, .worst.node = NO_NODE};
    job_fill(j, s, e->at);
    j->index = e->count > 1 || s->array_first > 0 ? s->array_first + i : 0;
}

static void submitted(struct chronicle *h, const struct record_head *e, struct bytes body) {
    union message s;
    if (h->count > 0 || e->job == 0 || e->count == 0 || e->count > h->config.jobs_max ||
        message_decode(MESSAGE_SUBMIT, body, h->sets, &s) < 0)
        return;
    h->first = e->job;
    h->count = e->count;
    for (uint32_t i = 0; i < e->count; i++) {
        fill(&h->jobs[i], e, &s.submit, i);
        h->lists[i] = (struct bytes){0};
    }
    if (e->job + e->count - 1 > h->last)
        h->last = e->job + e->count - 1;
}

static void started(struct chronicle *h, struct job *j, const struct record_head *e,
                    struct codec *c) {
    codec_set(c, &h->sets[0]);
    if (c->failed)
        return;
    j->state = STATE_RUNNING;
    j->attempt = (uint16_t)e->count;
    j->started_ns = e->at;
    char *at = h->text + h->text_len;
    size_t room = h->config.text_max - h->text_len;
    size_t len =
        roster_format(h->config.roster, &h->sets[0], at, room < LIST_MAX ? room : LIST_MAX);
    bool fits = len < room && len < LIST_MAX;
    h->lists[j - h->jobs] = bytes_of(at, fits ? len : 0);
    h->text_len += fits ? len : 0;
}

static void ended(struct job *j, const struct record_head *e, struct codec *c) {
    struct job end = *j;
    record_walk_end(c, &end);
    if (c->failed)
        return;
    *j = end;
    j->ended_ns = e->at;
}

static void take(struct chronicle *h, uint64_t key, struct bytes event) {
    struct record_head e = {0};
    struct codec c = {.in = event.at, .len = event.len};
    record_walk_head(&c, &e);
    if (c.failed || key >= HISTORY_KEY_END)
        return;
    struct job *j = find(h, e.job);
    if (e.event == EVENT_SUBMIT)
        submitted(h, &e, bytes_of(event.at + c.at, event.len - c.at));
    else if (j == NULL)
        return;
    else if (e.event == EVENT_START)
        started(h, j, &e, &c);
    else if (e.event == EVENT_END)
        ended(j, &e, &c);
    else if (e.event == EVENT_AGAIN)
        j->state = STATE_QUEUED;
    else if (e.event == EVENT_HOLD)
        j->state = e.count != 0 ? STATE_SUSPENDED : STATE_RUNNING;
    else if (e.event == EVENT_ENDING)
        j->state = STATE_ENDING;
}

bool chronicle_feed(struct chronicle *h, uint64_t key, struct bytes event) {
    if (key != h->key)
        chronicle_end(h);
    h->key = key;
    take(h, key, event);
    return h->config.to == 0 || key <= h->config.to;
}

uint32_t chronicle_last(const struct chronicle *h) {
    return h->last;
}

size_t chronicle_bytes(const struct chronicle_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(c, &a);
    return arena_used(&a);
}

struct chronicle *chronicle_new(const struct chronicle_config *c, struct arena *a) {
    struct chronicle *h = carve(c, a);
    ASSERT(h != NULL);
    return h;
}
