/* SPDX-License-Identifier: MIT */
/* Jobs of a trace; see workload.h. */
#include "sim/workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIELDS = 18,
    SWF_JOB = 0,
    SWF_SUBMIT = 1,
    SWF_RUN = 3,
    SWF_ALLOCATED = 4,
    SWF_PES = 7,
    SWF_TIME = 8,
    SWF_STATUS = 10,
    SWF_USER = 11
};

#define VALUE_MAX ((int64_t)1 << 50) /* 35 million years of seconds */

struct value {
    int64_t whole; /* towards zero */
    bool positive; /* above zero, be it by a fraction */
};

void workload_init(struct workload *w) {
    *w = (struct workload){0};
}

void workload_fini(struct workload *w) {
    free(w->jobs);
    *w = (struct workload){0};
}

int workload_add(struct workload *w, const struct workload_job *j) {
    if (w->count == w->cap) {
        size_t cap = w->cap == 0 ? 1024 : 2 * w->cap;
        struct workload_job *jobs = reallocarray(w->jobs, cap, sizeof w->jobs[0]);
        if (jobs == NULL)
            return -ENOMEM;
        w->jobs = jobs;
        w->cap = cap;
    }
    w->unsorted = w->unsorted || (w->count > 0 && w->jobs[w->count - 1].submit > j->submit);
    w->jobs[w->count++] = *j;
    return 0;
}

/* ---- SWF ---- */

static bool is_space(uint8_t b) {
    return b == ' ' || b == '\t' || b == '\r' || b == '\v' || b == '\f';
}

static bool is_digit(uint8_t b) {
    return b >= '0' && b <= '9';
}

/* "-1", "12", "3.75"; nothing else. */
static bool parse_value(const uint8_t *at, const uint8_t *end, struct value *ret) {
    bool negative = at < end && *at == '-', digits = false, fraction = false;
    uint64_t whole = 0;
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    for (; at < end && is_digit(*at); at++, digits = true)
        if ((whole = whole * 10 + (uint64_t)(*at - '0')) > VALUE_MAX)
            return false;
    if (at < end && *at == '.')
        for (at++; at < end && is_digit(*at); at++, digits = true)
            fraction = fraction || *at != '0';
    *ret = (struct value){.whole = negative ? -(int64_t)whole : (int64_t)whole,
                          .positive = !negative && (whole > 0 || fraction)};
    return digits && at == end;
}

static int parse_fields(struct bytes line, struct value *v, char *why) {
    const uint8_t *at = line.at, *end = line.at + line.len;
    int count = 0;
    for (;;) {
        while (at < end && is_space(*at))
            at++;
        if (at == end)
            break;
        const uint8_t *from = at;
        while (at < end && !is_space(*at))
            at++;
        if (count < FIELDS && !parse_value(from, at, &v[count])) {
            int len = at - from > 24 ? 24 : (int)(at - from);
            snprintf(why, WORKLOAD_WHY_MAX, "field %d is not a number: \"%.*s\"", count + 1, len,
                     (const char *)from);
            for (char *p = why; *p; p++)
                if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
                    *p = '?';
            return -EINVAL;
        }
        count++;
    }
    if (count != 0 && count != FIELDS) {
        snprintf(why, WORKLOAD_WHY_MAX, "%d fields instead of %d", count, FIELDS);
        return -EINVAL;
    }
    return count;
}

static uint32_t size_of(const struct value *v) {
    return v->whole > UINT32_MAX ? UINT32_MAX : v->whole > 0 ? (uint32_t)v->whole : 0;
}

static uint64_t at_least_one(int64_t n) {
    return n > 1 ? (uint64_t)n : 1;
}

static struct workload_job job_of(struct workload *w, const struct value *v) {
    uint32_t allocated = size_of(&v[SWF_ALLOCATED]), requested = size_of(&v[SWF_PES]);
    struct workload_job j = {.id = (uint64_t)v[SWF_JOB].whole,
                             .submit = (uint64_t)v[SWF_SUBMIT].whole,
                             .run = 1,
                             .estimate = 1,
                             .pes = allocated > 0 ? allocated : 1,
                             .user = size_of(&v[SWF_USER]),
                             .status = (int32_t)size_of(&v[SWF_STATUS])};
    if (!v[SWF_RUN].positive || (allocated == 0 && requested == 0)) {
        w->never_ran++;
        return j;
    }
    j.pes = requested > 0 ? requested : allocated;
    j.run = j.estimate = at_least_one(v[SWF_RUN].whole);
    if (v[SWF_TIME].positive) {
        uint64_t asked = at_least_one(v[SWF_TIME].whole);
        j.cut = j.run > asked;
        w->cut += j.cut;
        j.estimate = j.cut ? j.run : asked;
        j.run = j.cut ? asked : j.run;
    }
    return j;
}

/* "; MaxProcs: 100", "; MaxNodes: 100": the first counts more. */
static void header(struct workload *w, struct bytes line) {
    static const char *const names[] = {"MaxNodes:", "MaxProcs:"};
    for (size_t i = 0; i < 2; i++) {
        const uint8_t *found = memmem(line.at, line.len, names[i], strlen(names[i]));
        if (found == NULL)
            continue;
        const uint8_t *at = found + strlen(names[i]), *end = line.at + line.len;
        uint64_t n = 0;
        while (at < end && is_space(*at))
            at++;
        for (; at < end && is_digit(*at) && n < UINT32_MAX; at++)
            n = n * 10 + (uint64_t)(*at - '0');
        if (n > 0 && n < UINT32_MAX && (i == 1 || w->pes == 0))
            w->pes = (uint32_t)n;
    }
}

int workload_line(struct workload *w, struct bytes line, char why[WORKLOAD_WHY_MAX]) {
    struct value v[FIELDS];
    w->lines++;
    size_t skip = 0;
    while (skip < line.len && is_space(line.at[skip]))
        skip++;
    if (skip < line.len && (line.at[skip] == ';' || line.at[skip] == '#')) {
        header(w, line);
        return 0;
    }
    int r = parse_fields(line, v, why);
    if (r == 0)
        return 0;
    if (r > 0 && (v[SWF_SUBMIT].whole < 0 || v[SWF_JOB].whole < 0)) {
        snprintf(why, WORKLOAD_WHY_MAX,
                 v[SWF_JOB].whole < 0 ? "the job has no number" : "no time of submission");
        r = -EINVAL;
    }
    if (r < 0) {
        w->malformed++;
        return r;
    }
    struct workload_job j = job_of(w, v);
    return workload_add(w, &j);
}

/* ---- order and size ---- */

/* A merge sort: the same order with every library, and equal ones stay as they came. */
static void merge(const struct workload_job *from, struct workload_job *to, size_t a, size_t mid,
                  size_t end) {
    for (size_t i = a, x = a, y = mid; i < end; i++)
        to[i] = y >= end || (x < mid && from[x].submit <= from[y].submit) ? from[x++] : from[y++];
}

int workload_sort(struct workload *w) {
    if (!w->unsorted)
        return 0;
    struct workload_job *other = reallocarray(NULL, w->cap, sizeof w->jobs[0]), *from = w->jobs;
    if (other == NULL)
        return -ENOMEM;
    struct workload_job *to = other;
    for (size_t width = 1; width < w->count; width *= 2) {
        for (size_t a = 0; a < w->count; a += 2 * width) {
            size_t mid = a + width < w->count ? a + width : w->count;
            size_t end = a + 2 * width < w->count ? a + 2 * width : w->count;
            merge(from, to, a, mid, end);
        }
        struct workload_job *swap = from;
        from = to;
        to = swap;
    }
    w->jobs = from;
    free(to);
    w->unsorted = false;
    return 0;
}

size_t workload_fit(struct workload *w, uint32_t pes) {
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        if (w->jobs[i].pes <= pes)
            continue;
        w->jobs[i].pes = pes;
        count++;
    }
    return count;
}
