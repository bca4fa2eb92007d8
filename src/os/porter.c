/* SPDX-License-Identifier: MIT */
/* The world of a mover: see porter.h.
 *
 * What is to be done with files is queued while a machine's effects are carried out, and done one after the
 * other between its steps: the answer to each is an input of its own. */
#include "os/porter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "os/guide.h"
#include "os/porter_inside.h"

enum { EFFECTS_MAX = 16384 };
#define EFFECT_BYTES_MAX (16 * MIB)
#define FRAME_BYTES_MAX  (8 * MIB)

/* Rounds of sending in one turn: what was sent makes room for more. */
enum { ROUNDS_MAX = 16 };

/* ---- by a fabric ---- */

static void on_carried(void *context, const struct input_put *put) {
    struct input in = {.kind = INPUT_PUT, .put = *put};
    porter_feed(context, &in);
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
    porter_feed(p, &in);
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
    p->receivers = type == MESSAGE_TRANSFER ? nodeset_count(m.transfer.set) : p->receivers;
    if (type == MESSAGE_TRANSFER)
        carriage_transfer(p->carriage, &m.transfer);
    else
        carriage_joined(p->carriage, link, &m.join);
}

/* ---- effects ---- */

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
        struct buffer *b = shared ? buffers_share(&p->buffers, e->buffer.buffer, e->buffer.bytes)
                                  : buffers_open(&p->buffers, e->buffer.buffer, e->buffer.bytes);
        ASSERT(b != NULL);
        b->bundle = e->buffer.bundle;
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
        porter_put(p, &e->put);
        break;
    case EFFECT_BUNDLE_OPEN:
    case EFFECT_BUNDLE_COMMIT:
    case EFFECT_BUNDLE_CLOSE:
    case EFFECT_PAGE_KEEP:
    case EFFECT_PAGE_FETCH:
    case EFFECT_PIECE_STORE:
    case EFFECT_PIECE_LOAD:
        porter_do_later(p, e);
        break;
    default:
        break;
    }
}

void porter_feed(struct porter *p, struct input *in) {
    in->now = p->config.loop->now;
    effects_clear(&p->effects);
    p->machine.step(p->machine.self, in, &p->effects);
    for (uint32_t i = 0; i < p->effects.count; i++)
        carry_out(p, &p->effects.list[i]);
}

static void on_link(void *context, enum purpose purpose, const struct input *in) {
    struct porter *p = context;
    struct input copy = *in;
    if (in->kind == INPUT_MESSAGE && in->message.type == MESSAGE_CLEAR) {
        porter_clear(p, &in->message);
        return;
    }
    if (purpose == PURPOSE_LODGE) {
        if (p->config.guide != NULL)
            guide_heard(p->config.guide, in);
        return;
    }
    if (in->kind == INPUT_MESSAGE && in->message.type == MESSAGE_OFFER) {
        porter_present(p, &in->message);
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
    porter_feed(p, &copy);
    if (purpose == PURPOSE_MOVER && p->config.host != NULL)
        p->config.host(p->config.context, in->kind != INPUT_LINK_DOWN);
}

/* ---- turns ---- */

static void ring_alarms(struct porter *p) {
    struct alarm due;
    for (int i = 0; i < ALARMS_MAX && alarms_due(&p->alarms, p->config.loop->now, &due); i++) {
        struct input in = {.kind = INPUT_TIMER};
        in.timer.id = due.id;
        porter_feed(p, &in);
    }
    porter_work_off(p);
}

static void tell_all_sent(struct porter *p) {
    for (uint32_t i = 0; i < p->sent_count; i++) { /* more may be told meanwhile */
        struct input in = {.kind = INPUT_SENT, .sent = p->sent[i]};
        porter_feed(p, &in);
    }
    p->sent_count = 0;
    porter_work_off(p);
}

void porter_settle(struct porter *p) {
    porter_work_off(p);
    ring_alarms(p);
    porter_expire_offers(p);
    porter_tell_opened(p);
    if (p->config.guide != NULL)
        guide_settle(p->config.guide);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        links_settle(p->links);
        porter_work_off(p);
        if (p->sent_count == 0)
            break;
        tell_all_sent(p);
    }
    if (p->sent_count > 0)
        loop_wake_at(p->config.loop, p->config.loop->now);
    carriage_settle(p->carriage);
    porter_work_off(p);
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
    porter_feed(p, &in);
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
                                 .near_listener = c->near_listener,
                                 .near = c->near,
                                 .frame_bytes_max = FRAME_BYTES_MAX,
                                 .counts = &p->counts,
                                 .feed = on_link,
                                 .put = porter_came,
                                 .place = porter_place,
                                 .draw = porter_draw,
                                 .sent = porter_sent,
                                 .context = p};
    struct carriage_config carriage = {.loop = c->loop,
                                       .source = c->source,
                                       .send = send_to,
                                       .put = on_carried,
                                       .sent = porter_sent,
                                       .drop = drop_link,
                                       .context = p};
    p->carriage = carriage_new(&carriage);
    if (p->carriage == NULL)
        return -ENOMEM;
    conns_keep_memory();
    if (c->guide != NULL)
        guide_lead(c->guide, &links);
    p->links = links_new(&links);
    if (p->links != NULL && c->guide != NULL)
        guide_begin(c->guide, c->loop, p->links);
    return p->links == NULL ? -ENOMEM : 0;
}

struct porter *porter_new(const struct porter_config *c, int *ret_error, char why[256]) {
    struct porter *p = calloc(1, sizeof *p);
    int r = p == NULL ? -ENOMEM : 0;
    if (r == 0) {
        p->config = *c;
        p->limits = mover_usual(c->universe, c->self);
        p->buffers.thrifty = true;
        p->pipe[0] = p->pipe[1] = -1;
        writer_init(&p->writer, c->loop, porter_written);
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
    writer_fini(&p->writer);
    porter_growing_fini(p);
    for (uint32_t i = 0; p->bundles != NULL && i < p->limits.hauls; i++)
        if (p->bundles[i].in != NULL)
            depot_close(p->bundles[i].in, true);
    links_free(p->links);
    carriage_free(p->carriage);
    diary_close(&p->diary);
    depot_free(p->depot);
    loans_fini(&p->loans);
    porter_draws_fini(p);
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
