/* SPDX-License-Identifier: MIT */
/* Fuzzes the readers of rows, all with the same bytes: each reads to the first flaw or to the
 * end, and what it has read encodes to the bytes that it came from. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The row that was read between two places, encoded again. */
static void check_same(struct bytes rows, size_t from, size_t to, struct room again, long len) {
    ASSERT(to > from && to <= rows.len);
    ASSERT(len == (long)(to - from) && memcmp(again.at, rows.at + from, to - from) == 0);
}

static void read_jobs(struct bytes rows, struct room again) {
    struct job_row r;
    size_t at = 0;
    for (size_t from = 0; job_row_next(rows, &at, &r) == 1; from = at)
        check_same(rows, from, at, again, job_row_encode(&r, again));
}

static void read_nodes(struct bytes rows, struct room again) {
    struct node_row r;
    size_t at = 0;
    for (size_t from = 0; node_row_next(rows, &at, &r) == 1; from = at)
        check_same(rows, from, at, again, node_row_encode(&r, again));
}

static void read_clusters(struct bytes rows, struct room again) {
    struct cluster_row r;
    size_t at = 0;
    for (size_t from = 0; cluster_row_next(rows, &at, &r) == 1; from = at)
        check_same(rows, from, at, again, cluster_row_encode(&r, again));
}

static void read_policies(struct bytes rows, struct room again) {
    struct policy_row r;
    size_t at = 0;
    for (size_t from = 0; policy_row_next(rows, &at, &r) == 1; from = at)
        check_same(rows, from, at, again, policy_row_encode(&r, again));
}

static void read_reservations(struct bytes rows, struct room again) {
    struct reservation_row r;
    size_t at = 0;
    for (size_t from = 0; reservation_row_next(rows, &at, &r) == 1; from = at)
        check_same(rows, from, at, again, reservation_row_encode(&r, again));
}

static void read_peers(struct bytes rows, struct room again) {
    struct peer_row r;
    size_t at = 0;
    for (size_t from = 0; peer_row_next(rows, &at, &r) == 1; from = at)
        check_same(rows, from, at, again, peer_row_encode(&r, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *again = malloc(size + 1);
    ASSERT(again != NULL);
    read_jobs(bytes_of(data, size), room_of(again, size));
    read_nodes(bytes_of(data, size), room_of(again, size));
    read_clusters(bytes_of(data, size), room_of(again, size));
    read_policies(bytes_of(data, size), room_of(again, size));
    read_peers(bytes_of(data, size), room_of(again, size));
    read_reservations(bytes_of(data, size), room_of(again, size));
    free(again);
    return 0;
}
