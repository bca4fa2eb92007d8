/* SPDX-License-Identifier: MIT */
/* A stream that is being cut: see pieces.h. */
#include "os/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/digest.h"

/* What is read at once, beside what waits to be cut: small enough to stay in a processor's cache. There is room for several
 * of them, as what waits is moved to the front when there is none left. */
#define STEP_BYTES (256 * KIB)
enum { STEPS = 4 };

uint32_t pieces_usual(uint32_t asked, uint64_t bytes, uint64_t files) {
    uint32_t usual = asked == 0 ? PIECES_USUAL : asked;
    if (usual < PIECES_USUAL_MIN)
        usual = PIECES_USUAL_MIN;
    if (usual > PIECES_USUAL_MAX)
        return PIECES_USUAL_MAX;
    /* The mean is about what is asked for; a quarter is left for chance. Each file has a last piece. */
    while (usual < PIECES_USUAL_MAX && bytes / usual + files > PIECES_MAX / 4 * 3)
        usual = usual > PIECES_USUAL_MAX / 2 ? PIECES_USUAL_MAX : usual * 2;
    return usual;
}

uint32_t pieces_of_page(uint32_t pieces) {
    uint32_t n = BUNDLE_PAGE_PIECES;
    while (n < BUNDLE_PAGE_PIECES_MAX && pieces > n * BUNDLE_PAGES_MAX)
        n *= 2;
    return n;
}

void pieces_init(struct pieces *p, enum digest_kind digest, uint32_t usual) {
    *p = (struct pieces){.digest = digest, .usual = usual, .max = PIECES_MAX};
    cut_init(&p->cut, usual);
    ASSERT(p->cut.most <= BUNDLE_PIECE_BYTES_MAX);
}

void pieces_fini(struct pieces *p) {
    free(p->rows);
    free(p->buffer);
    p->rows = p->buffer = NULL;
}

void pieces_trim(struct pieces *p) {
    ASSERT(p->used == p->filled);
    free(p->buffer);
    p->buffer = NULL;
    p->used = p->filled = 0;
}

/* ---- Rows -------------------------------------------------------------------------------------- */

/* Makes room for more rows; doubled each time, as nobody knows how many there will be. */
static int reserve(struct pieces *p, uint32_t more) {
    if (more > p->max - p->count)
        return -E2BIG;
    size_t wanted = ((size_t)p->count + more) * bundle_row_bytes(p->digest);
    if (wanted <= p->rows_room)
        return 0;
    size_t room = p->rows_room == 0 ? 4096 : p->rows_room * 2;
    room = room < wanted ? wanted : room;
    uint8_t *rows = realloc(p->rows, room);
    if (rows == NULL)
        return -ENOMEM;
    p->rows = rows;
    p->rows_room = room;
    return 0;
}

static int add_row(struct pieces *p, const struct piece *piece) {
    int r = reserve(p, 1);
    if (r < 0)
        return r;
    piece_store(p->rows + (size_t)p->count * bundle_row_bytes(p->digest), p->digest, piece);
    p->count++;
    if (!piece->hole && piece->bytes > p->longest)
        p->longest = piece->bytes;
    return 0;
}

int pieces_add_hole(struct pieces *p, uint64_t bytes) {
    ASSERT(p->used == p->filled);
    int r = 0;
    while (bytes > 0 && r == 0) {
        uint64_t n = bytes < BUNDLE_HOLE_BYTES_MAX ? bytes : BUNDLE_HOLE_BYTES_MAX;
        r = add_row(p, &(struct piece){.hole = true, .bytes = (uint32_t)n});
        bytes -= n;
    }
    return r;
}

uint8_t *pieces_row_room(struct pieces *p, uint32_t rows) {
    ASSERT(p->used == p->filled);
    if (reserve(p, rows) < 0)
        return NULL;
    return p->rows + (size_t)p->count * bundle_row_bytes(p->digest);
}

bool pieces_take_rows(struct pieces *p, uint32_t rows, uint64_t bytes) {
    uint32_t row_bytes = bundle_row_bytes(p->digest), longest = p->longest;
    struct bytes fresh = bytes_of(p->rows + (size_t)p->count * row_bytes, (size_t)rows * row_bytes);
    for (uint32_t i = 0; i < rows; i++) {
        struct piece piece;
        if (!piece_load(&piece, p->digest, fresh, i) || piece.bytes > bytes)
            return false;
        bytes -= piece.bytes;
        if (!piece.hole && piece.bytes > longest)
            longest = piece.bytes;
    }
    if (bytes != 0)
        return false;
    p->count += rows;
    p->longest = longest;
    return true;
}

int pieces_put_before(struct pieces *p, const struct pieces *front) {
    ASSERT(p->used == p->filled && front->used == front->filled && p->digest == front->digest);
    int r = reserve(p, front->count);
    if (r < 0)
        return r;
    uint32_t row_bytes = bundle_row_bytes(p->digest);
    size_t before = (size_t)front->count * row_bytes;
    memmove(p->rows + before, p->rows, (size_t)p->count * row_bytes);
    memcpy(p->rows, front->rows, before);
    p->count += front->count;
    if (front->longest > p->longest)
        p->longest = front->longest;
    return 0;
}

struct bytes pieces_rows(const struct pieces *p, uint32_t from) {
    uint32_t row_bytes = bundle_row_bytes(p->digest);
    ASSERT(from <= p->count);
    if (from == p->count)
        return (struct bytes){0};
    return bytes_of(p->rows + (size_t)from * row_bytes, (size_t)(p->count - from) * row_bytes);
}

/* ---- Bytes ------------------------------------------------------------------------------------- */

struct room pieces_room(struct pieces *p) {
    size_t size = p->cut.most + STEPS * STEP_BYTES;
    if (p->buffer == NULL)
        p->buffer = malloc(size);
    if (p->buffer == NULL)
        return (struct room){0};
    if (size - p->filled < STEP_BYTES) {
        memmove(p->buffer, p->buffer + p->used, p->filled - p->used);
        p->filled -= p->used;
        p->used = 0;
    }
    return room_of(p->buffer + p->filled, STEP_BYTES);
}

static int cut_one(struct pieces *p) {
    struct bytes rest = bytes_of(p->buffer + p->used, p->filled - p->used);
    struct piece piece = {.bytes = cut_next(&p->cut, rest)};
    digest_of(p->digest, bytes_of(rest.at, piece.bytes), piece.digest);
    p->used += piece.bytes;
    return add_row(p, &piece);
}

void pieces_fill(struct pieces *p, size_t len) {
    p->filled += len;
}

size_t pieces_waiting(const struct pieces *p) {
    return p->filled - p->used;
}

int pieces_cut(struct pieces *p) {
    return cut_one(p);
}

void pieces_forget(struct pieces *p) {
    p->used = p->filled = 0;
}

int pieces_add(struct pieces *p, size_t len) {
    int r = 0;
    p->filled += len;
    while (r == 0 && p->filled - p->used >= p->cut.most)
        r = cut_one(p);
    return r;
}

int pieces_end(struct pieces *p) {
    int r = 0;
    while (r == 0 && p->used < p->filled)
        r = cut_one(p);
    pieces_forget(p);
    return r;
}

int pieces_append(struct pieces *p, const struct pieces *from, uint32_t row) {
    uint64_t bytes = 0;
    for (uint32_t i = row; i < from->count; i++)
        bytes += pieces_bytes_of(from, i);
    struct bytes rows = pieces_rows(from, row);
    uint8_t *room = pieces_row_room(p, from->count - row);
    if (room == NULL)
        return p->count + (from->count - row) > p->max ? -E2BIG : -ENOMEM;
    if (rows.len > 0)
        memcpy(room, rows.at, rows.len);
    bool good = pieces_take_rows(p, from->count - row, bytes);
    ASSERT(good);
    return 0;
}

uint32_t pieces_bytes_of(const struct pieces *p, uint32_t row) {
    struct piece piece;
    bool there = piece_load(&piece, p->digest, pieces_rows(p, 0), row);
    ASSERT(there);
    return piece.bytes;
}
