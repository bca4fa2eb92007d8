/* SPDX-License-Identifier: MIT */
/* Processes of a run: whatever the order in which nodes speak, and however often. */
#include "cli/pids.h"

#include "tap.h"

static struct message_pids said(uint64_t run, const char *node, uint8_t *rows, size_t len) {
    return (struct message_pids){.run = run,
                                 .node = bytes_from_str(node),
                                 .host = bytes_from_str("h"),
                                 .rows = bytes_of(rows, len)};
}

static size_t row(uint8_t *out, uint32_t rank, uint32_t pid) {
    store_le32(out, rank);
    store_le32(out + 4, pid);
    return PIDS_ROW_BYTES;
}

static void test_gathering(void) {
    struct pids p = {0};
    uint8_t rows[32];
    CHECK(!pids_complete(&p));
    pids_begin(&p, 77, 3);
    size_t len = row(rows, 1, 101);
    len += row(rows + len, 2, 102);
    struct message_pids m = said(77, "n1", rows, len);
    CHECK(!pids_take(&p, &m));
    CHECK(!pids_take(&p, &m)); /* again */
    CHECK_EQ(p.known, 2);
    CHECK_EQ(p.text_count, 2);
    len = row(rows, 0, 100);
    len += row(rows + len, 9, 109); /* there is none */
    m = said(76, "n0", rows, len);  /* of another run */
    CHECK(!pids_take(&p, &m));
    m.run = 77;
    CHECK(pids_take(&p, &m));
    CHECK(pids_complete(&p));
    CHECK(!pids_take(&p, &m)); /* that is told once */
    CHECK_EQ(p.rows[2].pid, 102);
    CHECK_STR(p.rows[2].node, "n1");
    CHECK_STR(p.rows[0].node, "n0");
    CHECK_STR(p.rows[0].host, "h");
    pids_fini(&p);
    CHECK(!pids_complete(&p));
}

/* The number of one that has ended is nobody's, or another's. */
static void test_ended(void) {
    struct pids p = {0};
    uint8_t rows[32];
    pids_begin(&p, 77, 3);
    size_t len = row(rows, 0, 100);
    len += row(rows + len, 1, 0);
    struct message_pids m = said(77, "n1", rows, len);
    CHECK(!pids_take(&p, &m));
    CHECK_EQ(p.known, 2);
    CHECK_EQ(pids_running(&p), 1);
    len = row(rows, 0, 0);
    len += row(rows + len, 2, 102);
    m = said(77, "n1", rows, len);
    CHECK(pids_take(&p, &m));
    CHECK_EQ(p.rows[0].pid, 0);
    CHECK_EQ(p.rows[1].pid, 0);
    CHECK_STR(p.rows[1].node, "n1");
    CHECK_EQ(pids_running(&p), 1);
    pids_fini(&p);
}

int main(void) {
    TEST(test_gathering);
    TEST(test_ended);
    return tap_finish();
}
