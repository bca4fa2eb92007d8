/* SPDX-License-Identifier: MIT */
/* Transfers of files to this node, or from it: handed to the mover, and how they ended told to all.
 *
 * The mover is started by the world when we open a link to it, and ends when we close that. One that dies takes
 * what it was at with it: that has failed here. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "nm/inside.h"
#include "rm/say.h"
#include "rm/transfer.h"

/* How often a failure is told, until it is known to be. */
#define AGAIN_NS (1 * NS_PER_S)
/* What nobody has said to be over, and is over here, is so after this time. */
#define FORGET_NS (600 * NS_PER_S)
/* An idle mover is kept for so long. */
#define IDLE_NS (10 * NS_PER_S)

/* Before each wish: its length. */
enum { WISH_HEAD = 4 };

#define ORDERS_EACH(o, n)                                                  \
    for (struct order *o = (n)->orders; o < (n)->orders + ORDERS_MAX; o++) \
        if (o->transfer != 0)

static struct order *find(struct nm *n, uint64_t transfer) {
    ORDERS_EACH (o, n)
        if (o->transfer == transfer)
            return o;
    return NULL;
}

static void set_timer(struct nm *n, uint64_t after_ns) {
    effects_timer(n->out, TIMER_FILES, n->now + after_ns);
}

static void store(struct nm *n, uint64_t transfer, bool failed) {
    struct effect *e = effects_add(n->out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_SET,
                                    .variable = TRANSFER_VARIABLE + transfer_place(transfer),
                                    .value = transfer_value(transfer, failed)};
}

static void tell_root(struct nm *n, const struct order *o) {
    union message m = {.arrived = {.transfer = o->transfer,
                                   .error = o->error,
                                   .text = bytes_of(o->text, o->text_len)}};
    say_root(n->out, MESSAGE_ARRIVED, &m, (struct bytes){0});
}

static void over(struct nm *n, struct order *o, int32_t error, struct bytes text) {
    if (o->over)
        return;
    o->over = true;
    o->over_at = n->now;
    o->error = error;
    o->text_len = (uint32_t)(text.len < sizeof o->text ? text.len : sizeof o->text);
    if (o->text_len > 0)
        memcpy(o->text, text.at, o->text_len);
    if (error != 0)
        tell_root(n, o);
    store(n, o->transfer, error != 0);
    set_timer(n, AGAIN_NS);
}

void orders_reach(struct nm *n) {
    if (n->mover != 0 || n->mover_opening)
        return;
    n->mover_opening = true;
    n->files_idle_at = n->now + IDLE_NS;
    set_timer(n, AGAIN_NS);
    struct effect *e = effects_add(n->out, EFFECT_OPEN);
    e->open = (struct effect_open){
        .node = n->config.self, .purpose = PURPOSE_MOVER, .cookie = COOKIE_MOVER};
}

static void hand(struct nm *n, struct order *o) {
    if (n->mover == 0 || o->told)
        return;
    o->told = true;
    effects_send(n->out, n->mover, 0, MESSAGE_TRANSFER,
                 effects_copy(n->out, bytes_of(o->body, o->len)), (struct bytes){0});
}

void orders_heard(struct nm *n, const struct input_signal *in) {
    union message m;
    uint16_t type;
    if (say_heard(in->body, n->scratch, &type, &m) < 0 || type != MESSAGE_TRANSFER)
        return;
    if (find(n, m.transfer.transfer) != NULL || m.transfer.transfer == 0)
        return;
    struct order *o =
        &n->orders[transfer_place(m.transfer.transfer)]; /* who had it before is over */
    *o = (struct order){.transfer = m.transfer.transfer, .body = o->body};
    o->len = (uint32_t)(in->body.len - SAY_TYPE_BYTES);
    memcpy(o->body, in->body.at + SAY_TYPE_BYTES, o->len);
    orders_reach(n);
    if (m.transfer.run != 0 && !folders_add(n, m.transfer.run)) {
        over(n, o, -EBUSY, bytes_from_str("too many jobs have files on this node"));
        return;
    }
    hand(n, o);
}

static void tell_wishes(struct nm *n) {
    for (uint32_t at = 0; at < n->wish_len;) {
        uint32_t len = load_le32(n->wish + at);
        effects_send(n->out, n->mover, 0, MESSAGE_OFFER,
                     effects_copy(n->out, bytes_of(n->wish + at + WISH_HEAD, len)),
                     (struct bytes){0});
        at += WISH_HEAD + len;
    }
    n->wish_len = 0;
}

void orders_up(struct nm *n, const struct input_link *in) {
    n->mover = in->link;
    n->mover_opening = false;
    n->mover_missed = false;
    tell_wishes(n);
    folders_up(n);
    ORDERS_EACH (o, n)
        if (!o->over)
            hand(n, o);
}

/* It could not be reached, or is gone. One that we have just let go may have taken the link while it ended, so what
 * nobody was told of yet is tried once more. */
void orders_down(struct nm *n) {
    bool again = n->mover == 0 && !n->mover_missed;
    n->mover = 0;
    n->mover_opening = false;
    n->mover_missed = again;
    ORDERS_EACH (o, n)
        if (o->told || !again)
            over(n, o, -EIO,
                 bytes_from_str(o->told ? "the node's file mover has died"
                                        : "the node's file mover cannot be reached"));
    if (again)
        orders_reach(n);
}

/* Files of ours are wanted: the mover looks. If it is not there yet, wishes are kept as far as there is room. */
void orders_offer(struct nm *n, const struct input_message *in) {
    n->files_idle_at = n->now + IDLE_NS;
    set_timer(n, AGAIN_NS);
    if (n->mover != 0) {
        effects_send(n->out, n->mover, 0, MESSAGE_OFFER, effects_copy(n->out, in->body),
                     (struct bytes){0});
        return;
    }
    if (WISH_HEAD + in->body.len <= sizeof n->wish - n->wish_len) {
        store_le32(n->wish + n->wish_len, (uint32_t)in->body.len);
        memcpy(n->wish + n->wish_len + WISH_HEAD, in->body.at, in->body.len);
        n->wish_len += WISH_HEAD + (uint32_t)in->body.len;
    }
    orders_reach(n);
}

void orders_message(struct nm *n, const struct input_message *in) {
    union message m;
    if (message_decode(in->type, in->body, n->scratch, &m) < 0)
        return;
    if (in->type == MESSAGE_OFFERED) {
        say_root(n->out, MESSAGE_OFFERED, &m, (struct bytes){0});
        return;
    }
    if (in->type == MESSAGE_CLEAR) {
        folders_gone(n, &m.clear);
        return;
    }
    if (in->type != MESSAGE_ARRIVED)
        return;
    struct order *o = find(n, m.arrived.transfer);
    if (o != NULL)
        over(n, o, m.arrived.error, m.arrived.text);
}

void orders_enough(struct nm *n, const struct input_message *in, const struct message_enough *e) {
    if (n->mover != 0)
        effects_send(n->out, n->mover, 0, MESSAGE_ENOUGH, effects_copy(n->out, in->body),
                     (struct bytes){0});
    for (size_t at = 0; at < e->transfers.len; at += 8) {
        struct order *o = find(n, load_le64(e->transfers.at + at));
        if (o == NULL)
            continue;
        if (!o->over)
            store(n, o->transfer, true);
        o->transfer = 0;
    }
    n->files_idle_at = n->now + IDLE_NS;
    set_timer(n, AGAIN_NS);
}

/* Another manager, or another life of ours among the others: nobody waits for these any more. */
void orders_settled(struct nm *n) {
    uint8_t numbers[ORDERS_MAX * 8];
    size_t len = 0;
    ORDERS_EACH (o, n) {
        store_le64(numbers + len, o->transfer);
        len += 8;
        o->transfer = 0;
    }
    if (len == 0 || n->mover == 0)
        return;
    union message m = {.enough = {.keep = true, .transfers = bytes_of(numbers, len)}};
    say_link(n->out, n->mover, MESSAGE_ENOUGH, &m, (struct bytes){0});
}

void orders_timer(struct nm *n) {
    bool any = false;
    ORDERS_EACH (o, n) {
        any = true;
        if (o->over && o->error != 0)
            tell_root(n, o);
        if (o->over && n->now - o->over_at > FORGET_NS)
            o->transfer = 0;
    }
    if (!any && n->mover != 0 && n->now >= n->files_idle_at) {
        effects_add(n->out, EFFECT_CLOSE)->close.link = n->mover;
        n->mover = 0;
    }
    if (any || n->mover != 0)
        set_timer(n, AGAIN_NS);
}
