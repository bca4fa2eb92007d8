/* SPDX-License-Identifier: MIT */
/* Where the command lines of storm work come from: see supply.h. */
#include "cli/supply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/complain.h"

enum { PIECE = 1 << 16 };

/* ---- a stream ---- */

static int make_room(struct supply *s) {
    if (s->from > 0) {
        memmove(s->buffer, s->buffer + s->from, s->len - s->from);
        s->len -= s->from;
        s->from = 0;
    }
    if (s->cap - s->len > PIECE)
        return 0;
    size_t cap = 2 * s->cap + 2 * PIECE;
    char *buffer = realloc(s->buffer, cap);
    if (buffer == NULL)
        return -ENOMEM;
    s->buffer = buffer;
    s->cap = cap;
    return 0;
}

int supply_read(struct supply *s) {
    int r = make_room(s);
    if (r < 0 || s->ended)
        return r;
    ssize_t n = read(s->fd, s->buffer + s->len, PIECE);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    s->len += (size_t)n;
    s->ended = n == 0;
    return 0;
}

/* The next item of the buffer; false: it is not whole yet. */
static bool cut(struct supply *s, struct bytes *ret) {
    size_t left = s->len - s->from;
    char *from = left > 0 ? s->buffer + s->from : NULL;
    const char *end = left > 0 ? memchr(from, s->separator, left) : NULL;
    if (end == NULL && (!s->ended || left == 0))
        return false;
    size_t len = end != NULL ? (size_t)(end - from) : left;
    *ret = bytes_of(from, len);
    s->from += len + (end != NULL);
    return true;
}

/* ---- lists ---- */

static int slurp(const char *path, char **ret, size_t *ret_len) {
    struct supply s = {.fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO)
                                                    : open(path, O_RDONLY | O_CLOEXEC)};
    int r = s.fd < 0 ? -errno : 0;
    while (r == 0 && !s.ended)
        r = supply_read(&s);
    if (s.fd >= 0)
        close(s.fd);
    *ret = s.buffer;
    *ret_len = s.len;
    return r;
}

static int add(struct supply_list *l, struct bytes value) {
    if ((l->count & (l->count - 1)) == 0) {
        struct bytes *at = reallocarray(l->at, l->count > 0 ? 2 * l->count : 1, sizeof *at);
        if (at == NULL)
            return -ENOMEM;
        l->at = at;
    }
    l->at[l->count++] = value;
    return 0;
}

static int read_values(struct supply_list *l, const char *path, char separator) {
    struct supply s = {.ended = true, .separator = separator};
    struct bytes value;
    int r = slurp(path, &l->text, &s.len);
    s.buffer = l->text;
    while (r == 0 && cut(&s, &value))
        r = add(l, value);
    return r;
}

/* ":::" and the words behind it, or "::::" and files. Returns where it ends. */
static char **read_list(struct supply *s, const char *what, char **words, int *status) {
    bool files = strcmp(*words, "::::") == 0;
    struct supply_list *l = &s->lists[s->list_count];
    if (s->list_count == TEMPLATE_VALUES_MAX) {
        *status = complain(what, "more than %d lists of values", TEMPLATE_VALUES_MAX);
        return words;
    }
    for (words++; *words != NULL && strncmp(*words, ":::", 3) != 0 && *status == 0; words++) {
        if (files)
            l = &s->lists[s->list_count++];
        int r = !files                                    ? add(l, bytes_from_str(*words))
                : s->list_count > TEMPLATE_VALUES_MAX - 1 ? -E2BIG
                                                          : read_values(l, *words, s->separator);
        if (r < 0) {
            complain(*words, "%s", strerror(-r));
            *status = STATUS_STORM;
        }
    }
    s->list_count += !files;
    return words;
}

static bool begins_list(const char *word) {
    return strcmp(word, ":::") == 0 || strcmp(word, "::::") == 0;
}

static int read_lists(struct supply *s, const char *what, char **words) {
    int status = 0;
    while (*words != NULL && status == 0) {
        if (!begins_list(*words))
            return complain(what, "\"%s\": ::: stands before words, :::: before files", *words);
        words = read_list(s, what, words, &status);
    }
    s->total = 1;
    for (uint32_t i = 0; i < s->list_count; i++)
        if (__builtin_mul_overflow(s->total, s->lists[i].count, &s->total))
            return complain(what, "those are too many combinations");
    return status;
}

/* The values of the so-manieth combination: the last list changes fastest. */
static void choose(const struct supply *s, uint64_t index, struct bytes values[]) {
    for (uint32_t i = s->list_count; i-- > 0;) {
        values[i] = s->lists[i].at[index % s->lists[i].count];
        index /= s->lists[i].count;
    }
}

/* ---- both ---- */

static char *join(char **words, int count) {
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL)
        return NULL;
    for (int i = 0; i < count; i++)
        fprintf(f, "%s%s", i > 0 ? " " : "", words[i]);
    return fclose(f) == 0 ? text : NULL;
}

static int open_stream(struct supply *s, const char *file) {
    bool typed = file == NULL || strcmp(file, "-") == 0;
    s->fd = typed ? dup(STDIN_FILENO) : open(file, O_RDONLY | O_CLOEXEC);
    if (s->fd >= 0)
        return 0;
    complain(typed ? "standard input" : file, "%s", strerror(errno));
    return STATUS_STORM;
}

int supply_open(struct supply *s, const char *what, char **words, const char *file,
                char separator) {
    int count = 0;
    *s = (struct supply){.fd = -1, .separator = separator};
    while (words[count] != NULL && !begins_list(words[count]))
        count++;
    if (count > 0 && (s->command = join(words, count)) == NULL)
        return STATUS_STORM;
    bool lists = words[count] != NULL;
    if (lists && file != NULL)
        return complain(what, "-f and %s: values come from the one or the other", words[count]);
    int r = lists ? read_lists(s, what, words + count) : open_stream(s, file);
    uint32_t values = lists ? s->list_count : 1;
    uint32_t asked = s->command != NULL ? template_highest(s->command) : 0;
    if (r == 0 && asked > values)
        r = complain(what, "{%u}: there %s only %u", asked, values == 1 ? "is" : "are", values);
    return r;
}

void supply_fini(struct supply *s) {
    for (uint32_t i = 0; i < TEMPLATE_VALUES_MAX; i++) {
        free(s->lists[i].text);
        free(s->lists[i].at);
    }
    if (s->fd >= 0)
        close(s->fd);
    free(s->buffer);
    free(s->command);
}

uint64_t supply_total(const struct supply *s) {
    return s->fd < 0 ? s->total : s->ended && s->from == s->len ? s->seq : 0;
}

/* Values without a command are one, put together as they are. */
static char *plain(const struct bytes *values, uint32_t count) {
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    if (f == NULL)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        fprintf(f, "%s%.*s", i > 0 ? " " : "", (int)values[i].len, (const char *)values[i].at);
    return fclose(f) == 0 ? text : NULL;
}

int supply_next(struct supply *s, char **ret) {
    struct bytes values[TEMPLATE_VALUES_MAX];
    uint32_t count = s->list_count;
    if (s->fd < 0) {
        if (s->given == s->total)
            return -ENODATA;
        choose(s, s->given++, values);
    } else {
        count = 1;
        do /* an empty line is no command, but a value like any other */
            if (!cut(s, &values[0]))
                return s->ended ? -ENODATA : 0;
        while (values[0].len == 0 && s->command == NULL);
    }
    s->seq++;
    *ret = s->command != NULL ? template_fill(s->command, values, count, s->seq)
                              : plain(values, count);
    return *ret != NULL ? 1 : -ENOMEM;
}
