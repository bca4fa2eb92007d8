/* SPDX-License-Identifier: MIT */
/* A bundle on its way in: its folder, its table, its pieces: see depot_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/depot_inside.h"
#include "os/digest.h"
#include "os/files.h"

/* ---- its folder ---- */

static int open_on_disk(const struct depot_bundle *b, const char *name) {
    int fd = openat(b->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

static int open_file(const struct depot_bundle *b, const char *name) {
    if (!b->light)
        return open_on_disk(b, name);
    int fd = memfd_create(name, MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* What is beyond the end of a mapped file must not be touched: it is as long as it can get from the beginning.
 * Writes to the table are calls, which can fail. */
static int map_table(struct depot_bundle *b) {
    b->table_bytes = (size_t)b->pieces_most * bundle_row_bytes(b->b.digest);
    b->table = open_file(b, "table");
    if (b->table < 0)
        return b->table;
    if (ftruncate(b->table, (off_t)b->table_bytes) < 0)
        return -errno;
    void *at = mmap(NULL, b->table_bytes, PROT_READ, MAP_SHARED, b->table, 0);
    if (at == MAP_FAILED)
        return -errno;
    b->table_map = at;
    return 0;
}

static size_t bits_bytes(const struct depot_bundle *b) {
    return bits_words(b->pieces_most) * sizeof(uint64_t);
}

/* With all its blocks: they must not be missing when a bit is set. */
static int map_claims(struct depot_bundle *b) {
    struct stat s;
    off_t bytes = (off_t)bits_bytes(b);
    int fd = open_file(b, "claims");
    if (fd < 0)
        return fd;
    int r = fstat(fd, &s) < 0 ? -errno : 0;
    if (r == 0 && s.st_size != bytes)
        r = ftruncate(fd, 0) < 0 ? -errno : -posix_fallocate(fd, 0, bytes);
    void *at =
        r < 0 ? MAP_FAILED : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (r == 0 && at == MAP_FAILED)
        r = -errno;
    if (r == 0)
        b->claims = at;
    close(fd);
    return r;
}

static int write_to_disk(const struct depot_bundle *b, const char *name, struct bytes bytes) {
    int fd = open_on_disk(b, name);
    if (fd < 0)
        return fd;
    int r = files_write(fd, bytes, 0);
    close(fd);
    return r;
}

/* What is known of a light bundle is written down when it is to be kept. */
static int write_down(const struct depot_bundle *b) {
    uint8_t head[BUNDLE_INLINE_BYTES_MAX];
    size_t len = b->b.manifest.len;
    int r = files_read_all(b->head, room_of(head, len), 0);
    if (r == 0)
        r = write_to_disk(b, "head", bytes_of(head, len));
    if (r == 0)
        r = write_to_disk(b, "table", bytes_of(b->table_map, b->table_bytes));
    if (r == 0)
        r = write_to_disk(b, "claims", bytes_of((const uint8_t *)b->claims, bits_bytes(b)));
    if (r == 0)
        r = write_to_disk(b, "descriptor", bytes_of(b->descriptor, b->descriptor_len));
    return r;
}

/* The largest that could be. */
enum {
    DESCRIPTOR_MAX =
        256 + BUNDLE_PATH_BYTES_MAX + BUNDLE_INLINE_BYTES_MAX + BUNDLE_PAGES_MAX * DIGEST_BYTES_MAX
};

static int take_descriptor(struct depot_bundle *b, struct bytes descriptor) {
    b->descriptor = malloc(descriptor.len > 0 ? descriptor.len : DESCRIPTOR_MAX);
    if (b->descriptor == NULL)
        return -ENOMEM;
    if (descriptor.len > 0) {
        memcpy(b->descriptor, descriptor.at, descriptor.len);
    } else {
        int fd = openat(b->dir, "descriptor", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        long len = fd < 0 ? -errno : files_read(fd, room_of(b->descriptor, DESCRIPTOR_MAX), 0);
        if (fd >= 0)
            close(fd);
        if (len < 0)
            return (int)len;
        descriptor.len = (size_t)len;
    }
    b->descriptor_len = descriptor.len;
    int r = bundle_decode(bytes_of(b->descriptor, descriptor.len), &b->b);
    b->pieces_most = b->b.pieces;
    return r;
}

static int open_files(struct depot_bundle *b) {
    uint32_t pages = bundle_page_count(&b->b);
    b->have = calloc(1, bits_bytes(b));
    b->starts = calloc(pages + 1, sizeof *b->starts);
    b->loans = calloc(DEPOT_LOANS, sizeof *b->loans);
    if (b->have == NULL || b->starts == NULL || b->loans == NULL)
        return -ENOMEM;
    int r = map_table(b);
    if (r == 0)
        r = map_claims(b);
    if (r == 0)
        b->head = open_file(b, "head");
    return r < 0 ? r : b->head < 0 ? b->head : 0;
}

static bool take_page(struct depot_bundle *b, uint32_t page, struct bytes table);

/* What an earlier life has left: pages that fit, and bytes that were written. Read rather than looked at: a page of a
 * mapped file that was never written needs room on some file systems, and there may be none. */
static void look_back(struct depot_bundle *b) {
    uint8_t rows[BUNDLE_PAGE_PIECES_MAX * (4 + DIGEST_BYTES_MAX)];
    uint32_t row = bundle_row_bytes(b->b.digest);
    while (b->pages < bundle_page_count(&b->b)) {
        uint32_t first = b->pages * b->b.page_pieces;
        struct room page = room_of(rows, (size_t)bundle_page_pieces(&b->b, b->pages) * row);
        if (files_read_all(b->table, page, (uint64_t)first * row) < 0 ||
            !take_page(b, b->pages, room_bytes(page)))
            break;
        for (uint32_t i = first; i < first + page.len / row; i++) {
            uint64_t start;
            if (bits_test(b->claims, i))
                b->claimed_bytes += bundle_piece(b, i, &start).bytes;
        }
    }
}

int bundle_raise(struct depot *d, const char *name, struct bytes descriptor, bool light,
                 struct depot_bundle **ret) {
    struct depot_bundle *b = calloc(1, sizeof *b);
    if (b == NULL)
        return -ENOMEM;
    *b = (struct depot_bundle){
        .d = d, .dir = -1, .table = -1, .head = -1, .old_rows = -1, .light = light};
    b->spot.fd = b->old.fd = -1;
    list_init(&b->link);
    for (uint32_t i = 0; i < DEPOT_PARTS; i++)
        b->parts[i].fd = b->parts[i].reader = -1;
    snprintf(b->name, sizeof b->name, "%s", name);
    b->dir = openat(d->partial, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = b->dir < 0 ? -errno : take_descriptor(b, descriptor);
    if (r == 0 && descriptor.len > 0 && !light)
        r = write_to_disk(b, "descriptor", descriptor);
    if (r == 0)
        r = open_files(b);
    if (r < 0) {
        bundle_lower(b);
        return r;
    }
    look_back(b);
    *ret = b;
    return 0;
}

static void close_fd(int fd) {
    if (fd >= 0)
        close(fd);
}

/* The objects that it relies on may go. */
static void unpin_whole(struct depot_bundle *b) {
    struct manifest_cursor c;
    if (!b->known)
        return;
    for (bool more = manifest_first(&b->m, &c); more; more = manifest_next(&b->m, &c))
        if (bits_test(b->whole, c.number))
            shelf_unpin(&b->d->shelf, c.e.sum);
}

void bundle_lower(struct depot_bundle *b) {
    find_return(b);
    find_old_close(b);
    unpin_whole(b);
    place_close(b);
    place_spot_close(b);
    manifest_close(&b->m);
    if (b->table_map != NULL)
        munmap(b->table_map, b->table_bytes);
    if (b->claims != NULL)
        munmap(b->claims, bits_bytes(b));
    close_fd(b->table);
    close_fd(b->head);
    close_fd(b->old_rows);
    close_fd(b->dir);
    list_remove(&b->link);
    free(b->begun);
    free(b->whole);
    free(b->have);
    free(b->starts);
    free(b->loans);
    free(b->descriptor);
    free(b);
}

/* ---- opening and closing ---- */

/* A name that no bundle has. */
static int make_folder(struct depot *d, struct bytes descriptor, char name[DEPOT_NAME_MAX]) {
    char stem[DEPOT_NAME_MAX];
    kept_stem(descriptor, stem);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, DEPOT_NAME_MAX, "%.32s.%u", stem, i);
        if (mkdirat(d->partial, name, 0700) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EBUSY;
}

static int make_scratch(struct depot *d, size_t bytes) {
    if (d->scratch.len >= bytes)
        return 0;
    uint8_t *more = realloc(d->scratch.at, bytes);
    if (more == NULL)
        return -ENOMEM;
    d->scratch = room_of(more, bytes);
    return 0;
}

/* So little that it takes a second to send it again after a crash, by 1 Gbit/s; to write down what is known of it is dearer for all
 * others: making a file takes as long as writing a megabyte or, where many were just removed (ext4), ten. */
static bool is_light(const struct bundle *b) {
    return b->bytes <= DEPOT_LIGHT_BYTES && b->manifest.len == b->manifest_bytes;
}

void depot_believe(struct depot_bundle *b) {
    b->believed = true;
}

int depot_open(struct depot *d, struct bytes descriptor, struct depot_bundle **ret, char why[256]) {
    struct bundle b;
    char name[DEPOT_NAME_MAX];
    if (descriptor.len == 0 || bundle_decode(descriptor, &b) < 0 ||
        (bundle_is_open(&b) && b.goal == GOAL_SPOOL)) /* what a cache has is named by its sum */
        return depot_fail(why, -EBADMSG, "the descriptor of the bundle makes no sense");
    kept_expire(d);
    kept_trim(d);
    find_close(d); /* a kept bundle that is open could be the one */
    bool adopted = kept_take(d, descriptor, name);
    int r = make_scratch(d, b.piece_bytes);
    if (r == 0 && !adopted)
        r = make_folder(d, descriptor, name);
    if (r == 0) {
        r = bundle_raise(d, name, descriptor, !adopted && is_light(&b), ret);
        if (r < 0)
            kept_remove(d, name);
    }
    if (r < 0)
        return depot_fail(why, r, "%s/partial: %s", d->spool, depot_reason(r));
    (*ret)->adopted = adopted;
    (*ret)->pages = 0; /* they come again, and are written only if they fit */
    (*ret)->b.pieces = (*ret)->pieces_most;
    (*ret)->last = 0; /* those of an open bundle may be others */
    (*ret)->last_start = 0;
    list_push_back(&d->bundles, &(*ret)->link);
    return 0;
}

void depot_close(struct depot_bundle *b, bool keep) {
    if (b == NULL)
        return;
    struct depot *d = b->d;
    char name[DEPOT_NAME_MAX];
    uint64_t bytes = b->claimed_bytes;
    bool stays = keep && !b->committed && bytes > 0 && (!b->light || write_down(b) == 0);
    snprintf(name, sizeof name, "%s", b->name);
    find_close(d);
    if (b->committed) /* an earlier try may have been closed after this one was opened */
        kept_drop(d, bytes_of(b->descriptor, b->descriptor_len));
    bundle_lower(b);
    if (stays)
        kept_add(d, name, bytes);
    else
        kept_remove(d, name);
}

int bundle_error(const struct depot_bundle *b, char why[256]) {
    return b->error == 0 ? 0 : depot_fail(why, b->error, "%s", b->why);
}

int bundle_break(struct depot_bundle *b, int error, const char *why) {
    b->error = error;
    if (error < 0)
        snprintf(b->why, sizeof b->why, "%s", why);
    return error;
}

/* ---- pages ---- */

struct bytes depot_table(const struct depot_bundle *b, uint32_t page) {
    if (page >= b->pages)
        return (struct bytes){0};
    uint32_t row = bundle_row_bytes(b->b.digest);
    return bytes_of(b->table_map + (size_t)page * b->b.page_pieces * row,
                    (size_t)bundle_page_pieces(&b->b, page) * row);
}

/* Is this the page that the descriptor has the digest of? One that is open has none. */
static bool is_announced(const struct depot_bundle *b, uint32_t page, struct bytes table) {
    uint32_t digest = digest_bytes(b->b.digest);
    uint8_t found[DIGEST_BYTES_MAX];
    if (bundle_is_open(&b->b))
        return b->starts[page] < b->b.bytes;
    digest_of(b->b.digest, table, found);
    return table.len == (size_t)bundle_page_pieces(&b->b, page) * bundle_row_bytes(b->b.digest) &&
           memcmp(found, b->b.pages.at + (size_t)page * digest, digest) == 0;
}

/* Where it ends; 0 if it does not fit the descriptor. */
static uint64_t page_end(const struct depot_bundle *b, uint32_t page, struct bytes table) {
    uint32_t row = bundle_row_bytes(b->b.digest), count = (uint32_t)(table.len / row);
    uint32_t most = bundle_page_pieces(&b->b, page);
    uint64_t end = b->starts[page];
    struct piece p;
    if (table.len % row != 0 || count == 0 || count > most || !is_announced(b, page, table))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!piece_load(&p, b->b.digest, table, i) || p.bytes > b->b.bytes - end ||
            (!p.hole && p.bytes > b->b.piece_bytes))
            return 0;
        end += p.bytes;
    }
    bool last = count < most || page + 1 == bundle_page_count(&b->b);
    return last && end != b->b.bytes ? 0 : end;
}

/* The next one. */
static bool take_page(struct depot_bundle *b, uint32_t page, struct bytes table) {
    uint64_t end = page_end(b, page, table);
    if (end == 0)
        return false;
    b->starts[page + 1] = end;
    b->pages = page + 1;
    if (bundle_is_open(&b->b) && end == b->b.bytes)
        b->b.pieces =
            page * b->b.page_pieces + (uint32_t)(table.len / bundle_row_bytes(b->b.digest));
    return true;
}

static int keep_page(struct depot_bundle *b, uint32_t page, struct bytes table, char why[256]) {
    if (page > b->pages)
        return depot_fail(why, -EAGAIN, "page %u of the table came before page %u", page, b->pages);
    if (page < b->pages)
        return 0;
    uint64_t at = (uint64_t)page * b->b.page_pieces * bundle_row_bytes(b->b.digest);
    if (page_end(b, page, table) == 0)
        return depot_fail(why, -EBADMSG, "page %u of the table does not fit the descriptor", page);
    int r = files_write(b->table, table, at);
    if (r < 0)
        return depot_fail(why, r, "%s/partial: %s", b->d->spool, depot_reason(r));
    take_page(b, page, table);
    return 0;
}

/* The manifest came with the descriptor: its pieces need not come, and it is known from the start where everything
 * goes and what may be there. */
static int take_manifest(struct depot_bundle *b, char why[256]) {
    for (uint32_t i = 0; i < bundle_page_pieces(&b->b, 0) && !b->known; i++) {
        uint64_t start;
        struct piece p = bundle_piece(b, i, &start);
        if (p.hole || start + p.bytes > b->b.manifest.len)
            break; /* the source has cut it otherwise: it comes as any other piece */
        int r = depot_store(b, i, bytes_of(b->b.manifest.at + start, p.bytes), why);
        if (r < 0)
            return r;
    }
    return 0;
}

int depot_page(struct depot_bundle *b, uint32_t page, struct bytes table, uint8_t *have,
               char why[256]) {
    int r = bundle_error(b, why);
    if (r < 0)
        return r;
    if (page >= bundle_page_count(&b->b))
        return depot_fail(why, -EBADMSG, "the table has no page %u", page);
    r = keep_page(b, page, table, why);
    if (r < 0)
        return r;
    if (page == 0 && !b->known && b->b.manifest.len > 0 && (r = take_manifest(b, why)) < 0)
        return r;
    uint32_t first = page * b->b.page_pieces, count = bundle_page_pieces(&b->b, page);
    memset(have, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        r = find_piece(b, first + i, why);
        if (r < 0)
            return r;
        have[i / 8] |= (uint8_t)(r << i % 8);
    }
    return 0;
}

uint32_t depot_last_page(const struct depot_bundle *b, uint32_t page) {
    bool last = bundle_is_open(&b->b) && page < b->pages && b->starts[page + 1] == b->b.bytes;
    return last ? b->b.pieces : 0;
}

/* ---- pieces ---- */

static struct piece row_of(const struct depot_bundle *b, uint32_t piece) {
    struct piece p;
    uint32_t page = piece / b->b.page_pieces;
    bool good = piece_load(&p, b->b.digest, depot_table(b, page), piece % b->b.page_pieces) &&
                (p.hole || p.bytes <= b->b.piece_bytes);
    /* It was good when it came; then somebody has written to the file. */
    return good ? p : (struct piece){0};
}

/* Pieces are asked for one after the other, or nearly so: it is a few steps from the last. */
struct piece bundle_piece(struct depot_bundle *b, uint32_t piece, uint64_t *ret_start) {
    uint32_t page = piece / b->b.page_pieces;
    ASSERT(page < b->pages);
    if (b->last / b->b.page_pieces != page || b->last_start == 0) {
        b->last = page * b->b.page_pieces;
        b->last_start = b->starts[page];
    }
    for (; b->last < piece; b->last++)
        b->last_start += row_of(b, b->last).bytes;
    for (; b->last > piece; b->last--)
        b->last_start -= row_of(b, b->last - 1).bytes;
    *ret_start = b->last_start;
    return row_of(b, piece);
}

uint64_t bundle_run(struct depot_bundle *b, uint32_t piece, uint64_t most) {
    uint64_t run = 0, start;
    uint32_t end = b->pages < bundle_page_count(&b->b) ? b->pages * b->b.page_pieces : b->b.pieces;
    for (; piece < end && run < most && !bits_test(b->have, piece); piece++) {
        struct piece p = bundle_piece(b, piece, &start);
        if (p.hole || p.bytes == 0)
            break;
        run += p.bytes;
    }
    return run;
}

uint32_t bundle_piece_from(struct depot_bundle *b, uint64_t offset) {
    uint32_t page = 0;
    uint64_t start;
    while (page + 1 < b->pages && b->starts[page + 1] <= offset)
        page++;
    uint32_t piece = page * b->b.page_pieces;
    while (piece < b->b.pieces && (bundle_piece(b, piece, &start), start < offset))
        piece++;
    return piece;
}

static bool has_digest(const struct depot_bundle *b, const struct piece *p,
                       const uint8_t found[DIGEST_BYTES_MAX]) {
    return memcmp(found, p->digest, digest_bytes(b->b.digest)) == 0;
}

bool bundle_fits(const struct depot_bundle *b, const struct piece *p, struct bytes bytes) {
    uint8_t found[DIGEST_BYTES_MAX];
    if (p->hole || p->bytes == 0 || bytes.len != p->bytes)
        return false;
    digest_of(b->b.digest, bytes, found);
    return has_digest(b, p, found);
}

static int write_head(struct depot_bundle *b, uint64_t start, struct bytes bytes, char why[256]) {
    int r = files_write(b->head, bytes, start);
    return r < 0 ? depot_fail(why, r, "%s/partial: %s", b->d->spool, depot_reason(r)) : 0;
}

/* Puts a piece in its file that came before the manifest was known, or was on loan. */
static int settle_piece(struct depot_bundle *b, uint32_t piece, const struct piece *p,
                        uint64_t start, char why[256]) {
    struct room room = room_of(b->d->scratch.at, p->bytes);
    bool lent = find_is_lent(b, piece);
    int r = lent ? find_lent(b, piece, room) : files_read_all(b->head, room, start);
    if (r == 0 && !bundle_fits(b, p, room_bytes(room)))
        r = -EIO;
    if (r < 0)
        return depot_fail(why, r, "a piece that was in the cache is there no more: %s",
                          depot_reason(r));
    r = place_write(b, start, room_bytes(room), why);
    if (r == 0 && lent) {
        bits_set_run(b->claims, piece, piece);
        b->claimed_bytes += p->bytes;
    }
    return r;
}

bool bundle_is_whole(const struct depot_bundle *b, uint64_t start, uint32_t bytes) {
    struct manifest_cursor c;
    if (!b->known || start < b->m.bytes || !manifest_seek(&b->m, start, &c))
        return false;
    uint64_t end = start + bytes;
    do
        if (c.e.bytes > 0 && !bits_test(b->whole, c.number))
            return false;
    while (c.offset + c.e.bytes < end && manifest_next(&b->m, &c));
    return true;
}

static int settle(struct depot_bundle *b, char why[256]) {
    uint32_t end = b->pages * b->b.page_pieces;
    end = end < b->b.pieces ? end : b->b.pieces;
    for (uint32_t i = 0; (i = bits_next_set(b->have, i, end)) != BITS_NONE; i++) {
        uint64_t start;
        struct piece p = bundle_piece(b, i, &start);
        if (p.hole || start + p.bytes <= b->b.manifest_bytes || bundle_is_whole(b, start, p.bytes))
            continue;
        int r = settle_piece(b, i, &p, start, why);
        if (r < 0)
            return r;
    }
    find_return(b);
    return ftruncate(b->head, b->b.manifest_bytes) < 0 ? depot_fail(why, -errno, "the head") : 0;
}

/* The manifest is whole: from now on it is known where everything goes. */
static int learn(struct depot_bundle *b, char why[256]) {
    int r = manifest_open(&b->m, b->head, b->b.manifest_bytes, b->b.bytes);
    if (r < 0)
        return depot_fail(why, r == -EBADMSG ? -EINVAL : r, "the manifest: %s",
                          r == -EBADMSG ? "it makes no sense" : depot_reason(r));
    b->begun = calloc(bits_words(b->m.entries), sizeof *b->begun);
    b->whole = calloc(bits_words(b->m.entries), sizeof *b->whole);
    if (b->begun == NULL || b->whole == NULL)
        return depot_fail(why, -ENOMEM, "no memory for a manifest of %u entries", b->m.entries);
    b->known = true;
    r = commit_check(b, why);
    if (r < 0)
        return r;
    find_whole(b);
    return settle(b, why);
}

int bundle_mark(struct depot_bundle *b, uint32_t piece, const struct piece *p, uint64_t start,
                bool claim, char why[256]) {
    b->have_count += bits_set_run(b->have, piece, piece);
    if (claim && bits_set_run(b->claims, piece, piece) > 0)
        b->claimed_bytes += p->bytes;
    if (start >= b->b.manifest_bytes)
        return 0;
    uint64_t left = b->b.manifest_bytes - start;
    b->manifest_here += left < p->bytes ? left : p->bytes;
    if (b->manifest_here < b->b.manifest_bytes)
        return 0;
    return bundle_break(b, learn(b, why), why);
}

int bundle_bring(struct depot_bundle *b, uint32_t piece, const struct piece *p, uint64_t start,
                 struct bytes bytes, char why[256]) {
    int r = b->known ? place_write(b, start, bytes, why) : write_head(b, start, bytes, why);
    return r < 0 ? r : bundle_mark(b, piece, p, start, true, why);
}

/* 1: it fits, and is not here; 0: it came twice. */
static int judge(struct depot_bundle *b, uint32_t piece, struct bytes bytes, struct piece *p,
                 uint64_t *start, char why[256]) {
    int r = bundle_error(b, why);
    if (r < 0)
        return r;
    if (piece >= b->b.pieces || piece / b->b.page_pieces >= b->pages)
        return depot_fail(why, -EBADMSG, "piece %u is in no page that has come", piece);
    if (bits_test(b->have, piece))
        return 0;
    *p = bundle_piece(b, piece, start);
    if (!bundle_fits(b, p, bytes))
        return depot_fail(why, -EBADMSG, "piece %u does not fit its digest", piece);
    return 1;
}

int depot_store(struct depot_bundle *b, uint32_t piece, struct bytes bytes, char why[256]) {
    struct piece p;
    uint64_t start;
    int r = judge(b, piece, bytes, &p, &start, why);
    return r == 1 ? bundle_bring(b, piece, &p, start, bytes, why) : r;
}

int depot_judge(struct depot_bundle *b, uint32_t piece, struct bytes bytes, int *ret_fd,
                uint64_t *ret_offset, char why[256]) {
    struct piece p;
    uint64_t start;
    int r = judge(b, piece, bytes, &p, &start, why);
    if (r != 1)
        return r;
    int fd = place_for(b, start, p.bytes, ret_offset, why);
    if (fd == -ENOENT) /* it is not so simple; or, if it is that, it says so again */
        return bundle_bring(b, piece, &p, start, bytes, why);
    *ret_fd = fd;
    return fd < 0 ? fd : 1;
}

int depot_written(struct depot_bundle *b, uint32_t piece, int status, char why[256]) {
    uint64_t start;
    int r = bundle_error(b, why);
    if (r < 0)
        return r;
    struct piece p = bundle_piece(b, piece, &start);
    return status < 0 ? place_blame(b, start, status, why)
                      : bundle_mark(b, piece, &p, start, true, why);
}

bool depot_has(const struct depot_bundle *b, uint32_t piece) {
    return bits_test(b->have, piece);
}

int depot_space(struct depot_bundle *b, uint32_t piece, uint32_t len, uint64_t *ret_offset) {
    char why[256];
    uint64_t start;
    if (b->error < 0 || b->committed || piece >= b->b.pieces ||
        piece / b->b.page_pieces >= b->pages || bits_test(b->have, piece))
        return -ENOENT;
    struct piece p = bundle_piece(b, piece, &start);
    int fd = p.hole || p.bytes != len ? -EMSGSIZE : place_for(b, start, len, ret_offset, why);
    if (fd >= 0)
        place_reserve(b, piece, start);
    return fd;
}

struct view {
    struct bytes bytes;
    struct digesting *digest;
};

static int digest_view(void *context) {
    const struct view *v = context;
    digesting_add(v->digest, v->bytes);
    return 0;
}

int depot_digest(struct depot_bundle *b, uint32_t piece, uint32_t from, uint32_t len,
                 struct digesting *d) {
    char why[256];
    uint64_t start;
    struct piece p = bundle_piece(b, piece, &start);
    if (p.hole || from > p.bytes || len > p.bytes - from)
        return -EIO; /* the table was changed on the disk */
    struct view view = {.bytes = place_view(b, start + from, len), .digest = d};
    if (view.bytes.len > 0)
        return mapped_try(digest_view, &view) < 0 ? -EIO : 0;
    struct room room = room_of(b->d->scratch.at, len);
    int r = place_read(b, start + from, room, why);
    if (r == 0)
        digesting_add(d, room_bytes(room));
    return r;
}

/* If it was found elsewhere meanwhile some of it may have been written over: it must be as good. */
int depot_settle(struct depot_bundle *b, uint32_t piece, const uint8_t found[DIGEST_BYTES_MAX],
                 char why[256]) {
    uint64_t start;
    int r = bundle_error(b, why);
    if (r < 0)
        return r;
    struct piece p = bundle_piece(b, piece, &start);
    bool had = bits_test(b->have, piece);
    if (p.hole || p.bytes == 0)
        return depot_fail(why, -EIO, "the table was changed on the disk while it was used");
    if (!has_digest(b, &p, found))
        return depot_fail(why, had ? -EIO : -EBADMSG, "piece %u does not fit its digest", piece);
    return had ? 0 : bundle_mark(b, piece, &p, start, true, why);
}

/* What others could have changed is looked at again. */
static int check_loaded(const struct depot_bundle *b, uint32_t piece, const struct piece *p,
                        uint64_t start, struct room room, char why[256]) {
    bool own = b->known && !b->committed && !bundle_is_whole(b, start, p->bytes);
    if (own || bundle_fits(b, p, room_bytes(room)))
        return 0;
    return depot_fail(why, -ESTALE, "piece %u was changed on the disk of this node", piece);
}

long depot_load(struct depot_bundle *b, uint32_t piece, struct room out, char why[256]) {
    uint64_t start;
    if (piece >= b->b.pieces || !bits_test(b->have, piece))
        return depot_fail(why, -ENOENT, "piece %u is not here", piece);
    struct piece p = bundle_piece(b, piece, &start);
    if (p.hole)
        return 0;
    if (out.len < p.bytes)
        return depot_fail(why, -ENOBUFS, "piece %u has %u bytes", piece, p.bytes);
    struct room room = room_of(out.at, p.bytes);
    int r;
    if (b->known)
        r = place_read(b, start, room, why);
    else if ((r = find_is_lent(b, piece) ? find_lent(b, piece, room)
                                         : files_read_all(b->head, room, start)) < 0)
        depot_fail(why, r, "piece %u: %s", piece, depot_reason(r));
    if (r == 0)
        r = check_loaded(b, piece, &p, start, room, why);
    return r < 0 ? r : (long)p.bytes;
}
