/* SPDX-License-Identifier: MIT */
/* The plays of tests/actors.h on Linux: by descent, in pid namespaces and in cgroups where there are any.
 *
 * The first argument is the path of the actor. */
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "os/cgroup.h"
#include "os/kernel.h"
#include "os/pen.h"
#include "turns.h"

#include "actors.h"

struct stage {
    struct actors actors;
    struct loop loop;
    struct kernel *kernel;
    uint64_t deadline;
};

static char program[PATH_MAX]; /* processes run elsewhere */
static const char *cgroup;
static enum confine confine;

static void carry(struct actors *a, const struct effect *e) {
    struct stage *s = CONTAINER_OF(a, struct stage, actors);
    kernel_carry(s->kernel, e);
}

static void feed(void *context, const struct input *in) {
    struct stage *s = context;
    actors_hear(&s->actors, in);
}

static bool turn(struct actors *a) {
    struct stage *s = CONTAINER_OF(a, struct stage, actors);
    kernel_settle(s->kernel);
    loop_turn(&s->loop, 1);
    kernel_settle(s->kernel);
    return clock_ns() < s->deadline;
}

static void test_plays_on_linux(void) {
    struct stage s = {0};
    int error;
    struct kernel_config c = {.loop = &s.loop,
                              .feed = feed,
                              .context = &s,
                              .cgroup = cgroup,
                              .confine = confine,
                              .groups = ACTORS_GROUPS};
    CHECK_EQ(loop_init(&s.loop), 0);
    s.kernel = kernel_new(&c, &error);
    if (!CHECK(s.kernel != NULL))
        return;
    CHECK(confine_met(confine, kernel_guarantee(s.kernel)));
    for (uint32_t i = 0; i < PLAYS; i++) {
        s.actors = (struct actors){.carry = carry, .turn = turn, .program = program};
        s.deadline = clock_ns() + PATIENCE_NS;
        actors_play(&s.actors, &plays[i]);
    }
    kernel_free(s.kernel);
    loop_fini(&s.loop);
}

int main(int argc, char **argv) {
    char own[PATH_MAX / 2], folder[PATH_MAX];
    if (argc < 2 || realpath(argv[1], program) == NULL) {
        SKIP("actors", "no actor");
        return tap_finish();
    }
    struct pens_trouble t;
    confine = CONFINE_NONE;
    TEST(test_plays_on_linux);
    confine = CONFINE_NAMESPACE;
    if (pens_try(&t) == 0)
        TEST(test_plays_on_linux);
    else
        SKIP("with pid namespaces", t.words);
    if (cgroup_own(own, sizeof own) < 0) {
        SKIP("with cgroups", "no cgroup version 2 is mounted");
        return tap_finish();
    }
    snprintf(folder, sizeof folder, "%s/storm-actors-%d", own, (int)getpid());
    if (mkdir(folder, 0755) < 0) {
        SKIP("with cgroups", "the cgroup of this process cannot be divided");
        return tap_finish();
    }
    cgroup = folder;
    confine = CONFINE_CGROUP;
    TEST(test_plays_on_linux);
    rmdir(folder);
    return tap_finish();
}
