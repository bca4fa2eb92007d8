/* SPDX-License-Identifier: MIT */
/* What debuggers find: only what somebody has wanted, and nothing of processes that are gone. */
#include <stdlib.h>
#include <string.h>

#include "cli/follow.h"
#include "cli/mpir.h"
#include "tap.h"

static struct follow *begin(bool asked) {
    struct follow *f = calloc(1, sizeof *f);
    CHECK(f != NULL);
    f->contact.loop.now = 1;
    f->debug.asked = asked;
    return f;
}

static void finish(struct follow *f) {
    debug_end(f);
    CHECK(MPIR_proctable == NULL);
    MPIR_being_debugged = 0;
    free(f);
}

static void runs(struct follow *f, uint64_t run) {
    struct message_news n = {.state = STATE_RUNNING, .run = run, .procs = 2};
    debug_news(f, &n);
}

static void told(struct follow *f, uint64_t run, uint32_t first, uint32_t second) {
    uint8_t rows[2 * PIDS_ROW_BYTES];
    store_le32(rows, 0);
    store_le32(rows + 4, first);
    store_le32(rows + 8, 1);
    store_le32(rows + 12, second);
    struct message_pids m = {.run = run,
                             .node = bytes_from_str("n0"),
                             .host = bytes_from_str("alpha"),
                             .rows = bytes_of(rows, sizeof rows)};
    debug_pids(f, &m);
}

static void test_started_again(void) {
    struct follow *f = begin(true);
    runs(f, 7);
    told(f, 7, 100, 101);
    CHECK_EQ(MPIR_debug_state, MPIR_DEBUG_SPAWNED);
    CHECK_EQ(MPIR_proctable_size, 2);
    CHECK_STR(MPIR_proctable[1].host_name, "alpha");
    CHECK_EQ(MPIR_proctable[1].pid, 101);
    runs(f, 7); /* the same news again */
    CHECK_EQ(MPIR_proctable_size, 2);
    runs(f, 8);
    CHECK_EQ(MPIR_debug_state, MPIR_NULL);
    CHECK_EQ(MPIR_proctable_size, 0);
    CHECK(MPIR_proctable == NULL);
    told(f, 8, 200, 0); /* one has ended */
    CHECK_EQ(MPIR_proctable_size, 2);
    CHECK_EQ(MPIR_proctable[0].pid, 200);
    CHECK_EQ(MPIR_proctable[1].pid, 0);
    finish(f);
}

/* Without a session here, asking would fail. */
static void test_nobody_wants_to_know(void) {
    struct follow *f = begin(false);
    runs(f, 7);
    debug_settle(f);
    f->contact.loop.now += 100 * NS_PER_S;
    debug_settle(f);
    CHECK_EQ(f->debug.ask_at, 0);
    told(f, 7, 100, 101);
    CHECK(MPIR_proctable == NULL);
    MPIR_being_debugged = 1;
    runs(f, 8);
    CHECK(f->debug.ask_at != 0);
    finish(f);
}

int main(void) {
    TEST(test_started_again);
    TEST(test_nobody_wants_to_know);
    return tap_finish();
}
