/* SPDX-License-Identifier: MIT */
/* What tells that the owner of a machine works there: see owner.h. */
#include "wire/owner.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/nearest.h"
#include "base/units.h"

#define QUIET_USUAL_NS (60 * NS_PER_S)

enum { LOAD_USUAL_X100 = 50, LOAD_DIGITS = 4, WORD_MAX = 32 };

struct reader {
    struct bytes text;
    struct mistake *mistake;
};

static int wrong(const struct reader *r, struct bytes part, const char *words, const char *near) {
    struct text t =
        mistake_at(r->mistake, (size_t)(part.at - r->text.at), part.len > 0 ? part.len : 1);
    mistake_quote(&t, (const char *)part.at, part.len);
    text_str(&t, words);
    mistake_suggest(&t, near);
    return -EINVAL;
}

static bool copy(struct bytes part, char out[WORD_MAX]) {
    if (part.len >= WORD_MAX || (part.len > 0 && memchr(part.at, 0, part.len) != NULL))
        return false;
    if (part.len > 0)
        memcpy(out, part.at, part.len);
    out[part.len] = '\0';
    return true;
}

/* "2", "0.5", "1.25": processors. */
static bool read_load(const char *text, uint32_t *ret_x100) {
    uint32_t value = 0, digits = 0, behind = 0;
    bool point = false;
    for (; *text != '\0'; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (!text_is_digit(*text) || ++digits > LOAD_DIGITS || (point && ++behind > 2))
            return false;
        value = value * 10 + (uint32_t)(*text - '0');
    }
    for (; behind < 2; behind++)
        value *= 10;
    *ret_x100 = value;
    return digits > 0 && value > 0;
}

static int read_path(const struct reader *r, struct bytes part, struct owner_sign *s) {
    s->kind = OWNER_PATH;
    s->path = part;
    for (size_t i = 0; i < part.len; i++)
        if (part.at[i] <= ' ' || part.at[i] > '~')
            return wrong(r, part, ": only plain characters, and no blank", NULL);
    return 0;
}

static int read_kind(const struct reader *r, struct bytes part, struct owner_sign *s) {
    static const char *const names[] = {"keyboard", "load"};
    char word[WORD_MAX] = "";
    if (part.len > 0 && part.at[0] == '/')
        return read_path(r, part, s);
    bool fits = copy(part, word);
    if (fits && text_alike(word, "keyboard")) {
        s->kind = OWNER_KEYBOARD;
        return 0;
    }
    s->kind = OWNER_LOAD;
    s->load_x100 = LOAD_USUAL_X100;
    if (fits && text_alike(word, "load"))
        return 0;
    if (!fits || strncmp(word, "load>", 5) != 0)
        return wrong(r, part,
                     " does not tell of an owner: keyboard, load, load>0.5 or a path from / on do",
                     nearest_name(word, names, sizeof names / sizeof *names));
    if (!read_load(word + 5, &s->load_x100))
        return wrong(r, part, ": processors are meant, as in load>0.5", NULL);
    return 0;
}

static const uint8_t *last_colon(struct bytes part) {
    for (size_t i = part.len; i > 0; i--)
        if (part.at[i - 1] == ':')
            return part.at + i - 1;
    return NULL;
}

static int read_sign(const struct reader *r, struct bytes part, struct owner_sign *s) {
    const uint8_t *colon = last_colon(part);
    char word[WORD_MAX];
    *s = (struct owner_sign){.quiet_ns = QUIET_USUAL_NS};
    if (colon == NULL)
        return read_kind(r, part, s);
    size_t len = (size_t)(colon - part.at);
    struct bytes time = bytes_of(colon + 1, part.len - len - 1);
    if (!copy(time, word) || units_parse_duration(word, &s->quiet_ns) < 0 || s->quiet_ns == 0)
        return wrong(r, time, " is no time: 30s, 5m", NULL);
    return read_kind(r, bytes_of(part.at, len), s);
}

int owner_read(struct bytes text, struct owner_watch *ret, struct mistake *m) {
    struct reader r = {text, m};
    *m = (struct mistake){0};
    *ret = (struct owner_watch){0};
    if (text.len >= OWNER_TEXT_MAX)
        return wrong(&r, text, " is too long", NULL);
    for (size_t at = 0; at <= text.len;) {
        const uint8_t *from = text.at + at;
        const uint8_t *plus = text.len == at ? NULL : memchr(from, '+', text.len - at);
        struct bytes part = bytes_of(from, plus != NULL ? (size_t)(plus - from) : text.len - at);
        if (ret->count == OWNER_SIGNS_MAX)
            return wrong(&r, part, ": these are too many", NULL);
        int e = read_sign(&r, part, &ret->signs[ret->count]);
        if (e < 0)
            return e;
        ret->count++;
        at += part.len + 1;
    }
    return 0;
}

uint32_t owner_mark(struct bytes text) {
    uint32_t mark = text.len == 0 ? 0 : (uint32_t)hash_once(text.at, text.len);
    return text.len > 0 && mark == 0 ? 1 : mark;
}
