/* SPDX-License-Identifier: MIT */
/* Keys: both ends find the same, nobody else does; letters; files. */
#include "os/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "machine/primitive.h"
#include "turns.h"

enum { NODES = 8, SEAT = NODES, SEATS = 2 };

struct world {
    struct keyring *manager;
    struct keyring *nodes[NODES];
    struct keyring *client;
};

static struct keyring *ring(const struct keyfile *file, uint32_t self) {
    struct keyring *k = NULL;
    struct keyring_config c = {.file = file, .self = self, .seat_first = SEAT, .seats = SEATS};
    CHECK_EQ(keyring_new(&c, &k), 0);
    return k;
}

static struct keyring *manager_again(const struct keyfile *master) {
    return ring(master, SEAT);
}

static void world_begin(struct world *w) {
    struct keyfile master, file;
    CHECK_EQ(keyring_make_master(&master), 0);
    w->manager = manager_again(&master);
    for (uint32_t i = 0; i < NODES; i++) {
        CHECK_EQ(keyring_issue_node(w->manager, i, &file), 0);
        w->nodes[i] = ring(&file, i);
    }
    CHECK_EQ(keyring_issue_client(w->manager, 1, &file), 0);
    w->client = ring(&file, NO_NODE);
}

static void world_end(struct world *w) {
    keyring_free(w->manager);
    keyring_free(w->client);
    for (uint32_t i = 0; i < NODES; i++)
        keyring_free(w->nodes[i]);
}

/* The manager writes to a node: whom it may open links to. */
static int write_to(const struct world *w, uint32_t node, uint32_t epoch, const uint32_t *peers,
                    uint32_t count) {
    uint8_t letter[4096];
    long len =
        keyring_write_letter(w->manager, node, epoch, peers, count, room_of(letter, sizeof letter));
    if (!CHECK(len > 0))
        return -1;
    CHECK_EQ(len, letter_bytes(count));
    return keyring_read_letter(w->nodes[node], bytes_of(letter, (size_t)len));
}

/* Both ends have the same key for what the opener offers. */
static bool agree(const struct keyring *opener, const struct keyring *other, uint32_t to) {
    struct identity id;
    uint8_t a[KEY_BYTES] = {1}, b[KEY_BYTES] = {2};
    return keyring_offer(opener, to, &id, a) == 0 && keyring_answer(other, &id, b) == 0 &&
           memcmp(a, b, KEY_BYTES) == 0;
}

/* ---- pairs ---- */

static void test_pairs_agree(void) {
    struct world w;
    uint32_t zero = 0;
    world_begin(&w);
    CHECK(agree(w.client, w.manager, SEAT));
    for (uint32_t i = 0; i < NODES; i++) {
        CHECK(agree(w.nodes[i], w.manager, SEAT));
        CHECK(agree(w.manager, w.nodes[i], i));
        CHECK_EQ(write_to(&w, i, 3, &zero, i > 0), 0);
    }
    for (uint32_t i = 1; i < NODES; i++) {
        CHECK(agree(w.nodes[i], w.nodes[0], 0));
        CHECK(!agree(w.nodes[i], w.nodes[1 + i % 7], 0)); /* it is for 0 and for nobody else */
    }
    world_end(&w);
}

/* Every key that anybody can have, for anybody else: no two are the same. */
static void test_all_keys_differ(void) {
    enum { MOST = 200 };
    static uint8_t keys[MOST][KEY_BYTES];
    uint32_t count = 0, peers[NODES];
    struct identity id;
    struct world w;
    world_begin(&w);
    for (uint32_t i = 0; i < NODES; i++)
        peers[i] = i;
    for (uint32_t epoch = 1; epoch <= 2; epoch++)
        for (uint32_t i = 0; i < NODES; i++) {
            CHECK_EQ(write_to(&w, i, epoch, peers, NODES), 0);
            for (uint32_t to = 0; to < NODES; to++)
                if (to != i)
                    CHECK_EQ(keyring_offer(w.nodes[i], to, &id, keys[count++]), 0);
            if (epoch == 1)
                CHECK_EQ(keyring_offer(w.nodes[i], SEAT, &id, keys[count++]), 0);
        }
    CHECK_EQ(keyring_offer(w.nodes[0], SEAT + 1, &id, keys[count++]), 0);
    CHECK_EQ(keyring_offer(w.client, SEAT, &id, keys[count++]), 0);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            CHECK(memcmp(keys[i], keys[k], KEY_BYTES) != 0);
    world_end(&w);
}

/* The same master makes the same keys: a manager that starts again knows its nodes. */
static void test_same_master_same_keys(void) {
    struct keyfile master, a, b;
    CHECK_EQ(keyring_make_master(&master), 0);
    struct keyring *first = manager_again(&master), *second = manager_again(&master);
    CHECK_EQ(keyring_issue_node(first, 3, &a), 0);
    CHECK_EQ(keyring_issue_node(second, 3, &b), 0);
    CHECK_EQ(memcmp(a.key, b.key, KEY_BYTES), 0);
    master.cluster[0] ^= 1; /* and none of another cluster */
    struct keyring *other = manager_again(&master);
    CHECK_EQ(keyring_issue_node(other, 3, &b), 0);
    CHECK(memcmp(a.key, b.key, KEY_BYTES) != 0);
    keyring_free(first);
    keyring_free(second);
    keyring_free(other);
}

/* Derivation must not change between versions: nodes would not know their manager. Made by another
 * implementation of RFC 5869. */
static void test_known_answer(void) {
    static const uint8_t expected[KEY_BYTES] = {0x7d, 0x12, 0x58, 0x71, 0xe5, 0xc9, 0x1c, 0x28,
                                                0xa2, 0x13, 0xcc, 0x8b, 0x12, 0x25, 0x4b, 0x2f,
                                                0x67, 0xcf, 0x90, 0x6b, 0x16, 0x8d, 0xb7, 0x0d,
                                                0x31, 0x3a, 0x13, 0x85, 0x2d, 0xdc, 0x77, 0xeb};
    struct keyfile master = {.kind = KEY_MASTER}, node;
    for (uint8_t i = 0; i < KEY_BYTES; i++)
        master.key[i] = i;
    for (uint8_t i = 0; i < CLUSTER_ID_BYTES; i++)
        master.cluster[i] = (uint8_t)(0xf0 + i);
    struct keyring *k = manager_again(&master);
    CHECK_EQ(keyring_issue_node(k, 3, &node), 0);
    CHECK_EQ(memcmp(node.key, expected, KEY_BYTES), 0);
    keyring_free(k);
}

/* ---- who is refused ---- */

static int answer(const struct keyring *k, struct identity id) {
    uint8_t key[KEY_BYTES];
    return keyring_answer(k, &id, key);
}

static void test_refused(void) {
    struct world w;
    struct identity id;
    uint8_t key[KEY_BYTES];
    uint32_t zero = 0;
    world_begin(&w);
    CHECK_EQ(keyring_offer(w.nodes[4], 0, &id, key), -ENOKEY); /* no letter yet */
    CHECK_EQ(write_to(&w, 4, 3, &zero, 1), 0);
    CHECK_EQ(write_to(&w, 0, 3, NULL, 0), 0);
    CHECK_EQ(keyring_offer(w.nodes[4], 1, &id, key), -ENOKEY); /* the manager has not said so */
    CHECK_EQ(keyring_offer(w.nodes[4], NO_NODE, &id, key), -ENOKEY);
    CHECK_EQ(keyring_offer(w.nodes[4], 0, &id, key), 0);
    struct identity wrong = id;
    CHECK_EQ(answer(w.nodes[0], id), 0);
    CHECK_EQ(answer(w.nodes[1], id), -EKEYREJECTED);
    CHECK_EQ(answer(w.manager, id), -EKEYREJECTED);
    wrong.cluster[3] ^= 1;
    CHECK_EQ(answer(w.nodes[0], wrong), -EKEYREJECTED);
    wrong = id;
    wrong.serial = 2;
    CHECK_EQ(answer(w.nodes[0], wrong), -ESTALE);
    wrong.serial = 4;
    CHECK_EQ(answer(w.nodes[0], wrong), -ENOKEY);
    wrong = id;
    wrong.from = SEAT; /* a node's door is not the manager's */
    CHECK_EQ(answer(w.nodes[0], wrong), -EKEYREJECTED);
    wrong = (struct identity){.kind = IDENTITY_CLIENT, .serial = 1, .from = NO_NODE, .to = 0};
    memcpy(wrong.cluster, id.cluster, sizeof id.cluster);
    CHECK_EQ(answer(w.nodes[0], wrong), -EKEYREJECTED);
    world_end(&w);
}

/* A new epoch: what was given out for the old one opens nothing more, and seats are reached all the same. */
static void test_epochs(void) {
    struct world w;
    struct identity id;
    uint8_t key[KEY_BYTES];
    uint32_t zero = 0, two = 2;
    world_begin(&w);
    CHECK_EQ(write_to(&w, 4, 3, &zero, 1), 0);
    CHECK_EQ(write_to(&w, 0, 3, NULL, 0), 0);
    CHECK_EQ(write_to(&w, 4, 3, &two, 1), 0); /* one more */
    CHECK_EQ(keyring_offer(w.nodes[4], 0, &id, key), 0);
    CHECK_EQ(keyring_offer(w.nodes[4], 2, &id, key), 0);
    CHECK_EQ(write_to(&w, 0, 4, NULL, 0), 0);
    CHECK_EQ(keyring_epoch(w.nodes[0]), 4);
    CHECK(!agree(w.nodes[4], w.nodes[0], 0));
    CHECK_EQ(keyring_offer(w.nodes[4], 0, &id, key), 0);
    CHECK_EQ(answer(w.nodes[0], id), -ESTALE);
    CHECK_EQ(write_to(&w, 0, 3, NULL, 0), -ESTALE);
    CHECK_EQ(write_to(&w, 4, 4, &zero, 1), 0);
    CHECK(agree(w.nodes[4], w.nodes[0], 0));
    CHECK_EQ(keyring_offer(w.nodes[4], 2, &id, key), -ENOKEY); /* forgotten */
    CHECK(agree(w.nodes[4], w.manager, SEAT));
    world_end(&w);
}

/* A node's number is given to another machine; a client's key is given up. */
static void test_given_up(void) {
    struct world w;
    struct keyfile file;
    uint32_t zero = 0;
    world_begin(&w);
    uint32_t four = 4;
    CHECK_EQ(write_to(&w, 4, 2, NULL, 0), 0);
    CHECK_EQ(write_to(&w, 5, 2, &four, 1), 0);
    CHECK(agree(w.nodes[5], w.nodes[4], 4));
    CHECK_EQ(keyring_expect_node(w.manager, 4, 2), 0);
    CHECK_EQ(write_to(&w, 5, 2, &four, 1), 0); /* in the same epoch */
    CHECK(!agree(w.nodes[5], w.nodes[4], 4));
    CHECK(!agree(w.nodes[4], w.manager, SEAT));
    CHECK(!agree(w.manager, w.nodes[4], 4));
    CHECK_EQ(write_to(&w, 4, 3, &zero, 1), -EKEYREJECTED);
    CHECK_EQ(keyring_issue_node(w.manager, 4, &file), 0);
    keyring_free(w.nodes[4]);
    w.nodes[4] = ring(&file, 4);
    CHECK(agree(w.nodes[4], w.manager, SEAT));
    CHECK_EQ(write_to(&w, 4, 3, &zero, 1), 0);
    CHECK(agree(w.nodes[5], w.manager, SEAT));
    keyring_clients_from(w.manager, 2);
    CHECK(!agree(w.client, w.manager, SEAT));
    CHECK_EQ(keyring_issue_client(w.manager, 2, &file), 0);
    keyring_free(w.client);
    w.client = ring(&file, NO_NODE);
    CHECK(agree(w.client, w.manager, SEAT));
    CHECK_EQ(keyring_issue_node(w.nodes[1], 2, &file), -EPERM);
    CHECK_EQ(keyring_issue_client(w.nodes[1], 2, &file), -EPERM);
    CHECK_EQ(keyring_issue_node(w.manager, SEAT, &file), -EINVAL);
    world_end(&w);
}

static void test_files_of_no_use(void) {
    struct world w;
    struct keyfile file;
    struct keyring *k;
    world_begin(&w);
    CHECK_EQ(keyring_issue_node(w.manager, 4, &file), 0);
    struct keyring_config c = {.file = &file, .self = 5, .seat_first = SEAT, .seats = SEATS};
    CHECK_EQ(keyring_new(&c, &k), -EINVAL);
    c.self = NO_NODE;
    CHECK_EQ(keyring_new(&c, &k), -EINVAL);
    c.self = SEAT;
    CHECK_EQ(keyring_new(&c, &k), -EINVAL);
    CHECK_EQ(keyring_issue_client(w.manager, 4, &file), 0);
    c.self = 4;
    CHECK_EQ(keyring_new(&c, &k), -EINVAL);
    world_end(&w);
}

/* ---- letters ---- */

static void test_letters_are_sealed(void) {
    enum { LEN = 4096 };
    uint8_t letter[LEN], wrong[LEN + 1];
    uint32_t peers[3] = {0, 1, 2};
    struct random random;
    struct identity id;
    struct world w;
    random_init(&random, 2);
    world_begin(&w);
    long len = keyring_write_letter(w.manager, 4, 3, peers, 3, room_of(letter, sizeof letter));
    CHECK(len > 0);
    CHECK_EQ(keyring_read_letter(w.nodes[5], bytes_of(letter, (size_t)len)), -EKEYREJECTED);
    for (size_t i = 0; i < (size_t)len; i++) {
        memcpy(wrong, letter, (size_t)len);
        wrong[i] ^= (uint8_t)(1U << random_below(&random, 8));
        CHECK(keyring_read_letter(w.nodes[4], bytes_of(wrong, (size_t)len)) < 0);
        CHECK(keyring_read_letter(w.nodes[4], bytes_of(letter, i)) < 0);
    }
    memcpy(wrong, letter, (size_t)len);
    CHECK_EQ(keyring_read_letter(w.nodes[4], bytes_of(wrong, (size_t)len + 1)), -EBADMSG);
    CHECK_EQ(keyring_epoch(w.nodes[4]), 0);
    CHECK_EQ(keyring_read_letter(w.nodes[4], bytes_of(letter, (size_t)len)), 0);
    CHECK_EQ(keyring_offer(w.nodes[4], 2, &id, wrong), 0);
    for (size_t i = 0; i + KEY_BYTES <= (size_t)len; i++)
        CHECK(memcmp(letter + i, wrong, KEY_BYTES) != 0); /* nothing of it can be seen */
    CHECK_EQ(keyring_write_letter(w.manager, 4, 3, peers, 3, room_of(letter, 100)), -ENOBUFS);
    CHECK_EQ(keyring_write_letter(w.nodes[1], 4, 3, peers, 3, room_of(letter, LEN)), -EPERM);
    world_end(&w);
}

static void test_many_keys(void) {
    static uint32_t peers[LETTER_KEYS_MAX];
    size_t size = letter_bytes(LETTER_KEYS_MAX);
    uint8_t *letter = malloc(size), key[KEY_BYTES];
    struct identity id;
    struct world w;
    world_begin(&w);
    for (uint32_t i = 0; i < LETTER_KEYS_MAX; i++)
        peers[i] = 100 + (i * 7) % LETTER_KEYS_MAX;
    long len = keyring_write_letter(w.manager, 4, 3, peers, LETTER_KEYS_MAX, room_of(letter, size));
    CHECK_EQ(len, size);
    CHECK_EQ(keyring_read_letter(w.nodes[4], bytes_of(letter, size)), 0);
    CHECK_EQ(keyring_read_letter(w.nodes[4], bytes_of(letter, size)), 0);
    CHECK_EQ(keyring_offer(w.nodes[4], 100, &id, key), 0);
    CHECK_EQ(keyring_offer(w.nodes[4], 99 + LETTER_KEYS_MAX, &id, key), 0);
    CHECK_EQ(keyring_offer(w.nodes[4], 100 + LETTER_KEYS_MAX, &id, key), -ENOKEY);
    world_end(&w);
    free(letter);
}

/* ---- files ---- */

static void test_files(void) {
    char folder[PATH_MAX], path[PATH_MAX], why[256] = "";
    struct keyfile master, read;
    struct stat at;
    folder_make(folder);
    folder_file(folder, "master", path);
    CHECK_EQ(keyring_make_master(&master), 0);
    umask(0);
    CHECK_EQ(keyring_save(path, &master, why), 0);
    CHECK_EQ(stat(path, &at), 0);
    CHECK_EQ(at.st_mode & 07777, 0600);
    CHECK_EQ(keyring_load(path, &read, why), 0);
    CHECK_EQ(memcmp(master.key, read.key, KEY_BYTES), 0);
    CHECK_EQ(keyring_save(path, &master, why), 0); /* anew */
    CHECK_STR(why, "");
    static const mode_t open_to_others[] = {0640, 0604, 0620, 0602, 0610, 0601};
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        CHECK_EQ(chmod(path, open_to_others[i]), 0);
        CHECK_EQ(keyring_load(path, &read, why), -EPERM);
        CHECK(strstr(why, "chmod 600") != NULL && strstr(why, path) != NULL);
    }
    CHECK_EQ(chmod(path, 0400), 0);
    CHECK_EQ(keyring_load(path, &read, why), 0);
    if (geteuid() == 0) {
        CHECK_EQ(chown(path, 1234, 0), 0);
        CHECK_EQ(keyring_load(path, &read, why), -EPERM);
        CHECK(strstr(why, "belongs to user 1234") != NULL);
    }
    folder_remove(folder);
}

static void test_what_is_no_key(void) {
    char folder[PATH_MAX], path[PATH_MAX], link[PATH_MAX], why[256];
    struct keyfile master, read;
    folder_make(folder);
    folder_file(folder, "key", path);
    folder_file(folder, "link", link);
    CHECK_EQ(keyring_load(path, &read, why), -ENOENT);
    CHECK_EQ(keyring_make_master(&master), 0);
    CHECK_EQ(keyring_save(path, &master, why), 0);
    CHECK_EQ(symlink("key", link), 0);
    CHECK_EQ(keyring_load(link, &read, why), -ELOOP);
    int fd = open(path, O_WRONLY | O_TRUNC);
    CHECK_EQ(keyring_load(path, &read, why), -EBADMSG);
    CHECK_EQ(write(fd, "storm-key 9\n", 12), 12);
    CHECK_EQ(keyring_load(path, &read, why), -EPROTONOSUPPORT);
    CHECK(strstr(why, "another version") != NULL);
    CHECK_EQ(ftruncate(fd, 100000), 0);
    CHECK_EQ(keyring_load(path, &read, why), -EBADMSG);
    close(fd);
    CHECK_EQ(keyring_load(folder, &read, why), -EINVAL);
    CHECK_EQ(unlink(link), 0);
    CHECK_EQ(mkfifo(link, 0600), 0);
    CHECK_EQ(keyring_load(link, &read, why), -EINVAL); /* and does not wait for anybody */
    folder_remove(folder);
}

int main(void) {
    TEST(test_pairs_agree);
    TEST(test_all_keys_differ);
    TEST(test_same_master_same_keys);
    TEST(test_known_answer);
    TEST(test_refused);
    TEST(test_epochs);
    TEST(test_given_up);
    TEST(test_files_of_no_use);
    TEST(test_letters_are_sealed);
    TEST(test_many_keys);
    TEST(test_files);
    TEST(test_what_is_no_key);
    return tap_finish();
}
