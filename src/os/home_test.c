/* SPDX-License-Identifier: MIT */
/* Tests of homes: who gets one, that it holds, and that it can be left. */
#include "os/home.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

/* Processors that this process may use. */
static int processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) < 0 ? 0 : CPU_COUNT(&set);
}

static void test_only_in_a_crowd(void) {
    uint32_t n = (uint32_t)processors();
    CHECK(!home_crowded(4 * n - 1));
    CHECK(home_crowded(4 * n));
    CHECK_EQ(home_of(0, 4 * n - 1, 1), 0);
    CHECK_EQ(home_of(0, 4 * n, 2), 0);
    CHECK_EQ(home_of(0, 4 * n, 1) != 0, n > 1);
}

/* Every processor gets as many nodes as any other. */
static void test_evenly(void) {
    uint32_t n = (uint32_t)processors(), seen[CPU_SETSIZE + 1] = {0};
    if (n < 2) {
        SKIP("evenly", "one processor");
        return;
    }
    for (uint32_t i = 0; i < 8 * n; i++) {
        uint32_t home = home_of(i, 8 * n, 1);
        if (CHECK(home > 0 && home <= CPU_SETSIZE))
            seen[home]++;
    }
    for (uint32_t i = 1; i <= CPU_SETSIZE; i++)
        CHECK(seen[i] == 0 || seen[i] == 8);
}

static int in_child(int (*what)(void)) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(what());
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int settled(void) {
    struct home h;
    int all = processors();
    home_settle(&h, 0);
    if (h.settled || processors() != all)
        return 1;
    home_settle(&h, home_of(1, 4 * (uint32_t)all, 1));
    if (!h.settled || processors() != 1)
        return 2;
    int on = sched_getcpu();
    if (on != (int)home_of(1, 4 * (uint32_t)all, 1) - 1 && processors() == all)
        return 3;
    if (!home_leave(&h, getpid()) || processors() != all)
        return 4;
    return home_leave(&h, getpid()) ? 5 : 0; /* it was free already */
}

static int chosen(void) {
    struct home h;
    cpu_set_t own;
    int all = processors();
    home_settle(&h, home_of(0, 4 * (uint32_t)all, 1));
    sched_getaffinity(0, sizeof own, &own);
    home_leave(&h, getpid());
    CPU_ZERO(&own);
    CPU_SET((int)home_of(1, 4 * (uint32_t)all, 1) - 1, &own);
    sched_setaffinity(0, sizeof own, &own);
    return home_leave(&h, getpid()) || processors() != 1;
}

/* Of those that it may use, which processor it is on: 0, 1 ... */
static int on_which(void) {
    cpu_set_t set;
    int seen = 0, here = sched_getcpu();
    sched_getaffinity(0, sizeof set, &set);
    for (int i = 0; i < here; i++)
        seen += CPU_ISSET(i, &set);
    return seen;
}

/* From wherever it is to its node's processor, and free to go. */
static int returned(void) {
    int all = processors();
    for (uint32_t node = 0; node < 2; node++) {
        uint32_t first = home_first(node, 2, 1);
        home_go(first, 0);
        if (on_which() != (int)first - 1 || processors() != all)
            return 1 + (int)node;
        home_go(0, 0); /* it has none of its own: nothing happens */
    }
    return 0;
}

/* To each processor of its node in turn. The system may move it again at any moment: most count. */
static int went_round(void) {
    int there = 0;
    for (uint32_t i = 0; i < 100; i++) {
        home_go(1, i % 2);
        there += on_which() == (int)(i % 2);
    }
    return there > 50 ? 0 : 1;
}

static void test_round(void) {
    if (processors() < 2) {
        SKIP("round", "one processor");
        return;
    }
    CHECK_EQ(in_child(returned), 0);
    CHECK_EQ(in_child(went_round), 0);
}

struct other {
    atomic_bool may_look, has_looked;
    int processor, processors;
};

static void *look(void *context) {
    struct other *o = context;
    while (!atomic_load(&o->may_look))
        ;
    o->processor = sched_getcpu();
    o->processors = processors();
    atomic_store(&o->has_looked, true);
    return NULL;
}

/* Somewhere else than who starts it, which keeps its processor meanwhile. The system may move either: most count. */
static void test_apart(void) {
    int all = processors(), apart = 0;
    for (int i = 0; i < 100; i++) {
        struct other o = {0};
        pthread_t thread;
        if (!CHECK_EQ(pthread_create(&thread, NULL, look, &o), 0))
            return;
        home_apart(thread);
        int here = sched_getcpu();
        atomic_store(&o.may_look, true);
        while (!atomic_load(&o.has_looked))
            ;
        pthread_join(thread, NULL);
        apart += o.processor != here;
        CHECK_EQ(o.processors, all);
    }
    CHECK(all < 2 || apart > 50);
}

static void test_stay_and_leave(void) {
    if (processors() < 2) {
        SKIP("stay and leave", "one processor");
        return;
    }
    CHECK_EQ(in_child(settled), 0);
    CHECK_EQ(in_child(chosen), 0);
}

int main(void) {
    TEST(test_only_in_a_crowd);
    TEST(test_evenly);
    TEST(test_stay_and_leave);
    TEST(test_round);
    TEST(test_apart);
    return tap_finish();
}
