/* SPDX-License-Identifier: MIT */
/* Gangs of real processes, switched by the program storm-pl: whole, whatever a program does, by every means there is here.
 *
 * Arguments: storm-pl and tests/ticker. Nobody waits for a time: that one gang is held is seen while the other counts up. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "os/pen.h"
#include "os/rehearsal.h"
#include "tap.h"

enum { BYTES = 64 * 1024, PATIENCE_S = 60, ENOUGH = 10 };
enum { LARGE = 1, SMALL = 2, LARGE_COUNT = 101, SMALL_COUNT = 4, SMALL_FIRST = 200 };

static const char *storm_pl, *ticker;

struct stage {
    struct rehearsal r;
    char file[64];
    _Atomic uint64_t *numbers;
};

static void launch(struct stage *s, uint32_t gang, uint64_t slots, uint32_t first, uint32_t count) {
    char text[256];
    int len = snprintf(text, sizeof text, "ticker%c%s%c%u%c%u", 0, s->file, 0, first, 0, count) + 1;
    CHECK_EQ(rehearsal_launch(&s->r, gang, slots, 1, ticker, bytes_of(text, (size_t)len)), 0);
}

static bool begin(struct stage *s, enum confine confine) {
    snprintf(s->file, sizeof s->file, "/tmp/storm-ticker-XXXXXX");
    int fd = mkstemp(s->file);
    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
    s->numbers = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    CHECK(s->numbers != MAP_FAILED);
    if (rehearsal_begin(&s->r, storm_pl, confine) == 0)
        return true;
    munmap(s->numbers, BYTES);
    unlink(s->file);
    return false;
}

static void finish(struct stage *s) {
    rehearsal_end(&s->r);
    munmap(s->numbers, BYTES);
    unlink(s->file);
}

#define UNTIL(s, condition)                                  \
    ({                                                       \
        uint64_t until = clock_ns() + PATIENCE_S * NS_PER_S; \
        while (!(condition) && clock_ns() < until)           \
            rehearsal_listen(&(s)->r, 2);                    \
        (condition);                                         \
    })

/* ---- who counts ---- */

struct look {
    uint64_t numbers[SMALL_FIRST + SMALL_COUNT];
};

static struct look look(const struct stage *s) {
    struct look l;
    for (uint32_t i = 0; i < SMALL_FIRST + SMALL_COUNT; i++)
        l.numbers[i] = atomic_load(&s->numbers[i]);
    return l;
}

/* The last of a gang has stopped itself and counts no more. */
static bool all_count(const struct stage *s, const struct look *since, uint32_t first,
                      uint32_t count) {
    for (uint32_t i = first; i < first + count - 1; i++)
        if (atomic_load(&s->numbers[i]) < since->numbers[i] + ENOUGH)
            return false;
    return true;
}

static bool none_counts(const struct stage *s, const struct look *since, uint32_t first,
                        uint32_t count) {
    for (uint32_t i = first; i < first + count; i++)
        if (atomic_load(&s->numbers[i]) != since->numbers[i])
            return false;
    return true;
}

static bool large_counts(struct stage *s) {
    struct look l = look(s);
    return UNTIL(s, all_count(s, &l, 0, LARGE_COUNT));
}

static bool small_counts(struct stage *s) {
    struct look l = look(s);
    return UNTIL(s, all_count(s, &l, SMALL_FIRST, SMALL_COUNT));
}

/* While the other has a turn. The switch itself takes a moment: until then it may count. */
static bool large_is_held(struct stage *s) {
    for (int i = 0; i < 50; i++) {
        struct look l = look(s);
        if (!small_counts(s))
            return false;
        if (none_counts(s, &l, 0, LARGE_COUNT))
            return true;
    }
    return false;
}

static bool small_is_held(struct stage *s) {
    for (int i = 0; i < 50; i++) {
        struct look l = look(s);
        if (!large_counts(s))
            return false;
        if (none_counts(s, &l, SMALL_FIRST, SMALL_COUNT))
            return true;
    }
    return false;
}

static bool turn(struct stage *s, uint8_t slot) {
    uint32_t before = s->r.turned;
    rehearsal_turn(&s->r, slot, 10000, true);
    return UNTIL(s, s->r.turned != before) && s->r.answer.slot == slot;
}

/* ---- tests ---- */

static void both(struct stage *s) {
    launch(s, LARGE, 1, 0, LARGE_COUNT);
    CHECK(large_counts(s));
    CHECK(turn(s, 0));
    launch(s, SMALL, 2, SMALL_FIRST, SMALL_COUNT);
    struct look l = look(s);
    CHECK(large_counts(s)); /* the other is not started before its turn */
    CHECK(none_counts(s, &l, SMALL_FIRST, SMALL_COUNT));
}

static void switch_whole(struct stage *s) {
    both(s);
    for (int i = 0; i < 4; i++) {
        s->r.by_link = i % 2 == 1; /* and past it: the newest counts, whichever way it comes */
        CHECK(turn(s, 1));
        CHECK(large_is_held(s));
        CHECK(turn(s, 0));
        CHECK(small_is_held(s));
    }
    /* Who had stopped itself was never let go. */
    CHECK_EQ(atomic_load(&s->numbers[LARGE_COUNT - 1]), 0);
    CHECK_EQ(atomic_load(&s->numbers[SMALL_FIRST + SMALL_COUNT - 1]), 0);
    CHECK(turn(s, GANG_ALL));
    CHECK(small_is_held(s)); /* there are two rows all the same */
    rehearsal_slots(&s->r, SMALL, 3);
    CHECK(large_counts(s) && small_counts(s));
}

static void hold_and_end(struct stage *s) {
    both(s);
    CHECK(turn(s, 1));
    CHECK(large_is_held(s));
    rehearsal_command(&s->r, LARGE, VERB_SUSPEND, 0);
    CHECK(turn(s, 0)); /* its turn, but its user holds it */
    rehearsal_command(&s->r, LARGE, VERB_RESUME, 0);
    CHECK(small_is_held(s));
    rehearsal_command(&s->r, SMALL, VERB_KILL, 0); /* in a foreign slot */
    CHECK(UNTIL(s, s->r.gangs[SMALL].ended));
    CHECK(s->r.gangs[SMALL].end.cause == CAUSE_EXITED && s->r.gangs[SMALL].end.ours);
    launch(s, SMALL, 2, SMALL_FIRST, SMALL_COUNT);
    rehearsal_command(&s->r, LARGE, VERB_KILL, 0); /* in its own: the next begins at once */
    CHECK(UNTIL(s, s->r.gangs[LARGE].ended));
    CHECK(small_counts(s));
    rehearsal_command(&s->r, SMALL, VERB_SIGNAL, SIGTERM);
    CHECK(UNTIL(s, s->r.gangs[SMALL].ended));
}

static void by(enum confine confine, enum gang_means means, void (*play)(struct stage *)) {
    struct stage s;
    if (!begin(&s, confine)) {
        printf("# --confine %s is not to be had here\n", confine_name(confine));
        return;
    }
    play(&s);
    CHECK(turn(&s, 0));
    CHECK_EQ(s.r.answer.means, means);
    finish(&s);
}

static void test_switched_whole_by_cgroups(void) {
    by(CONFINE_CGROUP, GANG_BY_CGROUP, switch_whole);
}

static void test_switched_whole_by_namespaces(void) {
    by(CONFINE_NAMESPACE, GANG_BY_NAMESPACE, switch_whole);
}

static void test_switched_whole_by_descent(void) {
    by(CONFINE_NONE, GANG_BY_DESCENT, switch_whole);
}

static void test_held_and_ended_by_cgroups(void) {
    by(CONFINE_CGROUP, GANG_BY_CGROUP, hold_and_end);
}

static void test_held_and_ended_by_namespaces(void) {
    by(CONFINE_NAMESPACE, GANG_BY_NAMESPACE, hold_and_end);
}

static void test_held_and_ended_by_descent(void) {
    by(CONFINE_NONE, GANG_BY_DESCENT, hold_and_end);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        puts("1..0 # SKIP give storm-pl and ticker");
        return 0;
    }
    storm_pl = argv[1];
    ticker = argv[2];
    TEST(test_switched_whole_by_cgroups);
    TEST(test_switched_whole_by_namespaces);
    TEST(test_switched_whole_by_descent);
    TEST(test_held_and_ended_by_cgroups);
    TEST(test_held_and_ended_by_namespaces);
    TEST(test_held_and_ended_by_descent);
    return tap_finish();
}
