/* SPDX-License-Identifier: MIT */
/* Which nodes meet a need, and its text: see need.h.
 *
 * A term is a range of values that its attribute must lie in, or must not; a label is a bit. Values that are not known
 * are above all others, so ranges end below. Nodes are judged 64 at a time: a result is a word with a bit for each. */
#include "sched/need.h"

#include <string.h>

#include "base/assert.h"
#include "sched/need_inside.h"

enum { BLOCK = 64 };

/* What a term asks of a value, once texts have their numbers. */
enum test_kind { TEST_IN, TEST_OUT, TEST_HAS, TEST_LACKS, TEST_NEVER };

struct test {
    enum test_kind kind;
    uint64_t first, width; /* first <= value <= first + width; or the label's bit in `first` */
};

static struct test in_range(uint64_t first, uint64_t last) {
    if (first > last)
        return (struct test){.kind = TEST_NEVER};
    return (struct test){TEST_IN, first, last - first};
}

static struct test test_of(const struct need *n, const struct need_term *term,
                           const struct traits *t) {
    struct traits_value v = term->value;
    uint8_t kind = t->at[term->attribute].kind;
    if (kind == TRAITS_WORDS)
        return (struct test){term->op == TRAITS_IS ? TEST_HAS : TEST_LACKS, v.first, 0};
    if (kind == TRAITS_TEXT) {
        uint32_t number = intern_find(&t->texts, n->texts + term->text);
        if (number == INTERN_NONE) /* no node has it */
            return term->op == TRAITS_IS ? (struct test){.kind = TEST_NEVER}
                                         : in_range(0, TRAITS_UNKNOWN - 1);
        v = (struct traits_value){number, number};
    }
    switch ((enum traits_operator)term->op) {
    case TRAITS_IS:
        return in_range(v.first, v.last);
    case TRAITS_IS_NOT:
        return (struct test){TEST_OUT, v.first, v.last - v.first};
    case TRAITS_BELOW:
        return v.first == 0 ? (struct test){.kind = TEST_NEVER} : in_range(0, v.first - 1);
    case TRAITS_AT_MOST:
        return in_range(0, v.last);
    case TRAITS_ABOVE:
        return in_range(v.last + 1, TRAITS_UNKNOWN - 1);
    case TRAITS_AT_LEAST:
        return in_range(v.first, TRAITS_UNKNOWN - 1);
    case TRAITS_OPERATORS:
        break;
    }
    ASSERT(false);
    return (struct test){.kind = TEST_NEVER};
}

/* A bit for each of these values: does it pass? */
static uint64_t judge(const struct test *t, const uint64_t *values, uint32_t count) {
    uint64_t word = 0;
    switch (t->kind) {
    case TEST_IN:
        for (uint32_t i = 0; i < count; i++)
            word |= (uint64_t)(values[i] - t->first <= t->width) << i;
        return word;
    case TEST_OUT:
        for (uint32_t i = 0; i < count; i++)
            word |= (uint64_t)((values[i] - t->first > t->width) & (values[i] != TRAITS_UNKNOWN))
                    << i;
        return word;
    case TEST_HAS:
        for (uint32_t i = 0; i < count; i++)
            word |= (uint64_t)((values[i] & t->first) != 0) << i;
        return word;
    case TEST_LACKS:
        for (uint32_t i = 0; i < count; i++)
            word |= (uint64_t)((values[i] & t->first) == 0) << i;
        return word;
    case TEST_NEVER:
        break;
    }
    return 0;
}

/* Of nodes from `from` on, at most 64: a bit for each that meets the need. */
static uint64_t run(const struct need *n, const struct traits *t, const struct test *tests,
                    uint32_t from, uint32_t count) {
    uint64_t stack[NEED_DEPTH_MAX];
    uint64_t all = count == BLOCK ? UINT64_MAX : ((uint64_t)1 << count) - 1;
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n->step_count; i++) {
        uint8_t step = n->steps[i];
        if (step < NEED_TERMS_MAX) {
            const uint64_t *column = t->values + (size_t)n->terms[step].attribute * t->nodes;
            stack[depth++] = judge(&tests[step], column + from, count);
        } else if (step == NEED_NOT) {
            stack[depth - 1] = ~stack[depth - 1] & all;
        } else {
            depth--;
            stack[depth - 1] = step == NEED_AND ? stack[depth - 1] & stack[depth]
                                                : stack[depth - 1] | stack[depth];
        }
    }
    return n->step_count == 0 ? all : stack[0];
}

static void prepare(const struct need *n, const struct traits *t, struct test *tests) {
    ASSERT(need_is_current(n, t));
    for (uint32_t i = 0; i < n->term_count; i++)
        tests[i] = test_of(n, &n->terms[i], t);
}

bool need_match(const struct need *n, const struct traits *t, uint32_t node) {
    struct test tests[NEED_TERMS_MAX];
    ASSERT(node < t->nodes);
    prepare(n, t, tests);
    return run(n, t, tests, node, 1) != 0;
}

void need_select(const struct need *n, const struct traits *t, struct nodeset *out) {
    struct test tests[NEED_TERMS_MAX];
    ASSERT(out->universe >= t->nodes);
    prepare(n, t, tests);
    nodeset_clear(out);
    uint32_t open = NODESET_NONE; /* where the run of nodes began that goes on */
    for (uint32_t from = 0; from < t->nodes; from += BLOCK) {
        uint32_t count = t->nodes - from < BLOCK ? t->nodes - from : BLOCK;
        uint64_t word = run(n, t, tests, from, count);
        for (uint32_t i = 0; i < count;) { /* from one change to the next */
            uint64_t rest = (open == NODESET_NONE ? word : ~word) >> i;
            i += rest == 0 ? BLOCK : (uint32_t)__builtin_ctzll(rest);
            if (i >= count)
                break;
            if (open == NODESET_NONE) {
                open = from + i;
            } else {
                nodeset_add_range(out, open, from + i - 1);
                open = NODESET_NONE;
            }
        }
    }
    if (open != NODESET_NONE)
        nodeset_add_range(out, open, t->nodes - 1);
}

/* ---- text ---- */

/* A text that was compared with: bare if it would be read as one word. */
static void write_text(const char *text, struct text *out) {
    bool bare = text[0] != '\0' && strcmp(text, "and") != 0 && strcmp(text, "or") != 0 &&
                strcmp(text, "not") != 0;
    for (const char *c = text; *c != '\0'; c++)
        bare = bare && traits_is_word(*c);
    const char *quote = bare ? "" : strchr(text, '"') == NULL ? "\"" : "'";
    text_str(out, quote);
    text_str(out, text);
    text_str(out, quote);
}

static void write_term(const struct need *n, const struct traits *t, const struct need_term *term,
                       struct text *out) {
    const struct trait *a = &t->at[term->attribute];
    text_str(out, a->name);
    text_str(out, traits_operator_name((enum traits_operator)term->op));
    if (a->kind == TRAITS_TEXT)
        write_text(n->texts + term->text, out);
    else
        traits_write_value(t, term->attribute, term->value, out);
}

/* Something that is still to be written. */
enum piece_kind { PIECE_STEP, PIECE_AND, PIECE_OR, PIECE_CLOSE };

struct piece {
    uint8_t kind, step, in_parentheses;
};

struct writer {
    uint8_t first[NEED_STEPS_MAX];         /* of each step: where what it joins begins */
    struct piece todo[3 * NEED_STEPS_MAX]; /* a step puts off three at most */
    uint32_t count;
};

static void find_beginnings(const struct need *n, struct writer *w) {
    uint8_t stack[NEED_DEPTH_MAX];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < n->step_count; i++) {
        if (n->steps[i] < NEED_TERMS_MAX)
            stack[depth++] = (uint8_t)i;
        else if (n->steps[i] != NEED_NOT)
            depth--;
        w->first[i] = stack[depth - 1];
    }
}

static void put_off(struct writer *w, enum piece_kind kind, uint32_t step, bool in_parentheses) {
    ASSERT(w->count < sizeof w->todo / sizeof w->todo[0]);
    w->todo[w->count++] = (struct piece){(uint8_t)kind, (uint8_t)step, in_parentheses};
}

/* The last comes first. An "or" inside an "and" is in parentheses, and whatever is negated. */
static void write_step(const struct need *n, const struct traits *t, struct writer *w,
                       struct piece p, struct text *out) {
    uint8_t step = n->steps[p.step];
    if (p.in_parentheses) {
        text_char(out, '(');
        put_off(w, PIECE_CLOSE, 0, false);
    }
    if (step < NEED_TERMS_MAX) {
        write_term(n, t, &n->terms[step], out);
    } else if (step == NEED_NOT) {
        text_char(out, '!');
        put_off(w, PIECE_STEP, p.step - 1u, true);
    } else {
        uint32_t right = p.step - 1u, left = w->first[right] - 1u;
        bool both = step == NEED_AND;
        put_off(w, PIECE_STEP, right, both && n->steps[right] == NEED_OR);
        put_off(w, both ? PIECE_AND : PIECE_OR, 0, false);
        put_off(w, PIECE_STEP, left, both && n->steps[left] == NEED_OR);
    }
}

size_t need_format(const struct need *n, const struct traits *t, char *buf, size_t cap) {
    struct writer w = {.count = 0};
    struct text out;
    ASSERT(need_is_current(n, t));
    text_init(&out, buf, cap);
    if (n->step_count == 0)
        return 0;
    find_beginnings(n, &w);
    put_off(&w, PIECE_STEP, n->step_count - 1u, false);
    while (w.count > 0) {
        struct piece p = w.todo[--w.count];
        if (p.kind == PIECE_STEP)
            write_step(n, t, &w, p, &out);
        else
            text_str(&out, p.kind == PIECE_CLOSE ? ")" : p.kind == PIECE_AND ? " && " : " || ");
    }
    return out.full;
}
