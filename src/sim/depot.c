/* SPDX-License-Identifier: MIT */
/* The model of a mover's world: see depot.h.
 *
 * What an effect asks for is judged when its time is over, not when it is asked: so a mover that uses a buffer
 * again too early is found out. */
#include "sim/depot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"

struct errand {
    uint64_t at;
    uint64_t order;
    enum effect_kind kind;
    uint32_t bundle;
    uint32_t life;   /* of the bundle */
    uint32_t number; /* of the page or piece */
    uint32_t buffer;
    uint64_t offset;
    uint32_t len;
    bool wrong; /* KEEP: does not fit */
    bool found; /* FETCH: nobody has asked, it was found when the source looked its files over */
};

struct open_bundle {
    const struct cargo *cargo; /* NULL: not open */
    uint32_t life;
    bool gives, ready, committed;
    uint64_t transfer;
    uint32_t found; /* pages, if it gives and is open */
    uint8_t *pages; /* bits */
    uint8_t *pieces;
    uint32_t left; /* pieces that are not here */
};

struct offer {
    uint64_t number;
    const struct cargo *cargo;
};

struct told_error {
    uint64_t transfer;
    int32_t error;
};

struct sim_depot {
    struct sim_depot_config config;
    struct sim_depot_ills ills;
    struct random random;
    uint64_t disk_at, hang_until;
    uint32_t slow;
    uint64_t orders;
    uint32_t lives;
    struct errand *errands;
    uint32_t errand_count, errand_cap;
    struct open_bundle *bundles;
    uint32_t bundle_cap;
    struct offer *offers;
    uint32_t offer_count;
    struct told_error *errors;
    uint32_t error_count;
    const struct cargo **final;
    uint32_t final_count;
    uint8_t *cache; /* a bit for each tag */
    uint64_t cache_tags;
    uint8_t *scratch; /* of a page that is told wrong, and what of it is here */
    size_t scratch_len;
    struct sim_depot_counts counts;
};

static const char *const sin_names[SINS] = {
    [SIN_COMMIT] = "committed what was not whole",
    [SIN_UNJUDGED] = "passed on what was spoiled on its way",
    [SIN_UNKNOWN] = "asked for what is not there",
    [SIN_CLOSED] = "opened what was open, or closed what was not",
};

const char *sim_depot_sin_name(enum sim_depot_sin sin) {
    return sin < SINS ? sin_names[sin] : "?";
}

static void accuse(const struct sim_depot *d, enum sim_depot_sin which) {
    if (d->config.sinned != NULL)
        d->config.sinned(d->config.context, d->config.body, which);
}

static bool bit(const uint8_t *bits, uint64_t i) {
    return (bits[i / 8] >> i % 8 & 1) != 0;
}

static void set_bit(uint8_t *bits, uint64_t i) {
    bits[i / 8] |= (uint8_t)(1U << i % 8);
}

static void *grown(void *array, uint32_t count, size_t size) {
    if (count > 0 && (count & (count - 1)) != 0)
        return array;
    array = realloc(array, size * (count == 0 ? 1 : 2 * (size_t)count));
    ASSERT(array != NULL);
    return array;
}

/* ---- what is here ---- */

static void remember(struct sim_depot *d, uint64_t tag) {
    if (tag == 0)
        return;
    if (d->cache == NULL || tag > d->cache_tags) {
        uint64_t tags = d->config.stock->tags;
        d->cache = realloc(d->cache, tags / 8 + 1);
        ASSERT(d->cache != NULL && tag <= tags);
        size_t had = d->cache_tags == 0 ? 0 : d->cache_tags / 8 + 1;
        memset(d->cache + had, 0, tags / 8 + 1 - had);
        d->cache_tags = tags;
    }
    set_bit(d->cache, tag);
}

static bool remembers(const struct sim_depot *d, uint64_t tag) {
    return d->cache != NULL && tag <= d->cache_tags && bit(d->cache, tag);
}

void sim_depot_cache(struct sim_depot *d, const struct cargo *c, uint32_t percent) {
    for (uint32_t i = 0; i < c->bundle.pieces; i++)
        if (random_below(&d->random, 100) < percent)
            remember(d, c->tags[i]);
}

bool sim_depot_has(const struct sim_depot *d, const struct cargo *c) {
    for (uint32_t i = 0; i < d->final_count; i++)
        if (d->final[i] == c)
            return true;
    return false;
}

uint32_t sim_depot_lacks(const struct sim_depot *d, const struct cargo *c, uint64_t *ret_bytes) {
    uint32_t pieces = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < c->bundle.pieces; i++)
        if (c->tags[i] != 0 && !remembers(d, c->tags[i])) {
            pieces++;
            bytes += c->lens[i];
        }
    if (ret_bytes != NULL)
        *ret_bytes = bytes;
    return pieces;
}

void sim_depot_remove(struct sim_depot *d, const struct cargo *c, bool all) {
    for (uint32_t i = 0; i < d->final_count; i++)
        if (d->final[i] == c)
            d->final[i--] = d->final[--d->final_count];
    for (uint32_t i = 0; all && i < c->bundle.pieces; i++)
        if (remembers(d, c->tags[i]))
            d->cache[c->tags[i] / 8] &= (uint8_t) ~(1U << c->tags[i] % 8);
}

static void finalise(struct sim_depot *d, const struct cargo *c) {
    if (sim_depot_has(d, c))
        return;
    d->final = grown(d->final, d->final_count, sizeof *d->final);
    d->final[d->final_count++] = c;
}

/* ---- bundles ---- */

static struct open_bundle *bundle_of(struct sim_depot *d, uint32_t bundle) {
    struct open_bundle *b = bundle < d->bundle_cap ? &d->bundles[bundle] : NULL;
    return b == NULL || b->cargo == NULL ? NULL : b;
}

static const struct cargo *find_cargo(const struct sim_depot *d, const struct effect_bundle *e) {
    for (uint32_t i = 0; e->gives && i < d->offer_count; i++)
        if (d->offers[i].number == e->transfer)
            return d->offers[i].cargo;
    return e->gives ? NULL : stock_find(d->config.stock, e->descriptor);
}

static void make_room(struct sim_depot *d, uint32_t bundle) {
    if (bundle < d->bundle_cap)
        return;
    d->bundles = realloc(d->bundles, (bundle + 1) * sizeof *d->bundles);
    ASSERT(d->bundles != NULL);
    memset(d->bundles + d->bundle_cap, 0, (bundle + 1 - d->bundle_cap) * sizeof *d->bundles);
    d->bundle_cap = bundle + 1;
}

static struct open_bundle *begin(struct sim_depot *d, const struct effect_bundle *e) {
    const struct cargo *cargo = find_cargo(d, e);
    make_room(d, e->bundle);
    struct open_bundle *b = &d->bundles[e->bundle];
    if (b->cargo != NULL || cargo == NULL) {
        accuse(d, b->cargo != NULL ? SIN_CLOSED : SIN_UNKNOWN);
        return NULL;
    }
    *b = (struct open_bundle){.cargo = cargo,
                              .life = ++d->lives,
                              .gives = e->gives,
                              .transfer = e->transfer,
                              .left = cargo->bundle.pieces};
    b->pages = calloc(1, cargo->pages / 8 + 1);
    b->pieces = calloc(1, cargo->bundle.pieces / 8 + 1);
    ASSERT(b->pages != NULL && b->pieces != NULL);
    return b;
}

static void end(struct sim_depot *d, struct open_bundle *b, bool keep) {
    const struct cargo *c = b->cargo;
    for (uint32_t i = 0; !b->gives && (keep || b->committed) && i < c->bundle.pieces; i++)
        if (bit(b->pieces, i))
            remember(d, c->tags[i]);
    free(b->pages);
    free(b->pieces);
    *b = (struct open_bundle){0};
}

static void take(struct open_bundle *b, uint32_t piece) {
    if (bit(b->pieces, piece))
        return;
    set_bit(b->pieces, piece);
    b->left--;
}

/* ---- errands ---- */

/* A disk does one thing after the other; being told takes a little longer, now more, now less. */
static uint64_t ready_at(struct sim_depot *d, uint64_t bytes, uint64_t extra) {
    uint64_t now = world_now(d->config.world), rate = d->config.bytes_per_s;
    uint64_t busy = rate == 0 ? 0 : bytes * NS_PER_S / rate;
    if (d->disk_at < now)
        d->disk_at = now;
    d->disk_at += (busy + extra) * d->slow;
    uint64_t jitter = d->config.jitter_ns == 0 ? 0 : random_below(&d->random, d->config.jitter_ns);
    uint64_t at = d->disk_at + d->config.latency_ns * d->slow + jitter;
    return at < d->hang_until ? d->hang_until : at;
}

static void ask(struct sim_depot *d, struct errand e, uint64_t bytes, uint64_t extra) {
    e.at = ready_at(d, bytes, extra);
    e.order = d->orders++;
    if (d->errand_count == d->errand_cap) {
        d->errand_cap = d->errand_cap == 0 ? 8 : 2 * d->errand_cap;
        d->errands = realloc(d->errands, d->errand_cap * sizeof *d->errands);
        ASSERT(d->errands != NULL);
    }
    d->errands[d->errand_count++] = e;
    world_poke(d->config.world, d->config.body, e.at);
}

static bool chance(struct sim_depot *d, uint32_t permille) {
    return permille > 0 && random_chance(&d->random, permille, 1000);
}

static void carry_bundle(struct sim_depot *d, const struct effect *e) {
    struct open_bundle *b =
        e->kind == EFFECT_BUNDLE_OPEN ? begin(d, &e->bundle) : bundle_of(d, e->bundle.bundle);
    if (b == NULL) {
        if (e->kind != EFFECT_BUNDLE_OPEN)
            accuse(d, e->kind == EFFECT_BUNDLE_CLOSE ? SIN_CLOSED : SIN_UNKNOWN);
        return;
    }
    if (e->kind == EFFECT_BUNDLE_CLOSE) {
        end(d, b, e->bundle.keep);
        return;
    }
    if (e->kind == EFFECT_BUNDLE_COMMIT && (b->left > 0 || b->gives))
        accuse(d, SIN_COMMIT);
    ask(d, (struct errand){.kind = e->kind, .bundle = e->bundle.bundle, .life = b->life}, 0,
        e->kind == EFFECT_BUNDLE_COMMIT ? d->config.commit_ns : 0);
}

/* Whether the source has looked so far. */
static bool is_found(const struct open_bundle *b, uint32_t page) {
    return !b->cargo->open || page < b->found;
}

/* Looks over what is on the next page. */
static void look_on(struct sim_depot *d, const struct open_bundle *b, uint32_t bundle) {
    const struct cargo *c = b->cargo;
    uint64_t bytes = 0;
    if (!b->gives || !c->open || b->found == c->pages)
        return;
    for (uint32_t i = 0; i < bundle_page_pieces(&c->bundle, b->found); i++)
        bytes += c->lens[b->found * c->bundle.page_pieces + i];
    ask(d,
        (struct errand){.kind = EFFECT_PAGE_FETCH,
                        .bundle = bundle,
                        .life = b->life,
                        .number = b->found,
                        .found = true},
        bytes, 0);
}

static void carry_page(struct sim_depot *d, const struct effect *e) {
    struct open_bundle *b = bundle_of(d, e->page.bundle);
    bool keep = e->kind == EFFECT_PAGE_KEEP;
    if (b == NULL || !b->ready || e->page.page >= b->cargo->pages ||
        (!keep && !(b->gives ? is_found(b, e->page.page) : bit(b->pages, e->page.page)))) {
        accuse(d, SIN_UNKNOWN);
        return;
    }
    struct errand errand = {
        .kind = e->kind, .bundle = e->page.bundle, .life = b->life, .number = e->page.page};
    errand.wrong = keep ? !bytes_equal(e->page.table, cargo_page(b->cargo, e->page.page))
                        : !b->cargo->open && chance(d, d->ills.page_chance);
    ask(d, errand, cargo_page(b->cargo, e->page.page).len, 0);
}

/* It was spoiled between its giver and here; that is seen when it is judged. */
static void spoil(struct sim_depot *d, const struct effect_piece *p) {
    uint64_t tag;
    uint32_t len;
    if (world_stamp(d->config.world, d->config.body, p->buffer, p->offset, &tag, &len))
        world_set_stamp(d->config.world, d->config.body, p->buffer, p->offset, len,
                        tag | CARGO_SPOILED_ON_THE_WAY);
}

static void carry_piece(struct sim_depot *d, const struct effect *e) {
    const struct effect_piece *p = &e->piece;
    struct open_bundle *b = bundle_of(d, p->bundle);
    bool store = e->kind == EFFECT_PIECE_STORE;
    uint64_t tag;
    uint32_t len;
    bool known = b != NULL && b->ready && p->piece < b->cargo->bundle.pieces &&
                 (store      ? bit(b->pages, p->piece / b->cargo->bundle.page_pieces)
                  : b->gives ? is_found(b, p->piece / b->cargo->bundle.page_pieces)
                             : bit(b->pieces, p->piece));
    if (!known || (!store && p->len < b->cargo->lens[p->piece])) {
        accuse(d, SIN_UNKNOWN);
        return;
    }
    if (store && world_stamp(d->config.world, d->config.body, p->buffer, p->offset, &tag, &len) &&
        (tag & CARGO_SPOILED_ON_THE_WAY) != 0)
        accuse(d, SIN_UNJUDGED);
    if (store && chance(d, d->ills.way_chance))
        spoil(d, p);
    ask(d,
        (struct errand){.kind = e->kind,
                        .bundle = p->bundle,
                        .life = b->life,
                        .number = p->piece,
                        .buffer = p->buffer,
                        .offset = p->offset,
                        .len = p->len},
        store ? p->len : b->cargo->lens[p->piece], 0);
}

void sim_depot_carry(struct sim_depot *d, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_BUNDLE_OPEN:
    case EFFECT_BUNDLE_COMMIT:
    case EFFECT_BUNDLE_CLOSE:
        carry_bundle(d, e);
        break;
    case EFFECT_PAGE_KEEP:
    case EFFECT_PAGE_FETCH:
        carry_page(d, e);
        break;
    case EFFECT_PIECE_STORE:
    case EFFECT_PIECE_LOAD:
        carry_piece(d, e);
        break;
    default:
        accuse(d, SIN_UNKNOWN);
    }
}

/* ---- results ---- */

static void note_error(struct sim_depot *d, const struct open_bundle *b, int32_t error) {
    d->errors = grown(d->errors, d->error_count, sizeof *d->errors);
    d->errors[d->error_count++] = (struct told_error){.transfer = b->transfer, .error = error};
}

static struct bytes reason(int32_t error) {
    return bytes_from_str(strerrorname_np(-error));
}

static void tell_bundle(struct sim_depot *d, struct open_bundle *b, const struct errand *e,
                        struct input *ret) {
    bool commit = e->kind == EFFECT_BUNDLE_COMMIT;
    int32_t error = commit && d->ills.uncommitted ? -EROFS
                    : !commit && d->ills.refuses  ? -EACCES
                                                  : 0;
    ret->kind = INPUT_BUNDLE;
    ret->bundle = (struct input_bundle){.bundle = e->bundle, .committed = commit, .error = error};
    if (error != 0) {
        ret->bundle.text = reason(error);
        note_error(d, b, error);
    } else if (commit) {
        b->committed = true;
        finalise(d, b->cargo);
        d->counts.committed_at = world_now(d->config.world);
    } else {
        b->ready = true;
        look_on(d, b, e->bundle);
    }
}

static uint8_t *scratch(struct sim_depot *d, size_t len) {
    if (d->scratch_len < len) {
        d->scratch = realloc(d->scratch, len);
        ASSERT(d->scratch != NULL);
        d->scratch_len = len;
    }
    return d->scratch;
}

/* Pieces of the page that are here: holes, what is in the cache, what came before. */
static struct bytes find_here(struct sim_depot *d, struct open_bundle *b, uint32_t page,
                              uint8_t *have) {
    const struct cargo *c = b->cargo;
    uint32_t from = page * c->bundle.page_pieces, count = bundle_page_pieces(&c->bundle, page);
    memset(have, 0, (count + 7) / 8);
    for (uint32_t i = 0; i < count; i++) {
        if (c->tags[from + i] == 0 || remembers(d, c->tags[from + i]))
            take(b, from + i);
        if (bit(b->pieces, from + i))
            set_bit(have, i);
    }
    return bytes_of(have, (count + 7) / 8);
}

/* Its file was changed while it was looked over. */
static void tell_spoilt(struct sim_depot *d, struct open_bundle *b, const struct errand *e,
                        struct input *ret) {
    ret->kind = INPUT_BUNDLE;
    ret->bundle =
        (struct input_bundle){.bundle = e->bundle, .error = -ESTALE, .text = reason(-ESTALE)};
    note_error(d, b, -ESTALE);
}

static void tell_page(struct sim_depot *d, struct open_bundle *b, const struct errand *e,
                      struct input *ret) {
    if (e->found && chance(d, d->ills.error_chance)) {
        tell_spoilt(d, b, e, ret);
        return;
    }
    struct bytes table = cargo_page(b->cargo, e->number);
    uint8_t *room = scratch(d, table.len + BUNDLE_PAGE_PIECES_MAX / 8);
    bool keep = e->kind == EFFECT_PAGE_KEEP;
    ret->kind = INPUT_PAGE;
    ret->page = (struct input_page){.bundle = e->bundle, .page = e->number};
    if (b->cargo->open && (keep || e->found) && !e->wrong && e->number + 1 == b->cargo->pages)
        ret->page.pieces = b->cargo->bundle.pieces;
    if (e->found) {
        b->found++;
        look_on(d, b, e->bundle);
    }
    if (keep && e->wrong) {
        d->counts.wrong++;
        ret->page.error = -EBADMSG;
        ret->page.text = reason(-EBADMSG);
        return;
    }
    ret->page.table = table;
    if (e->wrong) {
        memcpy(room, table.at, table.len);
        room[table.len / 2] ^= 1;
        ret->page.table = bytes_of(room, table.len);
    }
    if (!b->gives) {
        set_bit(b->pages, e->number);
        ret->page.have = find_here(d, b, e->number, room + table.len);
    }
}

static int32_t judge(struct sim_depot *d, struct open_bundle *b, const struct errand *e) {
    const struct cargo *c = b->cargo;
    uint64_t tag;
    uint32_t len;
    bool there = world_stamp(d->config.world, d->config.body, e->buffer, e->offset, &tag, &len);
    if (!there || tag != c->tags[e->number] || len != c->lens[e->number] || e->len != len) {
        d->counts.wrong++;
        return -EBADMSG;
    }
    if (d->ills.full_after > 0 && d->counts.stored >= d->ills.full_after)
        return -ENOSPC;
    if (bit(b->pieces, e->number)) {
        d->counts.again++;
    } else {
        d->counts.stored++;
        d->counts.stored_bytes += len;
    }
    take(b, e->number);
    if (b->left == 0)
        d->counts.whole_at = world_now(d->config.world);
    return 0;
}

static int32_t load(struct sim_depot *d, const struct open_bundle *b, const struct errand *e) {
    if (chance(d, d->ills.error_chance))
        return b->gives ? -ESTALE : -EIO;
    uint64_t tag = b->cargo->tags[e->number];
    if (chance(d, d->ills.load_chance))
        tag |= CARGO_SPOILED_BY_GIVER;
    world_set_stamp(d->config.world, d->config.body, e->buffer, e->offset,
                    b->cargo->lens[e->number], tag);
    d->counts.loaded++;
    return 0;
}

static void tell_piece(struct sim_depot *d, struct open_bundle *b, const struct errand *e,
                       struct input *ret) {
    bool loaded = e->kind == EFFECT_PIECE_LOAD;
    int32_t error = loaded ? load(d, b, e) : judge(d, b, e);
    ret->kind = INPUT_PIECE;
    ret->piece = (struct input_piece){.bundle = e->bundle,
                                      .piece = e->number,
                                      .loaded = loaded,
                                      .error = error,
                                      .buffer = e->buffer,
                                      .offset = e->offset,
                                      .len = loaded ? b->cargo->lens[e->number] : e->len};
    if (error == 0)
        return;
    ret->piece.text = reason(error);
    if (error != -EBADMSG)
        note_error(d, b, error);
}

static bool take_due(struct sim_depot *d, struct errand *ret) {
    uint64_t now = world_now(d->config.world);
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < d->errand_count; i++) {
        const struct errand *e = &d->errands[i], *b = &d->errands[best == UINT32_MAX ? i : best];
        if (e->at <= now && (e->at < b->at || (e->at == b->at && e->order <= b->order)))
            best = i;
    }
    if (best == UINT32_MAX)
        return false;
    *ret = d->errands[best];
    d->errands[best] = d->errands[--d->errand_count];
    return true;
}

bool sim_depot_tell(struct sim_depot *d, struct input *ret) {
    struct errand e;
    uint64_t now = world_now(d->config.world);
    if (now < d->hang_until) {
        world_poke(d->config.world, d->config.body, d->hang_until);
        return false;
    }
    if (!take_due(d, &e))
        return false;
    struct open_bundle *b = bundle_of(d, e.bundle);
    if (b == NULL || b->life != e.life)
        return false; /* it was closed */
    *ret = (struct input){.now = now};
    if (e.kind == EFFECT_BUNDLE_OPEN || e.kind == EFFECT_BUNDLE_COMMIT)
        tell_bundle(d, b, &e, ret);
    else if (e.kind == EFFECT_PAGE_KEEP || e.kind == EFFECT_PAGE_FETCH)
        tell_page(d, b, &e, ret);
    else
        tell_piece(d, b, &e, ret);
    return true;
}

/* ---- lives, and what ails it ---- */

struct sim_depot *sim_depot_new(const struct sim_depot_config *c) {
    struct sim_depot *d = calloc(1, sizeof *d);
    ASSERT(d != NULL);
    d->config = *c;
    d->slow = 1;
    random_init(&d->random, c->seed);
    return d;
}

void sim_depot_free(struct sim_depot *d) {
    if (d == NULL)
        return;
    for (uint32_t i = 0; i < d->bundle_cap; i++)
        if (d->bundles[i].cargo != NULL)
            end(d, &d->bundles[i], false);
    free(d->bundles);
    free(d->errands);
    free(d->offers);
    free(d->errors);
    free(d->final);
    free(d->cache);
    free(d->scratch);
    free(d);
}

void sim_depot_offer(struct sim_depot *d, uint64_t offer, const struct cargo *c) {
    d->offers = grown(d->offers, d->offer_count, sizeof *d->offers);
    d->offers[d->offer_count++] = (struct offer){.number = offer, .cargo = c};
}

/* A commit that is under way may have been done. */
static void settle_commits(struct sim_depot *d) {
    for (uint32_t i = 0; i < d->errand_count; i++) {
        const struct errand *e = &d->errands[i];
        struct open_bundle *b = bundle_of(d, e->bundle);
        if (e->kind != EFFECT_BUNDLE_COMMIT || b == NULL || b->life != e->life || b->left > 0)
            continue;
        b->committed = random_chance(&d->random, 1, 2);
        if (b->committed)
            finalise(d, b->cargo);
    }
}

void sim_depot_crash(struct sim_depot *d, bool keep) {
    settle_commits(d);
    for (uint32_t i = 0; i < d->bundle_cap; i++)
        if (d->bundles[i].cargo != NULL)
            end(d, &d->bundles[i], keep);
    d->errand_count = 0;
    d->disk_at = 0;
}

void sim_depot_hang(struct sim_depot *d, uint64_t until) {
    if (d->hang_until < until)
        d->hang_until = until;
}

void sim_depot_slow(struct sim_depot *d, uint32_t factor) {
    d->slow = factor;
}

void sim_depot_ail(struct sim_depot *d, const struct sim_depot_ills *ills) {
    d->ills = *ills;
}

uint32_t sim_depot_open(const struct sim_depot *d) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->bundle_cap; i++)
        count += d->bundles[i].cargo != NULL;
    return count;
}

int32_t sim_depot_error(const struct sim_depot *d, uint64_t transfer) {
    for (uint32_t i = 0; i < d->error_count; i++)
        if (d->errors[i].transfer == transfer)
            return d->errors[i].error;
    return 0;
}

const struct sim_depot_counts *sim_depot_counts(const struct sim_depot *d) {
    return &d->counts;
}
