/* SPDX-License-Identifier: MIT */
/* The attribute file: see attribs.h. */
#include "client/attribs.h"

#include <errno.h>
#include <string.h>

#include "base/nearest.h"

/* Keys of the node file that are not attributes. */
static const char *const reserved[] = {"switch", "label", "owner"};

/* A line as it is read. */
struct line {
    struct traits *traits;
    struct mistake *mistake;
    uint32_t number;
    const char *text;
    size_t len, at;
};

struct word {
    size_t column, len;
    char text[TRAITS_VALUE_MAX]; /* cut, if it is longer than any name */
};

static struct text wrong(struct line *l, size_t column, size_t len) {
    struct text t = mistake_at(l->mistake, column, len);
    l->mistake->line = l->number;
    return t;
}

static int wrong_words(struct line *l, size_t column, size_t len, const char *words) {
    struct text t = wrong(l, column, len);
    text_str(&t, words);
    return -EBADMSG;
}

static int wrong_word(struct line *l, const struct word *w, const char *words) {
    struct text t = wrong(l, w->column, w->len);
    mistake_quote(&t, w->text, strlen(w->text));
    text_str(&t, words);
    return -EBADMSG;
}

/* ---- words ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_sign(char c) {
    return c != '\0' && strchr("=!<>", c) != NULL;
}

/* At a word: false at the end of the line or before a comment. */
static bool skip(struct line *l) {
    while (l->at < l->len && is_blank(l->text[l->at]))
        l->at++;
    return l->at < l->len && l->text[l->at] != '#';
}

static void take(struct line *l, struct word *w, size_t len) {
    struct text t;
    text_init(&t, w->text, sizeof w->text);
    text_strn(&t, l->text + l->at, len);
    w->column = l->at;
    w->len = len;
    l->at += len;
}

/* Up to a blank. */
static bool next(struct line *l, struct word *w) {
    size_t len = 0;
    if (!skip(l))
        return false;
    while (l->at + len < l->len && !is_blank(l->text[l->at + len]))
        len++;
    take(l, w, len);
    return true;
}

/* ---- a line ---- */

static int read_operator(struct line *l, uint8_t *operators) {
    static const char *const names[] = {"=", "!=", "<", "<=", ">", ">="};
    struct word w;
    size_t len = 0;
    while (l->at + len < l->len && is_sign(l->text[l->at + len]))
        len++;
    take(l, &w, len);
    int op = traits_operator_find(w.text);
    if (op < 0) {
        struct text t = wrong(l, w.column, w.len);
        mistake_quote(&t, w.text, strlen(w.text));
        text_str(&t, " is no operator (=, !=, <, <=, >, >=)");
        mistake_suggest(&t, nearest_name(w.text, names, TRAITS_OPERATORS));
        return -EBADMSG;
    }
    *operators |= (uint8_t)(1 << op);
    return 0;
}

/* Up to the first value: "=,>=", "=, >=". A comma has an operator on either side. */
static int read_operators(struct line *l, uint8_t *ret) {
    *ret = 0;
    for (;;) {
        if (!skip(l) || !is_sign(l->text[l->at]))
            return wrong_words(l, l->at, 1, "an operator is missing here (=, !=, <, <=, >, >=)");
        int r = read_operator(l, ret);
        if (r < 0)
            return r;
        if (!skip(l))
            return 0;
        if (l->text[l->at] == ',')
            l->at++;
        else if (!is_sign(l->text[l->at]))
            return 0;
    }
}

static int wrong_definition(struct line *l, const struct word *name, int r) {
    int id = traits_find(l->traits, name->text);
    if (r == -EEXIST && id >= 0 && id < TRAITS_BUILT_IN)
        return wrong_word(l, name, " is an attribute that all nodes have; take another name");
    if (r == -EEXIST)
        return wrong_word(l, name, " was defined before");
    if (r == -ENOBUFS)
        return wrong_word(l, name, ": there are too many attributes (at most 64, 13 are built in)");
    return wrong_word(l, name, " cannot be a name: a letter, then up to 30 letters, digits, _ - .");
}

static int wrong_value(struct line *l, const struct word *value, int r) {
    if (r == -EEXIST)
        return wrong_word(l, value, " is a value already");
    if (r == -ENOBUFS)
        return wrong_word(l, value, ": there are too many values (about 500 in all)");
    return wrong_word(l, value, " cannot be a value: up to 31 letters, digits, . _ - + / : @ %");
}

static int read_line(struct line *l) {
    struct word name, value;
    uint8_t operators;
    size_t len = 0;
    if (!skip(l))
        return 0;
    while (l->at + len < l->len && !is_blank(l->text[l->at + len]) &&
           !is_sign(l->text[l->at + len]))
        len++;
    take(l, &name, len);
    int r = read_operators(l, &operators);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (text_alike(name.text, reserved[i]))
            return wrong_word(l, &name,
                              " means something else in the node file; take another name");
    r = traits_define(l->traits, name.text, operators);
    if (r < 0)
        return wrong_definition(l, &name, r);
    if (!skip(l))
        return wrong_words(l, l->at, 1, "values are missing here");
    while (next(l, &value)) {
        r = traits_define_value(l->traits, value.text);
        if (r < 0)
            return wrong_value(l, &value, r);
    }
    return 0;
}

int attribs_parse(struct traits *t, const char *text, struct mistake *m) {
    struct line l = {.traits = t, .mistake = m, .text = text};
    *m = (struct mistake){0};
    for (;;) {
        const char *end = strchr(l.text, '\n');
        l.number++;
        l.at = 0;
        l.len = end != NULL ? (size_t)(end - l.text) : strlen(l.text);
        int r = read_line(&l);
        if (r < 0 || end == NULL)
            return r;
        l.text = end + 1;
    }
}
