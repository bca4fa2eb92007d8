/* SPDX-License-Identifier: MIT */
/* storm replay: its jobs, judged, shown and submitted.
 *
 * Many are on their way at once, so that the manager keeps them together in its log. One that it has no room for now
 * is tried again when those before it are answered. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/complain.h"
#include "cli/replay.h"
#include "cli/submit.h"
#include "cli/swf.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/when.h"

enum { WINDOW = 64, WORD_MAX = 32, JOB_NAME_MAX = 32, COMPLAINTS_MAX = 10 };

/* ---- one job ---- */

/* A request, and what it points to. */
struct draft {
    struct wish wish;
    struct script script;
    struct order order;
    char place[REPLAY_PLACE_MAX];
    char procs[WORD_MAX], seconds[WORD_MAX], percent[WORD_MAX], name[JOB_NAME_MAX];
    char *argv[JOBFILE_WORDS_MAX + 2];
    char **program; /* among them, or in a file */
};

static void draft_fini(struct draft *d) {
    order_fini(&d->order);
    script_fini(&d->script);
    parts_fini(&d->wish.parts);
}

/* The limit is what the job asked for, and a little: one that takes all its time would be ended otherwise. */
static int draft_trace(const struct replay *r, size_t job, struct draft *d) {
    const struct workload_job *j = &r->trace.jobs[job];
    double scale = (double)r->scale_x1000 / (double)SWF_SCALE_ONE;
    snprintf(d->procs, sizeof d->procs, "%" PRIu32, j->pes);
    snprintf(d->seconds, sizeof d->seconds, "%.6f", (double)j->run / scale);
    snprintf(d->percent, sizeof d->percent, "%g", r->busy);
    snprintf(d->name, sizeof d->name, "swf-%" PRIu64, j->id);
    double limit = (double)j->estimate / scale * (double)NS_PER_S + (double)r->grace_ns;
    d->wish = (struct wish){.procs = d->procs,
                            .time_ns = limit < 0x1p62 ? (uint64_t)limit : (uint64_t)1 << 62,
                            .name = d->name,
                            .output = "/dev/null",
                            .chdir = "/",
                            .exported = "none"};
    d->argv[1] = (char *)r->mime;
    d->argv[2] = d->seconds;
    d->argv[3] = d->percent;
    d->argv[4] = NULL;
    d->program = d->argv + 1;
    return 0;
}

static int draft_line(const struct replay *r, size_t job, struct draft *d) {
    struct option table[WISH_OPTIONS_MAX];
    d->argv[0] = d->place;
    jobfile_words(&r->jobfile, job, d->argv + 1);
    int argc = (int)r->jobfile.jobs[job].words + 1;
    int count = submit_read(&d->wish, &d->script, table, argc, d->argv, &d->program);
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count <= 0)
        return complain(d->place, "submit what? a program is missing");
    if (d->wish.begin != NULL)
        return complain(d->place, "--begin: the time at the beginning of the line says when");
    if (d->wish.cluster != NULL || d->wish.wait || d->wish.dry_run)
        return complain(d->place, "--%s is an option of storm replay or of storm submit alone",
                        d->wish.cluster != NULL ? "cluster"
                        : d->wish.wait          ? "wait"
                                                : "dry-run");
    return submit_judge(d->place, &d->wish);
}

/* 0, or the exit status after a complaint; the draft is to be ended either way. */
static int draft_make(const struct replay *r, size_t job, struct draft *d) {
    d->order = (struct order){0};
    d->script = (struct script){0};
    replay_place(r, job, d->place);
    int status = r->is_trace ? draft_trace(r, job, d) : draft_line(r, job, d);
    if (status != 0)
        return status;
    status = order_make(&d->order, &d->wish, WISH_SUBMIT, &r->contact.cluster, d->program);
    if (status != 0) /* which does not know of lines */
        complain(d->place, "that was about this line");
    d->order.submit.begin_ns = r->start_ns + replay_arrival(r, job);
    return status;
}

static struct draft *draft_new(void) {
    struct draft *d = calloc(1, sizeof *d);
    if (d == NULL)
        complain("replay", "%s", strerror(ENOMEM));
    return d;
}

/* ---- all of them ---- */

/* What is made of a trace will do. */
int replay_judge(struct replay *r) {
    struct draft *d = r->is_trace ? NULL : draft_new();
    int status = r->is_trace || d != NULL ? 0 : STATUS_STORM;
    for (size_t i = r->first; d != NULL && i < r->end && status == 0; i++) {
        r->bad[i] = draft_make(r, i, d) != 0;
        r->bad_count += r->bad[i];
        draft_fini(d);
        if (r->bad[i] && r->strict)
            status = STATUS_USAGE;
    }
    free(d);
    if (status == 0 && r->bad_count == r->end - r->first)
        return STATUS_USAGE;
    if (r->bad_count > 0)
        complain(r->path, r->strict ? "nothing was submitted" : "%zu jobs will not do: passed over",
                 r->bad_count);
    return status;
}

static void show_job(struct table *t, const struct replay *r, size_t job, const struct draft *d) {
    const struct message_submit *s = &d->order.submit;
    char text[UNITS_TEXT_MAX], words[TABLE_CELL_MAX] = "";
    uint64_t arrival_ms = replay_arrival(r, job) / NS_PER_MS;
    table_cell(t, "%" PRIu64 ".%03" PRIu64, arrival_ms / 1000, arrival_ms % 1000);
    table_cell(t, "%.*s", (int)s->name.len, (const char *)s->name.at);
    table_cell(t, "%" PRIu32, s->procs);
    table_cell(t, "%" PRIu32, s->nodes);
    text[0] = '\0';
    if (s->limit_ns > 0)
        units_format_duration(s->limit_ns, text, sizeof text);
    table_cell(t, "%s", text);
    for (char *const *a = d->argv + 1; *a != NULL && strlen(words) < sizeof words - 1; a++) {
        size_t len = strlen(words);
        snprintf(words + len, sizeof words - len, "%s%s", len > 0 ? " " : "", *a);
    }
    table_cell(t, "%s", words);
}

int replay_show(struct replay *r) {
    static const char *const titles[] = {">ARRIVES, s", "NAME",    ">PROCS", ">NODES",
                                         ">LIMIT",      "COMMAND", NULL};
    struct table t;
    struct draft *d = draft_new();
    int status = d == NULL ? STATUS_STORM : 0;
    table_init(&t, titles);
    for (size_t i = r->first; i < r->end && status == 0; i++) {
        if (r->bad[i])
            continue;
        status = draft_make(r, i, d);
        if (status == 0)
            show_job(&t, r, i, d);
        draft_fini(d);
    }
    free(d);
    table_print(&t, stdout);
    table_fini(&t);
    return status == 0 && r->bad_count > 0 ? STATUS_FAILED : status;
}

/* ---- submission ---- */

struct sender {
    struct replay *r;
    struct draft *draft;
    struct {
        size_t job;
        struct contact_answer answer;
    } under_way[WINDOW];
    size_t sent, heard;       /* so many ever; the difference is under way */
    size_t again[WINDOW + 1]; /* one more while they are tried */
    size_t again_count;       /* were refused for want of room */
};

static void add_numbers(struct replay *r, size_t job, uint32_t first, uint32_t count) {
    struct joblist *l = &r->jobs;
    if (l->count + count > l->cap) {
        l->cap = 2 * l->cap + count + 256;
        l->at = reallocarray(l->at, l->cap, sizeof *l->at);
        r->sources = reallocarray(r->sources, l->cap, sizeof *r->sources);
        ASSERT(l->at != NULL && r->sources != NULL);
    }
    for (uint32_t i = 0; i < count; i++) {
        r->sources[l->count] = job;
        l->at[l->count++] = first + i;
    }
}

static void heard(struct sender *s, size_t job, const struct contact_answer *a) {
    struct replay *r = s->r;
    char place[REPLAY_PLACE_MAX];
    if (a->code == ANSWER_DONE) {
        add_numbers(r, job, a->job, a->count > 0 ? a->count : 1);
        r->late += r->start_ns + replay_arrival(r, job) < when_now();
    } else if (a->code == ANSWER_FULL) {
        s->again[s->again_count++] = job;
    } else if (r->refused++ < COMPLAINTS_MAX) {
        struct message_answer plain = {.code = a->code, .text = bytes_from_str(a->text)};
        contact_refused(replay_place(r, job, place), &plain);
    }
}

/* Until fewer than `most` are under way. */
static int hear(struct sender *s, size_t most) {
    while (s->sent - s->heard > most) {
        const struct contact_answer *a = &s->under_way[s->heard % WINDOW].answer;
        while (!a->here && !s->r->contact.lost)
            session_turn(s->r->contact.session);
        if (!a->here)
            return STATUS_STORM;
        heard(s, s->under_way[s->heard++ % WINDOW].job, a);
    }
    return 0;
}

static int say(struct sender *s, size_t job) {
    int status = draft_make(s->r, job, s->draft), e = 0;
    if (status == 0) {
        struct contact_answer *a = &s->under_way[s->sent % WINDOW].answer;
        *a = (struct contact_answer){0};
        s->under_way[s->sent % WINDOW].job = job;
        e = session_submit(s->r->contact.session, &s->draft->order.submit, contact_answered, a);
        s->sent += e == 0;
    }
    if (e == -E2BIG) {
        s->r->refused++;
        complain(s->draft->place,
                 "arguments and environment are too large together; see: --export");
    } else if (e < 0) {
        complain("replay", "%s", strerror(-e));
        status = STATUS_STORM;
    }
    draft_fini(s->draft);
    return status;
}

/* Those that there was no room for, in their order, until there is. */
static int say_again(struct sender *s) {
    const struct timespec moment = {.tv_nsec = 100 * (long)NS_PER_MS};
    int status = hear(s, 0);
    for (size_t i = 0; i < s->again_count && status == 0; i++) {
        size_t before = s->again_count;
        status = say(s, s->again[i]);
        if (status == 0)
            status = hear(s, 0);
        if (s->again_count == before)
            continue;
        s->again_count = before;
        terminal_progress("the cluster has no room for more jobs now ...");
        nanosleep(&moment, NULL);
        i--;
    }
    s->again_count = 0;
    return status;
}

static void show_progress(const struct replay *r, size_t job) {
    char words[80];
    if (job % 256 != 0)
        return;
    snprintf(words, sizeof words, "submitting: %zu of %zu ...", job - r->first, r->end - r->first);
    terminal_progress(words);
}

static int say_all(struct sender *s) {
    int status = 0;
    for (size_t i = s->r->first; i < s->r->end && status == 0; i++) {
        if (s->r->bad[i])
            continue;
        show_progress(s->r, i);
        status = hear(s, WINDOW - 1);
        if (status == 0 && s->again_count > 0)
            status = say_again(s);
        if (status == 0)
            status = say(s, i);
    }
    if (status == 0)
        status = hear(s, 0);
    return status == 0 ? say_again(s) : status;
}

int replay_send(struct replay *r) {
    struct session_config callbacks = {.patience_ns = PATIENCE_WAITING};
    struct sender *s = calloc(1, sizeof *s);
    struct draft *d = draft_new();
    int status = STATUS_STORM;
    if (s != NULL && d != NULL)
        status = contact_begin(&r->contact, &callbacks);
    if (status == 0) {
        s->r = r;
        s->draft = d;
        status = say_all(s);
        terminal_progress(NULL);
        if (r->detach || status != 0 || r->jobs.count == 0)
            contact_close(&r->contact);
    }
    if (status == 0 && r->refused > COMPLAINTS_MAX)
        complain("replay", "%" PRIu64 " more were refused", r->refused - COMPLAINTS_MAX);
    if (status == 0 && r->jobs.count == 0)
        status = STATUS_STORM;
    free(s);
    free(d);
    return status;
}
