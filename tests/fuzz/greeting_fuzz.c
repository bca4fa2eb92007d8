/* SPDX-License-Identifier: MIT */
/* What comes from a remote shell before its helper is there. However it is cut, it ends in the same greeting. */
#include <string.h>

#include "base/assert.h"
#include "spread/greeting.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char processor[GREETING_PROCESSOR_MAX] = "", early[GREETING_PROCESSOR_MAX] = "";
    size_t used = 0, sooner = 0;
    enum greeting g = greeting_read(bytes_of(data, size), &used, processor);
    ASSERT(used <= size);
    if (g != GREETING_NEED && g != GREETING_READY)
        return 0;
    ASSERT(used > 0 && data[used - 1] == '\n');
    ASSERT(memchr(processor, '\0', sizeof processor) != NULL);
    ASSERT(greeting_read(bytes_of(data, used), &sooner, early) == g && sooner == used);
    ASSERT(strcmp(early, processor) == 0);
    enum greeting before = greeting_read(bytes_of(data, used - 1), &sooner, early);
    ASSERT(before == GREETING_MORE || before == GREETING_NONE);
    return 0;
}
