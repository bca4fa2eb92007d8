/* SPDX-License-Identifier: MIT */
/* Strobes: saying whose turn it is, to which slots runs belong, and hearing how it went. When, is for others to say. */
#include "mm/inside.h"
#include "rm/say.h"

/* We are served at once as long as others are to follow. */
static void hurry(struct mm *m, bool prompt) {
    if (m->prompt == prompt)
        return;
    m->prompt = prompt;
    effects_add(m->out, EFFECT_PROMPT)->prompt = prompt;
}

void strobe_turn(struct mm *m, const struct nodeset *set, uint8_t slot, uint32_t quantum_us,
                 uint64_t cycle, uint64_t spent_ns, bool tell) {
    union message turn = {.turn = {.slot = slot,
                                   .tell = tell,
                                   .sent_ns = m->now,
                                   .quantum_us = quantum_us,
                                   .cycle = cycle,
                                   .spent_ns = spent_ns}};
    hurry(m, slot != GANG_ALL && quantum_us > 0);
    say_strobe(m->out, set, CHANNEL_TURN, MESSAGE_TURN, &turn);
}

void strobe_slots(struct mm *m, const struct nodeset *set, uint64_t version, struct bytes rows) {
    union message slots = {.slots = {.version = version, .rows = rows}};
    say_down(m->out, set, MESSAGE_SLOTS, &slots, (struct bytes){0});
}

void strobe_turned(struct mm *m, uint32_t node, const struct message_turned *t) {
    skew_heard(&m->skew, node, t);
}
