/* SPDX-License-Identifier: MIT */
/* The life of a launcher: see shift.h. */
#include "os/shift.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/alarms.h"
#include "os/cast.h"
#include "os/conn.h"
#include "os/kernel.h"
#include "os/home.h"
#include "os/prompt.h"
#include "wire/message.h"

#define FRAME_BYTES_MAX (1 * MIB)

struct shift {
    char *objects; /* where files that were sent to the node are */
    char *root;    /* what the node takes for its own root, absolute */
    struct shift_config config;
    struct loop loop;
    struct links *links;
    struct link_counts counts;
    struct kernel *kernel;
    struct ear ear;
    struct alarms alarms;
    struct machine machine;
    struct effects effects;
    void *memory;
    size_t memory_bytes;
    bool prompt;     /* we go before all others, as gangs are to be switched */
    uint32_t rounds; /* that it has gone through its node's processors, and how far */
    bool ended;
};

static void carry_out(struct shift *s, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_SEND:
        links_send(s->links, &e->send);
        break;
    case EFFECT_CLOSE:
        links_close(s->links, e->close.link, (enum refusal)e->close.refusal);
        break;
    case EFFECT_TIMER:
        alarms_set(&s->alarms, e->layer, e->timer.id, e->timer.at);
        break;
    case EFFECT_PROMPT:
        prompt_set(e->prompt);
        s->prompt = e->prompt;
        break;
    default:
        ASSERT(kernel_wants(e->kind));
        kernel_carry(s->kernel, e);
        break;
    }
}

static void feed(struct shift *s, const struct input *in) {
    effects_clear(&s->effects);
    s->machine.step(s->machine.self, in, &s->effects);
    for (uint32_t i = 0; i < s->effects.count; i++)
        carry_out(s, &s->effects.list[i]);
}

static void on_link(void *context, enum purpose purpose, const struct input *in) {
    (void)purpose;
    feed(context, in);
}

static void on_kernel(void *context, const struct input *in) {
    feed(context, in);
}

/* Whoever switches a gang should be where its processes are: it takes its own processor from them for that moment, and none
 * from another node's, and wakes nobody across. And it goes round: what it took from one processor alone the whole gang would wait for. Strobes are rare
 * enough for that. */
static void on_strobe(void *context, const struct input *in) {
    struct shift *s = context;
    feed(s, in);
    if (s->prompt)
        home_go(s->config.first, s->rounds++ % s->config.pes);
}

/* Nobody puts anything here. */
static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    (void)context, (void)link, (void)put;
    return REFUSAL_ROLE;
}

static void ring_alarms(struct shift *s) {
    struct alarm due;
    for (int i = 0; i < ALARMS_MAX && alarms_due(&s->alarms, s->loop.now, &due); i++) {
        struct input in = {.kind = INPUT_TIMER, .now = s->loop.now};
        in.timer.id = due.id;
        feed(s, &in);
    }
}

/* ---- a life ---- */

static int complain(const struct shift_config *c, const char *what, int error) {
    fprintf(stderr, "storm-pl: n%u: %s: %s\n", c->node, what, strerror(-error));
    return error;
}

/* Pages that are not touched cost nothing. */
static int reserve_memory(struct shift *s) {
    const struct pl_config *c = &s->config.pl;
    size_t machine = align_up(pl_bytes(c), 4096);
    size_t list = align_up(pl_effects_max(c) * sizeof(struct effect), 4096);
    s->memory_bytes = machine + list + pl_effect_bytes_max(c);
    uint8_t *at = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return complain(&s->config, "memory", -ENOMEM);
    struct arena arena;
    s->memory = at;
    arena_init(&arena, at, machine);
    s->machine = pl_machine(pl_new(c, &arena));
    effects_init(&s->effects, (struct effect *)(void *)(at + machine), pl_effects_max(c),
                 at + machine + list, pl_effect_bytes_max(c));
    return 0;
}

/* Whoever comes again must see whether we are still the same. */
static uint32_t draw_life(void) {
    uint32_t life = 0;
    ssize_t got = getrandom(&life, sizeof life, 0);
    ASSERT(got == sizeof life);
    return life;
}

static int open_links(struct shift *s) {
    const struct shift_config *c = &s->config;
    int listener = address_listen(&s->config.address);
    if (listener < 0) {
        char text[ADDRESS_TEXT_MAX];
        address_format(&c->address, text, sizeof text);
        return complain(c, text, listener);
    }
    struct links_config links = {.loop = &s->loop,
                                 .self = c->node,
                                 .life = draw_life(),
                                 .key = {c->key[0], c->key[1]},
                                 .accepts = 1U << PURPOSE_LAUNCHER,
                                 .listener = listener,
                                 .frame_bytes_max = FRAME_BYTES_MAX,
                                 .counts = &s->counts,
                                 .feed = on_link,
                                 .put = on_put,
                                 .context = s};
    conns_keep_memory();
    s->links = links_new(&links);
    return s->links == NULL ? complain(c, "links", -ENOMEM) : 0;
}

/* Processes change their folder before they are executed. */
static void find_objects(struct shift *s) {
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == NULL ||
        asprintf(&s->objects, "%s/n%" PRIu32 "/spool/objects", here, s->config.node) < 0)
        s->objects = NULL;
    if (s->objects == NULL || asprintf(&s->root, "%s/n%" PRIu32 "/root", here, s->config.node) < 0)
        s->root = NULL;
}

static int open_kernel(struct shift *s) {
    find_objects(s);
    struct kernel_config kernel = {.loop = &s->loop,
                                   .feed = on_kernel,
                                   .context = s,
                                   .cgroup = s->config.cgroup,
                                   .confine = s->config.confine,
                                   .rations = s->config.rations,
                                   .hurry = true,
                                   .home = s->config.home,
                                   .first = s->config.first,
                                   .pes = s->config.pes,
                                   .system_cores = s->config.system_cores,
                                   .each = s->config.each,
                                   .objects = s->objects,
                                   .root = s->root,
                                   .groups = s->config.pl.groups,
                                   .petitioners = s->config.pl.petitioners,
                                   .bell = s->config.bell};
    int error = 0;
    s->kernel = kernel_new(&kernel, &error);
    if (s->kernel == NULL)
        return complain(&s->config, "processes", error);
    const char *notice = kernel_notice(s->kernel);
    enum guarantee g = kernel_guarantee(s->kernel);
    if (!confine_met(s->config.confine, g)) {
        fprintf(stderr, "storm-pl: n%u: --confine %s: %s\n", s->config.node,
                confine_name(s->config.confine), notice != NULL ? notice : "there is none");
        return -ENOTSUP;
    }
    if (notice != NULL)
        fprintf(stderr, "storm-pl: n%u: %s; %s\n", s->config.node, notice, guarantee_text(g));
    s->config.pl.means = g == GUARANTEE_CGROUP      ? GANG_BY_CGROUP
                         : g == GUARANTEE_NAMESPACE ? GANG_BY_NAMESPACE
                                                    : GANG_BY_DESCENT;
    s->config.pl.prompt = prompt_allowed();
    return 0;
}

/* Without it they come by the manager. */
static void open_ear(struct shift *s) {
    const char *path = s->config.strobe;
    int r = path == NULL ? 0 : ear_init(&s->ear, &s->loop, path, s->config.key, on_strobe, s);
    if (r < 0)
        complain(&s->config, path, r);
}

struct shift *shift_new(const struct shift_config *config, int *ret_error) {
    struct shift *s = calloc(1, sizeof *s);
    if (s == NULL) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    s->config = *config;
    s->loop.epoll = s->ear.source.fd = -1;
    int r = loop_init(&s->loop);
    if (r < 0)
        complain(config, "event loop", r);
    if (r == 0)
        r = open_kernel(s);
    if (r == 0)
        r = reserve_memory(s);
    if (r == 0)
        r = open_links(s);
    if (r == 0)
        open_ear(s);
    if (r < 0) {
        shift_free(s);
        *ret_error = r;
        return NULL;
    }
    struct input in = {.kind = INPUT_BOOT, .now = s->loop.now, .boot = {.node = config->node}};
    feed(s, &in);
    return s;
}

void shift_free(struct shift *s) {
    if (s == NULL)
        return;
    kernel_free(s->kernel); /* first: whoever sees the links go may rely on it */
    links_free(s->links);
    ear_fini(&s->ear);
    loop_fini(&s->loop);
    if (s->memory != NULL)
        munmap(s->memory, s->memory_bytes);
    free(s->objects);
    free(s->root);
    free(s);
}

void shift_run(struct shift *s) {
    kernel_settle(s->kernel);
    links_settle(s->links);
    while (!s->ended) {
        uint64_t next = alarms_next(&s->alarms);
        if (next != 0)
            loop_wake_at(&s->loop, next);
        loop_turn(&s->loop, -1);
        kernel_settle(s->kernel);
        ring_alarms(s);
        kernel_settle(s->kernel);
        links_settle(s->links);
    }
}

void shift_end(struct shift *s) {
    s->ended = true;
}

struct loop *shift_loop(struct shift *s) {
    return &s->loop;
}
