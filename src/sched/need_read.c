/* SPDX-License-Identifier: MIT */
/* Reading expressions: see need.h.
 *
 * Words are taken one by one, operands go straight into the program, and operators wait on a stack until what binds
 * less comes along (Dijkstra's shunting yard). So there is no recursion, and both stacks are bounded: who nests too
 * deeply is told so. */
#include <errno.h>
#include <string.h>

#include "sched/need.h"
#include "sched/need_inside.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_STRING,
    TOKEN_COMPARE,
    TOKEN_COMMA, /* from here on: the more it binds, the later */
    TOKEN_OR,
    TOKEN_AND,
    TOKEN_NOT,
    TOKEN_OPEN,
    TOKEN_CLOSE
};

struct token {
    enum token_kind kind;
    enum traits_operator op;
    size_t column, length; /* as it is written */
    size_t from, to;       /* without quotes */
};

struct waiting {
    uint8_t kind; /* enum token_kind */
    uint32_t column;
};

struct reader {
    const struct traits *traits;
    const char *text;
    size_t at;
    struct token token; /* the one that is looked at */
    struct need *need;
    struct mistake *mistake;
    uint32_t depth; /* results that a run would have on its stack here */
    uint32_t waiting_count;
    struct waiting waiting[NEED_NEST_MAX];
};

static int wrong(struct reader *r, const struct token *at, const char *words) {
    struct text t = mistake_at(r->mistake, at->column, at->length);
    text_str(&t, words);
    return -EINVAL;
}

/* ---- tokens ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int take(struct reader *r, enum token_kind kind, size_t length) {
    r->token.kind = kind;
    r->token.length = length;
    r->at += length;
    return 0;
}

static int take_word(struct reader *r) {
    const char *at = r->text + r->at;
    size_t len = 0;
    while (traits_is_word(at[len]))
        len++;
    r->token.from = r->at;
    r->token.to = r->at + len;
    char word[4] = "";
    memcpy(word, at, len < sizeof word ? len : 0);
    enum token_kind kind = TOKEN_WORD;
    if (text_alike(word, "and"))
        kind = TOKEN_AND;
    else if (text_alike(word, "or"))
        kind = TOKEN_OR;
    else if (text_alike(word, "not"))
        kind = TOKEN_NOT;
    return take(r, kind, len);
}

static int take_string(struct reader *r) {
    const char *at = r->text + r->at;
    size_t len = 1;
    while (at[len] != '\0' && at[len] != at[0]) {
        if (at[len] < ' ' || at[len] > '~') {
            struct token here = {.column = r->at + len, .length = 1};
            return wrong(r, &here, "this character cannot stand here");
        }
        len++;
    }
    r->token.length = 1;
    if (at[len] == '\0')
        return wrong(r, &r->token, "this quote is not closed");
    r->token.from = r->at + 1;
    r->token.to = r->at + len;
    return take(r, TOKEN_STRING, len + 1);
}

/* Operators of comparisons, and what people write in their place. */
static int take_compare(struct reader *r) {
    static const char *const slips[][2] = {{"=>", ">="}, {"=<", "<="}, {"<>", "!="}, {"=!", "!="}};
    const char *at = r->text + r->at;
    char word[3] = {at[0], at[1] == '\0' ? '\0' : at[1], '\0'};
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++) {
        if (strcmp(word, slips[i][0]) != 0)
            continue;
        struct text t = mistake_at(r->mistake, r->at, 2);
        text_str(&t, "there is no operator ");
        text_str(&t, word);
        mistake_suggest(&t, slips[i][1]);
        return -EINVAL;
    }
    int op = traits_operator_find(word);
    if (op < 0) {
        word[1] = '\0';
        op = traits_operator_find(word);
    }
    r->token.op = (enum traits_operator)op;
    return take(r, TOKEN_COMPARE, strlen(word));
}

static int next(struct reader *r) {
    while (is_blank(r->text[r->at]))
        r->at++;
    const char *at = r->text + r->at;
    r->token = (struct token){.column = r->at, .length = 1};
    switch (*at) {
    case '\0':
        return take(r, TOKEN_END, 0);
    case ',':
        return take(r, TOKEN_COMMA, 1);
    case '(':
        return take(r, TOKEN_OPEN, 1);
    case ')':
        return take(r, TOKEN_CLOSE, 1);
    case '&':
        return at[1] == '&' ? take(r, TOKEN_AND, 2) : wrong(r, &r->token, "write && for \"and\"");
    case '|':
        return at[1] == '|' ? take(r, TOKEN_OR, 2) : wrong(r, &r->token, "write || for \"or\"");
    case '!':
        return at[1] == '=' ? take_compare(r) : take(r, TOKEN_NOT, 1);
    case '=':
    case '<':
    case '>':
        return take_compare(r);
    case '"':
    case '\'':
        return take_string(r);
    default:
        if (traits_is_word(*at))
            return take_word(r);
        return wrong(r, &r->token, "this character cannot stand here");
    }
}

/* ---- comparisons ---- */

/* The token as a text, cut to the room: what is longer than any name is nobody's. */
static void copy(const struct reader *r, const struct token *k, char out[TRAITS_VALUE_MAX]) {
    struct text t;
    text_init(&t, out, TRAITS_VALUE_MAX);
    text_strn(&t, r->text + k->from, k->to - k->from);
}

static int attribute_of(const struct reader *r, const struct token *k) {
    char name[TRAITS_VALUE_MAX];
    if (k->kind != TOKEN_WORD)
        return -ENOENT;
    copy(r, k, name);
    return traits_find(r->traits, name);
}

static int wrong_attribute(struct reader *r, const struct token *k) {
    char name[TRAITS_VALUE_MAX];
    copy(r, k, name);
    struct text t = mistake_at(r->mistake, k->column, k->length);
    if (k->kind == TOKEN_STRING) {
        text_str(&t, "an attribute is to be compared, not only texts");
        return -EINVAL;
    }
    text_str(&t, "there is no attribute ");
    mistake_quote(&t, name, strlen(name));
    const char *near = traits_nearest(r->traits, name);
    mistake_suggest(&t, near);
    if (near == NULL) {
        text_str(&t, "; there are ");
        traits_write_names(r->traits, &t);
    }
    return -EINVAL;
}

/* Of two words that are both no attribute: the one that was meant to be. */
static const struct token *blame(const struct reader *r, const struct token *left,
                                 const struct token *right) {
    bool name_left = left->kind == TOKEN_WORD && text_is_letter(r->text[left->from]);
    bool name_right = right->kind == TOKEN_WORD && text_is_letter(r->text[right->from]);
    return !name_left && name_right ? right : left;
}

static int keep_text(struct reader *r, const struct token *k, uint16_t *ret) {
    struct need *n = r->need;
    size_t len = k->to - k->from;
    if (len > INTERN_TEXT_MAX - 1)
        len = INTERN_TEXT_MAX - 1; /* as the texts of nodes are cut */
    if (len >= NEED_TEXTS_MAX - (size_t)n->text_len)
        return wrong(r, k, "these are too many texts");
    *ret = n->text_len;
    for (size_t i = 0; i < len; i++)
        n->texts[n->text_len++] = text_lower(r->text[k->from + i]);
    n->texts[n->text_len++] = '\0';
    return 0;
}

static int keep_value(struct reader *r, uint32_t id, const struct token *k,
                      struct need_term *term) {
    char word[TRAITS_VALUE_MAX];
    if (r->traits->at[id].kind == TRAITS_TEXT)
        return keep_text(r, k, &term->text);
    if (k->to - k->from >= sizeof word)
        return wrong(r, k, "this is too long for a value");
    copy(r, k, word);
    struct text why = mistake_at(r->mistake, k->column, k->length);
    return traits_read(r->traits, id, word, &term->value, &why);
}

static int wrong_operator(struct reader *r, uint32_t id, const struct token *k) {
    const struct trait *a = &r->traits->at[id];
    struct text t = mistake_at(r->mistake, k->column, k->length);
    text_str(&t, a->name);
    text_str(&t, " cannot be compared by ");
    text_strn(&t, r->text + k->column, k->length);
    text_str(&t, ", only by ");
    traits_write_operators(&t, a->operators);
    return -EINVAL;
}

static int emit(struct reader *r, const struct token *k, uint8_t step) {
    struct need *n = r->need;
    if (step == NEED_NOT && n->steps[n->step_count - 1] == NEED_NOT) {
        n->step_count--; /* not not */
        return 0;
    }
    if (step < NEED_TERMS_MAX && ++r->depth > NEED_DEPTH_MAX)
        return wrong(r, k, "this is nested too deeply");
    if (step == NEED_AND || step == NEED_OR)
        r->depth--;
    if (n->step_count == NEED_STEPS_MAX) /* at most one negation for each term and each join */
        return wrong(r, k, "this is too long");
    n->steps[n->step_count++] = step;
    return 0;
}

static int keep_term(struct reader *r, const struct token *k, const struct need_term *term) {
    struct need *n = r->need;
    if (n->term_count == NEED_TERMS_MAX)
        return wrong(r, k, "these are too many comparisons (at most 64)");
    n->terms[n->term_count] = *term;
    return emit(r, k, (uint8_t)n->term_count++);
}

/* `first` is the word that stands on the left. */
static int keep_comparison(struct reader *r, uint32_t id, enum traits_operator op,
                           const struct token *sign, const struct token *value,
                           const struct token *first) {
    struct need_term term = {.attribute = (uint8_t)id, .op = (uint8_t)op};
    if (!(r->traits->at[id].operators >> op & 1))
        return wrong_operator(r, id, sign);
    int e = keep_value(r, id, value, &term);
    return e < 0 ? e : keep_term(r, first, &term);
}

/* An attribute alone: a flag, or something was forgotten. */
static int keep_flag(struct reader *r, const struct token *k) {
    int id = attribute_of(r, k);
    if (id < 0)
        return wrong_attribute(r, k);
    const struct trait *a = &r->traits->at[id];
    struct need_term is_true = {.attribute = (uint8_t)id, .op = TRAITS_IS, .value = {1, 1}};
    if (a->kind == TRAITS_FLAG)
        return keep_term(r, k, &is_true);
    struct text t = mistake_at(r->mistake, k->column, k->length);
    text_str(&t, a->name);
    text_str(&t, " is to be compared with something, by ");
    traits_write_operators(&t, a->operators);
    return -EINVAL;
}

static enum traits_operator mirrored(enum traits_operator o) {
    static const uint8_t mirror[TRAITS_OPERATORS] = {
        [TRAITS_IS] = TRAITS_IS,       [TRAITS_IS_NOT] = TRAITS_IS_NOT,
        [TRAITS_BELOW] = TRAITS_ABOVE, [TRAITS_AT_MOST] = TRAITS_AT_LEAST,
        [TRAITS_ABOVE] = TRAITS_BELOW, [TRAITS_AT_LEAST] = TRAITS_AT_MOST,
    };
    return mirror[o];
}

static int read_comparison(struct reader *r) {
    struct token left = r->token;
    int e = next(r);
    if (e < 0)
        return e;
    if (r->token.kind != TOKEN_COMPARE)
        return keep_flag(r, &left);
    struct token op = r->token;
    e = next(r);
    if (e < 0)
        return e;
    struct token right = r->token;
    if (right.kind != TOKEN_WORD && right.kind != TOKEN_STRING)
        return wrong(r, &right, "a value is missing here");
    int id = attribute_of(r, &left);
    if (id >= 0) {
        e = keep_comparison(r, (uint32_t)id, op.op, &op, &right, &left);
    } else {
        id = attribute_of(r, &right);
        if (id < 0)
            return wrong_attribute(r, blame(r, &left, &right));
        e = keep_comparison(r, (uint32_t)id, mirrored(op.op), &op, &left, &left);
    }
    return e < 0 ? e : next(r);
}

/* ---- what joins them ---- */

static int push(struct reader *r, const struct token *k) {
    if (r->waiting_count == NEED_NEST_MAX)
        return wrong(r, k, "this is nested too deeply");
    r->waiting[r->waiting_count++] =
        (struct waiting){.kind = (uint8_t)k->kind, .column = (uint32_t)k->column};
    return 0;
}

/* What waits and binds as much as this one, or more, is done with. */
static int settle(struct reader *r, enum token_kind kind) {
    while (r->waiting_count > 0) {
        struct waiting top = r->waiting[r->waiting_count - 1];
        if (top.kind == TOKEN_OPEN || top.kind < kind)
            return 0;
        struct token at = {.column = top.column, .length = 1};
        int e = emit(r, &at,
                     top.kind == TOKEN_NOT  ? NEED_NOT
                     : top.kind == TOKEN_OR ? NEED_OR
                                            : NEED_AND);
        if (e < 0)
            return e;
        r->waiting_count--;
    }
    return 0;
}

static int close_parenthesis(struct reader *r) {
    int e = settle(r, TOKEN_END);
    if (e < 0)
        return e;
    if (r->waiting_count == 0)
        return wrong(r, &r->token, "no parenthesis is open here");
    r->waiting_count--;
    return next(r);
}

/* Where a comparison could begin. 1: there is one, and it was read. */
static int read_operand(struct reader *r) {
    int e;
    switch (r->token.kind) {
    case TOKEN_NOT:
    case TOKEN_OPEN:
        e = push(r, &r->token);
        return e < 0 ? e : next(r);
    case TOKEN_WORD:
    case TOKEN_STRING:
        e = read_comparison(r);
        return e < 0 ? e : 1;
    default:
        return wrong(r, &r->token, "a comparison is missing here, such as MEMORY>=512MB");
    }
}

/* "24 GiB" looks like two values. */
static int wrong_join(struct reader *r) {
    size_t before = r->token.column;
    while (before > 0 && is_blank(r->text[before - 1]))
        before--;
    if (r->token.kind == TOKEN_WORD && before > 0 && text_is_digit(r->text[before - 1]) &&
        attribute_of(r, &r->token) < 0)
        return wrong(r, &r->token, "write a number and its unit as one word");
    return wrong(r, &r->token, "write && or || or a comma in between");
}

/* Behind a comparison. 1: another one must follow. */
static int read_join(struct reader *r) {
    int e;
    switch (r->token.kind) {
    case TOKEN_COMMA:
    case TOKEN_OR:
    case TOKEN_AND:
        e = settle(r, r->token.kind);
        if (e == 0)
            e = push(r, &r->token);
        if (e == 0)
            e = next(r);
        return e < 0 ? e : 1;
    case TOKEN_CLOSE:
        return close_parenthesis(r);
    case TOKEN_COMPARE:
        return wrong(r, &r->token, "one comparison at a time: write A < B && B < C");
    default:
        return wrong_join(r);
    }
}

static int read_all(struct reader *r) {
    int e = next(r);
    if (e < 0 || r->token.kind == TOKEN_END)
        return e;
    for (bool inside = true;;) { /* an operand is to come */
        int did = inside ? read_operand(r) : read_join(r);
        if (did < 0)
            return did;
        if (did == 1)
            inside = !inside;
        if (!inside && r->token.kind == TOKEN_END)
            break;
    }
    e = settle(r, TOKEN_END);
    if (e < 0 || r->waiting_count == 0)
        return e;
    struct token open = {.column = r->waiting[r->waiting_count - 1].column, .length = 1};
    return wrong(r, &open, "this parenthesis is not closed");
}

int need_compile(struct need *ret, const struct traits *t, const char *text, struct mistake *m) {
    struct reader r = {.traits = t, .text = text, .need = ret, .mistake = m};
    *ret = (struct need){.edition = t->edition};
    *m = (struct mistake){0};
    int e = read_all(&r);
    if (e == 0)
        m->words[0] = '\0'; /* readers of values may have begun a sentence */
    return e;
}
