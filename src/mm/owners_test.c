/* SPDX-License-Identifier: MIT */
/* Owners, as the manager has them: who is told what to look for, and where nothing that is lent may be. */
#include "manager_alone.h"
#include "wire/vitals.h"

enum { RECORD = 64 };

/* What each node says with the next gather. */
static struct vitals vitals[NODES];

static struct bytes desk, door;

static void start(struct bench *b) {
    desk = bytes_from_str("/desk");
    door = bytes_from_str("keyboard+load");
    memset(vitals, 0, sizeof vitals);
    begin(b);
    for (uint32_t n = 0; n < NODES; n++)
        join(b, n);
}

/* The first two are somebody's desks, the third has a door. */
static void tell_owners(struct bench *b) {
    static const char texts[] = "/desk\0keyboard+load";
    uint8_t owners[4 * NODES] = {0};
    store_le32(owners + 4, 1);
    store_le32(owners + 8, 1);
    store_le32(owners + 12, 2);
    feed(b, (struct input){.kind = INPUT_TRAITS,
                           .traits = {.owners = bytes_of(owners, sizeof owners),
                                      .owner_texts = bytes_of(texts, sizeof texts)}});
}

/* All answer but those that are missing. */
static void gather(struct bench *b, uint32_t missing) {
    uint8_t records[NODES * (RECORD + REPLY_HEAD_BYTES)];
    size_t len = 0;
    b->now += VITALS_PERIOD_NS;
    feed(b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_VITALS}});
    nodeset_clear(&b->set);
    for (uint32_t n = 0; n < NODES; n++) {
        uint8_t record[RECORD];
        long used = vitals_begin(&vitals[n], room_of(record, sizeof record));
        struct reply r = {n, bytes_of(record, (size_t)used)};
        if (n == missing)
            nodeset_add(&b->set, n);
        else
            len += reply_store(room_of(records + len, sizeof records - len), &r);
    }
    feed(b, (struct input){.kind = INPUT_GATHERED,
                           .gathered = {.tag = VITALS_TAG,
                                        .channel = CHANNEL_VITALS,
                                        .records = bytes_of(records, len),
                                        .missing = &b->set}});
}

static const char *as_text(const struct nodeset *set) {
    static char text[64];
    nodeset_format(set, "n", text, sizeof text);
    return text;
}

/* "n[1-2]=/desk n3=" in the order in which it was said. */
static const char *told(const struct bench *b) {
    static char words[256];
    struct text t;
    text_init(&t, words, sizeof words);
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct primitive *p = &b->out.list[i].request;
        union message m;
        if (b->out.list[i].kind != EFFECT_REQUEST || p->kind != PRIMITIVE_MAIL ||
            p->type != MESSAGE_OWNER)
            continue;
        CHECK_EQ(message_decode(MESSAGE_OWNER, p->body, NULL, &m), 0);
        text_str(&t, t.len > 0 ? " " : "");
        text_str(&t, as_text(p->set));
        text_char(&t, '=');
        text_strn(&t, (const char *)m.owner.watch.at, m.owner.watch.len);
    }
    return words;
}

/* Nodes do as they were told. */
static void obey(void) {
    vitals[1].watch = vitals[2].watch = owner_mark(desk);
    vitals[3].watch = owner_mark(door);
}

static void test_nodes_are_told(void) {
    struct bench b;
    start(&b);
    gather(&b, NODES);
    CHECK_STR(told(&b), "");
    tell_owners(&b);
    CHECK_STR(as_text(&b.mm->owners.barred), "n[1-3]"); /* nobody knows */
    CHECK(nodeset_empty(&b.mm->owners.reclaimed));
    gather(&b, NODES);
    CHECK_STR(told(&b), "n[1-2]=/desk n3=keyboard+load");
    gather(&b, 2);
    CHECK_STR(told(&b), "n[1-2]=/desk n3=keyboard+load"); /* it may be lost */
    obey();
    vitals[2].watch = 0;
    gather(&b, NODES);
    CHECK_STR(told(&b), "n2=/desk");
    CHECK_STR(as_text(&b.mm->owners.barred), "n2");
    obey();
    gather(&b, NODES);
    CHECK_STR(told(&b), "");
    CHECK(nodeset_empty(&b.mm->owners.barred));
    teardown(&b);
}

static void test_who_is_there(void) {
    struct bench b;
    start(&b);
    tell_owners(&b);
    obey();
    vitals[2].active = true;
    gather(&b, NODES);
    CHECK_STR(as_text(&b.mm->owners.barred), "n2");
    CHECK_STR(as_text(&b.mm->owners.reclaimed), "n2");
    CHECK_EQ(owners_of(b.mm, 0), NODE_OWNER_NONE);
    CHECK_EQ(owners_of(b.mm, 1), NODE_OWNER_AWAY);
    CHECK_EQ(owners_of(b.mm, 2), NODE_OWNER_ACTIVE);
    vitals[2].active = false;
    gather(&b, 2); /* it has not told */
    CHECK_STR(as_text(&b.mm->owners.reclaimed), "n2");
    vitals[3].watch = 0; /* a new life: it does not know whom to look for */
    gather(&b, NODES);
    CHECK_EQ(owners_of(b.mm, 2), NODE_OWNER_AWAY);
    CHECK_EQ(owners_of(b.mm, 3), NODE_OWNER_UNKNOWN);
    CHECK(nodeset_empty(&b.mm->owners.reclaimed));
    CHECK_STR(as_text(&b.mm->owners.barred), "n3");
    teardown(&b);
}

static void test_nobody_any_more(void) {
    struct bench b;
    start(&b);
    tell_owners(&b);
    obey();
    vitals[1].active = vitals[2].active = vitals[3].active = true;
    gather(&b, NODES);
    CHECK_STR(as_text(&b.mm->owners.barred), "n[1-3]");
    feed(&b, (struct input){.kind = INPUT_TRAITS});
    CHECK(nodeset_empty(&b.mm->owners.barred) && nodeset_empty(&b.mm->owners.reclaimed));
    gather(&b, NODES);
    CHECK_STR(told(&b), "n[1-3]=");
    memset(vitals, 0, sizeof vitals);
    gather(&b, NODES);
    CHECK_STR(told(&b), "");
    teardown(&b);
}

int main(void) {
    TEST(test_nodes_are_told);
    TEST(test_who_is_there);
    TEST(test_nobody_any_more);
    return tap_finish();
}
