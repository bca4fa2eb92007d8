/* SPDX-License-Identifier: MIT */
/* Feels whether a machine manager is alive: see pulse.h. */
#include "cli/pulse.h"

#include <stdlib.h>

#include "base/units.h"
#include "client/session.h"

/* The session shall never give up before we do. */
#define PATIENCE_NS (3600 * NS_PER_S)

struct pulse {
    struct loop loop;
    struct session *session;
    bool answered;
    bool accepted;
    bool lost;
    struct cluster_row row;
};

/* Only whom it cannot talk to at all it gives up before we do. */
static void on_lost(void *context, enum session_loss why) {
    struct pulse *p = context;
    (void)why;
    p->lost = true;
}

struct pulse *pulse_new(const struct cluster *c) {
    struct pulse *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    if (loop_init(&p->loop) < 0) {
        free(p);
        return NULL;
    }
    struct session_config config = {.loop = &p->loop, .cluster = c, .patience_ns = PATIENCE_NS};
    config.context = p;
    config.lost = on_lost;
    p->session = session_new(&config);
    if (p->session == NULL) {
        pulse_free(p);
        return NULL;
    }
    return p;
}

void pulse_free(struct pulse *p) {
    if (p == NULL)
        return;
    if (p->session != NULL)
        session_free(p->session);
    loop_fini(&p->loop);
    free(p);
}

bool pulse_other(const struct pulse *p, struct session_other *ret) {
    return session_other(p->session, ret);
}

static void on_rows(void *context, const struct message_rows *r) {
    struct pulse *p = context;
    size_t at = 0;
    if (cluster_row_next(r->rows, &at, &p->row) == 1)
        p->accepted = true;
    p->answered = p->answered || r->last;
}

static void on_answer(void *context, const struct message_answer *a) {
    struct pulse *p = context;
    p->answered = true;
    p->accepted = a->code == ANSWER_DONE;
}

static bool await(struct pulse *p, uint64_t until) {
    while (!p->answered && !p->lost && clock_ns() < until) {
        loop_wake_at(&p->loop, until);
        session_turn(p->session);
    }
    return p->answered && p->accepted;
}

static void expect(struct pulse *p) {
    p->answered = p->accepted = false;
}

bool pulse_ask(struct pulse *p, uint64_t until, struct cluster_row *ret) {
    struct message_ask m = {.subject = SUBJECT_CLUSTER, .most = 1};
    expect(p);
    if (session_ask(p->session, &m, on_rows, p) < 0 || !await(p, until))
        return false;
    *ret = p->row;
    return true;
}

bool pulse_stop(struct pulse *p, uint64_t until) {
    struct message_act m = {.verb = VERB_STOP};
    expect(p);
    return session_act(p->session, &m, on_answer, p) == 0 && await(p, until);
}

void pulse_rest(struct pulse *p, uint64_t ns) {
    uint64_t until = clock_ns() + ns;
    while (!p->lost && clock_ns() < until) {
        loop_wake_at(&p->loop, until);
        session_turn(p->session);
    }
}
