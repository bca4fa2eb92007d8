/* SPDX-License-Identifier: MIT */
/* A workload file of our own; see jobfile.h. */
#include "sim/jobfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/words.h"

enum { LINE_MAX_BYTES = 1 << 16, SHOWN = 24 };

/* Later arrivals could not be told from never. */
#define ARRIVAL_MAX ((uint64_t)1 << 62)

void jobfile_init(struct jobfile *r) {
    *r = (struct jobfile){0};
}

void jobfile_fini(struct jobfile *r) {
    free(r->jobs);
    free(r->text);
    *r = (struct jobfile){0};
}

static bool is_blank(uint8_t b) {
    return b == ' ' || b == '\t' || b == '\r' || b == '\v' || b == '\f';
}

static bool is_digit(uint8_t b) {
    return b >= '0' && b <= '9';
}

static struct bytes trimmed(struct bytes line) {
    while (line.len > 0 && is_blank(line.at[0]))
        line = bytes_of(line.at + 1, line.len - 1);
    while (line.len > 0 && is_blank(line.at[line.len - 1]))
        line.len--;
    return line;
}

int jobfile_tells_trace(struct bytes line) {
    line = trimmed(line);
    if (line.len == 0 || line.at[0] == '#')
        return -EAGAIN;
    if (line.at[0] == ';')
        return 1;
    while (line.len > 0 && !is_blank(line.at[0]))
        line = bytes_of(line.at + 1, line.len - 1);
    line = trimmed(line);
    return line.len > 0 &&
           (is_digit(line.at[0]) || (line.len > 1 && line.at[0] == '-' && is_digit(line.at[1])));
}

/* ---- a line ---- */

static int refuse(char *why, const char *words, const char *what) {
    snprintf(why, JOBFILE_WHY_MAX, words, SHOWN, what);
    for (char *p = why; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = '?';
    return -EINVAL;
}

static int parse_arrival(const struct jobfile *r, const char *text, uint64_t *ret, char *why) {
    bool later = text[0] == '+';
    if (units_parse_duration(text + later, ret) < 0 || *ret > ARRIVAL_MAX)
        return refuse(why, "\"%.*s\" is no time; for example 90, 1:30, 2.5s or +10", text);
    *ret += later ? r->last_ns : 0;
    return *ret > ARRIVAL_MAX ? refuse(why, "%.*s: that is too late", text) : 0;
}

static int reserve(struct jobfile *r, size_t text) {
    if (r->count == r->cap) {
        size_t cap = r->cap == 0 ? 256 : 2 * r->cap;
        struct jobfile_job *jobs = reallocarray(r->jobs, cap, sizeof r->jobs[0]);
        if (jobs == NULL)
            return -ENOMEM;
        r->jobs = jobs;
        r->cap = cap;
    }
    if (r->text_len + text > r->text_cap) {
        size_t cap = 2 * r->text_cap + text + 4096;
        char *more = realloc(r->text, cap);
        if (more == NULL)
            return -ENOMEM;
        r->text = more;
        r->text_cap = cap;
    }
    return 0;
}

static int keep(struct jobfile *r, uint64_t arrival_ns, char *const *words, uint32_t count) {
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++)
        len += strlen(words[i]) + 1;
    if (reserve(r, len) < 0)
        return -ENOMEM;
    r->jobs[r->count++] = (struct jobfile_job){
        .line = r->lines, .arrival_ns = arrival_ns, .text = r->text_len, .words = count};
    for (uint32_t i = 0; i < count; i++) {
        size_t n = strlen(words[i]) + 1;
        memcpy(r->text + r->text_len, words[i], n);
        r->text_len += n;
    }
    r->last_ns = arrival_ns;
    return 0;
}

static int take(struct jobfile *r, char *line, char **words, char *why) {
    uint64_t arrival_ns;
    int count = words_split(line, words, JOBFILE_WORDS_MAX);
    if (count == -EINVAL)
        return refuse(why, "a quote is not closed%.*s", "");
    if (count < 0)
        return refuse(why, "too many words%.*s", "");
    int e = parse_arrival(r, words[0], &arrival_ns, why);
    if (e < 0)
        return e;
    if (count == 1)
        return refuse(why, "submit what? behind the time %.*s there is nothing", words[0]);
    return keep(r, arrival_ns, words + 1, (uint32_t)count - 1);
}

int jobfile_line(struct jobfile *r, struct bytes line, char why[JOBFILE_WHY_MAX]) {
    r->lines++;
    line = trimmed(line);
    if (line.len == 0 || line.at[0] == '#')
        return 0;
    if (line.len >= LINE_MAX_BYTES)
        return refuse(why, "too long for a job%.*s", "");
    if (memchr(line.at, '\0', line.len) != NULL)
        return refuse(why, "a NUL is in it%.*s", "");
    char *text = malloc(line.len + 1);
    char **words = reallocarray(NULL, JOBFILE_WORDS_MAX + 1, sizeof *words);
    int e = -ENOMEM;
    if (text != NULL && words != NULL) {
        memcpy(text, line.at, line.len);
        text[line.len] = '\0';
        e = take(r, text, words, why);
    }
    free(text);
    free(words);
    return e;
}

/* ---- all of them ---- */

/* No two are equal: a line has one job. */
static int earlier(const void *a, const void *b) {
    const struct jobfile_job *x = a, *y = b;
    if (x->arrival_ns != y->arrival_ns)
        return x->arrival_ns < y->arrival_ns ? -1 : 1;
    return x->line < y->line ? -1 : 1;
}

void jobfile_sort(struct jobfile *r) {
    if (r->count > 0)
        qsort(r->jobs, r->count, sizeof r->jobs[0], earlier);
}

void jobfile_words(const struct jobfile *r, size_t job, char **out) {
    char *at = r->text + r->jobs[job].text;
    for (uint32_t i = 0; i < r->jobs[job].words; i++) {
        out[i] = at;
        at += strlen(at) + 1;
    }
    out[r->jobs[job].words] = NULL;
}
