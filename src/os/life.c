/* SPDX-License-Identifier: MIT */
/* One life of a node: see life.h.
 *
 * A turn: wait, read the clock once, feed what links and other sources have brought, then timers
 * that are due (so a node that was stopped for a while first hears what it has missed), then send
 * what has gathered. Effects of a step are carried out before the next input. */
#include "os/life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/alarms.h"
#include "os/conn.h"
#include "os/buffers.h"
#include "os/burden.h"
#include "os/cast.h"
#include "os/drawer.h"
#include "os/guide.h"
#include "os/jobfolders.h"
#include "os/lodge.h"
#include "os/lookout.h"
#include "os/presence.h"
#include "os/prompt.h"
#include "os/store.h"
#include "wire/message.h"
#include "wire/owner.h"

/* Room for the effects of one step. Untouched pages cost nothing. */
enum { EFFECTS_MAX = 65536 };

/* In one step: it hears of one operation at a time. */
enum { LOOKS_MAX = 4 };
#define EFFECT_BYTES_MAX (64 * MIB)

#define FRAME_BYTES_MAX (8 * MIB)

/* Longer notes are cut. */
enum { NOTE_BYTES_MAX = 2048 };

/* Persisted values that are on their way to the disk. */
enum { TICKETS_MAX = 64 };

struct ticket {
    uint64_t ticket;
    uint64_t value;
    enum layer layer;
};

struct life {
    struct life_config config;
    struct loop loop;
    struct links *links;
    struct lodge *lodge; /* NULL: none is kept */
    uint64_t warned_at;  /* when the count of warnings began */
    uint32_t warnings;
    struct alarms alarms;
    struct store store;
    struct drawer drawer;
    struct input_looked looked[LOOKS_MAX]; /* to be told */
    uint32_t looked_count;
    bool gauge; /* how this machine is, is to be told; and of its owner by this: */
    uint32_t watch_len;
    uint8_t watch[OWNER_TEXT_MAX];
    struct buffers buffers;
    struct ticket tickets[TICKETS_MAX];
    uint32_t ticket_count;
    struct stack stack;
    struct prim *prim;
    struct effects effects;
    void *arena;
    size_t arena_bytes;
    uint64_t heap_touched;
    struct life_counts own_counts;
    uint64_t steps_seen;
    bool ended;
};

/* ---- effects ---- */

static void write_heap(struct life *l, uint32_t offset, const uint8_t *from, uint64_t len) {
    uint64_t heap_bytes = l->config.prim.limits.heap_bytes;
    ASSERT(offset <= heap_bytes && len <= heap_bytes - offset);
    if (len == 0)
        return;
    memcpy(l->config.heap + offset, from, len);
    if (l->heap_touched < offset + len)
        l->heap_touched = offset + len;
}

static void publish(struct life *l, const struct effect_heap *h) {
    const struct buffer *b = buffers_find(&l->buffers, h->buffer);
    ASSERT(b != NULL && h->len <= b->bytes);
    write_heap(l, h->offset, b->at, h->len);
}

static void persist(struct life *l, const struct effect *e) {
    ASSERT(l->ticket_count < TICKETS_MAX);
    l->tickets[l->ticket_count++] = (struct ticket){
        .ticket = e->persist.ticket, .value = e->persist.value, .layer = (enum layer)e->layer};
    store_keep(&l->store, e->persist.value);
}

static void put(struct life *l, const struct effect_put *p) {
    const struct buffer *b = buffers_find(&l->buffers, p->buffer);
    ASSERT(b != NULL && p->offset <= b->bytes && p->len <= b->bytes - p->offset);
    links_put(l->links, p, bytes_of(b->at + p->offset, p->len));
}

static void change_buffer(struct life *l, const struct effect *e) {
    if (e->kind == EFFECT_BUFFER_OPEN) {
        struct buffer *b = buffers_open(&l->buffers, e->buffer.buffer, e->buffer.bytes);
        ASSERT(b != NULL);
    } else if (e->kind == EFFECT_BUFFER_GRANT) {
        buffers_find(&l->buffers, e->buffer.buffer)->link = e->buffer.link;
    } else {
        buffers_close(&l->buffers, e->buffer.buffer);
    }
}

static void print_note(const struct life *l, struct bytes note) {
    char line[NOTE_BYTES_MAX];
    struct timespec t;
    struct tm day;
    clock_gettime(CLOCK_REALTIME, &t);
    gmtime_r(&t.tv_sec, &day);
    size_t len = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &day);
    len += (size_t)snprintf(line + len, sizeof line - len,
                            ".%03ldZ node %u: ", t.tv_nsec / (long)NS_PER_MS, l->config.self);
    for (size_t i = 0; i < note.len && len < sizeof line - 1; i++) /* one line, whatever is in it */
        line[len++] = note.at[i] < ' ' || note.at[i] == 127 ? ' ' : (char)note.at[i];
    line[len++] = '\n';
    ssize_t wrote = write(STDERR_FILENO, line, len);
    (void)wrote; /* where should we complain? */
}

/* A daemon that logs must have been given a log. */
static const struct life_log *log_of(const struct life *l) {
    ASSERT(l->config.log != NULL);
    return l->config.log;
}

/* What was seen is told when all else that this step wanted is done. */
static void look(struct life *l, const struct effect *e) {
    ASSERT(l->looked_count < LOOKS_MAX);
    struct input_looked *seen = &l->looked[l->looked_count++];
    seen->ticket = e->look.ticket;
    lookout(l->config.folder, e->look.setup, seen);
}

/* The same. */
static void gauge(struct life *l, struct bytes watch) {
    l->gauge = true;
    l->watch_len = watch.len < sizeof l->watch ? (uint32_t)watch.len : 0;
    if (l->watch_len > 0)
        memcpy(l->watch, watch.at, l->watch_len);
}

static void carry_out(struct life *l, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_SEND:
        links_send(l->links, &e->send);
        break;
    case EFFECT_OPEN:
        if (e->open.purpose == PURPOSE_MOVER && l->config.summon != NULL)
            l->config.summon(l->config.context, l);
        links_open(l->links, &e->open);
        break;
    case EFFECT_CLOSE:
        links_close(l->links, e->close.link, (enum refusal)e->close.refusal);
        break;
    case EFFECT_TIMER:
        alarms_set(&l->alarms, e->layer, e->timer.id, e->timer.at);
        break;
    case EFFECT_PERSIST:
        persist(l, e);
        break;
    case EFFECT_STOW:
        drawer_put(&l->drawer, e->stow);
        break;
    case EFFECT_LOOK:
        look(l, e);
        break;
    case EFFECT_GAUGE:
        gauge(l, e->gauge);
        break;
    case EFFECT_PROMPT:
        prompt_set(e->prompt);
        break;
    case EFFECT_CAST:
        if (l->config.caster != NULL)
            caster_send(l->config.caster, &e->cast);
        break;
    case EFFECT_HEAP_WRITE:
        write_heap(l, e->heap.offset, e->heap.bytes.at, e->heap.bytes.len);
        break;
    case EFFECT_HEAP_PUBLISH:
        publish(l, &e->heap);
        break;
    case EFFECT_HEAP_CLEAR:
        memset(l->config.heap, 0, l->heap_touched);
        l->heap_touched = 0;
        break;
    case EFFECT_BUFFER_OPEN:
    case EFFECT_BUFFER_GRANT:
    case EFFECT_BUFFER_CLOSE:
        change_buffer(l, e);
        break;
    case EFFECT_PUT:
        put(l, &e->put);
        break;
    case EFFECT_LOG:
        log_of(l)->append(log_of(l)->self, &e->log);
        break;
    case EFFECT_FETCH:
        log_of(l)->fetch(log_of(l)->self, e->fetch.ticket, e->fetch.key);
        break;
    case EFFECT_NOTE:
        print_note(l, e->note);
        if (l->config.note != NULL)
            l->config.note(l->config.context, e->note);
        break;
    case EFFECT_NONE:
        break;
    default:
        assert_failed("an effect for the world", __FILE__, __LINE__);
    }
}

/* ---- inputs ---- */

void life_feed(struct life *l, enum layer layer, const struct input *in) {
    effects_clear(&l->effects);
    if (in->kind == INPUT_BOOT)
        stack_boot(&l->stack, in, &l->effects);
    else
        stack_step(&l->stack, layer, in, &l->effects);
    l->config.counts->steps++;
    for (uint32_t i = 0; i < l->effects.count; i++)
        carry_out(l, &l->effects.list[i]);
    while (l->looked_count > 0) {
        struct input seen = {.kind = INPUT_LOOKED, .now = l->loop.now};
        seen.looked = l->looked[--l->looked_count];
        life_feed(l, LAYER_DAEMON, &seen);
    }
    if (l->gauge) {
        struct input seen = {.kind = INPUT_GAUGED, .now = l->loop.now};
        l->gauge = false;
        burden_read(&seen.gauged);
        presence_look(bytes_of(l->watch, l->watch_len), &seen.gauged);
        life_feed(l, LAYER_DAEMON, &seen);
    }
}

static void on_lodge_link(struct life *l, const struct input *in) {
    if (l->lodge != NULL)
        lodge_heard(l->lodge, l->links, in);
    else if (l->config.guide != NULL)
        guide_heard(l->config.guide, in);
}

/* Tree and slot links belong to the primitives, lodge links to the world, others to the daemon. */
static void on_link(void *context, enum purpose purpose, const struct input *in) {
    bool prim = purpose == PURPOSE_TREE || purpose == PURPOSE_SLOT;
    if (purpose == PURPOSE_LODGE) {
        on_lodge_link(context, in);
        return;
    }
    life_feed(context, prim ? LAYER_PRIM : LAYER_DAEMON, in);
}

static void on_logged(void *context, uint64_t ticket, int error) {
    struct life *l = context;
    struct input in = {.kind = INPUT_LOGGED, .now = l->loop.now};
    in.logged = (struct input_logged){.ticket = ticket, .error = error};
    life_feed(l, LAYER_DAEMON, &in);
}

static void on_fetched(void *context, uint64_t ticket, struct bytes body) {
    struct life *l = context;
    struct input in = {.kind = INPUT_FETCHED, .now = l->loop.now};
    in.fetched = (struct input_fetched){.ticket = ticket, .body = body};
    life_feed(l, LAYER_DAEMON, &in);
}

static void on_replay(void *context, uint64_t key, bool over, struct bytes body) {
    struct life *l = context;
    struct input in = {.kind = INPUT_REPLAY, .now = l->loop.now};
    in.replay = (struct input_replay){.key = key, .over = over, .body = body};
    life_feed(l, LAYER_DAEMON, &in);
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *m) {
    struct life *l = context;
    const struct buffer *b = buffers_find(&l->buffers, m->buffer);
    if (b == NULL || b->link != link)
        return REFUSAL_NONE; /* closed, or granted to another link, while the bytes were under way */
    if (m->offset > b->bytes || m->body.len > b->bytes - m->offset)
        return REFUSAL_BODY;
    if (m->body.len > 0)
        memcpy(b->at + m->offset, m->body.at, m->body.len);
    struct input in = {.kind = INPUT_PUT, .now = l->loop.now};
    in.put = (struct input_put){.link = link,
                                .buffer = m->buffer,
                                .offset = m->offset,
                                .len = (uint32_t)m->body.len,
                                .note = m->note};
    life_feed(l, LAYER_PRIM, &in);
    return REFUSAL_NONE;
}

static void on_durable(struct store *s, uint64_t value) {
    struct life *l = CONTAINER_OF(s, struct life, store);
    for (uint32_t i = 0; i < l->ticket_count;) {
        struct ticket t = l->tickets[i];
        if (t.value > value) {
            i++;
            continue;
        }
        l->ticket_count--;
        memmove(&l->tickets[i], &l->tickets[i + 1], (l->ticket_count - i) * sizeof t);
        struct input in = {.kind = INPUT_DURABLE, .now = l->loop.now};
        in.durable.ticket = t.ticket;
        life_feed(l, t.layer, &in);
    }
}

/* Not more than there can be: a machine that wants to be woken at once, again and again, must not
 * keep others waiting. */
static void ring_alarms(struct life *l) {
    struct alarm due;
    for (int i = 0; i < ALARMS_MAX && alarms_due(&l->alarms, l->loop.now, &due); i++) {
        struct input in = {.kind = INPUT_TIMER, .now = l->loop.now};
        in.timer.id = due.id;
        life_feed(l, (enum layer)due.layer, &in);
    }
}

/* ---- a life ---- */

static void *reserve(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int reserve_memory(struct life *l) {
    const struct prim_config *p = &l->config.prim;
    bool seat = l->config.self >= p->limits.nodes;
    size_t list_bytes = EFFECTS_MAX * sizeof(struct effect);
    size_t prim = align_up(prim_bytes(p, seat), 4096);
    size_t heap = l->config.heap == NULL ? p->limits.heap_bytes : 0;
    l->arena_bytes = prim + list_bytes + EFFECT_BYTES_MAX + heap;
    uint8_t *at = l->arena = reserve(l->arena_bytes);
    if (at == NULL)
        return -ENOMEM;
    struct arena arena;
    arena_init(&arena, at, prim);
    l->prim = prim_new(p, seat, &arena);
    effects_init(&l->effects, (struct effect *)(void *)(at + prim), EFFECTS_MAX,
                 at + prim + list_bytes, EFFECT_BYTES_MAX);
    if (heap > 0)
        l->config.heap = at + prim + list_bytes + EFFECT_BYTES_MAX;
    l->stack.prim = prim_machine(l->prim);
    l->stack.daemon = l->config.daemon(l->config.context, l->config.self, prim_globals(l->prim));
    return 0;
}

static const char *advice(int error) {
    switch (-error) {
    case ENOTSUP:
        return "its state was written by a newer STORM; use that one, or remove the folder, and the "
               "node starts as a new one";
    case EUCLEAN:
        return "its state is damaged; remove the folder, and the node starts as a new one";
    case EBUSY:
        return "another process is this node; end it first";
    case EADDRINUSE:
        return "somebody else listens there; end it or choose another address";
    case ENOMEM:
        return "free memory, or start fewer nodes";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    default:
        return "check that it exists and may be used";
    }
}

static int complain(const struct life_config *c, const char *what, int error) {
    fprintf(stderr, "storm: node %u: %s: %s; %s\n", c->self, what, strerror(-error), advice(error));
    return error;
}

static int open_store(struct life *l) {
    int r = store_open(&l->store, l->config.folder);
    if (r == 0)
        r = store_begin(&l->store, l->config.root);
    if (r == 0)
        r = store_attach(&l->store, &l->loop, on_durable);
    return r < 0 ? complain(&l->config, l->config.folder, r) : 0;
}

/* Who knocks again and again must not fill the log. */
static void on_warning(void *context, const char *text) {
    enum { WARNINGS_MAX = 20 };
    struct life *l = context;
    if (l->loop.now - l->warned_at >= 60 * NS_PER_S) {
        l->warned_at = l->loop.now;
        l->warnings = 0;
    }
    if (l->warnings++ < WARNINGS_MAX)
        print_note(l, bytes_from_str(text));
    else if (l->warnings == WARNINGS_MAX + 1)
        print_note(l, bytes_from_str("more of this kind within a minute; they are only counted"));
}

/* What links of a cluster on many machines need beside a book. */
static int lead_links(struct life *l, struct links_config *links) {
    const struct life_config *c = &l->config;
    const struct lodge_config lodge = {.keys = c->keys,
                                       .nodes = c->prim.limits.nodes,
                                       .epoch = l->store.kept.epoch,
                                       .near_client = c->near_client};
    links->warn = on_warning;
    links->sealer = c->sealer;
    if (c->guide != NULL)
        guide_lead(c->guide, links);
    if (!c->lodge)
        return 0;
    links->accepts |= 1U << PURPOSE_LODGE;
    l->lodge = lodge_new(&lodge);
    return l->lodge == NULL ? -ENOMEM : 0;
}

static int open_links(struct life *l) {
    const struct life_config *c = &l->config;
    struct address here = c->book[c->self];
    int listener = c->listener >= 0 ? c->listener : address_listen(&here);
    if (listener < 0) {
        char text[ADDRESS_TEXT_MAX];
        address_format(&here, text, sizeof text);
        return complain(c, text, listener);
    }
    struct links_config links = {.loop = &l->loop,
                                 .self = c->self,
                                 .life = l->store.kept.boots,
                                 .key = {c->key[0], c->key[1]},
                                 .book = c->book,
                                 .nodes = limits_universe(&c->prim.limits),
                                 .launcher = c->launcher,
                                 .mover = c->mover,
                                 .accepts = c->accepts,
                                 .listener = listener,
                                 .near_listener = c->near_listener,
                                 .frame_bytes_max = FRAME_BYTES_MAX,
                                 .counts = &c->counts->links,
                                 .warn = on_warning,
                                 .feed = on_link,
                                 .put = on_put,
                                 .context = l};
    conns_keep_memory();
    if (lead_links(l, &links) == 0)
        l->links = links_new(&links);
    if (l->links != NULL && c->guide != NULL)
        guide_begin(c->guide, &l->loop, l->links);
    return l->links == NULL ? complain(c, "links", -ENOMEM) : 0;
}

/* Folders of runs that are told of; more are not here unless something is very wrong. */
enum { FOLDERS_BYTES = 8 * 256 };

/* The calendar's time when the monotonic clock was 0. */
static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec - clock_ns();
}

static void boot(struct life *l) {
    uint64_t seed = 0;
    ssize_t got = getrandom(&seed, sizeof seed, 0);
    ASSERT(got == sizeof seed);
    char root[PATH_MAX + 8];
    uint8_t folders[FOLDERS_BYTES];
    snprintf(root, sizeof root, "%s/root", l->config.folder);
    size_t folders_len = l->config.root ? 0 : jobfolders_list(root, folders, sizeof folders);
    struct input in = {.kind = INPUT_BOOT, .now = l->loop.now};
    in.boot = (struct input_boot){.node = l->config.self,
                                  .boots = l->store.kept.boots,
                                  .kept = l->store.kept.value,
                                  .root = l->config.root,
                                  .epoch = l->config.root ? l->store.kept.epoch : 0,
                                  .random_seed = seed,
                                  .wall_ns = wall_ns(),
                                  .stowed = drawer_look(&l->drawer),
                                  .folders = bytes_of(folders, folders_len)};
    life_feed(l, LAYER_PRIM, &in);
}

/* The daemon hears what it has logged in former lives before anything else of the world. */
static int replay(struct life *l) {
    const struct life_log *log = l->config.log;
    if (log == NULL)
        return 0;
    int r = log->attach(log->self, &l->loop, on_logged, on_fetched, l);
    if (r == 0)
        r = log->replay(log->self, on_replay, l);
    if (r < 0)
        return complain(&l->config, "log", r);
    on_replay(l, 0, false, (struct bytes){0});
    return 0;
}

struct life *life_new(const struct life_config *config, int *ret_error) {
    struct life *l = calloc(1, sizeof *l);
    if (l == NULL) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    l->config = *config;
    if (l->config.counts == NULL)
        l->config.counts = &l->own_counts;
    if (l->config.accepts == 0)
        l->config.accepts = 1U << PURPOSE_TREE | 1U << PURPOSE_SLOT;
    l->store.fd = l->store.done.fd = -1;
    drawer_init(&l->drawer, l->config.folder);
    int r = loop_init(&l->loop);
    if (r < 0)
        complain(config, "event loop", r);
    if (r == 0)
        r = open_store(l);
    if (r == 0)
        r = open_links(l);
    if (r == 0 && (r = reserve_memory(l)) < 0)
        complain(config, "memory", r);
    if (r == 0) {
        if (config->launcher != NULL) /* not while a launch waits for it */
            drawer_make(&l->drawer);
        boot(l);
        r = replay(l);
    }
    if (r < 0) {
        life_free(l);
        *ret_error = r;
        return NULL;
    }
    return l;
}

void life_free(struct life *l) {
    if (l == NULL)
        return;
    links_free(l->links);
    lodge_free(l->lodge);
    store_close(&l->store);
    loop_fini(&l->loop);
    buffers_fini(&l->buffers);
    drawer_fini(&l->drawer);
    if (l->arena != NULL)
        munmap(l->arena, l->arena_bytes);
    free(l);
}

static void set_timer(struct life *l) {
    uint64_t next = alarms_next(&l->alarms);
    if (next != 0)
        loop_wake_at(&l->loop, next);
}

static void look_around(struct life *l) {
    struct life_counts *c = l->config.counts;
    c->turns++;
    c->bytes_in = links_bytes_in(l->links);
    c->bytes_out = links_bytes_out(l->links);
    if (l->config.observe != NULL && l->steps_seen != c->steps)
        l->config.observe(l->config.context, l);
    l->steps_seen = c->steps;
}

static void settle(struct life *l) {
    if (l->config.guide != NULL)
        guide_settle(l->config.guide);
    links_settle(l->links);
    if (l->config.log != NULL)
        l->config.log->commit(l->config.log->self);
    look_around(l);
}

void life_run(struct life *l) {
    settle(l);
    while (!l->ended) {
        set_timer(l);
        loop_turn(&l->loop, -1);
        ring_alarms(l);
        settle(l);
    }
}

void life_end(struct life *l) {
    l->ended = true;
}

static bool is_good(void *context, const struct identity *id) {
    uint8_t key[KEY_BYTES];
    bool good = keyring_answer(context, id, key) == 0;
    explicit_bzero(key, sizeof key);
    return good;
}

void life_review_keys(struct life *l) {
    if (l->config.keys != NULL)
        links_review(l->links, is_good, (void *)l->config.keys);
}

struct loop *life_loop(struct life *l) {
    return &l->loop;
}

uint32_t life_node(const struct life *l) {
    return l->config.self;
}

uint64_t life_now(const struct life *l) {
    return l->loop.now;
}

const struct prim *life_prim(const struct life *l) {
    return l->prim;
}

struct globals life_globals(const struct life *l) {
    return prim_globals(l->prim);
}

const uint8_t *life_heap(const struct life *l) {
    return l->config.heap;
}

uint8_t *life_buffer(struct life *l, uint32_t number, uint64_t bytes) {
    struct buffer *b = buffers_find(&l->buffers, number);
    if (b == NULL)
        b = buffers_open(&l->buffers, number, bytes);
    return b == NULL || b->bytes < bytes ? NULL : b->at;
}
