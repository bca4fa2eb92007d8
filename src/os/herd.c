/* SPDX-License-Identifier: MIT */
/* What is done to all processes of a group: by its cgroup, its pid namespace, or one by one.
 *
 * A pid namespace is ended by ending its keeper. For other signals, and for everything where there is
 * no namespace either, processes are found by descent: a group's own processes are known, what descends from
 * them is below them, and what has lost its parent is our child now. Such an orphan is told by its
 * session (that of the group's process, unless it made one of its own), then by its environment, then
 * because it was found before; if nothing helps it belongs to the only group there is, or to nobody. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/group.h"
#include "wire/message.h"

enum { ROUNDS = 16 }; /* of looking for more, in one turn */
#define PAUSE_MIN_NS (1 * NS_PER_MS)
#define PAUSE_MAX_NS (64 * NS_PER_MS)

/* ---- whose is it? ---- */

static struct process *process_of(struct kernel *k, pid_t pid, bool live) {
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        for (uint32_t i = 0; i < g->count && (!live || g->live > 0); i++)
            if (g->processes[i].pid == pid && (!live || g->processes[i].live))
                return &g->processes[i];
    }
    return NULL;
}

static struct group *kept_by(struct kernel *k, pid_t pid) {
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        if (g->pen != NULL && g->pen->keeper == pid)
            return g;
    }
    return NULL;
}

/* What keepers have below them is a run's; they themselves are not. */
static bool keeps(struct kernel *k, pid_t pid) {
    return k->pens.open && (kept_by(k, pid) != NULL || pens_keeps(&k->pens, pid));
}

static bool runs_here(const struct group *g) {
    return g->started && !g->empty && g->cgroup == NULL;
}

static struct group *by_environment(struct kernel *k, pid_t pid) {
    uint64_t job, rank;
    if (!sweep_variable(pid, "STORM_JOB_ID", &job) || !sweep_variable(pid, "STORM_RANK", &rank))
        return NULL;
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        if (runs_here(g) && g->recipe != NULL && run_job(g->recipe->setup.run) == job &&
            rank <= UINT32_MAX && setup_has(&g->recipe->setup, (uint32_t)rank))
            return g;
    }
    return NULL;
}

/* One that is just ending has no environment any more. */
static struct group *by_memory(struct kernel *k, pid_t pid) {
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        if (runs_here(g) && sweep_has(&g->known, pid))
            return g;
    }
    return NULL;
}

static struct group *only_group(struct kernel *k) {
    struct group *only = NULL;
    LIST_EACH (l, &k->all) {
        struct group *g = CONTAINER_OF(l, struct group, link);
        if (!runs_here(g))
            continue;
        if (only != NULL)
            return NULL;
        only = g;
    }
    return only;
}

static struct group *owner(struct kernel *k, pid_t top) {
    struct group *g = k->pens.open ? kept_by(k, top) : NULL;
    if (g != NULL)
        return g;
    struct process *p = process_of(k, top, true);
    pid_t session = p == NULL ? getsid(top) : 0;
    if (session > 0)
        p = process_of(k, session, false);
    if (p != NULL)
        return p->group;
    g = by_environment(k, top);
    if (g == NULL)
        g = by_memory(k, top);
    return g != NULL ? g : only_group(k);
}

/* ---- all of them ---- */

/* A signal on its way to all of a group, once to each. */
struct shot {
    struct group *group, *of;
    bool alone; /* no other group runs: whatever is found belongs to this one */
    pid_t top;  /* the last one asked about, `of` is its group */
    int number;
    bool freezes;
    uint32_t hit; /* in this round */
    struct sweep done;
};

static void hit_found(void *context, struct descendant d) {
    struct shot *s = context;
    if (!s->alone && d.top != s->top)
        s->of = owner(s->group->kernel, d.top);
    s->top = d.top;
    if (s->of != s->group || sweep_has(&s->done, d.pid) || keeps(s->group->kernel, d.pid))
        return;
    if (s->freezes && sweep_stopped(d.pid))
        sweep_add(&s->group->stopped, d);
    else
        kill(d.pid, s->number);
    s->hit += sweep_add(&s->done, d) == 0;
}

/* Until a look finds none that was not there before: what is born meanwhile, or moves to us because
 * its parent ends, is missed by one look but not by the next. What can make a process end is sent
 * after a look, not during it, so that it moves as little as possible; what stops it, at once. */
static void signal_found(struct group *g, int number, bool freezes) {
    struct sweep *sweep = &g->kernel->sweep;
    bool at_once = number == SIGSTOP;
    struct shot s = {.group = g, .of = g, .number = number, .freezes = freezes};
    s.alone = only_group(g->kernel) == g;
    for (int i = 0; i < ROUNDS; i++) {
        s.hit = 0;
        int r = sweep_all(sweep, at_once ? hit_found : NULL, &s);
        for (uint32_t d = 0; !at_once && d < sweep->count; d++)
            hit_found(&s, sweep->at[d]);
        if (r < 0 || s.hit == 0)
            break;
    }
    sweep_fini(&g->known);
    g->known = s.done;
}

void herd_signal(struct group *g, int number) {
    if (g->cgroup != NULL)
        cgroup_signal(g->cgroup, number);
    else if (g->frozen && number == SIGCONT)
        sweep_fini(&g->stopped); /* it would let all of them go: when they are */
    else if (g->started && !g->empty)
        signal_found(g, number, false);
}

/* As long as nobody has waited for it, its number is nobody else's. What would let it go while others have their turn does so when
 * its own comes. */
void herd_poke(struct group *g, uint32_t index, int number) {
    ASSERT(index < g->count);
    const struct process *p = &g->processes[index];
    if (p->live && g->cgroup == NULL && g->frozen && number == SIGCONT)
        sweep_drop(&g->stopped, p->pid);
    else if (p->live)
        kill(p->pid, number);
}

/* By stopping them: what was stopped before stays so afterwards. */
static void hold(struct group *g) {
    sweep_fini(&g->stopped);
    if (g->started && !g->empty)
        signal_found(g, SIGSTOP, true);
}

/* Whoever was stopped cannot have begun another. */
static void let_go(struct group *g) {
    for (uint32_t i = 0; i < g->known.count; i++)
        if (!sweep_has(&g->stopped, g->known.at[i].pid))
            kill(g->known.at[i].pid, SIGCONT);
    sweep_fini(&g->stopped);
}

void herd_freeze(struct group *g, bool stop) {
    g->frozen = stop;
    if (g->cgroup != NULL)
        cgroup_freeze(g->cgroup, stop);
    else if (stop)
        hold(g);
    else if (g->started && !g->empty)
        let_go(g);
}

/* Again and again, less and less often, until the group is empty. For a namespace once is enough. */
void herd_kill(struct group *g) {
    struct kernel *k = g->kernel;
    if (g->pen != NULL) {
        pen_kill(g->pen);
        g->sweep_at = UINT64_MAX;
        return;
    }
    if (g->cgroup == NULL) {
        signal_found(g, SIGSTOP, false);
        signal_found(g, SIGKILL, false);
    } else if (cgroup_kill(g->cgroup) == -ENODEV)
        return;
    g->sweep_pause = g->sweep_pause == 0 ? PAUSE_MIN_NS : 2 * g->sweep_pause;
    if (g->sweep_pause > PAUSE_MAX_NS)
        g->sweep_pause = PAUSE_MAX_NS;
    g->sweep_at = k->loop->now + g->sweep_pause;
}

/* ---- none of them ---- */

static void cgroup_moved(struct source *s, uint32_t events) {
    (void)events;
    struct cgroup *c = CONTAINER_OF(s, struct cgroup, events);
    ((struct kernel *)c->owner)->look = true;
}

/* That we have no child proves nothing here: who has entered another pid namespace has orphans there. */
static bool cgroup_gone(struct group *g) {
    struct cgroup *c = g->cgroup;
    if (cgroup_empty(c))
        return true;
    if (!c->watched) {
        c->owner = g->kernel;
        c->events.ready = cgroup_moved;
        c->watched = loop_add(g->kernel->loop, &c->events, EPOLLPRI | EPOLLET) == 0;
    }
    return false;
}

/* Without orphans nothing is left of those whose own processes have ended. The kernel's list may
 * miss one while another goes, so what looks empty is looked at twice. */
static bool orphan_of(struct group *g) {
    struct kernel *k = g->kernel;
    for (int twice = 0; twice < 2; twice++) {
        if (sweep_children(&k->sweep) < 0)
            return false;
        for (uint32_t i = 0; i < k->sweep.count; i++)
            if (process_of(k, k->sweep.at[i].pid, true) == NULL &&
                owner(k, k->sweep.at[i].pid) == g)
                return true;
    }
    return false;
}

static bool leave(const void *context, pid_t thread) {
    return home_leave(context, thread);
}

/* Who is born meanwhile may have it from a parent that had not been let go. */
void herd_leave(struct group *g) {
    g->leave_at = 0;
    for (int i = 0; i < ROUNDS && g->cgroup != NULL; i++)
        if (cgroup_each(g->cgroup, leave, &g->kernel->home) <= 0)
            break;
}

static void keeper_moved(struct source *s, uint32_t events) {
    (void)events;
    struct pen *pen = CONTAINER_OF(s, struct pen, end);
    ((struct kernel *)pen->owner)->look = true;
}

/* Nothing was ever started without a pen where there are any. */
static bool pen_gone(struct group *g) {
    struct pen *pen = g->pen;
    if (pen == NULL || !pen->used || (g->kernel->childless && pen_empty(pen)))
        return true;
    pen_release(pen);
    if (pen_ended(pen))
        return true;
    if (!pen->watched) {
        pen->owner = g->kernel;
        pen->end.ready = keeper_moved;
        pen->watched = loop_add(g->kernel->loop, &pen->end, EPOLLIN | EPOLLET) == 0;
    }
    return false;
}

bool herd_gone(struct group *g) {
    if (g->live > 0)
        return false;
    if (!g->started)
        return true;
    if (g->cgroup != NULL)
        return cgroup_gone(g);
    if (g->kernel->pens.open)
        return pen_gone(g);
    return g->kernel->childless || !orphan_of(g);
}
