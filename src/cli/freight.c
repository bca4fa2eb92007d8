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
#include "cli/fabrics.h"
#include "cli/inputs.h"
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
    if (s->fabric != NULL && !fabrics_word(s->fabric))
        return complain(command,
                        "--fabric %s: auto, streams, ofi or ofi:PROVIDER; storm doctor "
                        "shows which there are",
                        s->fabric);
    return 0;
}

void sending_to(struct sending *s, const struct cluster *cluster, uint32_t nodes) {
    s->digest = cluster->links == TRANSPORT_TCP ? DIGEST_SHA256 : DIGEST_XXH3; /* see decision 22 */
    if (cluster->bytes_per_s == 0)
        return;
    s->terms = spread_usual(cluster->bytes_per_s);
    s->terms.receivers = nodes;
}

int sending_prepare(const struct sending *s, const char *command, const struct cluster *cluster,
                    struct giver *giver, char out[FABRIC_NAME_MAX + 1]) {
    char why[256];
    if (!fabrics_pick(s->fabric, cluster, out))
        out[0] = '\0';
    if (out[0] == '\0' || giver == NULL || giver_prepare(giver, out, why) == 0)
        return 0;
    bool asked = s->fabric != NULL && strncmp(s->fabric, "ofi", 3) == 0;
    if (asked)
        complain(command, "--fabric %s: %s", s->fabric, why);
    out[0] = '\0'; /* a wish of the cluster's that cannot be fulfilled here */
    return asked ? STATUS_STORM : 0;
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
        snprintf(hex + 2 * i, 3, "%02x", e->sum[i]);
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

static int look_over(struct survey **ret, const struct sending *s, const struct survey_item *items,
                     uint32_t count, char why[256]) {
    char ledger[CLUSTER_PATH_MAX + 16];
    freight_ledger(ledger, sizeof ledger);
    struct survey_config config = {.beneath = AT_FDCWD,
                                   .ledger = ledger[0] != '\0' ? ledger : NULL,
                                   .digest = s->digest,
                                   .piece_bytes = (uint32_t)s->chunk_bytes,
                                   .spread = s->spread,
                                   .terms = s->terms,
                                   .send = s->type,
                                   .follow = true};
    return survey_new(&config, items, count, ret, why);
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
        r = look_over(&f->survey, s, items, count, why);
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

int freight_load_inputs(struct freight *f, const struct sending *s,
                        const struct text_list *inputs) {
    char why[256] = "";
    uint32_t count = inputs->count;
    struct job_input *read = calloc(count, sizeof *read);
    struct survey_item *items = calloc(count, sizeof *items);
    ASSERT(read != NULL && items != NULL);
    int status = 0;
    for (uint32_t i = 0; i < count && status == 0; i++) {
        status = input_read(inputs->at[i], &read[i]);
        items[i] = (struct survey_item){.path = read[i].path, .name = read[i].name};
    }
    int r = status == 0 ? look_over(&f->inputs, s, items, count, why) : 0;
    if (r < 0) {
        complain("--input", "%s", why[0] != '\0' ? why : strerror(-r));
        status = STATUS_NOT_RUN;
    }
    free(items);
    free(read);
    return status;
}

/* What the request says of one bundle; to be freed. */
static struct bytes describe(struct freight *f, const struct sending *s, const char *fabric,
                             struct survey *survey, enum goal goal) {
    uint64_t storage = 0;
    struct nodeset none;
    struct bundle b = *survey_bundle(survey);
    b.goal = (uint8_t)goal;
    b.to =
        goal == GOAL_PATH ? bytes_from_str("/") : (struct bytes){0}; /* the manager knows better */
    size_t cap = 512 + bundle_room(&b);
    uint8_t *descriptor = malloc(cap), *files = malloc(2 * cap);
    ASSERT(descriptor != NULL && files != NULL);
    long len = bundle_encode(&b, room_of(descriptor, cap));
    ASSERT(len > 0);
    nodeset_init(&none, 1, &storage);
    union message m = {.copy = {.source = NO_NODE,
                                .offer = giver_offer(f->giver, survey),
                                .shape = s->spread.shape,
                                .arity = s->spread.arity,
                                .slots = s->slots == 0 ? 1 : (uint32_t)s->slots,
                                .set = &none,
                                .address = giver_address(f->giver),
                                .fabric = bytes_from_str(fabric),
                                .descriptor = bytes_of(descriptor, (size_t)len)}};
    len = message_encode(MESSAGE_COPY, &m, room_of(files, 2 * cap));
    ASSERT(len > 0);
    free(descriptor);
    return bytes_of(files, (size_t)len);
}

int freight_open(struct freight *f, const struct sending *s, struct loop *loop,
                 const struct cluster *cluster, struct message_submit *submit) {
    char why[256];
    if (f->survey == NULL && f->inputs == NULL)
        return 0;
    int r = giver_new(loop, cluster, NULL, &f->giver, why);
    if (r < 0) {
        complain(f->survey != NULL ? "--copy" : "--input", "%s", why);
        return STATUS_STORM;
    }
    char fabric[FABRIC_NAME_MAX + 1];
    r = sending_prepare(s, f->survey != NULL ? "--copy" : "--input", cluster, f->giver, fabric);
    if (r != 0)
        return r;
    if (f->survey != NULL)
        submit->files = describe(f, s, fabric, f->survey, GOAL_SPOOL);
    if (f->inputs != NULL)
        submit->inputs = describe(f, s, fabric, f->inputs, GOAL_PATH);
    f->files = (uint8_t *)submit->files.at;
    f->files_inside = (uint8_t *)submit->inputs.at;
    return 0;
}

void freight_fini(struct freight *f) {
    giver_free(f->giver);
    survey_free(f->survey);
    survey_free(f->inputs);
    closure_free(f->closure);
    free(f->outfit);
    free(f->files);
    free(f->files_inside);
    *f = (struct freight){0};
}
