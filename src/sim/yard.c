/* SPDX-License-Identifier: MIT */
/* Movers and who orders them about: see yard.h. */
#include "sim/yard.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "rm/spread.h"
#include "rm/switches.h"
#include "wire/message.h"

/* Between two tries of a host to reach its mover. */
#define AGAIN_NS (20 * NS_PER_MS)

enum { TIMER_AGAIN = 1, ORDER_ROOM = 1024 * 1024, RUNS_ROOM = 512 * 1024 };

struct life {
    void *memory;
    struct mover *mover;
};

struct host {
    struct yard *yard;
    uint32_t node;
    uint32_t link;
};

/* What was said to those who take part in a transfer, in order: to the source what it gives, and that nobody
 * wants it any more; to those who receive that it comes, and that it is over. */
enum saying_kind { SAY_OFFER, SAY_ORDER, SAY_ENOUGH, SAY_WITHDRAW };

struct saying {
    uint32_t shipment;
    enum saying_kind kind;
};

struct yard {
    struct yard_config config;
    struct world *world;
    struct stock stock;
    struct random random;
    uint32_t universe;
    uint32_t bodies;           /* movers and clients */
    struct host *hosts;        /* of nodes */
    struct life *lives;        /* of bodies */
    struct sim_depot **depots; /* the same */
    uint32_t *heard;           /* sayings, of nodes and bodies */
    struct saying *sayings;
    uint32_t saying_count;
    struct shipment *shipments;
    uint32_t shipment_count;
    uint8_t *order; /* room to encode one, and the switches of its receivers */
    uint8_t *runs;
    uint8_t enough[32];
    struct nodeset scratch[2];
};

static uint32_t body_index(const struct yard *y, uint32_t who) {
    ASSERT(who >= y->universe);
    return who - y->universe;
}

/* ---- orders ---- */

/* The number by which a source knows what it gives. */
static uint64_t offer_of(const struct shipment *s) {
    return (UINT64_C(1) << 40) + s->transfer;
}

static struct bytes enough_of(struct yard *y, const struct shipment *s, uint64_t transfer) {
    uint8_t number[8];
    store_le64(number, transfer);
    union message m = {.enough = {.keep = s->keep, .transfers = bytes_of(number, 8)}};
    long len = message_encode(MESSAGE_ENOUGH, &m, room_of(y->enough, sizeof y->enough));
    ASSERT(len > 0);
    return bytes_of(y->enough, (size_t)len);
}

static uint16_t words_of(struct yard *y, const struct shipment *s, enum saying_kind kind,
                         struct bytes *ret_body) {
    if (kind == SAY_OFFER)
        *ret_body = bytes_of(s->offer, s->offer_len);
    else if (kind == SAY_ORDER)
        *ret_body = bytes_of(s->order, s->order_len);
    else
        *ret_body = enough_of(y, s, kind == SAY_ENOUGH ? s->transfer : offer_of(s));
    return kind == SAY_OFFER || kind == SAY_ORDER ? MESSAGE_TRANSFER : MESSAGE_ENOUGH;
}

static uint32_t source_body(const struct yard *y, const struct shipment *s) {
    return s->source == NO_NODE ? yard_client(y, s->client) : yard_mover(y, s->source);
}

/* Who hears this: the mover that is the source; the root, if it is for it to tell; of those who receive the
 * hosts, if there are any. */
static bool concerns(const struct yard *y, const struct shipment *s, enum saying_kind kind,
                     uint32_t who) {
    if (kind == SAY_OFFER || kind == SAY_WITHDRAW)
        return who == source_body(y, s);
    if (y->config.prim != NULL)
        return who == y->config.nodes;
    uint32_t node = who < y->universe ? who : who - y->universe;
    return y->config.hosts == (who < y->universe) && node < y->config.nodes &&
           nodeset_has(&s->set, node);
}

static bool hear_saying(struct yard *y, uint32_t who, struct input *ret) {
    while (y->heard[who] < y->saying_count) {
        const struct saying *said = &y->sayings[y->heard[who]++];
        const struct shipment *s = &y->shipments[said->shipment];
        if (!concerns(y, s, said->kind, who))
            continue;
        *ret = (struct input){.kind = INPUT_MESSAGE, .message = {.peer = NO_NODE}};
        ret->message.type = words_of(y, s, said->kind, &ret->message.body);
        return true;
    }
    return false;
}

static void say(struct yard *y, uint32_t shipment, enum saying_kind kind) {
    y->sayings = realloc(y->sayings, (y->saying_count + 1) * sizeof *y->sayings);
    ASSERT(y->sayings != NULL);
    y->sayings[y->saying_count++] = (struct saying){.shipment = shipment, .kind = kind};
    for (uint32_t who = 0; who < y->universe + y->bodies; who++) {
        if (!concerns(y, &y->shipments[shipment], kind, who))
            continue;
        bool skewed = y->config.skew_ns != 0 && kind != SAY_OFFER;
        uint64_t skew = skewed ? random_below(&y->random, y->config.skew_ns) : 0;
        world_poke(y->world, who, world_now(y->world) + skew);
    }
}

static struct bytes runs_of(struct yard *y, const struct shipment *s) {
    size_t len =
        switches_encode(&s->set, s->switches, y->config.nodes, room_of(y->runs, RUNS_ROOM));
    return bytes_of(y->runs, len); /* none if no switch is known */
}

/* A source is told by itself: it need not know who will come, nor in which shape. */
static uint8_t *encode(struct yard *y, struct shipment *s, bool offer, size_t *ret_len) {
    uint8_t address[4];
    union message m = {.transfer = {.transfer = offer ? offer_of(s) : s->transfer,
                                    .offer = offer_of(s),
                                    .source = s->source,
                                    .shape = offer ? SPREAD_FLAT : s->shape,
                                    .arity = s->arity,
                                    .slots = offer ? 2 : s->slots,
                                    .source_switch = s->source_switch,
                                    .set = offer ? &y->scratch[0] : &s->set,
                                    .descriptor = s->cargo->descriptor}};
    nodeset_clear(&y->scratch[0]);
    if (s->switches != NULL && !offer)
        m.transfer.switches = runs_of(y, s);
    if (s->source == NO_NODE) {
        store_le32(address, yard_client(y, s->client));
        m.transfer.address = bytes_of(address, sizeof address);
    }
    long len = message_encode(MESSAGE_TRANSFER, &m, room_of(y->order, ORDER_ROOM));
    ASSERT(len > 0);
    uint8_t *bytes = malloc((size_t)len);
    ASSERT(bytes != NULL);
    memcpy(bytes, y->order, (size_t)len);
    *ret_len = (size_t)len;
    return bytes;
}

static void copy_set(const struct yard *y, struct nodeset *to, const struct nodeset *from) {
    void *storage = malloc(nodeset_bytes(y->universe));
    ASSERT(storage != NULL);
    nodeset_init(to, y->universe, storage);
    nodeset_copy(to, from);
}

uint32_t yard_ship(struct yard *y, const struct shipment *like) {
    y->shipments = realloc(y->shipments, (y->shipment_count + 1) * sizeof *y->shipments);
    ASSERT(y->shipments != NULL);
    struct shipment *s = &y->shipments[y->shipment_count++];
    *s = *like;
    s->transfer = y->shipment_count;
    s->at = world_now(y->world);
    s->over = false;
    s->state = calloc(y->config.nodes, 1);
    s->error = calloc(y->config.nodes, sizeof *s->error);
    ASSERT(s->state != NULL && s->error != NULL);
    copy_set(y, &s->set, &like->set);
    s->offer = encode(y, s, true, &s->offer_len);
    s->order = encode(y, s, false, &s->order_len);
    sim_depot_offer(yard_depot(y, source_body(y, s)), offer_of(s), s->cargo);
    say(y, y->shipment_count - 1, SAY_OFFER);
    say(y, y->shipment_count - 1, SAY_ORDER);
    return y->shipment_count - 1;
}

void yard_enough(struct yard *y, uint32_t index, bool keep) {
    y->shipments[index].over = true;
    y->shipments[index].keep = keep;
    say(y, index, SAY_ENOUGH);
    say(y, index, SAY_WITHDRAW);
}

/* ---- hosts ---- */

static void pass_on(struct host *h, uint16_t type, struct bytes body, struct effects *out) {
    if (h->link != 0)
        effects_send(out, h->link, 0, type, effects_copy(out, body), (struct bytes){0});
}

static void tell_all(struct host *h, struct effects *out) {
    struct yard *y = h->yard;
    for (uint32_t i = 0; i < y->shipment_count; i++) {
        struct bytes body;
        enum saying_kind kind = y->shipments[i].over ? SAY_ENOUGH : SAY_ORDER;
        if (!concerns(y, &y->shipments[i], kind, h->node))
            continue;
        uint16_t type = words_of(y, &y->shipments[i], kind, &body);
        pass_on(h, type, body, out);
    }
}

static void on_arrived(struct host *h, const struct input_message *in) {
    struct yard *y = h->yard;
    union message m;
    int r = message_decode(in->type, in->body, y->scratch, &m);
    ASSERT(r == 0 && in->type == MESSAGE_ARRIVED);
    if (m.arrived.transfer > y->shipment_count)
        return; /* an offer that could not be kept up */
    struct shipment *s = &y->shipments[m.arrived.transfer - 1];
    if (s->over || s->state[h->node] == SHIPMENT_HERE)
        return; /* who was started again may fail at what it has done before */
    s->state[h->node] = m.arrived.error == 0 ? SHIPMENT_HERE : SHIPMENT_FAILED;
    s->error[h->node] = m.arrived.error;
    s->silent = s->silent || (m.arrived.error != 0 && m.arrived.text.len == 0);
}

static void open_mover(const struct host *h, struct effects *out) {
    effects_add(out, EFFECT_OPEN)->open =
        (struct effect_open){.node = h->node, .purpose = PURPOSE_MOVER, .cookie = 1};
}

static void host_step(void *self, const struct input *in, struct effects *out) {
    struct host *h = self;
    switch (in->kind) {
    case INPUT_BOOT:
    case INPUT_TIMER:
        open_mover(h, out);
        break;
    case INPUT_LINK_UP:
        h->link = in->link.link;
        tell_all(h, out);
        break;
    case INPUT_LINK_DOWN:
        h->link = 0;
        effects_timer(out, TIMER_AGAIN, in->now + AGAIN_NS);
        break;
    case INPUT_MESSAGE:
        if (in->message.link == 0)
            pass_on(h, in->message.type, in->message.body, out);
        else
            on_arrived(h, &in->message);
        break;
    default:
        break;
    }
}

/* ---- what the world calls ---- */

static struct machine make_mover(struct yard *y, uint32_t who) {
    struct life *l = &y->lives[body_index(y, who)];
    struct mover_config c = y->config.mover;
    c.universe = y->universe;
    bool client = who >= yard_client(y, 0);
    c.self = client ? NO_NODE : body_index(y, who);
    if (client && y->config.client_takers > 0)
        c.takers = y->config.client_takers;
    size_t bytes = mover_bytes(&c);
    struct arena a;
    free(l->memory);
    l->memory = malloc(bytes);
    ASSERT(l->memory != NULL);
    arena_init(&a, l->memory, bytes);
    l->mover = mover_new(&c, &a);
    return mover_machine(l->mover);
}

static struct machine make_daemon(void *context, uint32_t who, struct globals globals) {
    struct yard *y = context;
    (void)globals;
    if (who >= y->universe)
        return make_mover(y, who);
    if (y->config.prim != NULL)
        return y->config.host(y->config.context, who);
    struct host *h = &y->hosts[who];
    *h = (struct host){.yard = y, .node = who};
    return (struct machine){.self = h, .step = host_step};
}

static void no_step(void *self, const struct input *in, struct effects *out) {
    (void)self;
    (void)in;
    (void)out;
}

static struct machine make_nothing(void *context, uint32_t node, struct arena *a) {
    (void)context;
    (void)node;
    (void)a;
    return (struct machine){.step = no_step};
}

static void on_effect(void *context, uint32_t body, const struct effect *e) {
    struct yard *y = context;
    sim_depot_carry(y->depots[body_index(y, body)], e);
}

static bool on_news(void *context, uint32_t who, struct input *ret) {
    struct yard *y = context;
    return hear_saying(y, who, ret) ||
           (who >= y->universe && sim_depot_tell(y->depots[body_index(y, who)], ret));
}

static void on_step(void *context, struct world *w, uint32_t who) {
    struct yard *y = context;
    (void)w;
    if (y->config.observe != NULL)
        y->config.observe(y->config.context, y, who);
}

/* ---- the whole ---- */

static void make_depots(struct yard *y) {
    for (uint32_t i = 0; i < y->bodies; i++) {
        struct sim_depot_config c = y->config.depot;
        c.world = y->world;
        c.body = y->universe + i;
        c.stock = &y->stock;
        c.seed = y->config.seed * 1000003 + i;
        y->depots[i] = sim_depot_new(&c);
    }
}

static void make_rooms(struct yard *y) {
    uint32_t all = y->universe + y->bodies;
    size_t set = nodeset_bytes(y->universe);
    y->hosts = calloc(y->universe, sizeof *y->hosts);
    y->lives = calloc(y->bodies, sizeof *y->lives);
    y->depots = calloc(y->bodies, sizeof(struct sim_depot *));
    y->heard = calloc(all, sizeof *y->heard);
    y->order = malloc(ORDER_ROOM);
    y->runs = malloc(RUNS_ROOM);
    ASSERT(y->hosts != NULL && y->lives != NULL && y->depots != NULL && y->heard != NULL &&
           y->order != NULL && y->runs != NULL);
    for (int i = 0; i < 2; i++) {
        void *storage = malloc(set);
        ASSERT(storage != NULL);
        nodeset_init(&y->scratch[i], y->universe, storage);
    }
}

struct yard *yard_new(const struct yard_config *c) {
    struct yard *y = calloc(1, sizeof *y);
    ASSERT(y != NULL);
    y->config = *c;
    y->universe = c->nodes + 1;
    y->bodies = c->nodes + c->clients;
    random_init(&y->random, c->seed ^ 0x79617264);
    make_rooms(y);
    struct world_config config = {
        .prim = {.limits = {.nodes = c->nodes, .roots = 1, .heap_bytes = 64}},
        .link = c->link,
        .seed = c->seed,
        .hash = c->hash,
        .daemon = make_daemon,
        .context = y,
        .observe = on_step,
        .lower = make_nothing,
        .lower_bytes = 64,
        .switches = c->switches,
        .between_bytes_per_s = c->between_bytes_per_s,
        .movers = true,
        .clients = c->clients,
        .process = on_effect,
        .news = on_news};
    if (c->prim != NULL) {
        config.prim = *c->prim;
        config.lower = NULL;
    }
    y->world = world_new(&config);
    ASSERT(y->world != NULL);
    make_depots(y);
    return y;
}

void yard_free(struct yard *y) {
    if (y == NULL)
        return;
    world_free(y->world);
    for (uint32_t i = 0; i < y->bodies; i++) {
        free(y->lives[i].memory);
        sim_depot_free(y->depots[i]);
    }
    for (uint32_t i = 0; i < y->shipment_count; i++) {
        struct shipment *s = &y->shipments[i];
        free(s->set.storage);
        free(s->state);
        free(s->error);
        free(s->order);
        free(s->offer);
    }
    for (int i = 0; i < 2; i++)
        free(y->scratch[i].storage);
    stock_fini(&y->stock);
    free(y->shipments);
    free(y->sayings);
    free(y->hosts);
    free(y->lives);
    free(y->depots);
    free(y->heard);
    free(y->order);
    free(y->runs);
    free(y);
}

void yard_boot(struct yard *y, uint32_t who) {
    if (world_up(y->world, who))
        return;
    y->heard[who] = y->saying_count; /* what a host has to say it says when it has its link */
    world_boot(y->world, who, y->config.prim != NULL && who == y->config.nodes);
}

void yard_boot_all(struct yard *y) {
    for (uint32_t i = 0; i < y->bodies; i++)
        yard_boot(y, y->universe + i);
    if (y->config.prim != NULL)
        yard_boot(y, y->config.nodes);
    for (uint32_t i = 0; y->config.hosts && i < y->config.nodes; i++)
        yard_boot(y, i);
}

void yard_crash(struct yard *y, uint32_t who, bool keep) {
    if (!world_up(y->world, who))
        return;
    world_crash(y->world, who);
    if (who >= y->universe)
        sim_depot_crash(y->depots[body_index(y, who)], keep);
}

/* ---- what is there ---- */

struct stock *yard_stock(struct yard *y) {
    return &y->stock;
}

struct world *yard_world(const struct yard *y) {
    return y->world;
}

uint32_t yard_host(const struct yard *y, uint32_t node) {
    ASSERT(node < y->config.nodes);
    return node;
}

uint32_t yard_mover(const struct yard *y, uint32_t node) {
    ASSERT(node < y->config.nodes);
    return y->universe + node;
}

uint32_t yard_client(const struct yard *y, uint32_t client) {
    return y->universe + y->config.nodes + client;
}

const struct mover *yard_machine(const struct yard *y, uint32_t body) {
    return world_up(y->world, body) ? y->lives[body_index(y, body)].mover : NULL;
}

struct sim_depot *yard_depot(const struct yard *y, uint32_t body) {
    return y->depots[body_index(y, body)];
}

const struct shipment *yard_shipment(const struct yard *y, uint32_t index) {
    ASSERT(index < y->shipment_count);
    return &y->shipments[index];
}

uint32_t yard_shipments(const struct yard *y) {
    return y->shipment_count;
}

bool yard_settled(const struct yard *y, uint32_t index) {
    const struct shipment *s = yard_shipment(y, index);
    NODESET_EACH (node, &s->set)
        if (s->state[node] == SHIPMENT_UNKNOWN)
            return false;
    return true;
}

uint64_t yard_offer(const struct yard *y, uint32_t index) {
    return offer_of(yard_shipment(y, index));
}
