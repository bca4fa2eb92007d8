/* SPDX-License-Identifier: MIT */
/* Edit distance between short names: see nearest.h. */
#include "base/nearest.h"

#include <string.h>

#include "base/text.h"

enum { NAME_MAX_LEN = 32 };

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static bool same(char a, char b) {
    return text_lower(a) == text_lower(b);
}

/* Row by row; row[i] holds the distances of the first i letters of `a` to every start of `b`. */
uint32_t nearest_distance(const char *a, const char *b) {
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    if (a_len > NAME_MAX_LEN || b_len > NAME_MAX_LEN)
        return NAME_MAX_LEN;
    uint32_t row[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
    for (uint32_t i = 0; i <= a_len; i++) {
        for (uint32_t j = 0; j <= b_len; j++) {
            if (i == 0 || j == 0) {
                row[i][j] = i + j;
                continue;
            }
            uint32_t change = row[i - 1][j - 1] + !same(a[i - 1], b[j - 1]);
            row[i][j] = least(change, least(row[i - 1][j], row[i][j - 1]) + 1);
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[i][j] = least(row[i][j], row[i - 2][j - 2] + 1);
        }
    }
    return row[a_len][b_len];
}

const char *nearest_name(const char *typed, const char *const *names, uint32_t count) {
    const char *best = NULL;
    if (strlen(typed) > NAME_MAX_LEN)
        return NULL; /* distances of such are not reckoned */
    uint32_t best_distance = (uint32_t)strlen(typed) / 2 + 1; /* more is another word */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t distance = nearest_distance(typed, names[i]);
        if (distance < best_distance) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}
