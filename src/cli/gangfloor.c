/* SPDX-License-Identifier: MIT */
/* The least that turns of gangs cost: see gangfloor.h. */
#include "cli/gangfloor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/stats.h"
#include "cli/tempcluster.h"
#include "os/cgroup.h"
#include "os/child.h"
#include "os/clone.h"
#include "os/grounds.h"
#include "os/home.h"
#include "os/prompt.h"
#include "os/thread.h"

enum { GANGS = GANGFLOOR_GANGS, PROCESSES_MAX = 64 };
enum { PATIENCE_MS = 1, PATIENCE_TIMES = 5000 }; /* for processes to begin */
enum { ROUND = 50 };                             /* turns on one processor */
enum { PAIRS_MAX = 32 };                         /* of windows, alone and in turns */
#define WINDOW_NS (250 * NS_PER_MS)
#define START_NS  (2 * NS_PER_MS) /* that threads have to begin */

/* What a node has for its turns. */
struct switcher {
    uint32_t first, pes; /* its processors: see home_first() */
    struct cgroup *groups[GANGS];
    int gang; /* that runs */
    uint32_t turns;
    uint64_t quantum_ns, begin_ns, until_ns;
    pthread_t thread;
    int status;
};

struct gangfloor {
    struct gangfloor_plan plan;
    struct gangnotes *gangs;
    uint32_t pes; /* of a node */
    struct grounds ground;
    struct cgroups pool;
    struct switcher switchers[PROCESSES_MAX];
    pid_t warden;
    pid_t processes[GANGS][PROCESSES_MAX];
};

/* ---- the warden ---- */

/* Removes the groups when it is told to, or when we are gone, however that came. */
static _Noreturn void guard(const struct gangfloor *f, pid_t parent) {
    sigset_t all, end;
    int number;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    if (getppid() == parent)
        sigwait(&end, &number);
    grounds_remove(f->ground.path);
    _exit(0);
}

static int appoint(struct gangfloor *f) {
    pid_t parent = getpid();
    f->warden = fork();
    if (f->warden == 0)
        guard(f, parent);
    return f->warden < 0 ? -errno : 0;
}

/* Somebody may have killed it. */
static void dismiss(struct gangfloor *f) {
    if (f->warden > 0) {
        kill(f->warden, SIGTERM);
        clone_wait(f->warden);
    }
    grounds_remove(f->ground.path);
}

/* ---- processes ---- */

static bool enter(const struct cgroup *c) {
    int fd = openat(c->folder, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    bool entered = fd >= 0 && write(fd, "0", 1) == 1;
    if (fd >= 0)
        close(fd);
    return entered;
}

static _Noreturn void work(const struct gangfloor *f, int gang, uint32_t rank, pid_t parent) {
    const struct switcher *s = &f->switchers[rank / f->pes];
    child_follow(parent);
    home_bind(0, s->first, rank % f->pes);
    if (enter(s->groups[gang]))
        gangwork_do(&f->gangs[gang], rank, f->plan.kernel, UINT64_MAX);
    _exit(1);
}

static int start(struct gangfloor *f) {
    pid_t parent = getpid();
    for (int g = 0; g < GANGS; g++)
        for (uint32_t i = 0; i < f->gangs[g].count; i++) {
            pid_t pid = fork();
            if (pid == 0)
                work(f, g, i, parent);
            if (pid < 0)
                return -errno;
            f->processes[g][i] = pid;
        }
    return 0;
}

static bool all_begun(const struct gangfloor *f) {
    bool begun = true;
    for (int g = 0; g < GANGS; g++)
        for (uint32_t i = 0; i < f->gangs[g].count; i++)
            begun =
                begun && ((const volatile struct gangwork *)gangnotes_of(&f->gangs[g], i))->begun;
    return begun;
}

static int await_all(const struct gangfloor *f) {
    for (int i = 0; i < PATIENCE_TIMES && !all_begun(f); i++) {
        if (tempcluster_interrupted())
            return -EINTR;
        poll(NULL, 0, PATIENCE_MS);
    }
    return all_begun(f) ? 0 : -ETIMEDOUT;
}

static void end(struct gangfloor *f) {
    for (int g = 0; g < GANGS; g++)
        for (uint32_t i = 0; i < PROCESSES_MAX; i++)
            if (f->processes[g][i] > 0) {
                kill(f->processes[g][i], SIGKILL);
                clone_wait(f->processes[g][i]);
            }
}

/* ---- turns ---- */

static int stay(struct gangfloor *f, uint64_t until) {
    (void)f;
    clock_sleep_until(until);
    return 0;
}

static int let_run(struct switcher *s, int gang) {
    if (gang == s->gang)
        return 0;
    int r = cgroup_freeze(s->groups[s->gang], true);
    if (r == 0)
        r = cgroup_freeze(s->groups[gang], false);
    s->gang = gang;
    return r;
}

/* Who is late makes up for nothing. */
static uint64_t next_turn(const struct switcher *s, uint64_t last) {
    return last + s->quantum_ns + (clock_ns() - last) / s->quantum_ns * s->quantum_ns;
}

/* As a launcher, it goes round the processors of its node, and to none of another's. */
static void take_turns_of(struct switcher *s) {
    s->status = 0;
    home_go(s->first, s->turns / ROUND % s->pes);
    clock_sleep_until(s->begin_ns);
    for (uint64_t at = next_turn(s, s->begin_ns); at < s->until_ns && s->status == 0;
         at = next_turn(s, at)) {
        clock_sleep_until(at);
        s->status = let_run(s, (int)((at - s->begin_ns) / s->quantum_ns % GANGS));
        if (++s->turns % ROUND == 0)
            home_go(s->first, s->turns / ROUND % s->pes);
    }
    if (s->status == 0)
        s->status = let_run(s, 0);
}

static void *switcher_thread(void *context) {
    prompt_set(true);
    take_turns_of(context);
    return NULL;
}

/* The first node's are taken here, those of each other one in a thread of its own. */
static int take_turns(struct gangfloor *f, uint64_t until) {
    uint64_t begin = clock_ns() + START_NS;
    uint32_t started = 0;
    int r = 0;
    for (; started < f->plan.nodes && r == 0; started += r == 0) {
        struct switcher *s = &f->switchers[started];
        s->begin_ns = begin;
        s->until_ns = until;
        r = started == 0 ? 0 : thread_start(&s->thread, switcher_thread, s);
    }
    take_turns_of(&f->switchers[0]);
    for (uint32_t i = 0; i < started; i++) {
        if (i > 0)
            pthread_join(f->switchers[i].thread, NULL);
        r = r < 0 ? r : f->switchers[i].status;
    }
    return r;
}

static uint64_t units_done(const struct gangfloor *f) {
    uint64_t sum = 0;
    for (int g = 0; g < GANGS; g++)
        for (uint32_t i = 0; i < f->gangs[g].count; i++)
            sum +=
                atomic_load_explicit(&gangnotes_of(&f->gangs[g], i)->units, memory_order_relaxed);
    return sum;
}

/* What is done in a second meanwhile. */
static int pass_window(struct gangfloor *f, int (*pass)(struct gangfloor *f, uint64_t until),
                       uint64_t ns, uint64_t *ret_rate) {
    uint64_t begin = clock_ns(), before = units_done(f);
    int r = tempcluster_interrupted() ? -EINTR : pass(f, begin + ns);
    *ret_rate = (units_done(f) - before) * NS_PER_S / (clock_ns() - begin + 1);
    return r;
}

static int hold_others(struct gangfloor *f) {
    int r = 0;
    for (uint32_t i = 0; i < f->plan.nodes && r == 0; i++)
        for (int g = 1; g < GANGS && r == 0; g++)
            r = cgroup_freeze(f->switchers[i].groups[g], true);
    return r;
}

/* Alone and in turns, alternately: what the machine does meanwhile it does to both. */
static int compare(struct gangfloor *f, int64_t *ret_slower) {
    uint64_t pairs = f->plan.duration_ns / (2 * WINDOW_NS);
    pairs = pairs == 0 ? 1 : pairs > PAIRS_MAX ? PAIRS_MAX : pairs;
    uint64_t window = f->plan.duration_ns / (2 * pairs);
    int64_t slower[PAIRS_MAX];
    int r = hold_others(f);
    for (uint64_t i = 0; i < pairs && r == 0; i++) {
        uint64_t alone, turns = 0;
        r = pass_window(f, stay, window, &alone);
        if (r == 0)
            r = pass_window(f, take_turns, window, &turns);
        slower[i] = stats_more(alone, turns);
    }
    if (r == 0)
        *ret_slower = stats_middle(slower, (uint32_t)pairs);
    return r;
}

static int run(struct gangfloor *f, int64_t *ret_slower) {
    int r = start(f);
    if (r == 0)
        r = await_all(f);
    if (r == 0) {
        prompt_set(true);
        r = compare(f, ret_slower);
        prompt_set(false);
    }
    end(f);
    return r;
}

/* ---- all ---- */

static int take_groups(struct gangfloor *f) {
    for (uint32_t i = 0; i < f->plan.nodes; i++)
        for (int g = 0; g < GANGS; g++) {
            f->switchers[i].groups[g] = cgroups_take(&f->pool);
            if (f->switchers[i].groups[g] == NULL)
                return -EACCES;
        }
    return 0;
}

static void give_groups(struct gangfloor *f) {
    for (uint32_t i = 0; i < f->plan.nodes; i++)
        for (int g = 0; g < GANGS; g++)
            if (f->switchers[i].groups[g] != NULL)
                cgroups_give(&f->pool, f->switchers[i].groups[g], NULL);
}

static int run_in_groups(struct gangfloor *f, int64_t *ret_slower) {
    int r = cgroups_init(&f->pool, f->ground.path);
    if (r < 0)
        return r;
    r = take_groups(f);
    if (r == 0)
        r = run(f, ret_slower);
    give_groups(f);
    cgroups_fini(&f->pool);
    return r;
}

/* The processors of each node, none of which may be shared. */
static int take_processors(struct gangfloor *f, uint32_t count) {
    uint32_t nodes = f->plan.nodes;
    if (nodes == 0 || count % nodes != 0 || count > PROCESSES_MAX || f->gangs[1].count != count)
        return -EOPNOTSUPP;
    f->pes = count / nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        uint32_t first = home_first(i, nodes, f->pes);
        if (first == 0)
            return -EOPNOTSUPP;
        f->switchers[i] =
            (struct switcher){.first = first, .pes = f->pes, .quantum_ns = f->plan.quantum_ns};
    }
    return 0;
}

int gangfloor_run(struct gangnotes gangs[GANGS], const struct gangfloor_plan *plan,
                  int64_t *ret_slower) {
    struct gangfloor f = {.plan = *plan, .gangs = gangs};
    char name[64];
    if (take_processors(&f, gangs[0].count) < 0 || !prompt_allowed())
        return -EOPNOTSUPP;
    for (int g = 0; g < GANGS; g++)
        gangnotes_clear(&gangs[g]);
    snprintf(name, sizeof name, "storm-floor-%d", (int)getpid());
    int r = grounds_make(&f.ground, name);
    if (r < 0)
        return r;
    r = appoint(&f);
    if (r == 0)
        r = run_in_groups(&f, ret_slower);
    dismiss(&f);
    return r;
}
