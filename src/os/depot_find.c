/* SPDX-License-Identifier: MIT */
/* What of a bundle is here already: see depot_inside.h.
 *
 * In this order, the cheapest first: in its place, from an earlier try; in an object that is the whole file; at the
 * same place in an object or in the file that is to be replaced; where a hint says. Before the manifest is known
 * nobody knows which file a piece is of, so there is but its place and hints. Whatever is found is
 * read, and used only if it fits. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/depot_inside.h"
#include "os/digest.h"
#include "os/files.h"

/* A piece that is looked for. */
struct wanted {
    uint32_t number;
    uint64_t start;
    struct piece p;
    struct room room; /* as long as it is */
};

static int bring(struct depot_bundle *b, const struct wanted *w, char why[256]) {
    int r = bundle_bring(b, w->number, &w->p, w->start, room_bytes(w->room), why);
    return r < 0 ? r : 1;
}

static bool fits(const struct depot_bundle *b, const struct wanted *w) {
    return bundle_fits(b, &w->p, room_bytes(w->room));
}

static bool same_piece(const struct depot_bundle *b, const struct piece *p, const struct piece *q) {
    return !p->hole && !q->hole && p->bytes == q->bytes &&
           memcmp(p->digest, q->digest, digest_bytes(b->b.digest)) == 0;
}

/* ---- hints ---- */

void find_add_object(struct depot *d, uint32_t slot) {
    struct shelf_table t;
    struct piece p;
    uint64_t offset;
    if (d->hints.at == NULL || shelf_table_open(&d->shelf, slot, &t) < 0)
        return;
    for (uint32_t i = 0; shelf_table_row(&t, i, &offset, &p); i++)
        hints_add(&d->hints, p.digest, SOURCE_OBJECT + slot, i);
    close(t.fd);
}

void find_add_kept(struct depot *d, uint32_t index) {
    struct depot_bundle *b;
    if (d->hints.at == NULL ||
        bundle_raise(d, d->kept[index].name, (struct bytes){0}, false, &b) < 0)
        return;
    for (uint32_t i = 0; i < b->b.pieces && i / b->b.page_pieces < b->pages; i++) {
        uint64_t start;
        struct piece p = bundle_piece(b, i, &start);
        if (!p.hole && p.bytes > 0 && bits_test(b->claims, i))
            hints_add(&d->hints, p.digest, SOURCE_KEPT + index, i);
    }
    bundle_lower(b);
}

/* Only when somebody asks: most that a node is told to run it has, or gets whole. */
static bool make_hints(struct depot *d) {
    uint64_t count = d->cache_bytes / (64 * KIB);
    if (d->hints.at != NULL)
        return true;
    count = count < 8192 ? 8192 : count > DEPOT_HINTS_MAX ? DEPOT_HINTS_MAX : count;
    if (hints_init(&d->hints, (uint32_t)count) < 0)
        return false;
    for (uint32_t i = 0; i < d->shelf.objects_end; i++)
        if (d->shelf.objects[i].here)
            find_add_object(d, i);
    for (uint32_t i = 0; i < DEPOT_KEPT_MAX; i++)
        if (d->kept[i].name[0] != '\0')
            find_add_kept(d, i);
    return true;
}

static void lender_close(struct depot *d) {
    if (d->lender.slot == SHELF_NONE)
        return;
    close(d->lender.data);
    close(d->lender.table.fd);
    d->lender.slot = SHELF_NONE;
}

void find_close(struct depot *d) {
    lender_close(d);
    if (d->donor != NULL)
        bundle_lower(d->donor);
    d->donor = NULL;
}

/* ---- objects ---- */

static int lender_open(struct depot *d, uint32_t slot, const uint8_t sum[32], bool check) {
    struct lender *l = &d->lender;
    if (l->slot == slot && memcmp(l->sum, sum, 32) == 0)
        return 0;
    lender_close(d);
    int r = shelf_table_open(&d->shelf, slot, &l->table);
    if (r < 0)
        return r;
    l->data = check ? shelf_open(&d->shelf, slot) : shelf_open_unchecked(&d->shelf, slot);
    if (l->data < 0) {
        close(l->table.fd);
        return l->data;
    }
    l->slot = slot;
    memcpy(l->sum, sum, 32);
    shelf_use(&d->shelf, slot);
    return 0;
}

static bool read_row(const struct lender *l, uint32_t row, struct room room) {
    uint64_t offset;
    struct piece p;
    return shelf_table_row(&l->table, row, &offset, &p) && p.bytes == room.len &&
           files_read_all(l->data, room, offset) == 0;
}

static const struct borrowed *loan_of(const struct depot_bundle *b, uint32_t piece) {
    for (uint32_t i = 0; i < b->loan_count; i++)
        if (piece - b->loans[i].piece < b->loans[i].count)
            return &b->loans[i];
    return NULL;
}

bool find_is_lent(const struct depot_bundle *b, uint32_t piece) {
    return loan_of(b, piece) != NULL;
}

int find_lent(struct depot_bundle *b, uint32_t piece, struct room room) {
    const struct borrowed *l = loan_of(b, piece);
    ASSERT(l != NULL);
    if (shelf_find(&b->d->shelf, l->sum) != l->slot)
        return -ENOENT;
    int r = lender_open(b->d, l->slot, l->sum, false); /* whoever gets the piece will check it */
    if (r < 0)
        return r;
    return read_row(&b->d->lender, l->row + (piece - l->piece), room) ? 0 : -EIO;
}

void find_return(struct depot_bundle *b) {
    for (uint32_t i = 0; i < b->loan_count; i++)
        shelf_unpin(&b->d->shelf, b->loans[i].sum);
    b->loan_count = 0;
}

/* False if there are too many. */
static bool borrow(struct depot_bundle *b, uint32_t piece, uint32_t slot, uint32_t row) {
    struct borrowed *last = b->loan_count > 0 ? &b->loans[b->loan_count - 1] : NULL;
    if (last != NULL && last->slot == slot && last->piece + last->count == piece &&
        last->row + last->count == row) {
        last->count++;
        return true;
    }
    if (b->loan_count == DEPOT_LOANS)
        return false;
    struct borrowed *l = &b->loans[b->loan_count++];
    *l = (struct borrowed){.piece = piece, .count = 1, .row = row, .slot = slot};
    memcpy(l->sum, b->d->shelf.objects[slot].sum, 32);
    b->d->shelf.objects[slot].pins++;
    return true;
}

/* Before the manifest is known it stays where it is: perhaps it need not be copied at all. */
static int from_object(struct depot_bundle *b, struct wanted *w, uint32_t slot, uint32_t row,
                       char why[256]) {
    struct depot *d = b->d;
    struct piece p;
    uint64_t offset;
    if (slot >= d->shelf.objects_end || !d->shelf.objects[slot].here ||
        d->shelf.objects[slot].damaged ||
        lender_open(d, slot, d->shelf.objects[slot].sum, true) < 0 ||
        d->lender.table.digest != b->b.digest ||
        !shelf_table_row(&d->lender.table, row, &offset, &p) || !same_piece(b, &p, &w->p))
        return 0;
    if (!read_row(&d->lender, row, w->room) || !fits(b, w)) {
        lender_close(d);
        shelf_damaged(&d->shelf, slot);
        return 0;
    }
    if (b->known || w->start < b->b.manifest_bytes || !borrow(b, w->number, slot, row))
        return bring(b, w, why);
    int r = bundle_mark(b, w->number, &w->p, w->start, false, why);
    return r < 0 ? r : 1;
}

/* ---- kept bundles ---- */

/* Whether it says so. */
static bool has_manifest(struct depot_bundle *b) {
    uint64_t start = 0;
    for (uint32_t i = 0; i < b->b.pieces && i / b->b.page_pieces < b->pages; i++) {
        bundle_piece(b, i, &start);
        if (start >= b->b.manifest_bytes)
            return true;
        if (!bits_test(b->claims, i))
            return false;
    }
    return b->pages == bundle_page_count(&b->b);
}

static struct depot_bundle *donor_open(struct depot *d, uint32_t index) {
    if (d->kept[index].name[0] == '\0')
        return NULL;
    if (d->donor != NULL && strcmp(d->donor->name, d->kept[index].name) == 0)
        return d->donor;
    if (d->donor != NULL)
        bundle_lower(d->donor);
    d->donor = NULL;
    struct depot_bundle *b;
    if (bundle_raise(d, d->kept[index].name, (struct bytes){0}, false, &b) < 0)
        return NULL;
    b->adopted = true;
    d->donor = b;
    /* Its files are only read. */
    if (has_manifest(b) && manifest_open(&b->m, b->head, b->b.manifest_bytes, b->b.bytes) == 0) {
        b->begun = calloc(bits_words(b->m.entries), sizeof *b->begun);
        b->whole = calloc(bits_words(b->m.entries), sizeof *b->whole);
        b->known = b->begun != NULL && b->whole != NULL;
    }
    return b;
}

static int from_kept(struct depot_bundle *b, struct wanted *w, uint32_t index, uint32_t row,
                     char why[256]) {
    struct depot_bundle *from = donor_open(b->d, index);
    char unheard[256];
    uint64_t start;
    if (from == NULL || from->b.digest != b->b.digest || row >= from->b.pieces ||
        row / from->b.page_pieces >= from->pages)
        return 0;
    struct piece p = bundle_piece(from, row, &start);
    if (!same_piece(b, &p, &w->p))
        return 0;
    int r = from->known ? place_read(from, start, w->room, unheard)
                        : files_read_all(from->head, w->room, start);
    return r == 0 && fits(b, w) ? bring(b, w, why) : 0;
}

/* ---- the file that is replaced ---- */

void find_old_close(struct depot_bundle *b) {
    if (b->old.fd >= 0)
        close(b->old.fd);
    free(b->old.room.at);
    b->old = (struct old){.fd = -1};
}

static int open_replaced(struct depot_bundle *b, const struct manifest_cursor *c) {
    char path[PATH_MAX];
    const char *name;
    struct stat s;
    if (b->b.goal != GOAL_PATH || place_path(b, &c->e, path) < 0 ||
        place_spot(b, path, &name) < 0 || !b->spot.there)
        return -1;
    int fd = openat(b->spot.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* -1 if there is none, or it has nothing in common with the file that comes. */
static int old_open(struct depot_bundle *b, const struct manifest_cursor *c) {
    enum { PATIENCE = 256 }; /* pieces */
    struct old *o = &b->old;
    if (o->asked && o->number == c->number)
        return o->tries > PATIENCE && o->hits == 0 ? -1 : o->fd;
    find_old_close(b);
    uint32_t slot = shelf_find(&b->d->shelf, c->e.sum);
    *o = (struct old){.asked = true, .number = c->number, .fd = -1};
    if (slot != SHELF_NONE)
        o->fd = shelf_open(&b->d->shelf, slot);
    if (o->fd < 0)
        o->fd = open_replaced(b, c);
    return o->fd;
}

/* The same bytes of the stream, from files as they are now. */
static int from_same_place(struct depot_bundle *b, struct wanted *w, char why[256]) {
    struct manifest_cursor c;
    struct room room = w->room;
    uint64_t at = w->start;
    if (at < b->m.bytes || !manifest_seek(&b->m, at, &c))
        return 0;
    do {
        uint64_t left = c.offset + c.e.bytes - at;
        size_t n = left < room.len ? (size_t)left : room.len;
        int fd = n > 0 ? old_open(b, &c) : 0;
        b->old.tries++;
        if (fd < 0 || (n > 0 && files_read_all(fd, room_of(room.at, n), at - c.offset) < 0))
            return 0;
        room = room_of(room.at + n, room.len - n);
        at += n;
    } while (room.len > 0 && manifest_next(&b->m, &c));
    if (room.len > 0 || !fits(b, w))
        return 0;
    b->old.hits++;
    return bring(b, w, why);
}

/* A row: entry, length, place, digest. */
enum { OLD_ROW_BYTES = 4 + 4 + 8 + DIGEST_BYTES_MAX };

static int old_row_add(struct depot_bundle *b, uint64_t offset, struct bytes piece) {
    uint8_t row[OLD_ROW_BYTES] = {0};
    if (b->old_rows < 0)
        b->old_rows =
            openat(b->dir, "old", O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (b->old_rows < 0)
        return -errno;
    store_le32(row, b->old.number);
    store_le32(row + 4, (uint32_t)piece.len);
    store_le64(row + 8, offset);
    digest_of(b->b.digest, piece, row + 16);
    int r = files_write(b->old_rows, bytes_of(row, sizeof row),
                        (uint64_t)b->old_row_count * sizeof row);
    if (r == 0)
        hints_add(&b->d->hints, row + 16, SOURCE_OLD, b->old_row_count++);
    return r;
}

/* The sender does not say about how long its pieces are meant to be; it is likely to mean a power of two, and those that
 * are not cut short by an end are so long in the mean. A wrong guess costs what it would cost not to have
 * looked. */
static uint32_t usual_bytes(struct depot_bundle *b, uint32_t piece) {
    uint32_t first = piece - piece % b->b.page_pieces, count = 0;
    uint64_t sum = 0, start, about = 4096;
    for (uint32_t i = first; i < b->b.pieces && i - first < b->b.page_pieces; i++) {
        struct piece p = bundle_piece(b, i, &start);
        bool full = !p.hole && p.bytes >= b->b.piece_bytes / 2;
        sum += full ? p.bytes : 0;
        count += full;
    }
    while (count > 0 && sum * 10 > about * 14 * count)
        about *= 2;
    return (uint32_t)about;
}

static bool old_cut_begin(struct depot_bundle *b, uint32_t piece) {
    cut_init(&b->cut, usual_bytes(b, piece));
    size_t bytes = 2 * (size_t)b->cut.most;
    b->old.room = room_of(malloc(bytes), bytes);
    return b->old.room.at != NULL;
}

/* Cuts the next part of it; false if there is no more. */
static bool old_cut_more(struct depot_bundle *b) {
    struct old *o = &b->old;
    long len = files_read(o->fd, o->room, o->cut);
    if (len <= 0)
        return false;
    bool last = (size_t)len < o->room.len;
    struct bytes left = bytes_of(o->room.at, (size_t)len);
    while (left.len > 0 && (last || left.len >= b->cut.most)) {
        uint32_t n = cut_next(&b->cut, left);
        if (old_row_add(b, o->cut, bytes_of(left.at, n)) < 0)
            return false;
        left = bytes_of(left.at + n, left.len - n);
        o->cut += n;
    }
    return !last;
}

static int from_old(struct depot_bundle *b, struct wanted *w, uint32_t row, char why[256]) {
    uint8_t bytes[OLD_ROW_BYTES];
    if (!b->old.asked || b->old.fd < 0 || b->old_rows < 0 ||
        files_read_all(b->old_rows, room_of(bytes, sizeof bytes), (uint64_t)row * sizeof bytes) < 0)
        return 0;
    if (load_le32(bytes) != b->old.number || load_le32(bytes + 4) != w->p.bytes ||
        memcmp(bytes + 16, w->p.digest, digest_bytes(b->b.digest)) != 0 ||
        files_read_all(b->old.fd, w->room, load_le64(bytes + 8)) < 0 || !fits(b, w))
        return 0;
    b->old.hits++;
    return bring(b, w, why);
}

/* ---- all of it ---- */

static int from_hints(struct depot_bundle *b, struct wanted *w, char why[256]) {
    struct hint hints[HINTS_WAYS];
    if (!make_hints(b->d))
        return 0;
    uint32_t count = hints_find(&b->d->hints, w->p.digest, hints);
    for (uint32_t i = 0; i < count; i++) {
        const struct hint *h = &hints[i];
        int r = h->source >= SOURCE_OLD ? from_old(b, w, h->row, why)
                : h->source >= SOURCE_KEPT
                    ? from_kept(b, w, h->source - SOURCE_KEPT, h->row, why)
                    : from_object(b, w, h->source - SOURCE_OBJECT, h->row, why);
        if (r != 0)
            return r;
    }
    return 0;
}

/* It may have moved within its file: cuts the old one anew, somewhat farther than the piece is in the new one, and
 * looks again. Nothing is cut twice, and all of a long file is cut only as its pages come. */
static int from_moved(struct depot_bundle *b, struct wanted *w, char why[256]) {
    const uint64_t farther = 32 * MIB;
    struct manifest_cursor c;
    if (w->start < b->m.bytes || !manifest_seek(&b->m, w->start, &c) ||
        w->start + w->p.bytes > c.offset + c.e.bytes || old_open(b, &c) < 0)
        return 0;
    uint64_t upto = w->start - c.offset + farther;
    if (b->old.cut >= upto)
        return 0; /* then hints have told */
    bool more = b->old.room.at != NULL || old_cut_begin(b, w->number);
    while (more && b->old.cut < upto)
        more = old_cut_more(b);
    if (!more)
        b->old.cut = UINT64_MAX;
    return from_hints(b, w, why);
}

static int in_place(struct depot_bundle *b, struct wanted *w, char why[256]) {
    char unheard[256];
    int r = b->known ? place_read(b, w->start, w->room, unheard)
                     : files_read_all(b->head, w->room, w->start);
    if (r < 0 || !fits(b, w))
        return 0;
    r = bundle_mark(b, w->number, &w->p, w->start, true, why);
    return r < 0 ? r : 1;
}

static int look(struct depot_bundle *b, struct wanted *w, char why[256]) {
    int r = 0;
    if (w->p.hole || bundle_is_whole(b, w->start, w->p.bytes)) {
        r = bundle_mark(b, w->number, &w->p, w->start, false, why);
        return r < 0 ? r : 1;
    }
    if (bits_test(b->claims, w->number))
        r = in_place(b, w, why);
    if (r == 0 && b->known)
        r = from_same_place(b, w, why);
    if (r == 0)
        r = from_hints(b, w, why);
    if (r == 0 && b->known)
        r = from_moved(b, w, why);
    return r;
}

int find_piece(struct depot_bundle *b, uint32_t piece, char why[256]) {
    struct wanted w = {.number = piece};
    if (bits_test(b->have, piece))
        return 1;
    w.p = bundle_piece(b, piece, &w.start);
    if (w.p.bytes == 0)
        return 0;
    if (!w.p.hole)
        w.room = room_of(b->d->scratch.at, w.p.bytes);
    return look(b, &w, why);
}

void find_whole(struct depot_bundle *b) {
    struct shelf *s = &b->d->shelf;
    struct manifest_cursor c;
    if (b->b.goal != GOAL_SPOOL)
        return;
    for (bool more = manifest_first(&b->m, &c); more; more = manifest_next(&b->m, &c)) {
        uint32_t slot = c.e.kind == ENTRY_FILE ? shelf_find(s, c.e.sum) : SHELF_NONE;
        if (slot == SHELF_NONE || shelf_check(s, slot) < 0 ||
            s->objects[slot].mark.bytes != c.e.bytes)
            continue;
        s->objects[slot].pins++;
        bits_set_run(b->whole, c.number, c.number);
        shelf_use(s, slot);
    }
}
