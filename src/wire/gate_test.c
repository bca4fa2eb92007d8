/* SPDX-License-Identifier: MIT */
/* Each reason for a refusal, and that nothing but a good frame moves the sequence on. */
#include "wire/gate.h"

#include "tap.h"
#include "wire/message.h"

static struct header good(uint32_t sequence) {
    return (struct header){.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .lane = LANE_CONTROL,
                           .type = MESSAGE_TICK,
                           .length = 10,
                           .sequence = sequence,
                           .epoch = 1,
                           .node = 7,
                           .life = 2};
}

static void test_refusals(void) {
    struct gate g;
    gate_init(&g, 7, 2, ROLE_PARENT);
    struct header h = good(1);
    h.magic = 0;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_MAGIC);
    h = good(1);
    h.zero32 = 1;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_MAGIC);
    h = good(1);
    h.version = 9;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_VERSION);
    h = good(1);
    h.type = 999;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_TYPE);
    h = good(1);
    h.type = MESSAGE_ATTACH; /* only a child may say that */
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_ROLE);
    h = good(1);
    h.lane = LANE_BULK;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_LANE);
    h = good(1);
    h.length = UINT32_MAX;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_SIZE);
    h = good(1);
    CHECK_EQ(gate_check(&g, &h, 9), REFUSAL_SIZE);
    h = good(1);
    h.node = 8;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_SENDER);
    h = good(1);
    h.life = 1;
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_SENDER);
    h = good(1);
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_NONE);
}

static void test_sequence(void) {
    struct gate g;
    gate_init(&g, 7, 2, ROLE_PARENT);
    struct header h = good(1);
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_NONE);
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_DUPLICATE);
    h = good(3);
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_GAP);
    h = good(2);
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_NONE);
    h = good(1);
    CHECK_EQ(gate_check(&g, &h, 4096), REFUSAL_DUPLICATE);
}

static void test_header_round_trip(void) {
    struct header h = good(5), back;
    uint8_t bytes[HEADER_BYTES];
    header_encode(&h, bytes);
    header_decode(&back, bytes);
    CHECK_EQ(back.magic, h.magic);
    CHECK_EQ(back.length, h.length);
    CHECK_EQ(back.sequence, h.sequence);
    CHECK_EQ(back.node, h.node);
    CHECK_EQ(back.life, h.life);
    CHECK_EQ(back.epoch, h.epoch);
}

static void test_names(void) {
    for (int r = 0; r < REFUSALS; r++)
        CHECK(refusal_name((enum refusal)r)[0] != '?');
}

int main(void) {
    TEST(test_refusals);
    TEST(test_sequence);
    TEST(test_header_round_trip);
    TEST(test_names);
    return tap_finish();
}
