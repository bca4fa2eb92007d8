/* SPDX-License-Identifier: MIT */
/* Processes for a launcher: see kernel.h. */
#include "os/detect.h"
#include "os/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/corefile.h"
#include "os/group.h"
#include "os/hurry.h"
#include "os/pty.h"
#include "wire/message.h"

#define STARVED_NS (100 * NS_PER_MS) /* before memory is asked for again */
#define FAMINE_NS  (1 * NS_PER_MS)   /* before it is asked again whether somebody was ended */
enum { POLL_STACK = 64 };            /* descriptors asked about without asking for memory */
enum { FREE_MS = 10, FREE_TIMES = 200 };

/* ---- ends of processes ---- */

static void children_ready(struct source *s, uint32_t events) {
    (void)events;
    struct kernel *k = CONTAINER_OF(s, struct kernel, children);
    struct signalfd_siginfo info;
    while (read(s->fd, &info, sizeof info) < 0 && errno == EINTR)
        ;
    k->children_ready = true;
}

static struct process *find_live(struct kernel *k, pid_t pid) {
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        for (uint32_t i = 0; i < g->count && g->live > 0; i++)
            if (g->processes[i].live && g->processes[i].pid == pid)
                return &g->processes[i];
    }
    return NULL;
}

static void watch(struct group *g) {
    g->kernel->look = true;
    if (!list_linked(&g->watch) && !g->empty)
        list_push_back(&g->kernel->watch, &g->watch);
}

/* What it has started and left behind has used the same memory, and goes with it. */
static bool exceeded(struct process *p) {
    struct kernel *k = p->group->kernel;
    bool well = p->end.event == CHILD_EXITED && p->end.value == 0;
    if (well || !ration_exceeded(&k->rations, &p->ration))
        return false;
    cgroup_signal_in(p->ration.folder, SIGKILL);
    return true;
}

/* Before anybody hears of its end, and asks for it. */
static void collect_core(const struct process *p, int signal) {
    const struct recipe *r = recipe_for(p->group->recipe, p->index);
    char name[NAME_MAX + 1];
    if (!r->spec.cores || recipe_own(r) == NULL || r->folder == NULL)
        return;
    snprintf(name, sizeof name, "core.%u.%u.%.*s", run_job(r->setup.run),
             setup_rank(&r->setup, p->index), (int)r->setup.node_name.len,
             (const char *)r->setup.node_name.at);
    struct corefile c = {.folder = r->folder,
                         .own = recipe_own(r),
                         .name = name,
                         .pid = p->pid,
                         .signal = signal,
                         .apart = p->group->pen != NULL,
                         .began_ns = p->group->began_ns};
    corefile_collect(&c);
}

static void process_ended(struct process *p, int status, const struct rusage *used) {
    struct group *g = p->group;
    bool exited = WIFEXITED(status);
    p->live = false;
    meter_ended(g, used);
    p->end =
        (struct input_child){.group = g->id,
                             .index = p->index,
                             .event = exited ? CHILD_EXITED : CHILD_KILLED,
                             .value = (uint32_t)(exited ? WEXITSTATUS(status) : WTERMSIG(status))};
    if (exceeded(p)) {
        p->end.event = CHILD_EXCEEDED;
        p->end.value = (uint32_t)(p->ration.bytes / MEMORY_UNIT);
    }
    if (!exited && WCOREDUMP(status))
        collect_core(p, WTERMSIG(status));
    p->end_due = true;
    group_due(p);
    if (--g->live == 0)
        watch(g);
}

/* Does anything run that only waiting can tell about? */
static bool expecting(const struct kernel *k) {
    LIST_EACH (l, &k->all) {
        const struct group *g = CONTAINER_OF(l, struct group, link);
        if (g->live > 0 || (g->started && !g->empty && g->cgroup == NULL))
            return true;
    }
    return false;
}

/* Orphans that have come to us are waited for too, and not told about. */
static void reap(struct kernel *k, bool all) {
    k->children_ready = k->childless = false;
    k->look = true;
    while (all || expecting(k)) {
        struct rusage used;
        int status = 0;
        pid_t pid = wait4(-1, &status, WNOHANG, &used);
        if (pid <= 0) {
            k->childless = pid < 0 && errno == ECHILD;
            return;
        }
        struct process *p = find_live(k, pid);
        if (p != NULL)
            process_ended(p, status, &used);
    }
}

/* ---- groups that become empty ---- */

static void ask(struct pollfd *fds, struct outlet **outlets, uint32_t count) {
    int n = poll(fds, count, 0);
    for (uint32_t i = 0; i < count; i++)
        outlet_seal(outlets[i], outlets[i]->readable || n < 0 || fds[i].revents != 0);
}

/* What is in the pipes now is all there will be. One call asks about many of them. */
static void seal(struct group *g) {
    struct pollfd fds[POLL_STACK];
    struct outlet *outlets[POLL_STACK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 2 * g->count; i++) {
        struct process *p = &g->processes[i / 2];
        struct outlet *o = p->out[i % 2];
        group_due(p);
        if (o == NULL || o->ended)
            continue;
        fds[count] = (struct pollfd){.fd = o->near.fd, .events = POLLIN};
        outlets[count++] = o;
        if (count == POLL_STACK) {
            ask(fds, outlets, count);
            count = 0;
        }
    }
    if (count > 0)
        ask(fds, outlets, count);
}

static void group_emptied(struct group *g) {
    struct kernel *k = g->kernel;
    g->empty = true;
    g->usage = meter_read(g);
    list_remove(&g->watch);
    if (g->closed) {
        list_push_back(&k->doomed, &g->due);
        return;
    }
    seal(g);
    list_push_back(&k->due_groups, &g->due);
}

static void look_after(struct kernel *k) {
    k->look = false;
    LIST_EACH_SAFE (l, &k->watch) {
        struct group *g = CONTAINER_OF(l, struct group, watch);
        if (herd_gone(g))
            group_emptied(g);
        else if (g->killed && g->sweep_at <= k->loop->now)
            herd_kill(g);
    }
}

/* Those that were killed are looked after from time to time, whatever happens. */
static void wake_for_watch(struct kernel *k) {
    LIST_EACH (l, &k->watch) {
        struct group *g = CONTAINER_OF(l, struct group, watch);
        if (g->killed && g->sweep_at != UINT64_MAX)
            loop_wake_at(k->loop, g->sweep_at);
    }
}

static bool watch_due(const struct kernel *k) {
    LIST_EACH (l, &k->watch) {
        const struct group *g = CONTAINER_OF(l, struct group, watch);
        if (g->killed && g->sweep_at <= k->loop->now)
            return true;
    }
    return false;
}

/* ---- telling ---- */

static void fill(struct kernel *k) {
    list_move_all(&k->readable, &k->starved);
    for (struct list *l; (l = list_pop_front(&k->readable)) != NULL;) {
        struct outlet *o = CONTAINER_OF(l, struct outlet, link);
        outlet_fill(o);
        if (outlet_thirsty(o))
            list_push_back(&k->starved, &o->link);
        group_due(o->owner);
    }
}

static bool next_stream(struct process *p, struct input *in) {
    for (uint8_t i = 0; i < 2; i++)
        if (p->out[i] != NULL && outlet_next(p->out[i], &in->stream)) {
            in->kind = INPUT_STREAM;
            in->stream.group = p->group->id;
            in->stream.index = p->index;
            in->stream.stream = (uint8_t)(i + 1);
            return true;
        }
    return false;
}

static bool next_of_process(struct process *p, struct input *in) {
    if (p->start_due) {
        p->start_due = false;
        in->kind = INPUT_CHILD;
        in->child = p->start;
        return true;
    }
    if (next_stream(p, in))
        return true;
    if (inlet_next(&p->in, &in->drained.offset)) {
        in->kind = INPUT_DRAINED;
        in->drained.group = p->group->id;
        in->drained.index = p->index;
        return true;
    }
    if (p->end_due) {
        p->end_due = false;
        in->kind = INPUT_CHILD;
        in->child = p->end;
        return true;
    }
    return false;
}

/* Somebody wants to know what these have used until now. */
static bool next_measured(struct kernel *k, struct input *in) {
    for (uint32_t i = 0; k->measuring && i < k->config.groups; i++) {
        struct group *g = k->groups[i];
        if (g == NULL || !g->measure_due)
            continue;
        g->measure_due = false;
        if (g->empty)
            continue;
        in->kind = INPUT_MEASURED;
        in->measured.group = i;
        in->measured.usage = meter_read(g);
        return true;
    }
    k->measuring = false;
    return false;
}

static bool next_input(struct kernel *k, struct input *in) {
    *in = (struct input){.now = k->loop->now};
    for (struct list *l; (l = list_first(&k->due)) != NULL; list_remove(l))
        if (next_of_process(CONTAINER_OF(l, struct process, due), in))
            return true;
    if (callers_next(&k->callers, &in->petition)) {
        in->kind = INPUT_PETITION;
        return true;
    }
    struct list *l = list_pop_front(&k->due_groups);
    if (l == NULL)
        return next_measured(k, in);
    struct group *g = CONTAINER_OF(l, struct group, due);
    g->empty_told = true;
    group_leave(g);
    in->kind = INPUT_EMPTY;
    in->empty.group = g->id;
    in->empty.usage = g->usage;
    return true;
}

static void free_doomed(struct kernel *k) {
    if (list_empty(&k->doomed))
        return;
    for (struct list *l; (l = list_pop_front(&k->doomed)) != NULL;)
        group_free(CONTAINER_OF(l, struct group, due));
    kernel_stock(k);
    bells_stock(&k->callers);
    if (k->pooled)
        cgroups_stock(&k->cgroups);
    if (k->pens.open)
        pens_stock(&k->pens);
    reap(k, true);
}

/* Seldom: most processes do not live that long, and a node has few. */
static void let_leave(struct kernel *k) {
    if (!k->home.settled)
        return;
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        if (g->leave_at != 0 && g->leave_at <= k->loop->now)
            herd_leave(g);
        if (g->leave_at != 0 && !g->empty)
            loop_wake_at(k->loop, g->leave_at);
    }
}

/* Has the kernel ended one of these? Then the process and all that it has started go together. */
static void relieve_group(struct group *g) {
    struct kernel *k = g->kernel;
    for (uint32_t i = 0; i < g->count; i++) {
        struct process *p = &g->processes[i];
        if (p->famished == 0)
            continue;
        bool over = ration_exceeded(&k->rations, &p->ration);
        if (over)
            cgroup_signal_in(p->ration.folder, SIGKILL);
        p->famished = over ? 0 : p->famished - 1;
        k->famine = k->famine || p->famished > 0;
    }
}

static void relieve(struct kernel *k) {
    k->famine = false;
    LIST_EACH (l, &k->all)
        relieve_group(CONTAINER_OF(l, struct group, link));
    if (k->famine)
        loop_wake_at(k->loop, k->loop->now + FAMINE_NS);
}

void kernel_settle(struct kernel *k) {
    struct input in;
    if (k->famine)
        relieve(k);
    if (k->children_ready)
        reap(k, false);
    k->look = k->look || watch_due(k);
    do {
        look_after(k);
        fill(k);
        while (next_input(k, &in))
            k->config.feed(k->config.context, &in);
        free_doomed(k);
    } while (k->look);
    wake_for_watch(k);
    let_leave(k);
    if (!list_empty(&k->readable))
        loop_wake_at(k->loop, k->loop->now); /* there is room again */
    else if (!list_empty(&k->starved))
        loop_wake_at(k->loop, k->loop->now + STARVED_NS);
}

/* ---- carrying out ---- */

static void kill_group(struct group *g) {
    g->killed = true;
    if (g->empty)
        return;
    if (g->started)
        herd_kill(g);
    watch(g);
}

static void resize(struct group *g, uint32_t columns, uint32_t rows) {
    for (uint32_t i = 0; i < g->count; i++)
        if (g->processes[i].out[0] != NULL && g->processes[i].out[0]->terminal)
            pty_size(g->processes[i].out[0]->near.fd, columns, rows);
}

/* Nothing more is told of it. Its memory stays for the moment: bytes of it may be on their way. */
static void close_group(struct group *g) {
    struct kernel *k = g->kernel;
    k->groups[g->id] = NULL;
    g->closed = true;
    if (g->bell != NULL)
        bell_silence(g->bell);
    list_remove(&g->due);
    for (uint32_t i = 0; i < g->count; i++)
        list_remove(&g->processes[i].due);
    if (g->started && !g->empty) {
        kill_group(g);
        return;
    }
    list_remove(&g->watch);
    list_push_back(&k->doomed, &g->due);
}

static void carry_group(struct kernel *k, enum effect_kind kind, const struct effect_group *e) {
    ASSERT(e->group < k->config.groups);
    struct group *g = k->groups[e->group];
    if (kind == EFFECT_GROUP_OPEN) {
        ASSERT(g == NULL);
        k->groups[e->group] = group_new(k, e->group, e->setup);
        return;
    }
    if (g == NULL)
        return;
    if (kind == EFFECT_GROUP_START && !g->started) {
        g->bound = e->value != 0 && g->count == k->config.pes && k->config.system_cores == 0 &&
                   !stall_binds(g);
        group_start(g);
        if (g->live == 0)
            watch(g);
    } else if (kind == EFFECT_GROUP_SIGNAL && e->one > 0)
        herd_poke(g, e->one - 1, (int)e->value);
    else if (kind == EFFECT_GROUP_SIGNAL)
        herd_signal(g, (int)e->value);
    else if (kind == EFFECT_GROUP_FREEZE)
        herd_freeze(g, e->value != 0);
    else if (kind == EFFECT_GROUP_KILL)
        kill_group(g);
    else if (kind == EFFECT_GROUP_CLOSE)
        close_group(g);
    else if (kind == EFFECT_GROUP_SIZE)
        resize(g, e->value, e->rows);
    else if (kind == EFFECT_GROUP_MEASURE && g->started)
        g->measure_due = k->measuring = true;
}

static void feed_process(struct process *p, const struct effect_stream *e) {
    inlet_feed(&p->in, e->offset, e->bytes, e->end);
    group_due(p);
}

static void carry_output(struct process *p, enum effect_kind kind, const struct effect_stream *e) {
    struct kernel *k = p->group->kernel;
    struct outlet *o = e->stream == 1 || e->stream == 2 ? p->out[e->stream - 1] : NULL;
    if (o == NULL)
        return;
    if (kind == EFFECT_STREAM_AGAIN) {
        outlet_again(o, e->offset);
        group_due(p);
        return;
    }
    outlet_taken(o, e->offset);
    if (outlet_thirsty(o) && !list_linked(&o->link))
        list_push_back(&k->readable, &o->link);
}

static void carry_stream(struct kernel *k, enum effect_kind kind, const struct effect_stream *e) {
    ASSERT(e->group < k->config.groups);
    struct group *g = k->groups[e->group];
    if (g == NULL)
        return;
    if (kind == EFFECT_STREAM_FEED && e->index == UINT32_MAX)
        for (uint32_t i = 0; i < g->count; i++)
            feed_process(&g->processes[i], e);
    else if (e->index >= g->count)
        return;
    else if (kind == EFFECT_STREAM_FEED)
        feed_process(&g->processes[e->index], e);
    else
        carry_output(&g->processes[e->index], kind, e);
}

bool kernel_wants(enum effect_kind kind) {
    return (kind >= EFFECT_GROUP_OPEN && kind <= EFFECT_STREAM_FEED) ||
           (kind >= EFFECT_PETITION_READ && kind <= EFFECT_PETITION_CLOSE);
}

void kernel_carry(struct kernel *k, const struct effect *e) {
    if (e->kind >= EFFECT_GROUP_OPEN && e->kind <= EFFECT_GROUP_MEASURE)
        carry_group(k, e->kind, &e->group);
    else if (e->kind >= EFFECT_STREAM_TAKEN && e->kind <= EFFECT_STREAM_FEED)
        carry_stream(k, e->kind, &e->stream);
    else if (e->kind >= EFFECT_PETITION_READ && e->kind <= EFFECT_PETITION_CLOSE)
        callers_carry(&k->callers, e->kind, &e->petition);
}

/* ---- life ---- */

enum guarantee kernel_guarantee(const struct kernel *k) {
    return k->pooled ? GUARANTEE_CGROUP : k->pens.open ? GUARANTEE_NAMESPACE : GUARANTEE_SUBREAPER;
}

const char *kernel_notice(const struct kernel *k) {
    return k->notice[0] == '\0' ? NULL : k->notice;
}

static void lists_init(struct kernel *k) {
    list_init(&k->all);
    list_init(&k->watch);
    list_init(&k->due);
    list_init(&k->due_groups);
    list_init(&k->doomed);
    list_init(&k->readable);
    list_init(&k->starved);
    list_init(&k->spare);
    list_init(&k->retired);
}

/* Above the descriptors that a process is given. */
static int open_null(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < 3);
    return fd < 0 ? -errno : fd;
}

/* A write to a process that is gone is an error like any other; stops are no news. */
static int take_signals(struct kernel *k) {
    struct sigaction plain = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP};
    sigset_t set, children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    set = children;
    sigaddset(&set, SIGPIPE);
    sigaction(SIGCHLD, &plain, NULL);
    sigprocmask(SIG_BLOCK, &set, &k->mask_before);
    k->children.fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->children.fd < 0)
        return -errno;
    return loop_add(k->loop, &k->children, EPOLLIN);
}

/* One that came because nobody read what we wrote must not hit us now. */
static void give_signals(struct kernel *k) {
    sigset_t pipe;
    struct timespec at_once = {0};
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (sigismember(&k->mask_before, SIGPIPE) == 0)
        sigtimedwait(&pipe, NULL, &at_once);
    sigprocmask(SIG_SETMASK, &k->mask_before, NULL);
}

/* A folder where processes cannot be born is of no use. */
static void open_pool(struct kernel *k, const char *path) {
    int r = cgroups_init(&k->cgroups, path);
    if (r == 0) {
        struct cgroup *c = cgroups_take(&k->cgroups);
        struct place place = {.cgroup = c->folder, .door = -1, .user = -1, .ration = -1};
        r = spawn_probe(&k->spawner, &place);
        cgroups_give(&k->cgroups, c, k->loop);
        if (r < 0)
            cgroups_fini(&k->cgroups);
    }
    k->pooled = r == 0;
    if (r < 0)
        snprintf(k->notice, sizeof k->notice, "cgroup %.80s cannot be used: %s", path,
                 strerror(-r));
}

/* Adds to what is to be said about the guarantee. */
static void open_pens(struct kernel *k) {
    struct pens_trouble t;
    size_t len = strlen(k->notice);
    int r = pens_init(&k->pens, &t);
    if (r == 0) {
        struct pen *pen = pens_take(&k->pens, &r);
        struct place place = {
            .cgroup = -1, .door = pen->end.fd, .user = k->pens.user, .ration = -1};
        r = spawn_probe(&k->spawner, &place);
        pens_give(&k->pens, pen, k->loop);
        if (r < 0) {
            snprintf(t.words, sizeof t.words, "pid namespaces cannot be entered: %s", strerror(-r));
            pens_fini(&k->pens);
        }
    }
    if (r < 0)
        snprintf(k->notice + len, sizeof k->notice - len, "%s%s", len > 0 ? ", " : "", t.words);
}

static void open_confines(struct kernel *k) {
    enum confine c = k->config.confine;
    if (k->config.cgroup != NULL && (c == CONFINE_AUTO || c == CONFINE_CGROUP))
        open_pool(k, k->config.cgroup);
    if (!k->pooled && (c == CONFINE_AUTO || c == CONFINE_NAMESPACE))
        open_pens(k);
}

/* What we have from whoever started us is not for our children either. */
static int begin(struct kernel *k) {
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    int r = spawner_init(&k->spawner);
    k->spawner.hurried = k->config.hurry && hurry(&k->spawner.usual);
    k->spawner.inherited.each = k->config.each;
    k->spawner.inherited.at = k->config.at;
    k->spawner.inherited.objects = k->config.objects;
    k->spawner.inherited.root = k->config.root;
    k->spawner.inherited.gpus = detect_gpus();
    k->spawner.inherited.bell = k->config.bell;
    if (r == 0) {
        k->null = open_null();
        r = k->null < 0 ? k->null : 0;
    }
    if (r == 0)
        r = take_signals(k);
    if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        r = -errno;
    if (r < 0)
        return r;
    open_confines(k);
    rations_init(&k->rations, k->config.rations);
    home_settle(&k->home, k->pooled ? k->config.home : 0);
    stall_open(k);
    kernel_stock(k);
    bells_stock(&k->callers);
    reap(k, true);
    return 0;
}

struct kernel *kernel_new(const struct kernel_config *config, int *ret_error) {
    struct kernel *k = calloc(1, sizeof *k);
    *ret_error = -ENOMEM;
    if (k == NULL)
        return NULL;
    *k = (struct kernel){.config = *config, .loop = config->loop, .null = -1};
    k->children = (struct source){.fd = -1, .ready = children_ready};
    k->cgroups.folder = k->rations.folder = -1;
    k->pens = (struct pens){.user = -1, .self = -1};
    list_init(&k->pens.spare);
    callers_init(&k->callers, k->loop, config->bell > 0 ? config->petitioners : 0);
    lists_init(k);
    sigprocmask(SIG_BLOCK, NULL, &k->mask_before);
    k->groups = calloc(config->groups, sizeof(struct group *));
    *ret_error = k->groups == NULL ? -ENOMEM : begin(k);
    if (*ret_error == 0)
        return k;
    kernel_free(k);
    return NULL;
}

/* What was killed is gone soon, unless the kernel itself is stuck. */
static void end_all(struct kernel *k) {
    for (uint32_t i = 0; k->groups != NULL && i < k->config.groups; i++)
        if (k->groups[i] != NULL)
            close_group(k->groups[i]);
    for (int i = 0; i < FREE_TIMES && !list_empty(&k->watch); i++) {
        struct pollfd p = {.fd = k->children.fd, .events = POLLIN};
        if (poll(&p, 1, FREE_MS) > 0)
            children_ready(&k->children, 0);
        k->loop->now = clock_ns();
        reap(k, true);
        look_after(k);
    }
    for (struct list *l; (l = list_first(&k->all)) != NULL;)
        group_free(CONTAINER_OF(l, struct group, link));
}

void kernel_free(struct kernel *k) {
    if (k == NULL)
        return;
    end_all(k);
    for (struct list *l; (l = list_pop_front(&k->spare)) != NULL;) {
        struct outlet *o = CONTAINER_OF(l, struct outlet, link);
        outlet_close(o, k->loop, true);
        free(o);
    }
    for (struct list *l; (l = list_pop_front(&k->retired)) != NULL;)
        free(CONTAINER_OF(l, struct outlet, link));
    if (k->pooled)
        cgroups_fini(&k->cgroups);
    rations_fini(&k->rations);
    topology_fini(&k->topology);
    pens_fini(&k->pens);
    if (k->children.fd >= 0) {
        loop_remove(k->loop, &k->children);
        close(k->children.fd);
    }
    if (k->null >= 0)
        close(k->null);
    callers_fini(&k->callers);
    give_signals(k);
    spawner_fini(&k->spawner);
    sweep_fini(&k->sweep);
    free(k->groups);
    free(k);
}
