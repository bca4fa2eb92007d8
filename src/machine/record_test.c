/* SPDX-License-Identifier: MIT */
/* Tests of recorded inputs: every kind survives the way there and back, and nothing else passes. */
#include "machine/record.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

enum { UNIVERSE = 300, ROOM = 1024 };

struct notebook {
    uint64_t storage[2][64];
    struct nodeset set; /* what inputs point to */
    struct record_scratch scratch;
};

static void notebook_init(struct notebook *n) {
    memset(n, 0, sizeof *n);
    nodeset_init(&n->set, UNIVERSE, n->storage[0]);
    nodeset_add_range(&n->set, 3, 70);
    nodeset_add(&n->set, 299);
    record_scratch_init(&n->scratch, UNIVERSE, n->storage[1]);
}

static const struct bytes body = {(const uint8_t *)"some bytes", 10};

/* One input of each kind, every field different. */
static struct input sample(enum input_kind kind, const struct nodeset *set) {
    struct input in = {.kind = kind, .now = 0x0102030405060708};
    switch (kind) {
    case INPUT_BOOT:
        in.boot = (struct input_boot){.node = 11,
                                      .boots = 12,
                                      .kept = 0xE000000000000013,
                                      .root = true,
                                      .epoch = 14,
                                      .random_seed = 0xF00000000000000E,
                                      .wall_ns = 15,
                                      .stowed = body,
                                      .folders = bytes_of(body.at, 8)};
        break;
    case INPUT_MESSAGE:
        in.message = (struct input_message){21, 24, 22, 23, body};
        break;
    case INPUT_LINK_UP:
    case INPUT_LINK_DOWN:
        in.link = (struct input_link){31, 32, 33, ROLE_SINK, 34};
        break;
    case INPUT_TIMER:
        in.timer.id = 41;
        break;
    case INPUT_DURABLE:
        in.durable.ticket = 51;
        break;
    case INPUT_PUT:
        in.put = (struct input_put){61, 62, 63, 64, 65};
        break;
    case INPUT_REQUEST:
        in.request = (struct primitive){.kind = PRIMITIVE_BULK,
                                        .tag = 71,
                                        .set = set,
                                        .timeout_ns = 72,
                                        .heap_offset = 73,
                                        .body = body,
                                        .remote_event = 74,
                                        .local_event = 75,
                                        .hint = true,
                                        .variable = 76,
                                        .relation = RELATION_NE,
                                        .value = 77,
                                        .write_variable = 78,
                                        .write_value = 79,
                                        .channel = 80,
                                        .buffer = 81,
                                        .buffer_bytes = 82,
                                        .way = MAIL_ROOT,
                                        .type = 83};
        break;
    case INPUT_COMPLETION:
        in.completion = (struct completion){91, OUTCOME_LOST, 92, 93};
        break;
    case INPUT_SIGNAL:
        in.signal = (struct input_signal){101, 102, 103, 104, body};
        break;
    case INPUT_PREPARED:
        in.prepared = (struct input_prepared){111, 112, body, true};
        break;
    case INPUT_STROBE:
        in.strobe = (struct input_strobe){121, 122, body, true};
        break;
    case INPUT_JOINED:
        in.joined = (struct input_joined){131, 132, 133};
        break;
    case INPUT_NODES:
        in.nodes = (struct input_nodes){set, true, 141};
        break;
    case INPUT_WAVE:
        in.wave = (struct input_wave){151, 152, true, 153};
        break;
    case INPUT_GATHERED:
        in.gathered = (struct input_gathered){161, 162, bytes_from_str("records"), set};
        break;
    case INPUT_TREE:
        in.tree = (struct input_tree){set, true, 165};
        break;
    case INPUT_REPLAY:
        in.replay = (struct input_replay){171, true, body};
        break;
    case INPUT_LOGGED:
        in.logged = (struct input_logged){181, -28};
        break;
    case INPUT_FETCHED:
        in.fetched = (struct input_fetched){191, body};
        break;
    case INPUT_LOOKED:
        in.looked = (struct input_looked){133, -2, SPAWN_HIDDEN, 134};
        break;
    case INPUT_ROSTER:
        in.roster = (struct input_roster){set, body};
        break;
    case INPUT_TRAITS:
        in.traits = (struct input_traits){body, bytes_of(body.at, 8), bytes_of(body.at + 1, 4),
                                          bytes_of(body.at, 4), bytes_of(body.at + 2, 3)};
        break;
    case INPUT_CHILD:
        in.child = (struct input_child){201, 202, CHILD_KILLED, 203, SPAWN_STDIO, true};
        break;
    case INPUT_EMPTY:
        in.empty = (struct input_measured){211, {212, 213, 214, 215, 216, 217, 218, 219}};
        break;
    case INPUT_MEASURED:
        in.measured = (struct input_measured){212, {213, 214, 215, 216, 217, 218, 219, 220}};
        break;
    case INPUT_GAUGED:
        in.gauged = (struct input_gauged){136, 137, 138, true, 139};
        break;
    case INPUT_STREAM:
        in.stream = (struct input_stream){221, 222, 2, true, 223, body};
        break;
    case INPUT_DRAINED:
        in.drained = (struct input_drained){231, 232, 233};
        break;
    case INPUT_PETITION:
        in.petition = (struct input_petition){234, PETITION_SAID, 235, 236, 237, body};
        break;
    case INPUT_SENT:
        in.sent = (struct input_sent){241, 242, 243, 244};
        break;
    case INPUT_BUNDLE:
        in.bundle = (struct input_bundle){251, true, -28, body};
        break;
    case INPUT_PAGE:
        in.page = (struct input_page){261, 262, -74, body, bytes_from_str("have"), 263, body};
        break;
    case INPUT_PIECE:
        in.piece = (struct input_piece){271, 272, true, -28, 273, 274, 275, body};
        break;
    case INPUT_FENCED:
    case INPUT_KINDS:
        break;
    }
    return in;
}

static const struct nodeset *set_of(const struct input *in) {
    if (in->kind == INPUT_REQUEST)
        return in->request.set;
    if (in->kind == INPUT_GATHERED)
        return in->gathered.missing;
    if (in->kind == INPUT_TREE)
        return in->tree.below;
    if (in->kind == INPUT_ROSTER)
        return in->roster.taken;
    return in->kind == INPUT_NODES ? in->nodes.nodes : NULL;
}

/* Bytes of the second encoding equal those of the first: then every field has survived. */
static void check_round_trip(enum layer layer, const struct input *in, struct notebook *n) {
    uint8_t first[ROOM], second[ROOM];
    long len = record_encode(room_of(first, ROOM), layer, in);
    if (!CHECK(len > 0))
        return;
    enum layer got_layer;
    struct input got;
    size_t used;
    first[len] = 0xEE; /* what follows is another record's */
    CHECK_EQ(record_decode(bytes_of(first, (size_t)len + 1), &n->scratch, &got_layer, &got, &used),
             0);
    CHECK_EQ(used, len);
    CHECK_EQ(got_layer, layer);
    CHECK_EQ(got.kind, in->kind);
    CHECK_EQ(got.now, in->now);
    CHECK_EQ(record_encode(room_of(second, ROOM), got_layer, &got), len);
    CHECK(memcmp(first, second, (size_t)len) == 0);
    if (set_of(in) != NULL)
        CHECK(nodeset_equal(set_of(in), set_of(&got)));
}

static void test_round_trips(void) {
    struct notebook n;
    notebook_init(&n);
    for (unsigned kind = 0; kind < INPUT_KINDS; kind++) {
        struct input in = sample((enum input_kind)kind, &n.set);
        check_round_trip(LAYER_PRIM, &in, &n);
        check_round_trip(LAYER_DAEMON, &in, &n);
    }
    struct input bare = sample(INPUT_REQUEST, NULL);
    bare.request.body = (struct bytes){0};
    check_round_trip(LAYER_PRIM, &bare, &n);
}

static void test_fields(void) {
    struct notebook n;
    notebook_init(&n);
    uint8_t bytes[ROOM];
    struct input in = sample(INPUT_MESSAGE, NULL);
    long len = record_encode(room_of(bytes, ROOM), LAYER_PRIM, &in);
    enum layer layer;
    struct input got;
    size_t used;
    CHECK_EQ(record_decode(bytes_of(bytes, (size_t)len), &n.scratch, &layer, &got, &used), 0);
    CHECK_EQ(got.message.link, 21);
    CHECK_EQ(got.message.epoch, 22);
    CHECK_EQ(got.message.type, 23);
    CHECK(bytes_equal(got.message.body, body));
    CHECK(got.message.body.at > bytes && got.message.body.at < bytes + len);
}

static void test_no_room(void) {
    struct notebook n;
    notebook_init(&n);
    for (unsigned kind = 0; kind < INPUT_KINDS; kind++) {
        struct input in = sample((enum input_kind)kind, &n.set);
        uint8_t bytes[ROOM];
        long len = record_encode(room_of(bytes, ROOM), LAYER_PRIM, &in);
        for (size_t room = 0; room < (size_t)len; room++)
            CHECK_EQ(record_encode(room_of(bytes, room), LAYER_PRIM, &in), -ENOBUFS);
        CHECK_EQ(record_encode(room_of(bytes, (size_t)len), LAYER_PRIM, &in), len);
    }
}

static int decode(struct notebook *n, const uint8_t *bytes, size_t len) {
    enum layer layer;
    struct input in;
    size_t used;
    return record_decode(bytes_of(bytes, len), &n->scratch, &layer, &in, &used);
}

/* Cut short, with and without a length that agrees; and with a byte too many inside. */
static void test_truncated(void) {
    struct notebook n;
    notebook_init(&n);
    for (unsigned kind = 0; kind < INPUT_KINDS; kind++) {
        struct input in = sample((enum input_kind)kind, &n.set);
        uint8_t bytes[ROOM];
        long len = record_encode(room_of(bytes, ROOM), LAYER_PRIM, &in);
        for (size_t cut = 0; cut < (size_t)len; cut++)
            CHECK_EQ(decode(&n, bytes, cut), -EBADMSG);
        for (size_t cut = 4; cut < (size_t)len; cut++) {
            store_le32(bytes, (uint32_t)(cut - 4));
            CHECK_EQ(decode(&n, bytes, (size_t)len), -EBADMSG);
        }
        bytes[len] = 0;
        store_le32(bytes, (uint32_t)len - 3);
        CHECK_EQ(decode(&n, bytes, (size_t)len + 1), -EBADMSG);
    }
}

static void test_garbage(void) {
    struct notebook n;
    notebook_init(&n);
    uint8_t bytes[ROOM];
    struct input in = sample(INPUT_LINK_UP, NULL);
    long len = record_encode(room_of(bytes, ROOM), LAYER_PRIM, &in);
    bytes[4] = 2; /* no such layer */
    CHECK_EQ(decode(&n, bytes, (size_t)len), -EBADMSG);
    bytes[4] = 0;
    bytes[5] = INPUT_KINDS;
    CHECK_EQ(decode(&n, bytes, (size_t)len), -EBADMSG);
    bytes[5] = INPUT_LINK_UP;
    CHECK_EQ(decode(&n, bytes, (size_t)len), 0);
    bytes[len - 1] = ROLES;
    CHECK_EQ(decode(&n, bytes, (size_t)len), -EBADMSG);
    memset(bytes, 0xFF, sizeof bytes);
    CHECK_EQ(decode(&n, bytes, sizeof bytes), -EBADMSG);
    /* a node beyond the universe */
    struct notebook small;
    notebook_init(&small);
    record_scratch_init(&small.scratch, 200, small.storage[1]);
    in = sample(INPUT_NODES, &n.set);
    len = record_encode(room_of(bytes, ROOM), LAYER_DAEMON, &in);
    CHECK_EQ(decode(&n, bytes, (size_t)len), 0);
    CHECK_EQ(decode(&small, bytes, (size_t)len), -EBADMSG);
}

int main(void) {
    TEST(test_round_trips);
    TEST(test_fields);
    TEST(test_no_room);
    TEST(test_truncated);
    TEST(test_garbage);
    return tap_finish();
}
