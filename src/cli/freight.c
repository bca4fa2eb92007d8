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
    return 0;
}

void freight_ledger(char *out, size_t cap) {
    char home[CLUSTER_PATH_MAX];
    out[0] = '\0';
    if (cluster_home(home, sizeof home) == 0)
        snprintf(out, cap, "%s/digests", home);
}

/* "ab/ab12.../name": where a depot keeps a file. */
static void name_image(struct freight *f, const struct entry *e) {
    char hex[65];
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", e->sha256[i]);
    snprintf(f->image, sizeof f->image, "%.2s/%s/%.*s", hex, hex, (int)e->path.len,
             (const char *)e->path.at);
}

int freight_load(struct freight *f, const struct sending *s, const char *program,
                 struct spec *spec) {
    char ledger[CLUSTER_PATH_MAX + 16], why[256];
    const char *slash = strrchr(program, '/');
    struct survey_item item = {.path = program, .name = slash != NULL ? slash + 1 : program};
    freight_ledger(ledger, sizeof ledger);
    struct survey_config config = {.beneath = AT_FDCWD,
                                   .ledger = ledger[0] != '\0' ? ledger : NULL,
                                   .digest = DIGEST_XXH3,
                                   .piece_bytes = (uint32_t)s->chunk_bytes,
                                   .follow = true};
    int r = survey_new(&config, &item, 1, &f->survey, why);
    struct entry e;
    size_t at = 0;
    if (r < 0) {
        complain("--copy", "%s", why);
        return STATUS_NOT_RUN;
    }
    r = entry_next(survey_manifest(f->survey), &at, &e);
    ASSERT(r == 1);
    name_image(f, &e);
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
    size_t cap = 1024 + b.pages.len;
    uint8_t *descriptor = malloc(cap);
    f->files = malloc(2 * cap);
    ASSERT(descriptor != NULL && f->files != NULL);
    long len = bundle_encode(&b, room_of(descriptor, cap));
    ASSERT(len > 0);
    nodeset_init(&none, 1, &storage);
    union message m = {.copy = {.offer = giver_offer(f->giver, f->survey),
                                .source = NO_NODE,
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
    free(f->files);
    *f = (struct freight){0};
}
