/* SPDX-License-Identifier: MIT */
/* Mistakes in texts: see mistake.h. */
#include "base/mistake.h"

#include <string.h>

enum { QUOTE_MAX = 40, AHEAD = 16 /* characters shown before the place, if a line is long */ };

static char printable(char c) {
    return c >= ' ' && c <= '~' ? c : c == '\t' ? ' ' : '?';
}

struct text mistake_at(struct mistake *m, size_t column, size_t length) {
    struct text t;
    m->line = 0;
    m->column = (uint32_t)column;
    m->length = length > 0 ? (uint32_t)length : 1;
    text_init(&t, m->words, sizeof m->words);
    return t;
}

void mistake_quote(struct text *t, const char *at, size_t len) {
    text_char(t, '"');
    for (size_t i = 0; i < len && i < QUOTE_MAX; i++)
        text_char(t, printable(at[i]));
    text_str(t, len > QUOTE_MAX ? "...\"" : "\"");
}

void mistake_suggest(struct text *t, const char *name) {
    if (name == NULL)
        return;
    text_str(t, "; did you mean ");
    text_str(t, name);
    text_char(t, '?');
}

static void write_head(struct text *t, const struct mistake *m, const char *name) {
    text_str(t, name != NULL ? name : m->line > 0 ? "line" : "column");
    text_char(t, name != NULL ? ':' : ' ');
    if (m->line > 0) {
        text_u64(t, m->line);
        text_char(t, ':');
    }
    text_u64(t, (uint64_t)m->column + 1);
    text_str(t, ": ");
    text_str(t, m->words);
}

size_t mistake_format(const struct mistake *m, const char *name, char *buf, size_t cap) {
    struct text t;
    text_init(&t, buf, cap);
    write_head(&t, m, name);
    return t.full;
}

static const char *line_of(const struct mistake *m, const char *text, size_t *ret_len) {
    for (uint32_t n = 1; n < m->line; n++) {
        const char *end = strchr(text, '\n');
        if (end == NULL)
            break;
        text = end + 1;
    }
    const char *end = m->line > 0 ? strchr(text, '\n') : NULL;
    *ret_len = end != NULL ? (size_t)(end - text) : strlen(text);
    return text;
}

size_t mistake_show(const struct mistake *m, const char *name, const char *text, char *buf,
                    size_t cap) {
    struct text t;
    size_t len, column, from = 0;
    const char *line = line_of(m, text, &len);
    column = m->column < len ? m->column : len;
    if (len > MISTAKE_WIDTH && column > AHEAD)
        from = column - AHEAD;
    size_t shown = len - from < MISTAKE_WIDTH ? len - from : MISTAKE_WIDTH;
    text_init(&t, buf, cap);
    write_head(&t, m, name);
    text_str(&t, "\n  ");
    for (size_t i = 0; i < shown; i++)
        text_char(&t, printable(line[from + i]));
    text_str(&t, "\n  ");
    for (size_t i = from; i < column; i++)
        text_char(&t, ' ');
    text_char(&t, '^');
    for (size_t i = 1; i < m->length && column + i < from + shown; i++)
        text_char(&t, '~');
    return t.full;
}
