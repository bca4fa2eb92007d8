/* SPDX-License-Identifier: MIT */
/* Keys in a folder: who gets a number of somebody else gets another key for it, and the old one is void. */
#include "client/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/files.h"
#include "os/keyring.h"
#include "tap.h"

enum { NODES = 8 };

static char folder[] = "/tmp/storm-keys.XXXXXX", why[256];

static struct keyfile node_key(uint32_t node) {
    struct keyfile f = {0};
    CHECK_EQ(keys_issue_node(folder, NODES, node, &f, why), 0);
    return f;
}

/* The manager, as it is after all that was written down. */
static struct keyring *manager(void) {
    char path[64];
    struct keyfile file;
    struct keyring *k = NULL;
    snprintf(path, sizeof path, "%s/master.key", folder);
    CHECK_EQ(keyring_load(path, &file, why), 0);
    struct keyring_config c = {.file = &file, .self = NODES, .seat_first = NODES, .seats = 1};
    CHECK_EQ(keyring_new(&c, &k), 0);
    CHECK_EQ(keys_expect(folder, k), 0);
    return k;
}

static bool admitted(const struct keyfile *f) {
    uint8_t theirs[KEY_BYTES], ours[KEY_BYTES];
    struct keyring *node = NULL, *seat = manager();
    struct identity id;
    struct keyring_config c = {
        .file = f, .self = (uint32_t)f->number, .seat_first = NODES, .seats = 1};
    CHECK_EQ(keyring_new(&c, &node), 0);
    CHECK_EQ(keyring_offer(node, NODES, &id, theirs), 0);
    bool same = keyring_answer(seat, &id, ours) == 0 && memcmp(theirs, ours, sizeof ours) == 0;
    keyring_free(node);
    keyring_free(seat);
    return same;
}

static void test_made_once(void) {
    CHECK_EQ(keys_make(folder, NODES, why), 0);
    struct keyfile before = node_key(3);
    CHECK_EQ(keys_make(folder, NODES, why), 0);
    struct keyfile after = node_key(3);
    CHECK(memcmp(before.key, after.key, KEY_BYTES) == 0);
    CHECK(admitted(&before));
}

static void test_number_of_another(void) {
    struct keyfile three = node_key(3), four = node_key(4);
    CHECK_EQ(keys_raise(folder, 3), 0);
    struct keyfile next = node_key(3);
    CHECK(next.generation == three.generation + 1);
    CHECK(memcmp(next.key, three.key, KEY_BYTES) != 0);
    CHECK(admitted(&next) && !admitted(&three) && admitted(&four));
    CHECK_EQ(keys_raise(folder, 3), 0);
    CHECK_EQ(keys_raise(folder, 5), 0);
    CHECK(!admitted(&next));
    next = node_key(3);
    CHECK(admitted(&next) && next.generation == three.generation + 2);
}

static void test_all_anew(void) {
    struct keyfile old[] = {node_key(3), node_key(4), node_key(5)};
    CHECK_EQ(keys_renew(folder), 0);
    for (int i = 0; i < 3; i++) {
        struct keyfile next = node_key((uint32_t)i + 3);
        CHECK(!admitted(&old[i]));
        CHECK(admitted(&next));
        CHECK(next.generation > old[0].generation); /* what was ever given out never comes again */
    }
}

static void test_damaged(void) {
    char path[64];
    struct keyfile f;
    snprintf(path, sizeof path, "%s/generations", folder);
    CHECK_EQ(files_replace(path, bytes_from_str("* 3\nnonsense\n")), 0);
    CHECK_EQ(keys_issue_node(folder, NODES, 3, &f, why), -EBADMSG);
    CHECK(strstr(why, "generations") != NULL);
}

static void test_clients(void) {
    struct keyfile f;
    CHECK_EQ(keys_issue_client(folder, NODES, 2, &f, why), 0);
    CHECK_EQ(f.kind, KEY_CLIENT);
    CHECK_EQ(keys_issue_client("/nowhere", NODES, 2, &f, why), -ENOENT);
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    TEST(test_made_once);
    TEST(test_number_of_another);
    TEST(test_all_anew);
    TEST(test_damaged);
    TEST(test_clients);
    files_remove(AT_FDCWD, folder);
    return tap_finish();
}
