/* SPDX-License-Identifier: MIT */
/* A program's steward: programs that a host lacks.
 *
 * A host says so before anything has begun there. Then the file mover of our own node is asked to have the file ready, and the process
 * is asked for again, with what is to go to its host's cache before; it is run from there. Who has it already is not sent it again.
 * Those who wait for one file ask once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/carmi_steward.h"
#include "rm/spread.h"
#include "wire/bundle.h"
#include "wire/spec.h"

/* What is ready is so for a while, and movers may die: then it is asked for again. */
enum { SENDINGS_MAX = 3, COPY_BYTES = 512 };

static struct task *awaiting(const struct steward *s, const char *program) {
    LIST_EACH (l, &s->tasks) {
        struct task *t = CONTAINER_OF(l, struct task, at);
        if (t->awaits && strcmp(t->program, program) == 0)
            return t;
    }
    return NULL;
}

static bool can_ship(const struct task *t, const struct message_news *n) {
    bool lacks = n->step == SPAWN_HIDDEN && n->value == ENOENT;
    bool again = t->sendings > 0 && (n->step == SPAWN_COPY || n->step == SPAWN_IMAGE);
    return n->cause == CAUSE_FAILED && (lacks || again) && t->program != NULL && t->spec != NULL &&
           t->sendings < SENDINGS_MAX;
}

bool task_ships(struct steward *s, struct task *t, const struct message_news *n) {
    if (!can_ship(t, n))
        return false;
    task_release(s, t);
    t->job = 0;
    t->sendings++;
    if (awaiting(s, t->program) == NULL) {
        union message m = {
            .offer = {.program = true, .set = &s->none, .path = bytes_from_str(t->program)}};
        errand_add(s, ERRAND_OFFER, MESSAGE_OFFER, &m, t->call);
    }
    t->awaits = true;
    return true;
}

/* Where a cache has the file of a bundle that holds but one; false: it makes no sense. */
static bool find_image(struct bytes descriptor, char out[ENTRY_OBJECT_BYTES]) {
    struct bundle b;
    struct entry e;
    size_t at = 0;
    if (bundle_decode(descriptor, &b) < 0 || entry_next(b.manifest, &at, &e) != 1 ||
        e.kind != ENTRY_FILE)
        return false;
    entry_object(&e, out);
    return true;
}

/* The same process, from the cache. */
static int order_image(struct steward *s, const struct task *t, const char *image,
                       struct bytes files) {
    struct spec spec;
    size_t cap = t->spec_len + ENTRY_OBJECT_BYTES;
    uint8_t *body = malloc(cap);
    int r = body == NULL ? -ENOMEM : spec_decode(bytes_of(t->spec, t->spec_len), &spec);
    if (r == 0) {
        spec.image = bytes_from_str(image);
        long len = spec_encode(&spec, room_of(body, cap));
        r = len < 0 ? (int)len : task_order(s, t, bytes_of(body, (size_t)len), files);
    }
    free(body);
    return r;
}

/* What is to be sent before, as a client would say it; its length, or -errno. */
static long describe(struct steward *s, const struct message_offered *o, struct room out) {
    union message m = {.copy = {.source = o->node,
                                .offer = o->offer,
                                .shape = SPREAD_AUTO,
                                .slots = 1,
                                .set = &s->none,
                                .descriptor = o->descriptor}};
    return message_encode(MESSAGE_COPY, &m, out);
}

static void ship(struct steward *s, const char *program, const struct message_offered *o) {
    char image[ENTRY_OBJECT_BYTES];
    size_t cap = o->descriptor.len + COPY_BYTES;
    uint8_t *copy = malloc(cap);
    long len = copy == NULL ? -ENOMEM : describe(s, o, room_of(copy, cap));
    bool good = len >= 0 && find_image(o->descriptor, image);
    for (struct task *t; (t = awaiting(s, program)) != NULL;) {
        t->awaits = false;
        int r = good ? order_image(s, t, image, bytes_of(copy, (size_t)len)) : -EBADMSG;
        if (r < 0)
            task_fail(s, t, -r, bytes_from_str("what it needs is too much to be said"));
    }
    free(copy);
}

void ship_offered(struct steward *s, carmi_request call, const struct message_offered *o) {
    const struct task *first = task_of_call(s, call);
    char *program =
        first == NULL || !first->awaits ? NULL : steward_copy(s, bytes_from_str(first->program));
    if (program == NULL)
        return;
    if (o->error == 0)
        ship(s, program, o);
    else
        for (struct task *t; (t = awaiting(s, program)) != NULL;)
            task_fail(s, t, -o->error, o->text);
    free(program);
}
