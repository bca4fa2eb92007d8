/* SPDX-License-Identifier: MIT */
/*
 * Views of bytes: comparing and cutting.
 *
 * Cutting is checked here once, so decoders above never compute with pointers.
 */
#include "base/bytes.h"

#include <errno.h>
#include <string.h>

struct bytes bytes_from_str(const char *text) {
    return bytes_of(text, strlen(text));
}

bool bytes_equal(struct bytes a, struct bytes b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

int bytes_sub(struct bytes whole, size_t from, size_t len, struct bytes *ret_part) {
    if (from > whole.len || len > whole.len - from)
        return -ERANGE;
    *ret_part = bytes_of(from ? whole.at + from : whole.at, len);
    return 0;
}

int room_sub(struct room whole, size_t from, size_t len, struct room *ret_part) {
    if (from > whole.len || len > whole.len - from)
        return -ERANGE;
    *ret_part = room_of(from ? whole.at + from : whole.at, len);
    return 0;
}
