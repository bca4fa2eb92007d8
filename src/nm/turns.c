/* SPDX-License-Identifier: MIT */
/* Gangs: what the root says of slots, on its way to the launcher, and what comes back.
 *
 * The launcher switches, because it outlives us and is next to the processes. We keep only to which slots a run belongs that it
 * has not been told of yet. A strobe that there is no launcher for is not kept: the next one replaces it. */
#include "nm/inside.h"
#include "rm/say.h"

void turns_strobe(struct nm *n, const struct input_strobe *in) {
    union message m;
    uint16_t type;
    if (n->launcher == 0 || in->channel != CHANNEL_TURN ||
        say_heard(in->body, n->scratch, &type, &m) < 0 || type != MESSAGE_TURN)
        return;
    m.turn.number = in->number;
    say_link(n->out, n->launcher, MESSAGE_TURN, &m, (struct bytes){0});
}

/* The launcher passes over what it does not have. */
void turns_slots(struct nm *n, const struct message_slots *m) {
    bool here = false;
    for (size_t at = 0; at < m->rows.len; at += SLOTS_ROW_BYTES) {
        struct run *r = run_find(n, load_le64(m->rows.at + at));
        if (r == NULL || r->over)
            continue;
        here = true;
        if (m->version < r->version)
            continue;
        r->slots = load_le64(m->rows.at + at + 8);
        r->version = m->version;
    }
    if (here && n->launcher != 0)
        say_link(n->out, n->launcher, MESSAGE_SLOTS, &(union message){.slots = *m},
                 (struct bytes){0});
}

void turns_heard(struct nm *n, const struct input_signal *in) {
    union message m;
    uint16_t type;
    if (say_heard(in->body, n->scratch, &type, &m) == 0 && type == MESSAGE_SLOTS)
        turns_slots(n, &m.slots);
}

void turns_told(struct nm *n, const struct message_turned *m) {
    say_root(n->out, MESSAGE_TURNED, &(union message){.turned = *m}, (struct bytes){0});
}
