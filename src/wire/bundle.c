/* SPDX-License-Identifier: MIT */
/* What one transfer carries: see bundle.h.
 *
 * What decodes is also consistent: whoever has a decoded bundle, piece or entry can compute with its numbers
 * without overflow and open its paths. There is one way to write each, so what decodes encodes to
 * the same bytes. */
#include "wire/bundle.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

/* Of the length in a row; the others are the length itself. */
#define ROW_HOLE (1U << 31)
enum { ROW_LENGTH_BYTES = 4 };

uint32_t bundle_page_count(const struct bundle *b) {
    return b->pieces / b->page_pieces + (b->pieces % b->page_pieces != 0);
}

uint32_t bundle_page_pieces(const struct bundle *b, uint32_t page) {
    ASSERT(page < bundle_page_count(b));
    uint32_t left = b->pieces - page * b->page_pieces;
    return left < b->page_pieces ? left : b->page_pieces;
}

uint32_t bundle_row_bytes(enum digest_kind kind) {
    return ROW_LENGTH_BYTES + digest_bytes(kind);
}

/* A part of a path that stands for a name and nothing else. */
static bool part_fits(const uint8_t *at, size_t len) {
    if (len == 0 || len > BUNDLE_NAME_BYTES_MAX)
        return false;
    bool dots = at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.'));
    return !dots && memchr(at, 0, len) == NULL;
}

bool entry_path_fits(struct bytes path) {
    if (path.len == 0 || path.len > BUNDLE_PATH_BYTES_MAX)
        return false;
    const uint8_t *at = path.at, *end = path.at + path.len;
    while (true) {
        const uint8_t *slash = memchr(at, '/', (size_t)(end - at));
        const uint8_t *stop = slash != NULL ? slash : end;
        if (!part_fits(at, (size_t)(stop - at)))
            return false;
        if (slash == NULL)
            return true;
        at = slash + 1;
    }
}

/* Where it goes: nowhere that has a name (the spool), or an absolute path. */
static bool goal_fits(const struct bundle *b) {
    if (b->goal == GOAL_SPOOL)
        return b->to.len == 0 && !b->replace;
    if (b->to.len == 0 || b->to.len > BUNDLE_PATH_BYTES_MAX || b->to.at[0] != '/')
        return false;
    return b->to.len == 1 ? !b->replace : entry_path_fits(bytes_of(b->to.at + 1, b->to.len - 1));
}

static bool sizes_fit(const struct bundle *b) {
    if (b->manifest_bytes == 0 || b->manifest_bytes > BUNDLE_MANIFEST_BYTES_MAX ||
        b->manifest_bytes > b->bytes)
        return false;
    if (b->piece_bytes == 0 || b->piece_bytes > BUNDLE_PIECE_BYTES_MAX || b->piece_bytes > b->bytes)
        return false;
    /* At least a byte each; the rest may be holes, but somewhere the longest one is. */
    return b->pieces > 0 && b->pieces - 1 <= b->bytes - b->piece_bytes &&
           b->bytes - b->piece_bytes <= (b->pieces - 1) * (uint64_t)BUNDLE_HOLE_BYTES_MAX;
}

static bool pages_fit(const struct bundle *b) {
    if (b->page_pieces == 0 || b->page_pieces > BUNDLE_PAGE_PIECES_MAX)
        return false;
    uint32_t pages = bundle_page_count(b);
    if (bundle_is_open(b))
        return pages <= BUNDLE_PAGES_MAX && b->digest == DIGEST_XXH3 && b->manifest.len > 0;
    return pages <= BUNDLE_PAGES_MAX && b->pages.len == (size_t)pages * digest_bytes(b->digest);
}

static bool manifest_inside_fits(const struct bundle *b) {
    return b->manifest.len == 0 ||
           (b->manifest.len == b->manifest_bytes && b->manifest.len <= BUNDLE_INLINE_BYTES_MAX);
}

static void walk_bundle(struct codec *c, struct bundle *b) {
    codec_enum(c, &b->digest, DIGEST_KINDS);
    codec_enum(c, &b->goal, GOALS);
    codec_bool(c, &b->replace);
    codec_u64(c, &b->bytes);
    codec_u32(c, &b->manifest_bytes);
    codec_u32(c, &b->pieces);
    codec_u32(c, &b->page_pieces);
    codec_u32(c, &b->piece_bytes);
    codec_bytes(c, &b->to, 1);
    codec_bytes(c, &b->pages, 1);
    codec_bytes(c, &b->manifest, 1);
}

long bundle_encode(const struct bundle *b, struct room out) {
    struct bundle copy = *b;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_bundle(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int bundle_decode(struct bytes in, struct bundle *ret) {
    memset(ret, 0, sizeof *ret);
    struct codec c = {.in = in.at, .len = in.len};
    walk_bundle(&c, ret);
    if (c.failed || c.at != c.len)
        return -EBADMSG;
    bool fits = goal_fits(ret) && sizes_fit(ret) && pages_fit(ret) && manifest_inside_fits(ret);
    return fits ? 0 : -EBADMSG;
}

void piece_store(uint8_t *out, enum digest_kind kind, const struct piece *p) {
    ASSERT(p->bytes > 0 && p->bytes <= (p->hole ? BUNDLE_HOLE_BYTES_MAX : BUNDLE_PIECE_BYTES_MAX));
    store_le32(out, p->bytes | (p->hole ? ROW_HOLE : 0));
    if (p->hole)
        memset(out + ROW_LENGTH_BYTES, 0, digest_bytes(kind));
    else
        memcpy(out + ROW_LENGTH_BYTES, p->digest, digest_bytes(kind));
}

static bool all_zero(const uint8_t *at, size_t len) {
    uint8_t any = 0;
    for (size_t i = 0; i < len; i++)
        any |= at[i];
    return any == 0;
}

bool piece_load(struct piece *ret, enum digest_kind kind, struct bytes page, uint32_t row) {
    uint32_t digest = digest_bytes(kind);
    if (row >= page.len / bundle_row_bytes(kind))
        return false;
    const uint8_t *at = page.at + (size_t)row * bundle_row_bytes(kind);
    uint32_t length = load_le32(at);
    memset(ret, 0, sizeof *ret);
    ret->hole = (length & ROW_HOLE) != 0;
    ret->bytes = length & ~ROW_HOLE;
    memcpy(ret->digest, at + ROW_LENGTH_BYTES, digest);
    if (ret->hole && !all_zero(ret->digest, digest))
        return false;
    return ret->bytes > 0 &&
           ret->bytes <= (ret->hole ? BUNDLE_HOLE_BYTES_MAX : BUNDLE_PIECE_BYTES_MAX);
}

static void walk_digest(struct codec *c, uint8_t digest[32]) {
    for (int i = 0; i < 32; i++)
        codec_u8(c, digest + i);
}

static void walk_entry(struct codec *c, struct entry *e) {
    codec_enum(c, &e->kind, ENTRY_KINDS);
    codec_u32(c, &e->mode);
    codec_u32(c, &e->uid);
    codec_u32(c, &e->gid);
    uint64_t mtime = (uint64_t)e->mtime_ns;
    codec_u64(c, &mtime);
    e->mtime_ns = (int64_t)mtime;
    codec_bytes(c, &e->path, 1);
    if (e->kind == ENTRY_FILE) {
        codec_u64(c, &e->bytes);
        walk_digest(c, e->sum);
    } else if (e->kind == ENTRY_LINK) {
        codec_bytes(c, &e->target, 1);
    }
}

long entry_encode(const struct entry *e, struct room out) {
    struct entry copy = *e;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_entry(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

/* A link may lead anywhere, as nobody follows it here. */
static bool target_fits(struct bytes target) {
    return target.len > 0 && target.len <= BUNDLE_PATH_BYTES_MAX &&
           memchr(target.at, 0, target.len) == NULL;
}

static bool entry_fits(const struct entry *e) {
    return e->mode <= 07777 && e->bytes <= INT64_MAX && entry_path_fits(e->path) &&
           (e->kind != ENTRY_LINK || target_fits(e->target));
}

int entry_next(struct bytes manifest, size_t *at, struct entry *ret) {
    if (*at == manifest.len)
        return 0;
    if (*at > manifest.len)
        return -EBADMSG;
    memset(ret, 0, sizeof *ret);
    struct codec c = {.in = manifest.at, .len = manifest.len, .at = *at};
    walk_entry(&c, ret);
    if (c.failed || !entry_fits(ret))
        return -EBADMSG;
    *at = c.at;
    return 1;
}

bool manifest_fits(struct bytes manifest, uint64_t bytes) {
    if (manifest.len == 0 || manifest.len > bytes)
        return false;
    uint64_t left = bytes - manifest.len;
    size_t at = 0;
    struct entry e;
    int status;
    while ((status = entry_next(manifest, &at, &e)) == 1 && e.bytes <= left)
        left -= e.bytes;
    return status == 0 && left == 0;
}

void entry_object(const struct entry *e, char out[ENTRY_OBJECT_BYTES]) {
    struct text t;
    text_init(&t, out, ENTRY_OBJECT_BYTES);
    text_hex(&t, e->sum, 1);
    text_char(&t, '/');
    text_hex(&t, e->sum, sizeof e->sum);
    text_char(&t, '/');
    text_strn(&t, (const char *)e->path.at, e->path.len);
}
