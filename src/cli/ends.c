/* SPDX-License-Identifier: MIT */
/* Ends of jobs: see ends.h. Only this key is looked for, so no reader of JSON is needed: in a string a
 * quote has a backslash before it, so no name can pass for the key. */
#include "cli/ends.h"

#include <string.h>

#include "base/text.h"
#include "base/units.h"

/* "12.5": nanoseconds; digits beyond the ninth are dropped. */
static bool read_seconds(const char *at, uint64_t *ret_ns) {
    uint64_t whole, part = 0;
    int n = text_scan_u64(at, &whole);
    if (n <= 0 || whole > UINT64_MAX / NS_PER_S - 1)
        return false;
    at += n;
    uint64_t unit = NS_PER_S;
    if (*at == '.')
        for (at++; text_is_digit(*at) && unit > 1; at++) {
            unit /= 10;
            part += unit * (uint64_t)(*at - '0');
        }
    *ret_ns = whole * NS_PER_S + part;
    return true;
}

size_t ends_scan(const char *json, uint64_t *ret_ns, size_t cap) {
    static const char key[] = "\"end_time\"";
    size_t count = 0;
    for (const char *at = strstr(json, key); at != NULL; at = strstr(at, key)) {
        uint64_t ns;
        at += sizeof key - 1;
        at += strspn(at, " \t\n");
        if (*at != ':')
            continue;
        at++;
        at += strspn(at, " \t\n");
        if (!read_seconds(at, &ns) || ns == 0)
            continue;
        if (count < cap)
            ret_ns[count] = ns;
        count++;
    }
    return count;
}

uint64_t ends_rate_x1000(const uint64_t *sorted_ns, size_t count) {
    if (count < 2)
        return 0;
    uint64_t span = sorted_ns[count - 1] - sorted_ns[0];
    return span == 0 ? 0 : (count - 1) * NS_PER_S / (span / 1000 + 1);
}
