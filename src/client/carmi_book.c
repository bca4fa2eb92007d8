/* SPDX-License-Identifier: MIT */
/* A program's steward: who of its family can be reached, and where (struct peer_row). It is asked for when it is needed. */
#include <stdlib.h>
#include <string.h>

#include "client/carmi_steward.h"

void book_clear(struct list *book) {
    LIST_EACH_SAFE (l, book) {
        struct acquaintance *e = CONTAINER_OF(l, struct acquaintance, at);
        list_remove(l);
        free(e->name);
        free(e);
    }
}

/* ---- asking ---- */

static void ask(struct steward *s, uint32_t from) {
    errand_ask(s, ERRAND_BOOK, SUBJECT_PEERS, from, 0);
}

uint32_t book_want(struct steward *s) {
    if (s->books_asked != s->books) {
        s->book_again = true; /* what is on its way may be older than we */
        return s->books_asked + 1;
    }
    ask(s, 0);
    return ++s->books_asked;
}

static void say_where(struct steward *s) {
    union message m = {.reach = s->reach};
    errand_add(s, ERRAND_REACH, MESSAGE_REACH, &m, 0);
}

void book_anew(struct steward *s) {
    if ((s->reach.token[0] | s->reach.token[1]) != 0)
        say_where(s);
    book_clear(&s->book_next);
    if (s->books_asked != s->books)
        ask(s, 0);
}

void steward_listens(struct steward *s, const struct message_reach *reach,
                     const struct steward_ear *ear, void *context) {
    s->reach = *reach;
    s->ear = ear;
    s->ear_context = context;
    say_where(s);
}

/* ---- hearing ---- */

static struct acquaintance *find(const struct list *book, carmi_process id) {
    LIST_EACH (l, book) {
        struct acquaintance *e = CONTAINER_OF(l, struct acquaintance, at);
        if (e->id == id)
            return e;
    }
    return NULL;
}

/* Of one that has come twice (it was a program, then another) the newer counts. */
static void add(struct steward *s, const struct peer_row *row) {
    carmi_process id = (carmi_process)row->rank << 32 | row->job;
    struct acquaintance *e = find(&s->book_next, id);
    if (e != NULL && row->number < e->number)
        return;
    if (e == NULL) {
        e = calloc(1, sizeof *e);
        char *name = e == NULL ? NULL : steward_copy(s, row->name);
        if (name == NULL) {
            s->failed = true;
            free(e);
            return;
        }
        e->name = name;
        list_push_back(&s->book_next, &e->at);
    }
    size_t len =
        row->class_name.len < sizeof e->class_name ? row->class_name.len : sizeof e->class_name - 1;
    e->id = id;
    e->number = row->number;
    e->node = row->node;
    e->host = row->host;
    e->reach = row->reach;
    memset(e->class_name, 0, sizeof e->class_name);
    if (len > 0)
        memcpy(e->class_name, row->class_name.at, len);
}

static void tell_peers(struct steward *s, struct call *c) {
    size_t count = 0, bytes = 0, i = 0;
    LIST_EACH (l, &s->book) {
        count++;
        bytes += strlen(CONTAINER_OF(l, struct acquaintance, at)->name) + 1;
    }
    struct letter *l = letter_add(s, c, CARMI_PEERS);
    struct carmi_process_info *list = l == NULL ? NULL : letter_block(s, l, count * sizeof *list);
    char *text = list == NULL ? NULL : letter_block(s, l, bytes);
    call_end(c);
    if (text == NULL)
        return;
    LIST_EACH (k, &s->book) {
        const struct acquaintance *e = CONTAINER_OF(k, struct acquaintance, at);
        size_t len = strlen(e->name) + 1;
        list[i++] = (struct carmi_process_info){
            .id = e->id, .host = e->host, .executable = memcpy(text, e->name, len)};
        text += len;
    }
    l->message.processes = list;
    l->message.process_count = count;
}

static void done(struct steward *s) {
    book_clear(&s->book);
    list_move_all(&s->book, &s->book_next);
    s->books = s->books_asked;
    LIST_EACH_SAFE (l, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, at);
        if (c->kind == CALL_PEERS && c->book <= s->books)
            tell_peers(s, c);
    }
    if (s->book_again)
        book_want(s);
    s->book_again = false;
    if (s->ear != NULL)
        s->ear->book(s->ear_context);
}

void book_rows(struct steward *s, const struct message_rows *r) {
    struct peer_row row;
    uint32_t next = 0;
    for (size_t at = 0; peer_row_next(r->rows, &at, &row) > 0; next = row.place + 1)
        add(s, &row);
    if (!r->last && next > 0)
        ask(s, next);
    else
        done(s);
}

void book_job(struct steward *s, uint32_t job, const struct message_rows *r) {
    struct job_row row;
    size_t at = 0;
    bool over = job_row_next(r->rows, &at, &row) <= 0 || state_over((enum job_state)row.state);
    if (s->ear != NULL)
        s->ear->job(s->ear_context, job, over ? 0 : row.procs);
}
