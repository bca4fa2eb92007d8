/* SPDX-License-Identifier: MIT */
/* When a job may start: see when.h. */
#include "cli/when.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/complain.h"
#include "cli/options.h"

enum { FIRST_YEAR = 1900, MONTHS = 12, DAYS_MAX = 31, HOURS = 24, SIXTY = 60 };

uint64_t when_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- reading ---- */

/* So many digits, or fewer if `least` is; moves on. */
static bool read_number(const char **at, int least, int most, int *ret) {
    int n = 0, value = 0;
    for (; n < most && text_is_digit((*at)[n]); n++)
        value = 10 * value + ((*at)[n] - '0');
    *at += n;
    *ret = value;
    return n >= least;
}

static bool read_clock(const char **at, struct tm *t) {
    t->tm_sec = 0;
    if (!read_number(at, 1, 2, &t->tm_hour) || *(*at)++ != ':' ||
        !read_number(at, 2, 2, &t->tm_min))
        return false;
    if (**at == ':') {
        (*at)++;
        if (!read_number(at, 2, 2, &t->tm_sec))
            return false;
    }
    return t->tm_hour < HOURS && t->tm_min < SIXTY && t->tm_sec < SIXTY;
}

static bool read_date(const char **at, struct tm *t) {
    if (!read_number(at, 4, 4, &t->tm_year) || *(*at)++ != '-' ||
        !read_number(at, 2, 2, &t->tm_mon) || *(*at)++ != '-' ||
        !read_number(at, 2, 2, &t->tm_mday))
        return false;
    bool good = t->tm_year >= FIRST_YEAR && t->tm_mon >= 1 && t->tm_mon <= MONTHS &&
                t->tm_mday >= 1 && t->tm_mday <= DAYS_MAX;
    t->tm_year -= FIRST_YEAR;
    t->tm_mon--;
    return good;
}

static struct tm local(uint64_t ns) {
    time_t seconds = (time_t)(ns / NS_PER_S);
    struct tm t;
    localtime_r(&seconds, &t);
    return t;
}

static int finish(struct tm t, uint64_t *ret_ns) {
    t.tm_isdst = -1;
    int day = t.tm_mday;
    time_t seconds = mktime(&t);
    if (seconds < 0 || (t.tm_mday != day && day > 28)) /* there is no 31st of that month */
        return -EINVAL;
    *ret_ns = (uint64_t)seconds * NS_PER_S;
    return 0;
}

/* A time of the day: the next one. */
static int finish_clock(struct tm t, uint64_t now_ns, uint64_t *ret_ns) {
    struct tm next = t;
    int r = finish(t, ret_ns);
    if (r < 0 || *ret_ns > now_ns)
        return r;
    next.tm_mday++;
    next.tm_isdst = -1;
    *ret_ns = (uint64_t)mktime(&next) * NS_PER_S;
    return 0;
}

static int parse_calendar(const char *text, uint64_t now_ns, uint64_t *ret_ns) {
    struct tm t = local(now_ns);
    bool dated = strlen(text) >= 10 && text[4] == '-';
    t.tm_hour = t.tm_min = t.tm_sec = 0;
    if (dated && !read_date(&text, &t))
        return -EINVAL;
    if (dated && (*text == 'T' || *text == ' '))
        text++;
    else if (dated)
        return *text == '\0' ? finish(t, ret_ns) : -EINVAL;
    if (!read_clock(&text, &t) || *text != '\0')
        return -EINVAL;
    return dated ? finish(t, ret_ns) : finish_clock(t, now_ns, ret_ns);
}

/* "noon" and the like; -ENOENT: another text. */
static int parse_word(const char *text, uint64_t now_ns, uint64_t *ret_ns) {
    struct tm t = local(now_ns);
    t.tm_hour = t.tm_min = t.tm_sec = 0;
    if (strcmp(text, "noon") == 0)
        t.tm_hour = HOURS / 2;
    else if (strcmp(text, "midnight") != 0 && strcmp(text, "tomorrow") != 0)
        return -ENOENT;
    return finish_clock(t, now_ns, ret_ns);
}

static int parse_day(const char *text, uint64_t now_ns, uint64_t *ret_ns) {
    int r = parse_word(text, now_ns, ret_ns);
    return r == -ENOENT ? parse_calendar(text, now_ns, ret_ns) : r;
}

static int parse_seconds(const char *text, uint64_t *ret_ns) {
    uint64_t seconds;
    if (!options_number(text, &seconds) || seconds >= UINT64_MAX / NS_PER_S)
        return -EINVAL;
    *ret_ns = seconds * NS_PER_S;
    return 0;
}

int when_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns) {
    uint64_t more;
    *ret_ns = now_ns;
    if (strncmp(text, "now", 3) == 0)
        text += 3;
    else if (*text == '@')
        return parse_seconds(text + 1, ret_ns);
    else if (*text != '+')
        return parse_day(text, now_ns, ret_ns);
    if (*text == '\0')
        return 0;
    if (*text != '+' || units_parse_duration(text + 1, &more) < 0 || more > UINT64_MAX - now_ns)
        return -EINVAL;
    *ret_ns = now_ns + more;
    return 0;
}

int when_option(const char *option, const char *text, uint64_t *ret_ns) {
    if (text == NULL || when_parse(text, when_now(), ret_ns) == 0)
        return 0;
    return complain(option,
                    "\"%s\" is no time; for example 14:05, 2026-11-17T08:00, tomorrow, +90m", text);
}

int when_begin(const char *text, uint64_t *ret_ns) {
    return when_option("--begin", text, ret_ns);
}

int when_after(const char *option, const char *text, enum await_kind kind,
               uint8_t out[AWAITS_MAX * AWAIT_BYTES], size_t *len) {
    while (text != NULL) {
        uint64_t job = 0;
        int n = text_scan_u64(text, &job);
        if (n <= 0 || job == 0 || job > UINT32_MAX || (text[n] != '\0' && text[n] != ','))
            return complain(option, "\"%s\" is no list of jobs; for example %s 12,13", text,
                            option);
        if (*len == AWAITS_MAX * AWAIT_BYTES)
            return complain(option, "a job can wait for %d others at most", AWAITS_MAX);
        out[*len] = (uint8_t)kind;
        store_le32(out + *len + 1, (uint32_t)job);
        *len += AWAIT_BYTES;
        text = text[n] == ',' ? text + n + 1 : NULL;
    }
    return 0;
}

/* ---- words ---- */

static size_t write_time(uint64_t seconds, uint64_t now_ns, char *out, size_t cap) {
    struct tm t = local(seconds * NS_PER_S), today = local(now_ns);
    bool same = t.tm_year == today.tm_year && t.tm_yday == today.tm_yday;
    return strftime(out, cap, same ? "%H:%M" : "%Y-%m-%d %H:%M", &t);
}

struct when_text when_text(uint64_t at_ns, uint64_t now_ns) {
    struct when_text t = {""};
    write_time(at_ns / NS_PER_S, now_ns, t.text, sizeof t.text);
    return t;
}

const char *when_words(struct bytes text, uint64_t now_ns, char out[WHEN_WORDS_MAX]) {
    char in[WHEN_WORDS_MAX];
    size_t len = 0;
    snprintf(in, sizeof in, "%.*s", (int)text.len, (const char *)text.at);
    for (const char *at = in; *at != '\0' && len < WHEN_WORDS_MAX - 1;) {
        uint64_t seconds;
        int n = *at == '@' ? text_scan_u64(at + 1, &seconds) : 0;
        if (n > 0 && seconds < UINT64_MAX / NS_PER_S) {
            len += write_time(seconds, now_ns, out + len, WHEN_WORDS_MAX - len);
            at += n + 1;
        } else {
            out[len++] = *at++;
        }
    }
    out[len] = '\0';
    return out;
}
