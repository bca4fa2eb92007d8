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

enum { GANGS = GANGFLOOR_GANGS, PROCESSES_MAX = 64 };
enum { PATIENCE_MS = 1, PATIENCE_TIMES = 5000 }; /* for processes to begin */
enum { ROUND = 50 };                             /* turns on one processor */
enum { PAIRS_MAX = 32 };                         /* of windows, alone and in turns */
#define WINDOW_NS (250 * NS_PER_MS)

struct gangfloor {
    struct gangfloor_plan plan;
    struct gangnotes *gangs;
    uint32_t first; /* of the processors: see home_first() */
    struct grounds ground;
    struct cgroups pool;
    struct cgroup *groups[GANGS];
    uint32_t turns; /* so far; the gang of this number runs, modulo GANGS */
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
    child_follow(parent);
    home_bind(0, f->first, rank);
    if (enter(f->groups[gang]))
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

/* As a launcher, who is late makes up for nothing, and goes round the processors. */
static int take_turns(struct gangfloor *f, uint64_t until) {
    uint64_t quantum = f->plan.quantum_ns, at = clock_ns();
    int r = 0;
    for (; at < until && r == 0; f->turns++) {
        at += quantum + (clock_ns() - at) / quantum * quantum;
        clock_sleep_until(at);
        r = cgroup_freeze(f->groups[f->turns % GANGS], true);
        if (r == 0)
            r = cgroup_freeze(f->groups[(f->turns + 1) % GANGS], false);
        if (r == 0 && f->turns % ROUND == 0)
            home_go(f->first, f->turns / ROUND % f->gangs[0].count);
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

/* Alone and in turns, alternately: what the machine does meanwhile it does to both. */
static int compare(struct gangfloor *f, int64_t *ret_slower) {
    uint64_t pairs = f->plan.duration_ns / (2 * WINDOW_NS);
    pairs = pairs == 0 ? 1 : pairs > PAIRS_MAX ? PAIRS_MAX : pairs;
    uint64_t window = f->plan.duration_ns / (2 * pairs);
    int64_t slower[PAIRS_MAX];
    int r = cgroup_freeze(f->groups[1], true);
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

static int run_in_groups(struct gangfloor *f, int64_t *ret_slower) {
    int r = cgroups_init(&f->pool, f->ground.path);
    if (r < 0)
        return r;
    for (int g = 0; g < GANGS; g++) {
        f->groups[g] = cgroups_take(&f->pool);
        r = f->groups[g] == NULL ? -EACCES : r;
    }
    if (r == 0)
        r = run(f, ret_slower);
    for (int g = 0; g < GANGS; g++)
        if (f->groups[g] != NULL)
            cgroups_give(&f->pool, f->groups[g], NULL);
    cgroups_fini(&f->pool);
    return r;
}

int gangfloor_run(struct gangnotes gangs[GANGS], const struct gangfloor_plan *plan,
                  int64_t *ret_slower) {
    uint32_t count = gangs[0].count;
    struct gangfloor f = {.plan = *plan, .gangs = gangs, .first = home_first(0, 1, count)};
    char name[64];
    if (f.first == 0 || count > PROCESSES_MAX || gangs[1].count != count || !prompt_allowed())
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
