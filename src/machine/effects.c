/* SPDX-License-Identifier: MIT */
/* The list of effects and its byte store.
 *
 * Both are sized once by the world, from the limits; a step that would overrun them is a bug in the
 * bound, not a condition to handle. */
#include <string.h>

#include "base/assert.h"
#include "machine/machine.h"

void effects_init(struct effects *e, struct effect *list, uint32_t cap, uint8_t *bytes,
                  size_t bytes_cap) {
    *e = (struct effects){.list = list, .cap = cap, .bytes = bytes, .bytes_cap = bytes_cap};
}

void effects_clear(struct effects *e) {
    e->count = 0;
    e->bytes_used = 0;
}

struct effect *effects_add(struct effects *e, enum effect_kind kind) {
    ASSERT(e->count < e->cap);
    struct effect *effect = &e->list[e->count++];
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
    return effect;
}

uint8_t *effects_room(struct effects *e, size_t len) {
    size_t padded = align_up(len, 8);
    ASSERT(padded <= e->bytes_cap - e->bytes_used);
    uint8_t *room = e->bytes + e->bytes_used;
    e->bytes_used += padded;
    return room;
}

struct bytes effects_copy(struct effects *e, struct bytes from) {
    if (from.len == 0)
        return (struct bytes){0};
    uint8_t *room = effects_room(e, from.len);
    memcpy(room, from.at, from.len);
    return (struct bytes){room, from.len};
}

const struct nodeset *effects_copy_set(struct effects *e, const struct nodeset *from) {
    struct nodeset *set = (struct nodeset *)(void *)effects_room(e, sizeof *set);
    nodeset_init(set, from->universe, effects_room(e, nodeset_bytes(from->universe)));
    nodeset_copy(set, from);
    return set;
}

struct room effects_tail(struct effects *e) {
    return (struct room){e->bytes + e->bytes_used, e->bytes_cap - e->bytes_used};
}

struct bytes effects_take(struct effects *e, size_t len) {
    return (struct bytes){effects_room(e, len), len};
}

void effects_timer(struct effects *e, uint32_t id, uint64_t at) {
    struct effect *effect = effects_add(e, EFFECT_TIMER);
    effect->timer.id = id;
    effect->timer.at = at;
}

void effects_send(struct effects *e, uint32_t link, uint32_t epoch, uint16_t type,
                  struct bytes head, struct bytes tail) {
    uint32_t *links = (uint32_t *)(void *)effects_room(e, sizeof link);
    *links = link;
    struct effect *effect = effects_add(e, EFFECT_SEND);
    effect->send = (struct effect_send){
        .links = links, .link_count = 1, .epoch = epoch, .type = type, .head = head, .tail = tail};
}

struct input *effects_raise(struct effects *e, enum input_kind kind, uint64_t now) {
    struct effect *effect = effects_add(e, EFFECT_RAISE);
    effect->raise.kind = kind;
    effect->raise.now = now;
    return &effect->raise;
}

const char *input_name(enum input_kind kind) {
    static const char *const names[INPUT_KINDS] = {
        [INPUT_BOOT] = "boot",
        [INPUT_MESSAGE] = "message",
        [INPUT_LINK_UP] = "link-up",
        [INPUT_LINK_DOWN] = "link-down",
        [INPUT_TIMER] = "timer",
        [INPUT_DURABLE] = "durable",
        [INPUT_PUT] = "put",
        [INPUT_REQUEST] = "request",
        [INPUT_COMPLETION] = "completion",
        [INPUT_SIGNAL] = "signal",
        [INPUT_PREPARED] = "prepared",
        [INPUT_STROBE] = "strobe",
        [INPUT_JOINED] = "joined",
        [INPUT_FENCED] = "fenced",
        [INPUT_NODES] = "nodes",
        [INPUT_WAVE] = "wave",
        [INPUT_GATHERED] = "gathered",
        [INPUT_TREE] = "tree",
        [INPUT_REPLAY] = "replay",
        [INPUT_LOGGED] = "logged",
        [INPUT_FETCHED] = "fetched",
        [INPUT_LOOKED] = "looked",
        [INPUT_ROSTER] = "roster",
        [INPUT_TRAITS] = "traits",
        [INPUT_MEASURED] = "measured",
        [INPUT_GAUGED] = "gauged",
        [INPUT_CHILD] = "child",
        [INPUT_EMPTY] = "empty",
        [INPUT_STREAM] = "stream",
        [INPUT_DRAINED] = "drained",
        [INPUT_PETITION] = "petition",
        [INPUT_SENT] = "sent",
        [INPUT_BUNDLE] = "bundle",
        [INPUT_PAGE] = "page",
        [INPUT_PIECE] = "piece",
    };
    return kind < INPUT_KINDS ? names[kind] : "?";
}
