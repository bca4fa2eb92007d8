/* SPDX-License-Identifier: MIT */
/* The world of a mover: see porter.h.
 *
 * What is to be done with files is queued while a machine's effects are carried out, and done one after the
 * other between its steps: the answer to each is an input of its own. */
#include "os/porter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/alarms.h"
#include "os/buffers.h"
#include "os/carriage.h"
#include "os/gather.h"
#include "os/jobfolders.h"
#include "os/loans.h"
#include "rm/spread.h"
#include "wire/folder.h"

enum { EFFECTS_MAX = 16384, OFFERS_MAX = 64, CLEARS_MAX = 256 };
#define EFFECT_BYTES_MAX (16 * MIB)
#define FRAME_BYTES_MAX  (8 * MIB)

/* What a node offers is kept for so long without a taker. */
#define OFFER_NS (60 * NS_PER_S)

/* Rounds of sending in one turn: what was sent makes room for more. */
enum { ROUNDS_MAX = 16 };

/* A slot whose piece lies in a file as well, from which it can be sent without a copy. By slot, as far as there is room:
 * what is forgotten is sent out of the slot. */
struct twin {
    uint32_t buffer, bundle, piece;
    uint64_t offset;
};

enum { TWINS = 128 };
/* Less is copied as fast. */
enum { TWIN_BYTES_MIN = 16 * KIB };

/* One thing to be done with files. */
struct deed {
    enum effect_kind kind;
    struct effect_bundle bundle;
    struct effect_page page;
    struct effect_piece piece;
    uint8_t *bytes; /* ours: a page, a descriptor */
};

struct opened {
    bool open;
    int error; /* that came up while it was sent, and is to be told; 0: none */
    char why[256];
    struct depot_bundle *in;
    struct survey *out;
};

/* What is under way. */
struct lent {
    struct effect_put put;
    struct original *file; /* that it lies in; NULL: it lies in a buffer */
    uint64_t since;        /* for the diary */
};

struct offer {
    uint64_t number;
    uint64_t run; /* whose folder it is from; 0: from none */
    struct survey *survey;
    uint64_t
        until; /* ours, when nobody has taken any of it for a while; 0: whoever made it keeps it */
};

struct porter {
    struct porter_config config;
    struct links *links;
    struct link_counts counts;
    struct alarms alarms;
    struct buffers buffers;
    struct carriage *carriage;
    struct depot *depot;
    struct mover *mover;
    struct machine machine;
    struct effects effects;
    void *arena;
    size_t arena_bytes;
    struct mover_config limits;
    struct nodeset scratch[2];
    void *scratch_storage;
    struct opened *bundles;
    struct twin twins[TWINS]; /* buffer 0: none */
    struct offer offers[OFFERS_MAX];
    uint32_t offer_count;
    struct deed *deeds; /* ring */
    uint32_t deed_at, deed_count, deed_cap;
    struct input_sent *sent; /* to be told */
    uint32_t sent_count, sent_cap;
    struct loans loans;
    struct diary diary;
    uint64_t asked_at; /* for a link, last; for the diary */
    bool spoilt;       /* some bundle has an error that is to be told */
    struct lent *lent; /* by tag */
    uint32_t *lent_free;
    uint32_t lent_cap, lent_free_count;
    uint64_t count_offer; /* that nodes are asked about */
};

static void feed(struct porter *p, struct input *in);
static void work_off(struct porter *p);

/* ---- puts ---- */

/* A place in the table of what is lent. */
static int64_t lend_place(struct porter *p) {
    if (p->lent_free_count == 0) {
        uint32_t cap = p->lent_cap ? 2 * p->lent_cap : 64;
        struct lent *lent = realloc(p->lent, cap * sizeof *lent);
        if (lent != NULL)
            p->lent = lent;
        uint32_t *free_list = realloc(p->lent_free, cap * sizeof *free_list);
        if (free_list != NULL)
            p->lent_free = free_list;
        if (lent == NULL || free_list == NULL)
            return -ENOMEM;
        for (uint32_t i = cap; i > p->lent_cap; i--) {
            p->lent[i - 1] = (struct lent){0};
            p->lent_free[p->lent_free_count++] = i - 1;
        }
        p->lent_cap = cap;
    }
    return p->lent_free[--p->lent_free_count];
}

static void tell_sent(struct porter *p, const struct effect_put *put) {
    if (p->sent_count == p->sent_cap) {
        uint32_t cap = p->sent_cap ? 2 * p->sent_cap : 64;
        struct input_sent *sent = realloc(p->sent, cap * sizeof *sent);
        ASSERT(sent != NULL);
        p->sent = sent;
        p->sent_cap = cap;
    }
    p->sent[p->sent_count++] = (struct input_sent){
        .link = put->link, .buffer = put->buffer, .offset = put->offset, .note = put->note};
}

static void on_sent(void *context, uint64_t tag) {
    struct porter *p = context;
    struct lent lent = p->lent[tag];
    p->lent[tag].file = NULL;
    p->lent_free[p->lent_free_count++] = (uint32_t)tag;
    buffers_unlend(&p->buffers, lent.put.buffer);
    original_drop(lent.file);
    diary_note(&p->diary, DIARY_SEND, lent.since, diary_now(&p->diary), lent.put.note);
    tell_sent(p, &lent.put);
}

/* Is what lies in the file still what was surveyed? */
static bool holds_good(struct porter *p, const struct place_loan *l) {
    struct opened *o = &p->bundles[l->bundle];
    int r = survey_loan_check(l->survey, &l->loan, o->why);
    if (r < 0) {
        o->error = r;
        p->spoilt = true;
    }
    return r == 0;
}

static struct twin *twin_place(struct porter *p, uint32_t buffer, uint64_t offset) {
    uint64_t mixed = (buffer + 31 * offset) * 0x9e3779b97f4a7c15u;
    return &p->twins[(mixed >> 32) % TWINS];
}

/* A piece is in its slot: stored in a file (or if not `stored` only read from there, perhaps long ago). */
static void note_twin(struct porter *p, const struct effect_piece *e, bool stored) {
    struct twin *t = twin_place(p, e->buffer, e->offset);
    if (stored)
        *t = (struct twin){e->buffer, e->bundle, e->piece, e->offset};
    else if (t->buffer == e->buffer && t->offset == e->offset)
        t->buffer = 0;
}

static void forget_twins(struct porter *p, uint32_t bundle) {
    for (struct twin *t = p->twins; t < p->twins + TWINS; t++)
        if (t->bundle == bundle)
            t->buffer = 0;
}

/* A descriptor for the link, and where in it the bytes are; or -1. */
static int open_twin(struct porter *p, const struct effect_put *put, uint64_t *ret_offset) {
    const struct twin *t = twin_place(p, put->buffer, put->offset);
    if (put->len < TWIN_BYTES_MIN || t->buffer != put->buffer || t->offset != put->offset ||
        p->bundles[t->bundle].in == NULL)
        return -1;
    int fd = depot_where(p->bundles[t->bundle].in, t->piece, ret_offset);
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void put(struct porter *p, const struct effect_put *put) {
    const struct buffer *b = buffers_find(&p->buffers, put->buffer);
    ASSERT(b != NULL && put->offset <= b->bytes && put->len <= b->bytes - put->offset);
    const struct place_loan *l = loans_find(&p->loans, put->buffer, put->offset);
    if (l != NULL && !holds_good(p, l)) {
        tell_sent(p, put); /* nobody waits for it: the bundle fails next */
        return;
    }
    int64_t tag = lend_place(p);
    ASSERT(tag >= 0);
    p->lent[tag] = (struct lent){.put = *put,
                                 .file = l == NULL ? NULL : original_hold(l->loan.file),
                                 .since = diary_now(&p->diary)};
    buffers_lend(&p->buffers, put->buffer);
    if (carriage_put(p->carriage, put, b, (uint64_t)tag))
        return;
    uint64_t offset = 0;
    int fd = l == NULL ? open_twin(p, put, &offset) : -1;
    const uint8_t *at = l == NULL ? b->at + put->offset : l->loan.bytes.at;
    links_lend(p->links, put, bytes_of(at, put->len), (uint64_t)tag, fd, offset);
}

static uint8_t *on_place(void *context, uint32_t link, const struct message_put *m) {
    const struct porter *p = context;
    const struct buffer *b = buffers_find(&p->buffers, m->buffer);
    if (b == NULL || b->link != link || m->offset > b->bytes || m->body.len > b->bytes - m->offset)
        return NULL;
    return b->at + m->offset;
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *m) {
    struct porter *p = context;
    const struct buffer *b = buffers_find(&p->buffers, m->buffer);
    if (b == NULL || b->link != link)
        return REFUSAL_NONE;
    uint8_t *at = on_place(context, link, m);
    if (at == NULL)
        return REFUSAL_BODY;
    if (at != m->body.at && m->body.len > 0)
        memcpy(at, m->body.at, m->body.len);
    uint64_t now = diary_now(&p->diary);
    diary_note(&p->diary, DIARY_CAME, now, now, m->note);
    struct input_put put = {.link = link,
                            .buffer = m->buffer,
                            .offset = m->offset,
                            .len = (uint32_t)m->body.len,
                            .note = m->note};
    carriage_came(p->carriage, &put);
    return REFUSAL_NONE;
}

/* ---- by a fabric ---- */

static void on_carried(void *context, const struct input_put *put) {
    struct input in = {.kind = INPUT_PUT, .put = *put};
    feed(context, &in);
}

static void send_to(void *context, uint32_t link, uint16_t type, const union message *m) {
    const struct porter *p = context;
    uint8_t body[1024];
    long len = message_encode(type, m, room_of(body, sizeof body));
    ASSERT(len >= 0);
    struct effect_send send = {
        .links = &link, .link_count = 1, .type = type, .head = bytes_of(body, (size_t)len)};
    links_send(p->links, &send);
}

static void drop_link(void *context, uint32_t link, enum role peer) {
    struct porter *p = context;
    struct input in = {.kind = INPUT_LINK_DOWN, .link = {.link = link, .role = peer}};
    links_close(p->links, link, REFUSAL_NONE);
    carriage_link_gone(p->carriage, link, true);
    feed(p, &in);
}

/* Cookies of links that are opened to ask for counts; the mover's own are counted from one. */
#define COUNT_COOKIE ((uint64_t)1 << 63)

static void tell_counted(struct porter *p, uint32_t node, const struct message_counted *c) {
    if (p->config.counted != NULL)
        p->config.counted(p->config.context, node, c);
}

void porter_count(struct porter *p, uint32_t node, uint64_t offer) {
    struct effect_open open = {.purpose = PURPOSE_FILES, .node = node, .cookie = COUNT_COOKIE};
    p->count_offer = offer;
    links_open(p->links, &open);
}

void porter_counts(const struct porter *p, uint64_t offer, struct message_counted *ret) {
    carriage_count(p->carriage, offer, ret);
}

int porter_prepare(struct porter *p, struct bytes fabric, char why[256]) {
    return carriage_prepare(p->carriage, fabric, why);
}

/* What movers' worlds say to each other: true if this was such. */
static bool heard_beside(struct porter *p, const struct input_message *in) {
    union message m;
    if (in->type < MESSAGE_WINDOW || in->type > MESSAGE_COUNTED)
        return false;
    if (message_decode(in->type, in->body, NULL, &m) < 0)
        return true;
    if (in->type == MESSAGE_WINDOW) {
        carriage_window(p->carriage, in->link, &m.window);
    } else if (in->type == MESSAGE_PLACED) {
        const struct buffer *b = buffers_find(&p->buffers, m.placed.buffer);
        if (!carriage_placed(p->carriage, in->link, &m.placed, b))
            drop_link(p, in->link, ROLE_GIVER);
    } else if (in->type == MESSAGE_COUNT) {
        uint64_t offer = m.count.offer;
        carriage_count(p->carriage, offer, &m.counted);
        send_to(p, in->link, MESSAGE_COUNTED, &m);
    } else {
        tell_counted(p, in->peer, &m.counted);
        links_close(p->links, in->link, REFUSAL_NONE);
    }
    return true;
}

/* A link of ours that is only there to ask: true if this was about one. */
static bool heard_of_asking(struct porter *p, const struct input *in) {
    if ((in->kind != INPUT_LINK_UP && in->kind != INPUT_LINK_DOWN) ||
        in->link.cookie != COUNT_COOKIE)
        return false;
    union message m = {.count = {.offer = p->count_offer}};
    if (in->kind == INPUT_LINK_UP)
        send_to(p, in->link.link, MESSAGE_COUNT, &m);
    else
        tell_counted(p, in->link.peer, NULL);
    return true;
}

/* What a mover is told, and its world must know too. */
static void overhear(struct porter *p, uint32_t link, uint16_t type, struct bytes body) {
    union message m;
    if ((type != MESSAGE_TRANSFER && type != MESSAGE_JOIN) ||
        message_decode(type, body, p->scratch, &m) < 0)
        return;
    if (type == MESSAGE_TRANSFER)
        carriage_transfer(p->carriage, &m.transfer);
    else
        carriage_joined(p->carriage, link, &m.join);
}

/* ---- effects ---- */

static struct bytes keep_bytes(struct deed *d, struct bytes bytes) {
    d->bytes = malloc(bytes.len ? bytes.len : 1);
    ASSERT(d->bytes != NULL);
    if (bytes.len > 0)
        memcpy(d->bytes, bytes.at, bytes.len);
    return bytes_of(d->bytes, bytes.len);
}

static void queue_deed(struct porter *p, const struct effect *e) {
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

/* To a link, or (no link) to whoever the mover works for. */
static void say(struct porter *p, const struct effect_send *s) {
    union message m;
    if (s->link_count != 1 || s->links[0] != 0) {
        if (s->type == MESSAGE_JOIN && message_decode(s->type, s->head, NULL, &m) == 0)
            carriage_join(p->carriage, s->links[0], &m.join,
                          buffers_find(&p->buffers, m.join.buffer));
        links_send(p->links, s);
        return;
    }
    if (p->config.arrived != NULL && s->type == MESSAGE_ARRIVED &&
        message_decode(s->type, s->head, NULL, &m) == 0)
        p->config.arrived(p->config.context, &m.arrived);
}

static void carry_out(struct porter *p, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_SEND:
        say(p, &e->send);
        break;
    case EFFECT_OPEN:
        p->asked_at = diary_now(&p->diary);
        links_open(p->links, &e->open);
        break;
    case EFFECT_CLOSE:
        links_close(p->links, e->close.link, (enum refusal)e->close.refusal);
        carriage_link_gone(p->carriage, e->close.link, true);
        break;
    case EFFECT_TIMER:
        alarms_set(&p->alarms, e->layer, e->timer.id, e->timer.at);
        break;
    case EFFECT_BUFFER_OPEN: {
        bool shared = carriage_shares(p->carriage);
        const struct buffer *b = shared
                                     ? buffers_share(&p->buffers, e->buffer.buffer, e->buffer.bytes)
                                     : buffers_open(&p->buffers, e->buffer.buffer, e->buffer.bytes);
        ASSERT(b != NULL);
        break;
    }
    case EFFECT_BUFFER_GRANT:
        buffers_find(&p->buffers, e->buffer.buffer)->link = e->buffer.link;
        break;
    case EFFECT_BUFFER_CLOSE:
        carriage_buffer_gone(p->carriage, e->buffer.buffer);
        buffers_close(&p->buffers, e->buffer.buffer);
        break;
    case EFFECT_PUT:
        put(p, &e->put);
        break;
    case EFFECT_BUNDLE_OPEN:
    case EFFECT_BUNDLE_COMMIT:
    case EFFECT_BUNDLE_CLOSE:
    case EFFECT_PAGE_KEEP:
    case EFFECT_PAGE_FETCH:
    case EFFECT_PIECE_STORE:
    case EFFECT_PIECE_LOAD:
        queue_deed(p, e);
        break;
    default:
        break;
    }
}

static void feed(struct porter *p, struct input *in) {
    in->now = p->config.loop->now;
    effects_clear(&p->effects);
    p->machine.step(p->machine.self, in, &p->effects);
    for (uint32_t i = 0; i < p->effects.count; i++)
        carry_out(p, &p->effects.list[i]);
}

/* ---- offers ---- */

static uint64_t draw(void) {
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = 0;
    return number;
}

static struct bytes describe(const struct survey *s, uint8_t **ret_memory) {
    struct bundle b = *survey_bundle(s);
    b.goal = GOAL_SPOOL; /* where it goes is the takers' affair */
    size_t cap = bundle_room(&b);
    *ret_memory = malloc(cap);
    ASSERT(*ret_memory != NULL);
    long len = bundle_encode(&b, room_of(*ret_memory, cap));
    ASSERT(len > 0);
    return bytes_of(*ret_memory, (size_t)len);
}

/* The mover is told as the node's manager would tell it; everybody who knows the number may come. */
uint64_t porter_offer(struct porter *p, struct survey *s) {
    uint64_t storage = 0, number = draw();
    uint8_t *memory;
    struct nodeset none;
    struct mover_view v;
    if (p->offer_count == OFFERS_MAX)
        return 0;
    p->offers[p->offer_count++] = (struct offer){.number = number, .survey = s};
    nodeset_init(&none, 1, &storage);
    union message m = {.transfer = {.transfer = number,
                                    .offer = number,
                                    .source = p->config.self,
                                    .shape = SPREAD_PAIR, /* whoever comes, in either tree */
                                    .slots = 2,
                                    .set = &none,
                                    .descriptor = describe(s, &memory)}};
    porter_order(p, MESSAGE_TRANSFER, &m);
    free(memory);
    if (mover_look(p->mover, number, &v))
        return number;
    p->offer_count--;
    return 0;
}

static void withdraw(struct porter *p, uint32_t place) {
    uint8_t number[8];
    struct survey *s = p->offers[place].survey;
    store_le64(number, p->offers[place].number);
    union message m = {.enough = {.transfers = bytes_of(number, sizeof number)}};
    porter_order(p, MESSAGE_ENOUGH, &m);
    work_off(p);
    survey_free(s);
    p->offers[place] = p->offers[--p->offer_count];
}

static void withdraw_of(struct porter *p, uint64_t run) {
    for (uint32_t i = 0; i < p->offer_count;)
        if (p->offers[i].run == run && run != 0)
            withdraw(p, i);
        else
            i++;
}

static void expire_offers(struct porter *p) {
    uint64_t now = p->config.loop->now;
    for (uint32_t i = 0; i < p->offer_count;) {
        struct offer *o = &p->offers[i];
        struct mover_view v;
        if (o->until != 0 && mover_look(p->mover, o->number, &v) && v.takers > 0)
            o->until = now + OFFER_NS;
        if (o->until != 0 && o->until <= now) {
            withdraw(p, i);
            continue;
        }
        if (o->until != 0)
            loop_wake_at(p->config.loop, o->until);
        i++;
    }
}

bool porter_giving(const struct porter *p) {
    struct mover_view v;
    for (uint32_t i = 0; i < p->offer_count; i++)
        if (mover_look(p->mover, p->offers[i].number, &v) && v.takers > 0)
            return true;
    return false;
}

static void answer(struct porter *p, uint32_t link, struct message_offered *o) {
    size_t cap = 1024 + o->descriptor.len;
    uint8_t *body = malloc(cap);
    ASSERT(body != NULL);
    long len = message_encode(MESSAGE_OFFERED, &(union message){.offered = *o}, room_of(body, cap));
    ASSERT(len > 0);
    struct effect_send send = {.links = &link,
                               .link_count = 1,
                               .type = MESSAGE_OFFERED,
                               .head = bytes_of(body, (size_t)len)};
    links_send(p->links, &send);
    free(body);
}

/* Offers whose takers have come and gone are kept only as long as there is room. */
static void make_room(struct porter *p) {
    struct mover_view v;
    for (uint32_t i = 0; i < p->offer_count && p->offer_count == OFFERS_MAX; i++)
        if (p->offers[i].until != 0 && mover_look(p->mover, p->offers[i].number, &v) &&
            v.met_at != 0 && v.takers == 0)
            withdraw(p, i);
}

/* Files of this node are wanted: looked over now, and on offer for a while. */
static void present(struct porter *p, const struct input_message *in) {
    union message m;
    char why[256] = "";
    struct survey *s = NULL;
    uint8_t *memory = NULL;
    if (message_decode(MESSAGE_OFFER, in->body, p->scratch, &m) < 0)
        return;
    struct message_offered o = {.request = {m.offer.request[0], m.offer.request[1]},
                                .node = p->config.self};
    make_room(p);
    o.error = gather_survey(&m.offer, p->config.depot->root, &s, why);
    if (o.error == 0 && (o.offer = porter_offer(p, s)) == 0) {
        snprintf(why, sizeof why, "too many copies are under way there");
        o.error = -EBUSY;
        survey_free(s);
    }
    if (o.error == 0) {
        p->offers[p->offer_count - 1].until = p->config.loop->now + OFFER_NS;
        p->offers[p->offer_count - 1].run = run_folder_of(m.offer.path);
        o.descriptor = describe(s, &memory);
    }
    o.text = bytes_from_str(why);
    answer(p, in->link, &o);
    free(memory);
}

/* Folders of runs are to go: what was to be written there is done or dropped before. Those that are gone are told. */
static void clear(struct porter *p, const struct input_message *in) {
    union message m;
    uint8_t runs[8 * CLEARS_MAX], body[8 * CLEARS_MAX + 16];
    size_t len = 0;
    if (message_decode(MESSAGE_CLEAR, in->body, p->scratch, &m) < 0)
        return;
    work_off(p);
    for (size_t at = 0; at < m.clear.runs.len && len < sizeof runs; at += 8) {
        withdraw_of(p, load_le64(m.clear.runs.at + at));
        if (!jobfolders_remove(p->config.depot->root, load_le64(m.clear.runs.at + at)))
            continue;
        memcpy(runs + len, m.clear.runs.at + at, 8);
        len += 8;
    }
    union message gone = {.clear = {.runs = bytes_of(runs, len)}};
    long n = message_encode(MESSAGE_CLEAR, &gone, room_of(body, sizeof body));
    ASSERT(n > 0);
    struct effect_send send = {.links = &in->link,
                               .link_count = 1,
                               .type = MESSAGE_CLEAR,
                               .head = bytes_of(body, (size_t)n)};
    links_send(p->links, &send);
}

static void on_link(void *context, enum purpose purpose, const struct input *in) {
    struct porter *p = context;
    struct input copy = *in;
    if (in->kind == INPUT_MESSAGE && in->message.type == MESSAGE_CLEAR) {
        clear(p, &in->message);
        return;
    }
    if (in->kind == INPUT_MESSAGE && in->message.type == MESSAGE_OFFER) {
        present(p, &in->message);
        return;
    }
    if (in->kind == INPUT_LINK_UP && in->link.cookie != 0)
        diary_note(&p->diary, DIARY_LINK, p->asked_at, diary_now(&p->diary), in->link.peer);
    if (heard_of_asking(p, in) || (in->kind == INPUT_MESSAGE && heard_beside(p, &in->message)))
        return;
    if (in->kind == INPUT_MESSAGE)
        overhear(p, in->message.link, in->message.type, in->message.body);
    else if (in->kind == INPUT_LINK_DOWN && in->link.link != 0)
        carriage_link_gone(p->carriage, in->link.link, false);
    feed(p, &copy);
    if (purpose == PURPOSE_MOVER && p->config.host != NULL)
        p->config.host(p->config.context, in->kind != INPUT_LINK_DOWN);
}

/* ---- files ---- */

static struct survey *find_offer(const struct porter *p, uint64_t number) {
    for (uint32_t i = 0; i < p->offer_count; i++)
        if (p->offers[i].number == number)
            return p->offers[i].survey;
    return NULL;
}

static int open_bundle(struct porter *p, const struct effect_bundle *e, char why[256]) {
    struct opened *o = &p->bundles[e->bundle];
    int r = 0;
    *o = (struct opened){0};
    if (e->gives) {
        o->out = find_offer(p, e->transfer);
        r = o->out == NULL ? -ENOENT : 0;
        if (r < 0)
            snprintf(why, 256, "nothing of that number is on offer");
    } else if (p->depot == NULL) {
        snprintf(why, 256, "nothing can be kept here");
        r = -EROFS;
    } else {
        r = depot_open(p->depot, e->descriptor, &o->in, why);
    }
    o->open = r == 0;
    return r;
}

static void do_bundle(struct porter *p, const struct deed *d) {
    char why[256] = "";
    struct opened *o = &p->bundles[d->bundle.bundle];
    if (d->kind == EFFECT_BUNDLE_CLOSE) {
        if (o->in != NULL)
            depot_close(o->in, d->bundle.keep);
        forget_twins(p, d->bundle.bundle);
        loans_drop_bundle(&p->loans, d->bundle.bundle);
        *o = (struct opened){0};
        return;
    }
    bool opens = d->kind == EFFECT_BUNDLE_OPEN;
    uint64_t began = diary_now(&p->diary);
    int r = opens ? open_bundle(p, &d->bundle, why) : depot_commit(o->in, why);
    diary_note(&p->diary, opens ? DIARY_OPEN : DIARY_COMMIT, began, diary_now(&p->diary),
               d->bundle.bundle);
    if (!opens)
        diary_flush(&p->diary); /* before anybody hears of it */
    struct input in = {.kind = INPUT_BUNDLE};
    in.bundle = (struct input_bundle){
        .bundle = d->bundle.bundle, .committed = !opens, .error = r, .text = bytes_from_str(why)};
    feed(p, &in);
}

/* The page of a survey's table. */
static struct bytes table_page(const struct survey *s, uint32_t page) {
    const struct bundle *b = survey_bundle(s);
    struct bytes table = survey_table(s);
    size_t row = bundle_row_bytes((enum digest_kind)b->digest);
    size_t from = (size_t)page * b->page_pieces * row;
    return bytes_of(table.at + from, bundle_page_pieces(b, page) * row);
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
        diary_note(&p->diary, DIARY_PAGE, began, diary_now(&p->diary), d->page.page);
        in.page.table = d->page.table;
    } else {
        in.page.table =
            o->out != NULL ? table_page(o->out, d->page.page) : depot_table(o->in, d->page.page);
    }
    in.page.text = bytes_from_str(why);
    feed(p, &in);
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
    loans_drop(&p->loans, e->buffer, e->offset);
    r = carriage_shares(p->carriage) ? 0 : survey_lend(s, offset, len, &l.loan, why);
    if (r > 0)
        loans_add(&p->loans, &l);
    else if (r == 0)
        r = survey_read(s, offset, room_of(out.at, len), why);
    return r < 0 ? r : (int)len;
}

static void do_piece(struct porter *p, const struct deed *d) {
    char why[256] = "";
    const struct effect_piece *e = &d->piece;
    const struct opened *o = &p->bundles[e->bundle];
    const struct buffer *b = buffers_find(&p->buffers, e->buffer);
    if (!o->open || b == NULL)
        return;
    ASSERT(e->offset <= b->bytes && e->len <= b->bytes - e->offset);
    bool loads = d->kind == EFFECT_PIECE_LOAD;
    struct room room = room_of(b->at + e->offset, e->len);
    uint64_t began = diary_now(&p->diary);
    long r;
    if (loads)
        r = o->out != NULL ? load_offered(p, o->out, e, room, why)
                           : depot_load(o->in, e->piece, room, why);
    else
        r = depot_store(o->in, e->piece, room_bytes(room), why);
    note_twin(p, e, !loads && r == 0);
    diary_note(&p->diary, loads ? DIARY_LOAD : DIARY_STORE, began, diary_now(&p->diary), e->piece);
    struct input in = {.kind = INPUT_PIECE};
    in.piece = (struct input_piece){.bundle = e->bundle,
                                    .piece = e->piece,
                                    .loaded = loads,
                                    .error = r < 0 ? (int32_t)r : 0,
                                    .buffer = e->buffer,
                                    .offset = e->offset,
                                    .len = r > 0 ? (uint32_t)r : 0,
                                    .text = bytes_from_str(why)};
    feed(p, &in);
}

/* A file was changed while it was sent from where it lies. */
static void tell_spoilt(struct porter *p) {
    p->spoilt = false;
    for (uint32_t i = 0; i < p->limits.hauls; i++) {
        struct opened *o = &p->bundles[i];
        if (o->error == 0)
            continue;
        struct input in = {.kind = INPUT_BUNDLE};
        in.bundle =
            (struct input_bundle){.bundle = i, .error = o->error, .text = bytes_from_str(o->why)};
        o->error = 0;
        feed(p, &in);
    }
}

static void work_off(struct porter *p) {
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

/* ---- turns ---- */

static void ring_alarms(struct porter *p) {
    struct alarm due;
    for (int i = 0; i < ALARMS_MAX && alarms_due(&p->alarms, p->config.loop->now, &due); i++) {
        struct input in = {.kind = INPUT_TIMER};
        in.timer.id = due.id;
        feed(p, &in);
    }
    work_off(p);
}

static void tell_all_sent(struct porter *p) {
    for (uint32_t i = 0; i < p->sent_count; i++) { /* more may be told meanwhile */
        struct input in = {.kind = INPUT_SENT, .sent = p->sent[i]};
        feed(p, &in);
    }
    p->sent_count = 0;
    work_off(p);
}

void porter_settle(struct porter *p) {
    work_off(p);
    ring_alarms(p);
    expire_offers(p);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        links_settle(p->links);
        work_off(p);
        if (p->sent_count == 0)
            break;
        tell_all_sent(p);
    }
    if (p->sent_count > 0)
        loop_wake_at(p->config.loop, p->config.loop->now);
    carriage_settle(p->carriage);
    work_off(p);
    links_settle(p->links);
    uint64_t next = alarms_next(&p->alarms);
    if (next != 0)
        loop_wake_at(p->config.loop, next);
}

void porter_order(struct porter *p, uint16_t type, const union message *m) {
    size_t cap = FRAME_BYTES_MAX;
    uint8_t *body = malloc(cap);
    ASSERT(body != NULL);
    long len = message_encode(type, m, room_of(body, cap));
    ASSERT(len >= 0);
    struct input in = {.kind = INPUT_MESSAGE};
    in.message = (struct input_message){.type = type, .body = bytes_of(body, (size_t)len)};
    overhear(p, 0, type, in.message.body);
    feed(p, &in);
    free(body);
}

struct diary *porter_diary(struct porter *p) {
    return &p->diary;
}

const struct mover *porter_mover(const struct porter *p) {
    return p->mover;
}

/* ---- beginning and end ---- */

static int reserve(struct porter *p) {
    size_t machine = align_up(mover_bytes(&p->limits), 4096);
    size_t list = EFFECTS_MAX * sizeof(struct effect);
    p->arena_bytes = machine + list + EFFECT_BYTES_MAX;
    uint8_t *at = mmap(NULL, p->arena_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return -ENOMEM;
    p->arena = at;
    struct arena arena;
    arena_init(&arena, at, machine);
    p->mover = mover_new(&p->limits, &arena);
    p->machine = mover_machine(p->mover);
    effects_init(&p->effects, (struct effect *)(void *)(at + machine), EFFECTS_MAX,
                 at + machine + list, EFFECT_BYTES_MAX);
    p->bundles = calloc(p->limits.hauls, sizeof *p->bundles);
    size_t set = nodeset_bytes(p->config.universe);
    p->scratch_storage = malloc(2 * set);
    if (p->bundles == NULL || p->scratch_storage == NULL)
        return -ENOMEM;
    nodeset_init(&p->scratch[0], p->config.universe, p->scratch_storage);
    nodeset_init(&p->scratch[1], p->config.universe, (uint8_t *)p->scratch_storage + set);
    return 0;
}

static int open_links(struct porter *p) {
    const struct porter_config *c = &p->config;
    struct links_config links = {.loop = c->loop,
                                 .self = c->self,
                                 .life = c->life,
                                 .key = {c->key[0], c->key[1]},
                                 .book = c->book,
                                 .nodes = c->book == NULL ? 0 : c->universe,
                                 .accepts = 1U << PURPOSE_FILES | 1U << PURPOSE_MOVER,
                                 .listener = c->listener,
                                 .frame_bytes_max = FRAME_BYTES_MAX,
                                 .counts = &p->counts,
                                 .feed = on_link,
                                 .put = on_put,
                                 .place = on_place,
                                 .sent = on_sent,
                                 .context = p};
    struct carriage_config carriage = {.loop = c->loop,
                                       .source = c->source,
                                       .send = send_to,
                                       .put = on_carried,
                                       .sent = on_sent,
                                       .drop = drop_link,
                                       .context = p};
    p->carriage = carriage_new(&carriage);
    if (p->carriage == NULL)
        return -ENOMEM;
    conns_keep_memory();
    p->links = links_new(&links);
    return p->links == NULL ? -ENOMEM : 0;
}

struct porter *porter_new(const struct porter_config *c, int *ret_error, char why[256]) {
    struct porter *p = calloc(1, sizeof *p);
    int r = p == NULL ? -ENOMEM : 0;
    if (r == 0) {
        p->config = *c;
        p->limits = mover_usual(c->universe, c->self);
        p->buffers.thrifty = true;
        r = reserve(p);
    }
    if (r == 0)
        r = open_links(p);
    snprintf(why, 256, "%s", r < 0 ? strerror(-r) : "");
    if (r == 0 && c->depot != NULL)
        r = depot_new(c->depot, &p->depot, why);
    if (r == 0 && c->diary != NULL)
        diary_open(&p->diary, c->diary);
    if (r < 0) {
        porter_free(p);
        *ret_error = r;
        return NULL;
    }
    return p;
}

void porter_free(struct porter *p) {
    if (p == NULL)
        return;
    for (uint32_t i = 0; p->bundles != NULL && i < p->limits.hauls; i++)
        if (p->bundles[i].in != NULL)
            depot_close(p->bundles[i].in, true);
    links_free(p->links);
    carriage_free(p->carriage);
    diary_close(&p->diary);
    depot_free(p->depot);
    loans_fini(&p->loans);
    buffers_fini(&p->buffers);
    while (p->deed_count > 0) {
        free(p->deeds[p->deed_at].bytes);
        p->deed_at = (p->deed_at + 1) % p->deed_cap;
        p->deed_count--;
    }
    free(p->deeds);
    free(p->sent);
    for (uint32_t i = 0; i < p->lent_cap; i++)
        original_drop(p->lent[i].file);
    free(p->lent);
    free(p->lent_free);
    free(p->bundles);
    free(p->scratch_storage);
    for (uint32_t i = 0; i < p->offer_count; i++)
        if (p->offers[i].until != 0)
            survey_free(p->offers[i].survey);
    if (p->arena != NULL)
        munmap(p->arena, p->arena_bytes);
    free(p);
}
