/* SPDX-License-Identifier: MIT */
/* A whole cluster in the simulated world: see hall.h.
 *
 * Processes go on while their launcher is paused: the kernels' times are kept here, beside the world's
 * clock. A launcher that has something to hear is poked, and asks its kernel when it has the time. */
#include "sim/hall.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/random.h"
#include "base/units.h"
#include "sched/traits.h"

enum { CASTS = 8, CAST_BYTES = 64 };

/* Strobes that are on their way to a launcher, in no order. */
struct cast {
    uint64_t at; /* 0: none */
    struct input_strobe strobe;
    uint8_t body[CAST_BYTES];
};

enum { BODY_BYTES = 4096, RUNS = 192, JOBS_MAX = 1024, OUTSTANDING = 16 };

/* From what a process does to its launcher hearing of it. */
#define NOTICE_NS (20 * NS_PER_US)

/* Memory of one life. */
struct life {
    void *memory;
    void *machine;
};

struct hall {
    struct hall_config config;
    struct prim_config prim;
    struct mm_config mm;
    struct nm_config nm;
    struct pl_config pl;
    struct world *world;
    uint32_t universe;
    struct life *lives; /* of nodes, seat and launchers */
    struct sim_kernel **kernels;
    uint64_t *wakes;    /* of the kernels */
    bool *poked;        /* the launchers */
    struct cast *casts; /* CASTS for each launcher */
    struct random random;
    struct deeds deeds;
    struct roster names;  /* of nodes, for the nodes themselves */
    struct roster roster; /* who is there, as the next life of the manager finds it */
    struct nodeset taken; /* the same, as this life hears it */
    void *roster_memory;
    uint8_t *owners;                   /* which nodes have one, for the manager */
    uint8_t reports[HALL_SPEEDS][256]; /* of nodes, by their speed */
    size_t report_len;
};

/* ---- sizes ---- */

static void choose_prim(struct hall *h) {
    const struct hall_config *c = &h->config;
    h->prim = (struct prim_config){.tree = c->tree};
    h->prim.tree.nodes = c->nodes;
    h->prim.limits = (struct limits){.nodes = c->nodes,
                                     .roots = 1,
                                     .variables = 4,
                                     .events = 2,
                                     .heap_bytes = BODY_BYTES,
                                     .children = 64,
                                     .window = 16,
                                     .queue = 32,
                                     .outstanding = OUTSTANDING,
                                     .body_bytes = BODY_BYTES,
                                     .standing = 1,
                                     .transfers = 1,
                                     .chunk_bytes = 1024,
                                     .slots = 1,
                                     .record_channels = 1,
                                     .record_bytes = 96};
    h->prim.casts = c->policy != NULL && c->lost_permille < 1000;
    prim_config_times(&h->prim, c->period_ns);
}

static void write_reports(struct hall *h) {
    for (uint32_t i = 0; i < HALL_SPEEDS; i++) {
        struct traits_report r = traits_report_empty();
        r.values[TRAITS_SPEED] = i + 1;
        long len = traits_report_encode(&r, room_of(h->reports[i], sizeof h->reports[i]));
        ASSERT(len > 0 && (i == 0 || h->report_len == (size_t)len));
        h->report_len = (size_t)len;
    }
}

/* Most nodes have one. What is lent there has to leave at once, or may stay until he has gone. */
static void choose_owners(struct hall *h) {
    static const char watch[] = "/desk";
    size_t len = (size_t)h->config.nodes * 4;
    if (!h->config.owners)
        return;
    h->owners = malloc(len);
    ASSERT(h->owners != NULL);
    for (uint32_t n = 0; n < h->config.nodes; n++)
        store_le32(h->owners + (size_t)n * 4, n % 4 != 0);
    h->mm.said.owners = bytes_of(h->owners, len);
    h->mm.said.owner_texts = bytes_of(watch, sizeof watch);
    h->mm.vacate_ns = (1 + h->config.seed / 2 % 3 * 20) * 200 * NS_PER_MS;
}

static void choose_others(struct hall *h) {
    write_reports(h);
    const struct hall_config *c = &h->config;
    h->mm = (struct mm_config){.limits = h->prim.limits,
                               .pes = c->pes,
                               .jobs_max = JOBS_MAX,
                               .clients_max = 64,
                               .policy = c->policy,
                               .slots = c->slots,
                               .quantum_ns = c->quantum_ns,
                               .roster = &h->roster};
    mm_config_times(&h->mm);
    choose_owners(h);
    if (c->lease_ns != 0)
        h->mm.lease_ns = c->lease_ns;
    h->nm = (struct nm_config){
        .limits = h->prim.limits, .runs = RUNS, .roster = &h->names, .lease_ns = h->mm.lease_ns};
    h->pl = (struct pl_config){.groups = RUNS,
                               .petitioners = RUNS,
                               .processes = RUNS * c->pes,
                               .setup_bytes = RUNS * 1024,
                               .resend_ns = NS_PER_S,
                               .resend_max_ns = 8 * NS_PER_S,
                               .lease_ns = h->mm.lease_ns};
}

/* ---- machines ---- */

static struct arena arena_of(struct life *l, size_t bytes) {
    struct arena a;
    free(l->memory);
    l->memory = calloc(1, bytes);
    ASSERT(l->memory != NULL);
    arena_init(&a, l->memory, bytes);
    return a;
}

static struct machine make_mm(struct hall *h, struct life *l) {
    struct arena a = arena_of(l, mm_bytes(&h->mm));
    l->machine = mm_new(&h->mm, &a);
    return mm_machine(l->machine);
}

static struct machine make_nm(struct hall *h, struct life *l, uint32_t node) {
    struct nm_config c = h->nm;
    c.self = node;
    c.report = bytes_of(h->reports[hall_speed(node) - 1], h->report_len);
    struct arena a = arena_of(l, nm_bytes(&c));
    l->machine = nm_new(&c, &a);
    return nm_machine(l->machine);
}

static struct machine make_pl(struct hall *h, struct life *l) {
    struct arena a = arena_of(l, pl_bytes(&h->pl));
    l->machine = pl_new(&h->pl, &a);
    return pl_machine(l->machine);
}

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct hall *h = context;
    (void)globals;
    if (node >= h->universe + h->config.nodes)
        return h->config.client(h->config.context, h, node - h->universe - h->config.nodes);
    struct life *l = &h->lives[node];
    if (node >= h->universe)
        return make_pl(h, l);
    return node == hall_root(h) ? make_mm(h, l) : make_nm(h, l, node);
}

/* ---- processes ---- */

/* The kernel of a node has changed, or time has passed for it. */
static void look_at(struct hall *h, uint32_t node) {
    h->wakes[node] = sim_kernel_wakes(h->kernels[node]);
    if (h->poked[node] || !sim_kernel_due(h->kernels[node]))
        return;
    h->poked[node] = true;
    world_poke(h->world, hall_launcher(h, node), hall_now(h) + NOTICE_NS);
}

static void on_process(void *context, uint32_t body, const struct effect *e) {
    struct hall *h = context;
    uint32_t node = body - h->universe;
    sim_kernel_carry(h->kernels[node], e, hall_now(h));
    look_at(h, node);
}

static void on_deed(void *context, const struct sim_deed *deed) {
    deeds_watch(&((struct hall *)context)->deeds, deed);
}

static void on_life(void *context, const struct sim_life *life) {
    deeds_lives(&((struct hall *)context)->deeds, life);
}

static void on_woke(void *context, uint32_t node) {
    struct hall *h = context;
    if (h->config.woke != NULL)
        h->config.woke(h->config.context, h, node);
}

/* ---- strobes past the tree: some are lost, some overtake others ---- */

static void on_cast(void *context, const struct effect_cast *e) {
    struct hall *h = context;
    ASSERT(e->body.len <= CAST_BYTES);
    NODESET_EACH (node, e->set) {
        if (node >= h->config.nodes)
            break; /* the root has no launcher */
        uint64_t delay = random_between(&h->random, 1, 3 * h->config.link.latency_ns + 1);
        struct cast *c = h->casts + (size_t)node * CASTS, *end = c + CASTS;
        while (c < end && c->at != 0)
            c++;
        if (c == end || !world_up(h->world, hall_launcher(h, node)) ||
            random_chance(&h->random, h->config.lost_permille, 1000))
            continue;
        memcpy(c->body, e->body.at, e->body.len);
        c->at = hall_now(h) + delay;
        c->strobe = (struct input_strobe){
            .channel = e->channel, .number = e->number, .body = bytes_of(c->body, e->body.len)};
        world_poke(h->world, hall_launcher(h, node), c->at);
    }
}

static bool hear_cast(struct hall *h, uint32_t node, struct input *ret) {
    struct cast *c = h->casts + (size_t)node * CASTS, *end = c + CASTS;
    while (c < end && (c->at == 0 || c->at > hall_now(h)))
        c++;
    if (c == end)
        return false;
    c->at = 0;
    *ret = (struct input){.kind = INPUT_STROBE, .strobe = c->strobe};
    return true;
}

static bool on_news(void *context, uint32_t body, struct input *ret) {
    struct hall *h = context;
    uint32_t node = body - h->universe;
    if (body == hall_root(h)) {
        *ret = (struct input){.kind = INPUT_ROSTER, .roster = {.taken = &h->taken}};
        return true;
    }
    if (hear_cast(h, node, ret)) {
        if (h->poked[node]) /* this may have been for its processes */
            world_poke(h->world, body, hall_now(h));
        return true;
    }
    h->poked[node] = false;
    bool told = sim_kernel_tell(h->kernels[node], hall_now(h), ret);
    look_at(h, node);
    return told;
}

static void on_death(void *context, uint32_t who) {
    struct hall *h = context;
    if (h->world == NULL || who < h->universe || who >= h->universe + h->config.nodes)
        return;
    uint32_t node = who - h->universe;
    sim_kernel_crash(h->kernels[node]);
    memset(h->casts + (size_t)node * CASTS, 0, CASTS * sizeof *h->casts);
    h->poked[node] = false;
    h->wakes[node] = UINT64_MAX;
}

static void watched(struct hall *h, uint32_t who) {
    if (h->config.observe != NULL)
        h->config.observe(h->config.context, h, who);
}

static void on_step(void *context, struct world *w, uint32_t node) {
    (void)w;
    watched(context, node);
}

bool hall_kill(struct hall *h, uint32_t node, uint32_t pick, uint32_t signal) {
    bool any = sim_kernel_kill(h->kernels[node], pick, signal, hall_now(h));
    look_at(h, node);
    watched(h, hall_launcher(h, node));
    return any;
}

/* ---- time ---- */

static uint32_t first_to_wake(const struct hall *h) {
    uint32_t first = 0;
    for (uint32_t i = 1; i < h->config.nodes; i++)
        if (h->wakes[i] < h->wakes[first])
            first = i;
    return first;
}

bool hall_step(struct hall *h, uint64_t until) {
    uint64_t next = UINT64_MAX;
    uint32_t node = first_to_wake(h);
    bool any = world_next(h->world, &next);
    if (h->wakes[node] <= until && (!any || h->wakes[node] < next)) {
        world_run_until(h->world, h->wakes[node]);
        sim_kernel_run(h->kernels[node], h->wakes[node]);
        look_at(h, node);
        watched(h, hall_launcher(h, node));
        return true;
    }
    if (!any || next > until)
        return false;
    world_step(h->world);
    return true;
}

void hall_run_until(struct hall *h, uint64_t time) {
    while (hall_step(h, time))
        ;
    world_run_until(h->world, time);
}

/* ---- who is there ---- */

static void make_roster(struct hall *h) {
    size_t sets = nodeset_bytes(h->universe);
    h->roster_memory = malloc(sets + roster_bytes(h->config.nodes));
    ASSERT(h->roster_memory != NULL);
    h->names = roster_plain("n", h->config.nodes);
    nodeset_init(&h->taken, h->universe, h->roster_memory);
    roster_init(&h->roster, "n", h->config.nodes, (uint8_t *)h->roster_memory + sets);
}

void hall_roster(struct hall *h, const struct nodeset *taken) {
    nodeset_clear(&h->taken);
    NODESET_EACH (n, taken)
        nodeset_add(&h->taken, n);
    int r = roster_fill(&h->roster, &h->taken, (struct bytes){0}, NULL);
    ASSERT(r == 0);
    if (world_up(h->world, hall_root(h)))
        world_poke(h->world, hall_root(h), hall_now(h));
}

/* ---- lives ---- */

void hall_boot(struct hall *h, uint32_t who) {
    if (!world_up(h->world, who))
        world_boot(h->world, who, who == hall_root(h));
}

void hall_boot_all(struct hall *h) {
    uint32_t all = h->universe + h->config.nodes + h->config.clients;
    for (uint32_t i = all; i-- > 0;) /* the root before its nodes, launchers before both */
        hall_boot(h, i);
}

void hall_crash(struct hall *h, uint32_t who) {
    world_crash(h->world, who);
    watched(h, who);
}

static void make_kernels(struct hall *h) {
    for (uint32_t i = 0; i < h->config.nodes; i++) {
        struct sim_kernel_config k = {.node = i,
                                      .groups = RUNS,
                                      .seed = h->config.seed * 1000003 + i,
                                      .spawn_ns = NS_PER_MS,
                                      .fail_permille = h->config.fail_permille,
                                      .talk_permille = 300,
                                      .watch = on_deed,
                                      .lives = on_life,
                                      .woke = on_woke,
                                      .context = h};
        h->kernels[i] = sim_kernel_new(&k);
        h->wakes[i] = UINT64_MAX;
    }
}

struct hall *hall_new(const struct hall_config *c) {
    struct hall *h = calloc(1, sizeof *h);
    ASSERT(h != NULL);
    h->config = *c;
    choose_prim(h);
    choose_others(h);
    h->universe = limits_universe(&h->prim.limits);
    make_roster(h);
    h->lives = calloc(h->universe + c->nodes, sizeof *h->lives);
    h->kernels = calloc(c->nodes, sizeof(struct sim_kernel *));
    h->wakes = calloc(c->nodes, sizeof *h->wakes);
    h->poked = calloc(c->nodes, sizeof *h->poked);
    h->casts = calloc((size_t)c->nodes * CASTS, sizeof *h->casts);
    ASSERT(h->lives != NULL && h->kernels != NULL && h->wakes != NULL && h->poked != NULL &&
           h->casts != NULL);
    random_init(&h->random, c->seed ^ 0x63617374);
    make_kernels(h);
    struct world_config config = {.prim = h->prim,
                                  .link = c->link,
                                  .seed = c->seed,
                                  .hash = true,
                                  .daemon = make_daemon,
                                  .context = h,
                                  .observe = on_step,
                                  .launchers = true,
                                  .clients = c->clients,
                                  .process = on_process,
                                  .news = on_news,
                                  .cast = on_cast,
                                  .died = on_death};
    h->world = world_new(&config);
    if (h->world == NULL) {
        hall_free(h);
        return NULL;
    }
    return h;
}

void hall_free(struct hall *h) {
    if (h == NULL)
        return;
    world_free(h->world);
    for (uint32_t i = 0; i < h->universe + h->config.nodes; i++)
        free(h->lives[i].memory);
    for (uint32_t i = 0; i < h->config.nodes; i++)
        sim_kernel_free(h->kernels[i]);
    deeds_fini(&h->deeds);
    free(h->lives);
    free(h->kernels);
    free(h->wakes);
    free(h->poked);
    free(h->casts);
    free(h->roster_memory);
    free(h->owners);
    free(h);
}

/* ---- what is there ---- */

struct world *hall_world(const struct hall *h) {
    return h->world;
}

uint64_t hall_now(const struct hall *h) {
    return world_now(h->world);
}

uint32_t hall_root(const struct hall *h) {
    return h->config.nodes;
}

uint32_t hall_launcher(const struct hall *h, uint32_t node) {
    return h->universe + node;
}

uint32_t hall_client(const struct hall *h, uint32_t k) {
    return h->universe + h->config.nodes + k;
}

static const void *machine_of(const struct hall *h, uint32_t who) {
    return world_up(h->world, who) ? h->lives[who].machine : NULL;
}

const struct mm *hall_mm(const struct hall *h) {
    return machine_of(h, hall_root(h));
}

const struct nm *hall_nm(const struct hall *h, uint32_t node) {
    return machine_of(h, node);
}

const struct pl *hall_pl(const struct hall *h, uint32_t node) {
    return machine_of(h, hall_launcher(h, node));
}

const struct sim_kernel *hall_kernel(const struct hall *h, uint32_t node) {
    return h->kernels[node];
}

const struct deeds *hall_deeds(const struct hall *h) {
    return &h->deeds;
}

const struct mm_config *hall_mm_config(const struct hall *h) {
    return &h->mm;
}
