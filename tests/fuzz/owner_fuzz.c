/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of what tells of a machine's owner: signs are within the text, and a mistake has its place there. */
#include <stdint.h>

#include "base/assert.h"
#include "wire/owner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct owner_watch w;
    struct mistake m;
    if (owner_read(bytes_of(data, size), &w, &m) < 0) {
        ASSERT(m.column <= size && m.length > 0);
        return 0;
    }
    ASSERT(w.count > 0 && w.count <= OWNER_SIGNS_MAX);
    for (uint32_t i = 0; i < w.count; i++) {
        const struct owner_sign *s = &w.signs[i];
        ASSERT(s->quiet_ns > 0);
        ASSERT(s->kind != OWNER_PATH || (s->path.at >= data && s->path.len <= size));
        ASSERT(s->kind != OWNER_LOAD || s->load_x100 > 0);
    }
    return 0;
}
