/* SPDX-License-Identifier: MIT */
/* The plays of tests/actors.h on the model kernel, with several seeds. */
#include <stdarg.h>

#include "base/list.h"
#include "base/units.h"
#include "sim/kernel.h"

#include "actors.h"

enum { SEEDS = 20 };

struct stage {
    struct actors actors;
    struct sim_kernel *kernel;
    uint64_t now;
};

static void carry(struct actors *a, const struct effect *e) {
    struct stage *s = CONTAINER_OF(a, struct stage, actors);
    CHECK(sim_kernel_wants(e->kind));
    sim_kernel_carry(s->kernel, e, s->now);
}

static bool turn(struct actors *a) {
    struct stage *s = CONTAINER_OF(a, struct stage, actors);
    struct input in;
    uint64_t next = sim_kernel_next(s->kernel);
    if (next == UINT64_MAX)
        return false;
    s->now = next;
    if (sim_kernel_tell(s->kernel, s->now, &in))
        actors_hear(a, &in);
    return true;
}

static void test_plays_on_the_model(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim_kernel_config c = {
            .groups = ACTORS_GROUPS, .seed = seed, .spawn_ns = seed * 100 * NS_PER_US};
        struct stage s = {.kernel = sim_kernel_new(&c)};
        for (uint32_t i = 0; i < PLAYS; i++) {
            s.actors = (struct actors){.carry = carry, .turn = turn, .program = "actor"};
            actors_play(&s.actors, &plays[i]);
            CHECK_EQ(sim_kernel_alive_all(s.kernel), 0);
        }
        sim_kernel_free(s.kernel);
    }
}

int main(void) {
    TEST(test_plays_on_the_model);
    return tap_finish();
}
