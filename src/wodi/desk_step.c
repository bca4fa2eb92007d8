/* SPDX-License-Identifier: MIT */
/* Steps: found by number, kept from the master's word to its acknowledgement. */
#include "base/hash.h"
#include "wodi/desk_inside.h"

static uint32_t home_of(const struct desk *d, uint32_t slot, uint64_t number) {
    struct hash h;
    hash_init(&h, slot);
    hash_u64(&h, number);
    return (uint32_t)hash_done(&h) & d->index_mask;
}

/* Where it is, or would be. */
static uint32_t place_of(const struct desk *d, uint32_t slot, uint64_t number) {
    uint32_t i = home_of(d, slot, number);
    for (; d->index[i]; i = (i + 1) & d->index_mask) {
        const struct step *t = &d->steps[d->index[i] - 1];
        if (t->slot == slot && t->number == number)
            break;
    }
    return i;
}

struct step *desk_step_find(struct desk *d, uint32_t slot, uint64_t number) {
    uint32_t at = d->index[place_of(d, slot, number)];
    return at ? &d->steps[at - 1] : NULL;
}

/* Those behind a hole move up if their way from home leads over it. */
static void unindex(struct desk *d, const struct step *t) {
    uint32_t hole = place_of(d, t->slot, t->number);
    for (uint32_t i = (hole + 1) & d->index_mask; d->index[i]; i = (i + 1) & d->index_mask) {
        const struct step *other = &d->steps[d->index[i] - 1];
        uint32_t home = home_of(d, other->slot, other->number);
        if (((i - home) & d->index_mask) >= ((i - hole) & d->index_mask)) {
            d->index[hole] = d->index[i];
            hole = i;
        }
    }
    d->index[hole] = 0;
}

struct step *desk_step_of(struct desk *d, const struct errand_at *e) {
    uint32_t index;
    if (e->id == 0 || idtable_get(&d->ids, e->id, &index) != 0)
        return NULL;
    /* Ids come again; arrivals do not. */
    return d->steps[index].arrival == e->arrival ? &d->steps[index] : NULL;
}

struct step *desk_step_new(struct desk *d, uint32_t slot, uint64_t number, struct bytes work) {
    struct session *s = &d->sessions[slot];
    uint32_t id, index;
    int status = idtable_alloc(&d->ids, &id, &index);
    ASSERT(status == 0);
    struct step *t = &d->steps[index];
    *t = (struct step){.number = number, .arrival = ++d->arrivals, .id = id, .slot = slot};
    list_init(&t->result_at);
    t->work = blocks_keep(&d->pool, work);
    s->work_blocks += blocks_for(work.len);
    s->steps++;
    s->arrived++;
    d->index[place_of(d, slot, number)] = index + 1;
    desk_step_wait(d, t);
    return t;
}

void desk_step_wait(struct desk *d, struct step *t) {
    struct session *s = &d->sessions[t->slot];
    uint64_t expected = history_expect(&s->history, t->number, NULL);
    t->state = STEP_WAITING;
    t->wait.key = d->limits.in_order ? 0 : UINT64_MAX - expected;
    t->wait.tie = t->arrival;
    int status = heap_push(&s->waiting, &t->wait);
    ASSERT(status == 0);
    d->waiting++;
}

static void stop_waiting_or_running(struct desk *d, struct step *t) {
    struct session *s = &d->sessions[t->slot];
    if (t->state == STEP_WAITING) {
        heap_remove(&s->waiting, &t->wait);
        d->waiting--;
    } else if (t->state == STEP_RUNNING) {
        s->running--;
        d->running--;
    }
}

void desk_step_finish(struct desk *d, struct step *t, uint32_t status, uint64_t ns,
                      struct bytes result) {
    struct session *s = &d->sessions[t->slot];
    stop_waiting_or_running(d, t);
    s->work_blocks -= blocks_for(t->work.len);
    blocks_drop(&d->pool, &t->work);
    t->result = blocks_keep(&d->pool, result);
    uint32_t blocks = blocks_for(result.len);
    s->result_blocks += blocks;
    if (blocks > s->result_most)
        s->result_most = blocks;
    t->state = STEP_DONE;
    t->status = status;
    t->ns = ns;
    t->seq = ++s->seq;
    t->ticket = d->replaying ? 0 : d->records;
    list_push_back(&s->results, &t->result_at);
    if (!s->unsent)
        s->unsent = t;
}

void desk_step_free(struct desk *d, struct step *t) {
    struct session *s = &d->sessions[t->slot];
    stop_waiting_or_running(d, t);
    if (s->unsent == t) {
        struct list *next = t->result_at.next;
        s->unsent = next == &s->results ? NULL : CONTAINER_OF(next, struct step, result_at);
    }
    list_remove(&t->result_at);
    s->work_blocks -= blocks_for(t->work.len);
    s->result_blocks -= blocks_for(t->result.len);
    blocks_drop(&d->pool, &t->work);
    blocks_drop(&d->pool, &t->result);
    s->steps--;
    unindex(d, t);
    t->arrival = 0;
    idtable_free(&d->ids, t->id);
}
