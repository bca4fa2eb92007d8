/* SPDX-License-Identifier: MIT */
/* Hosts to ask for and to give back: see hire.h. */
#include "wodi/hire.h"

static uint32_t within(const struct hire *h, uint32_t wanted) {
    uint32_t n = wanted > h->most ? h->most : wanted;
    return n < h->least ? h->least : n;
}

static struct hire_advice shrink(struct hire *h) {
    struct hire_advice a = {.cancel = h->coming > 0};
    a.back = h->here > h->highest ? h->here - h->highest : 0;
    a.ask = a.cancel && h->highest > h->here ? h->highest - h->here : 0;
    h->surplus = false;
    return a;
}

struct hire_advice hire_look(struct hire *h, uint32_t wanted, uint64_t now) {
    uint32_t target = within(h, wanted), all = h->here + h->coming;
    if (target >= all) {
        h->surplus = false;
        return (struct hire_advice){.ask = target - all};
    }
    if (!h->surplus) {
        h->surplus = true;
        h->since = now;
        h->highest = target;
    }
    h->highest = target > h->highest ? target : h->highest;
    if (h->highest >= all)
        h->surplus = false; /* some have gone by themselves: it is measured anew */
    if (!h->surplus || now < h->since + h->rest_ns)
        return (struct hire_advice){.again = (h->surplus ? h->since : now) + h->rest_ns};
    return shrink(h);
}

enum hire_verdict hire_ended(struct hire *h, uint32_t *host_early, uint64_t lived_ns,
                             uint64_t results) {
    bool worked = results != h->results;
    h->results = results;
    if (worked || lived_ns >= HIRE_EARLY_NS)
        h->early = 0;
    if (lived_ns >= HIRE_EARLY_NS) {
        *host_early = 0;
        return HIRE_AGAIN;
    }
    if (++h->early >= HIRE_EARLY_CLASS)
        return HIRE_HOPELESS;
    return ++*host_early >= HIRE_EARLY_HOST ? HIRE_BACK : HIRE_AGAIN;
}
