/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: sizes of jobs. Text of any kind is refused with a reason, or read; what is read is
 * refused for a small cluster, or becomes a whole size that fits it and shares all processes out.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "sched/size.h"

enum { TEXT_MAX = 256, NODES = 64, PES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A refusal says why, in printable characters, and there was room for it. */
static void check_reason(const char *why) {
    size_t len = strlen(why);
    ASSERT(len > 0 && len < SIZE_WHY_MAX - 1);
    for (size_t i = 0; i < len; i++)
        ASSERT(why[i] >= ' ' && why[i] <= '~');
}

static void check_whole(const struct size *asked, const struct size *s) {
    ASSERT(size_is_whole(s));
    ASSERT(s->nodes <= NODES && s->ppn <= PES);
    ASSERT(asked->nodes == 0 || asked->nodes == s->nodes);
    ASSERT(asked->procs == 0 || asked->procs == s->procs);
    uint32_t next = 0;
    for (uint32_t k = 0; k < s->nodes; k++) {
        struct size_share at = size_share(s->nodes, s->procs, k);
        ASSERT(at.first == next && at.count >= 1 && at.count <= s->ppn);
        next += at.count;
    }
    ASSERT(next == s->procs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    char text[TEXT_MAX], why[SIZE_WHY_MAX] = "";
    struct size asked, s;
    if (len >= sizeof text)
        len = sizeof text - 1;
    memcpy(text, data, len);
    text[len] = '\0';
    int r = size_parse(text, &asked, why, sizeof why);
    if (r < 0) {
        ASSERT(r == -EINVAL || r == -ERANGE);
        check_reason(why);
        return 0;
    }
    s = asked;
    r = size_resolve(&s, NODES, PES, PES, why, sizeof why);
    if (r < 0) {
        ASSERT(r == -EINVAL || r == -E2BIG);
        check_reason(why);
        return 0;
    }
    check_whole(&asked, &s);
    return 0;
}
