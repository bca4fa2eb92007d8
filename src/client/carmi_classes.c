/* SPDX-License-Identifier: MIT */
/* A program's steward: classes. All processes of the program have the same, so the manager is asked each time. */
#include <errno.h>
#include <string.h>

#include "client/carmi_steward.h"
#include "wire/classes.h"

enum { CLASS_BYTES = 32 + CLASS_NAME_MAX + NEED_TEXT_MAX };

void class_change(struct steward *s, struct call *c, enum verb verb, const struct carmi_class *d) {
    uint8_t text[CLASS_BYTES], job[4];
    struct host_class h = {.most = 1,
                           .ppn = d->processors == 0 ? 1 : d->processors,
                           .name = bytes_from_str(d->name),
                           .need = d->expression == NULL ? (struct bytes){0}
                                                         : bytes_from_str(d->expression)};
    long len = class_store(&h, room_of(text, sizeof text));
    store_le32(job, s->own);
    union message m = {.act = {.verb = (uint8_t)verb,
                               .nodes = &s->none,
                               .jobs = bytes_of(job, sizeof job),
                               .text = bytes_of(text, len < 0 ? 0 : (size_t)len)}};
    errand_add(s, verb == VERB_DEFINE ? ERRAND_DEFINE : ERRAND_UNDEFINE, MESSAGE_ACT, &m, c->id);
}

void class_answered(struct steward *s, enum errand_kind kind, struct call *c,
                    const struct message_answer *a) {
    struct letter *l =
        letter_add(s, c, kind == ERRAND_DEFINE ? CARMI_CLASS_DEFINED : CARMI_CLASS_REMOVED);
    if (a->code != ANSWER_DONE) {
        int error = a->code == ANSWER_FULL ? EAGAIN : (int)a->count;
        letter_failed(s, l, error > 1 ? error : EINVAL, a->text);
    }
    call_end(c);
}

static bool find(struct bytes rows, const char *name, struct host_class *ret) {
    for (size_t at = 0; class_next(rows, &at, ret) > 0;)
        if (bytes_equal(ret->name, bytes_from_str(name)))
            return true;
    return false;
}

static void order_hosts(struct steward *s, struct call *call, const struct host_class *k) {
    union message m = {.submit = {.kind = JOB_ALLOC,
                                  .flags = JOB_FAMILY | JOB_LENT | JOB_DETACHED,
                                  .nodes = 1,
                                  .ppn = k->ppn,
                                  .procs = k->ppn,
                                  .array_first = call->count > 1 ? 1 : 0,
                                  .array_last = call->count > 1 ? call->count : 0,
                                  .parent = s->head,
                                  .together = call->increment > 1 ? call->increment : 0,
                                  .name = k->name,
                                  .on = &s->none,
                                  .exclude = &s->none}};
    if (k->need.len > 0) {
        m.submit.flags |= JOB_NEEDS;
        m.submit.need = k->need;
    }
    if (errand_add(s, ERRAND_ADD, MESSAGE_SUBMIT, &m, call->id) != NULL)
        s->adds_unanswered++;
}

void class_rows(struct steward *s, struct call *c, const struct message_rows *r) {
    struct host_class k;
    if (c->kind == CALL_CLASSES) {
        letter_classes(s, letter_add(s, c, CARMI_CLASSES), r->rows);
        call_end(c);
    } else if (!find(r->rows, c->class_name, &k)) {
        letter_failed(s, letter_add(s, c, CARMI_HOSTS_ADDED), EINVAL,
                      bytes_from_str("there is no such class"));
        call_end(c);
    } else if (c->kind == CALL_ADD_TO_BE) {
        c->kind = CALL_ADD;
        order_hosts(s, c, &k);
    } else {
        c->kind = CALL_ADD_NOTIFY;
        hosts_present(s, c);
    }
}
