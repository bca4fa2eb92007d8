/* SPDX-License-Identifier: MIT */
/*
 * A small TAP harness for tests that are one C file.
 *
 *     static void test_push(void) {
 *         CHECK(queue_push(&q, 7));
 *         CHECK_EQ(queue_length(&q), 1);
 *     }
 *     int main(void) {
 *         TEST(test_push);
 *         SKIP("test_huge_pages", "this kernel has none");
 *         return tap_finish();
 *     }
 *
 * A failed check marks the running test as failed and goes on. Checks return whether they held, so
 * a test can stop where going on makes no sense: if (!CHECK(p)) return;
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int tap_count;         /* tests so far */
static int tap_failed;        /* how many of them failed */
static bool tap_current_fail; /* the running test has a failed check */

#define TEST(function)     tap_run(#function, function)
#define SKIP(name, reason) tap_skip(name, reason)

#define CHECK(condition) tap_check((condition), #condition, __FILE__, __LINE__)
#define CHECK_STR(a, b)  tap_check_str((a), (b), #a " is " #b, __FILE__, __LINE__)

/* Integers of any type and sign; they are equal if they are the same number. */
#define CHECK_EQ(a, b) tap_check_eq(TAP_NUMBER(a), TAP_NUMBER(b), #a " == " #b, __FILE__, __LINE__)

struct tap_number {
    bool negative;
    uint64_t bits; /* two's complement if negative */
};

static inline struct tap_number tap_signed(int64_t value) {
    return (struct tap_number){.negative = value < 0, .bits = (uint64_t)value};
}

static inline struct tap_number tap_unsigned(uint64_t value) {
    return (struct tap_number){.negative = false, .bits = value};
}

/* clang-format off */
#define TAP_NUMBER(x)                                                                              \
    _Generic((x), _Bool: tap_unsigned, unsigned char: tap_unsigned, unsigned short: tap_unsigned,  \
             unsigned int: tap_unsigned, unsigned long: tap_unsigned,                              \
             unsigned long long: tap_unsigned, default: tap_signed)(x)
/* clang-format on */

static inline bool tap_check(bool holds, const char *expr, const char *file, int line) {
    if (!holds) {
        tap_current_fail = true;
        printf("# %s:%d: %s\n", file, line, expr);
        fflush(stdout);
    }
    return holds;
}

static inline void tap_print_number(const char *label, struct tap_number n) {
    if (n.negative)
        printf("#   %s %lld\n", label, (long long)n.bits);
    else
        printf("#   %s %llu\n", label, (unsigned long long)n.bits);
}

static inline bool tap_check_eq(struct tap_number a, struct tap_number b, const char *expr,
                                const char *file, int line) {
    bool same = a.negative == b.negative && a.bits == b.bits;
    if (!tap_check(same, expr, file, line)) {
        tap_print_number("left: ", a);
        tap_print_number("right:", b);
        fflush(stdout);
    }
    return same;
}

static inline bool tap_check_str(const char *a, const char *b, const char *expr, const char *file,
                                 int line) {
    bool same = a == b || (a && b && strcmp(a, b) == 0);
    if (!tap_check(same, expr, file, line)) {
        printf("#   left:  %s\n#   right: %s\n", a ? a : "(null)", b ? b : "(null)");
        fflush(stdout);
    }
    return same;
}

static inline void tap_run(const char *name, void (*function)(void)) {
    tap_current_fail = false;
    function();
    if (tap_current_fail)
        tap_failed++;
    printf("%s %d - %s\n", tap_current_fail ? "not ok" : "ok", ++tap_count, name);
    fflush(stdout);
}

static inline void tap_skip(const char *name, const char *reason) {
    printf("ok %d - %s # SKIP %s\n", ++tap_count, name, reason);
    fflush(stdout);
}

/* The last call of main: prints the plan, returns the exit status. */
static inline int tap_finish(void) {
    printf("1..%d\n", tap_count);
    return tap_failed > 0;
}
