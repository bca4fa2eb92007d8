/* SPDX-License-Identifier: MIT */
/* Attributes as bytes: what the administrator says, and what a node reports; see traits.h.
 *
 * What he says: his attributes with the names of their values, the labels, then runs of nodes that have another value
 * than the usual one; a run of the attribute NO_MORE ends them. */
#include <errno.h>
#include <string.h>

#include "sched/traits.h"
#include "wire/codec.h"

enum { NO_MORE = 255 };

static void walk_word(struct codec *c, char word[TRAITS_WORD_MAX]) {
    struct bytes b = bytes_of(word, c->encoding ? strlen(word) : 0);
    codec_bytes(c, &b, 1);
    if (c->encoding)
        return;
    memset(word, 0, TRAITS_WORD_MAX);
    if (b.len == 0 || b.len >= TRAITS_WORD_MAX || memchr(b.at, '\0', b.len) != NULL)
        c->failed = true;
    else
        memcpy(word, b.at, b.len);
}

/* Keeps the first error of defining something. */
static void judge(struct codec *c, int *error, int r) {
    if (r >= 0)
        return;
    c->failed = true;
    if (*error == 0 && r == -ENOBUFS)
        *error = r;
}

static void walk_attribute(struct codec *c, struct traits *t, uint32_t id, int *error) {
    struct trait a = c->encoding ? t->at[id] : (struct trait){0};
    walk_word(c, a.name);
    codec_u8(c, &a.operators);
    codec_u16(c, &a.count);
    if (a.count == 0)
        c->failed = true;
    if (!c->encoding && !c->failed)
        judge(c, error, traits_define(t, a.name, a.operators));
    for (uint32_t i = 0; i < a.count && !c->failed; i++) {
        char name[TRAITS_WORD_MAX] = "";
        if (c->encoding)
            memcpy(name, t->names[a.first + i], sizeof name);
        walk_word(c, name);
        if (!c->encoding && !c->failed)
            judge(c, error, traits_define_value(t, name));
    }
}

static void walk_labels(struct codec *c, struct traits *t, int *error) {
    uint8_t count = (uint8_t)t->label_count;
    codec_u8(c, &count);
    for (uint32_t i = 0; i < count && !c->failed; i++) {
        char word[TRAITS_WORD_MAX] = "";
        if (c->encoding)
            memcpy(word, t->labels[i], sizeof word);
        walk_word(c, word);
        if (c->encoding || c->failed)
            continue;
        int bit = traits_label(t, word);
        judge(c, error, bit);
        if (bit >= 0 && (uint32_t)bit != i)
            c->failed = true; /* twice */
    }
}

static void walk_definitions(struct codec *c, struct traits *t, int *error) {
    uint8_t count = (uint8_t)(t->count - TRAITS_BUILT_IN);
    codec_u8(c, &count);
    for (uint32_t i = 0; i < count && !c->failed; i++)
        walk_attribute(c, t, TRAITS_BUILT_IN + i, error);
    walk_labels(c, t, error);
}

struct run {
    uint8_t id;
    uint32_t first, last;
    uint64_t value;
};

static void walk_run(struct codec *c, struct run *r) {
    codec_u8(c, &r->id);
    if (r->id == NO_MORE)
        return;
    codec_u32(c, &r->first);
    codec_u32(c, &r->last);
    codec_u64(c, &r->value);
}

static void encode_runs(struct codec *c, const struct traits *t) {
    for (uint32_t id = TRAITS_REPORTED; id < t->count; id++) {
        const uint64_t *column = t->values + (size_t)id * t->nodes;
        for (uint32_t n = 0, next; n < t->nodes && !c->failed; n = next) {
            next = n + 1;
            if (column[n] == t->at[id].usual)
                continue;
            while (next < t->nodes && column[next] == column[n])
                next++;
            walk_run(c, &(struct run){(uint8_t)id, n, next - 1, column[n]});
        }
    }
    walk_run(c, &(struct run){.id = NO_MORE});
}

static void decode_runs(struct codec *c, struct traits *t) {
    for (;;) {
        struct run r = {0};
        walk_run(c, &r);
        if (c->failed || r.id == NO_MORE)
            return;
        if (r.first > r.last || r.last >= t->nodes || !traits_can_be_said(t, r.id, r.value)) {
            c->failed = true;
            return;
        }
        for (uint32_t n = r.first; n <= r.last; n++)
            t->values[(size_t)r.id * t->nodes + n] = r.value;
    }
}

long traits_encode(const struct traits *t, struct room out) {
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    struct traits copy = *t; /* a walk wants one that it could write to */
    int error = 0;
    walk_definitions(&c, &copy, &error);
    encode_runs(&c, t);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int traits_take(struct traits *t, struct bytes in) {
    struct codec c = {.in = in.at, .len = in.len};
    int error = 0;
    traits_clear(t);
    walk_definitions(&c, t, &error);
    decode_runs(&c, t);
    if (!c.failed && c.at == c.len)
        return 0;
    traits_clear(t);
    return error < 0 ? error : -EBADMSG;
}

/* ---- reports ---- */

static void walk_text(struct codec *c, char text[INTERN_TEXT_MAX]) {
    struct bytes b = bytes_of(text, c->encoding ? strlen(text) : 0);
    codec_bytes(c, &b, 1);
    if (c->encoding)
        return;
    memset(text, 0, INTERN_TEXT_MAX);
    if (b.len >= INTERN_TEXT_MAX)
        c->failed = true;
    for (size_t i = 0; i < b.len && !c->failed; i++) {
        text[i] = (char)b.at[i];
        if (b.at[i] < ' ' || b.at[i] > '~')
            c->failed = true; /* terminals will see it */
    }
}

static void walk_report(struct codec *c, struct traits_report *r) {
    for (uint32_t i = 0; i < TRAITS_TEXTS; i++)
        walk_text(c, r->texts[i]);
    for (uint32_t i = TRAITS_TEXTS; i < TRAITS_REPORTED; i++)
        codec_u64(c, &r->values[i]);
}

long traits_report_encode(const struct traits_report *r, struct room out) {
    struct traits_report copy = *r;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_report(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int traits_report_decode(struct bytes in, struct traits_report *ret) {
    *ret = traits_report_empty();
    struct codec c = {.in = in.at, .len = in.len};
    walk_report(&c, ret);
    return !c.failed && c.at == c.len ? 0 : -EBADMSG;
}
