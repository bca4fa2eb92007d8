/* SPDX-License-Identifier: MIT */
/* A program's steward: requests that are outstanding. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/carmi_steward.h"

struct call *call_add(struct steward *s, enum call_kind kind, int tag) {
    struct call *c = calloc(1, sizeof *c);
    if (c == NULL) {
        s->failed = true;
        return NULL;
    }
    c->id = ++s->calls_made;
    c->tag = tag;
    c->kind = kind;
    list_push_back(&s->calls, &c->at);
    return c;
}

struct call *call_find(const struct steward *s, carmi_request id) {
    LIST_EACH (l, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, at);
        if (c->id == id)
            return c;
    }
    return NULL;
}

void call_end(struct call *c) {
    list_remove(&c->at);
    for (size_t i = 0; i < c->process_count; i++)
        free((char *)(uintptr_t)c->processes[i].executable);
    free(c->processes);
    free(c->class_name);
    free(c->class_of);
    free(c->hosts);
    free(c->slots);
    free(c->where);
    free(c);
}

bool call_add_host(struct steward *s, struct call *c, carmi_host host) {
    if (c->host_count == c->host_cap) {
        size_t cap = c->host_cap == 0 ? 8 : 2 * c->host_cap;
        void *more = realloc(c->hosts, cap * sizeof *c->hosts);
        if (more == NULL) {
            s->failed = true;
            return false;
        }
        c->hosts = more;
        c->host_cap = cap;
    }
    c->hosts[c->host_count++] = host;
    return true;
}

bool call_set_hosts(struct steward *s, struct call *c, const carmi_host *hosts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!call_add_host(s, c, hosts[i]))
            return false;
    return true;
}

/* ---- letters ---- */

bool steward_outstanding(const struct steward *s, carmi_request call) {
    return call_find(s, call) != NULL;
}

bool steward_letter(struct steward *s, carmi_request call, struct carmi_message *ret) {
    LIST_EACH_SAFE (l, &s->given_out)
        list_remove(l), letter_free(CONTAINER_OF(l, struct letter, at));
    LIST_EACH (l, &s->letters) {
        struct letter *one = CONTAINER_OF(l, struct letter, at);
        if (call != 0 && one->message.request != call)
            continue;
        *ret = one->message;
        list_remove(l);
        list_push_back(&s->given_out, l);
        return true;
    }
    return false;
}
