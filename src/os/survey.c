/* SPDX-License-Identifier: MIT */
/* Looks files over that are to be sent: see survey.h.
 *
 * The stream has folders and links first (which are in the manifest only), then small files, which share pieces, then
 * large ones, which have theirs: what is known about a large file stays true in whatever company
 * it is sent. The manifest has pieces of its own, too, as it is there last. */
#include "os/survey.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/digest.h"
#include "os/growth.h"
#include "os/ledger.h"
#include "os/pieces.h"
#include "os/scan.h"
#include "os/walk.h"

struct survey {
    struct walk walk;
    struct pieces pieces;
    struct bundle bundle;
    uint8_t *manifest;
    uint8_t *pages; /* their digests */
    uint64_t bytes_read;
    uint32_t piece; /* that was located last, and where it begins */
    uint64_t piece_offset;
    uint32_t open_number; /* of the file that was read last, and it */
    struct original *open;
    enum send_type send;
    struct growth *growth; /* NULL: it does not grow */
    bool failed;           /* or no more, as something went wrong */
    struct ledger ledger;  /* open as long as it does */
};

/* ---- The order of things ----------------------------------------------------------------------- */

enum rank { FOLDER, LINK, SMALL, LARGE, RANKS };

static enum rank rank_of(const struct found *f, uint32_t usual) {
    if (f->e.kind == ENTRY_FOLDER)
        return FOLDER;
    if (f->e.kind == ENTRY_LINK)
        return LINK;
    return f->e.bytes < usual / 4 ? SMALL : LARGE;
}

/* Puts what was found in the order of the stream, and says where each is. Within a rank the order stays. */
static int arrange(struct walk *w, uint32_t usual) {
    struct found *ordered = calloc(w->count, sizeof *ordered);
    if (ordered == NULL)
        return -ENOMEM;
    uint32_t at = 0;
    for (enum rank rank = FOLDER; rank < RANKS; rank++)
        for (uint32_t i = 0; i < w->count; i++)
            if (rank_of(&w->found[i], usual) == rank)
                ordered[at++] = w->found[i];
    free(w->found);
    w->found = ordered;
    w->room = w->count;
    uint64_t offset = w->manifest_bytes;
    for (uint32_t i = 0; i < w->count; i++) {
        w->found[i].offset = offset;
        offset += w->found[i].e.bytes;
    }
    return 0;
}

/* Bytes that will have to be cut; a file system that compresses says too little. */
static uint64_t disk_bytes(const struct walk *w) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct found *f = &w->found[i];
        sum += f->disk_bytes < f->e.bytes ? f->disk_bytes : f->e.bytes;
    }
    return sum;
}

/* ---- Reading ----------------------------------------------------------------------------------- */

/* What went wrong with a file while it was read, in words. */
static int blame(const struct walk *w, const struct found *f, int status, char why[256]) {
    if (status == -ECANCELED)
        return walk_blame(w, f, status, "stopped", why);
    if (status == -ESTALE)
        return walk_blame(w, f, status, "it became shorter meanwhile", why);
    return walk_blame(w, f, status, "", why);
}

static int look_small(struct survey *s, struct scan *scan, struct found *f, char why[256]) {
    int fd = walk_open(&s->walk, f, why);
    if (fd < 0)
        return fd;
    int r = scan_small(scan, fd, f);
    r = r < 0 ? blame(&s->walk, f, r, why) : walk_check(&s->walk, f, fd, why);
    close(fd);
    return r;
}

static int look_large(struct survey *s, struct scan *scan, struct ledger *ledger, struct found *f,
                      char why[256]) {
    int fd = walk_open(&s->walk, f, why);
    if (fd < 0)
        return fd;
    uint32_t first = s->pieces.count;
    int r;
    if (ledger_find(ledger, f, &s->pieces)) {
        r = scan_skip(scan, f->e.bytes);
        r = r < 0 ? blame(&s->walk, f, r, why) : 0;
    } else {
        r = scan_large(scan, fd, f);
        r = r < 0 ? blame(&s->walk, f, r, why) : walk_check(&s->walk, f, fd, why);
        if (r == 0)
            ledger_keep(ledger, f, &s->pieces, first);
    }
    close(fd);
    return r;
}

static int look_at_files(struct survey *s, struct scan *scan, struct ledger *ledger,
                         char why[256]) {
    uint32_t usual = s->pieces.usual, i = 0;
    struct walk *w = &s->walk;
    int r = 0;
    while (i < w->count && rank_of(&w->found[i], usual) < SMALL)
        i++;
    for (; i < w->count && rank_of(&w->found[i], usual) == SMALL && r == 0; i++)
        r = look_small(s, scan, &w->found[i], why);
    int ended = pieces_end(&s->pieces);
    if (r == 0 && ended < 0)
        r = blame(w, &w->found[i - 1], ended, why);
    for (; i < w->count && r == 0; i++)
        r = look_large(s, scan, ledger, &w->found[i], why);
    return r;
}

/* ---- Manifest, table, pages -------------------------------------------------------------------- */

static int write_manifest(struct survey *s) {
    size_t len = (size_t)s->walk.manifest_bytes, at = 0;
    free(s->manifest);
    s->manifest = malloc(len);
    if (s->manifest == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->walk.count; i++) {
        long n = entry_encode(&s->walk.found[i].e, room_of(s->manifest + at, len - at));
        ASSERT(n > 0);
        at += (size_t)n;
    }
    ASSERT(at == len);
    return 0;
}

static int cut_manifest(struct survey *s) {
    struct pieces front;
    pieces_init(&front, s->pieces.digest, s->pieces.usual);
    int r = 0;
    size_t left = (size_t)s->walk.manifest_bytes;
    for (const uint8_t *at = s->manifest; left > 0 && r == 0;) {
        struct room room = pieces_room(&front);
        size_t n = room.len < left ? room.len : left;
        r = n == 0 ? -ENOMEM : 0;
        if (r < 0)
            break;
        memcpy(room.at, at, n);
        r = pieces_add(&front, n);
        at += n;
        left -= n;
    }
    r = r < 0 ? r : pieces_end(&front);
    r = r < 0 ? r : pieces_put_before(&s->pieces, &front);
    pieces_fini(&front);
    return r;
}

static int make_bundle(struct survey *s) {
    const struct pieces *p = &s->pieces;
    struct bundle *b = &s->bundle;
    *b = (struct bundle){.digest = (uint8_t)p->digest,
                         .bytes = s->walk.manifest_bytes + s->walk.bytes,
                         .manifest_bytes = (uint32_t)s->walk.manifest_bytes,
                         .pieces = p->count,
                         .page_pieces = pieces_of_page(p->count),
                         .piece_bytes = p->longest};
    uint32_t pages = bundle_page_count(b), bytes = digest_bytes(p->digest);
    ASSERT(pages <= BUNDLE_PAGES_MAX);
    s->pages = malloc((size_t)pages * bytes);
    if (s->pages == NULL)
        return -ENOMEM;
    const uint8_t *at = p->rows;
    for (uint32_t i = 0; i < pages; i++) {
        uint8_t digest[DIGEST_BYTES_MAX];
        size_t len = (size_t)bundle_page_pieces(b, i) * bundle_row_bytes(p->digest);
        digest_of(p->digest, bytes_of(at, len), digest);
        memcpy(s->pages + (size_t)i * bytes, digest, bytes);
        at += len;
    }
    b->pages = bytes_of(s->pages, (size_t)pages * bytes);
    if (b->manifest_bytes <= BUNDLE_INLINE_BYTES_MAX)
        b->manifest = bytes_of(s->manifest, b->manifest_bytes);
    return 0;
}

/* ---- While it is given ------------------------------------------------------------------------- */

/* From here on it is worth the thread, and the pages: these are small at first, so that the first comes soon. */
#define GROW_BYTES_MIN ((uint64_t)8 << 20)
enum { GROW_PAGE_PIECES = 4 };

static bool may_grow(const struct survey *s, const struct survey_config *c) {
    const struct walk *w = &s->walk;
    const struct found *f = &w->found[0];
    return c->grows && c->digest == DIGEST_XXH3 && w->count == 1 && f->e.kind == ENTRY_FILE &&
           f->e.bytes >= GROW_BYTES_MIN && f->disk_bytes >= f->e.bytes &&
           w->manifest_bytes <= BUNDLE_INLINE_BYTES_MAX &&
           f->e.bytes / s->pieces.cut.least < PIECES_MAX - BUNDLE_INLINE_BYTES_MAX;
}

static bool is_known(struct ledger *ledger, struct found *f, const struct survey_config *c,
                     uint32_t usual) {
    struct pieces any;
    pieces_init(&any, c->digest, usual);
    bool known = ledger_find(ledger, f, &any);
    pieces_fini(&any);
    return known;
}

/* The most pieces that there may be; all but the last of a file are as long as can be expected of a cut. */
static void make_open_bundle(struct survey *s) {
    const struct pieces *p = &s->pieces;
    uint64_t file = s->walk.bytes;
    struct bundle *b = &s->bundle;
    *b = (struct bundle){.digest = (uint8_t)p->digest,
                         .bytes = s->walk.manifest_bytes + file,
                         .manifest_bytes = (uint32_t)s->walk.manifest_bytes,
                         .pieces = p->count + (uint32_t)(file / p->cut.least) + 1,
                         .page_pieces = GROW_PAGE_PIECES,
                         .piece_bytes = p->cut.most,
                         .manifest = bytes_of(s->manifest, (size_t)s->walk.manifest_bytes)};
    while (bundle_page_count(b) > BUNDLE_PAGES_MAX)
        b->page_pieces *= 2;
}

static int begin_to_grow(struct survey *s, uint32_t usual, char why[256]) {
    struct found *f = &s->walk.found[0];
    int fd = walk_open(&s->walk, f, why);
    if (fd < 0)
        return fd;
    sum_unknown(f->e.bytes, f->e.sum);
    int r = write_manifest(s);
    r = r < 0 ? r : cut_manifest(s);
    if (r < 0) {
        close(fd);
        return blame(&s->walk, f, r, why);
    }
    make_open_bundle(s);
    r = growth_begin(fd, f->e.bytes, usual, s->bundle.page_pieces, &s->growth);
    return r < 0 ? blame(&s->walk, f, r, why) : 0;
}

/* It has been looked over: what was found is kept, if that was true all the time. Its sum stays unknown: a second digest of all bytes
 * would be a tenth of the work, and only caches want it. */
static int end_growth(struct survey *s, char why[256]) {
    struct found f = s->walk.found[0];
    uint32_t first = 0;
    int r = walk_check(&s->walk, &f, growth_file(s->growth), why);
    for (uint64_t at = 0; at < s->walk.manifest_bytes; at += pieces_bytes_of(&s->pieces, first++))
        ;
    if (r == 0)
        ledger_keep(&s->ledger, &f, &s->pieces, first);
    s->bytes_read += f.e.bytes;
    s->bundle.pieces = s->pieces.count;
    return r;
}

bool survey_grows(const struct survey *s) {
    return s->growth != NULL;
}

int survey_growth(const struct survey *s) {
    return growth_fd(s->growth);
}

int survey_grow(struct survey *s, char why[256]) {
    int r = growth_take(s->growth, &s->pieces);
    if (r == 0)
        return 0;
    r = r < 0 ? blame(&s->walk, &s->walk.found[0], r, why) : end_growth(s, why);
    s->failed = r < 0;
    growth_free(s->growth);
    s->growth = NULL;
    ledger_close(&s->ledger);
    return r;
}

void survey_even(struct survey *s) {
    if (s->growth != NULL)
        growth_even(s->growth);
}

/* The last row may be that of the last piece: then its page is shorter, or the one before was the last. */
uint32_t survey_pages(const struct survey *s) {
    return s->failed           ? 0
           : s->growth == NULL ? bundle_page_count(&s->bundle)
                               : (s->pieces.count - 1) / s->bundle.page_pieces;
}

uint32_t survey_pieces(const struct survey *s) {
    return s->growth == NULL ? s->bundle.pieces : (uint32_t)(s->bundle.bytes / s->pieces.usual) + 1;
}

/* ---- All of it --------------------------------------------------------------------------------- */

/* With pieces of about this length. -E2BIG: there are too many of them. */
static int look(struct survey *s, const struct survey_config *c, struct ledger *ledger,
                uint32_t usual, char why[256]) {
    struct scan scan = {.config = c, .pieces = &s->pieces, .all = s->walk.bytes};
    ledger->asked = 0;
    int r = arrange(&s->walk, usual);
    pieces_fini(&s->pieces);
    pieces_init(&s->pieces, c->digest, usual);
    if (r < 0)
        return blame(&s->walk, &s->walk.found[0], r, why);
    if (may_grow(s, c) && !is_known(ledger, &s->walk.found[0], c, usual))
        return begin_to_grow(s, usual, why);
    r = look_at_files(s, &scan, ledger, why);
    scan_fini(&scan);
    s->bytes_read += scan.read;
    if (r < 0)
        return r;
    pieces_trim(&s->pieces); /* room for that of the manifest */
    r = write_manifest(s);
    r = r < 0 ? r : cut_manifest(s);
    r = r < 0 ? r : make_bundle(s);
    if (r == 0 && c->progress != NULL && !c->progress(c->context, scan.all, scan.all))
        r = -ECANCELED;
    return r < 0 ? blame(&s->walk, &s->walk.found[0], r, why) : 0;
}

/* How long pieces shall be, as far as anybody has said. Longer ones only of a file that is sent alone: what is known about it is known of
 * pieces of one length, in whatever company it is sent. */
static uint32_t wish(const struct survey_config *c, uint64_t bytes, uint32_t entries) {
    struct spread_terms terms = c->terms;
    terms.bytes = bytes;
    if (c->piece_bytes == 0 && terms.bytes_per_s != 0)
        return spread_piece_bytes(&c->spread, &terms);
    bool near = c->piece_bytes == 0 && c->digest == DIGEST_XXH3;
    return near && entries == 1 ? pieces_near(bytes) : c->piece_bytes;
}

/* Pieces become longer until there are not too many of them. As a rule the first try does. */
static int look_until_it_fits(struct survey *s, const struct survey_config *c,
                              struct ledger *ledger, char why[256]) {
    uint64_t bytes = disk_bytes(&s->walk);
    uint32_t usual = pieces_usual(wish(c, bytes, s->walk.count), bytes, s->walk.count);
    int r;
    while ((r = look(s, c, ledger, usual, why)) == -E2BIG && usual < PIECES_USUAL_MAX)
        usual = pieces_usual(usual * 2, bytes, s->walk.count);
    if (r == -E2BIG)
        return walk_blame(&s->walk, &s->walk.found[0], -EFBIG,
                          "this is too much to be sent at once", why);
    return r;
}

int survey_new(const struct survey_config *c, const struct survey_item *items, uint32_t count,
               struct survey **ret, char why[256]) {
    struct survey *s = calloc(1, sizeof *s);
    if (s == NULL) {
        snprintf(why, 256, "%s", strerror(ENOMEM));
        return -ENOMEM;
    }
    s->send = c->send;
    ledger_open(&s->ledger, c->ledger); /* first: it looks at the clock */
    s->ledger.sums = !c->grows;
    int r = walk_init(&s->walk, c, items, count, why);
    if (r == 0)
        r = look_until_it_fits(s, c, &s->ledger, why);
    if (s->growth == NULL)
        ledger_close(&s->ledger);
    if (r == 0)
        *ret = s;
    else
        survey_free(s);
    return r;
}

void survey_free(struct survey *s) {
    if (s == NULL)
        return;
    if (s->growth != NULL)
        ledger_close(&s->ledger);
    growth_free(s->growth);
    original_drop(s->open);
    walk_fini(&s->walk);
    pieces_fini(&s->pieces);
    free(s->manifest);
    free(s->pages);
    free(s);
}

const struct bundle *survey_bundle(const struct survey *s) {
    return &s->bundle;
}

struct bytes survey_manifest(const struct survey *s) {
    return bytes_of(s->manifest, (size_t)s->walk.manifest_bytes);
}

struct bytes survey_table(const struct survey *s) {
    return pieces_rows(&s->pieces, 0);
}

uint32_t survey_entries(const struct survey *s) {
    return s->walk.count;
}

uint64_t survey_bytes_read(const struct survey *s) {
    return s->bytes_read;
}

/* ---- Reading the stream ------------------------------------------------------------------------ */

/* The last that begins at or before this place and is not empty there: the file that has that byte. */
static uint32_t file_at(const struct walk *w, uint64_t offset) {
    uint32_t low = 0, high = w->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->found[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int open_file(struct survey *s, uint32_t number, char why[256]) {
    const struct found *f = &s->walk.found[number];
    if (s->open != NULL && s->open_number == number)
        return 0;
    original_drop(s->open);
    s->open = NULL;
    s->open_number = number;
    int fd = walk_open(&s->walk, f, why);
    int r = fd < 0 ? fd : original_open(fd, f->e.bytes, s->send, &s->open);
    return fd >= 0 && r < 0 ? blame(&s->walk, f, r, why) : r;
}

/* Exactly these bytes of a file. If afterwards it is as it was found, it was so while they were read. */
static int read_file(struct survey *s, uint32_t number, uint64_t from, struct room out,
                     char why[256]) {
    const struct found *f = &s->walk.found[number];
    int r = open_file(s, number, why);
    if (r < 0)
        return r;
    r = original_read(s->open, from, out);
    return r < 0 ? blame(&s->walk, f, r, why) : walk_check(&s->walk, f, original_fd(s->open), why);
}

static uint32_t piece_len(const struct survey *s, uint32_t number) {
    struct piece p;
    bool there = piece_load(&p, (enum digest_kind)s->bundle.digest, survey_table(s), number);
    ASSERT(there);
    return p.bytes;
}

int survey_locate(struct survey *s, uint32_t piece, uint64_t *ret_offset, uint32_t *ret_len) {
    if (piece >= s->pieces.count)
        return -ERANGE;
    for (; s->piece < piece; s->piece++)
        s->piece_offset += piece_len(s, s->piece);
    for (; s->piece > piece; s->piece--)
        s->piece_offset -= piece_len(s, s->piece - 1);
    *ret_offset = s->piece_offset;
    *ret_len = piece_len(s, piece);
    return 0;
}

int survey_read(struct survey *s, uint64_t offset, struct room out, char why[256]) {
    if (offset > s->bundle.bytes || out.len > s->bundle.bytes - offset) {
        snprintf(why, 256, "there is no such part");
        return -ERANGE;
    }
    int r = 0;
    while (out.len > 0 && r == 0) {
        size_t n = out.len;
        if (offset < s->bundle.manifest_bytes) {
            uint64_t left = s->bundle.manifest_bytes - offset;
            n = n < left ? n : (size_t)left;
            memcpy(out.at, s->manifest + offset, n);
        } else {
            uint32_t number = file_at(&s->walk, offset);
            const struct found *f = &s->walk.found[number];
            uint64_t left = f->offset + f->e.bytes - offset;
            n = n < left ? n : (size_t)left;
            r = read_file(s, number, offset - f->offset, room_of(out.at, n), why);
        }
        offset += n;
        out = room_of(out.at + n, out.len - n);
    }
    return r;
}

int survey_lend(struct survey *s, uint64_t offset, uint32_t len, struct survey_loan *ret,
                char why[256]) {
    *ret = (struct survey_loan){0};
    if (len == 0 || offset < s->bundle.manifest_bytes || offset + len > s->bundle.bytes)
        return 0;
    uint32_t number = file_at(&s->walk, offset);
    const struct found *f = &s->walk.found[number];
    if (offset + len > f->offset + f->e.bytes)
        return 0;
    int r = open_file(s, number, why);
    if (r < 0)
        return r;
    struct survey_loan l = {.file = s->open, .number = number, .offset = offset - f->offset};
    l.bytes = original_part(s->open, l.offset, len);
    if (l.bytes.len == 0)
        return 0;
    r = survey_loan_check(s, &l, why);
    if (r < 0)
        return r;
    original_hold(s->open);
    *ret = l;
    return 1;
}

int survey_loan_check(const struct survey *s, const struct survey_loan *l, char why[256]) {
    return walk_check(&s->walk, &s->walk.found[l->number], original_fd(l->file), why);
}
