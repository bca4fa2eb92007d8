/* SPDX-License-Identifier: MIT */
/* What is to be done with files: see porter_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/list.h"
#include "os/files.h"
#include "os/porter_inside.h"

static struct bytes keep_bytes(struct deed *d, struct bytes bytes) {
    d->bytes = malloc(bytes.len ? bytes.len : 1);
    ASSERT(d->bytes != NULL);
    if (bytes.len > 0)
        memcpy(d->bytes, bytes.at, bytes.len);
    return bytes_of(d->bytes, bytes.len);
}

void porter_do_later(struct porter *p, const struct effect *e) {
    if (p->deed_count == p->deed_cap) {
        uint32_t cap = p->deed_cap ? 2 * p->deed_cap : 64;
        struct deed *deeds = malloc(cap * sizeof *deeds);
        ASSERT(deeds != NULL);
        for (uint32_t i = 0; i < p->deed_count; i++)
            deeds[i] = p->deeds[(p->deed_at + i) % p->deed_cap];
        free(p->deeds);
        p->deeds = deeds;
        p->deed_cap = cap;
        p->deed_at = 0;
    }
    struct deed *d = &p->deeds[(p->deed_at + p->deed_count++) % p->deed_cap];
    *d = (struct deed){.kind = e->kind};
    if (e->kind <= EFFECT_BUNDLE_CLOSE) {
        d->bundle = e->bundle;
        d->bundle.descriptor = keep_bytes(d, e->bundle.descriptor);
    } else if (e->kind <= EFFECT_PAGE_FETCH) {
        d->page = e->page;
        d->page.table = keep_bytes(d, e->page.table);
    } else {
        d->piece = e->piece;
    }
}

/* Only within one machine pieces have such digests. */
static bool stays_near(struct bytes descriptor) {
    struct bundle b;
    return bundle_decode(descriptor, &b) == 0 && b.digest == DIGEST_XXH3;
}

/* Whether pieces are to be written by a thread of their own, while we see to the next: where they cannot go straight into their file. Only
 * within one machine, as it is before they are written that they are compared, and a giver whom we need not trust could change them in
 * between; and there must be processors for it: otherwise there is always another mover who could use them. Tests want it anywhere. */
static bool worth_beside(const struct porter *p, bool near) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bool slots = p->no_splice || carriage_shares(p->carriage);
    return getenv("STORM_TEST_WRITER") != NULL ||
           (near && slots && 2L * p->receivers <= processors);
}

static int open_bundle(struct porter *p, const struct effect_bundle *e, char why[256]) {
    struct opened *o = &p->bundles[e->bundle];
    int r = 0;
    *o = (struct opened){0};
    if (e->gives) {
        o->out = porter_find_offer(p, e->transfer);
        r = o->out == NULL ? -ENOENT : 0;
        if (r < 0)
            snprintf(why, 256, "nothing of that number is on offer");
    } else if (p->depot == NULL) {
        snprintf(why, 256, "nothing can be kept here");
        r = -EROFS;
    } else {
        r = depot_open(p->depot, e->descriptor, &o->in, why);
        if (r == 0 && e->owners)
            depot_believe(o->in);
        o->near = stays_near(e->descriptor);
        o->beside = worth_beside(p, o->near);
    }
    o->open = r == 0;
    return r;
}

static void tell_bundle(struct porter *p, uint32_t bundle, bool committed, int error,
                        const char *why) {
    struct input in = {.kind = INPUT_BUNDLE};
    in.bundle = (struct input_bundle){
        .bundle = bundle, .committed = committed, .error = error, .text = bytes_from_str(why)};
    porter_feed(p, &in);
}

/* Opened, or committed. */
static void tell_opened(struct porter *p, uint32_t bundle, bool committed, int r, const char *why) {
    tell_bundle(p, bundle, committed, r, why);
    porter_tell_grown(p, bundle);
}

void porter_tell_opened(struct porter *p) {
    for (uint32_t i = 0; i < p->limits.hauls; i++) {
        struct opened *o = &p->bundles[i];
        if (o->awaits == 0 || carriage_opening(p->carriage, o->awaits))
            continue;
        o->awaits = 0;
        tell_opened(p, i, false, 0, "");
    }
}

/* ---- pieces that are written ---- */

static void tell_piece(struct porter *p, const struct effect_piece *e, bool loaded, long r,
                       const char *why) {
    struct input in = {.kind = INPUT_PIECE};
    in.piece = (struct input_piece){.bundle = e->bundle,
                                    .piece = e->piece,
                                    .loaded = loaded,
                                    .error = r < 0 ? (int32_t)r : 0,
                                    .buffer = e->buffer,
                                    .offset = e->offset,
                                    .len = r > 0 ? (uint32_t)r : 0,
                                    .text = bytes_from_str(why)};
    porter_feed(p, &in);
}

static void tell_stored(struct porter *p, const struct pending *w, int r, const char *why) {
    porter_note_twin(p, &w->piece, r == 0);
    diary_note(&p->diary, DIARY_STORE, w->since, diary_now(&p->diary), w->piece.piece);
    tell_piece(p, &w->piece, false, r, why);
}

/* What the writer has done, but for what belongs to this bundle (of UINT32_MAX: to none), which nobody wants to
 * hear of any more; nor of what has come for a transfer that is over: its buffer is closed, and the number of its bundle may
 * be another's. */
static void take_written(struct porter *p, uint32_t without) {
    for (struct writing done; writer_take(&p->writer, &done);) {
        char why[256] = "";
        const struct pending w = p->pending[done.tag % WRITER_MAX];
        bool wanted =
            w.piece.bundle != without && buffers_find(&p->buffers, w.piece.buffer) != NULL;
        buffers_unlend(&p->buffers, w.piece.buffer);
        if (!wanted)
            continue;
        int r = depot_written(p->bundles[w.piece.bundle].in, w.piece.piece, done.status, why);
        tell_stored(p, &w, r, why);
    }
}

void porter_written(struct source *s, uint32_t events) {
    struct writer *w = CONTAINER_OF(s, struct writer, source);
    struct porter *p = CONTAINER_OF(w, struct porter, writer);
    (void)events;
    porter_work_off(p); /* what is to be closed is closed first */
    take_written(p, UINT32_MAX);
}

static void forget_pending(struct porter *p, uint32_t bundle) {
    writer_wait(&p->writer);
    take_written(p, bundle);
}

/* Hands it to the writer: 1; or 0 or -errno if there is nothing more to be done with it. */
static int store_beside(struct porter *p, const struct pending *w, struct bytes bytes,
                        char why[256]) {
    struct depot_bundle *in = p->bundles[w->piece.bundle].in;
    struct writing writing = {.fd = -1, .tag = p->pending_count, .bytes = bytes};
    int fd = -1;
    int r = depot_judge(in, w->piece.piece, bytes, &fd, &writing.offset, why);
    if (r != 1)
        return r;
    writing.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (writing.fd >= 0 && writer_give(&p->writer, &writing)) {
        p->pending[p->pending_count++ % WRITER_MAX] = *w;
        buffers_lend(&p->buffers, w->piece.buffer);
        return 1;
    }
    if (writing.fd >= 0)
        close(writing.fd);
    return depot_written(in, w->piece.piece, files_write(fd, bytes, writing.offset), why);
}

/* It lies in its file already, as good as it may be, and nowhere else. */
static int settle(struct porter *p, const struct effect_piece *e, int status,
                  const uint8_t digest[DIGEST_BYTES_MAX], char why[256]) {
    struct depot_bundle *in = p->bundles[e->bundle].in;
    int r = status < 0 ? depot_written(in, e->piece, status, why)
                       : depot_settle(in, e->piece, digest, why);
    if (r == 0)
        loans_add(&p->loans, &(struct place_loan){.buffer = e->buffer,
                                                  .offset = e->offset,
                                                  .bundle = e->bundle,
                                                  .piece = e->piece});
    return r;
}

static void store(struct porter *p, const struct effect_piece *e, struct bytes bytes) {
    char why[256] = "";
    struct pending w = {.piece = *e, .since = diary_now(&p->diary)};
    const struct opened *o = &p->bundles[e->bundle];
    uint8_t digest[DIGEST_BYTES_MAX];
    int r;
    loans_drop(&p->loans, e->buffer, e->offset);
    if (porter_drawn(p, e, &r, digest))
        r = settle(p, e, r, digest, why);
    else if (o->beside)
        r = store_beside(p, &w, bytes, why);
    else
        r = depot_store(o->in, e->piece, bytes, why);
    if (r != 1)
        tell_stored(p, &w, r, why);
}

/* ---- bundles and pages ---- */

static void do_bundle(struct porter *p, const struct deed *d) {
    char why[256] = "";
    struct opened *o = &p->bundles[d->bundle.bundle];
    if (d->kind == EFFECT_BUNDLE_CLOSE) {
        forget_pending(p, d->bundle.bundle);
        if (o->in != NULL)
            depot_close(o->in, d->bundle.keep);
        porter_forget_twins(p, d->bundle.bundle);
        porter_draws_forget(p, d->bundle.bundle);
        loans_drop_bundle(&p->loans, d->bundle.bundle);
        *o = (struct opened){0};
        return;
    }
    bool opens = d->kind == EFFECT_BUNDLE_OPEN;
    uint64_t began = diary_now(&p->diary);
    if (!opens) { /* a piece that came twice: nobody writes to what others can see, or run */
        writer_wait(&p->writer);
        porter_draws_forget(p, d->bundle.bundle);
    }
    int r = opens ? open_bundle(p, &d->bundle, why) : depot_commit(o->in, why);
    diary_note(&p->diary, opens ? DIARY_OPEN : DIARY_COMMIT, began, diary_now(&p->diary),
               d->bundle.bundle);
    if (!opens)
        diary_flush(&p->diary); /* before anybody hears of it */
    if (opens && r == 0 && carriage_opening(p->carriage, d->bundle.transfer))
        o->awaits = d->bundle.transfer;
    else
        tell_opened(p, d->bundle.bundle, !opens, r, why);
}

/* The page of a survey's table, which has come to its end if this one is shorter. */
static struct bytes table_page(const struct survey *s, uint32_t page) {
    const struct bundle *b = survey_bundle(s);
    struct bytes table = survey_table(s);
    size_t whole = b->page_pieces * bundle_row_bytes((enum digest_kind)b->digest);
    size_t from = page * whole;
    return bytes_of(table.at + from, table.len - from < whole ? table.len - from : whole);
}

void porter_tell_grown(struct porter *p, uint32_t bundle) {
    struct opened *o = &p->bundles[bundle];
    if (!o->open || o->awaits != 0 || o->out == NULL || !bundle_is_open(survey_bundle(o->out)))
        return;
    while (o->told < survey_pages(o->out)) {
        struct input in = {.kind = INPUT_PAGE};
        in.page = (struct input_page){
            .bundle = bundle, .page = o->told, .table = table_page(o->out, o->told)};
        o->told++;
        if (!survey_grows(o->out) && o->told == survey_pages(o->out))
            in.page.pieces = survey_bundle(o->out)->pieces;
        porter_feed(p, &in);
    }
}

static void do_page(struct porter *p, const struct deed *d) {
    char why[256] = "";
    uint8_t have[BUNDLE_PAGE_PIECES_MAX / 8] = {0};
    const struct opened *o = &p->bundles[d->page.bundle];
    struct input in = {.kind = INPUT_PAGE};
    in.page = (struct input_page){
        .bundle = d->page.bundle, .page = d->page.page, .have = bytes_of(have, sizeof have)};
    if (!o->open)
        return;
    if (d->kind == EFFECT_PAGE_KEEP) {
        uint64_t began = diary_now(&p->diary);
        in.page.error = depot_page(o->in, d->page.page, d->page.table, have, why);
        in.page.pieces = depot_last_page(o->in, d->page.page);
        diary_note(&p->diary, DIARY_PAGE, began, diary_now(&p->diary), d->page.page);
        in.page.table = d->page.table;
    } else {
        in.page.table =
            o->out != NULL ? table_page(o->out, d->page.page) : depot_table(o->in, d->page.page);
    }
    in.page.text = bytes_from_str(why);
    porter_feed(p, &in);
}

/* From its file straight away, if it can be sent so; a fabric takes it out of the slot. */
static int load_offered(struct porter *p, struct survey *s, const struct effect_piece *e,
                        struct room out, char why[256]) {
    struct place_loan l = {
        .buffer = e->buffer, .offset = e->offset, .bundle = e->bundle, .survey = s};
    uint64_t offset;
    uint32_t len;
    int r = survey_locate(s, e->piece, &offset, &len);
    if (r < 0 || len > out.len) {
        snprintf(why, 256, "there is no piece %u", e->piece);
        return r < 0 ? r : -EMSGSIZE;
    }
    r = carriage_shares(p->carriage) ? 0 : survey_lend(s, offset, len, &l.loan, why);
    if (r > 0)
        loans_add(&p->loans, &l);
    else if (r == 0)
        r = survey_read(s, offset, room_of(out.at, len), why);
    return r < 0 ? r : (int)len;
}

/* A piece that is not in its slot any more lies in its file, and a link within this machine takes it from there: reading it would be
 * a copy for nothing. */
static long load_kept(struct porter *p, const struct effect_piece *e, struct room out,
                      char why[256]) {
    const struct opened *o = &p->bundles[e->bundle];
    struct place_loan l = {
        .buffer = e->buffer, .offset = e->offset, .bundle = e->bundle, .piece = e->piece};
    uint32_t len;
    if (!o->near || carriage_shares(p->carriage) || !depot_lies(o->in, e->piece, &len) ||
        len > out.len)
        return depot_load(o->in, e->piece, out, why);
    loans_add(&p->loans, &l);
    return (long)len;
}

static void do_piece(struct porter *p, const struct deed *d) {
    char why[256] = "";
    const struct effect_piece *e = &d->piece;
    const struct opened *o = &p->bundles[e->bundle];
    const struct buffer *b = buffers_find(&p->buffers, e->buffer);
    if (!o->open || b == NULL)
        return;
    ASSERT(e->offset <= b->bytes && e->len <= b->bytes - e->offset);
    struct room room = room_of(b->at + e->offset, e->len);
    if (d->kind == EFFECT_PIECE_STORE) {
        store(p, e, room_bytes(room));
        return;
    }
    uint64_t began = diary_now(&p->diary);
    loans_drop(&p->loans, e->buffer, e->offset);
    long r = o->out != NULL ? load_offered(p, o->out, e, room, why) : load_kept(p, e, room, why);
    porter_note_twin(p, e, false);
    diary_note(&p->diary, DIARY_LOAD, began, diary_now(&p->diary), e->piece);
    tell_piece(p, e, true, r, why);
}

/* A file was changed while it was sent from where it lies. */
static void tell_spoilt(struct porter *p) {
    p->spoilt = false;
    for (uint32_t i = 0; i < p->limits.hauls; i++) {
        struct opened *o = &p->bundles[i];
        if (o->error == 0)
            continue;
        int error = o->error;
        o->error = 0;
        tell_bundle(p, i, false, error, o->why);
    }
}

void porter_work_off(struct porter *p) {
    while (p->deed_count > 0 || p->spoilt) {
        if (p->spoilt)
            tell_spoilt(p);
        if (p->deed_count == 0)
            continue;
        struct deed d = p->deeds[p->deed_at];
        p->deed_at = (p->deed_at + 1) % p->deed_cap;
        p->deed_count--;
        if (d.kind <= EFFECT_BUNDLE_CLOSE)
            do_bundle(p, &d);
        else if (d.kind <= EFFECT_PAGE_FETCH)
            do_page(p, &d);
        else
            do_piece(p, &d);
        free(d.bytes);
    }
}
