/* SPDX-License-Identifier: MIT */
/* Letters of the manager to a node, and derivation: see keyring.h.
 *
 *   version u32 | cluster 16 | party u32 | epoch u32 | generation u64 | nonce 12 | sealed | tag 16
 *   sealed: door 32, then (peer u32, key 32) for each link that the node may open
 *
 * Sealed by AES-256-GCM, with all that is before the nonce bound to it. The key is the node's alone and for this
 * epoch; nonces are drawn, as a node may get several letters in an epoch. */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <string.h>
#include <stdlib.h>
#include <sys/random.h>

#include "os/keyring_inside.h"

enum {
    AT_VERSION = 0,
    AT_CLUSTER = 4,
    AT_PARTY = 20,
    AT_EPOCH = 24,
    AT_GENERATION = 28,
    AT_NONCE = 36
};
enum { NONCE_BYTES = 12, TAG_BYTES = 16, AT_SEALED = AT_NONCE + NONCE_BYTES };
enum { LETTER_VERSION = 1, ENTRY_BYTES = 4 + KEY_BYTES };

/* ---- HKDF ---- */

/* What a key is for, and between whom: the same for no two uses, as the name has a length of its own. */
static size_t describe(const char *use, const uint8_t cluster[CLUSTER_ID_BYTES], uint32_t number,
                       uint64_t serial, uint8_t out[64]) {
    size_t len = strlen(use);
    ASSERT(len <= 16);
    memcpy(out, "storm1", 6);
    out[6] = (uint8_t)len;
    memcpy(out + 7, use, len);
    memcpy(out + 7 + len, cluster, CLUSTER_ID_BYTES);
    store_le32(out + 23 + len, number);
    store_le64(out + 27 + len, serial);
    return 35 + len;
}

int derive(const uint8_t key[KEY_BYTES], const char *use, const uint8_t cluster[CLUSTER_ID_BYTES],
           uint32_t number, uint64_t serial, uint8_t out[KEY_BYTES]) {
    char digest[] = "SHA256";
    uint8_t about[64];
    size_t about_len = describe(use, cluster, number, serial, about);
    /* Not what a file of the machine says: that is an input that nobody has checked. */
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key, KEY_BYTES),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, about, about_len),
        OSSL_PARAM_construct_end()};
    int good = context != NULL && EVP_KDF_derive(context, out, KEY_BYTES, params) > 0;
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return good ? 0 : -EIO;
}

/* ---- AES-256-GCM ---- */

static int seal_up(const uint8_t key[KEY_BYTES], uint8_t *letter, size_t sealed) {
    int len, last;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    uint8_t *at = letter + AT_SEALED;
    int good = c != NULL &&
               EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, letter + AT_NONCE) > 0 &&
               EVP_EncryptUpdate(c, NULL, &len, letter, AT_NONCE) > 0 &&
               EVP_EncryptUpdate(c, at, &len, at, (int)sealed) > 0 &&
               EVP_EncryptFinal_ex(c, at + len, &last) > 0 &&
               EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, at + sealed) > 0;
    EVP_CIPHER_CTX_free(c);
    return good ? 0 : -EIO;
}

static int unseal(const uint8_t key[KEY_BYTES], struct bytes letter, uint8_t *out, size_t sealed) {
    int len, last;
    uint8_t tag[TAG_BYTES];
    const uint8_t *at = letter.at + AT_SEALED;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    memcpy(tag, at + sealed, TAG_BYTES);
    int good = c != NULL &&
               EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, letter.at + AT_NONCE) > 0 &&
               EVP_DecryptUpdate(c, NULL, &len, letter.at, AT_NONCE) > 0 &&
               EVP_DecryptUpdate(c, out, &len, at, (int)sealed) > 0 &&
               EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) > 0 &&
               EVP_DecryptFinal_ex(c, out + len, &last) > 0;
    EVP_CIPHER_CTX_free(c);
    return good ? 0 : -EKEYREJECTED;
}

/* ---- letters ---- */

size_t letter_bytes(uint32_t peers) {
    return AT_SEALED + KEY_BYTES + (size_t)peers * ENTRY_BYTES + TAG_BYTES;
}

static int fill(const struct keyring *k, uint32_t node, uint32_t epoch, const uint32_t *peers,
                uint32_t count, uint8_t *at) {
    uint8_t door[KEY_BYTES];
    int r = keyring_door(k, node, epoch, at);
    at += KEY_BYTES;
    for (uint32_t i = 0; i < count && r == 0; i++, at += ENTRY_BYTES) {
        store_le32(at, peers[i]);
        r = keyring_door(k, peers[i], epoch, door);
        if (r == 0)
            r = pair_key(door, k->file.cluster, node, at + 4);
    }
    OPENSSL_cleanse(door, sizeof door);
    return r;
}

long keyring_write_letter(const struct keyring *k, uint32_t party, uint32_t epoch,
                          const uint32_t *peers, uint32_t count, struct room out) {
    uint8_t key[KEY_BYTES], letters[KEY_BYTES];
    size_t len = letter_bytes(count), sealed = len - AT_SEALED - TAG_BYTES;
    if (k->file.kind != KEY_MASTER)
        return -EPERM;
    if (count > LETTER_KEYS_MAX || epoch == 0)
        return -EINVAL;
    if (out.len < len)
        return -ENOBUFS;
    uint64_t generation;
    int r = keyring_party_key(k, party, &generation, key);
    store_le32(out.at + AT_VERSION, LETTER_VERSION);
    memcpy(out.at + AT_CLUSTER, k->file.cluster, CLUSTER_ID_BYTES);
    store_le32(out.at + AT_PARTY, party);
    store_le32(out.at + AT_EPOCH, epoch);
    store_le64(out.at + AT_GENERATION, generation);
    if (r == 0 && getrandom(out.at + AT_NONCE, NONCE_BYTES, 0) != NONCE_BYTES)
        r = -EIO;
    if (r == 0)
        r = fill(k, party, epoch, peers, count, out.at + AT_SEALED);
    if (r == 0)
        r = derive(key, "letters", k->file.cluster, party, epoch, letters);
    if (r == 0)
        r = seal_up(letters, out.at, sealed);
    if (r < 0)
        OPENSSL_cleanse(out.at, len);
    OPENSSL_cleanse(key, sizeof key);
    OPENSSL_cleanse(letters, sizeof letters);
    return r < 0 ? r : (long)len;
}

static int take_keys(struct keyring *k, uint32_t epoch, const uint8_t *at, size_t len) {
    if (epoch > k->epoch)
        keyring_forget_letters(k);
    k->epoch = epoch;
    memcpy(k->door, at, KEY_BYTES);
    int r = 0;
    for (size_t i = KEY_BYTES; i < len && r == 0; i += ENTRY_BYTES)
        r = keyring_learn(k, load_le32(at + i), at + i + 4);
    return r;
}

int keyring_read_letter(struct keyring *k, struct bytes letter) {
    uint8_t key[KEY_BYTES];
    if (letter.len < letter_bytes(0) || letter.len > letter_bytes(LETTER_KEYS_MAX) ||
        (letter.len - letter_bytes(0)) % ENTRY_BYTES != 0 ||
        load_le32(letter.at + AT_VERSION) != LETTER_VERSION)
        return -EBADMSG;
    uint32_t epoch = load_le32(letter.at + AT_EPOCH);
    if (k->file.kind == KEY_MASTER || load_le32(letter.at + AT_PARTY) != k->self || epoch == 0 ||
        load_le64(letter.at + AT_GENERATION) != k->file.generation ||
        memcmp(letter.at + AT_CLUSTER, k->file.cluster, CLUSTER_ID_BYTES) != 0)
        return -EKEYREJECTED;
    size_t sealed = letter.len - AT_SEALED - TAG_BYTES;
    uint8_t *open = malloc(sealed);
    int r = open == NULL ? -ENOMEM : 0;
    if (r == 0)
        r = derive(k->file.key, "letters", k->file.cluster, k->self, epoch, key);
    if (r == 0)
        r = unseal(key, letter, open, sealed);
    if (r == 0 && epoch < k->epoch)
        r = -ESTALE;
    if (r == 0)
        r = take_keys(k, epoch, open, sealed);
    if (open != NULL)
        OPENSSL_cleanse(open, sealed);
    free(open);
    OPENSSL_cleanse(key, sizeof key);
    return r;
}
