/* SPDX-License-Identifier: MIT */
/* Tests of what processes of one program say to each other. */
#include "wire/peer.h"

#include <string.h>

#include "tap.h"

static void test_heads(void) {
    uint8_t at[PEER_HEAD_BYTES];
    struct peer_head back, h = {.kind = PEER_DATA, .len = PEER_DATA_MAX, .tag = 7, .received = 9};
    peer_head_write(&h, at);
    CHECK(peer_head_read(&back, at));
    CHECK(back.kind == PEER_DATA && back.len == PEER_DATA_MAX && back.tag == 7 &&
          back.received == 9);
    h.len++;
    peer_head_write(&h, at);
    CHECK(!peer_head_read(&back, at));
    h = (struct peer_head){.kind = PEER_ACK, .len = 1};
    peer_head_write(&h, at);
    CHECK(!peer_head_read(&back, at));
    h = (struct peer_head){.kind = PEER_ACK + 1};
    peer_head_write(&h, at);
    CHECK(!peer_head_read(&back, at));
    h = (struct peer_head){.kind = PEER_WELCOME};
    peer_head_write(&h, at);
    CHECK(peer_head_read(&back, at));
    at[1]++; /* another version */
    CHECK(!peer_head_read(&back, at));
}

static void test_hello(void) {
    uint8_t at[PEER_HELLO_BYTES];
    struct peer_hello back, h = {.rings = 4096, .from = 5, .to = 6, .token = {7, 8}};
    peer_hello_write(&h, at);
    CHECK(peer_hello_read(&back, bytes_of(at, sizeof at)));
    CHECK(back.rings == 4096 && back.from == 5 && back.to == 6 && back.token[0] == 7 &&
          back.token[1] == 8);
    CHECK(!peer_hello_read(&back, bytes_of(at, sizeof at - 1)));
    memset(at + 4, 0, 8); /* from nobody */
    CHECK(!peer_hello_read(&back, bytes_of(at, sizeof at)));
}

int main(void) {
    TEST(test_heads);
    TEST(test_hello);
    return tap_finish();
}
