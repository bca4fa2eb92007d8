/* SPDX-License-Identifier: MIT */
/* Cargoes: see cargo.h. */
#include "sim/cargo.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

enum { HOLE_BYTES = 1 << 20, DESCRIPTOR_ROOM = 256, OPEN_MANIFEST_BYTES = 8 };

static const char destination[] = "/data/set";

/* ---- contents ---- */

static void draw_piece(struct stock *f, struct cargo *c, uint32_t i, const struct cargo_config *k,
                       struct random *r) {
    uint64_t coin = random_below(r, 100), same = random_below(r, 100), len = random_u64(r);
    if (k->like != NULL && i < k->like->bundle.pieces && same >= k->changes_percent) {
        c->tags[i] = k->like->tags[i];
        c->lens[i] = k->like->lens[i];
        return;
    }
    if (coin < k->holes_percent && i > 0)
        return;
    c->tags[i] = ++f->tags;
    if (k->lens != NULL)
        c->lens[i] = k->lens[i];
    else
        c->lens[i] = k->even || i == 0 ? k->piece_bytes : 1 + (uint32_t)(len % k->piece_bytes);
}

static void draw_pieces(struct stock *f, struct cargo *c, const struct cargo_config *k,
                        struct random *r) {
    for (uint32_t i = 0; i < k->pieces; i++)
        draw_piece(f, c, i, k, r);
    uint64_t all = (uint64_t)k->pieces * k->piece_bytes;
    if (k->even && k->bytes > 0) {
        ASSERT(k->bytes <= all && all - k->bytes < k->piece_bytes);
        c->lens[k->pieces - 1] -= (uint32_t)(all - k->bytes);
    }
}

/* ---- table and descriptor ---- */

static void digest_of_tag(uint64_t tag, uint8_t ret[DIGEST_BYTES_MAX]) {
    memset(ret, 0, DIGEST_BYTES_MAX);
    store_le64(ret, tag);
    store_le64(ret + 8, ~tag);
}

static void write_table(struct cargo *c) {
    uint32_t row = bundle_row_bytes(DIGEST_XXH3);
    for (uint32_t i = 0; i < c->bundle.pieces; i++) {
        struct piece p = {.hole = c->tags[i] == 0,
                          .bytes = c->tags[i] == 0 ? HOLE_BYTES : c->lens[i]};
        digest_of_tag(c->tags[i], p.digest);
        piece_store(c->table + (size_t)i * row, DIGEST_XXH3, &p);
        c->bundle.bytes += p.bytes;
        if (!p.hole && c->bundle.piece_bytes < p.bytes)
            c->bundle.piece_bytes = p.bytes;
    }
}

struct bytes cargo_page(const struct cargo *c, uint32_t page) {
    size_t row = bundle_row_bytes(DIGEST_XXH3);
    return bytes_of(c->table + row * page * c->bundle.page_pieces,
                    row * bundle_page_pieces(&c->bundle, page));
}

static void write_digests(const struct cargo *c, uint8_t *out) {
    for (uint32_t page = 0; page < c->pages; page++, out += 16) {
        struct bytes table = cargo_page(c, page);
        struct hash h;
        store_le64(out, hash_once(table.at, table.len));
        hash_init(&h, page);
        hash_bytes(&h, table.at, table.len);
        store_le64(out + 8, hash_done(&h));
    }
}

/* One allocation for all of it: numbers first, as they want to be aligned. */
static void make_room(struct cargo *c) {
    uint32_t pieces = c->bundle.pieces;
    size_t tags = pieces * sizeof *c->tags, lens = pieces * sizeof *c->lens;
    size_t table = (size_t)pieces * bundle_row_bytes(DIGEST_XXH3);
    c->memory = calloc(1, tags + lens + table + 32 * (size_t)c->pages + DESCRIPTOR_ROOM);
    ASSERT(c->memory != NULL);
    c->tags = (uint64_t *)(void *)c->memory;
    c->lens = (uint32_t *)(void *)(c->memory + tags);
    c->table = c->memory + tags + lens;
}

/* One that is open is known by its manifest alone. */
static void describe_open(struct cargo *c, const struct cargo_config *k, uint8_t *out,
                          struct room room) {
    uint8_t manifest[OPEN_MANIFEST_BYTES];
    store_le64(manifest, c->tags[0]);
    struct bundle b = c->bundle;
    b.pages = (struct bytes){0};
    b.manifest = bytes_of(manifest, sizeof manifest);
    b.pieces += k->spare;
    long len = bundle_encode(&b, room);
    ASSERT(len > 0);
    c->descriptor = bytes_of(out, (size_t)len);
}

static void describe(struct cargo *c, const struct cargo_config *k) {
    uint8_t *digests = c->table + (size_t)c->bundle.pieces * bundle_row_bytes(DIGEST_XXH3);
    uint8_t *out = digests + 16 * (size_t)c->pages;
    write_table(c);
    write_digests(c, digests);
    c->bundle.pages = bytes_of(digests, 16 * (size_t)c->pages);
    c->bundle.to = bytes_from_str(destination);
    c->open = k->open && c->lens[0] >= OPEN_MANIFEST_BYTES && c->tags[0] != 0 &&
              c->bundle.pieces + k->spare <= c->bundle.bytes - c->bundle.piece_bytes;
    if (c->open) {
        c->bundle.manifest_bytes = OPEN_MANIFEST_BYTES;
        describe_open(c, k, out, room_of(out, DESCRIPTOR_ROOM));
        return;
    }
    long len = bundle_encode(&c->bundle, room_of(out, 16 * (size_t)c->pages + DESCRIPTOR_ROOM));
    ASSERT(len > 0);
    c->descriptor = bytes_of(out, (size_t)len);
    int r = bundle_decode(c->descriptor, &c->bundle);
    ASSERT(r == 0);
}

/* ---- stock ---- */

uint32_t stock_add(struct stock *f, const struct cargo_config *k, struct random *r) {
    struct cargo *c = calloc(1, sizeof *c);
    f->cargoes = realloc(f->cargoes, (f->count + 1) * sizeof *f->cargoes);
    ASSERT(c != NULL && f->cargoes != NULL);
    f->cargoes[f->count] = c;
    c->bundle = (struct bundle){.digest = DIGEST_XXH3,
                                .goal = GOAL_PATH,
                                .manifest_bytes = 1,
                                .pieces = k->pieces,
                                .page_pieces = k->page_pieces};
    c->pages = bundle_page_count(&c->bundle);
    make_room(c);
    draw_pieces(f, c, k, r);
    describe(c, k);
    return f->count++;
}

void stock_fini(struct stock *f) {
    for (uint32_t i = 0; i < f->count; i++) {
        free(f->cargoes[i]->memory);
        free(f->cargoes[i]);
    }
    free(f->cargoes);
    *f = (struct stock){0};
}

const struct cargo *stock_find(const struct stock *f, struct bytes descriptor) {
    for (uint32_t i = 0; i < f->count; i++)
        if (bytes_equal(f->cargoes[i]->descriptor, descriptor))
            return f->cargoes[i];
    return NULL;
}

uint64_t cargo_bytes(const struct cargo *c) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->bundle.pieces; i++)
        bytes += c->lens[i];
    return bytes;
}
