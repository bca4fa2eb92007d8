/* SPDX-License-Identifier: MIT */
/* Tests of programs that talk to the root: their node passes on what they say and hear, and tells its launcher when something
 * may be lost. */
#include "node_alone.h"

static void hear(struct bench *b, uint32_t link, uint16_t type) {
    feed(b, (struct input){
                .kind = INPUT_MESSAGE,
                .message = {.link = link, .type = type, .body = bytes_from_str("as it came")}});
}

static void tree(struct bench *b, bool attached, uint32_t epoch) {
    uint64_t words[1];
    struct nodeset none;
    nodeset_init(&none, limits_universe(&config.limits), words);
    nodeset_clear(&none);
    feed(b, (struct input){.kind = INPUT_TREE,
                           .tree = {.below = &none, .attached = attached, .epoch = epoch}});
}

static void test_both_ways(void) {
    static struct bench b;
    begin(&b);
    link_up(&b);
    hear(&b, LINK, MESSAGE_PETITION);
    const struct effect *up = spoken(&b, EFFECT_REQUEST, MESSAGE_PETITION);
    CHECK(up != NULL && up->request.way == MAIL_ROOT &&
          bytes_equal(up->request.body, bytes_from_str("as it came")));
    hear(&b, 0, MESSAGE_REPLY);
    const struct effect *down = spoken(&b, EFFECT_SEND, MESSAGE_REPLY);
    CHECK(down != NULL && down->send.links[0] == LINK &&
          bytes_equal(down->send.head, bytes_from_str("as it came")));
    free(b.memory);
}

/* Were all conversations told to begin anew? */
static bool anew(const struct bench *b) {
    const struct effect *e = spoken(b, EFFECT_SEND, MESSAGE_REPLY);
    union message m;
    return e != NULL && message_decode(MESSAGE_REPLY, e->send.head, NULL, &m) == 0 &&
           m.reply.run == 0 && m.reply.reset;
}

static void test_another_way_to_the_root(void) {
    static struct bench b;
    begin(&b);
    link_up(&b);
    tree(&b, true, 1);
    CHECK(!anew(&b)); /* nobody talks */
    hear(&b, LINK, MESSAGE_PETITION);
    tree(&b, true, 1); /* who is below has changed */
    CHECK(!anew(&b));
    tree(&b, false, 1);
    CHECK(!anew(&b));
    tree(&b, true, 1);
    CHECK(anew(&b));
    hear(&b, LINK, MESSAGE_PETITION);
    tree(&b, true, 2); /* another root */
    CHECK(anew(&b));
    free(b.memory);
}

int main(void) {
    TEST(test_both_ways);
    TEST(test_another_way_to_the_root);
    return tap_finish();
}
