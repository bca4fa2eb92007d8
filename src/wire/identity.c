/* SPDX-License-Identifier: MIT */
/* Who is at the two ends of a sealed connection: see identity.h. */
#include "wire/identity.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "machine/primitive.h"

/* Where the fields are. The first byte is the version of the form. */
enum {
    AT_MAGIC = 0,
    AT_KIND = 4,
    AT_ZERO = 5,
    AT_CLUSTER = 8,
    AT_SERIAL = 24,
    AT_FROM = 32,
    AT_TO = 36
};

static const uint8_t magic[4] = {1, 'S', 'T', 'K'};

void identity_encode(const struct identity *id, uint8_t out[IDENTITY_BYTES]) {
    memset(out, 0, IDENTITY_BYTES);
    memcpy(out + AT_MAGIC, magic, sizeof magic);
    out[AT_KIND] = (uint8_t)id->kind;
    memcpy(out + AT_CLUSTER, id->cluster, CLUSTER_ID_BYTES);
    store_le64(out + AT_SERIAL, id->serial);
    store_le32(out + AT_FROM, id->from);
    store_le32(out + AT_TO, id->to);
}

/* A client is at exactly one end of what it has with the manager, and at none of the rest; two clients have nothing to do with
 * each other, and nobody connects to himself. */
static bool can_be(const struct identity *id) {
    unsigned nameless = (id->from == NO_NODE) + (id->to == NO_NODE);
    unsigned clients = (unsigned)is_client_party(id->from) + is_client_party(id->to);
    return nameless == (id->kind == IDENTITY_CLIENT) && clients <= (id->kind == IDENTITY_EDGE) &&
           id->from != id->to;
}

int identity_decode(struct bytes in, struct identity *ret) {
    static const uint8_t zero[AT_CLUSTER - AT_ZERO];
    struct identity id;
    if (in.len != IDENTITY_BYTES || memcmp(in.at + AT_MAGIC, magic, sizeof magic) != 0 ||
        memcmp(in.at + AT_ZERO, zero, sizeof zero) != 0 || in.at[AT_KIND] >= IDENTITY_KINDS)
        return -EBADMSG;
    id.kind = (enum identity_kind)in.at[AT_KIND];
    memcpy(id.cluster, in.at + AT_CLUSTER, CLUSTER_ID_BYTES);
    id.serial = load_le64(in.at + AT_SERIAL);
    id.from = load_le32(in.at + AT_FROM);
    id.to = load_le32(in.at + AT_TO);
    if (!can_be(&id))
        return -EBADMSG;
    *ret = id;
    return 0;
}

bool identity_equal(const struct identity *a, const struct identity *b) {
    return a->kind == b->kind && memcmp(a->cluster, b->cluster, CLUSTER_ID_BYTES) == 0 &&
           a->serial == b->serial && a->from == b->from && a->to == b->to;
}

static void format_end(struct text *t, const struct identity *id, uint32_t node) {
    bool client = node == NO_NODE || is_client_party(node);
    text_str(t, client ? "client " : "node ");
    text_u64(t, node == NO_NODE ? id->serial : client ? node - CLIENT_PARTY : node);
}

void identity_format(const struct identity *id, char out[IDENTITY_TEXT_MAX]) {
    struct text t;
    text_init(&t, out, IDENTITY_TEXT_MAX);
    format_end(&t, id, id->from);
    text_str(&t, " to ");
    format_end(&t, id, id->to);
    if (id->kind == IDENTITY_CLIENT)
        return;
    text_str(&t, id->kind == IDENTITY_EDGE ? " in epoch " : " by key ");
    text_u64(&t, id->serial);
}
