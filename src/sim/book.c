/* SPDX-License-Identifier: MIT */
/* What customers have asked for, and what they were told: see book.h. */
#include "sim/book.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"

void book_fini(struct book *b) {
    for (uint32_t i = 0; i < b->count; i++)
        free(b->orders[i].ends);
    free(b->orders);
    free(b->told);
    *b = (struct book){0};
}

int32_t book_add(struct book *b, const struct order *o) {
    if (b->count == b->cap) {
        b->cap = b->cap ? 2 * b->cap : 64;
        b->orders = realloc(b->orders, b->cap * sizeof *b->orders);
        ASSERT(b->orders != NULL);
    }
    struct order *mine = &b->orders[b->count];
    *mine = *o;
    mine->ends = calloc(o->count, sizeof *mine->ends);
    ASSERT(mine->ends != NULL);
    return (int32_t)b->count++;
}

static void tell(struct book *b, int32_t order, bool ended, uint32_t k) {
    if (b->told_count == b->told_cap) {
        b->told_cap = b->told_cap ? 2 * b->told_cap : 64;
        b->told = realloc(b->told, b->told_cap * sizeof *b->told);
        ASSERT(b->told != NULL);
    }
    b->told[b->told_count++] = (struct told){.order = order, .ended = ended, .k = k};
}

const struct order *book_awaited(const struct book *b, const struct order *o) {
    return o->after == 0 ? NULL : &b->orders[o->after - 1];
}

int32_t book_find(const struct book *b, uint32_t job) {
    for (uint32_t i = b->count; i-- > 0;) {
        const struct order *o = &b->orders[i];
        if (o->job != 0 && job >= o->job && job - o->job < o->count)
            return (int32_t)i;
    }
    return NO_ORDER;
}

void book_answer(struct book *b, int32_t order, const struct message_answer *a, uint64_t now) {
    struct order *o = &b->orders[order];
    if (a->code == ANSWER_DONE && o->job != 0 && o->job != a->job)
        verdict_add(b->verdict, "S3", "order %" PRId32 " was job %" PRIu32 ", now %" PRIu32, order,
                    o->job, a->job);
    if (a->code == ANSWER_DONE && o->job == 0 && book_find(b, a->job) != NO_ORDER)
        verdict_add(b->verdict, "S3", "job %" PRIu32 " is of two orders, %" PRId32 " and %" PRId32,
                    a->job, book_find(b, a->job), order);
    if (a->code == ANSWER_DONE && a->count != o->count)
        verdict_add(b->verdict, "S3", "order %" PRId32 ": %" PRIu32 " jobs of %" PRIu32, order,
                    a->count, o->count);
    if (o->job != 0)
        return;
    o->answered_at = now;
    o->code = (enum answer)a->code;
    o->job = a->code == ANSWER_DONE ? a->job : 0;
    if (o->job != 0)
        tell(b, order, false, 0);
}

void book_news(struct book *b, int32_t order, const struct message_news *n) {
    struct order *o = &b->orders[order];
    struct ended *e = &o->ends[n->job - o->job];
    if (!n->settled)
        return;
    bool over = state_over((enum job_state)n->state), was = state_over((enum job_state)e->state);
    if (e->settled && was && (e->state != n->state || e->status != n->status || e->run != n->run))
        verdict_add(b->verdict, "S3",
                    "job %" PRIu32 " has ended twice: %s %" PRIu32 ", then %s %" PRIu32, n->job,
                    state_name((enum job_state)e->state), e->status,
                    state_name((enum job_state)n->state), n->status);
    if (e->settled && was && !over)
        return;
    if (over && !was)
        tell(b, order, true, n->job - o->job);
    *e = (struct ended){.settled = true,
                        .state = n->state,
                        .status = n->status,
                        .cause = n->cause,
                        .node = n->node,
                        .run = n->run,
                        .output = n->output};
}
