/* SPDX-License-Identifier: MIT */
/* Limits on the memory of processes, through the launcher's kernel side: with a cgroup, in a pid namespace, and without
 * either; by whichever controller this machine has. */
#include <errno.h>
#include <signal.h>

#include "base/units.h"
#include "os/ration.h"
#include "processes.h"

enum { LIMIT_MIB = 24, NO_MEMORY = 1 };

static enum ration_means means; /* that runs find here, the way they are kept together now */

/* `hog N` uses N MiB, and ends well if it gets them. */
static void order_memory(struct order *o, const char *script) {
    char line[PATH_MAX];
    snprintf(line, sizeof line,
             "hog() { exec dd if=/dev/zero of=/dev/null bs=$1M count=1 2>/dev/null; }; %s", script);
    order_shell(o, line);
    o->spec.memory = LIMIT_MIB * MIB;
}

static bool found(void) {
    return means != RATION_NONE;
}

static void check_exceeded(const struct heard *h) {
    if (found())
        check_ended(h, CHILD_EXCEEDED, LIMIT_MIB * MIB / MEMORY_UNIT);
    else
        check_ended(h, CHILD_EXITED, NO_MEMORY);
    CHECK_EQ(h->start.loose, !found());
}

static void test_one_of_two(void) {
    struct order o;
    stage_begin();
    order_memory(&o, "if [ $STORM_RANK = 1 ]; then hog 100; else hog 4; fi");
    order_count(&o, 2);
    const struct heard *h = run(&o);
    check_ended(h, CHILD_EXITED, 0);
    check_exceeded(h + 1);
    order_memory(&o, "exit 7"); /* and what works still does */
    check_ended(run(&o), CHILD_EXITED, 7);
    order_shell(&o, "exit 8");
    check_ended(run(&o), CHILD_EXITED, 8);
    CHECK(!stage.groups[0].heard[0].start.loose);
    stage_end();
}

/* Each has its own: together they have more. */
static void test_not_together(void) {
    struct order o;
    stage_begin();
    order_memory(&o, "hog 14");
    order_count(&o, 4);
    const struct heard *h = run(&o);
    for (uint32_t i = 0; i < 4; i++)
        check_ended(h + i, CHILD_EXITED, 0);
    stage_end();
}

/* Whoever is killed by others has not used too much. */
static void test_killed_by_others(void) {
    struct order o;
    stage_begin();
    order_memory(&o, "kill -9 $$");
    check_ended(run(&o), CHILD_KILLED, SIGKILL);
    stage_end();
}

/* What it starts counts with it, and if it dies of that it takes the rest along. */
static void test_offspring(void) {
    struct order o;
    stage_begin();
    order_memory(&o, "for i in 1 2 3 4; do (hog 14; sleep 100) & done; (sleep 200 &); "
                     "(hog 100); wait; exit 9");
    if (found()) {
        open_group(0, &o);
        CHECK(UNTIL(stage.groups[0].heard[0].ends > 0));
        check_ended(&stage.groups[0].heard[0], CHILD_EXCEEDED, LIMIT_MIB * MIB / MEMORY_UNIT);
        carry(EFFECT_GROUP_KILL, 0, 0);
        CHECK(UNTIL(over(0, 1)));
        close_group(0);
    }
    stage_end();
}

/* Signals and a stop reach those with a limit too. */
static void test_signal_and_freeze(void) {
    struct order o;
    stage_begin();
    order_memory(&o, "trap 'exit 6' USR1; echo; while :; do sleep 0.01; done");
    order_count(&o, 2);
    open_group(0, &o);
    struct heard *h = stage.groups[0].heard;
    CHECK(UNTIL(h[0].stream[0].next == 1 && h[1].stream[0].next == 1));
    carry(EFFECT_GROUP_FREEZE, 0, 1);
    carry(EFFECT_GROUP_FREEZE, 0, 0);
    carry(EFFECT_GROUP_SIGNAL, 0, SIGUSR1);
    CHECK(UNTIL(over(0, 2)));
    check_ended(&h[0], CHILD_EXITED, 6);
    check_ended(&h[1], CHILD_EXITED, 6);
    close_group(0);
    stage_end();
}

static void test_without_any(void) {
    struct order o;
    const char *place = stage.rations;
    stage.rations = RATIONS_NONE;
    stage_begin();
    order_memory(&o, "ulimit -d; ulimit -Hd; hog 100");
    const struct heard *h = run(&o);
    CHECK_STR(h->stream[0].text, "24576\n24576\n");
    check_ended(h, CHILD_EXITED, NO_MEMORY);
    CHECK(h->start.loose);
    stage_end();
    stage.rations = place;
}

/* As a kernel finds it. */
static enum ration_means look(void) {
    struct cgroups pool;
    struct rations r;
    bool pooled = stage.confine == CONFINE_CGROUP && cgroups_init(&pool, stage.cgroup) == 0;
    rations_init(&r, stage.rations);
    enum ration_means found_here = rations_means(&r, pooled ? &pool : NULL);
    rations_fini(&r);
    if (pooled)
        cgroups_fini(&pool);
    return found_here;
}

static void all(void) {
    means = look();
    TEST(test_one_of_two);
    TEST(test_not_together);
    TEST(test_killed_by_others);
    TEST(test_offspring);
    TEST(test_signal_and_freeze);
    TEST(test_without_any);
    CHECK(stage.rations == NULL || access(stage.rations, F_OK) < 0);
}

/* What a dead owner has left is taken away by the next. */
static void test_left_behind(void) {
    struct rations r;
    char left[PATH_MAX + 8];
    if (stage.rations == NULL)
        return;
    rations_init(&r, stage.rations);
    CHECK_EQ(rations_means(&r, NULL), RATION_LEGACY);
    snprintf(left, sizeof left, "%s/p77", stage.rations);
    CHECK_EQ(mkdir(left, 0755), 0);
    close(r.folder);
    rations_init(&r, stage.rations);
    CHECK(access(left, F_OK) < 0);
    rations_fini(&r);
}

int main(void) {
    static char ground[PATH_MAX], place[PATH_MAX + 8];
    char name[64];
    snprintf(name, sizeof name, "storm-ration-test-%d", (int)getpid());
    if (ration_ground(name, ground) == 0 && mkdir(ground, 0755) == 0) {
        snprintf(place, sizeof place, "%s/n0", ground);
        stage.rations = place;
    }
    TEST(test_left_behind);
    int status = every_way(all);
    return ground[0] != '\0' && ration_remove(ground) < 0 ? 1 : status;
}
