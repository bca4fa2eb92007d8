/* SPDX-License-Identifier: MIT */
/* Which way pieces go: see carriage.h.
 *
 * A *track* is what we know of a link of files. One that gave by a fabric outlives its link while puts are under way, as the
 * fabric still reads their bytes; one that does not get rid of them in time is what carrier_strike is for. */
#include "os/carriage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/idtable.h"
#include "base/list.h"
#include "base/units.h"
#include "os/carriers.h"

enum { TALLIES = 64, TRANSFERS = 64, NOTES = 256 };

/* For puts to somebody whose link is gone. */
#define GRACE_NS NS_PER_S

/* A put that was announced, or has come by the stream. */
struct coming {
    bool here;
    bool by_stream;
    uint8_t number; /* of its note */
    struct input_put put;
};

struct track {
    struct list at;
    uint32_t link; /* 0: it is gone */
    uint64_t transfer, offer;
    struct carrier *carrier; /* NULL: streams */
    bool broken;             /* the link is to be ended */
    uint64_t until;          /* the link is gone: when we stop waiting */
    /* Taking: a window. */
    struct coming *queue; /* SLOTS_MAX; NULL: we do not take by a fabric */
    uint32_t queue_at, queue_count;
    uint32_t region, serial;
    uint8_t placed;    /* counts what was announced */
    bool notes[NOTES]; /* that came before what they are about was announced */
    bool worked;
    /* Giving. */
    bool gives;
    struct carrier *awaited; /* when it works we can give by it; NULL: none */
    uint8_t address[FABRIC_ADDRESS_BYTES_MAX];
    uint32_t address_len;
    uint32_t peer, note, buffer;
    struct fabric_far far;
    uint8_t puts; /* counts them */
    uint32_t under_way;
};

/* A buffer that is sent from, as a fabric knows it. */
struct outlet {
    struct list at;
    uint32_t buffer;
    struct carrier *carrier;
    uint32_t region;
    uint32_t lent;
    bool closed;
};

/* A put under way, by its tag. */
struct flight {
    struct track *track; /* NULL: none */
    struct outlet *outlet;
    uint32_t len;
};

struct told {
    uint64_t transfer, offer;
    uint8_t fabric[FABRIC_NAME_MAX];
    uint32_t fabric_len;
};

struct tally {
    uint64_t offer;
    uint64_t put_fabric, put_stream, came_fabric, came_stream;
    char why[FABRIC_WHY_BYTES];
};

struct carriage {
    struct carriage_config config;
    struct carriers carriers;
    struct list tracks, outlets;
    struct track **by_link; /* by the index of their number */
    uint32_t by_link_cap;
    struct flight *flights;
    uint64_t flight_cap;
    uint32_t serial;
    struct told transfers[TRANSFERS];
    uint32_t transfer_next;
    struct tally tallies[TALLIES];
    uint32_t tally_next;
};

static void on_ready(void *context, struct carrier *carrier);
static void on_sent(void *context, uint64_t tag, int error, const char *why);
static void on_note(void *context, uint32_t note);

struct carriage *carriage_new(const struct carriage_config *config) {
    struct carriage *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->config = *config;
    c->carriers = (struct carriers){
        .loop = config->loop, .ready = on_ready, .sent = on_sent, .note = on_note, .context = c};
    if (config->source != NULL)
        snprintf(c->carriers.source, sizeof c->carriers.source, "%s", config->source);
    if (getrandom(&c->serial, sizeof c->serial, 0) < 0)
        c->serial = 0;
    list_init(&c->tracks);
    list_init(&c->outlets);
    return c;
}

void carriage_free(struct carriage *c) {
    if (c == NULL)
        return;
    carriers_fini(&c->carriers);
    for (struct list *l; (l = list_pop_front(&c->tracks)) != NULL;) {
        struct track *t = CONTAINER_OF(l, struct track, at);
        free(t->queue);
        free(t);
    }
    for (struct list *l; (l = list_pop_front(&c->outlets)) != NULL;)
        free(CONTAINER_OF(l, struct outlet, at));
    free(c->by_link);
    free(c->flights);
    free(c);
}

/* ---- what was asked for, and what became of it ---- */

static const struct told *find_transfer(const struct carriage *c, uint64_t transfer) {
    for (const struct told *t = c->transfers; t < c->transfers + TRANSFERS; t++)
        if (t->transfer == transfer && transfer != 0)
            return t;
    return NULL;
}

static struct tally *find_tally(struct carriage *c, uint64_t offer) {
    for (struct tally *t = c->tallies; t < c->tallies + TALLIES; t++)
        if (t->offer == offer)
            return t;
    struct tally *t = &c->tallies[c->tally_next++ % TALLIES];
    *t = (struct tally){.offer = offer};
    return t;
}

/* A giver hears of takers before it hears of the transfer, but gives nothing before. */
static struct tally *tally_of(struct carriage *c, struct track *t) {
    const struct told *told = t->offer == 0 ? find_transfer(c, t->transfer) : NULL;
    if (told != NULL)
        t->offer = told->offer;
    return find_tally(c, t->offer);
}

static void say_why(struct carriage *c, uint64_t offer, const char *why) {
    struct tally *t = find_tally(c, offer);
    if (t->why[0] == '\0')
        snprintf(t->why, sizeof t->why, "%s", why);
}

void carriage_count(const struct carriage *c, uint64_t offer, struct message_counted *ret) {
    *ret = (struct message_counted){.offer = offer};
    for (const struct tally *t = c->tallies; t < c->tallies + TALLIES; t++)
        if (t->offer == offer)
            *ret = (struct message_counted){.offer = offer,
                                            .put_fabric = t->put_fabric,
                                            .put_stream = t->put_stream,
                                            .came_fabric = t->came_fabric,
                                            .came_stream = t->came_stream,
                                            .text = bytes_from_str(t->why)};
}

int carriage_prepare(struct carriage *c, struct bytes fabric, char why[256]) {
    struct carrier *carrier = carriers_get(&c->carriers, fabric);
    carrier_wait(carrier);
    if (carrier_works(carrier))
        return 0;
    snprintf(why, 256, "%s", carrier == NULL ? "no such fabric" : carrier->why);
    return -ENODEV;
}

bool carriage_shares(const struct carriage *c) {
    return carriers_any(&c->carriers);
}

void carriage_transfer(struct carriage *c, const struct message_transfer *t) {
    struct told *told = &c->transfers[c->transfer_next++ % TRANSFERS];
    *told = (struct told){
        .transfer = t->transfer, .offer = t->offer, .fabric_len = (uint32_t)t->fabric.len};
    if (t->fabric.len == 0)
        return;
    memcpy(told->fabric, t->fabric.at, t->fabric.len);
    carriers_get(&c->carriers, t->fabric);
}

bool carriage_opening(const struct carriage *c, uint64_t transfer) {
    const struct told *told = find_transfer(c, transfer);
    if (told == NULL || told->fabric_len == 0)
        return false;
    struct bytes name = bytes_of(told->fabric, told->fabric_len);
    return carrier_opening(carriers_find(&c->carriers, name));
}

/* ---- tracks ---- */

static struct track *find_track(const struct carriage *c, uint32_t link) {
    uint32_t index = idtable_index_of(link);
    struct track *t = index < c->by_link_cap ? c->by_link[index] : NULL;
    return t != NULL && t->link == link ? t : NULL;
}

static void grow_by_link(struct carriage *c, uint32_t index) {
    uint32_t cap = c->by_link_cap ? c->by_link_cap : 64;
    while (cap <= index)
        cap *= 2;
    if (cap == c->by_link_cap)
        return;
    struct track **table = realloc(c->by_link, cap * sizeof(struct track *));
    ASSERT(table != NULL);
    memset(table + c->by_link_cap, 0, (cap - c->by_link_cap) * sizeof(struct track *));
    c->by_link = table;
    c->by_link_cap = cap;
}

static struct track *make_track(struct carriage *c, uint32_t link) {
    struct track *t = find_track(c, link);
    if (t != NULL)
        return t;
    t = calloc(1, sizeof *t);
    ASSERT(t != NULL);
    t->link = link;
    list_push_back(&c->tracks, &t->at);
    grow_by_link(c, idtable_index_of(link));
    c->by_link[idtable_index_of(link)] = t;
    return t;
}

static void track_free(struct track *t) {
    if (t->gives && carrier_works(t->carrier))
        ferry_peer_free(t->carrier->ferry, t->peer);
    list_remove(&t->at);
    free(t->queue);
    free(t);
}

/* ---- taking ---- */

static void shut_window(struct track *t) {
    if (t->queue == NULL)
        return;
    if (carrier_works(t->carrier))
        ferry_region_free(t->carrier->ferry, t->region);
    carrier_expect(t->carrier, false);
}

void carriage_join(struct carriage *c, uint32_t link, const struct message_join *j,
                   const struct buffer *b) {
    const struct told *told = find_transfer(c, j->transfer);
    struct track *t = make_track(c, link);
    uint8_t grant[FABRIC_GRANT_BYTES];
    t->transfer = j->transfer;
    if (told == NULL || told->fabric_len == 0 || b == NULL)
        return;
    struct bytes name = bytes_of(told->fabric, told->fabric_len);
    struct carrier *carrier = carriers_get(&c->carriers, name);
    if (!carrier_works(carrier) || b->memory < 0) {
        say_why(c, told->offer, carrier == NULL ? "too many fabrics at once" : carrier->why);
        return;
    }
    int region = ferry_region(carrier->ferry, b->memory, b->bytes, grant);
    t->queue = region < 0 ? NULL : calloc(SLOTS_MAX, sizeof *t->queue);
    if (t->queue == NULL) {
        say_why(c, told->offer, "its memory cannot be registered");
        return;
    }
    t->carrier = carrier;
    t->region = (uint32_t)region;
    t->serial = ++c->serial & 0xffffff;
    carrier_expect(carrier, true);
    union message m = {.window = {.buffer = j->buffer,
                                  .note = t->serial << 8,
                                  .fabric = name,
                                  .address = ferry_address(carrier->ferry),
                                  .grant = bytes_of(grant, sizeof grant)}};
    c->config.send(c->config.context, link, MESSAGE_WINDOW, &m);
}

static struct coming *queue_entry(struct track *t, uint32_t i) {
    return &t->queue[(t->queue_at + i) % SLOTS_MAX];
}

static void tell(struct carriage *c, struct track *t, const struct input_put *put, bool by_stream) {
    struct tally *tally = tally_of(c, t);
    if (by_stream)
        tally->came_stream += put->len;
    else
        tally->came_fabric += put->len;
    t->worked = t->worked || !by_stream;
    c->config.put(c->config.context, put);
}

/* Tells of what is here. The link may end by it. */
static void pump(struct carriage *c, uint32_t link) {
    struct track *t;
    while ((t = find_track(c, link)) != NULL && t->queue_count > 0 && queue_entry(t, 0)->here) {
        struct coming first = *queue_entry(t, 0);
        t->queue_at = (t->queue_at + 1) % SLOTS_MAX;
        t->queue_count--;
        tell(c, t, &first.put, first.by_stream);
    }
}

bool carriage_placed(struct carriage *c, uint32_t link, const struct message_placed *p,
                     const struct buffer *b) {
    struct track *t = find_track(c, link);
    if (t == NULL || t->queue == NULL || t->queue_count == SLOTS_MAX || b == NULL ||
        b->link != link || p->offset > b->bytes || p->len > b->bytes - p->offset)
        return false;
    uint8_t number = t->placed++;
    *queue_entry(t, t->queue_count++) = (struct coming){.here = t->notes[number],
                                                        .number = number,
                                                        .put = {.link = link,
                                                                .buffer = p->buffer,
                                                                .offset = p->offset,
                                                                .len = p->len,
                                                                .note = p->note}};
    t->notes[number] = false;
    pump(c, link);
    return true;
}

static void on_note(void *context, uint32_t note) {
    struct carriage *c = context;
    struct track *t = NULL;
    LIST_EACH (l, &c->tracks) {
        struct track *other = CONTAINER_OF(l, struct track, at);
        if (other->queue != NULL && other->link != 0 && other->serial == note >> 8)
            t = other;
    }
    if (t == NULL)
        return; /* of a window that was shut */
    for (uint32_t i = 0; i < t->queue_count; i++) {
        struct coming *e = queue_entry(t, i);
        if (e->here || e->number != (uint8_t)note)
            continue;
        e->here = true;
        pump(c, t->link);
        return;
    }
    t->notes[(uint8_t)note] = true;
}

void carriage_came(struct carriage *c, const struct input_put *put) {
    struct track *t = make_track(c, put->link);
    if (t->queue_count == 0) {
        tell(c, t, put, true);
    } else if (t->queue_count < SLOTS_MAX) {
        *queue_entry(t, t->queue_count++) =
            (struct coming){.here = true, .by_stream = true, .put = *put};
    } else {
        t->broken = true;
    }
}

/* ---- giving ---- */

void carriage_joined(struct carriage *c, uint32_t link, const struct message_join *j) {
    struct track *t = make_track(c, link);
    t->transfer = j->transfer;
    t->offer = j->offer;
}

/* Into its window, by what it awaited; if that is not to be, by the stream. */
static void begin_to_give(struct track *t) {
    struct carrier *carrier = t->awaited;
    int peer = ferry_peer(carrier->ferry, bytes_of(t->address, t->address_len));
    t->awaited = NULL;
    if (peer < 0)
        return;
    t->carrier = carrier;
    t->gives = true;
    t->peer = (uint32_t)peer;
}

void carriage_window(struct carriage *c, uint32_t link, const struct message_window *w) {
    struct track *t = make_track(c, link);
    if (t->gives || t->queue != NULL || fabric_far(w->grant, &t->far) < 0)
        return;
    if (w->address.len > sizeof t->address)
        return;
    t->awaited = carriers_get(&c->carriers, w->fabric);
    t->note = w->note;
    t->buffer = w->buffer;
    t->address_len = (uint32_t)w->address.len;
    memcpy(t->address, w->address.at, w->address.len);
    if (carrier_works(t->awaited))
        begin_to_give(t);
}

static void on_ready(void *context, struct carrier *carrier) {
    struct carriage *c = context;
    LIST_EACH (l, &c->tracks) {
        struct track *t = CONTAINER_OF(l, struct track, at);
        if (t->awaited == carrier)
            begin_to_give(t);
    }
}

static struct outlet *find_outlet(const struct carriage *c, const struct carrier *carrier,
                                  uint32_t buffer) {
    LIST_EACH (l, &c->outlets) {
        struct outlet *o = CONTAINER_OF(l, struct outlet, at);
        if (o->carrier == carrier && o->buffer == buffer && !o->closed)
            return o;
    }
    return NULL;
}

static struct outlet *make_outlet(struct carriage *c, struct carrier *carrier,
                                  const struct buffer *b) {
    struct outlet *o = find_outlet(c, carrier, b->number);
    if (o != NULL)
        return o;
    int region = b->memory < 0 ? -EINVAL : ferry_region(carrier->ferry, b->memory, b->bytes, NULL);
    if (region < 0)
        return NULL;
    o = calloc(1, sizeof *o);
    ASSERT(o != NULL);
    *o = (struct outlet){.buffer = b->number, .carrier = carrier, .region = (uint32_t)region};
    list_push_back(&c->outlets, &o->at);
    return o;
}

static void outlet_settle(struct outlet *o) {
    if (!o->closed || o->lent > 0)
        return;
    if (carrier_works(o->carrier))
        ferry_region_free(o->carrier->ferry, o->region);
    list_remove(&o->at);
    free(o);
}

void carriage_buffer_gone(struct carriage *c, uint32_t buffer) {
    LIST_EACH_SAFE (l, &c->outlets) {
        struct outlet *o = CONTAINER_OF(l, struct outlet, at);
        if (o->buffer != buffer)
            continue;
        o->closed = true;
        outlet_settle(o);
    }
}

static struct flight *flight_of(struct carriage *c, uint64_t tag) {
    if (tag >= c->flight_cap) {
        uint64_t cap = c->flight_cap ? c->flight_cap : 64;
        while (cap <= tag)
            cap *= 2;
        struct flight *flights = realloc(c->flights, cap * sizeof *flights);
        ASSERT(flights != NULL);
        memset(flights + c->flight_cap, 0, (cap - c->flight_cap) * sizeof *flights);
        c->flights = flights;
        c->flight_cap = cap;
    }
    return &c->flights[tag];
}

bool carriage_put(struct carriage *c, const struct effect_put *put, const struct buffer *b,
                  uint64_t tag) {
    struct track *t = make_track(c, put->link);
    bool can = t->gives && !t->broken && carrier_works(t->carrier) && put->len > 0 &&
               put->peer_buffer == t->buffer && put->len <= t->far.bytes &&
               put->peer_offset <= t->far.bytes - put->len;
    struct outlet *o = can ? make_outlet(c, t->carrier, b) : NULL;
    if (o == NULL) {
        tally_of(c, t)->put_stream += put->len;
        return false;
    }
    *flight_of(c, tag) = (struct flight){.track = t, .outlet = o, .len = put->len};
    t->under_way++;
    o->lent++;
    tally_of(c, t)->put_fabric += put->len; /* the taker may have it, and be gone, before we know */
    union message m = {.placed = {.buffer = put->peer_buffer,
                                  .offset = put->peer_offset,
                                  .len = put->len,
                                  .note = put->note}};
    c->config.send(c->config.context, put->link, MESSAGE_PLACED, &m);
    struct ferry_put order = {.peer = t->peer,
                              .region = o->region,
                              .offset = put->offset,
                              .len = put->len,
                              .into = t->far,
                              .into_offset = put->peer_offset,
                              .note = t->note | t->puts++,
                              .cookie = tag};
    ferry_put(t->carrier->ferry, &order);
    return true;
}

/* The bytes of a put are not needed any more. */
static void land(struct carriage *c, uint64_t tag) {
    struct flight f = c->flights[tag];
    c->flights[tag].track = NULL;
    f.track->under_way--;
    f.outlet->lent--;
    outlet_settle(f.outlet);
    c->config.sent(c->config.context, tag);
}

static void on_sent(void *context, uint64_t tag, int error, const char *why) {
    struct carriage *c = context;
    struct track *t = tag < c->flight_cap ? c->flights[tag].track : NULL;
    if (t == NULL)
        return;
    struct tally *tally = tally_of(c, t);
    if (error != 0) {
        tally->put_fabric -= c->flights[tag].len;
        say_why(c, t->offer, why);
        if (!t->broken && t->link != 0)
            carrier_strike(t->carrier, why);
        t->broken = true;
    }
    land(c, tag);
    if (t->link == 0 && t->under_way == 0)
        track_free(t);
}

/* ---- ends ---- */

static void end_orphan(struct carriage *c, struct track *t) {
    for (uint64_t tag = 0; tag < c->flight_cap && t->under_way > 0; tag++)
        if (c->flights[tag].track == t)
            land(c, tag);
    track_free(t);
}

void carriage_link_gone(struct carriage *c, uint32_t link, bool ours) {
    struct track *t = find_track(c, link);
    if (t == NULL)
        return;
    if (t->queue != NULL) {
        bool awaited = t->queue_count > 0 && !queue_entry(t, 0)->here;
        shut_window(t);
        if (!ours && awaited && !t->worked)
            carrier_strike(t->carrier, "what was announced did not come by it");
    }
    c->by_link[idtable_index_of(link)] = NULL;
    t->link = 0;
    t->until = c->config.loop->now + GRACE_NS;
    if (t->under_way == 0)
        track_free(t);
}

static void leave_carrier(struct carriage *c, struct carrier *carrier) {
    LIST_EACH_SAFE (l, &c->tracks) {
        struct track *t = CONTAINER_OF(l, struct track, at);
        if (t->carrier == carrier && t->link == 0)
            end_orphan(c, t);
    }
    LIST_EACH_SAFE (l, &c->outlets) {
        struct outlet *o = CONTAINER_OF(l, struct outlet, at);
        if (o->carrier != carrier)
            continue;
        o->closed = true;
        outlet_settle(o);
    }
    ferry_kill(carrier->ferry); /* what was granted must not outlive it */
    carrier->ferry = NULL;
    carrier->left = true;
}

/* A link that is to end; NULL if none is. */
static struct track *find_broken(const struct carriage *c) {
    LIST_EACH (l, &c->tracks) {
        struct track *t = CONTAINER_OF(l, struct track, at);
        if (t->link != 0 && (t->broken || (t->carrier != NULL && t->carrier->failed)))
            return t;
    }
    return NULL;
}

void carriage_settle(struct carriage *c) {
    uint64_t now = c->config.loop->now;
    for (struct track *t; (t = find_broken(c)) != NULL;) {
        uint32_t link = t->link;
        c->config.drop(c->config.context, link, t->gives ? ROLE_TAKER : ROLE_GIVER);
        ASSERT(find_track(c, link) == NULL);
    }
    LIST_EACH_SAFE (l, &c->tracks) {
        struct track *t = CONTAINER_OF(l, struct track, at);
        if (t->link != 0)
            continue;
        if (t->until > now) {
            loop_wake_at(c->config.loop, t->until);
            continue;
        }
        carrier_stuck(t->carrier, "a peer that is gone holds it up");
        end_orphan(c, t);
    }
    carriers_settle(&c->carriers);
    for (struct carrier *k = c->carriers.list; k < c->carriers.list + CARRIERS_MAX; k++)
        if (k->name[0] != '\0' && k->failed && !k->left)
            leave_carrier(c, k);
}
