/* SPDX-License-Identifier: MIT */
/*
 * Arenas: measuring and carving agree; asking for too much is caught.
 */
#include "base/arena.h"

#include <setjmp.h>

#include "base/assert.h"
#include "tap.h"

static jmp_buf caught;

/* Instead of the program's: a failed assertion comes back to the test. */
_Noreturn void assert_failed(const char *expr, const char *file, int line) {
    (void)expr, (void)file, (void)line;
    longjmp(caught, 1);
}

struct parts {
    uint8_t *a;
    uint64_t *b;
    char *c;
    void *d;
};

static struct parts carve(struct arena *a) {
    struct parts p;
    p.a = ARENA_TAKE(a, uint8_t, 3);
    p.b = ARENA_TAKE(a, uint64_t, 5);
    p.c = ARENA_TAKE(a, char, 1);
    p.d = arena_take(a, 10, 64);
    return p;
}

static void test_measure_then_carve(void) {
    alignas(64) static uint8_t memory[256];
    struct arena a;
    arena_init(&a, NULL, 0);
    CHECK(arena_measuring(&a));
    struct parts p = carve(&a);
    CHECK(!p.a && !p.b && !p.c && !p.d);
    size_t need = arena_used(&a);
    CHECK_EQ(need, 64 + 10);
    arena_init(&a, memory, need);
    p = carve(&a);
    CHECK_EQ(arena_used(&a), need);
    CHECK(p.a == memory && (uint8_t *)p.b == memory + 8 && (uint8_t *)p.c == memory + 48 &&
          (uint8_t *)p.d == memory + 64);
}

static bool take_fails(struct arena *a, size_t count, size_t size, size_t align) {
    if (setjmp(caught))
        return true;
    arena_take_array(a, count, size, align);
    return false;
}

static void test_exhaustion_is_a_bug(void) {
    alignas(64) static uint8_t memory[64];
    struct arena a;
    arena_init(&a, memory, 64);
    CHECK(!take_fails(&a, 1, 64, 1));
    CHECK(take_fails(&a, 1, 1, 1));
    arena_init(&a, memory, 64);
    CHECK(take_fails(&a, SIZE_MAX / 2, 4, 1));
    arena_init(&a, memory + 8, 32);
    CHECK(take_fails(&a, 1, 1, 64)); /* memory not aligned enough */
    arena_init(&a, NULL, 0);
    CHECK(!take_fails(&a, 1, SIZE_MAX - 8, 1));
    CHECK(take_fails(&a, 1, 9, 1)); /* a measurement does not wrap around */
}

int main(void) {
    TEST(test_measure_then_carve);
    TEST(test_exhaustion_is_a_bug);
    return tap_finish();
}
