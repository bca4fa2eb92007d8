/* SPDX-License-Identifier: MIT */
/* A launch that we have agreed to and the launcher does not know of.
 *
 * Whoever agrees to a launch must be able to carry it out, even if it dies before it hears how the launch
 * was decided. The launcher outlives us, but to tell it costs a wake-up of every node. So we write it
 * down for our next life, and tell the launcher when it is to begin.
 *
 * What is written down is never struck off. Our next life takes it up if it meets the launcher that we
 * had, and that one has not heard of it: so it was never begun, or it is long over, and the machine manager says
 * which. If it meets another launcher nobody can tell any more what became of it. */
#include <string.h>

#include "nm/inside.h"

enum { STOW_HEAD = 8 + 4 + 8 + 8 };

static bool waits(struct nm *n, uint64_t run) {
    const struct run *r = run == 0 ? NULL : run_find(n, run);
    return r != NULL && !r->handed && !r->over;
}

/* There is one place for it, which is not free before the launch that is there has left with this turn. Several
 * processes are worth waking the launcher for: it gets them ready. */
bool stow_run(struct nm *n, struct run *r) {
    if (!r->alone || n->launcher == 0 || !n->ready || STOW_HEAD + r->setup_len > STOW_BYTES_MAX)
        return false;
    if (n->stow.run != r->run && (waits(n, n->stow.run) || n->stow.handed_at == n->now))
        return false;
    uint8_t *at = effects_room(n->out, STOW_HEAD + (size_t)r->setup_len);
    store_le64(at, r->run);
    store_le32(at + 8, n->launcher_life);
    store_le64(at + 12, r->slots);
    store_le64(at + 20, r->version);
    memcpy(at + STOW_HEAD, r->setup, r->setup_len);
    effects_add(n->out, EFFECT_STOW)->stow = bytes_of(at, STOW_HEAD + (size_t)r->setup_len);
    n->stow.run = r->run;
    n->stow.handed_at = 0;
    keeper_later(n);
    return true;
}

void stow_boot(struct nm *n, struct bytes stowed) {
    struct stow *s = &n->stow;
    if (stowed.len <= STOW_HEAD || stowed.len - STOW_HEAD > n->config.limits.body_bytes)
        return;
    s->run = load_le64(stowed.at);
    s->launcher_life = load_le32(stowed.at + 8);
    s->slots = load_le64(stowed.at + 12);
    s->version = load_le64(stowed.at + 20);
    s->setup_len = (uint32_t)(stowed.len - STOW_HEAD);
    memcpy(s->setup, stowed.at + STOW_HEAD, s->setup_len);
}

bool stow_adopt(struct nm *n) {
    struct stow *s = &n->stow;
    bool ours = s->setup_len > 0 && s->run != 0 && s->launcher_life == n->launcher_life;
    struct run *r = !ours || run_find(n, s->run) != NULL ? NULL : run_add(n, s->run);
    if (r != NULL) {
        memcpy(r->setup, s->setup, s->setup_len);
        r->setup_len = s->setup_len;
        r->slots = s->slots;
        r->version = s->version;
        keeper_hand(n, r);
    }
    s->setup_len = 0;
    return r != NULL;
}
