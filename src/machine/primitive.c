/* SPDX-License-Identifier: MIT */
/* Relations and names of the primitives.
 *
 * Values are unsigned 64-bit words; counters that wrap are the caller's business. */
#include "machine/primitive.h"

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
