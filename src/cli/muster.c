/* SPDX-License-Identifier: MIT */
/* Something is done on hosts: see muster.h. */
#include "cli/muster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/voices.h"

enum { WORDS_MAX = 256 };

struct muster_host {
    uint32_t cookie;
    char *input;           /* NULL: it was sent, or there is none */
    bool ready, fed, over; /* its command begins; it has its input; it was told */
    char said[WORDS_MAX], complained[WORDS_MAX];
    size_t said_len, complained_len;
};

struct muster {
    struct muster_config config;
    struct roll roll;
    struct muster_host *hosts;
    uint32_t cap, told, fed;
    struct task task;
    struct parcels parcels;
    char *places[TASK_FILES_MAX];
    struct limb *limb;
};

/* ---- what comes up ---- */

static void tell_over(struct muster *m, struct muster_host *h, int status, const char *words) {
    if (h->over)
        return;
    h->over = true;
    m->told++;
    m->config.over(m->config.context, h->cookie, status, words);
}

/* Ends a line: it is told, if it is output; the last one of errors is kept. */
static void take_line(struct muster *m, struct muster_host *h, bool errors) {
    char *at = errors ? h->complained : h->said;
    char *words = voices_words(bytes_of(at, errors ? h->complained_len : h->said_len));
    if (words != NULL && !errors)
        m->config.said(m->config.context, h->cookie, words);
    else if (words != NULL && *words != '\0')
        snprintf(h->complained, sizeof h->complained, "%s", words);
    free(words);
}

/* Lines that are too long are cut. */
static void take_output(struct muster *m, struct muster_host *h, const struct frame *f) {
    bool errors = f->flag == 2;
    char *out = errors ? h->complained : h->said;
    size_t *len = errors ? &h->complained_len : &h->said_len;
    for (size_t i = 0; i < f->body.len; i++) {
        char c = (char)f->body.at[i];
        if (c == '\n') {
            take_line(m, h, errors);
            *len = 0;
        } else if (*len < WORDS_MAX - 1) {
            out[(*len)++] = c;
            out[*len] = '\0';
        }
    }
}

static void take_end(struct muster *m, struct muster_host *h, const struct frame *f) {
    char words[WORDS_MAX];
    char *given = voices_words(f->body);
    int status = f->flag == FRAME_EXITED    ? (int)f->number
                 : f->flag == FRAME_STRANGE ? MUSTER_STRANGE
                                            : MUSTER_LOST;
    if (f->flag == FRAME_KILLED)
        snprintf(words, sizeof words, "it was ended by signal %u", f->number);
    else if (f->flag == FRAME_TIMED)
        snprintf(words, sizeof words, "it took too long");
    else if (f->flag == FRAME_FAILED || f->flag == FRAME_STRANGE)
        snprintf(words, sizeof words, "%s", given != NULL ? given : "");
    else if (status != 0 && h->complained[0] == '\0')
        snprintf(words, sizeof words, "exit %d", status);
    else
        snprintf(words, sizeof words, "%s", h->complained);
    free(given);
    tell_over(m, h, status, words);
}

static void on_up(void *context, const struct frame *f) {
    struct muster *m = context;
    if (f->host >= m->roll.count)
        return;
    struct muster_host *h = &m->hosts[f->host];
    if (f->kind == FRAME_READY) {
        h->ready = true;
        if (f->flag != 0)
            m->config.sent(m->config.context, h->cookie);
    } else if (f->kind == FRAME_OUTPUT) {
        take_output(m, h, f);
    } else if (f->kind == FRAME_OVER) {
        take_end(m, h, f);
    } else if (f->kind == FRAME_RETURN || f->kind == FRAME_LOST) {
        char *words = voices_words(f->body);
        int status = f->kind == FRAME_LOST ? MUSTER_LOST
                     : f->flag == HOP_LATE ? MUSTER_LATE
                                           : MUSTER_NOT_REACHED;
        tell_over(m, h, status, words != NULL ? words : "");
        free(words);
    }
}

static bool is_full(void *context) {
    (void)context;
    return false;
}

/* ---- what goes down ---- */

/* There may be a key in it. */
static void forget_input(struct muster_host *h) {
    if (h->input != NULL)
        explicit_bzero(h->input, strlen(h->input));
    free(h->input);
    h->input = NULL;
}

/* Not at once when it is ready: the task must have gone before. */
static void feed(struct muster *m) {
    for (uint32_t i = 0; i < m->roll.count && m->fed < m->roll.count; i++) {
        struct muster_host *h = &m->hosts[i];
        struct frame f = {.kind = FRAME_INPUT, .host = i};
        if (!h->ready || h->fed)
            continue;
        h->fed = true;
        m->fed++;
        size_t len = h->input != NULL ? strlen(h->input) : 0;
        for (size_t at = 0; at < len; at += f.body.len) {
            f.body = bytes_of(h->input + at, len - at < FRAME_BODY_MAX ? len - at : FRAME_BODY_MAX);
            limb_told(m->limb, &f);
        }
        f.body = bytes_of(NULL, 0);
        limb_told(m->limb, &f);
        forget_input(h);
    }
}

/* ---- its life ---- */

static int add_file(struct muster *m, const struct muster_file *file) {
    struct task_file *t = &m->task.put[m->task.put_count];
    char *place = strdup(file->to);
    int r = place == NULL ? -ENOMEM : parcels_add(&m->parcels, file->from, t);
    if (r < 0) {
        complain(file->from, "it cannot be sent: %s", strerror(-r));
        free(place);
        return r;
    }
    t->path = bytes_from_str(place);
    t->mode |= TASK_FILE_OWN;
    m->places[m->task.put_count++] = place;
    return 0;
}

struct muster *muster_new(const struct muster_config *c, int *ret_error) {
    struct muster *m = calloc(1, sizeof *m);
    *ret_error = -ENOMEM;
    if (m == NULL)
        return NULL;
    m->config = *c;
    m->task = (struct task){.input = true,
                            .input_host = FRAME_ALL,
                            .command_ns = c->command_ns,
                            .connector = c->reach->connector,
                            .command = bytes_from_str(c->line),
                            .own = bytes_from_str(c->own != NULL ? c->own : "")};
    *ret_error = 0;
    for (uint32_t i = 0; i < c->file_count && *ret_error == 0; i++)
        *ret_error = add_file(m, &c->files[i]);
    if (*ret_error == 0)
        return m;
    muster_free(m);
    return NULL;
}

static int grow(struct muster *m) {
    uint32_t cap = m->cap == 0 ? 16 : 2 * m->cap;
    char **names = realloc(m->roll.names, cap * sizeof *names);
    m->roll.names = names != NULL ? names : m->roll.names;
    uint16_t *crates = realloc(m->roll.crates, cap * sizeof *crates);
    m->roll.crates = crates != NULL ? crates : m->roll.crates;
    struct muster_host *hosts = realloc(m->hosts, cap * sizeof *hosts);
    m->hosts = hosts != NULL ? hosts : m->hosts;
    if (names == NULL || crates == NULL || hosts == NULL)
        return -ENOMEM;
    m->cap = cap;
    return 0;
}

int muster_add(struct muster *m, const char *name, uint32_t cookie, char *input) {
    int r = m->roll.count == m->cap ? grow(m) : 0;
    char *copy = r == 0 ? strdup(name) : NULL;
    if (copy == NULL) {
        forget_input(&(struct muster_host){.input = input});
        return -ENOMEM;
    }
    m->roll.names[m->roll.count] = copy;
    m->roll.crates[m->roll.count] = 0;
    m->hosts[m->roll.count++] = (struct muster_host){.cookie = cookie, .input = input};
    return 0;
}

int muster_begin(struct muster *m) {
    const struct muster_config *c = &m->config;
    reach_plan(&m->task, &(struct reach_wish){.hosts = m->roll.count,
                                              .shape = c->shape,
                                              .connect_ns = c->connect_ns});
    m->limb = limb_new(&(struct limb_config){.loop = c->loop,
                                             .task = &m->task,
                                             .helper = &c->reach->helper,
                                             .parcels = &m->parcels,
                                             .root = true,
                                             .context = m,
                                             .up = on_up,
                                             .full = is_full});
    return m->limb == NULL ? -ENOMEM : reach_begin(m->limb, &m->roll);
}

void muster_reaped(struct muster *m, pid_t pid, int status) {
    limb_reaped(m->limb, pid, status);
}

void muster_settle(struct muster *m) {
    limb_settle(m->limb);
    if (m->fed < m->roll.count) {
        feed(m);
        limb_settle(m->limb);
    }
}

void muster_stop(struct muster *m) {
    limb_stop(m->limb);
    for (uint32_t i = 0; i < m->roll.count; i++)
        tell_over(m, &m->hosts[i], MUSTER_CANCELLED, "it was not waited for");
}

bool muster_over(const struct muster *m) {
    return limb_over(m->limb);
}

void muster_free(struct muster *m) {
    if (m == NULL)
        return;
    limb_free(m->limb);
    parcels_fini(&m->parcels);
    for (uint32_t i = 0; i < m->task.put_count; i++)
        free(m->places[i]);
    for (uint32_t i = 0; i < m->roll.count; i++)
        forget_input(&m->hosts[i]);
    free(m->hosts);
    roll_free(&m->roll);
    free(m);
}
