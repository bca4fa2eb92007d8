/* SPDX-License-Identifier: MIT */
/* The scribe: see scribe.h. */
#include "cli/scribe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "cli/contact.h"
#include "cli/epilogue.h"
#include "client/output.h"
#include "wire/row.h"
#include "wire/spec.h"

enum { NAME_BYTES = 4096, WORDS_BYTES = 512, DEVNULL = -1 };

/* After the end: how long to wait for bytes that were written and do not come, as they were lost with a
 * node. */
#define MISSING_NS (3 * NS_PER_S)

/* In the cluster's folder, where daemons are at home. */
#define TALLIES "scribe"

/* One run whose output is being written. */
struct page {
    struct list at;
    struct scribe *scribe;
    uint32_t job;
    bool told;                 /* its end */
    bool following;            /* its files are known, and output was asked for */
    uint32_t asked;            /* for that, and not answered yet */
    uint64_t total;            /* then: all its bytes */
    struct output *output;     /* NULL until its files are known */
    struct nodeset nodes;      /* it runs on, if that was told before; storage NULL: it was not */
    struct message_news known; /* then */
    uint64_t moved_at;         /* then: when bytes have come last */
    uint64_t moved;            /* and how many that were */
    struct message_news end;
    char text[WORDS_BYTES]; /* of the end */
    char program[WORDS_BYTES];
    uint8_t *spec; /* of a job of several programs */
    size_t spec_len;
    char names[2][NAME_BYTES];
    char tally[32];              /* how far they are written, should we die */
    char unwritten[WORDS_BYTES]; /* the first that could not be written, and why */
};

struct scribe {
    struct contact contact;
    struct list pages;
    bool lost;
};

static struct page *find(struct scribe *s, uint32_t job) {
    LIST_EACH (at, &s->pages) {
        struct page *p = CONTAINER_OF(at, struct page, at);
        if (p->job == job)
            return p;
    }
    return NULL;
}

static void close_page(struct page *p) {
    list_remove(&p->at);
    output_free(p->output);
    free(p->nodes.storage);
    free(p->spec);
    free(p);
}

/* Whoever waits for the job is told the first; how far its files are written is our own affair. */
static void on_trouble(void *context, const char *what, int error) {
    struct page *p = context;
    fprintf(stderr, "storm: %s: %s\n", what, strerror(-error));
    if (p->unwritten[0] == '\0' && strcmp(what, p->tally) != 0)
        snprintf(p->unwritten, sizeof p->unwritten, "%.320s: %s", what, strerror(-error));
}

/* Relative to where the job was submitted. */
static void take_name(char out[NAME_BYTES], struct bytes folder, struct bytes name) {
    out[0] = '\0';
    if (name.len == 0)
        return;
    if (name.at[0] == '/')
        snprintf(out, NAME_BYTES, "%.*s", (int)name.len, name.at);
    else
        snprintf(out, NAME_BYTES, "%.*s/%.*s", (int)folder.len, folder.at, (int)name.len, name.at);
}

static void name_program(struct page *p, struct bytes program) {
    snprintf(p->program, sizeof p->program, "%.*s", (int)program.len, (const char *)program.at);
}

/* Which of several its end is about is known then only. */
static void keep_spec(struct page *p, struct bytes bytes) {
    p->spec = malloc(bytes.len);
    p->spec_len = p->spec == NULL ? 0 : bytes.len;
    if (p->spec != NULL)
        memcpy(p->spec, bytes.at, bytes.len);
}

static void on_followed(void *context, const struct message_answer *a) {
    struct page *p = context;
    (void)a;
    p->asked--;
}

/* The answer comes behind the news of the job: until then its page stays open, or these would open another. */
static void follow(struct page *p) {
    p->following = true;
    if (session_do(p->scribe->contact.session, p->job, VERB_FOLLOW, 1, on_followed, p) == 0)
        p->asked++;
}

static void open_output(struct page *p, const struct spec *spec) {
    struct scribe *s = p->scribe;
    take_name(p->names[0], spec->folder, spec->output);
    take_name(p->names[1], spec->folder, spec->error);
    name_program(p, spec->program);
    struct output_config config = {
        .loop = &s->contact.loop,
        .session = s->contact.session,
        .cluster = &s->contact.cluster,
        .fd = {DEVNULL, DEVNULL},
        .file = {p->names[0], p->names[1][0] != '\0' ? p->names[1] : p->names[0]},
        .places = spec->places,
        .tally = p->tally,
        .context = p,
        .trouble = on_trouble};
    snprintf(p->tally, sizeof p->tally, TALLIES "/%" PRIu32, p->job);
    p->output = output_new(&config);
    if (p->output == NULL)
        return;
    output_job(p->output, p->job);
    if (p->nodes.storage != NULL)
        output_nodes(p->output, &p->known);
    follow(p);
}

static void on_spec(void *context, const struct message_rows *r) {
    struct page *p = context;
    struct spec spec;
    if (r->total == 0 || spec_decode(r->rows, &spec) < 0 || spec.output.len == 0) {
        close_page(p); /* over and gone, or nobody wants its output */
        return;
    }
    if (spec.ranks > 0)
        keep_spec(p, r->rows);
    open_output(p, &spec);
}

static struct page *open_page(struct scribe *s, uint32_t job) {
    struct page *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->scribe = s;
    p->job = job;
    list_init(&p->at);
    list_push_back(&s->pages, &p->at);
    struct message_ask ask = {.subject = SUBJECT_SPEC, .job = job};
    if (session_ask(s->contact.session, &ask, on_spec, p) < 0) {
        close_page(p);
        return NULL;
    }
    return p;
}

static void on_output(void *context, const struct message_output *m) {
    struct scribe *s = context;
    struct page *p = find(s, run_job(m->run));
    if (p == NULL)
        p = open_page(s, run_job(m->run)); /* these bytes will come again */
    else if (p->output != NULL)
        output_take(p->output, m);
}

/* A short job may be over before its files are known, and its nodes are in their names. */
static void take_nodes(struct page *p, const struct message_news *n) {
    if (p->output != NULL) {
        output_nodes(p->output, n);
        return;
    }
    if (nodeset_empty(n->nodes))
        return;
    void *storage = p->nodes.storage;
    if (storage == NULL)
        storage = malloc(nodeset_bytes(p->scribe->contact.cluster.nodes));
    if (storage == NULL)
        return;
    nodeset_init(&p->nodes, p->scribe->contact.cluster.nodes, storage);
    nodeset_copy(&p->nodes, n->nodes);
    p->known = *n;
    p->known.nodes = &p->nodes;
}

static void on_news(void *context, const struct message_news *n) {
    struct scribe *s = context;
    struct page *p = find(s, n->job);
    bool taken = n->settled && n->output > 0 && !n->held; /* by us */
    if (p == NULL && !taken)
        p = open_page(s, n->job);
    if (p == NULL)
        return;
    contact_meet(&s->contact, n->nodes);
    take_nodes(p, n);
    if (!n->settled)
        return;
    p->told = true;
    p->end = *n;
    p->end.nodes = p->end.waiting = NULL;
    size_t len = n->text.len < sizeof p->text ? n->text.len : sizeof p->text;
    if (len > 0)
        memcpy(p->text, n->text.at, len);
    p->end.text = bytes_of(p->text, len);
    p->total = n->output;
    p->moved_at = s->contact.loop.now;
}

static void on_up(void *context) {
    struct scribe *s = context;
    LIST_EACH (at, &s->pages) {
        struct page *p = CONTAINER_OF(at, struct page, at);
        if (p->following)
            follow(p);
    }
}

static void on_lost(void *context, enum session_loss why) {
    struct scribe *s = context;
    (void)why;
    s->lost = true;
}

/* What we have to say of its end stands in its file: nobody may be there to hear it. */
static void say_end(struct page *p) {
    const struct message_news *n = &p->end;
    struct epilogue about = {.program = p->program};
    struct spec spec;
    struct spec_program ran;
    if (p->spec != NULL && spec_decode(bytes_of(p->spec, p->spec_len), &spec) == 0 &&
        spec_program_of(&spec, n->rank, &ran))
        name_program(p, ran.program);
    char *words = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&words, &len);
    if (out == NULL)
        return;
    epilogue_write(out, &p->scribe->contact.cluster, n, &about);
    if (fclose(out) == 0 && len > 0)
        output_say(p->output, n->node == NO_NODE ? 0 : n->rank, bytes_of(words, len));
    free(words);
}

/* All has come, or nothing comes any more. */
static bool is_over(struct page *p) {
    uint64_t received = output_received(p->output), now = p->scribe->contact.loop.now;
    if (!p->told || p->asked > 0 || output_waiting(p->output))
        return false;
    if (received >= p->total)
        return true;
    if (received != p->moved)
        p->moved_at = now;
    p->moved = received;
    loop_wake_at(&p->scribe->contact.loop, p->moved_at + MISSING_NS);
    return p->moved_at + MISSING_NS <= now;
}

static void unfollow(struct page *p) {
    uint8_t job[4];
    store_le32(job, p->job);
    struct message_act m = {.verb = VERB_UNFOLLOW,
                            .value = 1,
                            .jobs = bytes_of(job, sizeof job),
                            .text = bytes_from_str(p->unwritten)};
    session_act(p->scribe->contact.session, &m, NULL, NULL);
}

static void finish(struct page *p) {
    output_finish(p->output);
    say_end(p);
    unfollow(p);
    unlink(p->tally);
    close_page(p);
}

static void settle(struct scribe *s) {
    LIST_EACH_SAFE (at, &s->pages) {
        struct page *p = CONTAINER_OF(at, struct page, at);
        if (p->output == NULL)
            continue;
        if (p->told)
            output_run(p->output, p->end.run);
        output_settle(p->output);
        if (is_over(p))
            finish(p);
    }
}

int scribe_run(const char *cluster) {
    struct scribe s = {0};
    list_init(&s.pages);
    struct session_config callbacks = {.context = &s,
                                       .patience_ns = UINT64_MAX / 4,
                                       .up = on_up,
                                       .news = on_news,
                                       .output = on_output,
                                       .lost = on_lost};
    mkdir(TALLIES, 0700);
    int status = contact_open(&s.contact, cluster, &callbacks);
    if (status != 0)
        return status;
    session_follow(s.contact.session, 0, 1, false, NULL, NULL);
    while (!s.lost) {
        session_turn(s.contact.session);
        settle(&s);
    }
    contact_close(&s.contact);
    return 0;
}
