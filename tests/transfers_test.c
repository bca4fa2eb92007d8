/* SPDX-License-Identifier: MIT */
/* Files to many nodes, in the simulated world: directed cases. The campaign of files draws the others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rm/spread.h"
#include "sim/yard.h"
#include "tap.h"

enum { NODES_MAX = 64 };

static uint32_t sins;

static void sinned(void *context, uint32_t body, enum sim_depot_sin sin) {
    (void)context;
    printf("# body %u %s\n", (unsigned)body, sim_depot_sin_name(sin));
    sins++;
}

static struct yard_config usual(uint32_t nodes) {
    struct yard_config c = {.nodes = nodes, .clients = 1, .seed = 1, .hosts = true, .hash = true};
    c.link = (struct link_model){.latency_ns = 20 * NS_PER_US,
                                 .bytes_per_s = 1250000000,
                                 .cpu_receive_ns = 5 * NS_PER_US,
                                 .cpu_send_ns = 5 * NS_PER_US,
                                 .connect_ns = 60 * NS_PER_US};
    c.mover = mover_usual(nodes + 1, 0);
    c.mover.takers = 32;
    c.mover.pieces = 4096;
    c.depot.latency_ns = 10 * NS_PER_US;
    c.depot.jitter_ns = 50 * NS_PER_US;
    c.depot.bytes_per_s = 2000000000;
    c.depot.commit_ns = NS_PER_MS;
    c.depot.sinned = sinned;
    return c;
}

static struct shipment to_all(struct yard *y, uint32_t nodes, uint32_t cargo, uint8_t shape) {
    static uint64_t storage[64];
    struct shipment s = {.cargo = yard_stock(y)->cargoes[cargo],
                         .source = NO_NODE,
                         .shape = shape,
                         .arity = 2,
                         .slots = 8};
    nodeset_init(&s.set, nodes + 1, storage);
    nodeset_add_range(&s.set, 0, nodes - 1);
    return s;
}

static void run(struct yard *y, uint64_t ns) {
    world_run_until(yard_world(y), world_now(yard_world(y)) + ns);
}

/* Runs until everybody has said how it went, at most so long. */
static bool settle(struct yard *y, uint32_t index, uint64_t ns) {
    uint64_t until = world_now(yard_world(y)) + ns;
    while (!yard_settled(y, index) && world_now(yard_world(y)) < until)
        run(y, NS_PER_MS);
    return yard_settled(y, index);
}

static void check_over(struct yard *y, uint32_t nodes) {
    for (uint32_t i = 0; i < yard_shipments(y); i++)
        yard_enough(y, i, true);
    run(y, 15 * NS_PER_S);
    for (uint32_t i = 0; i <= nodes; i++) {
        uint32_t body = yard_mover(y, 0) + i;
        CHECK(mover_idle(yard_machine(y, body)));
        CHECK_EQ(world_buffers(yard_world(y), body), 0);
        CHECK_EQ(world_links(yard_world(y), body), i < nodes);
        CHECK_EQ(sim_depot_open(yard_depot(y, body)), 0);
    }
    CHECK_EQ(sins, 0);
}

/* A yard with one cargo, everybody on. */
static struct yard *prepare(const struct yard_config *c, uint32_t pieces, uint32_t piece_bytes) {
    struct yard *y = yard_new(c);
    struct random r;
    random_init(&r, c->nodes);
    struct cargo_config k = {
        .pieces = pieces, .page_pieces = 20, .piece_bytes = piece_bytes, .holes_percent = 5};
    stock_add(yard_stock(y), &k, &r);
    yard_boot_all(y);
    run(y, NS_PER_MS);
    return y;
}

static struct sim_depot *depot_of(const struct yard *y, uint32_t node) {
    return yard_depot(y, yard_mover(y, node));
}

static enum shipment_state state(const struct yard *y, uint32_t index, uint32_t node) {
    return (enum shipment_state)yard_shipment(y, index)->state[node];
}

static void test_every_shape(void) {
    for (uint8_t shape = SPREAD_CHAIN; shape < SPREAD_SHAPES; shape++)
        for (uint32_t nodes = 1; nodes < 20; nodes += 3) {
            struct yard_config c = usual(nodes);
            struct yard *y = prepare(&c, 300, 65536);
            struct shipment s = to_all(y, nodes, 0, shape);
            uint32_t index = yard_ship(y, &s);
            CHECK(settle(y, index, 5 * NS_PER_S));
            for (uint32_t i = 0; i < nodes; i++) {
                CHECK_EQ(state(y, index, i), SHIPMENT_HERE);
                CHECK(sim_depot_has(depot_of(y, i), s.cargo));
                CHECK_EQ(sim_depot_counts(depot_of(y, i))->stored_bytes, cargo_bytes(s.cargo));
                CHECK_EQ(sim_depot_counts(depot_of(y, i))->again, 0);
            }
            check_over(y, nodes);
            yard_free(y);
        }
}

static void test_what_is_there_does_not_come(void) {
    struct yard_config c = usual(9);
    struct yard *y = prepare(&c, 200, 65536);
    struct shipment s = to_all(y, 9, 0, SPREAD_PAIR);
    for (uint32_t i = 0; i < 9; i++)
        sim_depot_cache(depot_of(y, i), s.cargo, i % 2 == 0 ? 100 : 50);
    uint32_t lacks[9];
    for (uint32_t i = 0; i < 9; i++)
        lacks[i] = sim_depot_lacks(depot_of(y, i), s.cargo, NULL);
    uint32_t index = yard_ship(y, &s);
    CHECK(settle(y, index, 5 * NS_PER_S));
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ(state(y, index, i), SHIPMENT_HERE);
        CHECK_EQ(sim_depot_counts(depot_of(y, i))->stored, lacks[i]);
    }
    check_over(y, 9);
    yard_free(y);
}

static void test_a_node_gives_to_itself_too(void) {
    for (uint8_t shape = SPREAD_CHAIN; shape < SPREAD_SHAPES; shape++) {
        struct yard_config c = usual(7);
        struct yard *y = prepare(&c, 100, 65536);
        struct shipment s = to_all(y, 7, 0, shape);
        s.source = 4;
        uint32_t index = yard_ship(y, &s);
        CHECK(settle(y, index, 5 * NS_PER_S));
        for (uint32_t i = 0; i < 7; i++)
            CHECK_EQ(state(y, index, i), SHIPMENT_HERE);
        check_over(y, 7);
        yard_free(y);
    }
}

/* What was interrupted goes on where it was: the second time only what is missing comes. */
static void test_what_came_of_an_interrupted_transfer_is_used(void) {
    struct yard_config c = usual(6);
    c.clients = 2;
    struct yard *y = prepare(&c, 400, 65536);
    struct shipment s = to_all(y, 6, 0, SPREAD_CHAIN);
    uint32_t first = yard_ship(y, &s);
    run(y, 8 * NS_PER_MS);
    yard_crash(y, yard_client(y, 0), true);
    CHECK(settle(y, first, 40 * NS_PER_S));
    uint64_t had[6];
    for (uint32_t i = 0; i < 6; i++) {
        had[i] = sim_depot_counts(depot_of(y, i))->stored_bytes;
        CHECK_EQ(state(y, first, i), SHIPMENT_FAILED);
        CHECK_EQ(yard_shipment(y, first)->error[i], -ETIMEDOUT);
        CHECK(had[i] > 0 && had[i] < cargo_bytes(s.cargo));
    }
    yard_enough(y, first, true);
    run(y, NS_PER_S);
    s.client = 1;
    uint32_t second = yard_ship(y, &s);
    CHECK(settle(y, second, 5 * NS_PER_S));
    for (uint32_t i = 0; i < 6; i++) {
        CHECK_EQ(state(y, second, i), SHIPMENT_HERE);
        CHECK_EQ(sim_depot_counts(depot_of(y, i))->stored_bytes, cargo_bytes(s.cargo));
        CHECK_EQ(sim_depot_counts(depot_of(y, i))->again, 0);
    }
    yard_free(y);
}

/* Whatever happens to one in the middle costs the others time. How long everybody else takes, in ns. */
static uint64_t others_take(struct yard *y, uint32_t index, uint32_t victim) {
    const struct shipment *s = yard_shipment(y, index);
    uint64_t until = world_now(yard_world(y)) + 60 * NS_PER_S;
    for (;;) {
        uint32_t waiting = 0;
        NODESET_EACH (n, &s->set)
            waiting += n != victim && s->state[n] == SHIPMENT_UNKNOWN;
        if (waiting == 0 || world_now(yard_world(y)) >= until)
            break;
        run(y, NS_PER_MS);
    }
    NODESET_EACH (n, &s->set)
        if (n != victim)
            CHECK_EQ(s->state[n], SHIPMENT_HERE);
    return world_now(yard_world(y)) - s->at;
}

static void test_a_death_in_the_middle_costs_time(void) {
    struct yard_config c = usual(8);
    struct yard *y = prepare(&c, 400, 65536);
    struct shipment s = to_all(y, 8, 0, SPREAD_CHAIN);
    uint32_t index = yard_ship(y, &s);
    run(y, 6 * NS_PER_MS);
    yard_crash(y, yard_mover(y, 3), true);
    CHECK(others_take(y, index, 3) < 200 * NS_PER_MS); /* of 10 without */
    yard_boot(y, yard_mover(y, 3));
    CHECK(settle(y, index, NS_PER_S));
    CHECK_EQ(state(y, index, 3), SHIPMENT_HERE);
    CHECK_EQ(sim_depot_counts(depot_of(y, 3))->stored_bytes, cargo_bytes(s.cargo));
    check_over(y, 8);
    yard_free(y);
}

static void stop_one(uint64_t ns, uint64_t at_most) {
    for (uint8_t shape = SPREAD_CHAIN; shape < SPREAD_SHAPES; shape++) {
        struct yard_config c = usual(8);
        c.link.window_bytes = 128 * KIB;
        struct yard *y = prepare(&c, 400, 65536);
        struct shipment s = to_all(y, 8, 0, shape);
        uint32_t index = yard_ship(y, &s);
        run(y, 6 * NS_PER_MS);
        world_pause(yard_world(y), yard_mover(y, 3), world_now(yard_world(y)) + ns);
        CHECK(others_take(y, index, 3) < at_most);
        CHECK(settle(y, index, ns + 5 * NS_PER_S));
        CHECK_EQ(state(y, index, 3), SHIPMENT_HERE);
        check_over(y, 8);
        yard_free(y);
    }
}

static void test_a_stop_in_the_middle_costs_time(void) {
    stop_one(2 * NS_PER_S, 3 * NS_PER_S);
    stop_one(20 * NS_PER_S, 8 * NS_PER_S); /* nobody waits until it goes on */
}

static void test_a_disk_that_hangs_costs_time(void) {
    struct yard_config c = usual(8);
    struct yard *y = prepare(&c, 400, 65536);
    struct shipment s = to_all(y, 8, 0, SPREAD_CHAIN);
    uint32_t index = yard_ship(y, &s);
    run(y, 6 * NS_PER_MS);
    sim_depot_hang(depot_of(y, 2), world_now(yard_world(y)) + 20 * NS_PER_S);
    CHECK(others_take(y, index, 2) < 8 * NS_PER_S);
    CHECK(settle(y, index, 30 * NS_PER_S));
    CHECK_EQ(state(y, index, 2), SHIPMENT_HERE);
    check_over(y, 8);
    yard_free(y);
}

static void test_a_full_disk_is_its_own_affair(void) {
    struct yard_config c = usual(8);
    struct yard *y = prepare(&c, 400, 65536);
    struct shipment s = to_all(y, 8, 0, SPREAD_KARY);
    struct sim_depot_ills full = {.full_after = 100};
    sim_depot_ail(depot_of(y, 1), &full);
    uint32_t index = yard_ship(y, &s);
    others_take(y, index, 1);
    CHECK_EQ(state(y, index, 1), SHIPMENT_FAILED);
    CHECK_EQ(yard_shipment(y, index)->error[1], -ENOSPC);
    check_over(y, 8);
    yard_free(y);
}

static void test_a_liar_in_the_middle_is_passed_over(void) {
    static const struct sim_depot_ills lies[] = {{.load_chance = 1000}, {.page_chance = 1000}};
    for (int i = 0; i < 2; i++) {
        struct yard_config c = usual(8);
        struct yard *y = prepare(&c, 400, 65536);
        struct shipment s = to_all(y, 8, 0, SPREAD_CHAIN);
        sim_depot_cache(depot_of(y, 2), s.cargo, 100); /* so all that it gives is read */
        sim_depot_ail(depot_of(y, 2), &lies[i]);
        uint32_t index = yard_ship(y, &s);
        CHECK(settle(y, index, 5 * NS_PER_S));
        for (uint32_t n = 0; n < 8; n++)
            CHECK_EQ(state(y, index, n), SHIPMENT_HERE);
        CHECK(sim_depot_counts(depot_of(y, 3))->wrong > 0);
        CHECK_EQ(sim_depot_counts(depot_of(y, 4))->wrong, 0);
        check_over(y, 8);
        yard_free(y);
    }
}

static void test_a_source_that_changes_is_told_to_all(void) {
    struct yard_config c = usual(8);
    struct yard *y = prepare(&c, 400, 65536);
    struct shipment s = to_all(y, 8, 0, SPREAD_KARY);
    uint32_t index = yard_ship(y, &s);
    run(y, 4 * NS_PER_MS);
    struct sim_depot_ills changed = {.error_chance = 1000};
    sim_depot_ail(yard_depot(y, yard_client(y, 0)), &changed);
    CHECK(settle(y, index, 5 * NS_PER_S));
    for (uint32_t n = 0; n < 8; n++) {
        CHECK_EQ(state(y, index, n), SHIPMENT_FAILED);
        CHECK_EQ(yard_shipment(y, index)->error[n], -ESTALE);
        CHECK(!sim_depot_has(depot_of(y, n), s.cargo));
    }
    check_over(y, 8);
    yard_free(y);
}

int main(void) {
    TEST(test_every_shape);
    TEST(test_what_is_there_does_not_come);
    TEST(test_a_node_gives_to_itself_too);
    TEST(test_what_came_of_an_interrupted_transfer_is_used);
    TEST(test_a_death_in_the_middle_costs_time);
    TEST(test_a_stop_in_the_middle_costs_time);
    TEST(test_a_disk_that_hangs_costs_time);
    TEST(test_a_full_disk_is_its_own_affair);
    TEST(test_a_liar_in_the_middle_is_passed_over);
    TEST(test_a_source_that_changes_is_told_to_all);
    return tap_finish();
}
