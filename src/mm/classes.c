/* SPDX-License-Identifier: MIT */
/* Classes that programs define: names for hosts that are alike, known to all processes of a job and its hosts.
 *
 * They are kept here, in the log, and not by processes: one that has defined a class may be gone when another needs it, and after a new
 * life of ours processes could not tell a class that was removed from one that we have forgotten. What a class says is
 * looked at when hosts are asked for. A request that comes again is known by its number, also one that removed something. */
#include <errno.h>
#include <string.h>

#include "mm/inside.h"

enum { DEFINITIONS_MAX = 256, DEFINITIONS_EACH = 32 };

size_t classes_bytes(void) {
    return DEFINITIONS_MAX * sizeof(struct definition);
}

void classes_init(struct mm *m, struct arena *a) {
    m->definitions = ARENA_TAKE(a, struct definition, DEFINITIONS_MAX);
}

#define DEFINITIONS_EACH_OF(m, d) \
    for (struct definition *d = (m)->definitions; d < (m)->definitions + DEFINITIONS_MAX; d++)

static struct host_class class_of(const struct definition *d) {
    return (struct host_class){.most = 1, /* nobody asks for them by itself */
                               .ppn = d->ppn,
                               .name = bytes_of(d->name, d->name_len),
                               .need = bytes_of(d->need, d->need_len)};
}

static struct definition *find(struct mm *m, uint32_t head, struct bytes name) {
    DEFINITIONS_EACH_OF(m, d)
    if (d->head == head && !d->gone && bytes_equal(bytes_of(d->name, d->name_len), name))
        return d;
    return NULL;
}

bool classes_next(const struct mm *m, uint32_t head, uint32_t *at, struct host_class *ret) {
    while (*at < DEFINITIONS_MAX) {
        const struct definition *d = &m->definitions[(*at)++];
        if (d->head != head || d->gone)
            continue;
        *ret = class_of(d);
        return true;
    }
    return false;
}

void classes_drop(struct mm *m, uint32_t head) {
    if (m->definition_count == 0)
        return;
    DEFINITIONS_EACH_OF(m, d)
    if (d->head == head) {
        d->head = 0;
        m->definition_count--;
    }
}

/* The first that is free, or else one that only remembers what was removed. */
static struct definition *free_place(struct mm *m, uint32_t head) {
    struct definition *found = NULL;
    uint32_t own = 0;
    DEFINITIONS_EACH_OF(m, d) {
        own += d->head == head && !d->gone;
        if ((d->head == 0 && (found == NULL || found->head != 0)) || (found == NULL && d->gone))
            found = d;
    }
    return own < DEFINITIONS_EACH ? found : NULL;
}

static bool define(struct mm *m, uint32_t head, const uint64_t request[2],
                   const struct host_class *h) {
    struct definition *d = free_place(m, head);
    if (d == NULL)
        return false;
    m->definition_count += d->head == 0;
    *d = (struct definition){.head = head,
                             .request = {request[0], request[1]},
                             .ppn = h->ppn,
                             .name_len = (uint16_t)h->name.len,
                             .need_len = (uint16_t)h->need.len};
    memcpy(d->name, h->name.at, h->name.len);
    if (h->need.len > 0)
        memcpy(d->need, h->need.at, h->need.len);
    return true;
}

static void undefine(struct definition *d, const uint64_t request[2]) {
    d->gone = true;
    d->request[0] = request[0];
    d->request[1] = request[1];
}

void classes_replay(struct mm *m, uint32_t head, const struct class_change *c) {
    struct definition *d = find(m, head, c->what.name);
    if (c->removed && d != NULL)
        undefine(d, c->request);
    else if (!c->removed && d == NULL)
        define(m, head, c->request, &c->what);
}

/* ---- judging ---- */

static bool is_given(const struct mm *m, const struct job *head, struct bytes name) {
    struct host_class one;
    for (uint32_t i = 0; family_class(m, head, i, &one); i++)
        if (bytes_equal(one.name, name))
            return true;
    return false;
}

/* 0, or an errno with why. */
static int judge_define(struct mm *m, const struct job *head, const struct host_class *h,
                        const char **why) {
    *why = "there is a class of that name";
    if (is_given(m, head, h->name) || find(m, head->id, h->name) != NULL)
        return EEXIST;
    *why = "too many classes are defined";
    return free_place(m, head->id) == NULL ? ENOSPC : 0;
}

static int judge_undefine(struct mm *m, const struct job *head, struct bytes name,
                          const char **why) {
    *why = "the program was started with that class";
    if (is_given(m, head, name))
        return EBUSY;
    *why = "there is no such class";
    if (find(m, head->id, name) == NULL)
        return EINVAL;
    *why = "the program has hosts of it, or waits for some";
    return family_has(m, head->id, name) ? EBUSY : 0;
}

/* Has it been heard before? */
static bool is_repeated(const struct mm *m, uint32_t head, const uint64_t request[2]) {
    for (uint32_t i = 0; i < DEFINITIONS_MAX; i++) {
        const struct definition *d = &m->definitions[i];
        if (d->head == head && d->request[0] == request[0] && d->request[1] == request[1])
            return true;
    }
    return false;
}

static void keep(struct mm *m, uint32_t link, const struct job *head,
                 const struct class_change *c) {
    struct after *a = after_add(m, record_class(m, head, c), AFTER_ACT);
    a->link = link;
    memcpy(a->request, c->request, sizeof a->request);
    a->job = head->id;
    a->count = 1;
}

void classes_heard(struct mm *m, uint32_t link, const struct message_act *a) {
    struct class_change c = {.request = {a->request[0], a->request[1]},
                             .removed = a->verb == VERB_UNDEFINE};
    const struct job *head =
        a->jobs.len != 4 ? NULL : job_find(m, family_head(m, load_le32(a->jobs.at)));
    size_t at = 0;
    const char *why = "what is said of that class makes no sense";
    int wrong = class_next(a->text, &at, &c.what) == 1 && c.what.name.len > 0 ? 0 : EINVAL;
    if (head == NULL || state_over((enum job_state)head->state)) {
        client_answer(m, link, a->request, ANSWER_UNKNOWN, 0, ESRCH, "there is no such job");
        return;
    }
    if (is_repeated(m, head->id, a->request)) {
        client_answer(m, link, a->request, ANSWER_DONE, head->id, 1, "");
        return;
    }
    if (wrong == 0)
        wrong = c.removed ? judge_undefine(m, head, c.what.name, &why)
                          : judge_define(m, head, &c.what, &why);
    if (wrong == 0 && after_full(m, 0)) {
        why = "try again in a moment";
        wrong = EAGAIN;
    }
    if (wrong != 0) {
        client_answer(m, link, a->request, ANSWER_REFUSED, head->id, (uint32_t)wrong, why);
        return;
    }
    classes_replay(m, head->id, &c);
    keep(m, link, head, &c);
}
