/* SPDX-License-Identifier: MIT */
/* Relations and names of the primitives, and gathered records as bytes.
 *
 * Values are unsigned 64-bit words; counters that wrap are the caller's business. */
#include "machine/primitive.h"

#include <string.h>

#include "base/assert.h"

bool relation_holds(enum relation relation, uint64_t left, uint64_t right) {
    switch (relation) {
    case RELATION_GE:
        return left >= right;
    case RELATION_LT:
        return left < right;
    case RELATION_EQ:
        return left == right;
    case RELATION_NE:
        return left != right;
    case RELATIONS:
        break;
    }
    assert_failed("a relation", __FILE__, __LINE__);
}

const char *outcome_name(enum outcome outcome) {
    static const char *const names[OUTCOMES] = {
        [OUTCOME_DONE] = "done",       [OUTCOME_FALSE] = "false",     [OUTCOME_FAILED] = "failed",
        [OUTCOME_REFUSED] = "refused", [OUTCOME_UNKNOWN] = "unknown", [OUTCOME_LOST] = "lost",
    };
    return outcome < OUTCOMES ? names[outcome] : "?";
}

size_t reply_store(struct room out, const struct reply *r) {
    size_t len = REPLY_HEAD_BYTES + r->record.len;
    ASSERT(r->record.len <= UINT16_MAX && len <= out.len);
    store_le32(out.at, r->node);
    store_le16(out.at + 4, (uint16_t)r->record.len);
    if (r->record.len > 0)
        memcpy(out.at + REPLY_HEAD_BYTES, r->record.at, r->record.len);
    return len;
}

bool reply_next(struct bytes replies, size_t *at, struct reply *ret) {
    size_t left = replies.len - *at;
    if (left < REPLY_HEAD_BYTES)
        return false;
    const uint8_t *head = replies.at + *at;
    size_t len = load_le16(head + 4);
    if (len > left - REPLY_HEAD_BYTES)
        return false;
    *ret = (struct reply){load_le32(head), bytes_of(head + REPLY_HEAD_BYTES, len)};
    *at += REPLY_HEAD_BYTES + len;
    return true;
}
