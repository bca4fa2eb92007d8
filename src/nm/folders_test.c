/* SPDX-License-Identifier: MIT */
/* Folders of runs: asked about while their run is not here, removed when nobody wants them, whatever is lost. */
#include <stdlib.h>

#include "base/units.h"
#include "nm/inside.h"
#include "rm/say.h"
#include "tap.h"

enum { MOVER = 7, EFFECTS = 4 * FOLDERS_MAX, BYTES = 16 * 1024 };

static const struct roster roster = {.prefix = "n", .capacity = 4, .count = 4};
static const struct nm_config config = {
    .limits = {.nodes = 4, .roots = 1, .body_bytes = 256}, .runs = 8, .roster = &roster};

static void *memory, *list, *bytes;
static struct nm *nm;
static struct effects effects;
static uint64_t now;

static void begin(void) {
    struct arena a;
    size_t size = nm_bytes(&config);
    memory = calloc(1, size);
    list = calloc(EFFECTS, sizeof(struct effect));
    bytes = calloc(1, BYTES);
    arena_init(&a, memory, size);
    nm = nm_new(&config, &a);
    effects_init(&effects, list, EFFECTS, bytes, BYTES);
    nm->out = &effects;
    nm->now = now = NS_PER_S;
    nm->settled = 1;
    nm->ready = true;
}

static void end(void) {
    free(memory);
    free(list);
    free(bytes);
}

static void forget_effects(void) {
    effects_clear(&effects);
}

static void pass(uint64_t ns) {
    nm->now = now += ns;
    forget_effects();
    folders_timer(nm);
}

/* How often the root was told that we have this run. */
static int asked(uint64_t run) {
    int count = 0;
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct effect *e = &effects.list[i];
        union message m;
        if (e->kind != EFFECT_REQUEST || e->request.kind != PRIMITIVE_MAIL ||
            e->request.type != MESSAGE_HAVE)
            continue;
        CHECK_EQ(message_decode(MESSAGE_HAVE, e->request.body, nm->scratch, &m), 0);
        count += m.have.runs.len == 8 && load_le64(m.have.runs.at) == run && !m.have.all;
    }
    return count;
}

/* How many the mover was told to remove. */
static size_t cleared(void) {
    size_t count = 0;
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct effect *e = &effects.list[i];
        union message m;
        if (e->kind != EFFECT_SEND || e->send.type != MESSAGE_CLEAR)
            continue;
        CHECK_EQ(e->send.links[0], MOVER);
        CHECK_EQ(message_decode(MESSAGE_CLEAR, e->send.head, nm->scratch, &m), 0);
        count += m.clear.runs.len / 8;
    }
    return count;
}

static bool reached(void) {
    for (uint32_t i = 0; i < effects.count; i++)
        if (effects.list[i].kind == EFFECT_OPEN && effects.list[i].open.purpose == PURPOSE_MOVER)
            return true;
    return false;
}

static void tell_gone(uint64_t run) {
    uint8_t number[8];
    store_le64(number, run);
    folders_gone(nm, &(struct message_clear){.runs = bytes_of(number, 8)});
}

static void test_one_whose_run_is_not_here(void) {
    begin();
    CHECK(folders_add(nm, 42));
    pass(NS_PER_S);
    CHECK_EQ(asked(42), 0); /* the root has just told of it */
    pass(5 * NS_PER_S);
    CHECK_EQ(asked(42), 1);
    pass(NS_PER_S);
    CHECK_EQ(asked(42), 0);
    pass(5 * NS_PER_S);
    CHECK_EQ(asked(42), 1);
    CHECK(run_add(nm, 42) != NULL);
    pass(10 * NS_PER_S);
    CHECK_EQ(asked(42), 0);
    nm->settled = 0;
    run_drop(nm, run_find(nm, 42));
    pass(10 * NS_PER_S);
    CHECK_EQ(asked(42), 0); /* nobody would hear it */
    end();
}

static void test_those_of_a_former_life(void) {
    uint8_t runs[16];
    begin();
    store_le64(runs, 42);
    store_le64(runs + 8, 43);
    folders_boot(nm, bytes_of(runs, sizeof runs));
    nm->ready = false;
    pass(NS_PER_S);
    CHECK_EQ(asked(42), 0); /* the launcher may have it */
    nm->ready = true;
    pass(NS_PER_S);
    CHECK_EQ(asked(42) + asked(43), 2);
    end();
}

static void test_removed_by_the_mover(void) {
    begin();
    folders_add(nm, 42);
    forget_effects();
    folders_drop(nm, 41);
    CHECK(!reached());
    folders_drop(nm, 42);
    CHECK(reached());
    CHECK_EQ(cleared(), 0);
    nm->mover = MOVER;
    nm->mover_opening = false;
    forget_effects();
    folders_up(nm);
    CHECK_EQ(cleared(), 1);
    pass(NS_PER_S); /* until it says that it is gone */
    CHECK_EQ(cleared(), 1);
    CHECK_EQ(asked(42), 0);
    tell_gone(42);
    pass(NS_PER_S);
    CHECK_EQ(cleared(), 0);
    end();
}

static void test_forgotten_or_killed(void) {
    uint8_t run[8];
    begin();
    nm->mover = MOVER;
    folders_add(nm, 42);
    folders_add(nm, 43);
    folders_add(nm, 44);
    CHECK(run_add(nm, 42) != NULL && run_add(nm, 44) != NULL);
    forget_effects();
    store_le64(run, 42);
    launch_forget(nm, &(struct message_forget){.runs = bytes_of(run, 8)});
    CHECK(run_find(nm, 42) == NULL);
    CHECK_EQ(cleared(), 1);
    forget_effects();
    launch_command(nm, &(struct message_command){.run = 43, .verb = VERB_CHECK});
    CHECK_EQ(cleared(), 0);
    launch_command(nm, &(struct message_command){.run = 43, .verb = VERB_KILL});
    CHECK_EQ(cleared(), 2); /* the first has not been told to be gone */
    forget_effects();
    nm->settled = 0; /* whether its launch was decided is not known */
    store_le64(run, 44);
    launch_forget(nm, &(struct message_forget){.runs = bytes_of(run, 8)});
    CHECK_EQ(cleared(), 0);
    end();
}

static void test_too_many(void) {
    begin();
    for (uint64_t i = 1; i <= FOLDERS_MAX; i++)
        CHECK(folders_add(nm, i));
    CHECK(folders_add(nm, 1));
    CHECK(!folders_add(nm, FOLDERS_MAX + 1));
    folders_drop(nm, 1);
    CHECK(!folders_add(nm, FOLDERS_MAX + 1)); /* it is not gone yet */
    tell_gone(1);
    CHECK(folders_add(nm, FOLDERS_MAX + 1));
    tell_gone(2); /* which nobody wanted */
    CHECK(!folders_add(nm, FOLDERS_MAX + 2));
    end();
}

int main(void) {
    TEST(test_one_whose_run_is_not_here);
    TEST(test_those_of_a_former_life);
    TEST(test_removed_by_the_mover);
    TEST(test_forgotten_or_killed);
    TEST(test_too_many);
    return tap_finish();
}
