/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of the loader's table of libraries: what it finds is a text inside the file. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/ldcache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct bytes file, bool big) {
    static const uint32_t marks[] = {3, 0x0303, 0x0a03};
    struct ldcache c;
    if (ldcache_read(&c, file, big) < 0)
        return;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *path = ldcache_find(&c, "liba.so.1", marks[i], "x86-64-v3:x86-64-v2");
        if (path == NULL)
            continue;
        const uint8_t *at = (const uint8_t *)path;
        ASSERT(at >= file.at && at + strlen(path) < file.at + file.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(bytes_of(data, size), false);
    check(bytes_of(data, size), true);
    return 0;
}
