/* SPDX-License-Identifier: MIT */
/* What can be had from here, and folders of runs: see porter_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/list.h"
#include "os/gather.h"
#include "os/jobfolders.h"
#include "os/porter_inside.h"
#include "rm/spread.h"
#include "wire/folder.h"

enum { CLEARS_MAX = 256 };

/* What a node offers is kept for so long without a taker. */
#define OFFER_NS (60 * NS_PER_S)

static uint64_t draw(void) {
    uint64_t number = 0;
    while (number == 0)
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
            number = 0;
    return number;
}

static struct bytes describe(const struct survey *s, uint8_t **ret_memory) {
    struct bundle b = *survey_bundle(s);
    b.goal = GOAL_SPOOL; /* where it goes is the takers' affair */
    size_t cap = bundle_room(&b);
    *ret_memory = malloc(cap);
    ASSERT(*ret_memory != NULL);
    long len = bundle_encode(&b, room_of(*ret_memory, cap));
    ASSERT(len > 0);
    return bytes_of(*ret_memory, (size_t)len);
}

/* As far as those have said that take it from us; others get theirs from them. */
static bool has_nobody_any(const struct porter *p, const struct survey *s) {
    struct mover_view v;
    for (uint32_t i = 0; i < p->offer_count; i++)
        if (p->offers[i].survey == s && mover_look(p->mover, p->offers[i].number, &v))
            return v.asked && !v.spared;
    return false;
}

/* More was found of what grows, or all, or it has failed. */
static void on_grown(struct source *s, uint32_t events) {
    struct growing *g = CONTAINER_OF(s, struct growing, source);
    struct porter *p = CONTAINER_OF(g, struct porter, growing);
    struct survey *survey = g->survey;
    char why[256];
    (void)events;
    porter_work_off(p); /* what is to be opened is opened first */
    int r = survey_grow(survey, why);
    if (!survey_grows(survey)) {
        loop_close(p->config.loop, s);
        g->survey = NULL;
    } else if (has_nobody_any(p, survey)) {
        survey_even(survey);
    }
    for (uint32_t i = 0; i < p->limits.hauls; i++) {
        struct opened *o = &p->bundles[i];
        if (!o->open || o->out != survey)
            continue;
        if (r < 0) {
            o->error = r;
            snprintf(o->why, sizeof o->why, "%s", why);
            p->spoilt = true;
        } else {
            porter_tell_grown(p, i);
        }
    }
    porter_work_off(p);
}

static int watch_growth(struct porter *p, struct survey *s) {
    int fd = fcntl(survey_growth(s), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    p->growing.survey = s;
    return loop_adopt(p->config.loop, &p->growing.source, fd, on_grown, EPOLLIN);
}

void porter_growing_fini(struct porter *p) {
    if (p->growing.survey != NULL)
        loop_close(p->config.loop, &p->growing.source);
}

/* The mover is told as the node's manager would tell it; everybody who knows the number may come. */
uint64_t porter_offer(struct porter *p, struct survey *s) {
    uint64_t storage = 0, number = draw();
    uint8_t *memory;
    struct nodeset none;
    struct mover_view v;
    if (p->offer_count == PORTER_OFFERS_MAX)
        return 0;
    if (survey_grows(s) && (p->growing.survey != NULL || watch_growth(p, s) < 0))
        return 0;
    p->offers[p->offer_count++] = (struct offer){.number = number, .survey = s};
    nodeset_init(&none, 1, &storage);
    union message m = {.transfer = {.transfer = number,
                                    .offer = number,
                                    .source = p->config.self,
                                    .shape = SPREAD_PAIR, /* whoever comes, in either tree */
                                    .slots = 2,
                                    .set = &none,
                                    .descriptor = describe(s, &memory)}};
    porter_order(p, MESSAGE_TRANSFER, &m);
    free(memory);
    if (mover_look(p->mover, number, &v))
        return number;
    p->offer_count--;
    return 0;
}

static void withdraw(struct porter *p, uint32_t place) {
    uint8_t number[8];
    struct survey *s = p->offers[place].survey;
    store_le64(number, p->offers[place].number);
    union message m = {.enough = {.transfers = bytes_of(number, sizeof number)}};
    porter_order(p, MESSAGE_ENOUGH, &m);
    porter_work_off(p);
    survey_free(s);
    p->offers[place] = p->offers[--p->offer_count];
}

static void withdraw_of(struct porter *p, uint64_t run) {
    for (uint32_t i = 0; i < p->offer_count;)
        if (p->offers[i].run == run && run != 0)
            withdraw(p, i);
        else
            i++;
}

/* Its takers have come and gone. */
static bool is_done_with(const struct porter *p, const struct offer *o) {
    struct mover_view v;
    return mover_look(p->mover, o->number, &v) && v.met_at != 0 && v.takers == 0;
}

/* What a job has left is fetched once. */
void porter_expire_offers(struct porter *p) {
    uint64_t now = p->config.loop->now;
    for (uint32_t i = 0; i < p->offer_count;) {
        struct offer *o = &p->offers[i];
        struct mover_view v;
        if (o->until != 0 && mover_look(p->mover, o->number, &v) && v.takers > 0)
            o->until = now + OFFER_NS;
        else if (o->until != 0 && o->run != 0 && is_done_with(p, o))
            o->until = now;
        if (o->until != 0 && o->until <= now) {
            withdraw(p, i);
            continue;
        }
        if (o->until != 0)
            loop_wake_at(p->config.loop, o->until);
        i++;
    }
}

bool porter_giving(const struct porter *p) {
    struct mover_view v;
    for (uint32_t i = 0; i < p->offer_count; i++)
        if (mover_look(p->mover, p->offers[i].number, &v) && v.takers > 0)
            return true;
    return false;
}

static void answer(struct porter *p, uint32_t link, struct message_offered *o) {
    size_t cap = 1024 + o->descriptor.len;
    uint8_t *body = malloc(cap);
    ASSERT(body != NULL);
    long len = message_encode(MESSAGE_OFFERED, &(union message){.offered = *o}, room_of(body, cap));
    ASSERT(len > 0);
    struct effect_send send = {.links = &link,
                               .link_count = 1,
                               .type = MESSAGE_OFFERED,
                               .head = bytes_of(body, (size_t)len)};
    links_send(p->links, &send);
    free(body);
}

/* Offers whose takers have come and gone are kept only as long as there is room. */
static void make_room(struct porter *p) {
    for (uint32_t i = 0; i < p->offer_count && p->offer_count == PORTER_OFFERS_MAX; i++)
        if (p->offers[i].until != 0 && is_done_with(p, &p->offers[i]))
            withdraw(p, i);
}

/* Files of this node are wanted: looked over now, and on offer for a while. */
void porter_present(struct porter *p, const struct input_message *in) {
    union message m;
    char why[256] = "";
    struct survey *s = NULL;
    uint8_t *memory = NULL;
    if (message_decode(MESSAGE_OFFER, in->body, p->scratch, &m) < 0)
        return;
    struct message_offered o = {.request = {m.offer.request[0], m.offer.request[1]},
                                .node = p->config.self};
    make_room(p);
    const struct depot_config *depot = p->config.depot;
    bool machine = depot->top != NULL && run_folder_of(m.offer.path) == 0;
    const char *root = m.offer.program ? "/" : machine ? depot->top : depot->root;
    o.error = gather_survey(&m.offer, root, p->config.digest, &s, why);
    if (o.error == 0 && (o.offer = porter_offer(p, s)) == 0) {
        snprintf(why, sizeof why, "too many copies are under way there");
        o.error = -EBUSY;
        survey_free(s);
    }
    if (o.error == 0) {
        p->offers[p->offer_count - 1].until = p->config.loop->now + OFFER_NS;
        p->offers[p->offer_count - 1].run = run_folder_of(m.offer.path);
        o.descriptor = describe(s, &memory);
    }
    o.text = bytes_from_str(why);
    answer(p, in->link, &o);
    free(memory);
}

/* Folders of runs are to go: what was to be written there is done or dropped before. Those that are gone are told. */
void porter_clear(struct porter *p, const struct input_message *in) {
    union message m;
    uint8_t runs[8 * CLEARS_MAX], body[8 * CLEARS_MAX + 16];
    size_t len = 0;
    if (message_decode(MESSAGE_CLEAR, in->body, p->scratch, &m) < 0)
        return;
    porter_work_off(p);
    for (size_t at = 0; at < m.clear.runs.len && len < sizeof runs; at += 8) {
        withdraw_of(p, load_le64(m.clear.runs.at + at));
        if (!jobfolders_remove(p->config.depot->root, load_le64(m.clear.runs.at + at)))
            continue;
        memcpy(runs + len, m.clear.runs.at + at, 8);
        len += 8;
    }
    union message gone = {.clear = {.runs = bytes_of(runs, len)}};
    long n = message_encode(MESSAGE_CLEAR, &gone, room_of(body, sizeof body));
    ASSERT(n > 0);
    struct effect_send send = {.links = &in->link,
                               .link_count = 1,
                               .type = MESSAGE_CLEAR,
                               .head = bytes_of(body, (size_t)n)};
    links_send(p->links, &send);
}

struct survey *porter_find_offer(const struct porter *p, uint64_t number) {
    for (uint32_t i = 0; i < p->offer_count; i++)
        if (p->offers[i].number == number)
            return p->offers[i].survey;
    return NULL;
}
