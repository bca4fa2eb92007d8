/* SPDX-License-Identifier: MIT */
/* Tests of owners at the node manager: what the root says is looked for, and what the world and the launcher tell is judged. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "nm/inside.h"
#include "tap.h"
#include "wire/vitals.h"

enum { EFFECTS = 64, BYTES = 64 * 1024, LINK = 5, RUN = 7 };

static const struct roster roster = {.prefix = "n", .capacity = 4, .count = 4};
static const struct nm_config config = {.limits = {.nodes = 4,
                                                   .roots = 1,
                                                   .body_bytes = 1024,
                                                   .record_channels = 1,
                                                   .record_bytes = 256},
                                        .self = 1,
                                        .runs = 8,
                                        .roster = &roster,
                                        .lease_ns = NS_PER_S};

struct bench {
    void *memory;
    struct nm *nm;
    uint64_t now;
    struct effects out;
    struct effect list[EFFECTS];
    uint64_t bytes[BYTES / 8];
    struct usage used;
    uint64_t busy_ns;
};

static struct bench b;

static void feed(struct input in) {
    struct machine m = nm_machine(b.nm);
    effects_clear(&b.out);
    in.now = b.now;
    m.step(m.self, &in, &b.out);
}

static void begin(void) {
    struct arena a;
    size_t bytes = nm_bytes(&config);
    b = (struct bench){.memory = calloc(1, bytes), .now = NS_PER_S, .busy_ns = NS_PER_S};
    arena_init(&a, b.memory, bytes);
    b.nm = nm_new(&config, &a);
    effects_init(&b.out, b.list, EFFECTS, (uint8_t *)b.bytes, BYTES);
    feed((struct input){.kind = INPUT_JOINED});
}

static void end(void) {
    free(b.memory);
}

static void tell(const char *watch) {
    uint8_t room[512];
    union message m = {.owner = {.watch = bytes_from_str(watch)}};
    long len = message_encode(MESSAGE_OWNER, &m, room_of(room, sizeof room));
    feed((struct input){.kind = INPUT_MESSAGE,
                        .message = {.type = MESSAGE_OWNER, .body = bytes_of(room, (size_t)len)}});
}

/* What the world is to look for; NULL: it is not to look. */
static const char *looked_for(void) {
    static char text[OWNER_TEXT_MAX];
    for (uint32_t i = 0; i < b.out.count; i++)
        if (b.list[i].kind == EFFECT_GAUGE) {
            snprintf(text, sizeof text, "%.*s", (int)b.list[i].gauge.len,
                     b.list[i].gauge.len > 0 ? (const char *)b.list[i].gauge.at : "");
            return text;
        }
    return NULL;
}

/* What others hear after a look. */
static struct vitals look(bool owner, uint64_t busy_ns) {
    struct vitals v = {.watch = 99};
    feed((struct input){.kind = INPUT_GAUGED, .gauged = {.owner = owner, .busy_ns = busy_ns}});
    for (uint32_t i = 0; i < b.out.count; i++) {
        const struct effect *e = &b.list[i];
        size_t at;
        if (e->kind == EFFECT_REQUEST && e->request.kind == PRIMITIVE_RECORD)
            CHECK_EQ(vitals_read(e->request.body, &v, &at), 0);
    }
    return v;
}

static void test_files(void) {
    begin();
    feed((struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_HEALTH}});
    CHECK_STR(looked_for(), "");
    CHECK_EQ(look(true, 0).watch, 0); /* it knows of no owner */
    tell("keyboard");
    CHECK_STR(looked_for(), "keyboard"); /* at once */
    struct vitals v = look(true, 0);
    CHECK(v.watch == owner_mark(bytes_from_str("keyboard")) && v.active);
    v = look(false, 0);
    CHECK(v.watch != 0 && !v.active);
    tell("keyboard"); /* it knows that */
    CHECK(looked_for() == NULL);
    feed((struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_HEALTH}});
    CHECK_STR(looked_for(), "keyboard");
    tell("");
    CHECK_STR(looked_for(), "");
    CHECK_EQ(look(false, 0).watch, 0);
    tell("nonsense of a later version");
    CHECK_EQ(look(true, 0).watch, 0);
    end();
}

/* Five seconds in which so many processors are busy, of these so many with runs; in hundredths. */
static bool pass(uint64_t busy_x100, uint64_t runs_x100) {
    uint8_t room[256];
    b.now += 5 * NS_PER_S;
    b.busy_ns += busy_x100 * (5 * NS_PER_S / 100);
    bool active = look(false, b.busy_ns).active;
    b.used.user_ns += runs_x100 * (5 * NS_PER_S / 100);
    union message m = {.measured = {.run = RUN, .usage = b.used}};
    long len = message_encode(MESSAGE_MEASURED, &m, room_of(room, sizeof room));
    feed((struct input){
        .kind = INPUT_MESSAGE,
        .message = {.link = LINK, .type = MESSAGE_MEASURED, .body = bytes_of(room, (size_t)len)}});
    return active;
}

static void begin_with_run(const char *watch) {
    begin();
    feed((struct input){.kind = INPUT_LINK_UP,
                        .link = {.link = LINK, .role = ROLE_LAUNCHER, .life = 9}});
    struct run *r = run_add(b.nm, RUN);
    r->whole = r->handed = r->decided = true;
    tell(watch);
}

/* Jobs may use all there is: that is nobody else. */
static void test_jobs_are_no_owner(void) {
    bool active = false;
    begin_with_run("load:20s");
    for (int i = 0; i < 10; i++)
        active = active || pass(10, 0);
    for (int i = 0; i < 40; i++)
        active = active || pass(410, 400);
    for (int i = 0; i < 40; i++)
        active = active || pass(5, 0);
    CHECK(!active);
    end();
}

static void test_others_are(void) {
    int until = 0;
    begin_with_run("load>0.8:20s");
    for (int i = 0; i < 40; i++)
        CHECK(!pass(270, 200)); /* 0.7 */
    while (!pass(400, 200) && until < 20)
        until++;
    CHECK(until > 0 && until < 8); /* within half a minute, and not because of one look */
    for (int i = 0; i < 10; i++)
        CHECK(pass(400, 200));
    for (until = 0; pass(200, 200) && until < 40; until++)
        continue;
    CHECK(until > 4 && until < 20); /* 20 s after the mean is low */
    end();
}

/* What a run has used at its end was used by nobody else. */
static void test_ends(void) {
    bool active = false;
    begin_with_run("load:20s");
    for (int i = 0; i < 10; i++)
        active = active || pass(200, 200);
    struct ending last = {.usage = b.used};
    last.usage.user_ns += 10 * NS_PER_S;
    run_over(b.nm, run_find(b.nm, RUN), &last);
    active = active || pass(200, 0);
    for (int i = 0; i < 10; i++)
        active = active || pass(1, 0);
    CHECK(!active);
    end();
}

int main(void) {
    TEST(test_files);
    TEST(test_jobs_are_no_owner);
    TEST(test_others_are);
    TEST(test_ends);
    return tap_finish();
}
