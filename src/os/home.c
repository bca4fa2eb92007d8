/* SPDX-License-Identifier: MIT */
/* A processor to live on: see home.h. */
#include "os/home.h"

#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Nodes to a processor. */
enum { CROWD = 4 };

enum { WORD_BITS = 8 * sizeof(unsigned long) };

static size_t ask(pid_t thread, unsigned long set[HOME_WORDS]) {
    long n = syscall(SYS_sched_getaffinity, thread, HOME_WORDS * sizeof *set, set);
    return n < 0 ? 0 : (size_t)n;
}

static bool has(const unsigned long *set, uint32_t processor) {
    return set[processor / WORD_BITS] >> (processor % WORD_BITS) & 1;
}

static uint32_t count(const unsigned long *set, size_t bytes) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < 8 * bytes; i++)
        total += has(set, i);
    return total;
}

static bool crowded(uint32_t nodes, uint32_t processors) {
    return processors > 0 && nodes / CROWD >= processors;
}

bool home_crowded(uint32_t nodes) {
    unsigned long set[HOME_WORDS] = {0};
    return crowded(nodes, count(set, ask(0, set)));
}

uint32_t home_of(uint32_t node, uint32_t nodes, uint32_t pes) {
    unsigned long set[HOME_WORDS] = {0};
    size_t bytes = ask(0, set);
    uint32_t processors = count(set, bytes);
    if (pes != 1 || processors < 2 || !crowded(nodes, processors))
        return 0;
    uint32_t skip = node % processors, i = 0;
    while (!has(set, i) || skip-- > 0)
        i++;
    return 1 + i;
}

/* The index-th processor that we may use. */
static bool find(const unsigned long *set, size_t bytes, uint32_t index, uint32_t *ret) {
    for (uint32_t i = 0; i < 8 * bytes; i++)
        if (has(set, i) && index-- == 0) {
            *ret = i;
            return true;
        }
    return false;
}

uint32_t home_first(uint32_t node, uint32_t nodes, uint32_t pes) {
    unsigned long set[HOME_WORDS] = {0};
    uint32_t processors = count(set, ask(0, set));
    return pes == 0 || nodes > processors / pes ? 0 : 1 + node * pes;
}

void home_bind(pid_t process, uint32_t first, uint32_t index) {
    unsigned long set[HOME_WORDS] = {0}, one[HOME_WORDS] = {0};
    uint32_t processor;
    size_t bytes = ask(0, set);
    if (first == 0 || !find(set, bytes, first - 1 + index, &processor))
        return;
    one[processor / WORD_BITS] = 1UL << (processor % WORD_BITS);
    syscall(SYS_sched_setaffinity, process, bytes, one);
}

void home_go(uint32_t first, uint32_t index) {
    unsigned long set[HOME_WORDS] = {0}, one[HOME_WORDS] = {0};
    uint32_t processor;
    size_t bytes = ask(0, set);
    if (first == 0 || !find(set, bytes, first - 1 + index, &processor) ||
        processor == (uint32_t)sched_getcpu())
        return;
    one[processor / WORD_BITS] = 1UL << (processor % WORD_BITS);
    if (syscall(SYS_sched_setaffinity, 0, bytes, one) == 0)
        syscall(SYS_sched_setaffinity, 0, bytes, set);
}

void home_apart(pthread_t thread) {
    unsigned long all[HOME_WORDS] = {0}, others[HOME_WORDS];
    size_t bytes = ask(0, all);
    int here = sched_getcpu();
    if (here < 0 || (size_t)here >= 8 * bytes || count(all, bytes) < 2)
        return;
    memcpy(others, all, sizeof others);
    others[(size_t)here / WORD_BITS] &= ~(1UL << ((size_t)here % WORD_BITS));
    if (pthread_setaffinity_np(thread, bytes, (const cpu_set_t *)others) == 0)
        pthread_setaffinity_np(thread, bytes, (const cpu_set_t *)all);
}

void home_settle(struct home *h, uint32_t home) {
    *h = (struct home){.settled = false};
    h->bytes = ask(0, h->everywhere);
    if (home == 0 || home > 8 * h->bytes)
        return;
    h->here[(home - 1) / WORD_BITS] = 1UL << ((home - 1) % WORD_BITS);
    h->settled = syscall(SYS_sched_setaffinity, 0, h->bytes, h->here) == 0;
}

bool home_leave(const struct home *h, pid_t thread) {
    unsigned long set[HOME_WORDS] = {0};
    if (!h->settled || ask(thread, set) != h->bytes || memcmp(set, h->here, h->bytes) != 0)
        return false; /* gone, or it has chosen for itself */
    return syscall(SYS_sched_setaffinity, thread, h->bytes, h->everywhere) == 0;
}
