/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: attributes as bytes. Whatever the administrator's bytes are: they are refused and he has said nothing, or
 * taken and every node can be shown. The same for a node's report.
 */
#include <stdalign.h>
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "sched/traits.h"

enum { NODES = 40, ATTRIBUTES = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void show(const struct traits *t) {
    static char text[8192];
    for (uint32_t n = 0; n < NODES; n++) {
        size_t len = traits_format(t, n, text, sizeof text);
        ASSERT(len < sizeof text);
        for (size_t i = 0; i < len; i++)
            ASSERT(text[i] >= ' ' && text[i] <= '~');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static alignas(8) uint8_t storage[64 * 1024];
    struct traits t;
    struct traits_report report;
    ASSERT(traits_bytes(NODES, ATTRIBUTES) <= sizeof storage);
    traits_init(&t, NODES, ATTRIBUTES, storage);
    if (len == 0)
        return 0;
    if (data[0] % 2 == 0) {
        int r = traits_take(&t, bytes_of(data + 1, len - 1));
        ASSERT(r == 0 || r == -EBADMSG || r == -ENOBUFS);
        ASSERT(r == 0 || t.count == TRAITS_BUILT_IN);
    } else {
        int r = traits_report_decode(bytes_of(data + 1, len - 1), &report);
        ASSERT(r == 0 || r == -EBADMSG);
        for (uint32_t n = 0; r == 0 && n < NODES; n++)
            traits_hear(&t, n, &report);
    }
    show(&t);
    return 0;
}
