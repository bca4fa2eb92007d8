/* SPDX-License-Identifier: MIT */
/* Scenario scripts: what a conformance test does to a cluster, as a few lines of text.
 *
 * One statement a line, words apart by blanks, a text in "quotes", a comment after '#'. The whole
 * file is read before anything runs, so a mistake is found with its file and line and not half way.
 * README.md beside this file describes the statements.
 *
 * A set of nodes is a mask: node n is bit n and the root is the bit above the last node's. That
 * bounds a script's cluster, which is meant to be small, and makes sets plain values that can lie
 * in memory shared by processes. */
#pragma once

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "machine/primitive.h"
#include "prim/tree.h"

enum {
    SCRIPT_NODES_MAX = 63,
    SCRIPT_STEPS_MAX = 256,
    SCRIPT_LABELS_MAX = 64,
    SCRIPT_WORDS_MAX = 32,
    SCRIPT_BODY_MAX = 8192,
    SCRIPT_TIMEOUT = 30, /* periods, if a request names none */
    NO_LABEL = UINT16_MAX,
};

enum verb {
    VERB_START,
    VERB_SET,
    VERB_ASK,
    VERB_STROBE,
    VERB_EXPECT,
    VERB_PENDING,
    VERB_UNTIL,
    VERB_KILL,
    VERB_RESTART,
    VERB_STOP,
    VERB_CONTINUE,
    VERB_HEAP,
    VERB_VARIABLE,
    VERB_EVENT,
    VERB_CONSISTENT,
    VERB_PASS,
    VERB_CONCURRENT,
    VERB_PIPELINE,
    VERB_END,
    VERB_RECORD,
    VERBS
};

enum until {
    UNTIL_UP,
    UNTIL_DOWN,
    UNTIL_JOINED,
    UNTIL_FENCED,
    UNTIL_PREPARED,
    UNTIL_EVENT,
    UNTIL_STROBE,
    UNTILS
};

/* A request as the script words it. */
struct asked {
    struct primitive request; /* without set, body and timeout */
    uint64_t set;
    uint64_t periods; /* timeout */
    const char *text; /* NULL: a pattern of so many bytes */
    uint32_t bytes;
};

/* One statement. Fields that a verb does not use are zero. */
struct step {
    enum verb verb;
    uint32_t line;
    uint64_t who; /* nodes that act, suffer or are looked at */
    uint32_t label;
    struct asked asked;     /* ASK, STROBE, SET */
    uint32_t outcomes;      /* EXPECT: bits of enum outcome */
    uint32_t culprit;       /* EXPECT: NO_NODE if nobody is to blame */
    bool any_culprit;       /* EXPECT */
    enum until until;       /* UNTIL */
    uint64_t index;         /* number of a variable, event, channel or heap offset */
    uint64_t value;         /* value, count, periods or bytes */
    const char *text;       /* HEAP, UNTIL strobe, prepared */
    bool empty, everywhere; /* HEAP: nothing there; all of the heap */
    bool memory;            /* CONSISTENT: the heap, not a variable */
};

struct script {
    const char *path;
    char *content; /* cut into words: steps point into it */
    struct tree tree;
    uint32_t universe; /* nodes and the root */
    struct step steps[SCRIPT_STEPS_MAX];
    uint32_t step_count;
    const char *labels[SCRIPT_LABELS_MAX];
    const struct step *asks[SCRIPT_LABELS_MAX]; /* the step that asks, NULL if none yet */
    uint32_t allowed[SCRIPT_LABELS_MAX];        /* outcomes that the script allows */
    uint32_t label_count;
};

static inline uint64_t node_bit(uint32_t node) {
    return (uint64_t)1 << node;
}

static inline uint64_t script_everyone(const struct script *s) {
    return node_bit(s->universe) - 1;
}

static inline uint32_t script_root(const struct script *s) {
    return s->tree.nodes;
}

/* May it end in more than one way? Then the history does not tell in which it did. */
static inline bool script_is_open(const struct script *s, uint32_t label) {
    return (s->allowed[label] & (s->allowed[label] - 1)) != 0;
}

/* What the bytes of a request are; patterns have no zeros and differ between labels. */
static inline uint8_t script_byte(const struct script *s, uint32_t label, uint64_t at) {
    const struct asked *a = &s->asks[label]->asked;
    return a->text != NULL ? (uint8_t)a->text[at] : (uint8_t)(1 + (label * 37 + at) % 251);
}

/* ---- words ---- */

struct words {
    struct script *script;
    uint32_t line;
    char *word[SCRIPT_WORDS_MAX + 1]; /* a NULL behind the last */
    uint32_t count, at;
    bool failed;
};

/* Complains once a line; returns false, so that a reader can say: return words_fail(...). */
static inline bool words_fail(struct words *w, const char *what) {
    if (!w->failed) {
        const char *near = w->word[w->at];
        printf("# %s:%u: %s%s%s\n", w->script->path, w->line, what, near ? ", at: " : "",
               near ? near : "");
    }
    w->failed = true;
    return false;
}

/* Cuts a line in place. A quoted text keeps its first quote, to be told from a word. */
static inline bool words_cut(struct words *w, char *at) {
    w->count = w->at = 0;
    for (;;) {
        while (*at == ' ' || *at == '\t')
            at++;
        if (*at == '\0' || *at == '#')
            break;
        if (w->count == SCRIPT_WORDS_MAX)
            return words_fail(w, "too many words");
        w->word[w->count++] = at;
        w->word[w->count] = NULL;
        bool quoted = *at == '"';
        at++;
        while (*at != '\0' && (quoted ? *at != '"' : *at != ' ' && *at != '\t'))
            at++;
        if (quoted && *at == '\0')
            return words_fail(w, "a text without its end");
        if (*at != '\0')
            *at++ = '\0';
    }
    w->word[w->count] = NULL;
    return true;
}

static inline const char *words_next(struct words *w) {
    if (w->at == w->count) {
        words_fail(w, "something is missing at the end");
        return "";
    }
    return w->word[w->at++];
}

/* Takes the next word if it is this one. */
static inline bool words_take(struct words *w, const char *word) {
    if (w->at == w->count || strcmp(w->word[w->at], word) != 0)
        return false;
    w->at++;
    return true;
}

static inline bool words_need(struct words *w, const char *word) {
    return words_take(w, word) || words_fail(w, word);
}

static inline bool words_number(struct words *w, const char *prefix, const char *suffix,
                                uint64_t *ret) {
    const char *word = w->at < w->count ? w->word[w->at] : "";
    size_t skip = strlen(prefix);
    if (strncmp(word, prefix, skip) != 0)
        return words_fail(w, "not the number that is wanted");
    int n = text_scan_u64(word + skip, ret);
    if (n <= 0 || strcmp(word + skip + n, suffix) != 0)
        return words_fail(w, "not the number that is wanted");
    w->at++;
    return true;
}

static inline uint32_t words_u32(struct words *w, const char *prefix) {
    uint64_t v = 0;
    if (words_number(w, prefix, "", &v) && v > UINT32_MAX)
        words_fail(w, "too large a number");
    return (uint32_t)v;
}

static inline const char *words_text(struct words *w) {
    if (w->at < w->count && w->word[w->at][0] == '"')
        return w->word[w->at++] + 1;
    words_fail(w, "a text in quotes is wanted");
    return "";
}

/* "all", "root", "n3", "n[0-3,5]", or several of them with commas between. */
static inline uint64_t words_set(struct words *w) {
    const struct script *s = w->script;
    uint64_t storage[16], mask = 0;
    char *word = w->at < w->count ? w->word[w->at] : "";
    ASSERT(nodeset_bytes(s->universe) <= sizeof storage);
    while (*word != '\0') {
        size_t len = 0;
        for (bool inside = false; word[len] != '\0' && (inside || word[len] != ','); len++)
            inside = word[len] == '[' || (inside && word[len] != ']');
        char item[64] = "";
        if (len >= sizeof item)
            break;
        memcpy(item, word, len);
        word += len + (word[len] == ',');
        struct nodeset set;
        nodeset_init(&set, s->tree.nodes, storage);
        if (strcmp(item, "all") == 0) {
            mask |= script_everyone(s);
        } else if (strcmp(item, "root") == 0) {
            mask |= node_bit(script_root(s));
        } else if (nodeset_parse(&set, item, "n", NULL) == 0) {
            NODESET_EACH (n, &set)
                mask |= node_bit(n);
        } else {
            mask = 0;
            break;
        }
    }
    if (mask == 0)
        words_fail(w, "not a set of this cluster's nodes");
    else
        w->at++;
    return mask;
}

static inline uint32_t words_node(struct words *w) {
    uint64_t mask = words_set(w);
    if (mask == 0)
        return 0;
    if ((mask & (mask - 1)) != 0)
        words_fail(w, "one node is wanted");
    return (uint32_t)__builtin_ctzll(mask);
}

/* A label that was asked, or a new one. */
static inline uint32_t words_label(struct words *w, bool fresh) {
    struct script *s = w->script;
    const char *name = words_next(w);
    uint32_t i = 0;
    while (i < s->label_count && strcmp(s->labels[i], name) != 0)
        i++;
    w->at -= w->failed ? 0 : 1; /* complaints point at it */
    if (fresh && i < s->label_count)
        words_fail(w, "this label is taken");
    else if (fresh && s->label_count == SCRIPT_LABELS_MAX)
        words_fail(w, "too many labels");
    else if (!fresh && i == s->label_count)
        words_fail(w, "no request has this label");
    if (w->failed)
        return 0;
    w->at++;
    if (fresh)
        s->labels[s->label_count++] = name;
    return i;
}

/* ---- requests ---- */

static inline void read_relation(struct words *w, struct primitive *r) {
    static const char *const names[RELATIONS] = {
        [RELATION_GE] = ">=", [RELATION_LT] = "<", [RELATION_EQ] = "=", [RELATION_NE] = "!="};
    for (uint32_t i = 0; i < RELATIONS; i++) {
        if (words_take(w, names[i])) {
            r->relation = (enum relation)i;
            return;
        }
    }
    words_fail(w, "a relation is wanted: >= < = !=");
}

static inline bool read_body(struct words *w, struct asked *a) {
    if (words_take(w, "bytes")) {
        a->bytes = words_u32(w, "");
        return true;
    }
    if (w->at == w->count || w->word[w->at][0] != '"')
        return false;
    a->text = words_text(w);
    a->bytes = (uint32_t)strlen(a->text);
    return true;
}

static inline void read_options(struct words *w, struct asked *a) {
    struct primitive *r = &a->request;
    bool carries = r->kind == PRIMITIVE_XFER || r->kind == PRIMITIVE_BULK;
    bool compares = r->kind == PRIMITIVE_COMPARE || r->kind == PRIMITIVE_STANDING;
    while (!w->failed && w->at < w->count) {
        if (words_take(w, "timeout"))
            words_number(w, "", "P", &a->periods);
        else if (compares && words_take(w, "write")) {
            r->write_variable = words_u32(w, "v");
            words_number(w, "", "", &r->write_value);
        } else if (carries && words_take(w, "at"))
            r->heap_offset = words_u32(w, "");
        else if (carries && words_take(w, "event"))
            r->remote_event = words_u32(w, "");
        else if (carries && words_take(w, "local"))
            r->local_event = words_u32(w, "");
        else if (r->kind == PRIMITIVE_XFER && words_take(w, "hint"))
            r->hint = true;
        else if (!carries || !read_body(w, a))
            words_fail(w, "this request has no such part");
    }
    if (r->kind == PRIMITIVE_XFER && a->bytes > SCRIPT_BODY_MAX)
        words_fail(w, "this is what bulk is for");
    r->buffer_bytes = r->kind == PRIMITIVE_BULK ? a->bytes : 0;
}

static inline struct asked asked_of(enum primitive_kind kind) {
    return (struct asked){.request = {.kind = kind,
                                      .remote_event = NO_EVENT,
                                      .local_event = NO_EVENT,
                                      .write_variable = NO_VARIABLE},
                          .periods = SCRIPT_TIMEOUT};
}

/* ask A n2 xfer on n[0-6] at 64 "hello" event 1 timeout 5P */
static inline void read_ask(struct words *w, struct step *s) {
    static const char *const kinds[] = {[PRIMITIVE_XFER] = "xfer",
                                        [PRIMITIVE_COMPARE] = "compare",
                                        [PRIMITIVE_STANDING] = "standing",
                                        [PRIMITIVE_BULK] = "bulk"};
    s->label = words_label(w, true);
    s->who = node_bit(words_node(w));
    uint32_t kind = 0;
    while (kind <= PRIMITIVE_BULK && !words_take(w, kinds[kind]))
        kind++;
    if (kind > PRIMITIVE_BULK) {
        words_fail(w, "no such request");
        return;
    }
    s->asked = asked_of((enum primitive_kind)kind);
    words_need(w, "on");
    s->asked.set = words_set(w);
    struct primitive *r = &s->asked.request;
    if (kind == PRIMITIVE_COMPARE || kind == PRIMITIVE_STANDING) {
        r->variable = words_u32(w, "v");
        read_relation(w, r);
        words_number(w, "", "", &r->value);
    }
    read_options(w, &s->asked);
    if (!w->failed)
        w->script->asks[s->label] = s;
}

/* strobe root on all channel 3 "go" */
static inline void read_strobe(struct words *w, struct step *s) {
    s->who = node_bit(words_node(w));
    s->asked = asked_of(PRIMITIVE_STROBE);
    words_need(w, "on");
    s->asked.set = words_set(w);
    words_need(w, "channel");
    s->asked.request.channel = words_u32(w, "");
    s->asked.text = words_text(w);
    s->asked.bytes = (uint32_t)strlen(s->asked.text);
}

/* set n3 v0 5 */
static inline void read_set(struct words *w, struct step *s) {
    s->who = words_set(w);
    s->asked = asked_of(PRIMITIVE_SET);
    s->asked.set = node_bit(0);
    s->asked.request.variable = words_u32(w, "v");
    words_number(w, "", "", &s->asked.request.value);
}

/* ---- expectations ---- */

static inline uint32_t read_outcome(struct words *w, char *name) {
    for (uint32_t i = 0; i < OUTCOMES; i++)
        if (strcmp(name, outcome_name((enum outcome)i)) == 0)
            return 1u << i;
    w->at--;
    words_fail(w, "no such outcome");
    return 0;
}

/* expect A refused|failed culprit n4 */
static inline void read_expect(struct words *w, struct step *s) {
    s->label = words_label(w, false);
    char names[64] = "";
    const char *word = words_next(w);
    snprintf(names, sizeof names, "%s", word);
    for (char *at = names, *bar = names; bar != NULL && !w->failed; at = bar + 1) {
        bar = strchr(at, '|');
        if (bar != NULL)
            *bar = '\0';
        s->outcomes |= read_outcome(w, at);
        if (bar == NULL)
            break;
    }
    s->culprit = NO_NODE;
    if (words_take(w, "culprit")) {
        s->any_culprit = words_take(w, "any");
        if (!s->any_culprit)
            s->culprit = words_node(w);
    }
    if (!w->failed && s->outcomes != 1u << OUTCOME_UNKNOWN)
        w->script->allowed[s->label] |= s->outcomes;
}

/* until up all, until event n3 1 >= 2, ... */
static inline void read_until(struct words *w, struct step *s) {
    static const char *const names[UNTILS] = {
        [UNTIL_UP] = "up",         [UNTIL_DOWN] = "down",         [UNTIL_JOINED] = "joined",
        [UNTIL_FENCED] = "fenced", [UNTIL_PREPARED] = "prepared", [UNTIL_EVENT] = "event",
        [UNTIL_STROBE] = "strobe"};
    uint32_t i = 0;
    while (i < UNTILS && !words_take(w, names[i]))
        i++;
    if (i == UNTILS) {
        words_fail(w, "until what?");
        return;
    }
    s->until = (enum until)i;
    s->who = words_set(w);
    s->value = 1;
    if (s->until == UNTIL_EVENT) {
        s->index = words_u32(w, "");
        words_need(w, ">=");
        words_number(w, "", "", &s->value);
    } else if (s->until == UNTIL_STROBE) {
        s->index = words_u32(w, "");
        s->text = words_text(w);
    } else if (s->until == UNTIL_PREPARED) {
        s->text = words_text(w);
    } else if (s->until == UNTIL_JOINED && words_take(w, "life")) {
        s->value = words_u32(w, "");
    }
}

/* heap n3 at 64 "hello", heap n3 at 64 of A, heap n3 at 64 empty, heap n3 empty */
static inline void read_heap(struct words *w, struct step *s) {
    s->who = words_set(w);
    s->label = NO_LABEL;
    s->everywhere = !words_take(w, "at");
    if (!s->everywhere)
        s->index = words_u32(w, "");
    s->empty = words_take(w, "empty");
    if (s->empty)
        return;
    if (s->everywhere)
        words_fail(w, "at which offset?");
    else if (words_take(w, "of"))
        s->label = words_label(w, false);
    else
        s->text = words_text(w);
}

/* consistent n[0-6] v1, consistent n[0-6] at 64 bytes 20 */
static inline void read_consistent(struct words *w, struct step *s) {
    s->who = words_set(w);
    s->memory = words_take(w, "at");
    s->index = words_u32(w, s->memory ? "" : "v");
    if (s->memory && words_need(w, "bytes"))
        s->value = words_u32(w, "");
}

static inline void read_value(struct words *w, struct step *s) {
    s->who = words_set(w);
    s->index = words_u32(w, s->verb == VERB_VARIABLE ? "v" : "");
    words_number(w, "", "", &s->value);
}

/* ---- the whole ---- */

static inline void read_rest(struct words *w, struct step *s) {
    switch (s->verb) {
    case VERB_SET:
        read_set(w, s);
        break;
    case VERB_ASK:
        read_ask(w, s);
        break;
    case VERB_STROBE:
        read_strobe(w, s);
        break;
    case VERB_EXPECT:
        read_expect(w, s);
        break;
    case VERB_PENDING:
        s->label = words_label(w, false);
        break;
    case VERB_UNTIL:
        read_until(w, s);
        break;
    case VERB_HEAP:
        read_heap(w, s);
        break;
    case VERB_VARIABLE:
    case VERB_EVENT:
        read_value(w, s);
        break;
    case VERB_CONSISTENT:
        read_consistent(w, s);
        break;
    case VERB_PASS:
        words_number(w, "", "P", &s->value);
        break;
    case VERB_CONCURRENT:
    case VERB_PIPELINE:
    case VERB_END:
        break;
    default: /* START, KILL, RESTART, STOP, CONTINUE, RECORD */
        s->who = words_set(w);
    }
}

static inline void read_step(struct words *w) {
    static const char *const verbs[VERBS] = {[VERB_START] = "start",
                                             [VERB_SET] = "set",
                                             [VERB_ASK] = "ask",
                                             [VERB_STROBE] = "strobe",
                                             [VERB_EXPECT] = "expect",
                                             [VERB_PENDING] = "pending",
                                             [VERB_UNTIL] = "until",
                                             [VERB_KILL] = "kill",
                                             [VERB_RESTART] = "restart",
                                             [VERB_STOP] = "stop",
                                             [VERB_CONTINUE] = "continue",
                                             [VERB_HEAP] = "heap",
                                             [VERB_VARIABLE] = "variable",
                                             [VERB_EVENT] = "event",
                                             [VERB_CONSISTENT] = "consistent",
                                             [VERB_PASS] = "pass",
                                             [VERB_CONCURRENT] = "concurrent",
                                             [VERB_PIPELINE] = "pipeline",
                                             [VERB_END] = "end",
                                             [VERB_RECORD] = "record"};
    struct script *script = w->script;
    uint32_t verb = 0;
    while (verb < VERBS && !words_take(w, verbs[verb]))
        verb++;
    if (verb == VERBS || script->step_count == SCRIPT_STEPS_MAX) {
        words_fail(w, verb == VERBS ? "no such statement" : "too long a script");
        return;
    }
    struct step *s = &script->steps[script->step_count++];
    *s = (struct step){.verb = (enum verb)verb, .line = w->line};
    read_rest(w, s);
}

/* nodes 7 k-ary 2 */
static inline void read_cluster(struct words *w) {
    struct tree *t = &w->script->tree;
    t->nodes = words_u32(w, "");
    if (t->nodes < 1 || t->nodes > SCRIPT_NODES_MAX) {
        w->at--;
        words_fail(w, "that many nodes are not possible");
        return;
    }
    if (!shape_parse(words_next(w), &t->shape)) {
        w->at--;
        words_fail(w, "no such shape of a tree");
    } else if (t->shape == SHAPE_KARY) {
        t->arity = words_u32(w, "");
    }
    w->script->universe = t->nodes + 1;
}

static inline bool read_line(struct script *s, uint32_t number, char *line) {
    struct words w = {.script = s, .line = number};
    if (!words_cut(&w, line))
        return false;
    if (w.count == 0)
        return true;
    if (words_take(&w, "nodes"))
        read_cluster(&w);
    else if (s->universe == 0)
        words_fail(&w, "the first statement says how many nodes there are");
    else
        read_step(&w);
    if (!w.failed && w.at < w.count)
        words_fail(&w, "more than is wanted");
    return !w.failed;
}

static inline char *read_whole(const char *path) {
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return NULL;
    size_t cap = 1 << 16;
    char *content = calloc(1, cap);
    ASSERT(content != NULL);
    size_t len = fread(content, 1, cap - 1, f);
    fclose(f);
    content[len] = '\0';
    return content;
}

static inline void script_free(struct script *s) {
    free(s->content);
    free(s);
}

/* NULL if there is a mistake in it, which has been told. The path must stay. */
static inline struct script *script_parse(const char *path, char *content) {
    struct script *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->path = path;
    s->content = content;
    bool good = content != NULL;
    if (!good)
        printf("# %s: cannot be read\n", path);
    uint32_t number = 1;
    for (char *line = content; line != NULL; number++) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        good = read_line(s, number, line) && good;
        line = end != NULL ? end + 1 : NULL;
    }
    if (good)
        return s;
    script_free(s);
    return NULL;
}

static inline struct script *script_read(const char *path) {
    return script_parse(path, read_whole(path));
}
