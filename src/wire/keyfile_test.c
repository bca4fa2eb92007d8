/* SPDX-License-Identifier: MIT */
/* Key files and identities: one way to write each, and nothing else is read. */
#include "wire/keyfile.h"

#include <errno.h>

#include "base/random.h"
#include "machine/primitive.h"
#include "tap.h"

static struct keyfile some_key(enum key_kind kind) {
    struct keyfile f = {.kind = kind, .number = 7, .generation = kind == KEY_NODE};
    if (kind == KEY_MASTER)
        f.number = 0;
    for (size_t i = 0; i < KEY_BYTES; i++)
        f.key[i] = (uint8_t)(i * 9);
    for (size_t i = 0; i < CLUSTER_ID_BYTES; i++)
        f.cluster[i] = (uint8_t)(200 + i);
    return f;
}

static int parse(const char *text, struct keyfile *ret) {
    return keyfile_parse(bytes_from_str(text), ret);
}

static void test_there_and_back(void) {
    for (int kind = 0; kind < KEY_KINDS; kind++) {
        char text[KEYFILE_TEXT_MAX], again[KEYFILE_TEXT_MAX];
        struct keyfile f = some_key((enum key_kind)kind), read;
        size_t len = keyfile_write(&f, text);
        CHECK_EQ(keyfile_parse(bytes_of(text, len), &read), 0);
        CHECK_EQ(keyfile_write(&read, again), len);
        CHECK_STR(text, again);
        for (size_t part = 0; part < len; part++)
            CHECK(keyfile_parse(bytes_of(text, part), &read) < 0);
        text[len] = '\n';
        CHECK_EQ(keyfile_parse(bytes_of(text, len + 1), &read), -EBADMSG);
    }
}

static void test_the_largest_fits(void) {
    char text[KEYFILE_TEXT_MAX];
    struct keyfile f = some_key(KEY_NODE), read;
    f.number = NO_NODE - 1;
    f.generation = UINT64_MAX;
    size_t len = keyfile_write(&f, text);
    CHECK_EQ(keyfile_parse(bytes_of(text, len), &read), 0);
    CHECK_EQ(read.generation, UINT64_MAX);
}

#define C32 "0123456789abcdef0123456789abcdef"

static void test_what_is_none(void) {
    static const char *const wrong[] = {
        "",
        "storm-key",
        "storm-key 1\nking\ncluster " C32 "\nnumber 0\ngeneration 0\nkey " C32 C32 "\n",
        "storm-key 1\nmaster\ncluster " C32 "\nnumber 1\ngeneration 0\nkey " C32 C32 "\n",
        "storm-key 1\nnode\ncluster " C32 "\nnumber 1\ngeneration 0\nkey " C32 C32 "\n",
        "storm-key 1\nnode\ncluster " C32 "\nnumber 4294967295\ngeneration 1\nkey " C32 C32 "\n",
        "storm-key 1\nnode\ncluster " C32 "\nnumber 01\ngeneration 1\nkey " C32 C32 "\n",
        "storm-key 1\nnode\ncluster " C32
        "\nnumber 1\ngeneration 18446744073709551616\nkey " C32 C32 "\n",
        "storm-key 1\nnode\ncluster " C32 "\nnumber \ngeneration 1\nkey " C32 C32 "\n",
        "storm-key 1\nclient\ncluster " C32 "\nnumber 0\ngeneration 0\nkey " C32 C32 "\n",
        "storm-key 1\nclient\ncluster " C32 "\nnumber 1\ngeneration 0\nkey " C32 C32,
        "storm-key 1\nclient\ncluster " C32 "\nnumber 1\ngeneration 0\nkey " C32 C32 "0\n",
        "storm-key 1\nclient\ncluster " C32 "\nnumber 1\ngeneration 0\nkey A" C32 C32 "\n",
    };
    struct keyfile f;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_EQ(parse(wrong[i], &f), -EBADMSG);
    CHECK_EQ(parse("storm-key 2\n", &f), -EPROTONOSUPPORT);
    CHECK_EQ(parse("storm-key 1\nclient\ncluster " C32 "\nnumber 1\ngeneration 0\nkey " C32 C32
                   "\n",
                   &f),
             0);
}

static void test_identities(void) {
    uint8_t bytes[IDENTITY_BYTES], again[IDENTITY_BYTES];
    char text[IDENTITY_TEXT_MAX];
    struct identity id = {.kind = IDENTITY_EDGE, .serial = 12, .from = 7, .to = 3}, read;
    id.cluster[15] = 9;
    identity_encode(&id, bytes);
    CHECK_EQ(identity_decode(bytes_of(bytes, sizeof bytes), &read), 0);
    CHECK(identity_equal(&id, &read));
    identity_format(&read, text);
    CHECK_STR(text, "node 7 to node 3 in epoch 12");
    for (size_t len = 0; len < sizeof bytes; len++)
        CHECK_EQ(identity_decode(bytes_of(bytes, len), &read), -EBADMSG);
    struct random random;
    random_init(&random, 5);
    for (int i = 0; i < 20000; i++) { /* whatever is read is written as it was */
        memcpy(again, bytes, sizeof bytes);
        for (int n = 0; n < 3; n++)
            again[random_below(&random, IDENTITY_BYTES)] = (uint8_t)random_below(&random, 256);
        if (identity_decode(bytes_of(again, sizeof again), &read) < 0)
            continue;
        uint8_t written[IDENTITY_BYTES];
        identity_encode(&read, written);
        CHECK_EQ(memcmp(written, again, sizeof again), 0);
    }
}

static void test_who_nobody_can_be(void) {
    static const struct identity wrong[] = {
        {.kind = IDENTITY_EDGE, .from = 3, .to = 3},
        {.kind = IDENTITY_EDGE, .from = NO_NODE, .to = 3},
        {.kind = IDENTITY_NODE, .from = 3, .to = NO_NODE},
        {.kind = IDENTITY_CLIENT, .from = 3, .to = 4},
        {.kind = IDENTITY_CLIENT, .from = NO_NODE, .to = NO_NODE},
    };
    uint8_t bytes[IDENTITY_BYTES];
    struct identity read;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        identity_encode(&wrong[i], bytes);
        CHECK_EQ(identity_decode(bytes_of(bytes, sizeof bytes), &read), -EBADMSG);
    }
}

int main(void) {
    TEST(test_there_and_back);
    TEST(test_the_largest_fits);
    TEST(test_what_is_none);
    TEST(test_identities);
    TEST(test_who_nobody_can_be);
    return tap_finish();
}
