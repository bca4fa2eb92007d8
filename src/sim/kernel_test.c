/* SPDX-License-Identifier: MIT */
/* Tests of the model kernel where Linux cannot be compared: its clock, its draws, its crash. What it has in
 * common with Linux is in tests/actors_test.c. */
#include "sim/kernel.h"

#include "base/units.h"
#include "tap.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { GROUPS = 2, NEVER = -1 };

static struct sim_kernel *fresh(uint64_t seed, uint32_t fail_permille) {
    struct sim_kernel_config c = {
        .groups = GROUPS, .seed = seed, .spawn_ns = 2 * NS_PER_MS, .fail_permille = fail_permille};
    return sim_kernel_new(&c);
}

static void carry(struct sim_kernel *k, enum effect_kind kind, uint32_t group, uint32_t value,
                  uint64_t now) {
    struct effect e = {.kind = kind, .group = {.group = group, .value = value}};
    CHECK(sim_kernel_wants(kind));
    sim_kernel_carry(k, &e, now);
}

/* Words are parted by single blanks; the first is the program's name. */
static void launch(struct sim_kernel *k, uint32_t group, uint32_t count, const char *words,
                   uint64_t now) {
    uint8_t spec_bytes[256], setup_bytes[512];
    char arguments[128];
    snprintf(arguments, sizeof arguments, "%s", words);
    for (char *c = arguments; *c != '\0'; c++)
        if (*c == ' ')
            *c = '\0';
    struct spec spec = {.program = bytes_from_str("actor"),
                        .arguments = bytes_of(arguments, strlen(words) + 1)};
    long spec_len = spec_encode(&spec, room_of(spec_bytes, sizeof spec_bytes));
    struct setup setup = {.run = 100 + group,
                          .count = count,
                          .size = count,
                          .window = 4096,
                          .spec = bytes_of(spec_bytes, (size_t)spec_len)};
    long len = setup_encode(&setup, room_of(setup_bytes, sizeof setup_bytes));
    struct effect open = {.kind = EFFECT_GROUP_OPEN,
                          .group = {.group = group, .setup = bytes_of(setup_bytes, (size_t)len)}};
    sim_kernel_carry(k, &open, now);
    carry(k, EFFECT_GROUP_START, group, 0, now);
}

/* Until this kind of input comes; when, or NEVER. */
static uint64_t play_until(struct sim_kernel *k, enum input_kind kind, struct input *ret) {
    for (uint64_t now; (now = sim_kernel_next(k)) != UINT64_MAX;)
        while (sim_kernel_tell(k, now, ret))
            if (ret->kind == kind)
                return now;
    return (uint64_t)NEVER;
}

static void test_time_stands_still_for_who_is_frozen(void) {
    struct sim_kernel *k = fresh(1, 0);
    struct input in;
    launch(k, 0, 1, "a run 10ms", 0);
    while (sim_kernel_tell(k, 0, &in))
        ;
    CHECK(sim_kernel_next(k) >= NS_PER_MS && sim_kernel_next(k) <= 2 * NS_PER_MS);
    uint64_t begun = sim_kernel_next(k);
    CHECK(!sim_kernel_tell(k, begun, &in));
    CHECK_EQ(sim_kernel_next(k), begun + 10 * NS_PER_MS);
    carry(k, EFFECT_GROUP_FREEZE, 0, 1, begun + 4 * NS_PER_MS);
    CHECK_EQ(sim_kernel_next(k), UINT64_MAX);
    carry(k, EFFECT_GROUP_FREEZE, 0, 0, NS_PER_S);
    CHECK_EQ(sim_kernel_next(k), NS_PER_S + 6 * NS_PER_MS);
    CHECK_EQ(play_until(k, INPUT_EMPTY, &in), NS_PER_S + 6 * NS_PER_MS);
    sim_kernel_free(k);
}

static void test_the_same_seed_draws_the_same(void) {
    uint64_t ends[3];
    for (int i = 0; i < 3; i++) {
        struct sim_kernel *k = fresh(i == 2 ? 8 : 7, 0);
        struct input in;
        launch(k, 0, 1, "a run 1ms-500ms", 0);
        ends[i] = play_until(k, INPUT_EMPTY, &in);
        CHECK(ends[i] >= 2 * NS_PER_MS && ends[i] <= 502 * NS_PER_MS);
        sim_kernel_free(k);
    }
    CHECK_EQ(ends[0], ends[1]);
    CHECK(ends[0] != ends[2]);
}

static void test_who_is_alive(void) {
    struct sim_kernel *k = fresh(1, 0);
    struct input in;
    launch(k, 0, 2, "a fork run 1ms exit 0", 0);
    launch(k, 1, 1, "a hang", 0);
    CHECK_EQ(sim_kernel_alive(k, 100), 2);
    CHECK_EQ(play_until(k, INPUT_EMPTY, &in), (uint64_t)NEVER);
    CHECK_EQ(sim_kernel_alive(k, 100), 2); /* the children */
    CHECK_EQ(sim_kernel_alive(k, 101), 1);
    CHECK_EQ(sim_kernel_alive(k, 102), 0);
    carry(k, EFFECT_GROUP_KILL, 0, 0, NS_PER_S);
    CHECK_EQ(sim_kernel_alive(k, 100), 0);
    CHECK_EQ(sim_kernel_next(k), NS_PER_S);
    CHECK(sim_kernel_tell(k, NS_PER_S, &in) && in.kind == INPUT_STREAM && in.stream.end);
    CHECK_EQ(play_until(k, INPUT_EMPTY, &in), NS_PER_S);
    CHECK_EQ(sim_kernel_alive_all(k), 1);
    sim_kernel_crash(k);
    CHECK_EQ(sim_kernel_alive_all(k), 0);
    CHECK_EQ(sim_kernel_next(k), UINT64_MAX);
    launch(k, 1, 1, "a", NS_PER_S); /* for the next launcher */
    CHECK(play_until(k, INPUT_EMPTY, &in) > NS_PER_S);
    sim_kernel_free(k);
}

/* As in a cgroup; where Linux has none and stops the processes instead, the signal waits. */
static void test_a_fatal_signal_ends_what_is_frozen(void) {
    struct sim_kernel *k = fresh(1, 0);
    struct input in;
    launch(k, 0, 1, "a hang", 0);
    while (sim_kernel_tell(k, NS_PER_S, &in))
        ;
    carry(k, EFFECT_GROUP_FREEZE, 0, 1, NS_PER_S);
    carry(k, EFFECT_GROUP_SIGNAL, 0, 15, NS_PER_S);
    CHECK_EQ(play_until(k, INPUT_CHILD, &in), NS_PER_S);
    CHECK(in.child.event == CHILD_KILLED && in.child.value == 15);
    sim_kernel_free(k);
}

static void test_starts_may_fail(void) {
    struct sim_kernel *k = fresh(1, 1000);
    struct input in;
    launch(k, 0, 1, "a", 0);
    CHECK(sim_kernel_tell(k, 0, &in) && in.kind == INPUT_CHILD);
    CHECK(in.child.event == CHILD_FAILED && in.child.step == SPAWN_FORK);
    CHECK_EQ(play_until(k, INPUT_EMPTY, &in), 0);
    sim_kernel_free(k);
}

int main(void) {
    TEST(test_time_stands_still_for_who_is_frozen);
    TEST(test_the_same_seed_draws_the_same);
    TEST(test_who_is_alive);
    TEST(test_a_fatal_signal_ends_what_is_frozen);
    TEST(test_starts_may_fail);
    return tap_finish();
}
