/* SPDX-License-Identifier: MIT */
/* Jobs of the past: see past.h. */
#include "manager/past.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "mm/chronicle.h"
#include "os/journal.h"
#include "os/plan.h"

enum { JOBS_MAX = 1 << 18, ROW_MAX = 8 * KIB, TEXT_MAX = 64 * MIB };

static void on_row(void *context, const struct job_row *row) {
    uint8_t bytes[ROW_MAX];
    (void)context;
    long len = job_row_encode(row, room_of(bytes, sizeof bytes));
    if (len > 0)
        fwrite(bytes, 1, (size_t)len, stdout);
}

static bool on_event(void *context, uint64_t key, struct bytes body) {
    if (key >= HISTORY_KEY_END)
        return false;
    return chronicle_feed(context, key, body);
}

static struct chronicle *make(uint32_t from, uint32_t to) {
    struct chronicle_config c = {.nodes_max = PLAN_NODES_MAX + 1,
                                 .jobs_max = JOBS_MAX,
                                 .text_max = TEXT_MAX,
                                 .prefix = "n",
                                 .from = from,
                                 .to = to,
                                 .row = on_row};
    struct arena a;
    size_t bytes = chronicle_bytes(&c);
    void *at = calloc(1, bytes); /* what is not used is not touched */
    if (at == NULL)
        return NULL;
    arena_init(&a, at, bytes);
    return chronicle_new(&c, &a);
}

static int fail(int error) {
    fprintf(stderr, "storm-mm: state.db: %s\n", strerror(-error));
    return 1;
}

/* What was submitted last has the highest number. */
static int find_last(const char *folder, uint32_t *ret) {
    struct chronicle *h = make(UINT32_MAX, 0);
    int r = h == NULL ? -ENOMEM : journal_history(folder, HISTORY_KEY_END - 1, on_event, h);
    *ret = r < 0 ? 0 : chronicle_last(h);
    free(h);
    return r;
}

int past_print(const char *folder, unsigned most, unsigned only) {
    uint32_t last = 0;
    uint8_t total[4];
    int r = find_last(folder, &last);
    if (r < 0)
        return fail(r);
    uint32_t from = most == 0 || most >= last ? 1 : last - most + 1;
    from = only != 0 ? only : from;
    struct chronicle *h = make(from, only);
    if (h == NULL)
        return fail(-ENOMEM);
    store_le32(total, last);
    fwrite(total, 1, sizeof total, stdout);
    r = last == 0 ? 0 : journal_history(folder, from, on_event, h);
    chronicle_end(h);
    free(h);
    if (r < 0)
        return fail(r);
    return fflush(stdout) == 0 ? 0 : 1;
}
