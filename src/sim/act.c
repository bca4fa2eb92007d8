/* SPDX-License-Identifier: MIT */
/* The little language of test processes: see act.h. */
#include "sim/act.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "wire/spec.h"

enum takes { TAKES_NOTHING, TAKES_NUMBER, TAKES_TIME };

static const struct {
    const char *name;
    enum takes takes;
} table[ACT_KINDS] = {
    [ACT_RUN] = {"run", TAKES_TIME},
    [ACT_HANG] = {"hang", TAKES_NOTHING},
    [ACT_WRITE] = {"write", TAKES_NUMBER},
    [ACT_ERROR] = {"error", TAKES_NUMBER},
    [ACT_READ] = {"read", TAKES_NUMBER},
    [ACT_CAT] = {"cat", TAKES_NOTHING},
    [ACT_EXIT] = {"exit", TAKES_NUMBER},
    [ACT_SIGNAL] = {"signal", TAKES_NUMBER},
    [ACT_IGNORE_TERM] = {"ignore-term", TAKES_NOTHING},
    [ACT_CATCH_TERM] = {"catch-term", TAKES_NUMBER},
    [ACT_RANK] = {"rank", TAKES_NUMBER},
    [ACT_FORK] = {"fork", TAKES_NOTHING},
    [ACT_FORK_AWAY] = {"fork-away", TAKES_NOTHING},
};

static int parse_number(const char *text, uint64_t *ret) {
    *ret = 0;
    if (text == NULL || *text == '\0')
        return -EINVAL;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9' || *ret > UINT64_MAX / 100)
            return -EINVAL;
        *ret = *ret * 10 + (uint64_t)(*text - '0');
    }
    return 0;
}

static int parse_time(const char *text, struct act *ret) {
    char low[32];
    const char *dash = text == NULL ? NULL : strchr(text, '-');
    if (text == NULL)
        return -EINVAL;
    size_t len = dash == NULL ? strlen(text) : (size_t)(dash - text);
    if (len >= sizeof low)
        return -EINVAL;
    memcpy(low, text, len);
    low[len] = '\0';
    int r = units_parse_duration(low, &ret->low);
    ret->high = ret->low;
    if (r == 0 && dash != NULL)
        r = units_parse_duration(dash + 1, &ret->high);
    return r < 0 || ret->high < ret->low ? -EINVAL : 0;
}

int act_next(struct bytes words, size_t *at, struct act *ret) {
    const char *word = strings_next(words, at);
    *ret = (struct act){0};
    if (word == NULL)
        return 0;
    for (int kind = 0; kind < ACT_KINDS; kind++) {
        if (strcmp(word, table[kind].name) != 0)
            continue;
        int r = 0;
        ret->kind = (enum act_kind)kind;
        if (table[kind].takes == TAKES_NUMBER)
            r = parse_number(strings_next(words, at), &ret->number);
        else if (table[kind].takes == TAKES_TIME)
            r = parse_time(strings_next(words, at), ret);
        return r < 0 ? r : 1;
    }
    return -EINVAL;
}
