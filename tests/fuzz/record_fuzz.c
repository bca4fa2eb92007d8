/* SPDX-License-Identifier: MIT */
/* Fuzzes the decoder of recorded inputs: a log of any bytes is read to its first flaw.
 *
 * What decodes must encode again, decode again, and encode to the same bytes: a log that was read
 * and written out tells the same story. (The first bytes may differ: a node set can be spelt in two
 * ways.) */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "machine/record.h"

enum { UNIVERSE = 500, SLACK = 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct input *in, enum layer layer, struct room one,
                        struct room two) {
    uint64_t storage[64];
    struct record_scratch scratch;
    ASSERT(nodeset_bytes(UNIVERSE) <= sizeof storage);
    record_scratch_init(&scratch, UNIVERSE, storage);
    long len = record_encode(one, layer, in);
    ASSERT(len > 0);
    enum layer again_layer;
    struct input again;
    size_t used;
    int r = record_decode(bytes_of(one.at, (size_t)len), &scratch, &again_layer, &again, &used);
    ASSERT(r == 0 && used == (size_t)len && again_layer == layer && again.kind == in->kind);
    long second = record_encode(two, again_layer, &again);
    ASSERT(second == len && memcmp(one.at, two.at, (size_t)len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t storage[64];
    struct record_scratch scratch;
    record_scratch_init(&scratch, UNIVERSE, storage);
    size_t room = size + SLACK;
    uint8_t *buffers = malloc(2 * room);
    ASSERT(buffers != NULL);
    for (size_t at = 0; at < size;) {
        enum layer layer;
        struct input in;
        size_t used;
        if (record_decode(bytes_of(data + at, size - at), &scratch, &layer, &in, &used) < 0)
            break;
        ASSERT(used > 0 && used <= size - at);
        check_again(&in, layer, room_of(buffers, room), room_of(buffers + room, room));
        at += used;
    }
    free(buffers);
    return 0;
}
