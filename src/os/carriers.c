/* SPDX-License-Identifier: MIT */
/* The fabrics that a mover uses: see carriers.h. */
#include "os/carriers.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "os/companion.h"

/* Links that may go wrong before a fabric is held to be at fault, and not those at the other end. */
enum { STRIKES_MAX = 3 };

static const char prefix[] = "ofi";

bool carrier_name_good(struct bytes name) {
    size_t len = sizeof prefix - 1;
    if (name.len < len || name.len > FABRIC_NAME_MAX || memcmp(name.at, prefix, len) != 0)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] <= ' ' || name.at[i] > '~')
            return false;
    return name.len == len || (name.at[len] == ':' && name.len > len + 1);
}

/* Shared memory gives back what was asked of it strictly in order: what a peer that is gone does not take holds up
 * all others, for ever. */
static bool holds_up(const struct carrier *c) {
    return strncmp(ferry_provider(c->ferry), "shm", 3) == 0;
}

void carrier_fail(struct carrier *c, const char *why) {
    if (c->failed)
        return;
    c->failed = true;
    snprintf(c->why, sizeof c->why, "%s", why);
}

void carrier_strike(struct carrier *c, const char *why) {
    if (c->failed)
        return;
    if (++c->strikes >= STRIKES_MAX)
        carrier_fail(c, why);
}

void carrier_stuck(struct carrier *c, const char *why) {
    if (!c->failed && holds_up(c))
        carrier_fail(c, why);
    else
        carrier_strike(c, why);
}

void carrier_expect(struct carrier *c, bool more) {
    c->windows += more ? 1 : (uint32_t)-1;
    if (carrier_works(c) && c->windows == (uint32_t)more)
        ferry_expect(c->ferry, more);
}

static void on_ready(void *context) {
    struct carrier *c = context;
    c->all->ready(c->all->context, c);
}

static void on_lost(void *context, const char *why) {
    carrier_fail(context, why);
}

static void on_sent(void *context, uint64_t cookie, int error, const char *why) {
    const struct carrier *c = context;
    c->all->sent(c->all->context, cookie, error, why);
}

static void on_note(void *context, uint32_t note) {
    const struct carrier *c = context;
    c->all->note(c->all->context, note);
}

static void open_it(struct carriers *all, struct carrier *c) {
    char program[PATH_MAX], why[FABRIC_WHY_BYTES];
    const char *colon = strchr(c->name, ':');
    struct ferry_config config = {.loop = all->loop,
                                  .program = program,
                                  .provider = colon == NULL ? NULL : colon + 1,
                                  .source = all->source[0] == '\0' ? NULL : all->source,
                                  .ready = on_ready,
                                  .sent = on_sent,
                                  .note = on_note,
                                  .lost = on_lost,
                                  .context = c};
    if (companion_find("storm-fab", program, sizeof program) < 0)
        carrier_fail(c, "there is no storm-fab: STORM was built without libfabric; install it "
                        "(libfabric-dev) and build again");
    else if (ferry_new(&config, &c->ferry, why) < 0)
        carrier_fail(c, why);
}

const struct carrier *carriers_find(const struct carriers *all, struct bytes name) {
    for (const struct carrier *c = all->list; c < all->list + CARRIERS_MAX; c++)
        if (c->name[0] != '\0' && bytes_equal(name, bytes_from_str(c->name)))
            return c;
    return NULL;
}

struct carrier *carriers_get(struct carriers *all, struct bytes name) {
    const struct carrier *known = carriers_find(all, name);
    if (known != NULL)
        return &all->list[known - all->list];
    for (struct carrier *c = all->list; c < all->list + CARRIERS_MAX; c++) {
        if (c->name[0] != '\0' || !carrier_name_good(name))
            continue;
        memcpy(c->name, name.at, name.len);
        c->all = all;
        c->since = all->loop->now;
        open_it(all, c);
        return c;
    }
    return NULL;
}

bool carriers_any(const struct carriers *all) {
    for (const struct carrier *c = all->list; c < all->list + CARRIERS_MAX; c++)
        if (c->name[0] != '\0' && carrier_works(c))
            return true;
    return false;
}

void carrier_wait(struct carrier *c) {
    char why[FABRIC_WHY_BYTES];
    if (carrier_opening(c) && ferry_wait(c->ferry, why) < 0)
        carrier_fail(c, why);
}

void carriers_settle(struct carriers *all) {
    for (struct carrier *c = all->list; c < all->list + CARRIERS_MAX; c++) {
        if (!carrier_opening(c))
            continue;
        if (all->loop->now < c->since + FERRY_START_NS)
            loop_wake_at(all->loop, c->since + FERRY_START_NS);
        else
            carrier_fail(c, "storm-fab does not start");
    }
}

void carriers_fini(struct carriers *all) {
    for (struct carrier *c = all->list; c < all->list + CARRIERS_MAX; c++)
        ferry_free(c->ferry);
}
