/* SPDX-License-Identifier: MIT */
/* One target for each message: FUZZ_MESSAGE is its type, or else a replay is told "--message NAME". What decodes must encode
 * again and then decode to the same bytes; nothing may be touched beyond the input. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#ifndef FUZZ_MESSAGE
#define FUZZ_MESSAGE replayed
static uint16_t replayed;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *name = *argc > 2 && strcmp((*argv)[1], "--message") == 0 ? (*argv)[2] : "";
    const struct message_rule *rule = NULL;
    for (uint16_t type = 0; type < MESSAGE_TYPES && !rule; type++) {
        rule = message_rule(type);
        replayed = type;
        if (rule && strcasecmp(rule->name, name) != 0)
            rule = NULL;
    }
    ASSERT(rule != NULL); /* no such message */
    *argc -= 2;
    *argv += 2;
    return 0;
}
#endif

enum { UNIVERSE = 500, ROOM = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint64_t storage[4][8];
    static uint8_t one[ROOM], two[ROOM];
    struct nodeset sets[4];
    for (int i = 0; i < 4; i++)
        nodeset_init(&sets[i], UNIVERSE, storage[i]);
    union message m, again;
    if (message_decode(FUZZ_MESSAGE, bytes_of(data, size), sets, &m) < 0)
        return 0;
    long len = message_encode(FUZZ_MESSAGE, &m, room_of(one, sizeof one));
    ASSERT(len >= 0);
    ASSERT(message_decode(FUZZ_MESSAGE, bytes_of(one, (size_t)len), &sets[2], &again) == 0);
    ASSERT(message_encode(FUZZ_MESSAGE, &again, room_of(two, sizeof two)) == len);
    ASSERT(memcmp(one, two, (size_t)len) == 0);
    return 0;
}
