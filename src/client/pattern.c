/* SPDX-License-Identifier: MIT */
/* Names of output files: see pattern.h. */
#include "client/pattern.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

bool pattern_has(const char *pattern, char letter) {
    for (const char *at = pattern; (at = strchr(at, '%')) != NULL && at[1] != '\0'; at += 2)
        if (at[1] == letter)
            return true;
    return false;
}

const char *pattern_wrong(const char *pattern) {
    for (const char *at = pattern; (at = strchr(at, '%')) != NULL; at += 2)
        if (at[1] == '\0' || strchr("jrn%", at[1]) == NULL)
            return at;
    return NULL;
}

int pattern_expand(const char *pattern, const struct pattern_values *v, char *out, size_t cap) {
    struct text t;
    text_init(&t, out, cap);
    if (pattern_wrong(pattern) != NULL)
        return -EINVAL;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%') {
            text_char(&t, *at);
            continue;
        }
        at++;
        if (*at == 'j')
            text_u64(&t, v->job);
        else if (*at == 'r')
            text_u64(&t, v->rank);
        else if (*at == 'n')
            text_str(&t, v->node);
        else
            text_char(&t, '%');
    }
    return t.cut ? -ENAMETOOLONG : 0;
}
