/* SPDX-License-Identifier: MIT */
/* A spec survives a round trip; what is cut, garbled or cannot be run is refused. */
#include "wire/spec.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "wire/ranks.h"
#include "tap.h"

enum { ROOM = 1024 };

static const char arguments[] = "prog\0-x\0\0last";
static const char environment[] = "PATH=/bin\0EMPTY=";

static struct spec sample(void) {
    static uint8_t limits[2 * SPEC_LIMIT_BYTES];
    spec_limit_store(limits,
                     &(struct rlimit_spec){.resource = 7, .soft = 1024, .hard = UINT64_MAX});
    spec_limit_store(limits + SPEC_LIMIT_BYTES, &(struct rlimit_spec){.resource = 4});
    return (struct spec){.stdin_mode = STDIN_RANK,
                         .stdin_rank = 3,
                         .terminal = true,
                         .merged = true,
                         .columns = 80,
                         .rows = 25,
                         .umask = 022,
                         .limits = bytes_of(limits, sizeof limits),
                         .folder = bytes_from_str("/home/u"),
                         .program = bytes_from_str("prog"),
                         .arguments = bytes_of(arguments, sizeof arguments),
                         .environment = bytes_of(environment, sizeof environment),
                         .output = bytes_from_str("out-%j"),
                         .error = bytes_from_str(""),
                         .image = bytes_from_str("ab/abcd/prog"),
                         .own = OWN_FILLED,
                         .inside = true,
                         .seen = true,
                         .device = 0x8801,
                         .inode = 77,
                         .bytes = UINT64_MAX,
                         .mtime_ns = 5,
                         .bind = BIND_NUMA,
                         .bind_told = true,
                         .memory = (uint64_t)3 << 40};
}

static long encode(const struct spec *s, uint8_t *out) {
    return spec_encode(s, room_of(out, ROOM));
}

static int decode(const struct spec *s) {
    static uint8_t bytes[ROOM];
    struct spec back;
    long len = encode(s, bytes);
    return len < 0 ? (int)len : spec_decode(bytes_of(bytes, (size_t)len), &back);
}

static bool same(struct bytes a, struct bytes b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void test_round_trip(void) {
    uint8_t one[ROOM], two[ROOM];
    struct spec s = sample(), back;
    long len = encode(&s, one);
    CHECK(len > 0);
    CHECK_EQ(spec_decode(bytes_of(one, (size_t)len), &back), 0);
    CHECK(back.stdin_mode == STDIN_RANK && back.stdin_rank == 3 && back.terminal && back.merged);
    CHECK(back.columns == 80 && back.rows == 25 && back.umask == 022);
    CHECK(same(back.folder, s.folder) && same(back.program, s.program));
    CHECK(same(back.arguments, s.arguments) && same(back.environment, s.environment));
    CHECK(same(back.output, s.output) && same(back.error, s.error) && same(back.image, s.image));
    CHECK(back.own == OWN_FILLED && back.inside && back.seen && back.device == 0x8801);
    CHECK(back.inode == 77 && back.bytes == UINT64_MAX && back.mtime_ns == 5);
    CHECK_EQ(back.memory, (uint64_t)3 << 40);
    CHECK(back.bind == BIND_NUMA && back.bind_told);
    CHECK_EQ(encode(&back, two), len);
    CHECK(memcmp(one, two, (size_t)len) == 0);
    struct rlimit_spec l;
    CHECK(spec_limit_load(&l, back.limits, 0));
    CHECK(l.resource == 7 && l.soft == 1024 && l.hard == UINT64_MAX);
    CHECK(spec_limit_load(&l, back.limits, 1));
    CHECK(l.resource == 4 && l.soft == 0 && l.hard == 0);
    CHECK(!spec_limit_load(&l, back.limits, 2));
}

/* As it was before more could be said. */
static struct spec bare(void) {
    struct spec s = sample();
    s.bind = BIND_NONE;
    s.bind_told = false;
    s.memory = 0;
    return s;
}

static void test_no_other_length(void) {
    uint8_t bytes[ROOM] = {0};
    struct spec s = bare(), back;
    size_t before = (size_t)encode(&s, bytes);
    s = sample();
    long len = encode(&s, bytes);
    for (size_t cut = 0; cut < (size_t)len; cut++) {
        CHECK_EQ(spec_decode(bytes_of(bytes, cut), &back), cut == before ? 0 : -EBADMSG);
        CHECK_EQ(spec_encode(&s, room_of(bytes, cut)), -ENOBUFS);
        encode(&s, bytes);
    }
    CHECK_EQ(spec_decode(bytes_of(bytes, (size_t)len + 1), &back), -EBADMSG);
}

/* What came later stands behind all that there was: a spec that a former version has written is still read. */
static void test_places(void) {
    uint8_t bytes[ROOM], places[8] = {1};
    struct spec s = bare(), back;
    long before = encode(&s, bytes);
    s.places = bytes_of(places, sizeof places);
    long len = encode(&s, bytes);
    CHECK(len > before);
    CHECK_EQ(spec_decode(bytes_of(bytes, (size_t)len), &back), 0);
    CHECK(same(back.places, s.places));
    CHECK_EQ(spec_decode(bytes_of(bytes, (size_t)before), &back), 0);
    CHECK_EQ(back.places.len, 0);
    for (size_t cut = (size_t)before + 1; cut < (size_t)len; cut++)
        CHECK_EQ(spec_decode(bytes_of(bytes, cut), &back), -EBADMSG);
}

static struct spec_program program(uint32_t ranks, const char *name) {
    return (struct spec_program){.ranks = ranks,
                                 .program = bytes_from_str(name),
                                 .image = bytes_from_str("ab/abcd/other"),
                                 .argv0 = true,
                                 .arguments = bytes_of("other\0", 7),
                                 .folder = bytes_from_str("/there"),
                                 .environment = bytes_of("A=1", 4),
                                 .seen = true,
                                 .inode = 9};
}

static size_t store(uint8_t *out, size_t at, const struct spec_program *p) {
    long len = spec_program_store(p, room_of(out + at, ROOM - at));
    CHECK(len > 0);
    return at + (size_t)len;
}

/* 3 ranks of the first, 2 of the second, 1 of the third. */
static struct spec several(uint8_t *more) {
    struct spec s = sample();
    struct spec_program two = program(2, "/two"), three = program(1, "/three");
    s.ranks = 3;
    s.first_folder = bytes_from_str("/first");
    s.first_environment = bytes_of("B=2", 4);
    s.programs = bytes_of(more, store(more, store(more, 0, &two), &three));
    return s;
}

static void test_programs(void) {
    uint8_t more[ROOM], bytes[ROOM];
    struct spec s = several(more), back;
    struct spec_program p;
    long len = encode(&s, bytes);
    CHECK(len > 0);
    CHECK_EQ(spec_decode(bytes_of(bytes, (size_t)len), &back), 0);
    CHECK_EQ(spec_programs(&back), 3);
    CHECK_EQ(spec_ranks(&back), 6);
    static const uint32_t expected[] = {0, 0, 0, 1, 1, 2}, firsts[] = {0, 3, 5};
    for (uint32_t rank = 0; rank < 6; rank++) {
        CHECK(spec_program_of(&back, rank, &p));
        CHECK_EQ(p.index, expected[rank]);
        CHECK_EQ(p.first, firsts[p.index]);
        CHECK(same(p.program, p.index == 0   ? s.program
                              : p.index == 1 ? bytes_from_str("/two")
                                             : bytes_from_str("/three")));
    }
    CHECK(!spec_program_of(&back, 6, &p));
    CHECK(spec_program_of(&back, 5, &p));
    CHECK(p.argv0 && p.seen && p.inode == 9 && same(p.folder, bytes_from_str("/there")));
    CHECK_EQ(strings_count(p.arguments), 2);
    CHECK_EQ(strings_count(p.environment), 1);
    CHECK(spec_program_of(&back, 0, &p));
    CHECK(same(p.folder, bytes_from_str("/first")) && same(p.environment, s.first_environment));
    struct spec alone = sample();
    CHECK_EQ(spec_programs(&alone), 1);
    CHECK_EQ(spec_ranks(&alone), 0);
    CHECK(spec_program_of(&alone, 1000, &p) && p.index == 0 && same(p.program, alone.program));
}

static void test_programs_in_no_other_form(void) {
    uint8_t more[ROOM], bytes[ROOM];
    struct spec s = several(more), back;
    CHECK_EQ(decode(&s), 0);
    long len = encode(&s, bytes);
    struct spec one = sample();
    size_t before = (size_t)encode(&one, more);
    s = several(more);
    CHECK_EQ(encode(&s, bytes), len);
    for (size_t cut = before + 1; cut < (size_t)len; cut++)
        CHECK_EQ(spec_decode(bytes_of(bytes, cut), &back), -EBADMSG);
    s.ranks = 0; /* of the first */
    CHECK_EQ(decode(&s), -EBADMSG);
    s = several(more);
    s.programs.len--;
    CHECK_EQ(decode(&s), -EBADMSG);
    struct spec_program wrong = program(0, "/two");
    s.programs.len = store(more, 0, &wrong);
    CHECK_EQ(decode(&s), -EBADMSG);
    wrong = program(UINT32_MAX, "/two");
    s.programs.len = store(more, 0, &wrong);
    CHECK_EQ(decode(&s), -EBADMSG);
    wrong = program(1, "");
    s.programs.len = store(more, 0, &wrong);
    CHECK_EQ(decode(&s), -EBADMSG);
}

/* A block of its own, behind that. */
static void test_debugging(void) {
    static const char debugger[] = "/usr/bin/gdb\0--args";
    uint8_t bytes[ROOM], ranks[RANKS_BYTES_MAX];
    struct spec s = bare(), back;
    long before = encode(&s, bytes);
    s.debugger = bytes_of(debugger, sizeof debugger);
    CHECK_EQ(ranks_parse("0,3-5", ranks, &s.debugged), 0);
    s.terminal_rank = 3;
    s.hold = s.cores = true;
    long len = encode(&s, bytes);
    CHECK_EQ(spec_decode(bytes_of(bytes, (size_t)len), &back), 0);
    CHECK(same(back.debugger, s.debugger) && same(back.debugged, s.debugged));
    CHECK(back.terminal_rank == 3 && back.hold && back.cores);
    uint32_t whole = 0;
    for (size_t cut = (size_t)before; cut < (size_t)len; cut++)
        whole += spec_decode(bytes_of(bytes, cut), &back) == 0;
    CHECK_EQ(whole, 1);   /* before anything could be said */
    store_le32(ranks, 9); /* they do not ascend */
    CHECK_EQ(decode(&s), -ENOBUFS);
    s = bare();
    s.cores = true;
    CHECK_EQ(decode(&s), 0);
}

static void test_what_cannot_be_run_is_refused(void) {
    struct spec s = sample();
    CHECK_EQ(decode(&s), 0);
    s.arguments = (struct bytes){0};
    CHECK_EQ(decode(&s), -EBADMSG);
    s = sample();
    s.program = (struct bytes){0};
    CHECK_EQ(decode(&s), -EBADMSG);
    s = sample();
    s.stdin_mode = STDIN_MODES;
    CHECK(decode(&s) < 0);
    s = sample();
    s.arguments.len--; /* the last string does not end */
    CHECK(decode(&s) < 0);
    s = sample();
    s.environment.len--;
    CHECK(decode(&s) < 0);
    s = sample();
    s.folder = bytes_of("/home\0u", 7);
    CHECK(decode(&s) < 0);
    s = sample();
    s.limits.len--;
    CHECK(decode(&s) < 0);
    s = sample();
    s.environment = (struct bytes){0}; /* that is allowed */
    CHECK_EQ(decode(&s), 0);
}

static void test_strings(void) {
    struct bytes list = bytes_of(arguments, sizeof arguments);
    CHECK_EQ(strings_count(list), 4);
    size_t at = 0;
    static const char *const expected[] = {"prog", "-x", "", "last"};
    for (int i = 0; i < 4; i++) {
        const char *s = strings_next(list, &at);
        CHECK(s != NULL && strcmp(s, expected[i]) == 0);
    }
    CHECK(strings_next(list, &at) == NULL);
    CHECK_EQ(strings_count((struct bytes){0}), 0);
}

/* Each byte of a good one is changed, and then there are bytes that never were a spec. */
static void test_garbage_never_hurts(void) {
    uint8_t bytes[ROOM];
    struct spec s = sample(), back;
    struct random r;
    random_init(&r, 3);
    for (int round = 0; round < 20000; round++) {
        size_t len = random_below(&r, sizeof bytes);
        if (round % 2 == 0) {
            len = (size_t)encode(&s, bytes);
            bytes[random_below(&r, len)] = (uint8_t)random_below(&r, 256);
        } else {
            random_bytes(&r, bytes, len);
        }
        int status = spec_decode(bytes_of(bytes, len), &back);
        CHECK(status == 0 || status == -EBADMSG);
        size_t at = 0;
        uint32_t count = 0;
        while (status == 0 && strings_next(back.arguments, &at) != NULL)
            count++;
        CHECK(status < 0 || (count > 0 && count == strings_count(back.arguments)));
    }
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_no_other_length);
    TEST(test_places);
    TEST(test_programs);
    TEST(test_programs_in_no_other_form);
    TEST(test_debugging);
    TEST(test_what_cannot_be_run_is_refused);
    TEST(test_strings);
    TEST(test_garbage_never_hurts);
    return tap_finish();
}
