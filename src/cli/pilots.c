/* SPDX-License-Identifier: MIT */
/* The workers of storm work: see pilots.h. */
#include "cli/pilots.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/epilogue.h"
#include "cli/terminal.h"
#include "cli/when.h"
#include "cli/wish.h"
#include "os/companion.h"
#include "wire/row.h"

/* Jobs in one request to end them, see act.c. */
enum { PORTION = 512 };
#define END_NS    (3 * NS_PER_S)
#define MOMENT_NS (NS_PER_S / 20)
#define WAITS_NS  NS_PER_S

/* ---- asking for them ---- */

/* The nodes come to this command for the program. */
static int give(struct pilots *p, struct order *o, const struct wish *w) {
    if (!p->sent)
        return 0;
    o->submit.flags |= JOB_LOOK;
    return freight_open(&o->freight, &w->sending, &p->contact->loop, &p->contact->cluster,
                        &o->submit);
}

static int submit(struct pilots *p, struct order *o, uint32_t count) {
    char program[CLUSTER_PATH_MAX], array[24];
    char *argv[] = {program, NULL};
    struct wish w = {.procs = "1",
                     .need = p->need,
                     .on = p->on,
                     .exclude = p->exclude,
                     .array = array,
                     .name = p->name,
                     .output = "/dev/null",
                     .chdir = "/",
                     .exported = "none",
                     .env = {.count = 1, .at = {p->setting}},
                     .requeue = true,
                     .copy = p->sent};
    snprintf(array, sizeof array, "1-%" PRIu32, count);
    int r = companion_find("storm-worker", program, sizeof program);
    if (r < 0) {
        complain("storm-worker", "%s; it belongs to the storm command", strerror(-r));
        return STATUS_STORM;
    }
    r = sending_check(&w.sending, "work");
    if (r == 0)
        r = order_make(o, &w, WISH_SUBMIT, &p->contact->cluster, argv);
    if (r == 0)
        r = give(p, o, &w);
    if (r != 0)
        return r;
    p->answer = (struct contact_answer){0};
    p->asked = count;
    int e = session_submit(p->contact->session, &o->submit, contact_answered, &p->answer);
    if (e < 0)
        complain("work", "%s", strerror(-e));
    return e < 0 ? STATUS_STORM : 0;
}

/* What gives a program stays with all workers that it is given to: then they are asked for at once. */
int pilots_want(struct pilots *p, uint64_t wanted) {
    uint32_t want = wanted < p->most && !p->sent ? (uint32_t)wanted : p->most;
    if (p->asked > 0 || p->full || wanted == 0 || want <= p->count)
        return 0;
    struct order *o = calloc(1, sizeof *o);
    ASSERT(o != NULL && p->order == NULL);
    int r = submit(p, o, want - p->count);
    if (p->sent) {
        p->order = o;
        return r;
    }
    order_fini(o);
    free(o);
    return r;
}

static void welcome(struct pilots *p, uint32_t first, uint32_t count) {
    p->at = reallocarray(p->at, (size_t)p->count + count, sizeof *p->at);
    ASSERT(p->at != NULL);
    for (uint32_t i = 0; i < count; i++)
        p->at[p->count++] = (struct pilot){.job = first + i, .state = (uint8_t)STATE_QUEUED};
    /* The first of several stands for all. */
    (void)session_follow(p->contact->session, first, count > 1 ? 2 : 0, false, NULL, NULL);
}

/* ---- waiting ---- */

static void on_why(void *context, const struct message_rows *m) {
    const struct pilots *p = context;
    struct job_row row;
    char words[WHEN_WORDS_MAX];
    size_t at = 0;
    if (job_row_next(m->rows, &at, &row) == 1 && row.state == STATE_QUEUED && p->over == 0)
        complain("work", "no worker has started yet; job %" PRIu32 ": %s", p->at[0].job,
                 when_words(row.why, when_now(), words));
}

/* Whoever sits at a terminal is told if none of them starts. */
static void tell_why(struct pilots *p) {
    struct message_ask ask = {.subject = SUBJECT_WHY, .job = p->at[0].job, .most = 1};
    bool waits = p->over == 0;
    for (uint32_t i = 0; i < p->count && waits; i++)
        waits = p->at[i].state == STATE_QUEUED;
    if (waits && p->waits_at > p->contact->loop.now) {
        loop_wake_at(&p->contact->loop, p->waits_at);
        return;
    }
    p->waits_at = 0;
    if (waits)
        (void)session_ask(p->contact->session, &ask, on_why, p);
}

/* ---- what becomes of the request ---- */

void pilots_settle(struct pilots *p) {
    const struct contact_answer *a = &p->answer;
    if (p->order != NULL && p->order->freight.giver != NULL)
        giver_settle(p->order->freight.giver);
    if (p->waits_at != 0)
        tell_why(p);
    if (p->asked == 0 || !a->here)
        return;
    p->asked = 0;
    if (a->code == ANSWER_DONE) {
        if (p->count == 0 && terminal_is(stderr)) {
            p->waits_at = p->contact->loop.now + WAITS_NS;
            loop_wake_at(&p->contact->loop, p->waits_at);
        }
        welcome(p, a->job, a->count > 0 ? a->count : 1);
        return;
    }
    p->full = true;
    snprintf(p->trouble, sizeof p->trouble, "%s",
             a->text[0] != '\0' ? a->text : "the cluster takes no more jobs now; try again later");
}

/* ---- what becomes of them ---- */

static struct pilot *find(struct pilots *p, uint32_t job) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->at[i].job == job)
            return &p->at[i];
    return NULL;
}

void pilots_news(struct pilots *p, const struct message_news *n) {
    struct pilot *pilot = find(p, n->job);
    if (pilot == NULL || state_over((enum job_state)pilot->state))
        return;
    pilot->state = n->state;
    if (!state_over((enum job_state)n->state))
        return;
    p->over++;
    if (n->status == 0 || n->state == STATE_KILLED || p->trouble[0] != '\0')
        return;
    FILE *f = fmemopen(p->trouble, sizeof p->trouble - 1, "w");
    if (f == NULL)
        return;
    epilogue_write(f, &p->contact->cluster, n, &(struct epilogue){.verbose = true});
    fclose(f);
    p->trouble[strcspn(p->trouble, "\n")] = '\0';
}

uint32_t pilots_running(const struct pilots *p) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        count += p->at[i].state == STATE_RUNNING;
    return count;
}

bool pilots_gone(const struct pilots *p) {
    return p->asked == 0 && p->over == p->count && (p->count > 0 || p->full);
}

/* ---- their end ---- */

static void end_some(struct pilots *p, const uint8_t *jobs, size_t count) {
    struct message_act m = {
        .verb = (uint8_t)VERB_END, .value = SIGTERM, .jobs = bytes_of(jobs, 4 * count)};
    if (count > 0)
        (void)session_act(p->contact->session, &m, NULL, NULL);
}

static void end_all(struct pilots *p, bool except_running) {
    uint8_t jobs[4 * PORTION];
    size_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        enum job_state state = (enum job_state)p->at[i].state;
        if (state_over(state) || (except_running && state == STATE_RUNNING))
            continue;
        store_le32(jobs + 4 * count, p->at[i].job);
        if (++count < PORTION)
            continue;
        end_some(p, jobs, count);
        count = 0;
    }
    end_some(p, jobs, count);
}

static void wait_for_ends(struct pilots *p, uint64_t until) {
    while (p->over < p->count && clock_ns() < until && session_is_up(p->contact->session)) {
        loop_wake_at(&p->contact->loop, until);
        session_turn(p->contact->session);
    }
}

void pilots_end(struct pilots *p, bool leaving) {
    if (leaving) {
        end_all(p, true);
        wait_for_ends(p, clock_ns() + MOMENT_NS);
    }
    end_all(p, false);
    wait_for_ends(p, clock_ns() + END_NS);
}

void pilots_fini(struct pilots *p) {
    if (p->order != NULL)
        order_fini(p->order);
    free(p->order);
    free(p->at);
}
