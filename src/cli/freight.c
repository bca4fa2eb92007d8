/* SPDX-License-Identifier: MIT */
/* What goes to the nodes before a job begins: see freight.h. */
#include "cli/freight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/complain.h"
#include "client/closure.h"

int sending_check(struct sending *s, const char *command) {
    if (s->tree != NULL && !spread_parse(s->tree, &s->spread))
        return complain(command,
                        "--tree %s: there is no such shape; chain, k-ary:4, binomial, flat, pair "
                        "or auto",
                        s->tree);
    if (s->chunk != NULL && (units_parse_size(s->chunk, &s->chunk_bytes) < 0 ||
                             s->chunk_bytes < 4 * KIB || s->chunk_bytes > 2 * MIB))
        return complain(command, "--chunk %s: from 4KiB to 2MiB", s->chunk);
    if (s->slots > SLOTS_MAX || s->slots == 1)
        return complain(command, "--slots: from 2 to %d", SLOTS_MAX);
    if (s->send != NULL && !send_type_parse(s->send, &s->type))
        return complain(command, "--send %s: give " SEND_TYPE_NAMES, s->send);
    return 0;
}

void freight_ledger(char *out, size_t cap) {
    char home[CLUSTER_PATH_MAX];
    out[0] = '\0';
    if (cluster_home(home, sizeof home) == 0)
        snprintf(out, cap, "%s/digests", home);
}

enum { ITEMS_MAX = CLOSURE_LIBRARIES_MAX + 2, OBJECT_BYTES = 400 };

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* "ab/ab12.../name": where a depot keeps a file. */
static void name_object(const struct entry *e, char out[OBJECT_BYTES]) {
    char hex[65];
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", e->sha256[i]);
    snprintf(out, OBJECT_BYTES, "%.2s/%s/%.*s", hex, hex, (int)e->path.len,
             (const char *)e->path.at);
}

/* The entry of that name. */
static bool find_entry(const struct survey *s, const char *name, struct entry *ret) {
    size_t at = 0;
    while (entry_next(survey_manifest(s), &at, ret) == 1)
        if (bytes_equal(ret->path, bytes_from_str(name)))
            return true;
    return false;
}

/* What is to be sent: the loader, the program, its libraries; two libraries of one place are one. */
static uint32_t list_items(const struct freight *f, const char *program,
                           struct survey_item *items) {
    uint32_t count = 0;
    const char *loader = f->closure == NULL ? NULL : closure_interpreter(f->closure);
    if (loader != NULL)
        items[count++] = (struct survey_item){.path = loader, .name = name_of(loader)};
    items[count++] = (struct survey_item){.path = program, .name = name_of(program)};
    for (uint32_t i = 0; loader != NULL && i < closure_count(f->closure); i++) {
        const struct closure_library *l = closure_at(f->closure, i);
        bool known = l->place == NULL;
        for (uint32_t k = 0; k < count && !known; k++)
            known = strcmp(items[k].name, l->place) == 0;
        if (!known)
            items[count++] = (struct survey_item){.path = l->path, .name = l->place};
    }
    return count;
}

/* Pairs of strings: the name, and where the file is in a depot. */
static int make_outfit(struct freight *f, const struct survey_item *items, uint32_t count,
                       struct spec *spec) {
    char object[OBJECT_BYTES];
    size_t len = 0;
    struct entry e;
    f->outfit = malloc(count * (size_t)(2 * OBJECT_BYTES));
    if (f->outfit == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (!find_entry(f->survey, items[i].name, &e))
            return -ENOENT;
        name_object(&e, object);
        len += (size_t)snprintf(f->outfit + len, OBJECT_BYTES, "%s", items[i].name) + 1;
        len += (size_t)snprintf(f->outfit + len, OBJECT_BYTES, "%s", object) + 1;
    }
    long stubborn = closure_stubborn(f->closure, room_of(f->stubborn, sizeof f->stubborn));
    if (stubborn < 0)
        return (int)stubborn;
    spec->outfit = bytes_of(f->outfit, len);
    spec->stubborn = bytes_of(f->stubborn, (size_t)stubborn);
    spec->argv0 = closure_argv0(f->closure);
    return 0;
}

static int look_over(struct freight *f, const struct sending *s, const struct survey_item *items,
                     uint32_t count, char why[256]) {
    char ledger[CLUSTER_PATH_MAX + 16];
    freight_ledger(ledger, sizeof ledger);
    struct survey_config config = {.beneath = AT_FDCWD,
                                   .ledger = ledger[0] != '\0' ? ledger : NULL,
                                   .digest = DIGEST_XXH3,
                                   .piece_bytes = (uint32_t)s->chunk_bytes,
                                   .send = s->type,
                                   .follow = true};
    return survey_new(&config, items, count, &f->survey, why);
}

int freight_load(struct freight *f, const struct sending *s, const char *program, bool libraries,
                 const char *library_path, struct spec *spec) {
    char why[256] = "";
    struct entry e;
    struct survey_item *items = calloc(ITEMS_MAX, sizeof *items);
    ASSERT(items != NULL);
    int r = libraries ? closure_new(program, library_path, NULL, &f->closure, why) : 0;
    uint32_t count = r < 0 ? 0 : list_items(f, program, items);
    if (r == 0)
        r = look_over(f, s, items, count, why);
    if (r == 0 && count > 1)
        r = make_outfit(f, items, count, spec);
    if (r == 0 && !find_entry(f->survey, name_of(program), &e))
        r = -ENOENT;
    free(items);
    if (r < 0) {
        complain(libraries ? "--with-libs" : "--copy", "%s", why[0] != '\0' ? why : strerror(-r));
        return STATUS_NOT_RUN;
    }
    name_object(&e, f->image);
    spec->image = bytes_from_str(f->image);
    return 0;
}

int freight_open(struct freight *f, const struct sending *s, struct loop *loop,
                 const struct cluster *cluster, struct bytes *ret) {
    char why[256];
    uint64_t storage = 0;
    struct nodeset none;
    int r = giver_new(loop, cluster, NULL, &f->giver, why);
    if (r < 0) {
        complain("--copy", "%s", why);
        return STATUS_STORM;
    }
    struct bundle b = *survey_bundle(f->survey);
    b.goal = GOAL_SPOOL;
    size_t cap = 512 + bundle_room(&b);
    uint8_t *descriptor = malloc(cap);
    f->files = malloc(2 * cap);
    ASSERT(descriptor != NULL && f->files != NULL);
    long len = bundle_encode(&b, room_of(descriptor, cap));
    ASSERT(len > 0);
    nodeset_init(&none, 1, &storage);
    union message m = {.copy = {.source = NO_NODE,
                                .offer = giver_offer(f->giver, f->survey),
                                .shape = s->spread.shape,
                                .arity = s->spread.arity,
                                .slots = s->slots == 0 ? 1 : (uint32_t)s->slots,
                                .set = &none,
                                .address = giver_address(f->giver),
                                .descriptor = bytes_of(descriptor, (size_t)len)}};
    len = message_encode(MESSAGE_COPY, &m, room_of(f->files, 2 * cap));
    ASSERT(len > 0);
    free(descriptor);
    *ret = bytes_of(f->files, (size_t)len);
    return 0;
}

void freight_fini(struct freight *f) {
    giver_free(f->giver);
    survey_free(f->survey);
    closure_free(f->closure);
    free(f->outfit);
    free(f->files);
    *f = (struct freight){0};
}
