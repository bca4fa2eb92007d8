/* SPDX-License-Identifier: MIT */
/* Sessions over sockets of others: TLS 1.3 with keys that both ends have beforehand.
 *
 * One way to do it, and no other: TLS_AES_128_GCM_SHA256, X25519 (so that who learns a key later reads nothing of what
 * was said before), an external key for each pair; no certificates, tickets, early data, older versions. Of what
 * a stranger says only the library's handshake sees anything, and of that only the first SEAL_HANDSHAKE_BYTES_MAX bytes; how
 * long he may take is the owner's affair. After the handshake it is checked that the key was used.
 *
 * The opener names itself, the other end and the serial of the key (wire/identity.h). */
#pragma once

#include "os/sealer.h"
#include "wire/keyfile.h"

enum { SEAL_HANDSHAKE_BYTES_MAX = 4096, SEAL_REASON_MAX = 192 };

/* Whom keys are asked of; as keyring_offer and keyring_answer. */
struct seal_keys {
    int (*offer)(void *context, uint32_t to, struct identity *ret_id, uint8_t ret_key[KEY_BYTES]);
    int (*answer)(void *context, const struct identity *id, uint8_t ret_key[KEY_BYTES]);
    void *context;
};

/* NULL: no memory. */
struct seals *seals_new(const struct seal_keys *keys);
/* After all its sessions. */
void seals_free(struct seals *all);

/* A session changes its keys after so many bytes each way, long before the cipher's limits; the usual is 32 GiB. */
void seals_set_rekey_bytes(struct seals *all, uint64_t bytes);

/* Makes what all sessions of the process, and of those it forks, share: milliseconds that the first of them would take
 * otherwise. False: no memory, or the library does not work; then there will be no sessions. */
bool seals_ready(void);

/* The table for conn.h and links.h. */
struct sealer seals_sealer(struct seals *all);

struct seal *seal_connect(struct seals *all, int fd, uint32_t to);
struct seal *seal_accept(struct seals *all, int fd);
void seal_free(struct seal *s);

/* As the functions of the table. */
void seal_heard(struct seal *s);
int seal_shake(struct seal *s);
ssize_t seal_read(struct seal *s, void *at, size_t len);
ssize_t seal_write(struct seal *s, const void *at, size_t len);
int seal_finish(struct seal *s);
const struct identity *seal_who(const struct seal *s);
const char *seal_reason(const struct seal *s);
