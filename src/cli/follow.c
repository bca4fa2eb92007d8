/* SPDX-License-Identifier: MIT */
/* A job that somebody waits for at the terminal: see follow.h. */
#include "cli/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/when.h"
#include "wire/row.h"

/* After the end: how long to wait for bytes that were written and have not come. Those of a lost node may
 * never come. */
#define MISSING_NS      (10 * NS_PER_S)
#define MISSING_LOST_NS NS_PER_S
#define NUDGE_NS        (250 * NS_PER_MS)
/* After Ctrl-C: for whoever reads our output, and does not. */
#define UNREAD_NS (500 * NS_PER_MS)
/* Who sits at a terminal is told what a job waits for. */
#define WAITS_NS NS_PER_S

/* ---- news ---- */

static void note_nodes(struct follow *f, const struct message_news *n) {
    contact_meet(&f->contact, n->nodes);
    size_t len = cluster_format_nodes(&f->contact.cluster, n->waiting, f->nodes, sizeof f->nodes);
    if (len >= sizeof f->nodes)
        snprintf(f->nodes + sizeof f->nodes - 4, 4, "...");
}

/* Where its files will be. */
static void note_run(struct follow *f, const struct message_news *n) {
    if (f->ran_on_storage == NULL || nodeset_empty(n->nodes))
        return;
    nodeset_copy(&f->ran_on, n->nodes);
    f->ran_on_run = n->run;
}

static void on_over(struct follow *f, const struct message_news *n) {
    uint64_t now = f->contact.loop.now;
    if (f->over)
        return;
    f->over = true;
    f->status = (int)(n->status & 0xff);
    f->progress_at = now;
    f->nudge_ns = NUDGE_NS;
    f->nudge_at = now + f->nudge_ns;
    if (f->typing != NULL)
        typing_stop(f->typing);
}

static void on_news(void *context, const struct message_news *n) {
    struct follow *f = context;
    if (n->job != f->job && f->job != 0)
        return;
    f->last = *n;
    f->last.nodes = f->last.waiting = NULL;
    size_t len = n->text.len < sizeof f->text ? n->text.len : sizeof f->text;
    if (len > 0)
        memcpy(f->text, n->text.at, len);
    f->last.text = bytes_of(f->text, len);
    uint64_t born = clock_ns() - n->since_ns; /* or earlier: news takes time to come */
    f->born_ns = f->born_ns == 0 || born < f->born_ns ? born : f->born_ns;
    if (f->since_ns[n->state] == 0)
        f->since_ns[n->state] = n->since_ns;
    note_nodes(f, n);
    note_run(f, n);
    if (n->loose != NO_NODE && !f->epilogue.loose_told) {
        epilogue_loose(stderr, &f->contact.cluster, n);
        f->epilogue.loose_told = true;
    }
    if (f->output != NULL)
        output_nodes(f->output, n);
    debug_news(f, n);
    if (n->state == STATE_RUNNING && f->typing != NULL)
        typing_begin(f->typing, n->run);
    if (state_over((enum job_state)n->state) || n->settled)
        on_over(f, n);
}

static void on_output(void *context, const struct message_output *m) {
    struct follow *f = context;
    if (f->output == NULL)
        return;
    output_take(f->output, m);
    f->last_byte_ns = m->bytes.len > 0 ? f->contact.loop.now : f->last_byte_ns;
}

static void on_drained(void *context, const struct message_drained *m) {
    struct follow *f = context;
    if (f->typing != NULL)
        typing_drained(f->typing, m);
}

static void on_pids(void *context, const struct message_pids *m) {
    debug_pids(context, m);
}

static void on_up(void *context) {
    struct follow *f = context;
    if (f->typing != NULL)
        typing_again(f->typing);
}

static void on_lost(void *context, enum session_loss why) {
    struct follow *f = context;
    f->done = true;
    f->lost = true;
    f->status = STATUS_STORM;
    if (f->job == 0) {
        contact_lost(&f->contact, why);
        return;
    }
    complain(NULL, "the manager of cluster `%s` is gone; job %" PRIu32 " may go on, see: storm ps",
             f->contact.cluster.name, f->job);
}

/* Nobody reads any more, or a file cannot be written: the job has nobody to write to. */
static void on_trouble(void *context, const char *what, int error) {
    struct follow *f = context;
    if (error == -EPIPE) {
        f->signals.ending = SIGPIPE;
    } else {
        complain(what, "%s; %s", strerror(-error),
                 f->job != 0 ? "the job is ended" : "nothing was run");
        f->failed = true;
    }
    if (f->keep) {
        f->done = true;
        f->status = error == -EPIPE ? STATUS_SIGNAL + SIGPIPE : STATUS_STORM;
    } else if (f->job != 0) {
        session_do(f->contact.session, f->job, VERB_END, 0, NULL, NULL);
    }
}

/* ---- the submission ---- */

/* A manager that came back may have lost the job, if its disk was lost. */
static void on_followed(void *context, const struct message_answer *a) {
    struct follow *f = context;
    if (a->code == ANSWER_DONE || f->over)
        return;
    complain(NULL, "job %" PRIu32 " is not known to the manager any more; see: storm ps", f->job);
    f->status = STATUS_STORM;
    f->done = true;
}

static void on_submitted(void *context, const struct message_answer *a) {
    struct follow *f = context;
    f->answered_ns = clock_ns();
    if (a->code != ANSWER_DONE) {
        f->status = contact_refused(NULL, a);
        f->done = true;
        return;
    }
    f->job = a->job;
    f->waits_at = isatty(STDERR_FILENO) == 1 ? f->contact.loop.now + WAITS_NS : 0;
    if (f->output != NULL)
        output_job(f->output, f->job);
    session_follow(f->contact.session, f->job, 1, true, on_followed, f);
    if (f->signals.interrupted_at != 0)
        session_do(f->contact.session, f->job, VERB_KILL, 0, NULL, NULL);
}

static int submit(struct follow *f) {
    int r = session_submit(f->contact.session, &f->order->submit, on_submitted, f);
    if (r == -E2BIG)
        complain(NULL, "arguments and environment are too large together; see: --export");
    else if (r < 0)
        complain(NULL, "%s", strerror(-r));
    return r < 0 ? STATUS_STORM : 0;
}

/* ---- beginning ---- */

static int begin_streams(struct follow *f) {
    const struct wish *w = f->wish;
    const char *output = w->output;
    struct output_config config = {.loop = &f->contact.loop,
                                   .session = f->contact.session,
                                   .cluster = &f->contact.cluster,
                                   .fd = {STDOUT_FILENO, STDERR_FILENO},
                                   .file = {output, w->error != NULL ? w->error : output},
                                   .label = w->label,
                                   .places =
                                       f->order == NULL ? (struct bytes){0} : f->order->spec.places,
                                   .late = f->order == NULL,
                                   .context = f,
                                   .trouble = on_trouble};
    f->output = output_new(&config);
    if (f->output == NULL)
        return STATUS_STORM;
    if (output_open(f->output) < 0)
        return STATUS_STORM;
    if (f->order == NULL || !f->order->types)
        return 0;
    struct typing_config typing = {.loop = &f->contact.loop,
                                   .session = f->contact.session,
                                   .fd = STDIN_FILENO,
                                   .rank = f->order->types_to,
                                   .procs = f->order->size.procs};
    f->typing = typing_new(&typing);
    return f->typing == NULL ? STATUS_STORM : 0;
}

int follow_connect(struct follow *f, const struct wish *w) {
    struct session_config callbacks = {.patience_ns = PATIENCE_WAITING,
                                       .context = f,
                                       .up = on_up,
                                       .news = on_news,
                                       .output = on_output,
                                       .drained = on_drained,
                                       .pids = on_pids,
                                       .lost = on_lost};
    f->wish = w;
    f->signals.source.fd = -1;
    int r = contact_begin(&f->contact, &callbacks);
    if (r == 0)
        session_flush(f->contact.session);
    return r;
}

static void expect_files(struct follow *f) {
    uint32_t nodes = f->contact.cluster.nodes;
    f->ran_on_storage = malloc(nodeset_bytes(nodes));
    ASSERT(f->ran_on_storage != NULL);
    nodeset_init(&f->ran_on, nodes, f->ran_on_storage);
    nodeset_add_range(&f->ran_on, 0, nodes - 1);
}

int follow_begin(struct follow *f, const struct order *o) {
    f->order = o;
    f->epilogue.verbose = f->wish->verbose;
    f->epilogue.limit_ns = f->wish->time_ns;
    int r = begin_streams(f);
    if (o != NULL && (o->submit.flags & JOB_FETCH) != 0)
        expect_files(f);
    return r == 0 && o != NULL ? submit(f) : r;
}

/* ---- waiting ---- */

static void on_why(void *context, const struct message_rows *m) {
    struct follow *f = context;
    struct job_row row;
    char words[WHEN_WORDS_MAX];
    size_t at = 0;
    if (job_row_next(m->rows, &at, &row) == 1 && row.state == STATE_QUEUED && !f->done)
        complain(NULL, "job %" PRIu32 ": %s", f->job, when_words(row.why, when_now(), words));
}

static void tell_why(struct follow *f) {
    struct message_ask ask = {.subject = SUBJECT_WHY, .job = f->job, .most = 1};
    bool waits = f->last.state == STATE_QUEUED && !f->over;
    if (waits && f->waits_at > f->contact.loop.now) {
        loop_wake_at(&f->contact.loop, f->waits_at);
        return;
    }
    f->waits_at = 0;
    if (waits)
        session_ask(f->contact.session, &ask, on_why, f);
}

/* ---- the end ---- */

/* Some bytes may never come: of a lost node, or taken by another before us. */
static bool may_lack(const struct follow *f) {
    return f->order == NULL || f->last.state == STATE_LOST || f->last.status == STATUS_STORM;
}

/* The job was ended from here, and nobody reads what it has written. A reader who takes his time is waited for
 * otherwise, but not by somebody who wants his prompt back. */
static bool is_unread(const struct follow *f) {
    return (f->signals.interrupted_at != 0 || f->signals.ending != 0) && output_waiting(f->output);
}

/* Bytes are missing: they are asked for again, and not for ever. */
static void wait_for_output(struct follow *f) {
    struct loop *loop = &f->contact.loop;
    uint64_t received = output_received(f->output), now = loop->now;
    bool unread = is_unread(f);
    if (received != f->progress_bytes || (output_waiting(f->output) && !unread)) {
        f->progress_bytes = received;
        f->progress_at = now;
    }
    uint64_t patience = unread ? UNREAD_NS : may_lack(f) ? MISSING_LOST_NS : MISSING_NS;
    uint64_t end = f->progress_at + patience;
    if (end <= now) {
        if (!unread && !may_lack(f)) {
            complain(NULL, "job %" PRIu32 ": %" PRIu64 " bytes of its output are missing", f->job,
                     f->last.output - received);
            f->status = STATUS_STORM;
        }
        f->done = true;
        return;
    }
    if (f->nudge_at <= now) {
        f->nudge_ns *= 2;
        f->nudge_at = now + f->nudge_ns;
        session_do(f->contact.session, f->job, VERB_FOLLOW, 1, NULL, NULL);
    }
    loop_wake_at(loop, end < f->nudge_at ? end : f->nudge_at);
}

static void settle(struct follow *f) {
    if (f->typing != NULL)
        typing_settle(f->typing);
    if (f->output != NULL)
        output_settle(f->output);
    if (f->giver != NULL)
        giver_settle(f->giver);
    signals_settle(f);
    debug_settle(f);
    if (f->waits_at != 0)
        tell_why(f);
    if (!f->over || f->done)
        return;
    if (f->output == NULL)
        f->done = true;
    else if (output_received(f->output) >= f->last.output && !output_waiting(f->output))
        f->done = true;
    else
        wait_for_output(f);
}

bool follow_hidden(const struct follow *f) {
    return f->over && f->last.state == STATE_FAILED && f->last.cause == CAUSE_FAILED &&
           f->last.step == SPAWN_HIDDEN && f->order != NULL && f->signals.interrupted_at == 0 &&
           f->signals.ending == 0;
}

/* Whoever ended the job from here knows it, and whoever starts it again need not. */
static bool is_expected(const struct follow *f) {
    const struct follow_signals *s = &f->signals;
    bool interrupted = f->last.cause == CAUSE_KILLED && f->last.value == SIGINT;
    return f->failed || s->ending != 0 || follow_hidden(f) ||
           (s->interrupted_at != 0 && (interrupted || f->last.state == STATE_KILLED));
}

/* The manager tells how long after the submission. */
static void note_stages(const struct follow *f) {
    struct diary *d = giver_diary(f->giver);
    uint64_t now = clock_ns(), over = f->born_ns + f->since_ns[f->last.state];
    uint64_t runs =
        f->since_ns[STATE_RUNNING] == 0 ? over : f->born_ns + f->since_ns[STATE_RUNNING];
    diary_note(d, DIARY_SURVEY, f->began_ns, f->looked_ns, 0);
    diary_note(d, DIARY_SUBMIT, f->looked_ns, f->answered_ns, 0);
    diary_note(d, DIARY_LAUNCH, f->answered_ns, runs, 0);
    diary_note(d, DIARY_EXECUTE, runs, over, 0);
    diary_note(d, DIARY_REPORT, over, now, 0);
}

/* Of several programs, the one that could not be begun; which one could not be sent is not told. */
static void print_epilogue(struct follow *f) {
    if (f->order != NULL && f->order->programs.count > 0)
        f->epilogue.program = f->last.step == SPAWN_COPY
                                  ? NULL
                                  : programs_of(&f->order->programs, f->last.rank)->name;
    epilogue_print(&f->contact.cluster, &f->last, &f->epilogue);
}

static void finish(struct follow *f) {
    rawtty_end(&f->tty);
    if (f->output != NULL)
        output_finish(f->output);
    if (f->ran_on_storage != NULL)
        follow_fetch(f);
    signals_end(f);
    if (f->over && !is_expected(f))
        print_epilogue(f);
    cores_tell(&f->cores);
    if (f->over && f->signals.interrupted_at != 0 && f->last.state == STATE_KILLED)
        f->status = STATUS_SIGNAL + SIGINT;
    if (f->signals.ending != 0 && f->status != 0)
        f->status = STATUS_SIGNAL + f->signals.ending;
    if (f->failed)
        f->status = STATUS_STORM;
    if (f->wish->verbose)
        follow_times(f);
    if (f->wish->verbose && f->over)
        epilogue_usage(stderr, &f->contact.cluster, &f->last);
    if (f->giver != NULL)
        note_stages(f);
    if (f->over && (f->last.output > 0 || f->ran_on_storage != NULL)) /* until then nodes keep it */
        session_unfollow(f->contact.session, f->job);
    debug_end(f);
    output_free(f->output);
    typing_free(f->typing);
    giver_free(f->giver);
    free(f->ran_on_storage);
    contact_close(&f->contact);
}

int follow_until_over(struct follow *f) {
    while (!f->done) {
        settle(f);
        if (!f->done)
            session_turn(f->contact.session);
    }
    finish(f);
    return f->status;
}

/* ---- times ---- */

static void print_time(const char *words, uint64_t ns, const char *where) {
    if (ns != 0)
        fprintf(stderr, "  %-12s %9" PRIu64 ".%03" PRIu64 " ms  %s\n", words, ns / NS_PER_MS,
                ns % NS_PER_MS / 1000, where);
}

void follow_times(const struct follow *f) {
    static const char here[] = "this command", there[] = "the manager, since the submission";
    uint64_t up = session_up_ns(f->contact.session);
    fprintf(stderr, "storm: job %" PRIu32 ", %" PRIu32 " processes", f->job, f->last.procs);
    if (f->order != NULL && f->order->programs.count > 0)
        fprintf(stderr, " of %" PRIu32 " programs", f->order->programs.count);
    fputs(":\n", stderr);
    print_time("connected", up != 0 ? up - f->began_ns : 0, here);
    print_time("submitted", f->answered_ns != 0 ? f->answered_ns - f->began_ns : 0, here);
    for (int s = 0; s < STATES; s++)
        print_time(state_name((enum job_state)s), f->since_ns[s], there);
    print_time("last byte", f->last_byte_ns != 0 ? f->last_byte_ns - f->began_ns : 0, here);
    print_time("in all", clock_ns() - f->began_ns, here);
}
