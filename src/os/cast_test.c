/* SPDX-License-Identifier: MIT */
/* Strobes past the tree: who hears them, and whom nobody listens to. On loopback. */
#include "os/cast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/units.h"
#include "tap.h"

enum { EARS = 3, NODES = EARS };

struct place {
    struct loop loop;
    struct ear ears[EARS];
    struct caster caster;
    uint64_t heard[EARS]; /* the last number */
    uint32_t times[EARS];
    uint32_t lengths[EARS];
};

static const uint64_t key[2] = {17, 4711};
static const char here[] = "127.0.0.1";

struct listener {
    struct place *place;
    int index;
};

static struct listener listeners[EARS];

static void on_heard(void *context, const struct input *in) {
    const struct listener *l = context;
    l->place->heard[l->index] = in->strobe.number;
    l->place->lengths[l->index] = (uint32_t)in->strobe.body.len;
    l->place->times[l->index]++;
}

static void begin(struct place *r, const char *path, const uint64_t ear_key[2]) {
    memset(r, 0, sizeof *r);
    CHECK_EQ(loop_init(&r->loop), 0);
    for (int i = 0; i < EARS; i++) {
        listeners[i] = (struct listener){r, i};
        CHECK_EQ(ear_init(&r->ears[i], &r->loop, path, ear_key, on_heard, &listeners[i]), 0);
    }
}

static void finish(struct place *r) {
    for (int i = 0; i < EARS; i++)
        ear_fini(&r->ears[i]);
    caster_fini(&r->caster);
    loop_fini(&r->loop);
}

/* Datagrams on loopback are there when they are sent. */
static void listen_all(struct place *r) {
    for (int i = 0; i < EARS; i++)
        r->ears[i].source.ready(&r->ears[i].source, EPOLLIN);
}

static void cast(struct place *r, uint64_t number, const char *body) {
    uint64_t storage[4] = {0};
    struct nodeset all;
    nodeset_init(&all, NODES, storage);
    nodeset_add_range(&all, 0, NODES - 1);
    struct effect_cast e = {
        .set = &all, .channel = 5, .number = number, .body = bytes_from_str(body)};
    caster_send(&r->caster, &e);
}

static void begin_group(struct place *r, const uint64_t ear_key[2]) {
    struct in_addr from;
    inet_pton(AF_INET, here, &from);
    begin(r, EAR_MULTICAST "127.0.0.1", ear_key);
    CHECK_EQ(caster_init_group(&r->caster, key, from), 0);
}

static void test_all_hear_the_group(void) {
    struct place r;
    begin_group(&r, key);
    cast(&r, 7, "body");
    listen_all(&r);
    for (int i = 0; i < EARS; i++)
        CHECK(r.heard[i] == 7 && r.lengths[i] == 4 && r.times[i] == 1);
    finish(&r);
}

/* Of several that have piled up the newest counts, whatever their order. */
static void test_newest(void) {
    struct place r;
    begin_group(&r, key);
    cast(&r, 9, "a");
    cast(&r, 12, "b");
    cast(&r, 11, "c");
    listen_all(&r);
    for (int i = 0; i < EARS; i++)
        CHECK(r.heard[i] == 12 && r.times[i] == 1);
    finish(&r);
}

/* The same words without the key, a changed byte, or too few of them: as if nothing had come. */
static void test_strangers(void) {
    const uint64_t other[2] = {key[0], key[1] + 1};
    uint8_t bytes[64] = {5};
    struct place r;
    begin_group(&r, key);
    struct sockaddr_in group = r.caster.group;
    memcpy(r.caster.key, other, sizeof other);
    cast(&r, 7, "body");
    for (size_t len = 0; len <= sizeof bytes; len += 4)
        sendto(r.caster.fd, bytes, len, 0, (const struct sockaddr *)&group, sizeof group);
    listen_all(&r);
    listen_all(&r);
    listen_all(&r);
    for (int i = 0; i < EARS; i++)
        CHECK_EQ(r.times[i], 0);
    memcpy(r.caster.key, key, sizeof key);
    cast(&r, 8, "body");
    listen_all(&r);
    for (int i = 0; i < EARS; i++)
        CHECK(r.heard[i] == 8 && r.times[i] == 1);
    finish(&r);
}

/* Clusters have groups of their own. */
static void test_other_clusters(void) {
    const uint64_t other[2] = {1, 2};
    struct place r;
    begin_group(&r, other);
    cast(&r, 7, "body");
    listen_all(&r);
    for (int i = 0; i < EARS; i++)
        CHECK_EQ(r.times[i], 0);
    finish(&r);
}

static void test_nowhere(void) {
    struct loop loop;
    struct ear e;
    CHECK_EQ(loop_init(&loop), 0);
    CHECK_EQ(ear_init(&e, &loop, EAR_MULTICAST "nowhere", key, on_heard, NULL), -EINVAL);
    CHECK_EQ(e.source.fd, -1);
    loop_fini(&loop);
}

int main(void) {
    TEST(test_all_hear_the_group);
    TEST(test_newest);
    TEST(test_strangers);
    TEST(test_other_clusters);
    TEST(test_nowhere);
    return tap_finish();
}
