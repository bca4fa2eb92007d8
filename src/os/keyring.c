/* SPDX-License-Identifier: MIT */
/* Keys, derived and found: see keyring.h. */
#include "os/keyring.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "machine/primitive.h"
#include "os/keyring_inside.h"
#include "os/seal.h"

/* ---- derivation ---- */

static void wipe(void *at, size_t len) {
    OPENSSL_cleanse(at, len);
}

int keyring_node_key(const struct keyring *k, uint32_t node, uint64_t generation,
                     uint8_t out[KEY_BYTES]) {
    return derive(k->file.key, "node", k->file.cluster, node, generation, out);
}

int keyring_client_key(const struct keyring *k, uint64_t number, uint8_t out[KEY_BYTES]) {
    return derive(k->file.key, "client", k->file.cluster, NO_NODE, number, out);
}

int keyring_party_key(const struct keyring *k, uint32_t party, uint64_t *ret_generation,
                      uint8_t out[KEY_BYTES]) {
    bool client = is_client_party(party);
    *ret_generation = client ? 0 : keyring_expected(k, party);
    return client ? keyring_client_key(k, party - CLIENT_PARTY, out)
                  : keyring_node_key(k, party, *ret_generation, out);
}

/* From the key that its owner has now: who had the number before knows nothing of it, whatever the epoch. */
int keyring_door(const struct keyring *k, uint32_t party, uint32_t epoch, uint8_t out[KEY_BYTES]) {
    uint8_t secret[KEY_BYTES];
    uint64_t generation;
    int r = keyring_party_key(k, party, &generation, secret);
    if (r == 0)
        r = derive(secret, "door", k->file.cluster, party, epoch, out);
    wipe(secret, sizeof secret);
    return r;
}

int pair_key(const uint8_t secret[KEY_BYTES], const uint8_t cluster[CLUSTER_ID_BYTES],
             uint32_t other, uint8_t out[KEY_BYTES]) {
    return derive(secret, "pair", cluster, other, 0, out);
}

/* The key for sessions with `other`, from a secret that is derived just for that. */
static int pair_of(const struct keyring *k, int status, uint8_t secret[KEY_BYTES], uint32_t other,
                   uint8_t out[KEY_BYTES]) {
    if (status == 0)
        status = pair_key(secret, k->file.cluster, other, out);
    wipe(secret, KEY_BYTES);
    return status;
}

/* ---- the ring ---- */

static bool is_seat(const struct keyring *k, uint32_t node) {
    return node >= k->seat_first && node - k->seat_first < k->seats;
}

static bool is_manager(const struct keyring *k) {
    return k->file.kind == KEY_MASTER;
}

static bool of_use(const struct keyring *k) {
    switch (k->file.kind) {
    case KEY_MASTER:
        return is_seat(k, k->self);
    case KEY_NODE:
        return k->self == k->file.number && !is_seat(k, k->self) && !is_client_party(k->self);
    case KEY_CLIENT:
        return k->self == NO_NODE;
    case KEY_KINDS:
        break;
    }
    return false;
}

int keyring_new(const struct keyring_config *config, struct keyring **ret) {
    struct keyring *k = calloc(1, sizeof *k);
    if (k == NULL)
        return -ENOMEM;
    k->file = *config->file;
    k->self = config->self;
    k->seat_first = config->seat_first;
    k->seats = config->seats;
    if (!of_use(k)) {
        keyring_free(k);
        return -EINVAL;
    }
    if (k->file.kind == KEY_CLIENT)
        k->self = client_party(k->file.number);
    *ret = k;
    return 0;
}

void keyring_forget_letters(struct keyring *k) {
    wipe(k->door, sizeof k->door);
    if (k->known != NULL)
        wipe(k->known, k->known_cap * sizeof *k->known);
    k->known_count = 0;
}

void keyring_free(struct keyring *k) {
    if (k == NULL)
        return;
    keyring_forget_letters(k);
    free(k->known);
    free(k->expected);
    wipe(k, sizeof *k);
    free(k);
}

/* The first of those known whose peer is not below this one. */
static uint32_t position(const struct keyring *k, uint32_t peer) {
    uint32_t low = 0, high = k->known_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (k->known[middle].peer < peer)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Memory that has held keys is not left to realloc. */
static int grow(struct keyring *k) {
    uint32_t cap = k->known_cap ? 2 * k->known_cap : 16;
    struct known_key *more = calloc(cap, sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    if (k->known != NULL) {
        memcpy(more, k->known, k->known_count * sizeof *more);
        wipe(k->known, k->known_cap * sizeof *more);
        free(k->known);
    }
    k->known = more;
    k->known_cap = cap;
    return 0;
}

int keyring_learn(struct keyring *k, uint32_t peer, const uint8_t key[KEY_BYTES]) {
    uint32_t at = position(k, peer);
    if (at == k->known_count || k->known[at].peer != peer) {
        if (k->known_count == LETTER_KEYS_MAX)
            return -ENOSPC;
        int r = k->known_count == k->known_cap ? grow(k) : 0;
        if (r < 0)
            return r;
        memmove(k->known + at + 1, k->known + at, (k->known_count - at) * sizeof *k->known);
        k->known_count++;
    }
    k->known[at].peer = peer;
    memcpy(k->known[at].key, key, KEY_BYTES);
    return 0;
}

uint32_t keyring_epoch(const struct keyring *k) {
    return k->epoch;
}

/* ---- who is expected ---- */

uint64_t keyring_expected(const struct keyring *k, uint32_t node) {
    for (uint32_t i = 0; i < k->expected_count; i++)
        if (k->expected[i].node == node)
            return k->expected[i].generation;
    return k->generation != 0 ? k->generation : 1;
}

void keyring_expect_all(struct keyring *k, uint64_t generation) {
    k->generation = generation;
    k->expected_count = 0;
}

int keyring_expect_node(struct keyring *k, uint32_t node, uint64_t generation) {
    for (uint32_t i = 0; i < k->expected_count; i++)
        if (k->expected[i].node == node) {
            k->expected[i].generation = generation;
            return 0;
        }
    struct expected *more = realloc(k->expected, (k->expected_count + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    more[k->expected_count++] = (struct expected){.node = node, .generation = generation};
    k->expected = more;
    return 0;
}

void keyring_clients_from(struct keyring *k, uint64_t number) {
    k->clients_from = number;
}

/* ---- sessions ---- */

static struct identity name(const struct keyring *k, enum identity_kind kind, uint64_t serial,
                            uint32_t to) {
    struct identity id = {.kind = kind, .serial = serial, .from = k->self, .to = to};
    memcpy(id.cluster, k->file.cluster, sizeof id.cluster);
    return id;
}

static int offer_known(const struct keyring *k, uint32_t to, uint8_t out[KEY_BYTES]) {
    uint32_t at = position(k, to);
    if (k->epoch == 0 || at == k->known_count || k->known[at].peer != to)
        return -ENOKEY;
    memcpy(out, k->known[at].key, KEY_BYTES);
    return 0;
}

int keyring_offer(const struct keyring *k, uint32_t to, struct identity *ret_id,
                  uint8_t ret_key[KEY_BYTES]) {
    uint8_t secret[KEY_BYTES];
    if (to == NO_NODE || to == k->self)
        return -ENOKEY;
    if (k->file.kind == KEY_CLIENT && is_seat(k, to)) {
        *ret_id = name(k, IDENTITY_CLIENT, k->file.number, to);
        ret_id->from = NO_NODE;
        return pair_key(k->file.key, k->file.cluster, to, ret_key);
    }
    if (is_manager(k)) {
        uint64_t generation = keyring_expected(k, to);
        if (is_seat(k, to) || is_client_party(to))
            return -ENOKEY; /* another seat: one manager acts, and none has to do with the others */
        *ret_id = name(k, IDENTITY_NODE, generation, to);
        return pair_of(k, keyring_node_key(k, to, generation, secret), secret, k->self, ret_key);
    }
    if (is_seat(k, to)) {
        *ret_id = name(k, IDENTITY_NODE, k->file.generation, to);
        return pair_key(k->file.key, k->file.cluster, to, ret_key);
    }
    *ret_id = name(k, IDENTITY_EDGE, k->epoch, to);
    return offer_known(k, to, ret_key);
}

static int answer_as_manager(const struct keyring *k, const struct identity *id,
                             uint8_t out[KEY_BYTES]) {
    uint8_t secret[KEY_BYTES];
    if (id->kind == IDENTITY_NODE && !is_seat(k, id->from) &&
        id->serial == keyring_expected(k, id->from))
        return pair_of(k, keyring_node_key(k, id->from, id->serial, secret), secret, k->self, out);
    if (id->kind == IDENTITY_CLIENT && id->serial > 0 && id->serial >= k->clients_from)
        return pair_of(k, keyring_client_key(k, id->serial, secret), secret, k->self, out);
    return -EKEYREJECTED;
}

static int answer_at_door(const struct keyring *k, const struct identity *id,
                          uint8_t out[KEY_BYTES]) {
    if (k->file.kind == KEY_NODE && id->kind == IDENTITY_NODE && is_seat(k, id->from) &&
        id->serial == k->file.generation)
        return pair_key(k->file.key, k->file.cluster, id->from, out);
    if (id->kind != IDENTITY_EDGE || is_seat(k, id->from))
        return -EKEYREJECTED;
    if (k->epoch == 0 || id->serial > k->epoch)
        return -ENOKEY;
    if (id->serial < k->epoch)
        return -ESTALE;
    return pair_key(k->door, k->file.cluster, id->from, out);
}

int keyring_answer(const struct keyring *k, const struct identity *id, uint8_t ret_key[KEY_BYTES]) {
    if (memcmp(id->cluster, k->file.cluster, sizeof id->cluster) != 0 || id->to != k->self)
        return -EKEYREJECTED;
    return is_manager(k) ? answer_as_manager(k, id, ret_key) : answer_at_door(k, id, ret_key);
}

static int offer_one(void *context, uint32_t to, struct identity *ret_id,
                     uint8_t ret_key[KEY_BYTES]) {
    return keyring_offer(context, to, ret_id, ret_key);
}

static int answer_one(void *context, const struct identity *id, uint8_t ret_key[KEY_BYTES]) {
    return keyring_answer(context, id, ret_key);
}

struct seals *keyring_seals(struct keyring *k) {
    const struct seal_keys keys = {.offer = offer_one, .answer = answer_one, .context = k};
    return seals_new(&keys);
}

/* ---- the manager ---- */

int keyring_make_master(struct keyfile *ret) {
    struct keyfile f = {.kind = KEY_MASTER};
    if (getrandom(f.cluster, sizeof f.cluster, 0) != sizeof f.cluster ||
        getrandom(f.key, sizeof f.key, 0) != sizeof f.key)
        return -EIO;
    *ret = f;
    wipe(&f, sizeof f);
    return 0;
}

static int issue(const struct keyring *k, enum key_kind kind, uint64_t number, uint64_t generation,
                 struct keyfile *ret) {
    *ret = (struct keyfile){.kind = kind, .number = number, .generation = generation};
    memcpy(ret->cluster, k->file.cluster, sizeof ret->cluster);
    return kind == KEY_NODE ? keyring_node_key(k, (uint32_t)number, generation, ret->key)
                            : keyring_client_key(k, number, ret->key);
}

int keyring_issue_node(const struct keyring *k, uint32_t node, struct keyfile *ret) {
    if (!is_manager(k))
        return -EPERM;
    if (is_seat(k, node) || node == NO_NODE || is_client_party(node))
        return -EINVAL;
    return issue(k, KEY_NODE, node, keyring_expected(k, node), ret);
}

int keyring_issue_client(const struct keyring *k, uint64_t number, struct keyfile *ret) {
    if (!is_manager(k))
        return -EPERM;
    return number == 0 || number >= CLIENT_PARTIES ? -EINVAL : issue(k, KEY_CLIENT, number, 0, ret);
}
