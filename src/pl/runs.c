/* SPDX-License-Identifier: MIT */
/* The table of runs, and how their ends are summed up: see inside.h. */
#include <signal.h>
#include <string.h>

#include "base/assert.h"
#include "pl/inside.h"

struct run *runs_find(struct pl *p, uint64_t run) {
    RUNS_EACH (r, p)
        if (r->run == run)
            return r;
    return NULL;
}

struct run *runs_of_group(struct pl *p, uint32_t group) {
    ASSERT(group < p->config.groups);
    struct run *r = &p->runs[group];
    return r->state != RUN_FREE && !r->closed ? r : NULL;
}

static struct run *free_run(struct pl *p) {
    for (uint32_t i = 0; i < p->run_end; i++)
        if (p->runs[i].state == RUN_FREE)
            return &p->runs[i];
    return p->run_end < p->config.groups ? &p->runs[p->run_end] : NULL;
}

struct run *runs_add(struct pl *p, const struct setup *s, struct bytes setup) {
    struct run *r = free_run(p);
    if (r == NULL || s->count > p->config.processes - p->process_count ||
        setup.len > p->config.setup_bytes - p->setup_count)
        return NULL;
    *r = (struct run){.run = s->run,
                      .state = RUN_READY,
                      .process = p->process_count,
                      .count = s->count,
                      .left = s->count,
                      .setup = p->setup_count,
                      .setup_bytes = (uint32_t)setup.len};
    memset(p->processes + r->process, 0, s->count * sizeof *p->processes);
    for (uint32_t i = 0; i < s->count; i++)
        p->processes[r->process + i].rank = setup_rank(s, i);
    memcpy(p->setups + r->setup, setup.at, setup.len);
    p->process_count += r->count;
    p->setup_count += r->setup_bytes;
    p->run_count++;
    if (run_group(p, r) == p->run_end)
        p->run_end++;
    return r;
}

void runs_remove(struct pl *p, struct run *gone) {
    uint32_t process_end = gone->process + gone->count;
    uint32_t setup_end = gone->setup + gone->setup_bytes;
    memmove(p->processes + gone->process, p->processes + process_end,
            (p->process_count - process_end) * sizeof *p->processes);
    memmove(p->setups + gone->setup, p->setups + setup_end, p->setup_count - setup_end);
    p->process_count -= gone->count;
    p->setup_count -= gone->setup_bytes;
    p->run_count--;
    gone->state = RUN_FREE;
    while (p->run_end > 0 && p->runs[p->run_end - 1].state == RUN_FREE)
        p->run_end--;
    RUNS_EACH (r, p) {
        if (r->process > gone->process) { /* every run has processes, so it lies behind */
            r->process -= gone->count;
            r->setup -= gone->setup_bytes;
        }
    }
}

/* Whoever catches SIGTERM ends with a status of its own choice. */
static bool by_us(const struct run *r, const struct input_child *c) {
    if (c->event == CHILD_KILLED)
        return (r->killing && c->value == SIGKILL) || (r->ending && c->value == SIGTERM);
    return c->event == CHILD_EXITED && r->ending && c->value != 0;
}

void run_child(struct pl *p, struct run *r, const struct input_child *c) {
    ASSERT(c->index < r->count);
    struct process *process = run_process(p, r, c->index);
    r->loose = r->loose || c->loose;
    if (c->event == CHILD_STARTED)
        process->pid = c->value;
    if (c->event == CHILD_STARTED || process->event != CHILD_STARTED)
        return;
    process->event = (uint8_t)c->event;
    process->value = c->value;
    process->step = (uint8_t)c->step;
    process->ours = by_us(r, c);
    r->left--;
}

/* As a shell has it for one that was killed. */
static uint32_t killed_status(uint32_t signal) {
    return 128 + signal;
}

/* How bad it is, to find the worst. */
static uint64_t badness(const struct process *process) {
    switch ((enum child_event)process->event) {
    case CHILD_FAILED:
        return UINT64_MAX;
    case CHILD_EXITED:
        return process->value;
    case CHILD_KILLED:
        return killed_status(process->value);
    case CHILD_EXCEEDED:
        return killed_status(SIGKILL);
    default:
        return 0; /* was never heard of: killed before it began */
    }
}

static void describe(struct ending *e, const struct process *process) {
    static const uint8_t causes[CHILD_EVENTS] = {[CHILD_STARTED] = CAUSE_EXITED,
                                                 [CHILD_FAILED] = CAUSE_FAILED,
                                                 [CHILD_EXITED] = CAUSE_EXITED,
                                                 [CHILD_KILLED] = CAUSE_KILLED,
                                                 [CHILD_EXCEEDED] = CAUSE_MEMORY};
    e->cause = causes[process->event];
    e->value = process->value;
    e->step = process->event == CHILD_FAILED ? process->step : 0;
}

static uint32_t told_badness(const struct ending *e) {
    return e->cause == CAUSE_KILLED   ? killed_status(e->value)
           : e->cause == CAUSE_MEMORY ? killed_status(SIGKILL)
                                      : e->value;
}

bool run_worse(struct pl *p, struct run *r, uint32_t index) {
    const struct process *process = run_process(p, r, index);
    struct ending worse = {.rank = process->rank, .bad = 1, .more = true, .loose = r->loose};
    if (r->left == 0 || process->ours || process->event == CHILD_FAILED || badness(process) == 0)
        return false;
    describe(&worse, process);
    if (r->end.more && told_badness(&r->end) >= badness(process))
        return false;
    r->end = worse;
    return true;
}

bool run_loose(struct pl *p, struct run *r) {
    if (!r->loose || r->end.more)
        return false;
    r->end = (struct ending){
        .cause = CAUSE_EXITED, .rank = run_process(p, r, 0)->rank, .more = true, .loose = true};
    return true;
}

void run_close(struct pl *p, struct run *r) {
    struct ending *e = &r->end;
    uint64_t worst = 0;
    *e = (struct ending){.cause = CAUSE_EXITED,
                         .rank = run_process(p, r, 0)->rank,
                         .loose = r->loose,
                         .usage = r->usage};
    for (uint32_t i = 0; i < r->count; i++) {
        const struct process *process = run_process(p, r, i);
        e->output += process->streams[0].read + process->streams[1].read;
        e->ours |= process->ours || (process->event == CHILD_STARTED && !r->lost);
        if (process->ours && !r->lost)
            continue;
        uint64_t bad = badness(process);
        e->bad += bad > 0 || (process->event == CHILD_STARTED && r->lost);
        if (bad > worst) {
            worst = bad;
            e->rank = process->rank;
            describe(e, process);
        }
    }
    if (r->lost && e->cause != CAUSE_FAILED) {
        e->cause = CAUSE_LOST;
        e->value = 0;
        e->ours = false;
    }
    r->state = RUN_ENDED;
    r->sweep = false;
}
