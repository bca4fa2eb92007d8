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
#include "wire/crates.h"

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

enum { ITEMS_MAX = CLOSURE_LIBRARIES_MAX + 2 };

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
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
static uint32_t list_items(const struct freight_bundle *b, struct survey_item *items) {
    uint32_t count = 0;
    const char *loader = b->closure == NULL ? NULL : closure_interpreter(b->closure);
    if (loader != NULL)
        items[count++] = (struct survey_item){.path = loader, .name = name_of(loader)};
    items[count++] = (struct survey_item){.path = b->program, .name = name_of(b->program)};
    for (uint32_t i = 0; loader != NULL && i < closure_count(b->closure); i++) {
        const struct closure_library *l = closure_at(b->closure, i);
        bool known = l->place == NULL;
        for (uint32_t k = 0; k < count && !known; k++)
            known = strcmp(items[k].name, l->place) == 0;
        if (!known)
            items[count++] = (struct survey_item){.path = l->path, .name = l->place};
    }
    return count;
}

/* Pairs of strings: the name, and where the file is in a depot. */
static int make_outfit(struct freight_bundle *b, const struct survey_item *items, uint32_t count) {
    char object[ENTRY_OBJECT_BYTES];
    size_t len = 0;
    struct entry e;
    b->outfit = malloc(count * (size_t)(2 * ENTRY_OBJECT_BYTES));
    if (b->outfit == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (!find_entry(b->survey, items[i].name, &e))
            return -ENOENT;
        entry_object(&e, object);
        len += (size_t)snprintf(b->outfit + len, ENTRY_OBJECT_BYTES, "%s", items[i].name) + 1;
        len += (size_t)snprintf(b->outfit + len, ENTRY_OBJECT_BYTES, "%s", object) + 1;
    }
    long stubborn = closure_stubborn(b->closure, room_of(b->stubborn, sizeof b->stubborn));
    if (stubborn < 0)
        return (int)stubborn;
    b->outfit_len = len;
    b->stubborn_len = (size_t)stubborn;
    return 0;
}

static bool on_progress(void *context, uint64_t done, uint64_t all) {
    const struct sending *s = context;
    (void)done, (void)all;
    s->meanwhile(s->context);
    return true;
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
                                   .follow = true,
                                   .progress = s->meanwhile != NULL ? on_progress : NULL,
                                   .context = (void *)s};
    return survey_new(&config, items, count, ret, why);
}

static int look_over_program(struct freight_bundle *b, const struct sending *s, bool libraries,
                             char why[256]) {
    struct entry e;
    struct survey_item *items = calloc(ITEMS_MAX, sizeof *items);
    ASSERT(items != NULL);
    int r = libraries ? closure_new(b->program, b->library_path, NULL, &b->closure, why) : 0;
    uint32_t count = r < 0 ? 0 : list_items(b, items);
    if (r == 0)
        r = look_over(&b->survey, s, items, count, why);
    if (r == 0 && count > 1)
        r = make_outfit(b, items, count);
    if (r == 0 && !find_entry(b->survey, name_of(b->program), &e))
        r = -ENOENT;
    if (r == 0)
        entry_object(&e, b->image);
    free(items);
    return r;
}

static bool same(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The bundle of a program, new if there is none; NULL: there are too many. */
static struct freight_bundle *find_bundle(struct freight *f, const char *program,
                                          const char *library_path) {
    for (uint32_t i = 0; i < f->count; i++)
        if (same(f->bundles[i]->program, program) &&
            same(f->bundles[i]->library_path, library_path))
            return f->bundles[i];
    if (f->count == FREIGHT_BUNDLES_MAX)
        return NULL;
    struct freight_bundle *b = calloc(1, sizeof *b);
    ASSERT(b != NULL);
    b->program = strdup(program);
    b->library_path = library_path != NULL ? strdup(library_path) : NULL;
    ASSERT(b->program != NULL);
    f->bundles[f->count++] = b;
    return b;
}

static void add_range(struct freight_bundle *b, uint32_t first, uint32_t count) {
    b->ranges = reallocarray(b->ranges, b->range_count + 1, CRATE_RANGE_BYTES);
    ASSERT(b->ranges != NULL);
    crate_range_store(b->ranges + (size_t)b->range_count++ * CRATE_RANGE_BYTES,
                      (struct rank_range){.first = first, .count = count});
}

int freight_load(struct freight *f, const struct sending *s, const char *program, bool libraries,
                 const char *library_path, struct spec_program *ret) {
    char why[256] = "";
    const char *option = libraries ? "--with-libs" : "--copy";
    struct freight_bundle *b = find_bundle(f, program, library_path);
    if (b == NULL) {
        complain(option,
                 "more than %d different programs; put them on the nodes with storm cp, and give "
                 "--no-copy",
                 FREIGHT_BUNDLES_MAX);
        return STATUS_STORM;
    }
    int r = b->survey == NULL ? look_over_program(b, s, libraries, why) : 0;
    if (r < 0) {
        complain(option, "%s", why[0] != '\0' ? why : strerror(-r));
        return STATUS_NOT_RUN;
    }
    add_range(b, ret->first, ret->ranks);
    ret->image = bytes_from_str(b->image);
    ret->outfit = bytes_of(b->outfit, b->outfit_len);
    ret->stubborn = bytes_of(b->stubborn, b->stubborn_len);
    ret->argv0 = b->outfit_len > 0 && closure_argv0(b->closure);
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

/* All bundles of programs, each with who needs it; to be freed. */
static struct bytes describe_all(struct freight *f, const struct sending *s, const char *fabric) {
    uint8_t *all = NULL;
    size_t len = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        struct freight_bundle *b = f->bundles[i];
        struct bytes copy = describe(f, s, fabric, b->survey, GOAL_SPOOL);
        struct crate c = {.ranges = bytes_of(b->ranges, (size_t)b->range_count * CRATE_RANGE_BYTES),
                          .copy = copy};
        size_t cap = len + 16 + c.ranges.len + c.copy.len;
        all = realloc(all, cap);
        ASSERT(all != NULL);
        long n = crate_store(&c, room_of(all + len, cap - len));
        ASSERT(n > 0);
        len += (size_t)n;
        free((void *)copy.at);
    }
    return bytes_of(all, len);
}

int freight_open(struct freight *f, const struct sending *s, struct loop *loop,
                 const struct cluster *cluster, struct message_submit *submit) {
    char why[256];
    const char *option = f->count > 0 ? "--copy" : "--input";
    if (f->count == 0 && f->inputs == NULL)
        return 0;
    int r = giver_new(loop, cluster, NULL, &f->giver, why);
    if (r < 0) {
        complain(option, "%s", why);
        return STATUS_STORM;
    }
    char fabric[FABRIC_NAME_MAX + 1];
    r = sending_prepare(s, option, cluster, f->giver, fabric);
    if (r != 0)
        return r;
    if ((submit->flags & JOB_SEVERAL) != 0)
        submit->files = describe_all(f, s, fabric);
    else if (f->count > 0)
        submit->files = describe(f, s, fabric, f->bundles[0]->survey, GOAL_SPOOL);
    if (f->inputs != NULL)
        submit->inputs = describe(f, s, fabric, f->inputs, GOAL_PATH);
    f->files = (uint8_t *)submit->files.at;
    f->files_inside = (uint8_t *)submit->inputs.at;
    return 0;
}

static void free_bundle(struct freight_bundle *b) {
    survey_free(b->survey);
    closure_free(b->closure);
    free(b->outfit);
    free(b->ranges);
    free(b->program);
    free(b->library_path);
    free(b);
}

void freight_fini(struct freight *f) {
    giver_free(f->giver);
    for (uint32_t i = 0; i < f->count; i++)
        free_bundle(f->bundles[i]);
    survey_free(f->inputs);
    free(f->files);
    free(f->files_inside);
    *f = (struct freight){0};
}
