/* SPDX-License-Identifier: MIT */
/* Keys: what is derived from what, and who may use which.
 *
 *   master (32 bytes, made at the first start; only the manager has it)
 *     ├─ node(cluster, node, generation)     the node has it: its file, brought by whoever sets it up
 *     └─ client(cluster, number)             the client has it: its file
 *          ├─ pair(seat)                     sessions between it and a manager's seat
 *          ├─ letters                        keys that the manager sends to it
 *          └─ door(epoch)                    it has it, by letter: who may come to it in this epoch
 *               └─ pair(opener)              the opener has it, by letter: sessions opener -> it
 *
 * So nobody but the manager can make a key between two others, an accepting node needs one secret for all
 * who come to it, and what was given out for an epoch is worth nothing in the next.
 *
 * A letter is sealed for its node: it may travel through anybody's hands, along the tree or by ssh.
 * All is HKDF-SHA256. Keys are wiped when they are not needed any more; they are never in arguments,
 * environments or messages. */
#pragma once

#include "wire/keyfile.h"

enum { LETTER_KEYS_MAX = 4096 };

struct keyring;

struct keyring_config {
    const struct keyfile *file; /* borrowed; copied */
    uint32_t self;              /* NO_NODE: a client */
    uint32_t seat_first, seats; /* numbers of the manager's seats */
};

/* -EINVAL if such a file is no use to this node (another node's; a client's to a node; a node's at a seat),
 * -ENOMEM. */
int keyring_new(const struct keyring_config *config, struct keyring **ret);
void keyring_free(struct keyring *k);

/* ---- sessions: what seal.h asks ---- */

/* We connect to a node: as whom, and with which key. -ENOKEY: we have none. */
int keyring_offer(const struct keyring *k, uint32_t to, struct identity *ret_id,
                  uint8_t ret_key[KEY_BYTES]);

/* Somebody connects to us and says he is this. -EKEYREJECTED: no such can come to us (another cluster, other ends, a
 * generation or a client given up); -ESTALE: of a former epoch; -ENOKEY: we do not know his key. */
int keyring_answer(const struct keyring *k, const struct identity *id, uint8_t ret_key[KEY_BYTES]);

/* Sessions by these keys; NULL: no memory. It must go before the ring does. */
struct seals;
struct seals *keyring_seals(struct keyring *k);

/* ---- the manager ---- */

/* A master for a new cluster, out of the system's entropy. */
int keyring_make_master(struct keyfile *ret);

/* The file for a node, of the generation that is expected of it; or for a client. */
int keyring_issue_node(const struct keyring *k, uint32_t node, struct keyfile *ret);
int keyring_issue_client(const struct keyring *k, uint64_t number, struct keyfile *ret);

/* From now on only this generation of a node's key is good (1 from the beginning): for a node's number that is
 * given to another machine. Of all nodes; then others of some. */
void keyring_expect_all(struct keyring *k, uint64_t generation);
int keyring_expect_node(struct keyring *k, uint32_t node, uint64_t generation);

/* Clients with a smaller number are not admitted any more. */
void keyring_clients_from(struct keyring *k, uint64_t number);

/* A letter for a node or a client (client_party): all it needs in an epoch to be come to, and to open links to
 * `peers`. How many bytes it has, or -errno; of `letter_bytes(count)` room enough. */
size_t letter_bytes(uint32_t peers);
long keyring_write_letter(const struct keyring *k, uint32_t party, uint32_t epoch,
                          const uint32_t *peers, uint32_t count, struct room out);

/* ---- a node, a client ---- */

/* What the manager has sent us. A letter of a later epoch replaces all that came before, one of the same adds to
 * it. -ESTALE: of a former epoch; -EKEYREJECTED: not for us, or not by our manager; -EBADMSG: no letter at all. */
int keyring_read_letter(struct keyring *k, struct bytes letter);

/* The epoch of the newest letter, 0: none yet. */
uint32_t keyring_epoch(const struct keyring *k);

/* ---- files ---- */

/* Only its owner, who must be us, may be able to read or write it. `why` says what is wrong with it. */
int keyring_load(const char *path, struct keyfile *ret, char why[256]);

/* The key of a node, from the manager's own file, where both are on one machine. `seat` is the manager's number. */
int keyring_load_node(const char *master, uint32_t seat, uint32_t node, struct keyfile *ret,
                      char why[256]);

/* Writes it anew; what was there is replaced as a whole. */
int keyring_save(const char *path, const struct keyfile *f, char why[256]);
