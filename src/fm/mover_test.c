/* SPDX-License-Identifier: MIT */
/* The mover's machine, fed by hand: corners that a simulation meets rarely. */
#include "fm/mover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "rm/spread.h"
#include "rm/switches.h"
#include "tap.h"
#include "wire/bundle.h"
#include "wire/message.h"

enum { UNIVERSE = 16, SELF = 5, PIECES = 12, PAGE_PIECES = 4, PIECE_BYTES = 1000, OFFER = 77 };
enum { HOST = 90, EFFECTS = 256, BYTES = 64 * 1024 };

static struct {
    struct mover *mover;
    struct machine machine;
    uint64_t now;
    void *memory;
    struct effects out;
    struct effect list[EFFECTS];
    uint8_t bytes[BYTES];
    uint64_t storage[2][16];
    struct nodeset sets[2];
} t;

/* ---- the world ---- */

static void begin(uint32_t takers) {
    struct mover_config c = mover_usual(UNIVERSE, SELF);
    struct arena a;
    c.takers = takers;
    c.pieces = 64;
    free(t.memory);
    t.memory = malloc(mover_bytes(&c));
    arena_init(&a, t.memory, mover_bytes(&c));
    t.mover = mover_new(&c, &a);
    t.machine = mover_machine(t.mover);
    t.now = NS_PER_S;
    effects_init(&t.out, t.list, EFFECTS, t.bytes, BYTES);
    for (int i = 0; i < 2; i++)
        nodeset_init(&t.sets[i], UNIVERSE, t.storage[i]);
}

static void feed(struct input in) {
    in.now = t.now;
    effects_clear(&t.out);
    t.machine.step(t.machine.self, &in, &t.out);
}

static void hear(uint32_t link, uint16_t type, const union message *m) {
    static uint8_t body[4096];
    long len = message_encode(type, m, room_of(body, sizeof body));
    CHECK(len >= 0);
    struct input in = {.kind = INPUT_MESSAGE};
    in.message = (struct input_message){
        .link = link, .type = type, .body = bytes_of(body, len > 0 ? (size_t)len : 0)};
    feed(in);
}

static void link_up(uint32_t link, enum role role, uint64_t cookie) {
    struct input in = {.kind = INPUT_LINK_UP};
    in.link = (struct input_link){.link = link, .role = role, .cookie = cookie};
    feed(in);
}

static void link_down(uint32_t link, enum role role, uint64_t cookie) {
    struct input in = {.kind = INPUT_LINK_DOWN};
    in.link = (struct input_link){.link = link, .role = role, .cookie = cookie};
    feed(in);
}

static void pass(uint64_t ns) {
    t.now += ns;
    feed((struct input){.kind = INPUT_TIMER, .timer = {.id = 1}});
}

/* The only effect of that kind; NULL if there is none, or more. */
static const struct effect *only(enum effect_kind kind) {
    const struct effect *found = NULL;
    for (uint32_t i = 0; i < t.out.count; i++)
        if (t.list[i].kind == kind) {
            if (found != NULL)
                return NULL;
            found = &t.list[i];
        }
    return found;
}

static uint32_t count(enum effect_kind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.out.count; i++)
        n += t.list[i].kind == kind;
    return n;
}

/* What was said of that type, the last time in this step. */
static bool said(uint16_t type, union message *ret) {
    bool any = false;
    for (uint32_t i = 0; i < t.out.count; i++)
        if (t.list[i].kind == EFFECT_SEND && t.list[i].send.type == type)
            any = message_decode(type, t.list[i].send.head, t.sets, ret) == 0;
    return any;
}

/* ---- transfers ---- */

/* Of what the source looks over while it gives it: there may be twice as many pieces. */
static bool is_open;

static struct bytes descriptor(void) {
    static uint8_t out[256], digests[3 * 16], manifest[10];
    struct bundle b = {.digest = DIGEST_XXH3,
                       .goal = GOAL_PATH,
                       .bytes = PIECES * PIECE_BYTES,
                       .manifest_bytes = 10,
                       .pieces = PIECES,
                       .page_pieces = PAGE_PIECES,
                       .piece_bytes = PIECE_BYTES,
                       .to = bytes_from_str("/x"),
                       .pages = bytes_of(digests, sizeof digests)};
    if (is_open) {
        b.pages.len = 0;
        b.manifest = bytes_of(manifest, sizeof manifest);
        b.pieces *= 2;
    }
    long len = bundle_encode(&b, room_of(out, sizeof out));
    return bytes_of(out, (size_t)len);
}

static void order(uint64_t transfer, uint32_t source, uint64_t offer, uint8_t shape) {
    static uint64_t storage[16];
    struct nodeset set;
    nodeset_init(&set, UNIVERSE, storage);
    nodeset_add_range(&set, 3, 8);
    union message m = {.transfer = {.transfer = transfer,
                                    .offer = offer,
                                    .source = source,
                                    .shape = shape,
                                    .arity = 2,
                                    .slots = 4,
                                    .set = &set,
                                    .descriptor = descriptor()}};
    hear(0, MESSAGE_TRANSFER, &m);
}

static void opened(uint32_t bundle, bool committed, int32_t error) {
    struct input in = {.kind = INPUT_BUNDLE};
    in.bundle = (struct input_bundle){
        .bundle = bundle, .committed = committed, .error = error, .text = bytes_from_str("why")};
    feed(in);
}

static void judged(uint32_t page, int32_t error) {
    static const uint8_t table[80], none[1];
    struct input in = {.kind = INPUT_PAGE};
    in.page = (struct input_page){.page = page,
                                  .error = error,
                                  .table = bytes_of(table, sizeof table),
                                  .have = bytes_of(none, 1)};
    feed(in);
}

/* The last page of what was open. */
static void judged_last(uint32_t page, uint32_t pieces) {
    static const uint8_t table[80], none[1];
    struct input in = {.kind = INPUT_PAGE};
    in.page = (struct input_page){.page = page,
                                  .table = bytes_of(table, sizeof table),
                                  .have = bytes_of(none, 1),
                                  .pieces = pieces};
    feed(in);
}

static void told(uint32_t link, uint32_t page) {
    static const uint8_t table[80];
    union message m = {.page = {.page = page, .table = bytes_of(table, sizeof table)}};
    hear(link, MESSAGE_PAGE, &m);
}

static void put(uint32_t link, const struct message_join *j, uint32_t slot, uint32_t piece) {
    struct input in = {.kind = INPUT_PUT};
    in.put = (struct input_put){.link = link,
                                .buffer = j->buffer,
                                .offset = (uint64_t)slot * PIECE_BYTES,
                                .len = PIECE_BYTES,
                                .note = piece};
    feed(in);
}

static void stored(uint32_t buffer, uint32_t slot, uint32_t piece, int32_t error) {
    struct input in = {.kind = INPUT_PIECE};
    in.piece = (struct input_piece){.piece = piece,
                                    .error = error,
                                    .buffer = buffer,
                                    .offset = (uint64_t)slot * PIECE_BYTES,
                                    .len = PIECE_BYTES};
    feed(in);
}

/* A transfer in a chain from node 9 to 3..8: we are the third, node 4 gives to us. Returns the JOIN. */
static struct message_join receive(uint32_t link) {
    union message m = {0};
    order(1, 9, OFFER, SPREAD_CHAIN);
    CHECK(only(EFFECT_BUNDLE_OPEN) != NULL);
    opened(0, false, 0);
    const struct effect *open = only(EFFECT_OPEN);
    CHECK(open != NULL && open->open.node == 4);
    link_up(link, ROLE_GIVER, open != NULL ? open->open.cookie : 0);
    CHECK(said(MESSAGE_JOIN, &m));
    CHECK_EQ(m.join.offer, 0); /* that is for the source */
    return m.join;
}

/* Receivers 3 to 8 hang on switches 2, 1, 2, 1, 2, 1, the source on 1: the chain is 4 6 8 3 5 7. */
static void order_switched(uint64_t transfer, struct bytes switches) {
    static uint64_t storage[16];
    struct nodeset set;
    nodeset_init(&set, UNIVERSE, storage);
    nodeset_add_range(&set, 3, 8);
    union message m = {.transfer = {.transfer = transfer,
                                    .offer = OFFER,
                                    .source = 9,
                                    .shape = SPREAD_CHAIN,
                                    .slots = 4,
                                    .set = &set,
                                    .source_switch = 1,
                                    .switches = switches,
                                    .descriptor = descriptor()}};
    hear(0, MESSAGE_TRANSFER, &m);
}

static void join(uint32_t link, uint64_t transfer, uint64_t offer) {
    union message m = {
        .join = {.transfer = transfer, .offer = offer, .buffer = 9, .slots = 4, .room = 4}};
    link_up(link, ROLE_TAKER, 0);
    hear(link, MESSAGE_JOIN, &m);
}

static void need(uint32_t link, uint32_t page, uint8_t bits) {
    union message m = {.need = {.page = page, .bits = bytes_of(&bits, 1)}};
    hear(link, MESSAGE_NEED, &m);
}

/* ---- pages ---- */

static void test_pages_are_judged_in_any_order(void) {
    union message m;
    begin(4);
    receive(10);
    for (uint32_t page = 0; page < 3; page++)
        told(10, page);
    judged(1, 0);
    CHECK(!said(MESSAGE_NEED, &m));
    judged(2, 0);
    CHECK(!said(MESSAGE_NEED, &m));
    judged(0, 0);
    CHECK_EQ(count(EFFECT_SEND), 3); /* needs of all of them */
}

static void test_a_taker_is_told_pages_that_were_judged_late(void) {
    begin(4);
    receive(10);
    for (uint32_t page = 0; page < 3; page++)
        told(10, page);
    judged(0, 0);
    join(20, 1, 0);
    judged(0, 0); /* fetched */
    judged(2, 0);
    judged(1, 0);
    CHECK(only(EFFECT_PAGE_FETCH) != NULL && only(EFFECT_PAGE_FETCH)->page.page == 2);
}

static void test_a_wrong_page_is_not_ours(void) {
    union message m;
    begin(4);
    receive(10);
    told(10, 0);
    told(10, 1);
    judged(0, -EBADMSG);
    CHECK(only(EFFECT_CLOSE) != NULL);
    CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == 3);
    link_up(11, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
    CHECK(said(MESSAGE_JOIN, &m) && m.join.page == 0);
    judged(1, -EBADMSG); /* of the one before: it does not matter any more */
    CHECK_EQ(t.out.count, 0);
    told(11, 0);
    judged(0, 0);
    CHECK(said(MESSAGE_NEED, &m) && m.need.page == 0);
}

static void test_the_source_may_be_wrong_three_times(void) {
    union message m;
    begin(4);
    link_up(HOST, ROLE_HOST, 0);
    order(1, 9, OFFER, SPREAD_FLAT);
    opened(0, false, 0);
    for (int i = 0; i < 3; i++) {
        CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == 9);
        if (only(EFFECT_OPEN) == NULL)
            return;
        link_up(30, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
        CHECK(said(MESSAGE_JOIN, &m) && m.join.offer == OFFER);
        told(30, 0);
        judged(0, -EBADMSG);
        CHECK_EQ(said(MESSAGE_ARRIVED, &m), i == 2);
        if (i < 2)
            pass(NS_PER_S / 4);
    }
    CHECK_EQ(m.arrived.error, -EBADMSG);
}

static void test_more_pages_than_we_can_judge_are_not_taken(void) {
    begin(4);
    receive(10);
    told(10, 1); /* out of turn */
    CHECK(only(EFFECT_CLOSE) != NULL);
}

/* ---- givers ---- */

static void test_a_giver_that_is_being_started_is_asked_again_soon(void) {
    begin(4);
    order(1, 9, OFFER, SPREAD_CHAIN);
    opened(0, false, 0);
    link_down(0, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
    CHECK_EQ(count(EFFECT_OPEN), 0);
    CHECK(only(EFFECT_TIMER) != NULL && only(EFFECT_TIMER)->timer.at - t.now < 10 * NS_PER_MS);
    pass(2 * NS_PER_MS);
    CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == 4);
    t.now += NS_PER_S; /* no more: that was long enough */
    link_down(0, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
    CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == 3);
}

static void test_a_link_that_does_not_open_is_not_waited_for(void) {
    begin(4);
    order(1, 9, OFFER, SPREAD_CHAIN);
    opened(0, false, 0);
    uint64_t cookie = only(EFFECT_OPEN)->open.cookie;
    pass(4 * NS_PER_S);
    CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == 3);
    link_up(10, ROLE_GIVER, cookie); /* it has opened after all */
    CHECK(only(EFFECT_CLOSE) != NULL && only(EFFECT_CLOSE)->close.link == 10);
    CHECK_EQ(count(EFFECT_SEND), 0);
}

static void test_a_link_of_a_transfer_that_is_over_is_not_taken_for_another(void) {
    uint8_t number[8];
    begin(4);
    order(1, 9, OFFER, SPREAD_CHAIN);
    opened(0, false, 0);
    uint64_t cookie = only(EFFECT_OPEN)->open.cookie;
    store_le64(number, 1);
    hear(0, MESSAGE_ENOUGH, &(union message){.enough = {.transfers = bytes_of(number, 8)}});
    order(2, 9, OFFER, SPREAD_FLAT);
    opened(0, false, 0);
    CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.cookie != cookie);
    link_up(10, ROLE_GIVER, cookie);
    CHECK(only(EFFECT_CLOSE) != NULL);
}

static void test_a_late_verdict_does_not_blame_the_next_giver(void) {
    union message m;
    begin(4);
    struct message_join j = receive(10);
    told(10, 0);
    judged(0, 0);
    put(10, &j, 0, 0);
    link_down(10, ROLE_GIVER, 1);
    link_up(11, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
    CHECK(said(MESSAGE_JOIN, &m) && m.join.slot == 1 && m.join.room == 3);
    stored(j.buffer, 0, 0, -EBADMSG);
    CHECK_EQ(count(EFFECT_CLOSE), 0);
    put(11, &j, 1, 0);
    stored(j.buffer, 1, 0, -EBADMSG); /* but that is its own */
    CHECK_EQ(count(EFFECT_CLOSE), 1);
}

static void test_all_are_asked_before_the_source_is_believed(void) {
    union message p = {.part = {.error = -ESTALE, .text = bytes_from_str("changed")}}, m;
    begin(4);
    link_up(HOST, ROLE_HOST, 0);
    receive(10);
    told(10, 0);
    uint32_t link = 10;
    for (uint32_t giver = 3;; giver = 9) { /* ours has something, then it and all others say no */
        link_down(link, ROLE_GIVER, 1);
        CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == giver);
        link_up(++link, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
        if (giver == 9)
            break;
    }
    hear(link, MESSAGE_PART, &p);
    CHECK(!said(MESSAGE_ARRIVED, &m));
    for (uint32_t i = 0; i < 3; i++) {
        static const uint32_t next[] = {4, 3, 9};
        if (i == 0)
            pass(NS_PER_S / 4);
        CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == next[i]);
        link_up(++link, ROLE_GIVER, only(EFFECT_OPEN)->open.cookie);
        hear(link, MESSAGE_PART, &p);
    }
    CHECK(said(MESSAGE_ARRIVED, &m) && m.arrived.error == -ESTALE);
}

/* ---- takers ---- */

static void give(void) {
    order(OFFER, SELF, OFFER, SPREAD_FLAT);
    opened(0, false, 0);
}

/* Of the first page nobody needs the manifest, so it says nothing. */
static void test_whether_they_had_some_of_it(void) {
    struct mover_view v;
    const uint8_t all = (uint8_t)((1 << PAGE_PIECES) - 1);
    begin(4);
    give();
    for (uint32_t page = 0; page < 3; page++)
        judged(page, 0);
    join(10, 1, OFFER);
    join(11, 1, OFFER);
    need(10, 0, (uint8_t)(all & ~1U));
    CHECK(mover_look(t.mover, OFFER, &v) && !v.asked && !v.spared);
    need(10, 1, all);
    CHECK(mover_look(t.mover, OFFER, &v) && v.asked && !v.spared);
    need(11, 0, all);
    need(11, 1, (uint8_t)(all & ~2U));
    CHECK(mover_look(t.mover, OFFER, &v) && v.asked && v.spared);
}

static void test_there_are_only_so_many_places(void) {
    union message m;
    begin(1);
    give();
    join(20, 1, OFFER);
    CHECK(only(EFFECT_PAGE_FETCH) != NULL);
    link_up(21, ROLE_TAKER, 0);
    CHECK(said(MESSAGE_PART, &m) && m.part.error == -EAGAIN);
    CHECK(only(EFFECT_CLOSE) != NULL && only(EFFECT_CLOSE)->close.link == 21);
    link_down(20, ROLE_TAKER, 0);
    join(22, 1, OFFER);
    CHECK(only(EFFECT_PAGE_FETCH) != NULL);
}

/* A page may be large, and hundreds may wait for it. */
static void test_a_page_is_encoded_once(void) {
    const struct effect *pages[3] = {0};
    uint32_t found = 0;
    begin(4);
    give();
    for (uint32_t link = 20; link < 23; link++)
        join(link, 1, OFFER);
    judged(0, 0);
    for (uint32_t i = 0; i < t.out.count; i++)
        if (t.list[i].kind == EFFECT_SEND && t.list[i].send.type == MESSAGE_PAGE && found < 3)
            pages[found++] = &t.list[i];
    CHECK_EQ(found, 3);
    for (uint32_t i = 0; i < found; i++) {
        CHECK_EQ(pages[i]->send.links[0], 20 + i);
        CHECK(pages[i]->send.head.len > 80 && pages[i]->send.head.at == pages[0]->send.head.at);
    }
}

/* Pages are told as they are found, and no other is looked for. */
static void test_a_source_that_looks_on(void) {
    union message m;
    is_open = true;
    begin(4);
    give();
    join(20, 1, OFFER);
    CHECK_EQ(count(EFFECT_PAGE_FETCH), 0);
    judged(0, 0);
    CHECK(said(MESSAGE_PAGE, &m) && m.page.page == 0);
    need(20, 0, 15);
    CHECK(count(EFFECT_PIECE_LOAD) > 0);
    judged(1, 0);
    CHECK(said(MESSAGE_PAGE, &m) && m.page.page == 1);
    join(21, 1, OFFER); /* who comes later hears of them, too */
    CHECK(only(EFFECT_PAGE_FETCH) != NULL && only(EFFECT_PAGE_FETCH)->page.page == 0);
    judged_last(2, PIECES - 1);
    CHECK(said(MESSAGE_PAGE, &m) && m.page.page == 2);
    struct mover_view v;
    CHECK(mover_look(t.mover, OFFER, &v) && v.pieces == PIECES - 1);
    is_open = false;
}

/* It is whole when the last page has said how many pieces there are, and these are here. */
static void test_what_is_open_has_an_end(void) {
    is_open = true;
    begin(4);
    struct message_join j = receive(10);
    uint32_t slot = 0;
    for (uint32_t page = 0; page < 3; page++) {
        told(10, page);
        if (page < 2)
            judged(page, 0);
        else
            judged_last(page, PIECES - 1);
        for (uint32_t i = 0; i < PAGE_PIECES && page * PAGE_PIECES + i < PIECES - 1; i++) {
            CHECK_EQ(count(EFFECT_BUNDLE_COMMIT), 0);
            put(10, &j, slot % 4, page * PAGE_PIECES + i);
            stored(j.buffer, slot++ % 4, page * PAGE_PIECES + i, 0);
        }
    }
    CHECK_EQ(count(EFFECT_BUNDLE_COMMIT), 1);
    is_open = false;
}

/* What was asked of the transfer that had this place before. */
static void test_a_late_page_is_not_of_the_next(void) {
    struct mover_view v;
    is_open = true;
    begin(4);
    order(1, 9, OFFER, SPREAD_CHAIN);
    judged_last(0, 1);
    opened(0, false, 0);
    CHECK(mover_look(t.mover, 1, &v) && v.pieces == 2 * PIECES);
    is_open = false;
}

static void test_what_is_not_on_offer_is_not_waited_for(void) {
    union message m;
    begin(4);
    join(20, 1, OFFER);
    CHECK(said(MESSAGE_PART, &m) && m.part.error == -ENOENT);
    join(21, 1, 0); /* but a transfer may be heard of later */
    CHECK_EQ(count(EFFECT_SEND), 0);
    order(1, 9, OFFER, SPREAD_CHAIN);
    opened(0, false, -EACCES);
    CHECK(said(MESSAGE_PART, &m) && m.part.error == -EACCES);
    CHECK_EQ(count(EFFECT_CLOSE), 1); /* the bundle's is another effect */
}

static void load(void) {
    const struct effect *e = NULL;
    for (uint32_t i = 0; i < t.out.count && e == NULL; i++)
        if (t.list[i].kind == EFFECT_PIECE_LOAD)
            e = &t.list[i];
    if (!CHECK(e != NULL))
        return;
    struct input in = {.kind = INPUT_PIECE};
    in.piece = (struct input_piece){.piece = e->piece.piece,
                                    .loaded = true,
                                    .buffer = e->piece.buffer,
                                    .offset = e->piece.offset,
                                    .len = PIECE_BYTES};
    feed(in);
}

static void test_receivers_of_a_switch_stand_side_by_side(void) {
    uint8_t runs[6 * SWITCH_RUN_BYTES];
    union message m;
    begin(4);
    link_up(HOST, ROLE_HOST, 0);
    for (uint32_t i = 0; i < 6; i++) {
        store_le32(runs + (size_t)i * SWITCH_RUN_BYTES, 1);
        store_le32(runs + (size_t)i * SWITCH_RUN_BYTES + 4, 2 - i % 2);
    }
    order_switched(1, bytes_of(runs, sizeof runs));
    opened(0, false, 0);
    CHECK(only(EFFECT_OPEN) != NULL && only(EFFECT_OPEN)->open.node == 3); /* we are 5 */
    order_switched(2, bytes_of(runs, sizeof runs - SWITCH_RUN_BYTES));     /* one is missing */
    CHECK(said(MESSAGE_ARRIVED, &m) && m.arrived.transfer == 2 && m.arrived.error == -EBADMSG);
    store_le32(runs, UINT32_MAX);
    order_switched(3, bytes_of(runs, sizeof runs));
    CHECK(said(MESSAGE_ARRIVED, &m) && m.arrived.transfer == 3 && m.arrived.error == -EBADMSG);
}

static void test_who_does_not_take_is_let_go(void) {
    begin(4);
    give();
    join(20, 1, OFFER);
    judged(0, 0);
    need(20, 0, 1);
    load();
    const struct effect *e = only(EFFECT_PUT);
    CHECK(e != NULL);
    struct effect_put p = e != NULL ? e->put : (struct effect_put){0};
    for (int i = 0; i < 3; i++) {
        pass(NS_PER_S);
        CHECK_EQ(count(EFFECT_CLOSE), 0);
    }
    pass(NS_PER_S);
    CHECK(only(EFFECT_CLOSE) != NULL && only(EFFECT_CLOSE)->close.link == 20);
    struct input in = {.kind = INPUT_SENT};
    in.sent = (struct input_sent){.link = 20, .buffer = p.buffer, .offset = p.offset};
    feed(in); /* it was told that it will not go */
    CHECK_EQ(t.out.count, 0);
}

static void test_not_all_slots_are_lent_to_one(void) {
    union message m;
    begin(4);
    give();
    join(20, 1, OFFER);
    judged(0, 0);
    need(20, 0, 0xF);
    CHECK_EQ(count(EFFECT_PIECE_LOAD), 2);
    load();
    CHECK_EQ(count(EFFECT_PUT), 1);
    pass(NS_PER_S);
    CHECK(said(MESSAGE_BEAT, &m));
}

static void test_a_taker_answers_a_beat(void) {
    union message m, beat = {0};
    begin(4);
    receive(10);
    hear(10, MESSAGE_BEAT, &beat);
    CHECK(said(MESSAGE_ROOM, &m) && m.room.room == 4);
}

/* It has heard of the transfer, but must make ready for it first. */
static void test_who_is_not_ready_says_that_it_is_there(void) {
    union message m;
    begin(4);
    order(1, 9, OFFER, SPREAD_CHAIN);
    join(20, 1, 0);
    for (int i = 0; i < 12; i++) {
        pass(NS_PER_S);
        CHECK(said(MESSAGE_BEAT, &m));
        CHECK_EQ(count(EFFECT_CLOSE), 0);
    }
    opened(0, false, 0);
    CHECK(only(EFFECT_OPEN) != NULL);
    pass(NS_PER_S);
    CHECK_EQ(count(EFFECT_CLOSE), 0);
}

int main(void) {
    TEST(test_pages_are_judged_in_any_order);
    TEST(test_a_taker_is_told_pages_that_were_judged_late);
    TEST(test_a_wrong_page_is_not_ours);
    TEST(test_the_source_may_be_wrong_three_times);
    TEST(test_more_pages_than_we_can_judge_are_not_taken);
    TEST(test_a_giver_that_is_being_started_is_asked_again_soon);
    TEST(test_a_link_that_does_not_open_is_not_waited_for);
    TEST(test_a_link_of_a_transfer_that_is_over_is_not_taken_for_another);
    TEST(test_a_late_verdict_does_not_blame_the_next_giver);
    TEST(test_all_are_asked_before_the_source_is_believed);
    TEST(test_whether_they_had_some_of_it);
    TEST(test_there_are_only_so_many_places);
    TEST(test_a_page_is_encoded_once);
    TEST(test_a_source_that_looks_on);
    TEST(test_what_is_open_has_an_end);
    TEST(test_a_late_page_is_not_of_the_next);
    TEST(test_what_is_not_on_offer_is_not_waited_for);
    TEST(test_receivers_of_a_switch_stand_side_by_side);
    TEST(test_who_does_not_take_is_let_go);
    TEST(test_not_all_slots_are_lent_to_one);
    TEST(test_a_taker_answers_a_beat);
    TEST(test_who_is_not_ready_says_that_it_is_there);
    free(t.memory);
    return tap_finish();
}
