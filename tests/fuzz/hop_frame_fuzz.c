/* SPDX-License-Identifier: MIT */
/* A stream between hops of a tree of remote shells, up or down as the first byte says: frames, and the bodies of those
 * that have a form. What is accepted comes out the same when it is written again. */
#include <string.h>

#include "base/assert.h"
#include "spread/frame.h"
#include "spread/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_task(struct bytes body) {
    static uint8_t again[FRAME_BODY_MAX];
    struct task t;
    if (task_read(body, &t) < 0)
        return;
    ASSERT(t.self < t.hop.hosts && t.hop.children <= t.hop.hosts);
    ASSERT(t.put_count <= TASK_FILES_MAX && t.get_count <= TASK_FILES_MAX);
    long n = task_write(&t, room_of(again, sizeof again));
    ASSERT(n == (long)body.len && memcmp(again, body.at, body.len) == 0);
}

static void look_at_hosts(struct bytes body) {
    uint8_t again[300];
    struct task_host h;
    struct bytes left = body;
    while (task_host_read(&left, &h) > 0) {
        ASSERT(h.name.len > 0 && h.name.len <= UINT8_MAX);
        long n = task_host_write(&h, room_of(again, sizeof again));
        ASSERT(n == (long)(body.len - left.len) && memcmp(again, body.at, (size_t)n) == 0);
        body = left;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bool up = size > 0 && data[0] % 2 == 1;
    struct bytes in = bytes_of(data + (size > 0), size - (size > 0));
    struct frame f;
    for (long n; (n = frame_read(in, up, &f)) > 0; in = bytes_of(in.at + n, in.len - (size_t)n)) {
        uint8_t head[FRAME_HEAD];
        ASSERT((size_t)n <= in.len && f.body.len <= FRAME_BODY_MAX);
        frame_head(&f, head);
        ASSERT(memcmp(head, in.at, FRAME_HEAD) == 0);
        if (f.kind == FRAME_TASK)
            look_at_task(f.body);
        if (f.kind == FRAME_HOSTS)
            look_at_hosts(f.body);
    }
    return 0;
}
