/* SPDX-License-Identifier: MIT */
/* A model of the part of Linux that a launcher uses: see kernel.h. */
#include "sim/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/units.h"
#include "sim/kernel_inside.h"

enum { PIECE_MAX = 64 * 1024, WINDOW_MIN = 4 * 1024 };

#define GROUPS_EACH(g, k)                                         \
    for (uint32_t i_##g = 0; i_##g < (k)->config.groups; i_##g++) \
        for (struct sim_group *g = (k)->groups[i_##g]; g != NULL; g = NULL)

#define MEMBERS_EACH(m, g) for (struct member *m = (g)->members; m < (g)->members + (g)->count; m++)

/* ---- groups ---- */

static void member_init(struct member *m, struct sim_group *g, uint32_t index) {
    uint32_t window = g->setup.window < WINDOW_MIN ? WINDOW_MIN : g->setup.window;
    m->group = g;
    m->index = index;
    m->self.member = m;
    m->out[0].window = m->out[1].window = m->in.window = window;
    m->listens =
        g->spec.stdin_mode == STDIN_ALL ||
        (g->spec.stdin_mode == STDIN_RANK && g->spec.stdin_rank == setup_rank(&g->setup, index));
}

static struct sim_group *group_new(struct sim_kernel *k, uint32_t id, struct bytes setup) {
    struct setup s;
    bool good = setup_decode(setup, &s) == 0;
    uint32_t count = good ? s.count : 1;
    struct sim_group *g = calloc(1, sizeof *g + count * sizeof g->members[0]);
    uint8_t *bytes = malloc(setup.len + 1);
    ASSERT(g != NULL && bytes != NULL);
    memcpy(bytes, setup.at, setup.len);
    *g = (struct sim_group){.kernel = k, .id = id, .bytes = bytes, .count = count};
    if (!good || setup_decode(bytes_of(bytes, setup.len), &g->setup) < 0 ||
        spec_decode(g->setup.spec, &g->spec) < 0)
        g->error = EBADMSG;
    g->run = g->setup.run;
    for (uint32_t i = 0; i < count; i++)
        member_init(&g->members[i], g, i);
    return g;
}

static void group_free(struct sim_group *g) {
    if (g == NULL)
        return;
    MEMBERS_EACH(m, g) {
        flow_fini(&m->out[0]);
        flow_fini(&m->out[1]);
        flow_fini(&m->in);
        for (struct actor *a = m->offspring, *next; a != NULL; a = next) {
            next = a->next;
            free(a);
        }
    }
    free(g->bytes);
    free(g);
}

void kernel_watch(const struct member *m, enum child_event event, uint32_t value, bool crash) {
    const struct sim_group *g = m->group;
    const struct sim_kernel_config *c = &g->kernel->config;
    struct sim_deed deed = {.run = g->run,
                            .rank = setup_rank(&g->setup, m->index),
                            .size = g->setup.size,
                            .event = event,
                            .value = value,
                            .crash = crash,
                            .wrote = m->out[0].to + m->out[1].to};
    if (c->watch != NULL)
        c->watch(c->context, &deed);
}

void kernel_life(const struct actor *a, bool begins) {
    const struct sim_group *g = a->member->group;
    const struct sim_kernel_config *c = &g->kernel->config;
    struct sim_life life = {.node = c->node, .run = g->run, .own = a->own, .begins = begins};
    if (c->lives != NULL)
        c->lives(c->context, &life);
}

static void woke(const struct sim_kernel *k) {
    if (k->config.woke != NULL)
        k->config.woke(k->config.context, k->config.node);
}

static bool is(struct bytes text, const char *name) {
    return bytes_equal(text, bytes_from_str(name));
}

/* Why a process cannot be started; 0 if it can. */
static int obstacle(const struct member *m, enum spawn_step *ret_step) {
    const struct sim_group *g = m->group;
    struct sim_kernel *k = g->kernel;
    struct spec_program p;
    *ret_step = SPAWN_PROGRAM;
    if (g->error != 0)
        return g->error;
    if (!spec_program_of(&g->spec, setup_rank(&g->setup, m->index), &p))
        return EBADMSG;
    if (is(g->spec.folder, "/none")) {
        *ret_step = SPAWN_FOLDER;
        return ENOENT;
    }
    if (is(p.program, "/none") ||
        (is(p.program, "/none-on-1") && setup_rank(&g->setup, m->index) == 1))
        return ENOENT;
    if (is(p.program, "/etc/passwd"))
        return EACCES;
    *ret_step = SPAWN_FORK;
    if (g->killed)
        return ECANCELED;
    return random_chance(&k->random, k->config.fail_permille, 1000) ? EAGAIN : 0;
}

/* Not drawn: nothing else is to change by it. */
static bool talks(const struct sim_group *g) {
    struct hash h;
    hash_init(&h, 0);
    hash_u64(&h, g->run);
    return hash_done(&h) % 1000 < g->kernel->config.talk_permille;
}

static void start(struct sim_group *g, uint64_t now) {
    if (g->started)
        return;
    g->started = true;
    if (talks(g))
        caller_begin(&g->caller, g->run, now);
    MEMBERS_EACH(m, g) {
        enum spawn_step step;
        int error = obstacle(m, &step);
        m->start_due = true;
        m->start = (struct input_child){.group = g->id,
                                        .index = m->index,
                                        .event = error == 0 ? CHILD_STARTED : CHILD_FAILED,
                                        .value = error == 0 ? ++g->kernel->pid : (uint32_t)error,
                                        .step = error == 0 ? SPAWN_PROGRAM : step};
        kernel_watch(m, m->start.event, m->start.value, false);
        if (error != 0)
            continue;
        actor_begin(m, now);
        if (g->frozen)
            actor_hold(&m->self, now);
    }
    woke(g->kernel);
}

static void signal_all(struct sim_group *g, uint32_t number, uint64_t now) {
    MEMBERS_EACH(m, g)
    ACTORS_EACH(a, m)
    actor_signal(a, number, now);
}

static void signal_one(struct sim_group *g, uint32_t index, uint32_t number, uint64_t now) {
    ASSERT(index < g->count);
    actor_signal(&g->members[index].self, number, now);
}

static void freeze(struct sim_group *g, bool frozen, uint64_t now) {
    if (g->frozen == frozen)
        return;
    g->frozen = frozen;
    g->frozen_at = now;
    MEMBERS_EACH(m, g)
    ACTORS_EACH(a, m) {
        if (a->stopped || !a->alive)
            continue;
        if (frozen)
            actor_hold(a, now);
        else
            actor_go_on(a, now);
    }
    if (!frozen)
        woke(g->kernel);
}

static uint32_t alive(const struct sim_group *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        n += g->members[i].self.alive;
        for (const struct actor *a = g->members[i].offspring; a != NULL; a = a->next)
            n += a->alive;
    }
    return n;
}

/* ---- effects ---- */

static void carry_group(struct sim_kernel *k, const struct effect *e, uint64_t now) {
    struct sim_group **g = &k->groups[e->group.group];
    if (e->kind == EFFECT_GROUP_OPEN) {
        ASSERT(*g == NULL);
        *g = group_new(k, e->group.group, e->group.setup);
        k->open++;
        return;
    }
    if (*g == NULL)
        return;
    switch (e->kind) {
    case EFFECT_GROUP_START:
        start(*g, now);
        break;
    case EFFECT_GROUP_SIGNAL:
        if (e->group.one > 0)
            signal_one(*g, e->group.one - 1, e->group.value, now);
        else
            signal_all(*g, e->group.value, now);
        break;
    case EFFECT_GROUP_FREEZE:
        freeze(*g, e->group.value != 0, now);
        break;
    case EFFECT_GROUP_KILL:
        (*g)->killed = true;
        signal_all(*g, 9, now);
        break;
    case EFFECT_GROUP_MEASURE:
        (*g)->measure_due = (*g)->started;
        break;
    case EFFECT_GROUP_CLOSE:
        group_free(*g);
        *g = NULL;
        k->open--;
        break;
    default:
        break;
    }
}

/* What was accepted before is passed over; what would leave a gap, or has no room, is not accepted. */
static void feed(struct member *m, const struct effect_stream *e) {
    struct flow *f = &m->in;
    m->in_due = true;
    if (!m->listens || m->in_end || e->offset > f->to || f->to - e->offset > e->bytes.len)
        return;
    size_t known = (size_t)(f->to - e->offset);
    size_t more = e->bytes.len - known;
    size_t room = (size_t)flow_room(f);
    if (more > 0)
        flow_write(f, bytes_of(e->bytes.at + known, more < room ? more : room));
    m->in_end = e->end && more <= room;
}

static void carry_stream(struct sim_kernel *k, const struct effect *e) {
    struct sim_group *g = k->groups[e->stream.group];
    if (g == NULL)
        return;
    ASSERT(e->stream.index < g->count);
    struct member *m = &g->members[e->stream.index];
    if (e->kind == EFFECT_STREAM_FEED) {
        feed(m, &e->stream);
        return;
    }
    ASSERT(e->stream.stream == 1 || e->stream.stream == 2);
    uint32_t i = e->stream.stream - 1U;
    struct flow *f = &m->out[i];
    if (e->kind == EFFECT_STREAM_TAKEN) {
        ASSERT(e->stream.offset <= flow_read(f));
        flow_drop(f, e->stream.offset);
        if (m->told[i] < f->from)
            m->told[i] = f->from;
    } else {
        m->told[i] = e->stream.offset < f->from ? f->from : e->stream.offset;
        m->end_told[i] = false;
    }
}

bool sim_kernel_wants(enum effect_kind kind) {
    return (kind >= EFFECT_GROUP_OPEN && kind <= EFFECT_STREAM_FEED) ||
           (kind >= EFFECT_PETITION_READ && kind <= EFFECT_PETITION_CLOSE);
}

/* ---- what happens ---- */

static void advance(struct sim_kernel *k, uint64_t now) {
    ASSERT(now >= k->now);
    k->now = now;
    GROUPS_EACH(g, k) {
        if (!g->started || g->empty)
            continue;
        MEMBERS_EACH(m, g)
        ACTORS_EACH(a, m)
        actor_advance(a, now);
        g->empty = alive(g) == 0;
        if (!g->members[0].self.alive)
            caller_end(&g->caller);
    }
}

void sim_kernel_carry(struct sim_kernel *k, const struct effect *e, uint64_t now) {
    advance(k, now);
    if (e->kind >= EFFECT_PETITION_READ) {
        ASSERT(sim_kernel_wants(e->kind) && e->petition.place < k->config.groups);
        if (k->groups[e->petition.place] != NULL)
            caller_carry(&k->groups[e->petition.place]->caller, e, now);
    } else if (e->kind <= EFFECT_GROUP_MEASURE) {
        ASSERT(e->kind >= EFFECT_GROUP_OPEN && e->group.group < k->config.groups);
        carry_group(k, e, now);
    } else {
        ASSERT(sim_kernel_wants(e->kind) && e->stream.group < k->config.groups);
        carry_stream(k, e);
    }
    advance(k, now);
}

/* ---- telling ---- */

/* Its end is known when nobody is left who could write and all was read. */
static bool stream_over(const struct member *m, uint32_t i) {
    return m->group->empty && flow_read(&m->out[i]) == m->out[i].to;
}

static bool tell_stream(struct member *m, uint32_t i, struct input *in) {
    const struct flow *f = &m->out[i];
    uint64_t to = flow_read(f);
    bool over = stream_over(m, i);
    if (m->told[i] == to && (!over || m->end_told[i]))
        return false;
    if (to - m->told[i] > PIECE_MAX)
        to = m->told[i] + PIECE_MAX;
    in->kind = INPUT_STREAM;
    in->stream = (struct input_stream){.group = m->group->id,
                                       .index = m->index,
                                       .stream = (uint8_t)(i + 1),
                                       .end = over && to == f->to,
                                       .offset = m->told[i],
                                       .bytes = flow_part(f, m->told[i], to)};
    m->told[i] = to;
    m->end_told[i] = in->stream.end;
    return true;
}

/* Is anybody left who could read? */
static bool attended(const struct member *m) {
    bool alive = m->self.alive || !m->group->started;
    for (const struct actor *a = m->offspring; a != NULL; a = a->next)
        alive = alive || a->alive;
    return m->listens && alive;
}

static bool tell_drained(struct member *m, struct input *in) {
    bool deaf = !attended(m) && (!m->listens || m->in.to > m->in.from);
    uint64_t in_pipe = m->in.from + PIPE_BYTES;
    if (!m->in_due)
        return false;
    m->in_due = false;
    in->kind = INPUT_DRAINED;
    in->drained.group = m->group->id;
    in->drained.index = m->index;
    in->drained.offset = deaf ? UINT64_MAX : m->in.to < in_pipe ? m->in.to : in_pipe;
    return true;
}

static bool tell_child(bool *due, const struct input_child *child, struct input *in) {
    if (!*due)
        return false;
    *due = false;
    in->kind = INPUT_CHILD;
    in->child = *child;
    return true;
}

static bool tell_member(struct member *m, struct input *in) {
    return tell_child(&m->start_due, &m->start, in) || tell_stream(m, 0, in) ||
           tell_stream(m, 1, in) || tell_drained(m, in) || tell_child(&m->end_due, &m->end, in);
}

struct usage sim_usage(uint32_t rank) {
    return (struct usage){.user_ns = (rank + 1ULL) * NS_PER_MS,
                          .system_ns = NS_PER_US,
                          .written_bytes = 512,
                          .peak_bytes = (rank + 1ULL) * MIB};
}

/* What could not be started has used nothing. */
static struct input_measured measure(const struct sim_group *g) {
    struct input_measured all = {.group = g->id};
    for (const struct member *m = g->members; m < g->members + g->count; m++) {
        struct usage u = sim_usage(setup_rank(&g->setup, m->index));
        if (m->start.event == CHILD_STARTED)
            usage_add(&all.usage, &u);
    }
    return all;
}

static bool tell_measured(struct sim_group *g, struct input *in) {
    if (!g->measure_due || g->empty)
        return false;
    g->measure_due = false;
    in->kind = INPUT_MEASURED;
    in->measured = measure(g);
    return true;
}

static bool tell_group(struct sim_group *g, struct input *in) {
    MEMBERS_EACH(m, g)
    if (tell_member(m, in))
        return true;
    if (tell_measured(g, in) || caller_tell(&g->caller, g->id, in->now, in))
        return true;
    if (!g->empty || g->empty_told)
        return false;
    g->empty_told = true;
    in->kind = INPUT_EMPTY;
    in->empty = measure(g);
    return true;
}

bool sim_kernel_tell(struct sim_kernel *k, uint64_t now, struct input *ret) {
    advance(k, now);
    *ret = (struct input){.now = now};
    GROUPS_EACH(g, k)
    if (tell_group(g, ret))
        return true;
    return false;
}

static bool stream_due(const struct member *m, uint32_t i) {
    return m->told[i] != flow_read(&m->out[i]) || (stream_over(m, i) && !m->end_told[i]);
}

static bool member_due(const struct member *m) {
    return m->start_due || m->end_due || m->in_due || stream_due(m, 0) || stream_due(m, 1);
}

static void sooner(const struct actor *a, uint64_t *next) {
    if (a->alive && a->doing == DOING_RUN && !actor_held(a) && a->until < *next)
        *next = a->until;
}

bool sim_kernel_due(const struct sim_kernel *k) {
    GROUPS_EACH(g, k) {
        if ((g->empty && !g->empty_told) || (g->measure_due && !g->empty))
            return true;
        if (caller_due(&g->caller, k->now))
            return true;
        MEMBERS_EACH(m, g)
        if (member_due(m))
            return true;
    }
    return false;
}

uint64_t sim_kernel_next(const struct sim_kernel *k) {
    return sim_kernel_due(k) ? k->now : sim_kernel_wakes(k);
}

uint64_t sim_kernel_wakes(const struct sim_kernel *k) {
    uint64_t next = UINT64_MAX;
    GROUPS_EACH(g, k) {
        uint64_t speaks = caller_wakes(&g->caller, k->now);
        next = speaks < next ? speaks : next;
        MEMBERS_EACH(m, g) {
            sooner(&m->self, &next);
            for (const struct actor *a = m->offspring; a != NULL; a = a->next)
                sooner(a, &next);
        }
    }
    return next;
}

/* ---- life ---- */

uint32_t sim_kernel_alive(const struct sim_kernel *k, uint64_t run) {
    uint32_t n = 0;
    GROUPS_EACH(g, k)
    n += g->run == run ? alive(g) : 0;
    return n;
}

uint64_t sim_kernel_answers(const struct sim_kernel *k) {
    uint64_t sum = 0;
    GROUPS_EACH(g, k)
    sum += g->caller.answered;
    return sum;
}

uint32_t sim_kernel_alive_all(const struct sim_kernel *k) {
    uint32_t n = 0;
    GROUPS_EACH(g, k)
    n += alive(g);
    return n;
}

struct sim_kernel *sim_kernel_new(const struct sim_kernel_config *c) {
    struct sim_kernel *k = calloc(1, sizeof *k);
    ASSERT(k != NULL);
    k->config = *c;
    random_init(&k->random, c->seed);
    k->groups = calloc(c->groups, sizeof(struct sim_group *));
    ASSERT(k->groups != NULL);
    return k;
}

void sim_kernel_run(struct sim_kernel *k, uint64_t now) {
    advance(k, now);
}

bool sim_kernel_kill(struct sim_kernel *k, uint32_t pick, uint32_t signal, uint64_t now) {
    uint32_t all = 0;
    advance(k, now);
    GROUPS_EACH(g, k)
    MEMBERS_EACH(m, g)
    all += m->self.alive;
    if (all == 0)
        return false;
    uint32_t left = pick % all;
    GROUPS_EACH(g, k)
    MEMBERS_EACH(m, g)
    if (m->self.alive && left-- == 0) {
        actor_signal(&m->self, signal, now);
        advance(k, now);
        return true;
    }
    return false;
}

bool sim_kernel_census(const struct sim_kernel *k, uint32_t *at, struct sim_census *ret) {
    for (; *at < k->config.groups; (*at)++) {
        const struct sim_group *g = k->groups[*at];
        if (g == NULL)
            continue;
        *ret = (struct sim_census){
            .run = g->run, .all = alive(g), .frozen = g->frozen, .frozen_at = g->frozen_at};
        for (uint32_t i = 0; i < g->count; i++)
            ret->own += g->members[i].self.alive;
        (*at)++;
        return true;
    }
    return false;
}

uint32_t sim_kernel_open(const struct sim_kernel *k) {
    return k->open;
}

void sim_kernel_crash(struct sim_kernel *k) {
    GROUPS_EACH(g, k)
    MEMBERS_EACH(m, g) {
        if (m->self.alive)
            kernel_watch(m, CHILD_KILLED, 9, true);
        ACTORS_EACH(a, m)
        if (a->alive)
            kernel_life(a, false);
    }
    k->open = 0;
    for (uint32_t i = 0; i < k->config.groups; i++) {
        group_free(k->groups[i]);
        k->groups[i] = NULL;
    }
}

void sim_kernel_free(struct sim_kernel *k) {
    if (k == NULL)
        return;
    sim_kernel_crash(k);
    free(k->groups);
    free(k);
}
