/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the reader of host lists, then folds what it expands to.
 *
 * A refusal points into the text and gives a reason. An accepted list expands to as many names as
 * were counted, each a host list of one; the names folded and expanded again are the same names, in
 * some order.
 */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/hostlist.h"

#define TEXT_MAX  1024
#define NAMES_MAX 300
#define ROOM      (HOSTLIST_NAME_MAX + 1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char names[NAMES_MAX][ROOM];
static const char *pointers[NAMES_MAX];

/* Expands, keeping the first names; the sum of hashes does not depend on the order. */
static uint64_t expand(const char *text, uint32_t expected) {
    struct hostlist it;
    char name[ROOM];
    uint32_t count = 0;
    uint64_t sum = 0;
    ASSERT(hostlist_init(&it, text) == 0);
    while (hostlist_next(&it, name, sizeof name) == 1) {
        size_t len = strlen(name);
        sum += hash_once(name, len);
        if (count < NAMES_MAX) {
            memcpy(names[count], name, len + 1);
            pointers[count] = names[count];
        }
        count++;
    }
    ASSERT(count == expected);
    return sum;
}

static void check_each(const char *text, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        char nth[ROOM];
        uint32_t one = 0;
        ASSERT(hostlist_nth(text, i, nth, sizeof nth) == 0);
        ASSERT(strcmp(nth, names[i]) == 0);
        ASSERT(hostlist_check(nth, &one, NULL, NULL) == 0 && one == 1);
    }
}

static void check_fold(uint32_t count, uint64_t sum) {
    static uint64_t scratch[20000];
    static char folded[NAMES_MAX * ROOM + 1];
    size_t len = 0, need = hostlist_fold_bytes(pointers, count);
    ASSERT(need <= sizeof scratch);
    ASSERT(hostlist_fold(pointers, count, scratch, need, folded, sizeof folded, &len, NULL) == 0);
    ASSERT(len < sizeof folded && strlen(folded) == len);
    ASSERT(expand(folded, count) == sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > TEXT_MAX)
        return 0;
    char text[TEXT_MAX + 1];
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';

    uint32_t count = 0;
    size_t where = SIZE_MAX;
    const char *reason = NULL;
    if (hostlist_check(text, &count, &where, &reason) < 0) {
        ASSERT(where <= strlen(text) && reason && reason[0]);
        return 0;
    }
    if (count > NAMES_MAX)
        return 0;
    uint64_t sum = expand(text, count);
    check_each(text, count);
    check_fold(count, sum);
    return 0;
}
