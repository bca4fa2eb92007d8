/* SPDX-License-Identifier: MIT */
/* A group of processes: what is made ready for them, and their start. */
#include "os/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/files.h"
#include "os/pty.h"

enum { SPARE_PIPES = 2 };       /* what a run of one process needs */
enum { HOLD_MAX = 64 };         /* larger groups do not keep the processes' ends of pipes open */
enum { WINDOW_MIN = 4 * 1024 }; /* of a stream */

/* It may ring a moment before anybody is ended, or nobody is after all. */
enum { FAMINE_LOOKS = 100 };

/* Processes that live longer are placed by the system: see home.h. */
#define LEAVE_NS (1 * NS_PER_S)

/* ---- outlets ---- */

/* The limit on descriptors is raised only for groups that need it; their processes get the old one. */
static bool more_descriptors(struct kernel *k) {
    struct rlimit l = k->spawner.inherited.limits[RLIMIT_NOFILE];
    if (k->spawner.raised || l.rlim_cur >= l.rlim_max)
        return false;
    l.rlim_cur = l.rlim_max;
    k->spawner.raised = setrlimit(RLIMIT_NOFILE, &l) == 0;
    return k->spawner.raised;
}

/* An outlet that was closed is never freed, only used again: should somebody else still hold its pipe (who
 * looks into /proc does for a moment), the loop may tell of it once more. */
static struct outlet *take_memory(struct kernel *k) {
    struct list *l = list_pop_front(&k->retired);
    return l != NULL ? CONTAINER_OF(l, struct outlet, link) : malloc(sizeof(struct outlet));
}

static struct outlet *new_outlet(struct kernel *k, int *ret_error) {
    struct outlet *o = take_memory(k);
    int r = o == NULL ? -ENOMEM : outlet_open(o, k->loop);
    if (r == -EMFILE && more_descriptors(k))
        r = outlet_open(o, k->loop);
    if (r < 0 && o != NULL)
        list_push_back(&k->retired, &o->link);
    *ret_error = r;
    return r < 0 ? NULL : o;
}

void kernel_stock(struct kernel *k) {
    int r;
    for (struct outlet *o; k->spares < SPARE_PIPES && (o = new_outlet(k, &r)) != NULL; k->spares++)
        list_push_back(&k->spare, &o->link);
}

static struct outlet *take_outlet(struct kernel *k, int *ret_error) {
    struct list *l = list_pop_front(&k->spare);
    if (l == NULL)
        return new_outlet(k, ret_error);
    k->spares--;
    *ret_error = 0;
    return CONTAINER_OF(l, struct outlet, link);
}

static void free_outlet(struct kernel *k, struct outlet *o) {
    if (o == NULL)
        return;
    outlet_close(o, k->loop, k->pens.open || !k->spawner.sparing);
    o->ready = NULL;
    list_push_front(&k->retired, &o->link);
}

/* ---- a process ---- */

void group_due(struct process *p) {
    if (!list_linked(&p->due) && !p->group->closed)
        list_push_back(&p->group->kernel->due, &p->due);
}

static void inlet_moved(struct inlet *i) {
    group_due(CONTAINER_OF(i, struct process, in));
}

static size_t window_of(const struct group *g) {
    size_t w = g->recipe->setup.window;
    return w < WINDOW_MIN ? WINDOW_MIN : w;
}

/* A second stream that is there but stays empty: the first has it all. */
static struct outlet *no_outlet(struct kernel *k) {
    struct outlet *o = take_memory(k);
    ASSERT(o != NULL);
    *o = (struct outlet){.near = {.fd = -1}, .far = -1};
    list_init(&o->link);
    return o;
}

/* A terminal is input and output in one. */
static int open_terminal(struct process *p) {
    struct kernel *k = p->group->kernel;
    const struct spec *spec = &p->group->recipe->spec;
    int person, process;
    int r = pty_open(&person, &process);
    if (r < 0)
        return r;
    pty_size(person, spec->columns, spec->rows);
    p->out[0] = take_memory(k);
    p->out[1] = no_outlet(k);
    ASSERT(p->out[0] != NULL);
    r = outlet_adopt(p->out[0], k->loop, person, process);
    if (r < 0)
        return r;
    p->out[0]->terminal = true;
    int keys = fcntl(person, F_DUPFD_CLOEXEC, 3);
    if (keys < 0)
        return -errno;
    inlet_adopt(&p->in, k->loop, keys, window_of(p->group));
    return 0;
}

static int open_pipes(struct process *p) {
    struct kernel *k = p->group->kernel;
    int r = 0;
    p->out[0] = take_outlet(k, &r);
    if (r == 0)
        p->out[1] = p->group->recipe->spec.merged ? no_outlet(k) : take_outlet(k, &r);
    if (r == 0 && recipe_listens(p->group->recipe, p->index))
        r = inlet_open(&p->in, k->loop, window_of(p->group));
    return r;
}

static int process_open(struct process *p) {
    struct group *g = p->group;
    bool terminal = recipe_terminal(g->recipe, p->index);
    int r = terminal ? open_terminal(p) : open_pipes(p);
    p->in.moved = inlet_moved;
    for (int i = 0; i < 2; i++)
        if (p->out[i] != NULL)
            outlet_begin(p->out[i], p, &g->kernel->readable, window_of(g));
    return r;
}

/* ---- a group ---- */

/* What cannot be decoded has one process, which fails. */
static uint32_t count_in(struct bytes setup) {
    struct setup s;
    return setup_decode(setup, &s) < 0 ? 1 : s.count;
}

static struct group *allocate(struct kernel *k, uint32_t count) {
    struct group *g = calloc(1, sizeof *g + (size_t)count * sizeof g->processes[0]);
    if (g == NULL)
        return NULL;
    g->kernel = k;
    g->count = count;
    list_init(&g->watch);
    list_init(&g->due);
    list_push_back(&k->all, &g->link);
    for (uint32_t i = 0; i < count; i++) {
        struct process *p = &g->processes[i];
        p->group = g;
        p->index = i;
        p->ration = RATION_EMPTY;
        list_init(&p->due);
        inlet_none(&p->in);
    }
    return g;
}

static void fail(struct group *g, enum spawn_step step, int error) {
    g->step = step;
    g->error = error;
}

/* The kernel is about to end somebody, or has just done so. */
static void rang(struct source *s, uint32_t events) {
    struct process *p = CONTAINER_OF(s, struct process, famine);
    uint64_t times;
    (void)events;
    if (read(s->fd, &times, sizeof times) < 0)
        return;
    p->famished = FAMINE_LOOKS;
    p->group->kernel->famine = true;
}

static int make_ration(struct process *p, uint64_t bytes) {
    struct kernel *k = p->group->kernel;
    int r = ration_make(&k->rations, &p->ration, p->group->cgroup, p->index, bytes);
    p->famine = (struct source){.fd = p->ration.alarm, .ready = rang};
    return r < 0 || p->famine.fd < 0 ? r : loop_add(k->loop, &p->famine, EPOLLIN);
}

/* Where memory cannot be limited for a process and all that it starts, each of them gets a limit of its own on what it
 * allocates. */
static void make_rations(struct group *g) {
    struct kernel *k = g->kernel;
    uint64_t bytes = g->recipe->spec.memory;
    g->loose = rations_means(&k->rations, k->pooled ? &k->cgroups : NULL) == RATION_NONE ||
               (k->rations.means == RATION_UNIFIED && g->cgroup == NULL);
    if (g->loose)
        recipe_bound(g->recipe, &k->spawner.inherited, bytes);
    for (uint32_t i = 0; !g->loose && i < g->count && g->error == 0; i++) {
        int r = make_ration(&g->processes[i], bytes);
        if (r < 0)
            fail(g, SPAWN_LIMITS, r);
    }
}

static void end_rations(struct group *g) {
    struct kernel *k = g->kernel;
    for (uint32_t i = 0; i < g->count; i++) {
        struct process *p = &g->processes[i];
        if (p->ration.folder < 0)
            continue;
        if (p->ration.alarm >= 0)
            loop_remove(k->loop, &p->famine);
        ration_end(&k->rations, &p->ration, g->cgroup);
    }
}

struct group *group_new(struct kernel *k, uint32_t id, struct bytes setup) {
    int r;
    struct group *g = allocate(k, count_in(setup));
    bool small = g == NULL;
    if (small)
        g = allocate(k, 1);
    ASSERT(g != NULL);
    g->id = id;
    g->recipe = small ? NULL : recipe_new(setup, &k->spawner.inherited, &r);
    if (g->recipe == NULL) {
        fail(g, SPAWN_PROGRAM, small ? -ENOMEM : r);
        return g;
    }
    for (uint32_t i = 0; i < g->count && g->error == 0; i++) {
        r = process_open(&g->processes[i]);
        if (r < 0)
            fail(g, SPAWN_STDIO, r);
    }
    if (k->pooled)
        g->cgroup = cgroups_take(&k->cgroups);
    else if (k->pens.open && g->error == 0) {
        g->pen = pens_take(&k->pens, &r);
        if (g->pen == NULL)
            fail(g, SPAWN_FORK, r);
    }
    if (g->recipe->spec.memory > 0 && g->error == 0)
        make_rations(g);
    if (g->error == 0)
        g->bell = bell_take(&k->callers, id); /* without one nobody can talk, that is all */
    return g;
}

/* Nothing is left in its cgroup: the next run can have it, though what is known of this one stays. */
void group_leave(struct group *g) {
    struct kernel *k = g->kernel;
    if (g->recipe != NULL && g->recipe->spec.memory > 0)
        end_rations(g);
    if (g->cgroup != NULL)
        cgroups_give(&k->cgroups, g->cgroup, k->loop);
    g->cgroup = NULL;
    if (g->pen != NULL)
        pens_give(&k->pens, g->pen, k->loop);
    g->pen = NULL;
}

void group_free(struct group *g) {
    struct kernel *k = g->kernel;
    for (uint32_t i = 0; i < g->count; i++) {
        struct process *p = &g->processes[i];
        list_remove(&p->due);
        inlet_close(&p->in);
        for (int o = 0; o < 2; o++)
            free_outlet(k, p->out[o]);
    }
    bell_close(g->bell);
    group_leave(g);
    list_remove(&g->link);
    list_remove(&g->watch);
    list_remove(&g->due);
    sweep_fini(&g->known);
    sweep_fini(&g->stopped);
    recipe_free(g->recipe);
    free(g);
}

/* ---- start ---- */

/* The group that it is born in; -1: ours. */
static int birthplace(const struct process *p) {
    const struct cgroup *c = p->group->cgroup;
    return c == NULL ? -1 : c->divided ? p->ration.folder : c->folder;
}

static void start_process(struct process *p) {
    struct group *g = p->group;
    struct kernel *k = g->kernel;
    enum spawn_step step = g->step;
    pid_t pid = g->error;
    struct cpuset seat;
    if (pid == 0) {
        bool terminal = p->out[0]->terminal;
        int out = p->out[0]->far, error = p->out[1]->far;
        struct place place = {.stdio = {terminal         ? out
                                        : p->in.far >= 0 ? p->in.far
                                                         : k->null,
                                        out, error >= 0 ? error : out},
                              .terminal = terminal,
                              .bell = g->bell == NULL ? 0 : g->bell->far,
                              .cgroup = birthplace(p),
                              .ration = p->ration.door,
                              .processors = stall_seat(p, &seat) ? seat.bits : NULL,
                              .processors_bytes = k->home.bytes,
                              .door = g->pen != NULL ? g->pen->end.fd : -1,
                              .user = k->pens.user};
        pid = spawn(&k->spawner, recipe_for(g->recipe, p->index), &place, p->index, &step);
    }
    p->start = (struct input_child){.group = g->id,
                                    .index = p->index,
                                    .event = pid < 0 ? CHILD_FAILED : CHILD_STARTED,
                                    .value = (uint32_t)(pid < 0 ? -pid : pid),
                                    .step = step,
                                    .loose = g->loose && pid > 0};
    p->start_due = true;
    group_due(p);
    inlet_release(&p->in);
    if (g->pen != NULL && (pid > 0 || pid == -EIO)) /* or nobody knows what has become of it */
        g->pen->used = true;
    if (pid < 0)
        return;
    if (g->bound)
        home_bind(pid, k->config.first, p->index);
    p->pid = pid;
    p->live = true;
    g->live++;
    k->childless = false;
}

/* A process that is born frozen never executes, and we would wait for that. */
void group_start(struct group *g) {
    bool frozen = g->frozen;
    if (g->killed && g->error == 0)
        fail(g, SPAWN_FORK, -ECANCELED);
    if (frozen)
        herd_freeze(g, false);
    if (g->error == 0 && stall_binds(g))
        stall_tell(g);
    g->began_ns = files_now_ns();
    for (uint32_t i = 0; i < g->count; i++)
        start_process(&g->processes[i]);
    for (uint32_t i = 0; g->count > HOLD_MAX && i < g->count; i++)
        for (int o = 0; o < 2; o++)
            if (g->processes[i].out[o] != NULL)
                outlet_release(g->processes[i].out[o]);
    g->started = true;
    if (g->kernel->home.settled && g->cgroup != NULL && g->live > 0 && !stall_binds(g))
        g->leave_at = g->kernel->loop->now + LEAVE_NS;
    if (frozen)
        herd_freeze(g, true);
}
