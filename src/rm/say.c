/* SPDX-License-Identifier: MIT */
/* How daemons say something: see say.h. */
#include "rm/say.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

static struct bytes encode(struct effects *out, uint16_t type, const union message *m) {
    long len = message_encode(type, m, effects_tail(out));
    ASSERT(len >= 0);
    return effects_take(out, (size_t)len);
}

/* One piece: what a primitive carries. */
static struct bytes encode_whole(struct effects *out, uint16_t type, const union message *m,
                                 struct bytes tail, size_t before) {
    struct room room = effects_tail(out);
    ASSERT(room.len > before);
    long len = message_encode(type, m, room_of(room.at + before, room.len - before));
    ASSERT(len >= 0 && room.len - before - (size_t)len >= tail.len);
    if (tail.len > 0)
        memcpy(room.at + before + len, tail.at, tail.len);
    return effects_take(out, before + (size_t)len + tail.len);
}

void say_link(struct effects *out, uint32_t link, uint16_t type, const union message *m,
              struct bytes tail) {
    effects_send(out, link, 0, type, encode(out, type, m), tail);
}

static void mail(struct effects *out, enum mail_way way, const struct nodeset *set, uint16_t type,
                 struct bytes body) {
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){
        .kind = PRIMITIVE_MAIL, .way = way, .set = set, .type = type, .body = body};
}

void say_down(struct effects *out, const struct nodeset *set, uint16_t type, const union message *m,
              struct bytes tail) {
    struct bytes body = encode_whole(out, type, m, tail, 0);
    mail(out, MAIL_DOWN, effects_copy_set(out, set), type, body);
}

void say_parent(struct effects *out, uint16_t type, const union message *m) {
    mail(out, MAIL_PARENT, NULL, type, encode(out, type, m));
}

void say_root(struct effects *out, uint16_t type, const union message *m, struct bytes tail) {
    mail(out, MAIL_ROOT, NULL, type, encode_whole(out, type, m, tail, 0));
}

bool say_all(struct effects *out, const struct say_all *how, uint32_t body_bytes, uint16_t type,
             const union message *m, struct bytes tail) {
    struct bytes body = encode_whole(out, type, m, tail, SAY_TYPE_BYTES);
    if (body.len > body_bytes)
        return false;
    store_le16((uint8_t *)body.at, type);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_XFER,
                                    .tag = how->tag,
                                    .set = effects_copy_set(out, how->set),
                                    .timeout_ns = how->timeout_ns,
                                    .body = body,
                                    .remote_event = how->event,
                                    .local_event = NO_EVENT,
                                    .hint = how->hint,
                                    .ask = how->ask};
    return true;
}

void say_strobe(struct effects *out, const struct nodeset *set, uint32_t channel, uint16_t type,
                const union message *m) {
    struct bytes body = encode_whole(out, type, m, (struct bytes){0}, SAY_TYPE_BYTES);
    store_le16((uint8_t *)body.at, type);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_STROBE,
                                    .set = effects_copy_set(out, set),
                                    .channel = channel,
                                    .body = body,
                                    .remote_event = NO_EVENT,
                                    .local_event = NO_EVENT};
}

int say_heard(struct bytes body, struct nodeset *sets, uint16_t *ret_type, union message *ret) {
    if (body.len < SAY_TYPE_BYTES)
        return -EBADMSG;
    uint16_t type = load_le16(body.at);
    const struct message_rule *rule = message_rule(type);
    if (rule == NULL || !(rule->from & 1U << ROLE_ROOT))
        return -EBADMSG;
    *ret_type = type;
    return message_decode(type, bytes_of(body.at + SAY_TYPE_BYTES, body.len - SAY_TYPE_BYTES), sets,
                          ret);
}
