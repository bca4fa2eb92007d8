/* SPDX-License-Identifier: MIT */
/* Tests of conversations at the launcher: what programs say goes up, what comes down reaches them, and where something
 * is lost they begin anew. */
#include "launcher_alone.h"

enum { GROUPS = 3, PETITIONERS = 4, RUN = 5 };

static const struct pl_config config = {.groups = GROUPS,
                                        .processes = 8,
                                        .petitioners = PETITIONERS,
                                        .setup_bytes = 1024,
                                        .resend_ns = NS_PER_S,
                                        .resend_max_ns = 10 * NS_PER_S,
                                        .lease_ns = 5 * NS_PER_S};

/* Upwards: the conversation, sequence and how much was heard. */
static void tell_send(struct bench *b, const struct effect_send *s) {
    union message m;
    if (s->type != MESSAGE_PETITION)
        return;
    CHECK_EQ(message_decode(s->type, s->head, NULL, &m), 0);
    const struct message_petition *p = &m.petition;
    CHECK_EQ(p->run, RUN);
    if (p->over)
        say(b, "over #%u", p->number);
    else
        say(b, "up #%u %u/%u type %u %.*s", p->number, p->sequence, p->heard, p->type,
            (int)s->tail.len, (const char *)s->tail.at);
}

static void tell(struct bench *b, const struct effect *e) {
    const struct effect_petition *p = &e->petition;
    if (e->kind == EFFECT_SEND)
        tell_send(b, &e->send);
    else if (e->kind == EFFECT_TIMER && e->timer.id == TIMER_PETITION)
        say(b, "timer +%llu", (unsigned long long)((e->timer.at - b->now) / NS_PER_MS));
    else if (e->kind == EFFECT_PETITION_READ)
        say(b, "read %u", p->place);
    else if (e->kind == EFFECT_PETITION_CLOSE)
        say(b, "close %u", p->place);
    else if (e->kind == EFFECT_PETITION_SEND && p->type == MESSAGE_NONE)
        say(b, "anew %u", p->place);
    else if (e->kind == EFFECT_PETITION_SEND)
        say(b, "to %u type %u %.*s", p->place, p->type, (int)p->body.len, (const char *)p->body.at);
}

static const char *link_down(struct bench *b) {
    return feed(
        b, (struct input){.kind = INPUT_LINK_DOWN, .link = {.link = LINK, .role = ROLE_KEEPER}});
}

static const char *event(struct bench *b, uint32_t place, enum petition_event event) {
    return feed(b, (struct input){.kind = INPUT_PETITION,
                                  .petition = {.place = place, .event = event, .rank = place}});
}

static const char *says(struct bench *b, uint32_t place, uint16_t type, const char *body) {
    return feed(b, (struct input){.kind = INPUT_PETITION,
                                  .petition = {.place = place,
                                               .event = PETITION_SAID,
                                               .type = type,
                                               .body = bytes_from_str(body)}});
}

static const char *reply(struct bench *b, uint32_t number, uint32_t sequence, uint32_t heard,
                         uint16_t type, const char *body) {
    union message m = {.reply = {.run = RUN,
                                 .number = number,
                                 .sequence = sequence,
                                 .heard = heard,
                                 .type = type,
                                 .body = bytes_from_str(body)}};
    return message(b, MESSAGE_REPLY, &m);
}

static const char *reset(struct bench *b, uint64_t run, uint32_t number) {
    union message m = {.reply = {.run = run, .number = number, .reset = true}};
    return message(b, MESSAGE_REPLY, &m);
}

/* A run goes in group 0, and a program of it talks. */
static void begin(struct bench *b) {
    launcher_begin(b, &config);
    link_up(b, LINK);
    setup_of(b, &(struct setup){.run = RUN, .count = 2, .size = 2, .spec = bytes_from_str("spec")},
             0);
    CHECK_STR(event(b, 3, PETITION_OPENED), "close 3"); /* nothing of it runs */
    message(b, MESSAGE_COMMAND, &(union message){.command = {.run = RUN, .verb = VERB_START}});
    CHECK_STR(event(b, 1, PETITION_OPENED), "read 1");
}

static void test_up_and_down(void) {
    struct bench b;
    begin(&b);
    CHECK_STR(says(&b, 1, 30, "hello"), "up #1 1/0 type 30 hello; timer +1000; read 1");
    CHECK_STR(says(&b, 1, 31, "more"), "up #1 2/0 type 31 more; read 1");
    CHECK_STR(reply(&b, 1, 1, 1, 40, "yes"), "to 1 type 40 yes");
    CHECK_STR(reply(&b, 1, 1, 1, 40, "yes"), ""); /* by another way */
    CHECK_STR(reply(&b, 1, 1, 2, MESSAGE_NONE, ""), "");
    CHECK_STR(says(&b, 1, 30, "on"), "up #1 3/1 type 30 on; read 1");
    CHECK_STR(event(&b, 1, PETITION_CLOSED), "over #1");
    CHECK_STR(reply(&b, 1, 2, 2, 40, "late"), "over #1"); /* nobody is there */
    CHECK_STR(event(&b, 1, PETITION_OPENED), "read 1");   /* another in its place */
    CHECK_STR(says(&b, 1, 30, "hello"), "up #2 1/0 type 30 hello; read 1");
    launcher_end(&b);
}

static void test_begins_anew_when_something_is_missing(void) {
    struct bench b;
    begin(&b);
    says(&b, 1, 30, "a");
    CHECK_STR(reply(&b, 1, 2, 1, 40, "second"), "over #1; anew 1");
    CHECK_STR(says(&b, 1, 30, "was on its way"), "read 1");
    CHECK_STR(says(&b, 1, MESSAGE_NONE, ""), "read 1");
    CHECK_STR(says(&b, 1, 30, "a"), "up #2 1/0 type 30 a; read 1");
    CHECK_STR(reply(&b, 2, 1, 1, 40, "yes"), "to 1 type 40 yes"); /* who resets has no counts */
    CHECK_STR(reset(&b, RUN, 2), "over #2; anew 1");
    CHECK_STR(reset(&b, RUN, 2), ""); /* it is over already, and who says so knows */
    says(&b, 1, MESSAGE_NONE, "");
    says(&b, 1, 30, "a");
    CHECK_STR(reply(&b, 3, 1, 1, MESSAGE_NONE, ""), "over #3; anew 1"); /* one was never seen */
    launcher_end(&b);
}

static void test_a_new_manager_of_the_node(void) {
    struct bench b;
    begin(&b);
    says(&b, 1, 30, "a");
    CHECK_STR(link_down(&b), "");
    CHECK_STR(says(&b, 1, 30, "b"), ""); /* it was read already; no more is */
    CHECK_STR(event(&b, 0, PETITION_OPENED), "");
    CHECK_STR(link_up(&b, LINK), "over #2; anew 0; read 0; over #1; anew 1; read 1");
    CHECK_STR(says(&b, 1, MESSAGE_NONE, ""), "read 1");
    CHECK_STR(reset(&b, 0, 0), "over #3; anew 1");
    launcher_end(&b);
}

static void test_no_more_than_a_window(void) {
    struct bench b;
    begin(&b);
    for (uint32_t i = 1; i < PETITION_WINDOW; i++)
        CHECK(strstr(says(&b, 1, 30, "x"), "read 1") != NULL);
    CHECK_STR(says(&b, 1, 30, "last"), "up #1 16/0 type 30 last");
    CHECK_STR(reply(&b, 1, 0, 0, MESSAGE_NONE, ""), "");
    CHECK_STR(reply(&b, 1, 0, 99, MESSAGE_NONE, ""), ""); /* so many were never said */
    CHECK_STR(reply(&b, 1, 0, 3, MESSAGE_NONE, ""), "read 1");
    CHECK_STR(reply(&b, 1, 0, 2, MESSAGE_NONE, ""), "");
    launcher_end(&b);
}

static void test_no_more_than_so_many_bytes(void) {
    struct bench b;
    begin(&b);
    static uint8_t large[PETITION_BYTES_MAX];
    struct input in = {
        .kind = INPUT_PETITION,
        .petition = {
            .place = 1, .event = PETITION_SAID, .type = 30, .body = bytes_of(large, sizeof large)}};
    feed(&b, in);
    CHECK(b.pl->petitioners[1].under_way == PETITION_BYTES_MAX && !b.pl->petitioners[1].reading);
    CHECK_STR(reply(&b, 1, 0, 1, MESSAGE_NONE, ""), "read 1");
    launcher_end(&b);
}

static void test_who_does_not_read_stalls_itself(void) {
    struct bench b;
    begin(&b);
    event(&b, 2, PETITION_OPENED);
    says(&b, 1, 30, "a");
    CHECK_STR(event(&b, 1, PETITION_STUCK), "over #1");
    CHECK_STR(says(&b, 1, 30, "b"), "");
    CHECK_STR(reply(&b, 1, 1, 1, 40, "lost"), "over #1");
    CHECK_STR(says(&b, 2, 30, "c"), "up #2 1/0 type 30 c; read 2");
    CHECK_STR(event(&b, 1, PETITION_FREE), "anew 1; read 1");
    CHECK_STR(event(&b, 1, PETITION_FREE), "");
    CHECK_STR(event(&b, 1, PETITION_STUCK), ""); /* not even that it took */
    CHECK_STR(event(&b, 1, PETITION_FREE), "anew 1");
    CHECK_STR(says(&b, 1, MESSAGE_NONE, ""), "read 1");
    CHECK_STR(says(&b, 1, 30, "a"), "up #3 1/0 type 30 a; read 1");
    launcher_end(&b);
}

static const char *timer(struct bench *b, uint64_t after_ms) {
    b->now += after_ms * NS_PER_MS;
    return feed(b, (struct input){.kind = INPUT_TIMER, .timer = {.id = TIMER_PETITION}});
}

static void test_the_last_word_is_asked_after(void) {
    struct bench b;
    begin(&b);
    says(&b, 1, 30, "a");
    CHECK_STR(timer(&b, 1000), "up #1 1/0 type 0 ; timer +2000");
    CHECK_STR(timer(&b, 2000), "up #1 1/0 type 0 ; timer +4000");
    CHECK_STR(reply(&b, 1, 1, 1, 40, "yes"), "to 1 type 40 yes; timer +1000");
    CHECK_STR(timer(&b, 1000), "up #1 1/1 type 0 ; timer +2000");
    for (uint32_t i = 2; i < 2 + 31; i++)
        CHECK(strstr(reply(&b, 1, i, 1, 40, "yes"), "up") == NULL);
    CHECK(strstr(reply(&b, 1, 33, 1, 40, "yes"), "up #1 1/33 type 0") != NULL);
    launcher_end(&b);
}

static void test_with_the_run_it_is_over(void) {
    struct bench b;
    begin(&b);
    says(&b, 1, 30, "a");
    CHECK_STR(feed(&b, (struct input){.kind = INPUT_EMPTY, .empty = {.group = 0}}),
              "close 1; over #1");
    CHECK_STR(timer(&b, 1000), "");
    CHECK_EQ(b.pl->petitioner_end, 0);
    launcher_end(&b);
}

int main(void) {
    TEST(test_up_and_down);
    TEST(test_begins_anew_when_something_is_missing);
    TEST(test_a_new_manager_of_the_node);
    TEST(test_no_more_than_a_window);
    TEST(test_no_more_than_so_many_bytes);
    TEST(test_who_does_not_read_stalls_itself);
    TEST(test_the_last_word_is_asked_after);
    TEST(test_with_the_run_it_is_over);
    return tap_finish();
}
